//! One run of a removal: the [`Visitor`] that the walk calls.

use std::ffi::CStr;
use std::iter;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::thread;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::asking::{self, Asked};
use super::context::{Context, Extent};
use super::directory::{self, Emptied, Entered};
use super::guards::Guards;
use super::name::Name;
use super::node::{RemoveDir, RemoveNode, RemovePlace, State};
use super::operand::{Begun, begin_operand, place_of};
use super::options::{Ask, RemoveOptions};
use super::room::{self, Waiting, WaitingList};
use crate::descriptors::{Descriptors, Roots};
use crate::distribute::{Exchange, Finished};
use crate::error::{Error, Operation};
use crate::failures::Failures;
use crate::node::{Node, Side};
use crate::operand;
use crate::report::{Counted, Report};
use crate::sched::When;
use crate::sys::{self, Entry, Fd, Storage, Symlinks};
use crate::walk::{
    self, OpenDirs, OwnTask, Part, Purpose, Reason, Reconsidered, Settings, Sharer, SourceOnly,
    Stealing, Task, Tuning, Visit, Visitor, Walker,
};

/// A directory is listed at most this many times. It is listed again if it is not empty in
/// the end, because other processes add entries to it.
const MOST_PASSES: u8 = 8;

/// A task of a removal.
pub(super) enum RemoveTask {
    /// Begin operands, in order.
    Operands(Range<u32>),
    /// Try again to remove names that wait for room.
    Waiting(Vec<Waiting>),
}

impl OwnTask<RemoveDir> for RemoveTask {}

/// One run of a [`RemoveOp`](super::RemoveOp), or of a part of its operands.
pub(super) struct Removal<'a> {
    context: Context<'a>,
    guards: Guards,
    settings: Settings,
    waiting: WaitingList,
    /// The other engines that work on the operands, if there are any.
    stealing: Option<Stealing<'a, RemoveDir, RemoveTask>>,
}

impl<'a> Removal<'a> {
    pub(super) fn new<P: AsRef<Path>>(
        options: &'a RemoveOptions,
        extent: Extent<'a>,
        operands: &[P],
        report: Report<'a>,
    ) -> Self {
        let mut context = Context::new(options, &extent, report);
        for path in operands {
            let path = path.as_ref();
            match operand::to_c(path).map(operand::with_one_slash) {
                Ok(path) => context.operands.push(path),
                Err(errno) => {
                    let error = Error::failed(Operation::Remove, path.to_path_buf(), errno);
                    context.report.failed(error);
                }
            }
        }
        context.failures = Failures::of(context.operands.len());
        let guards = Guards::new(&context);
        let is_alone = options.threads == Some(NonZeroUsize::MIN);
        // The user must be able to follow the order of the questions.
        let is_in_order = match options.ask {
            Ask::Never => false,
            Ask::IfWriteProtected => is_alone,
            Ask::Always => true,
        };
        Self {
            context,
            guards,
            settings: Settings {
                is_in_order,
                may_be_slow: true,
                ..Settings::new(options.threads, extent.filter)
            },
            waiting: WaitingList::default(),
            stealing: None,
        }
    }

    /// Removes the operands together with the engines of `exchange`, in this part.
    pub(super) fn shared(mut self, exchange: &'a dyn Exchange, part: Part) -> Self {
        self.stealing = Some(Stealing::new(exchange, part));
        if part == Part::Assistant {
            self.context.failures = Failures::in_any_order(self.context.operands.len());
        }
        self
    }

