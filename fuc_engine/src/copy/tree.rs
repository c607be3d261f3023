//! What a copy does with directories: made when entered, finished by the climb.

use std::collections::HashSet;
use std::ffi::{CStr, OsStr};
use std::ops::{ControlFlow, Range};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::file::{CopyScratch, LargeFile};
use super::item::Item;
use super::operand::{Operand, Operands};
use super::{CopyOptions, Dest};
use crate::descriptors::{self, Descriptors, Roots};
use crate::error::{Error, Operation as Doing, Refusal};
use crate::node::{Dir, Node, Place, Side};
use crate::observer::{Done, Observer, Summary};
use crate::operand;
use crate::report::Report;
use crate::sched;
use crate::sys::{self, CWD, DirSlot, DirStat, Entry, Identity, Symlinks};
use crate::walk::{self, Held, Operation, Task, Walker};

pub(super) struct CopyDir {
    source: DirSlot,
    dest: DirSlot,
}

impl Dir for CopyDir {
    const HAS_DEST: bool = true;
    type Mark = Mark;

    fn slot(&self, side: Side) -> &DirSlot {
        match side {
            Side::Source => &self.source,
            Side::Dest => &self.dest,
        }
    }
}

pub(super) type CopyNode = Arc<Node<CopyDir>>;

/// In 16 bits, since there is one per level of depth: the mode that the dest is
/// to get when it is finished, if it differs from the one it has, and whether
/// somebody will need an ancestor's directory again.
#[derive(Clone, Copy, Default)]
pub(super) struct Mark(u16);

impl Mark {
    const HAS_MODE: u16 = 1 << 12;
    const RETURNS_TO_SOURCE: u16 = 1 << 13;
    const RETURNS_TO_DEST: u16 = 1 << 14;

    /// For a child of `parent`. An ancestor whose directory nobody will need
    /// again is not reopened on the way up if it was evicted.
    fn below(parent: Option<&CopyNode>) -> Self {
        let Some(parent) = parent else {
            return Self::default();
        };
        let mut mark = parent.mark.0 & (Self::RETURNS_TO_SOURCE | Self::RETURNS_TO_DEST);
        if parent.is_shared() {
            mark |= Self::RETURNS_TO_SOURCE | Self::RETURNS_TO_DEST;
        }
        if parent.mark.mode().is_some() {
            mark |= Self::RETURNS_TO_DEST;
        }
        Self(mark)
    }

    fn with_mode(self, mode: Option<u32>) -> Self {
        mode.map_or(self, |mode| {
            Self(self.0 | Self::HAS_MODE | (mode & 0o7777) as u16)
        })
    }

    fn mode(self) -> Option<u32> {
        (self.0 & Self::HAS_MODE != 0).then_some(u32::from(self.0 & 0o7777))
    }

    fn returns_to(self, side: Side) -> bool {
        let flag = match side {
            Side::Source => Self::RETURNS_TO_SOURCE,
            Side::Dest => Self::RETURNS_TO_DEST,
        };
        self.0 & flag != 0
    }
}

/// Tasks of a copy that are not about listing a directory.
pub(super) enum CopyTask {
    Operands(Operands),
    Large(Box<LargeFile>),
}

/// One run of a [`CopyOp`](super::CopyOp).
pub(super) struct Copying<'a> {
    options: &'a CopyOptions,
    dest: &'a Dest,
    /// The directory that receives the copies; `None`: the working directory.
    pub(super) target: Option<OwnedFd>,
    pub(super) operands: Vec<Operand>,
    pub(super) report: Report<'a>,
    pub(super) descriptors: Descriptors<CopyDir>,
    /// The effective user, who may read what it owns.
    pub(super) user: u32,
    /// Operands that have to wait until those before them are finished.
    pub(super) deferred: Mutex<Option<Range<u32>>>,
    /// The directories above the target, once asked for.
    pub(super) above_target: OnceLock<Vec<Identity>>,
    /// Sources and names at the dest that earlier operands have used up.
    pub(super) used: Mutex<HashSet<operand::Used>>,
}

