//! A removal, as the walk sees it.

use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::{MOST_PASSES, Removal, RemoveTask, list_again, place_again};
use crate::descriptors::{Descriptors, Roots};
use crate::distribute::{Finished, Stolen};
use crate::node::{Node, Side};
use crate::paths;
use crate::remove::context::needs_room;
use crate::remove::directory::{self, Entered, Entering};
use crate::remove::guards;
use crate::remove::node::{
    BORROWED, Consent, DECLINED, INCOMPLETE, KEPT, LEFT_ALONE, Name, RemoveDir, RemoveNode,
    RemovePlace, SHRUNK, STAYS, State,
};
use crate::remove::operand::begin_operand;
use crate::remove::waiting;
use crate::report::{Counted, Report};
use crate::sched::When;
use crate::sys::{Fd, Listed};
use crate::walk::{
    self, OpenDirs, Purpose, Settings, Sharer, Stealing, Task, Tuning, Visit, Visitor, Walker,
};

impl Visitor for Removal<'_> {
    type Scratch = ();

    fn descriptors(&self) -> &Descriptors<RemoveDir> {
        &self.context.descriptors
    }

    fn report(&self) -> &Report<'_> {
        &self.context.report
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Looks at the filesystem of the last operand, which is the last to be removed. If it is gone, or is not a directory,
    /// its filesystem stays unknown.
    fn tuning(&self) -> Tuning {
        let last = (self.context.operands.len() as u32).saturating_sub(1);
        let dir = self.context.open_operand(last, Side::Source).ok();
        Tuning::of_removal(dir.as_ref().map(AsFd::as_fd))
    }

    fn operand_path(&self, operand: u32) -> &Path {
        self.context.operand_path(operand)
    }

    fn enter(
        &self,
        place: RemovePlace,
        purpose: Purpose,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Option<RemoveNode> {
        let entering = Entering {
            context: &self.context,
            place: &place,
            purpose,
        };
        let entered = entering.enter();
        self.node_of(entered, place, purpose, worker)
    }

    // Inlined by force, because two loops call this function. Without that, the removal of a file
    // takes 112 instructions instead of 79 (5,000 empty files in one directory). The guard's case
    // `rmz-files` counts them.
    #[inline(always)]
    fn visit(
        &self,
        node: &RemoveNode,
        dirs: &OpenDirs<'_>,
        entry: Listed<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Visit {
        // A call that takes the whole entry would make the compiler store it in memory for each
        // file.
        let name = entry.name;
        match entry.kind() {
            // With a constant kind, nothing about it is kept while a file is removed.
            FileType::RegularFile => {
                self.remove_entry(node, dirs, name, FileType::RegularFile, worker)
            }
            FileType::Directory => walk::queue(node, entry, worker),
            kind => self.remove_other(node, dirs, name, kind, worker),
        }
    }

    fn note(&self, node: &RemoveNode, finished: Finished) {
        let kept = u8::from(finished.kept) * KEPT;
        let left_alone = u8::from(finished.left_alone) * LEFT_ALONE;
        let shrunk = u8::from(finished.changed) * SHRUNK;
        node.state.mark(kept | left_alone | shrunk);
    }

    fn may_list(&self, node: &RemoveNode, errno: Errno) -> bool {
        self.context.unlock(node, errno)
    }

    fn not_listed(&self, node: &RemoveNode, errno: Errno) {
        let Err(errno) = directory::remove_unlisted(&self.context, node, errno) else {
            return;
        };
        if !self.context.is_ignorable(Name::of(&node.place), errno) {
            node.state.mark(KEPT);
        }
        self.context.fail_and_keep(Name::of(&node.place), errno);
    }

    fn finish(&self, node: &RemoveNode, worker: &mut Walker<'_, '_, Self>) -> ControlFlow<()> {
        let state = &node.state;
        if state.has(BORROWED) {
            let finished = Finished {
                kept: state.has(INCOMPLETE),
                left_alone: state.has(LEFT_ALONE),
                changed: state.has(SHRUNK),
            };
            return walk::give_back(self, node, finished);
        }
        let is_operand = node.place.parent.is_none();
        if self.context.stays(&node.place) || is_operand && state.has(STAYS) {
            return self.finish_staying(node, worker);
        }
        match directory::remove_emptied(&self.context, node) {
            Ok(true) => Self::count(Counted::Directory, worker),
            Ok(false) => {
                if let Some(parent) = &node.place.parent
                    && state.has(STAYS)
                {
                    parent.state.keep_as(state);
                }
            }
            // Another process adds entries, or the filesystem skips some while others
            // are removed.
            Err(Errno::NOTEMPTY | Errno::EXIST)
                if state.has(SHRUNK) && !state.has(DECLINED) && state.pass < MOST_PASSES =>
            {
                worker.push(list_again(node), When::Next);
                return ControlFlow::Break(());
            }
            Err(errno) if needs_room(errno) || waiting::may_pass(&self.context, node, errno) => {
                let waits =
                    self.waiting
                        .add(&self.context, place_again(node), FileType::Directory, errno);
                if waits.is_none() {
                    return ControlFlow::Break(());
                }
            }
            Err(errno) => self.context.fail_and_keep(Name::of(&node.place), errno),
        }
        if is_operand {
            self.context.finish_operand(node.place.operand);
        }
        ControlFlow::Continue(())
    }

    fn run_own(&self, task: RemoveTask, worker: &mut Walker<'_, '_, Self>) {
        let operands = match task {
            RemoveTask::Operands(operands) => operands,
            RemoveTask::Waiting(names) => {
                return waiting::retry(&self.context, names, |place, entered| {
                    if let Entered::Removed(counted) = entered {
                        Self::count(counted, worker);
                    }
                    self.leave(place, worker);
                    self.context.report.publish(&mut worker.scratch.tally);
                });
            }
        };
        if self.context.report.must_stop() {
            return;
        }
        let (portion, rest) = paths::portion(operands);
        if let Some(rest) = rest {
            worker.push(Task::Own(RemoveTask::Operands(rest)), When::Next);
        }
        worker.in_order(|worker| {
            for operand in portion {
                if self.context.report.must_stop() {
                    break;
                }
                self.context.report.publish(&mut worker.scratch.tally);
                let place = RemovePlace {
                    parent: None,
                    name: (&*self.context.operands[operand as usize]).into(),
                    operand,
                };
                let purpose = Purpose::Process { pass: 0 };
                match begin_operand(&self.context, Name::of(&place)) {
                    Some(entered) => _ = self.node_of(entered, place, purpose, worker),
                    None => worker.push(Task::Enter { place, purpose }, When::Next),
                }
            }
        });
    }
}

impl Sharer for Removal<'_> {
    type Dir = RemoveDir;
    type Task = RemoveTask;

    fn roots(&self) -> &dyn Roots {
        &self.context
    }

    fn stealing(&self) -> Option<&Stealing<'_, RemoveDir, RemoveTask>> {
        self.stealing.as_ref()
    }

    fn operands(&self) -> usize {
        self.context.operands.len()
    }

    fn borrow(&self, place: RemovePlace, _inheritance: u8) -> Option<RemoveNode> {
        let state = State::new(0, Consent::ToRemove, BORROWED);
        Some(Node::new(place, state, RemoveDir::new(), None))
    }

    fn reach_first(&self, stolen: &Stolen, side: Side) -> Result<Fd, Errno> {
        let operand = stolen.operand;
        let dir = self.context.open_operand(operand, side)?;
        if self.context.options.one_file_system {
            // The first call notes the filesystem.
            guards::is_on_other_filesystem(&self.context, operand, dir.as_fd())?;
        }
        Ok(dir)
    }
}