    /// Removes the operands. Returns the report, to which the next run of other operands adds.
    pub(super) fn run(self) -> Report<'a> {
        let operands = self.independent_operands().into_iter();
        // Removals that succeed may fill the list again.
        let waiting = iter::from_fn(|| self.waiting.take());
        let tasks = operands.map(RemoveTask::Operands);
        let tasks = tasks.chain(waiting.map(RemoveTask::Waiting));
        walk::run(&self, self.sharer(), tasks);
        self.context.failures.report_rest(&self.context.report);
        self.context.report
    }

    /// Returns groups of operands that can be worked on together. If there are events, each operand is alone,
    /// so that the events come in the order of the operands.
    fn independent_operands(&self) -> Vec<Range<u32>> {
        let operands = &self.context.operands;
        if self.settings.is_in_order || self.context.report.wants_events() {
            return (0..operands.len() as u32).map(|i| i..i + 1).collect();
        }
        operand::independent_runs(operands.iter().map(|path| &**path))
    }

    /// Finishes an operand that stays, or lists it again.
    #[cold]
    fn finish_staying(
        &self,
        node: &RemoveNode,
        worker: &mut Walker<'_, '_, Self>,
    ) -> ControlFlow<()> {
        let may_have_more = self.may_have_more(node);
        self.context.descriptors.close(node, Side::Source);
        if may_have_more && node.state.pass < MOST_PASSES {
            worker.push(list_again(node), When::Next);
            return ControlFlow::Break(());
        }
        if may_have_more {
            let name = Name::of(&node.place);
            self.context.fail_and_keep(name, Errno::NOTEMPTY);
        }
        self.context.finish_operand(node.place.operand);
        ControlFlow::Continue(())
    }

    /// Returns `true` if an operand that stays may have entries that were not listed, because others were removed
    /// since then.
    ///
    /// If the filter leaves entries alone, another listing meets them again. So an operand with such entries is only
    /// listed again on a filesystem that may skip entries, and if the user is not asked again.
    fn may_have_more(&self, node: &RemoveNode) -> bool {
        let (context, state) = (&self.context, &node.state);
        // A dry run would meet the same entries again.
        if context.plan.is_some() || !state.has_shrunk() || state.is_incomplete() {
            return false;
        }
        if !state.leaves_entries_alone() {
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
        mut place: RemovePlace,
        purpose: Purpose,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Option<RemoveNode> {
        match entered {
            Entered::Open(fd, consent) => {
                let state = match purpose {
                    Purpose::Process { pass } => State::new(pass, consent),
                    Purpose::ProcessEntries => State::skipped(consent),
                };
                let finished = worker.scratch.finished.take();
                let node = Node::new(place, state, RemoveDir::new(), finished);
                self.context.descriptors.adopt(&node, Side::Source, fd);
                return Some(node);
            }
            Entered::Removed(counted) => Self::count(counted, worker),
            Entered::NoRoom(kind, errno) => place = self.wait_for_room(place, kind, errno)?,
            Entered::Replaced => {
                let entered = self.remove_replaced(&place, worker);
                return self.node_of(entered, place, purpose, worker);
            }
            Entered::Left => {}
        }
        self.leave(place, worker);
        None
    }

    /// Removes an entry that is not listed as a directory.
    #[inline(always)]
    fn remove_entry(
        &self,
        node: &RemoveNode,
        dirs: &SourceOnly<'_>,
        name: &CStr,
        kind: FileType,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Visit {
        let context = &self.context;
        let dir = dirs.source();
        if context.looks_at_entries {
            match prepare(context, node, dir, name, kind, worker) {
                Asked::Remove => {}
                Asked::Leave => return Visit::Done,
                Asked::Enter => return self.found_directory(node, dir, name, worker),
            }
        }
        match sys::unlink(dir, name) {
            Ok(()) => {
                Self::count(Counted::of(kind), worker);
                context.removed(Name::entry(node, name));
                Visit::Done
            }
            Err(errno) => self.not_unlinked(node, dir, Entry::new(name, kind), errno, worker),
        }
    }

    /// Handles an entry that could not be unlinked.
    #[cold]
    fn not_unlinked(
        &self,
        node: &RemoveNode,
        dir: BorrowedFd<'_>,
        entry: Entry<'_>,
        errno: Errno,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Visit {
        if room::is_needed(errno) {
            let place = node.child(entry.name);
            if let Some(place) = self.wait_for_room(place, entry.kind(), errno) {
                walk::leave(self, place.parent, worker);
            }
            return Visit::Done;
        }
        match not_unlinked(&self.context, node, dir, entry.name, errno) {
            NotUnlinked::Directory => self.found_directory(node, dir, entry.name, worker),
            NotUnlinked::Left => Visit::Done,
        }
    }

    /// Lets a name wait that could not be removed because the filesystem is full. If that is not possible, reports
    /// the failure and gives the place back.
    ///
    /// In a run of several engines nothing waits: a directory of another engine must be given back before the
    /// operands are done.
    #[cold]
    fn wait_for_room(
        &self,
        place: RemovePlace,
        kind: FileType,
        errno: Errno,
    ) -> Option<RemovePlace> {
        let name = Waiting { place, kind, errno };
        let Waiting { place, .. } = match self.stealing {
            Some(_) => name,
            None => self.waiting.add(name).err()?,
        };
        self.context.fail_and_keep(Name::of(&place), errno);
        Some(place)
    }

    /// Tries again to remove names that wait for room, in rounds.
    fn retry(&self, mut waiting: Vec<Waiting>, worker: &mut Walker<'_, '_, Self>) {
        let mut pauses = room::pauses();
        loop {
            let before = waiting.len();
            let names = waiting.into_iter();
            waiting = names
                .filter_map(|name| self.try_again(name, worker))
                .collect();
            match waiting.len() {
                0 => return,
                left if left < before => pauses = room::pauses(),
                _ => match pauses.next() {
                    Some(pause) => thread::sleep(pause),
                    None => break,
                },
            }
        }
        for Waiting { place, errno, .. } in waiting {
            self.context.fail_and_keep(Name::of(&place), errno);
            self.leave(place, worker);
        }
    }

    /// Tries again to remove a name. Returns it if it still waits.
    fn try_again(
        &self,
        mut waiting: Waiting,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Option<Waiting> {
        let context = &self.context;
        let name = Name::of(&waiting.place);
        if context.report.must_stop() {
            name.keep();
        } else {
            match waiting.remove(context) {
                Ok(()) => Self::count(Counted::of(waiting.kind), worker),
                // Another operand leads to the same name.
                Err(Errno::NOENT) => {}
                Err(errno) if room::is_needed(errno) => {
                    waiting.errno = errno;
                    return Some(waiting);
                }
                Err(errno) => context.fail_and_keep(name, errno),
            }
        }
        self.leave(waiting.place, worker);
        context.report.publish(&mut worker.scratch.tally);
        None
    }

    /// Ends the work on a name that is a directory, or has waited.
    fn leave(&self, place: RemovePlace, worker: &mut Walker<'_, '_, Self>) {
        if place.parent.is_none() {
            self.context.finish_operand(place.operand);
        }
        walk::leave(self, place.parent, worker);
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
        walk::reconsider(self, node, dir, name, FileType::Directory, worker).visit()
    }

    /// Removes a name that was a directory until another process replaced it.
    #[cold]
    fn remove_replaced(&self, place: &RemovePlace, worker: &mut Walker<'_, '_, Self>) -> Entered {
        let name = Name::of(place);
        if let Some(parent) = &place.parent
            && self.settings.filters.is_some()
        {
            let reconsidered = self.context.at(name, |dir, name| {
                let stat = sys::stat(dir, name, Symlinks::NoFollow)?;
                let kind = sys::file_type(&stat);
                Ok(walk::reconsider(self, parent, dir, name, kind, worker))
            });
            match reconsidered {
                Ok(Reconsidered::Process) => {}
                Ok(Reconsidered::Queued | Reconsidered::LeftAlone) => return Entered::Left,
                Err(errno) => {
                    self.context.fail_and_keep(name, errno);
                    return Entered::Left;
                }
            }
        }
        directory::remove_replaced(&self.context, name)
    }

    /// Removes an entry that is listed neither as a directory nor as a regular file.
    #[cold]
    fn remove_other(
        &self,
        node: &RemoveNode,
        dirs: &SourceOnly<'_>,
        name: &CStr,
        kind: FileType,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Visit {
        self.remove_entry(node, dirs, name, kind, worker)
    }

    /// Handles a listing that broke off.
    fn not_listed(&self, node: &RemoveNode, errno: Errno) {
        let Err(errno) = directory::remove_unlisted(&self.context, node, errno) else {
            return;
        };
        if !self.context.is_ignorable(Name::of(&node.place), errno) {
            node.state.keep();
        }
        self.context.fail_and_keep(Name::of(&node.place), errno);
    }

    /// Counts a name that was removed.
    #[inline]
    fn count(counted: Counted, worker: &mut Walker<'_, '_, Self>) {
        worker.scratch.tally.count(counted);
        worker.count(1);
    }

    /// Removes operands that are not directories, and queues the directories.
    fn begin_operands(&self, operands: Range<u32>, worker: &mut Walker<'_, '_, Self>) {
        for operand in operands {
            if self.context.report.must_stop() {
                break;
            }
            self.context.report.publish(&mut worker.scratch.tally);
            match begin_operand(&self.context, operand) {
                Begun::Removed(counted) => Self::count(counted, worker),
                Begun::Left => {}
                Begun::NoRoom(kind, errno) => {
                    let place = place_of(&self.context, operand);
                    if self.wait_for_room(place, kind, errno).is_none() {
                        continue;
                    }
                }
                Begun::Enter(place) => {
                    let purpose = Purpose::Process { pass: 0 };
                    worker.push(Task::Enter { place, purpose }, When::Next);
                    continue;
                }
            }
            self.context.finish_operand(operand);
        }
    }
}

impl<'a> Sharer<Removal<'a>> for Removal<'a> {
    fn stealing(&self) -> &Stealing<'_, RemoveDir, RemoveTask> {
        self.stealing.as_ref().expect("BUG: nothing is shared")
    }

    fn operands(&self) -> usize {
        self.context.operands.len()
    }

    fn open_operand(&self, operand: u32, side: Side) -> Result<Fd, Errno> {
        let dir = self.context.open_operand(operand, side)?;
        self.guards
            .reach_operand(&self.context, operand, dir.as_fd())?;
        Ok(dir)
    }

    fn borrow(&self, place: RemovePlace, _inheritance: u8) -> RemoveNode {
        Node::new(place, State::borrowed(), RemoveDir::new(), None)
    }

    fn needs_identity(&self, _above: &RemoveNode) -> bool {
        false
    }

    fn note(&self, node: &RemoveNode, finished: Finished) {
        if finished.kept {
            node.state.keep();
        }
        if finished.left_alone {
            node.state.leave_alone();
        }
        if finished.changed {
            node.state.mark_shrunk();
        }
    }
}

impl Visitor for Removal<'_> {
    type Dir = RemoveDir;
    type Open<'n> = SourceOnly<'n>;
    type Task = RemoveTask;
    type Scratch = ();

    fn descriptors(&self) -> &Descriptors<RemoveDir> {
        &self.context.descriptors
    }

    fn roots(&self) -> &dyn Roots {
        &self.context
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

    fn is_planned_gone(&self, dir: BorrowedFd<'_>, name: &CStr) -> bool {
        self.context.is_planned(dir, name)
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
        let entered = directory::enter(&self.context, &self.guards, &place, purpose);
        self.node_of(entered, place, purpose, worker)
    }

    // Inlined by force, because two loops call this function. Without that, the removal of a file
    // takes 112 instructions instead of 79 (5,000 empty files in one directory). The guard's case
    // `rmz-files` counts them.
    #[inline(always)]
    fn visit(
        &self,
        node: &RemoveNode,
        dirs: &SourceOnly<'_>,
        entry: Entry<'_>,
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

    fn entries_stay(&self, node: &RemoveNode, reason: Reason) {
        match reason {
            Reason::Cancelled => node.state.keep(),
            Reason::Filtered => node.state.leave_alone(),
            Reason::NotListed(errno) => self.not_listed(node, errno),
        }
    }

    fn finish(&self, node: &RemoveNode, worker: &mut Walker<'_, '_, Self>) -> ControlFlow<()> {
        let state = &node.state;
        if state.is_borrowed() {
            let finished = Finished {
                kept: state.is_incomplete(),
                left_alone: state.leaves_entries_alone(),
                changed: state.has_shrunk(),
            };
            return walk::give_back(self, self, node, finished);
        }
        let is_operand = node.place.parent.is_none();
        if self.context.stays(&node.place) || is_operand && state.is_kept() {
            return self.finish_staying(node, worker);
        }
        match directory::remove_emptied(&self.context, node) {
            Ok(Emptied::Removed) => Self::count(Counted::Directory, worker),
            Ok(Emptied::Kept) => {
                if let Some(parent) = &node.place.parent {
                    parent.state.keep_as(state);
                }
            }
            Ok(Emptied::Declined) => {}
            // Another process adds entries, or the filesystem skips some while others
            // are removed.
            Err(Errno::NOTEMPTY | Errno::EXIST)
                if state.has_shrunk() && !state.is_declined() && state.pass < MOST_PASSES =>
            {
                worker.push(list_again(node), When::Next);
                return ControlFlow::Break(());
            }
            Err(errno) if room::is_needed(errno) => {
                let waits = self.wait_for_room(place_again(node), FileType::Directory, errno);
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
            RemoveTask::Waiting(waiting) => return self.retry(waiting, worker),
        };
        if self.context.report.must_stop() {
            return;
        }
        let (portion, rest) = operand::portion(operands);
        if let Some(rest) = rest {
            worker.push(Task::Own(RemoveTask::Operands(rest)), When::Next);
        }
        worker.in_order(|worker| self.begin_operands(portion, worker));
    }

    fn sharer(&self) -> Option<&dyn Sharer<Self>> {
        self.stealing.as_ref().map(|_| self as &dyn Sharer<Self>)
    }
}

/// Asks about an entry that is not listed as a directory, if there are questions. In a dry run, checks
/// that it could be removed, and reports the result.
#[cold]
fn prepare(
    context: &Context<'_>,
    node: &RemoveNode,
    dir: BorrowedFd<'_>,
    name: &CStr,
    kind: FileType,
    worker: &mut Walker<'_, '_, Removal<'_>>,
) -> Asked {
    if context.is_planned(dir, name) {
        return Asked::Leave;
    }
    if context.asks {
        match asking::ask_about_entry(context, node, dir, name, kind) {
            Asked::Remove => {}
            decided => return decided,
        }
    }
    let Some(plan) = context.plan else {
        return Asked::Remove;
    };
    match plan.unlink(dir, name) {
        Ok(()) => {
            Removal::count(Counted::of(kind), worker);
            context.removed(Name::entry(node, name));
            Asked::Leave
        }
        Err(errno) => match not_unlinked(context, node, dir, name, errno) {
            NotUnlinked::Directory => Asked::Enter,
            NotUnlinked::Left => Asked::Leave,
        },
    }
}

/// Returns a task that lists a directory once more.
fn list_again<'a>(node: &RemoveNode) -> Task<Removal<'a>> {
    Task::Enter {
        place: place_again(node),
        purpose: Purpose::Process {
            pass: node.state.pass + 1,
        },
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

/// The result of handling an entry that could not be unlinked.
enum NotUnlinked {
    /// The entry is a directory, which must be entered.
    Directory,
    /// The entry stays. The failure has already been reported.
    Left,
}

/// Handles an entry that is not listed as a directory and could not be unlinked.
#[cold]
fn not_unlinked(
    context: &Context<'_>,
    node: &RemoveNode,
    dir: BorrowedFd<'_>,
    name: &CStr,
    errno: Errno,
) -> NotUnlinked {
    // The listing did not give the type, or not the right one, or another process has replaced the entry by a
    // directory.
    if errno == Errno::ISDIR {
        return NotUnlinked::Directory;
    }
    let reason = match (errno, sys::stat(dir, name, Symlinks::NoFollow)) {
        // Some filesystems return another error for directories, and the kernel does so first if the parent may not be
        // changed.
        (_, Ok(stat)) if sys::file_type(&stat) == FileType::Directory => {
            return NotUnlinked::Directory;
        }
        // On a read-only filesystem the kernel returns EROFS even for a missing name.
        (Errno::ROFS, Err(missing)) => missing,
        _ => errno,
    };
    context.fail_and_keep(Name::entry(node, name), reason);
    NotUnlinked::Left
}