impl<'a> Copying<'a> {
    pub(super) fn new(
        options: &'a CopyOptions,
        dest: &'a Dest,
        observer: &'a dyn Observer,
    ) -> Self {
        Self {
            options,
            dest,
            target: None,
            operands: Vec::new(),
            report: Report::new(observer),
            descriptors: Descriptors::new(),
            user: sys::effective_user(),
            deferred: Mutex::new(None),
            above_target: OnceLock::new(),
            used: Mutex::new(HashSet::new()),
        }
    }

    pub(super) fn run<P: AsRef<Path>>(mut self, sources: impl IntoIterator<Item = P>) -> Summary {
        if let Dest::Into(target) = self.dest {
            let opened = operand::to_c(target).and_then(|path| sys::open_target(&path));
            match opened {
                Ok(fd) => self.target = Some(fd),
                Err(errno) => {
                    let path = target.clone();
                    self.report
                        .failed(Error::failed(Doing::OpenTarget, path, errno));
                    return self.report.summary();
                }
            }
        }
        for source in sources {
            match Operand::new(source.as_ref(), self.dest) {
                Ok(operand) => self.operands.push(operand),
                Err(error) => self.report.failed(error),
            }
        }
        sched::scope(&self, |worker| {
            for run in self.runs() {
                let mut next = Some(run);
                while let Some(run) = next {
                    let operands = Operands {
                        range: run,
                        is_alone: true,
                    };
                    worker.push(Task::Own(CopyTask::Operands(operands)));
                    worker.run_all();
                    next = self
                        .deferred
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .take();
                }
            }
        });
        self.report.summary()
    }

    /// Operands that can be worked on together.
    fn runs(&self) -> Vec<Range<u32>> {
        match self.dest {
            Dest::Into(_) => {
                operand::independent_runs(self.operands.iter().map(|operand| &*operand.source))
            }
            // All of them go to one place.
            Dest::Exactly(_) => (0..self.operands.len() as u32).map(|i| i..i + 1).collect(),
        }
    }

    pub(super) fn options(&self) -> &CopyOptions {
        self.options
    }

    pub(super) fn operand_path(&self, operand: u32, side: Side) -> &Path {
        let operand = &self.operands[operand as usize];
        match side {
            Side::Source => Path::new(OsStr::from_bytes(operand.source.to_bytes())),
            Side::Dest => &operand.dest_path,
        }
    }

