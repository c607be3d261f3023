//! One run of a removal: its operands, what happens to each listed entry, and the run as the walk sees it.

use std::ffi::CStr;
use std::iter;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::asking::{self, IfLeft};
use super::context::{RemoveContext, needs_room};
use super::directory::{self, Entered, Entering, begin_operand};
use super::node::{
    DECLINED, INCOMPLETE, KEPT, LEFT_ALONE, Name, RemoveDir, RemoveNode, RemovePlace, SHRUNK,
    STAYS, State,
};
use super::options::{Ask, RemoveOp};
use super::waiting::{self, Waiting, WaitingList};
use crate::descriptors::{Descriptors, Roots};
use crate::node::{Node, Side};
use crate::observer::{Observer, Summary};
use crate::paths;
use crate::report::{Counted, Report};
use crate::sched::When;
use crate::sys::{self, DirSlot, Listed, Storage, Symlinks};
use crate::walk::{
    self, OpenDirs, Purpose, Settings, Task, Tuning, Unvisited, Visit, Visitor, Walk, Walker,
};

/// A directory is listed at most this many times. It is listed again if it is not empty in
/// the end, because other processes add entries.
const MOST_PASSES: u8 = 8;

/// The number of operands that are held at the same time. Workers wait for each other between two such portions.
///
/// With names of 100 bytes, a removal of a million files takes at most 5 MB of memory.
const HELD_OPERANDS: usize = 16_384;

/// A task of a removal.
pub(super) enum RemoveTask {
    /// Begin operands, in order.
    Operands(Range<u32>),
    /// Try again to remove names that wait.
    Waiting(Vec<Waiting>),
}

/// One run of a [`RemoveOp`], or of a part of its operands.
struct Removal<'a> {
    context: RemoveContext<'a>,
    settings: Settings,
    waiting: WaitingList,
    #[cfg(feature = "distribute")]
    shared: Option<walk::Shared<'a, RemoveDir>>,
}

/// Removes operands, a portion after the other if their number is unknown.
pub(super) fn remove_all(
    op: &RemoveOp<'_>,
    operands: &mut dyn Iterator<Item = PathBuf>,
    observer: &dyn Observer,
) -> Summary {
    // Other engines name operands by their index. Operands whose number is known are in memory already.
    let are_held = op.setup.exchange.is_some() || operands.size_hint().1.is_some();
    let most = if are_held { usize::MAX } else { HELD_OPERANDS };
    let mut next = || (&mut *operands).take(most).collect();
    let mut held: Vec<PathBuf> = next();
    let mut report = Report::new(observer, &op.setup);
    loop {
        report = Removal::new(op, held, report).remove_operands();
        // Another thread may cancel the run while the iterator waits.
        if report.must_stop() {
            break;
        }
        held = next();
        if held.is_empty() {
            break;
        }
    }
    report.summary()
}

impl<'a> Removal<'a> {
    fn new(op: &'a RemoveOp<'a>, operands: Vec<PathBuf>, report: Report<'a>) -> Self {
        let is_alone = op.threads == Some(NonZeroUsize::MIN);
        // The user must be able to follow the order of the questions.
        let is_in_order = match op.ask {
            Ask::Never => false,
            Ask::IfWriteProtected => is_alone,
            Ask::Always => true,
        };
        Self {
            context: RemoveContext::new(op, operands, report),
            settings: Settings {
                is_in_order,
                may_be_slow: true,
                ..Settings::new(op.threads, op.setup.filter.clone())
            },
            // A directory of another engine must be given back before the operands are done.
            waiting: WaitingList::new(op.setup.exchange.is_some()),
            #[cfg(feature = "distribute")]
            shared: walk::Shared::of(&op.setup, op.execution),
        }
    }

