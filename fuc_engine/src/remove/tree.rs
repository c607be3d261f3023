//! What a removal does with operands, entries and finished directories.

use std::ffi::{CStr, OsStr};
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::asking::Verdict;
use super::node::{Consent, RemoveDir, RemoveNode, State};
use super::{Ask, RemoveOptions};
use crate::descriptors::{Descriptors, Roots};
use crate::error::{Error, Operation};
use crate::node::{Node, Place, Side};
use crate::observer::{Answer, Observer, Summary};
use crate::operand;
use crate::report::Report;
use crate::sched::{self, Limits};
use crate::sys::{self, CWD, Entry, Identity, Symlinks};
use crate::walk::{self, OpenDirs, SourceOnly, Task, Visit, Visitor, Walker};

/// A directory that others keep filling is listed again this often.
const MOST_PASSES: u8 = 8;

/// One run of a [`RemoveOp`](super::RemoveOp).
pub(super) struct Removal<'a> {
    pub(super) options: &'a RemoveOptions,
    pub(super) operands: Vec<Box<CStr>>,
    pub(super) report: Report<'a>,
    pub(super) descriptors: Descriptors<RemoveDir>,
    pub(super) root: OnceLock<Identity>,
    /// No mode protects a file from the superuser.
    pub(super) may_write_anything: bool,
    /// Looked up for every entry.
    pub(super) asks: bool,
    /// The filesystem of each operand, once it is open; empty where that does not matter.
    pub(super) devices: Vec<OnceLock<sys::Device>>,
}

impl<'a> Removal<'a> {
    pub(super) fn new(options: &'a RemoveOptions, observer: &'a dyn Observer) -> Self {
        Self {
            options,
            operands: Vec::new(),
            report: Report::new(observer),
            descriptors: Descriptors::new(),
            root: OnceLock::new(),
            asks: options.ask != Ask::Never,
            may_write_anything: options.ask != Ask::Never && sys::effective_user() == 0,
            devices: Vec::new(),
        }
    }

    pub(super) fn run<P: AsRef<Path>>(mut self, operands: impl IntoIterator<Item = P>) -> Summary {
        for path in operands {
            match operand::to_c(path.as_ref()).map(operand::with_one_slash) {
                Ok(path) => self.operands.push(path),
                Err(errno) => {
                    let path = path.as_ref().to_path_buf();
                    self.report
                        .failed(Error::failed(Operation::Remove, path, errno));
                }
            }
        }
        if self.options.one_file_system {
            self.devices = self.operands.iter().map(|_| OnceLock::new()).collect();
        }
        sched::scope(&self, |worker| {
            for run in self.runs() {
                worker.push(Task::Own(run));
                worker.run_all();
            }
        });
        self.report.summary()
    }

    /// Operands that can be worked on together.
    fn runs(&self) -> Vec<Range<u32>> {
        if self.is_in_order() {
            return (0..self.operands.len() as u32).map(|i| i..i + 1).collect();
        }
        operand::independent_runs(self.operands.iter().map(|path| &**path))
    }

    pub(super) fn operand_path(&self, operand: u32) -> &Path {
        Path::new(OsStr::from_bytes(
            self.operands[operand as usize].to_bytes(),
        ))
    }

