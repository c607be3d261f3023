//! What a copy does with directories: made when entered, finished by the climb.

use std::collections::HashSet;
use std::ffi::{CStr, OsStr};
use std::ops::{ControlFlow, Range};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::file::{CopyScratch, LargeFile};
use super::item::Item;
use super::links::{Links, Waiter};
use super::node::{CopyDir, CopyNode};
use super::operand::{Operand, Operands, Used};
use super::parents::MadeParent;
use super::rules::DestRules;
use super::{CopyOptions, Dereference, Dest, Reflink};
use crate::descriptors::{Descriptors, Roots};
use crate::error::{Error, Operation};
use crate::node::{Dir, Place, Side};
use crate::observer::{CopyMethod, Event, Observer, Summary};
use crate::operand;
use crate::report::Report;
use crate::sched::{self, Limits};
use crate::sys::{self, CWD, Entry, Identity, Symlinks};
use crate::walk::{self, SourceAndDest, Task, Visit, Visitor, Walker};

/// Tasks of a copy that are not about listing a directory.
pub(super) enum CopyTask {
    Operands(Operands),
    Large(Box<LargeFile>),
    /// Copy what waited in vain for another name of its inode to be copied.
    Waiter(Waiter),
}

/// One run of a [`CopyOp`](super::CopyOp).
pub(super) struct Copying<'a> {
    options: &'a CopyOptions,
    pub(super) dest: &'a Dest,
    pub(super) rules: DestRules,
    /// Files are copied, and nothing is asked of their dests. Looked up for every entry.
    copies_plainly: bool,
    /// The copy of an empty file is an empty file and nothing more. As above.
    pub(super) creates_empty_files: bool,
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
    pub(super) used: Mutex<HashSet<Used>>,
    /// Directories made on the way to the dests.
    pub(super) parents: Mutex<Vec<MadeParent>>,
    pub(super) links: Links,
    /// Once asked for.
    pub(super) umask: OnceLock<u32>,
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
            rules: options.rules.clone(),
            copies_plainly: false,
            creates_empty_files: !options.needs_a_finish() && options.reflink != Reflink::Always,
            target: None,
            operands: Vec::new(),
            report: Report::new(observer),
            descriptors: Descriptors::new(),
            user: sys::effective_user(),
            deferred: Mutex::new(None),
            above_target: OnceLock::new(),
            used: Mutex::new(HashSet::new()),
            parents: Mutex::default(),
            links: Links::default(),
            umask: OnceLock::new(),
        }
    }

    pub(super) fn run<P: AsRef<Path>>(mut self, sources: impl IntoIterator<Item = P>) -> Summary {
        if let Dest::Into(target) = self.dest {
            let opened = operand::to_c(target)
                .and_then(|path| sys::open_path_directory(CWD, &path, Symlinks::Follow));
            match opened {
                Ok(fd) => self.target = Some(fd),
                Err(errno) => {
                    let path = target.clone();
                    self.report
                        .failed(Error::failed(Operation::OpenTarget, path, errno));
                    return self.report.summary();
                }
            }
        }
        for source in sources {
            let itself = self.backup_of_itself(source.as_ref());
            if itself.is_some() {
                self.rules.backup = None;
            }
            let dest = itself.as_ref().unwrap_or(self.dest);
            match Operand::new(source.as_ref(), dest, self.options.parents) {
                Ok(operand) => self.operands.push(operand),
                Err(error) => self.report.failed(error),
            }
        }
        self.copies_plainly = self.rules.are_plain() && self.options.as_links.is_none();
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
        self.finish_parents();
        self.report.summary()
    }

    /// Operands that can be worked on together.
    fn runs(&self) -> Vec<Range<u32>> {
        match self.dest {
            // Who is asked is asked in order.
            Dest::Into(_) if !self.rules.ask => {
                operand::independent_runs(self.operands.iter().map(|operand| &*operand.source))
            }
            Dest::Into(_) | Dest::Exactly(_) => {
                (0..self.operands.len() as u32).map(|i| i..i + 1).collect()
            }
        }
    }

    pub(super) fn options(&self) -> &CopyOptions {
        self.options
    }

    /// Whether FIFOs and devices are read, and not made anew.
    pub(super) fn reads_special_content(&self) -> bool {
        self.options.copy_contents || !self.options.recursive
    }

    pub(super) fn symlinks_of_operands(&self) -> Symlinks {
        match self.options.dereference {
            Dereference::Never => Symlinks::NoFollow,
            Dereference::Operands | Dereference::Always => Symlinks::Follow,
        }
    }

    pub(super) fn symlinks_of_entries(&self) -> Symlinks {
        match self.options.dereference {
            Dereference::Never | Dereference::Operands => Symlinks::NoFollow,
            Dereference::Always => Symlinks::Follow,
        }
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

    /// Tells of a file's content, and how it was copied if somebody wants to know.
    #[inline]
    pub(super) fn tell_copied_by(&self, item: &Item<'_>, method: CopyMethod) {
        if self.report.wants_copy_method() {
            self.emit_copy_method(item, method);
        } else {
            self.tell_copied(item);
        }
    }

    #[inline]
    pub(super) fn tell_copied(&self, item: &Item<'_>) {
        if self.report.wants_events() {
            self.tell_paths(item);
        }
    }

    #[cold]
    fn emit_copy_method(&self, item: &Item<'_>, method: CopyMethod) {
        let source = &self.item_path(item, Side::Source);
        let dest = &self.item_path(item, Side::Dest);
        self.report.event(Event::CopiedContent {
            source,
            dest,
            method,
        });
    }

    #[cold]
    fn tell_paths(&self, item: &Item<'_>) {
        let source = &self.item_path(item, Side::Source);
        let dest = &self.item_path(item, Side::Dest);
        let backup = self.backup_path(item);
        let backup = backup.as_deref();
        self.report.event(Event::Copied {
            source,
            dest,
            backup,
        });
    }
}