    pub(super) fn target(&self) -> BorrowedFd<'_> {
        self.target.as_ref().map_or(CWD, AsFd::as_fd)
    }

    fn place_error(&self, place: &Place<CopyDir>, side: Side, doing: Doing, errno: Errno) -> Error {
        Error::failed(doing, self.place_path(place, side), errno)
    }

    fn place_path(&self, place: &Place<CopyDir>, side: Side) -> std::path::PathBuf {
        place.path(self.operand_path(place.operand, side))
    }

    pub(super) fn tell_copied(&self, item: &Item<'_>) {
        if self.report.wants_finished() {
            let source = &self.item_path(item, Side::Source);
            let dest = &self.item_path(item, Side::Dest);
            self.report.finished(Done::Copied { source, dest });
        }
    }

    /// Runs `call` on the directory that holds one side of `place`, and the name there.
    fn at<T>(
        &self,
        place: &Place<CopyDir>,
        side: Side,
        call: impl FnOnce(BorrowedFd<'_>, &CStr) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match (&place.parent, side) {
            (Some(parent), side) => call(
                self.descriptors.pin(parent, side, self)?.as_fd(),
                &place.name,
            ),
            (None, Side::Source) => call(CWD, &place.name),
            (None, Side::Dest) => call(
                self.target(),
                &self.operands[place.operand as usize].dest_name,
            ),
        }
    }

    fn open(
        &self,
        place: &Place<CopyDir>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<CopyNode, Error> {
        let failed = |doing, errno| self.place_error(place, Side::Source, doing, errno);
        let source = self
            .at(place, Side::Source, |dir, name| {
                self.descriptors
                    .making_room(|| sys::open_directory(dir, name, Symlinks::NoFollow))
            })
            .map_err(|errno| {
                if errno == Errno::ACCESS {
                    self.make_unfilled(place, worker);
                }
                failed(Doing::ReadDirectory, errno)
            })?;
        let stat =
            sys::stat_directory(source.as_fd()).map_err(|errno| failed(Doing::Stat, errno))?;
        self.check_into_itself(place, &stat)?;
        let (dest, made) = self.make_dest(place, &stat)?;
        self.check_same(place, &stat, &made)?;
        if made.is_new {
            self.tell_made(place);
        }
        let mark = Mark::below(place.parent.as_ref()).with_mode(made.mode_pending);
        let place = Place {
            parent: place.parent.clone(),
            name: place.name.clone(),
            operand: place.operand,
        };
        let dir = CopyDir {
            source: DirSlot::empty(),
            dest: DirSlot::empty(),
        };
        dir.source.record(stat.identity);
        dir.dest.record(made.stat.identity);
        let node = Node::new(place, mark, dir);
        self.descriptors.adopt(&node, Side::Source, source);
        self.descriptors.adopt(&node, Side::Dest, dest);
        Ok(node)
    }

    /// As `cp` does for a source directory that may not be read: an empty one at the dest.
    fn make_unfilled(&self, place: &Place<CopyDir>, worker: &mut Walker<'_, '_, Self>) {
        let made = self
            .at(place, Side::Source, |dir, name| {
                sys::stat(dir, name, Symlinks::NoFollow)
            })
            .and_then(|stat| {
                self.at(place, Side::Dest, |dir, name| {
                    sys::create_directory(dir, name, stat.st_mode & 0o7777)
                })
            });
        if made.is_ok() {
            worker.scratch.tally.entries += 1;
            self.tell_made(place);
        }
    }

    fn tell_made(&self, place: &Place<CopyDir>) {
        if self.report.wants_finished() {
            let source = &self.place_path(place, Side::Source);
            let dest = &self.place_path(place, Side::Dest);
            self.report.finished(Done::Copied { source, dest });
        }
    }

    /// A source directory that is the copy under way must not be copied into itself.
    fn check_into_itself(&self, place: &Place<CopyDir>, source: &DirStat) -> Result<(), Error> {
        match self.operands[place.operand as usize].root.get() {
            Some(root) if root.same_file(source.identity) => {
                let path = self.operand_path(place.operand, Side::Source).to_path_buf();
                let dest = self.operand_path(place.operand, Side::Dest).to_path_buf();
                Err(Error::refused(Refusal::IntoItself, path).with_other(dest))
            }
            _ => Ok(()),
        }
    }

    fn check_same(
        &self,
        place: &Place<CopyDir>,
        source: &DirStat,
        dest: &Made,
    ) -> Result<(), Error> {
        if place.parent.is_none() {
            // One run begins an operand once.
            let _ = self.operands[place.operand as usize]
                .root
                .set(dest.stat.identity);
        }
        if source.identity.same_file(dest.stat.identity) {
            let path = self.place_path(place, Side::Source);
            return Err(Error::refused(Refusal::SameFile, path)
                .with_other(self.place_path(place, Side::Dest)));
        }
        Ok(())
    }

    /// Makes the dest directory, or finds it; its owner may do anything in it while it fills.
    ///
    /// The umask is never asked for: what `mkdirat` grants tells, with default
    /// ACLs taken into account.
    fn make_dest(
        &self,
        place: &Place<CopyDir>,
        source: &DirStat,
    ) -> Result<(OwnedFd, Made), Error> {
        let failed = |doing, errno| self.place_error(place, Side::Dest, doing, errno);
        let mode = source.mode & 0o7777;
        let made = self.at(place, Side::Dest, |dir, name| {
            sys::create_directory(dir, name, mode | 0o700)
        });
        let is_new = match made {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(self.create_error_of(place, errno)),
        };
        let fd = self
            .at(place, Side::Dest, |dir, name| {
                self.descriptors
                    .making_room(|| sys::open_path_directory(dir, name))
            })
            .map_err(|errno| match errno {
                Errno::NOTDIR | Errno::LOOP => Error::refused(
                    Refusal::NonDirectoryByDirectory,
                    self.place_path(place, Side::Dest),
                )
                .with_other(self.place_path(place, Side::Source)),
                errno => failed(Doing::CreateDirectory, errno),
            })?;
        let stat = sys::stat_directory(fd.as_fd()).map_err(|errno| failed(Doing::Stat, errno))?;
        let mode_pending = if is_new {
            self.open_up(&fd, stat.mode & 0o7777, mode)
                .map_err(|errno| failed(Doing::SetMode, errno))?
        } else {
            None
        };
        Ok((
            fd,
            Made {
                stat,
                is_new,
                mode_pending,
            },
        ))
    }

    /// Gives the owner of a new directory what the umask withheld; returns the
    /// mode that it should have in the end, if that is another than it has now.
    fn open_up(&self, dest: &OwnedFd, granted: u32, source: u32) -> Result<Option<u32>, Errno> {
        let last = granted & (source | 0o7077);
        let filling = granted | 0o700;
        if filling != granted {
            sys::set_directory_mode(dest.as_fd(), filling)?;
        }
        Ok((last != filling).then_some(last))
    }

    fn create_error_of(&self, place: &Place<CopyDir>, errno: Errno) -> Error {
        self.place_error(place, Side::Dest, Doing::CreateDirectory, errno)
    }

    fn set_last_mode(&self, node: &CopyNode, mode: u32) {
        let set = self
            .descriptors
            .pin(node, Side::Dest, self)
            .and_then(|dest| sys::set_directory_mode(dest.as_fd(), mode));
        if let Err(errno) = set {
            self.report
                .failed(self.place_error(&node.place, Side::Dest, Doing::SetMode, errno));
        }
    }
}