    /// What the listing has as no directory could not be unlinked.
    #[cold]
    fn not_unlinked(
        &self,
        node: &RemoveNode,
        dir: BorrowedFd<'_>,
        name: &CStr,
        errno: Errno,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Visit {
        let is_one = match errno {
            // The listing did not tell the type, or the name has changed hands.
            Errno::ISDIR => true,
            // Some filesystems say this of a directory; others mean it.
            Errno::PERM => is_directory(dir, name),
            _ => false,
        };
        if is_one {
            return walk::queue(node, name, worker);
        }
        // A read-only filesystem is, of a name that is missing, the second reason.
        let reason = match (errno, sys::stat(dir, name, Symlinks::NoFollow)) {
            (Errno::ROFS, Err(missing)) => missing,
            _ => errno,
        };
        self.fail(Some(node), node.place.operand, name, reason);
        Visit::Done
    }

    /// Runs `call` on the directory that `place` is in, and its name there.
    pub(super) fn at<T>(
        &self,
        place: &Place<RemoveDir>,
        call: impl FnOnce(BorrowedFd<'_>, &CStr) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match &place.parent {
            Some(parent) => call(
                self.descriptors.pin(parent, Side::Source, self)?.as_fd(),
                &place.name,
            ),
            None => call(CWD, &place.name),
        }
    }

    pub(super) fn open(&self, place: &Place<RemoveDir>) -> Result<OwnedFd, Errno> {
        self.at(place, |dir, name| {
            self.descriptors
                .making_room(|| sys::open_directory(dir, name, Symlinks::NoFollow))
        })
    }

    /// What can still be done about a directory that could not be opened.
    fn remove_unopened(
        &self,
        place: &Place<RemoveDir>,
        errno: Errno,
        worker: &mut Walker<'_, '_, Self>,
    ) {
        if !self.admits_unopened(place) || self.asks && !self.agrees_to_unopened(place, errno) {
            return;
        }
        let removed = match errno {
            // One that is empty can be removed without reading it.
            Errno::ACCESS => self
                .at(place, sys::remove_directory)
                .map(|()| FileType::Directory)
                .map_err(|_| errno),
            // It is no directory any more.
            Errno::NOTDIR | Errno::LOOP => self.at(place, sys::unlink).map(|()| FileType::Unknown),
            errno => Err(errno),
        };
        match removed {
            Ok(FileType::Directory) => self.removed_directory(place, worker),
            Ok(_) => self.removed(place.parent.as_ref(), place.operand, &place.name, worker),
            Err(errno) => self.fail_place(place, errno),
        }
    }

    /// Removes the directory of `node`, in which nothing is left that this run knows of,
    /// unless it is kept or somebody declines.
    fn remove_emptied(&self, node: &RemoveNode) -> Result<Emptied, Errno> {
        let remove = |dir: BorrowedFd<'_>| {
            if node.state.is_kept() {
                return Ok(Emptied::Kept);
            }
            if self.agrees_to_finish(node, dir) == Answer::No {
                return Ok(Emptied::Declined);
            }
            sys::remove_directory(dir, &node.place.name).map(|()| Emptied::Removed)
        };
        match &node.place.parent {
            Some(parent) => {
                // Before the child is closed: its `..` is the way back to an evicted parent.
                let dir = self
                    .descriptors
                    .pin_parent(parent, Side::Source, node, self);
                self.descriptors.close(node, Side::Source);
                match dir {
                    Ok(dir) => remove(dir.as_fd()),
                    Err(_) if node.state.is_kept() => Ok(Emptied::Kept),
                    Err(errno) => Err(errno),
                }
            }
            None => {
                self.descriptors.close(node, Side::Source);
                remove(CWD)
            }
        }
    }
}

/// What became of a directory in which nothing is left to do.
enum Emptied {
    Removed,
    /// Something under it stayed behind.
    Kept,
    Declined,
}

impl Roots for Removal<'_> {
    fn open_operand(&self, operand: u32, _side: Side) -> Result<OwnedFd, Errno> {
        sys::open_directory(CWD, &self.operands[operand as usize], Symlinks::NoFollow)
    }
}