impl Roots for Copying<'_> {
    fn open_operand(&self, operand: u32, side: Side) -> Result<OwnedFd, Errno> {
        let operand = &self.operands[operand as usize];
        match side {
            Side::Source => sys::open_directory(CWD, &operand.source, self.symlinks_of_operands()),
            Side::Dest => self.open_dest_directory(self.target(), &operand.dest_name),
        }
    }

    fn open_below(&self, dir: BorrowedFd<'_>, name: &CStr, side: Side) -> Result<OwnedFd, Errno> {
        match side {
            Side::Source => sys::open_directory(dir, name, self.symlinks_of_entries()),
            Side::Dest => self.open_dest_directory(dir, name),
        }
    }
}

/// Whether a directory below an operand is on another device than its parent.
fn is_mount_point(node: &CopyNode) -> bool {
    let device = |node: &CopyNode| {
        let identity = node.dir.slot(Side::Source).identity();
        identity.map(Identity::device)
    };
    let parent = node.place.parent.as_ref();
    parent.is_some_and(|parent| device(parent) != device(node))
}

impl Visitor for Copying<'_> {
    type Dir = CopyDir;
    type Open<'n> = SourceAndDest<'n>;
    type Task = CopyTask;
    type Scratch = CopyScratch;

    fn descriptors(&self) -> &Descriptors<CopyDir> {
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
        place: Place<CopyDir>,
        _pass: u8,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Option<CopyNode> {
        match self.open_node(place, worker) {
            Ok(node) => {
                worker.scratch.tally.entries += 1;
                worker.count(1);
                if self.options.one_file_system && is_mount_point(&node) {
                    walk::leave(self, Some(node), worker);
                    return None;
                }
                Some(node)
            }
            Err((place, error)) => {
                self.report.failed(error);
                walk::leave(self, place.parent, worker);
                None
            }
        }
    }

    fn visit(
        &self,
        node: &CopyNode,
        dirs: &SourceAndDest<'_>,
        entry: Entry<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Visit {
        let symlinks = self.symlinks_of_entries();
        let item = Item::entry(node, dirs, entry.name).following(symlinks);
        let copied = match (entry.kind, self.options.as_links) {
            (FileType::Directory, _) => return walk::queue(node, entry.name, worker),
            (FileType::RegularFile, _) if self.copies_plainly => self.copy_file(&item, worker),
            _ if !self.rules.are_plain() => self.copy_entry_by_rules(&item, worker),
            (FileType::RegularFile, Some(kind)) => self.link(&item, kind, worker),
            (FileType::Symlink, None) if symlinks == Symlinks::NoFollow => {
                self.copy_symlink(&item, worker)
            }
            _ => self.copy_whatever(&item, worker),
        };
        if let Err(error) = copied {
            self.report_item(&item, error);
        }
        if std::mem::take(&mut worker.scratch.own.queued) {
            Visit::Queued
        } else {
            Visit::Done
        }
    }

    fn listing_failed(&self, node: &CopyNode, errno: Errno) {
        let error = self.place_error(&node.place, Side::Source, Operation::ReadDirectory, errno);
        self.report.failed(error);
    }

    fn finish(&self, node: &CopyNode, _worker: &mut Walker<'_, '_, Self>) -> ControlFlow<()> {
        if let Some(parent) = &node.place.parent {
            for side in [Side::Source, Side::Dest] {
                if node.state.returns_to(side) {
                    // If this fails, whoever needs the parent walks down to it, or says so.
                    let _ = self.descriptors.pin_parent(parent, side, node, self);
                }
            }
        }
        if self.options.needs_a_finish() {
            self.finish_directory(node);
        } else if let Some(mode) = node.state.mode() {
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
            CopyTask::Waiter(waiter) => self.copy_waiter(waiter, worker),
        }
    }

    fn limits(&self) -> Limits {
        if self.is_in_order() {
            Limits::of(1)
        } else {
            walk::worker_limits(self.options.threads)
        }
    }

    /// On btrfs each name goes into the one tree of the subvolume, and threads of its own
    /// do a part of it later: on machines of two cores one took 0.75 to 1.09 of the
    /// time of two.
    fn initial_workers(&self) -> usize {
        let filesystem = match &self.target {
            Some(target) => sys::filesystem(target.as_fd()),
            // If it is no directory: as elsewhere.
            None => self
                .open_operand(0, Side::Dest)
                .ok()
                .and_then(|fd| sys::filesystem(fd.as_fd())),
        };
        if filesystem == Some(sys::BTRFS) { 1 } else { 2 }
    }

    fn is_in_order(&self) -> bool {
        self.rules.ask
    }
}