/// A dest directory as it was made or found.
struct Made {
    stat: DirStat,
    is_new: bool,
    mode_pending: Option<u32>,
}

impl Roots for Copying<'_> {
    fn open_operand(&self, operand: u32, side: Side) -> Result<OwnedFd, Errno> {
        let operand = &self.operands[operand as usize];
        match side {
            Side::Source => sys::open_directory(CWD, &operand.source, Symlinks::NoFollow),
            Side::Dest => sys::open_path_directory(self.target(), &operand.dest_name),
        }
    }
}

impl Operation for Copying<'_> {
    type Dir = CopyDir;
    type Task = CopyTask;
    type Scratch = CopyScratch;

    fn descriptors(&self) -> &Descriptors<CopyDir> {
        &self.descriptors
    }

    fn report(&self) -> &Report<'_> {
        &self.report
    }

    fn enter(
        &self,
        place: Place<CopyDir>,
        _pass: u8,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Option<CopyNode> {
        match self.open(&place, worker) {
            Ok(node) => {
                worker.scratch.tally.entries += 1;
                worker.count(1);
                Some(node)
            }
            Err(error) => {
                self.report.failed(error);
                walk::leave(self, place.parent, worker);
                None
            }
        }
    }

    fn visit(
        &self,
        node: &CopyNode,
        held: &Held<'_>,
        entry: Entry<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) {
        let item = Item::entry(node, held, entry.name);
        let copied = match entry.kind {
            FileType::Directory => return walk::queue(node, entry.name, worker),
            FileType::RegularFile => self.copy_file(&item, worker),
            FileType::Symlink => self.copy_symlink(&item, worker),
            _ => self.copy_whatever(&item, worker),
        };
        if let Err(error) = copied {
            self.report.failed(error);
        }
    }

    fn listing_failed(&self, node: &CopyNode, errno: Errno) {
        let error = self.place_error(&node.place, Side::Source, Doing::ReadDirectory, errno);
        self.report.failed(error);
    }

    fn finish(&self, node: &CopyNode, _worker: &mut Walker<'_, '_, Self>) -> ControlFlow<()> {
        if let Some(parent) = &node.place.parent {
            for side in [Side::Source, Side::Dest] {
                if node.mark.returns_to(side) {
                    // If this fails, whoever needs the parent walks down to it, or says so.
                    let _ = self.descriptors.pin_parent(parent, side, node, self);
                }
            }
        }
        if let Some(mode) = node.mark.mode() {
            self.set_last_mode(node, mode);
        }
        self.descriptors.close(node, Side::Source);
        self.descriptors.close(node, Side::Dest);
        ControlFlow::Continue(())
    }

    fn run_own(&self, task: CopyTask, worker: &mut Walker<'_, '_, Self>) {
        match task {
            CopyTask::Operands(operands) => self.begin_all(operands, worker),
            CopyTask::Large(file) => self.copy_large(*file, worker),
        }
    }

    fn most_workers(&self) -> usize {
        descriptors::most_workers(self.options.threads)
    }
}