impl Visitor for Removal<'_> {
    type Dir = RemoveDir;
    type Open<'n> = SourceOnly<'n>;
    /// Operands that are to be begun, in order.
    type Task = Range<u32>;
    type Scratch = ();

    fn descriptors(&self) -> &Descriptors<RemoveDir> {
        &self.descriptors
    }

    fn roots(&self) -> &dyn Roots {
        self
    }

    fn report(&self) -> &Report<'_> {
        &self.report
    }

    fn enter(
        &self,
        place: Place<RemoveDir>,
        pass: u8,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Option<RemoveNode> {
        let entered = match self.open(&place) {
            Ok(fd) => match self.admit(&place, pass, fd.as_fd(), worker) {
                Consent::None => None,
                consent => Some((fd, consent)),
            },
            Err(errno) => {
                self.remove_unopened(&place, errno, worker);
                None
            }
        };
        let Some((fd, consent)) = entered else {
            walk::leave(self, place.parent, worker);
            return None;
        };
        let node = Node::new(place, State::new(pass, consent), RemoveDir::new());
        self.descriptors.adopt(&node, Side::Source, fd);
        Some(node)
    }

    // Two loops call it; as a function it makes removing a file take 40 % more instructions.
    #[inline(always)]
    fn visit(
        &self,
        node: &RemoveNode,
        dirs: &SourceOnly<'_>,
        entry: Entry<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Visit {
        // A call that takes the entry as a whole would make each file's be stored in memory.
        let Entry { name, kind } = entry;
        if kind == FileType::Directory {
            return walk::queue(node, name, worker);
        }
        let dir = dirs.source();
        if self.asks {
            match self.ask_about_entry(node, dir, name, kind) {
                Verdict::Remove => {}
                Verdict::Leave => return Visit::Done,
                Verdict::Enter => return walk::queue(node, name, worker),
            }
        }
        match sys::unlink(dir, name) {
            Ok(()) => {
                self.removed(Some(node), 0, name, worker);
                Visit::Done
            }
            Err(errno) => self.not_unlinked(node, dir, name, errno, worker),
        }
    }

    fn listing_failed(&self, node: &RemoveNode, errno: Errno) {
        if !self.is_as_well(errno) {
            node.state.keep();
        }
        self.fail_place(&node.place, errno);
    }

    fn finish(&self, node: &RemoveNode, worker: &mut Walker<'_, '_, Self>) -> ControlFlow<()> {
        match self.remove_emptied(node) {
            Ok(Emptied::Removed) => self.removed_directory(&node.place, worker),
            Ok(Emptied::Kept) => self.leave_behind(node.place.parent.as_ref()),
            Ok(Emptied::Declined) => {}
            // Somebody adds to it, or the filesystem skips entries while some are removed.
            Err(Errno::NOTEMPTY | Errno::EXIST)
                if node.state.has_shrunk()
                    && !node.state.is_declined()
                    && node.state.pass < MOST_PASSES =>
            {
                let Place {
                    parent,
                    name,
                    operand,
                } = &node.place;
                let place = Place {
                    parent: parent.clone(),
                    name: name.clone(),
                    operand: *operand,
                };
                worker.push(Task::Enter {
                    place,
                    pass: node.state.pass + 1,
                });
                return ControlFlow::Break(());
            }
            Err(errno) => self.fail_place(&node.place, errno),
        }
        ControlFlow::Continue(())
    }

    fn run_own(&self, operands: Range<u32>, worker: &mut Walker<'_, '_, Self>) {
        let (portion, rest) = operand::portion(operands);
        if let Some(rest) = rest {
            worker.push(Task::Own(rest));
        }
        let queued_before = worker.backlog();
        for operand in portion {
            self.begin(operand, worker);
        }
        // The last one queued would be the first to run.
        worker.reverse_top(worker.backlog().saturating_sub(queued_before));
    }

    fn limits(&self) -> Limits {
        if self.is_in_order() {
            Limits::of(1)
        } else {
            walk::worker_limits(self.options.threads)
        }
    }

    /// On XFS each removal goes through the one log, on btrfs through the one tree of
    /// the subvolume, and threads of their own do a part of it later: two took
    /// 1.3 to 1.7 times as long as one there (50 000 files, two cores).
    fn initial_workers(&self) -> usize {
        // The last operand is the last to go. If it has gone, or is no directory: as elsewhere.
        let last = (self.operands.len() as u32).saturating_sub(1);
        let fd = self.open_operand(last, Side::Source).ok();
        match fd.and_then(|fd| sys::filesystem(fd.as_fd())) {
            Some(sys::BTRFS | sys::XFS) => 1,
            _ => 2,
        }
    }

    /// So that questions come in an order that a person can follow.
    fn is_in_order(&self) -> bool {
        match self.options.ask {
            Ask::Never => false,
            Ask::IfWriteProtected => self.options.threads == Some(NonZeroUsize::MIN),
            Ask::Always => true,
        }
    }
}

pub(super) fn is_directory(dir: BorrowedFd<'_>, name: &CStr) -> bool {
    sys::stat(dir, name, Symlinks::NoFollow)
        .is_ok_and(|stat| sys::file_type(&stat) == FileType::Directory)
}