    /// Removes the operands. Returns the report, to which the next run of other operands adds.
    fn remove_operands(self) -> Report<'a> {
        let operands = self.independent_operands().into_iter();
        // Removals that succeed may fill the list again.
        let waiting = iter::from_fn(|| self.waiting.take_all());
        let tasks = operands.map(RemoveTask::Operands);
        let tasks = tasks.chain(waiting.map(RemoveTask::Waiting));
        walk::run_tasks(&self, tasks);
        self.context.report.report_rest();
        self.context.report
    }

    /// Returns groups of operands that can be worked on together. If there are events, each operand is alone,
    /// so that the events come in the order of the operands.
    fn independent_operands(&self) -> Vec<Range<u32>> {
        let operands = &self.context.operands;
        if self.settings.is_in_order || self.context.report.wants_events() {
            return (0..operands.len() as u32).map(|i| i..i + 1).collect();
        }
        paths::independent_groups(operands.iter().map(|path| &**path), |_| true)
    }

    /// Ends the work on an operand that stays.
    ///
    /// # Errors
    /// `ENOTEMPTY` if it may have more entries to remove.
    #[cold]
    fn leave_operand(&self, node: &RemoveNode) -> Result<bool, Errno> {
        let may_have_more = self.may_have_more(node);
        self.context.descriptors.close(node, Side::Source);
        match may_have_more {
            true => Err(Errno::NOTEMPTY),
            false => Ok(false),
        }
    }

    /// Returns `true` if an operand that stays may have entries that were not listed, because others were removed
    /// since then.
    ///
    /// If the filter leaves entries alone, another listing meets them again. So an operand with such entries is only
    /// listed again on a filesystem that may skip entries, and if the user is not asked again.
    fn may_have_more(&self, node: &RemoveNode) -> bool {
        let (context, state) = (&self.context, &node.state);
        // Another listing would meet the same names again.
        if context.remover.leaves_names() || !state.marks.has(SHRUNK) || state.marks.has(INCOMPLETE)
        {
            return false;
        }
        if !state.marks.has(LEFT_ALONE) {
            return true;
        }
        let may_skip = || {
            let dir = context.descriptors.pin(node, Side::Source, context);
            dir.map_or(true, |dir| Storage::of(dir.as_fd()) != Storage::Native)
        };
        !context.asks && may_skip()
    }

    /// Returns the node of a directory to list. Otherwise the work on it ends here.
    #[inline]
    fn node_of(
        &self,
        entered: Entered,
        place: RemovePlace,
        purpose: Purpose,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Option<RemoveNode> {
        match entered {
            Entered::Open(fd, consent) => {
                let state = match purpose {
                    Purpose::Process { pass } => State::new(pass, consent, 0),
                    Purpose::ProcessEntries => State::new(0, consent, LEFT_ALONE),
                };
                let finished = worker.scratch.finished.take();
                let node = Node::new(place, state, RemoveDir(DirSlot::empty()), finished);
                self.context.descriptors.adopt(&node, Side::Source, fd);
                return Some(node);
            }
            Entered::Replaced => {
                let entered = self.remove_replaced(&place, worker);
                return self.node_of(entered, place, purpose, worker);
            }
            ended => self.end_name(place, ended, worker),
        }
        None
    }

    /// Ends the work on a name that is not entered, unless it waits.
    fn end_name(&self, place: RemovePlace, entered: Entered, worker: &mut Walker<'_, '_, Self>) {
        let left = match entered {
            Entered::NoRoom(kind, errno) => {
                self.waiting.let_wait(&self.context, place, kind, errno)
            }
            Entered::Removed(counted) => {
                Self::count_removed(counted, worker);
                Some(place)
            }
            _ => Some(place),
        };
        let Some(place) = left else {
            return;
        };
        if place.parent.is_none() {
            self.context.report.finish_operand(place.operand);
        }
        walk::leave(place.parent, worker);
    }

    /// Removes an entry that is listed as a regular file.
    #[inline(always)]
    fn remove_file(
        &self,
        node: &RemoveNode,
        dir: BorrowedFd<'_>,
        name: &CStr,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Visit {
        // With a constant kind, nothing about it is kept while a file is removed.
        let kind = FileType::RegularFile;
        if self.context.looks_at_entries {
            return self.look_and_remove(node, dir, Listed::new(name, kind), worker);
        }
        match sys::unlink(dir, name) {
            Ok(()) => self.removed_entry(node, name, kind, worker),
            Err(errno) => self.not_unlinked(node, dir, Listed::new(name, kind), errno, worker),
        }
    }

    /// Counts and reports an entry of this type that was removed.
    #[inline(always)]
    fn removed_entry(
        &self,
        node: &RemoveNode,
        name: &CStr,
        kind: FileType,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Visit {
        Self::count_removed(Counted::of(kind), worker);
        self.context.note_removed(Name::entry(node, name), kind);
        Visit::Done
    }

    /// Asks about an entry that is not listed as a directory, if there are questions, and removes it.
    #[cold]
    fn look_and_remove(
        &self,
        node: &RemoveNode,
        dir: BorrowedFd<'_>,
        entry: Listed<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Visit {
        let (context, name, kind) = (&self.context, entry.name, entry.kind());
        if context.asks {
            let stat = || sys::stat(dir, name, Symlinks::NoFollow);
            if kind == FileType::Unknown && stat().is_ok_and(|stat| sys::is_directory(&stat)) {
                return self.found_directory(node, dir, name, worker);
            }
            let name = Name::entry(node, name);
            if !asking::ask_about(context, name, kind, IfLeft::TryParent) {
                return Visit::Done;
            }
        }
        match context.unlink(dir, name) {
            Ok(()) => self.removed_entry(node, name, kind, worker),
            Err(errno) => self.not_unlinked(node, dir, entry, errno, worker),
        }
    }

    /// Handles an entry that could not be unlinked.
    #[cold]
    fn not_unlinked(
        &self,
        node: &RemoveNode,
        dir: BorrowedFd<'_>,
        entry: Listed<'_>,
        errno: Errno,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Visit {
        let name = Name::entry(node, entry.name);
        let unlink = |dir: BorrowedFd<'_>, name: &CStr| self.context.unlink(dir, name);
        let Err(errno) = self.context.unlock_and_retry(name, errno, unlink) else {
            return self.removed_entry(node, entry.name, entry.kind(), worker);
        };
        if needs_room(errno) {
            let no_room = Entered::NoRoom(entry.kind(), errno);
            self.end_name(node.child(entry.name), no_room, worker);
            return Visit::Done;
        }
        // The listing did not give the type, or not the right one, or another process has replaced the entry by a
        // directory.
        if errno == Errno::ISDIR {
            return self.found_directory(node, dir, entry.name, worker);
        }
        let reason = match (errno, sys::stat(dir, entry.name, Symlinks::NoFollow)) {
            // Some filesystems return another error for directories, and the kernel does so first if the parent may
            // not be changed.
            (_, Ok(stat)) if sys::is_directory(&stat) => {
                return self.found_directory(node, dir, entry.name, worker);
            }
            // On a read-only filesystem the kernel returns EROFS even for a missing name.
            (Errno::ROFS, Err(missing)) => missing,
            _ => errno,
        };
        self.context.fail_and_keep(name, reason);
        Visit::Done
    }

    /// Handles an entry that is not listed as a directory, but is one.
    #[cold]
    fn found_directory(
        &self,
        node: &RemoveNode,
        dir: BorrowedFd<'_>,
        name: &CStr,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Visit {
        walk::reconsider(node, dir, name, FileType::Directory, worker).unwrap_or(Visit::Done)
    }

    /// Removes a name that was a directory until another process replaced it.
    #[cold]
    fn remove_replaced(&self, place: &RemovePlace, worker: &mut Walker<'_, '_, Self>) -> Entered {
        let name = Name::of(place);
        if let Some(parent) = &place.parent
            && self.settings.filters.is_some()
        {
            let reconsidered = self.context.on(name, |dir, name| {
                let stat = sys::stat(dir, name, Symlinks::NoFollow)?;
                let kind = sys::file_type(&stat);
                Ok(walk::reconsider(parent, dir, name, kind, worker))
            });
            match reconsidered {
                Ok(None) => {}
                Ok(Some(_)) => return Entered::Left,
                Err(errno) => return directory::report_left(&self.context, name, errno),
            }
        }
        let (context, kind) = (&self.context, FileType::Unknown);
        if context.asks && !asking::ask_about(context, name, kind, IfLeft::KeepAncestors) {
            return Entered::Left;
        }
        directory::remove_or_report(context, name, kind)
    }

    /// Counts a name that was removed.
    #[inline]
    fn count_removed(counted: Counted, worker: &mut Walker<'_, '_, Self>) {
        worker.scratch.tally.add_entry(counted);
        worker.count_work(1);
    }
}

/// Returns the place of a directory that is not done, and remains a user of its parent.
fn place_again(node: &RemoveNode) -> RemovePlace {
    RemovePlace {
        parent: node.place.parent.clone(),
        name: node.place.name.clone(),
        operand: node.place.operand,
    }
}

impl Walk for Removal<'_> {
    type Dir = RemoveDir;
}

impl Visitor for Removal<'_> {
    type Task = RemoveTask;
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
    fn tune(&self) -> Tuning {
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
            name: Name::of(&place),
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
            FileType::RegularFile => self.remove_file(node, dirs.source(), name, worker),
            FileType::Directory => walk::queue(node, entry, worker),
            kind => self.look_and_remove(node, dirs.source(), Listed::new(name, kind), worker),
        }
    }

    fn note_unvisited(&self, node: &RemoveNode, reason: Unvisited) {
        node.state.marks.set(match reason {
            Unvisited::NotDone => KEPT,
            Unvisited::LeftAlone => LEFT_ALONE,
        });
    }

    fn may_list(&self, node: &RemoveNode, errno: Errno) -> bool {
        self.context.unlock(node, errno)
    }

    fn not_listed(&self, node: &RemoveNode, errno: Errno) {
        let Err(errno) = directory::remove_unlisted(&self.context, node, errno) else {
            return;
        };
        if !self.context.is_ignorable(Name::of(&node.place), errno) {
            node.state.marks.set(KEPT);
        }
        self.context.fail_and_keep(Name::of(&node.place), errno);
    }

    fn finish(&self, node: &RemoveNode, worker: &mut Walker<'_, '_, Self>) -> ControlFlow<()> {
        let state = &node.state;
        let is_operand = node.place.parent.is_none();
        let stays =
            self.context.stays(Name::of(&node.place)) || is_operand && state.marks.has(STAYS);
        let removed = match stays {
            true => self.leave_operand(node),
            false => directory::remove_emptied(&self.context, node),
        };
        match removed {
            Ok(true) => Self::count_removed(Counted::Directory, worker),
            Ok(false) => {
                if let Some(parent) = &node.place.parent
                    && state.marks.has(STAYS)
                {
                    parent.state.marks.set(state.marks.all() & (STAYS | SHRUNK));
                }
            }
            // Another process adds entries, or the filesystem skips some while others
            // are removed.
            Err(Errno::NOTEMPTY | Errno::EXIST)
                if state.marks.has(SHRUNK)
                    && !state.marks.has(DECLINED)
                    && state.pass < MOST_PASSES =>
            {
                let pass = state.pass + 1;
                let purpose = Purpose::Process { pass };
                let place = place_again(node);
                worker.push(Task::Enter { place, purpose }, When::Next);
                return ControlFlow::Break(());
            }
            Err(errno)
                if !stays
                    && (needs_room(errno) || waiting::may_pass(&self.context, node, errno)) =>
            {
                let waits = self.waiting.let_wait(
                    &self.context,
                    place_again(node),
                    FileType::Directory,
                    errno,
                );
                if waits.is_none() {
                    return ControlFlow::Break(());
                }
            }
            Err(errno) => self.context.fail_and_keep(Name::of(&node.place), errno),
        }
        if is_operand {
            self.context.report.finish_operand(node.place.operand);
        }
        ControlFlow::Continue(())
    }

    fn run_own(&self, task: RemoveTask, worker: &mut Walker<'_, '_, Self>) {
        let operands = match task {
            RemoveTask::Operands(operands) => operands,
            RemoveTask::Waiting(names) => {
                return waiting::try_all_again(&self.context, names, |place, entered| {
                    self.end_name(place, entered, worker);
                    self.context.report.publish(&mut worker.scratch.tally);
                });
            }
        };
        if self.context.report.must_stop() {
            return;
        }
        let (portion, rest) = paths::portion(operands);
        for operand in portion {
            if self.context.report.must_stop() {
                return;
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
                None => worker.push(Task::Enter { place, purpose }, When::AfterOwn),
            }
        }
        if let Some(rest) = rest {
            worker.push(Task::Own(RemoveTask::Operands(rest)), When::AfterOwn);
        }
    }

    fn roots(&self) -> &dyn Roots {
        &self.context
    }
}

#[cfg(feature = "distribute")]
impl walk::Sharer for Removal<'_> {
    fn shared(&self) -> Option<&walk::Shared<'_, RemoveDir>> {
        self.shared.as_ref()
    }

    fn operands(&self) -> usize {
        self.context.operands.len()
    }

    fn borrow(&self, place: RemovePlace, _inheritance: u8) -> RemoveNode {
        let state = State::new(0, super::node::Consent::ToRemove, super::node::ENTRIES_ONLY);
        Node::new(place, state, RemoveDir(DirSlot::empty()), None)
    }

    fn reach_first(&self, operand: u32, side: Side) -> Result<sys::Fd, Errno> {
        let dir = self.context.open_operand(operand, side)?;
        if self.context.options.one_file_system {
            // The first call notes the filesystem.
            super::guards::is_on_other_filesystem(&self.context, operand, dir.as_fd())?;
        }
        Ok(dir)
    }

    fn reach_below(&self, dir: BorrowedFd<'_>, name: &CStr, side: Side) -> Result<sys::Fd, Errno> {
        self.context.open_below(dir, name, side)
    }

    fn end_borrowed(&self, node: &RemoveNode) -> crate::distribute::Finished {
        let marks = &node.state.marks;
        crate::distribute::Finished {
            kept: marks.has(INCOMPLETE),
            left_alone: marks.has(LEFT_ALONE),
            changed: marks.has(SHRUNK),
        }
    }

    fn note_finished(&self, node: &Node<RemoveDir>, finished: crate::distribute::Finished) {
        let when = crate::node::Marks::when;
        let marks = when(finished.kept, KEPT)
            | when(finished.left_alone, LEFT_ALONE)
            | when(finished.changed, SHRUNK);
        node.state.marks.set(marks);
    }
}
