//! The look-ahead: counts what is below operands, with one worker, and changes nothing.
//!
//! It runs beside a removal or a copy of the same operands, to say how much there is. Anything that
//! cannot be looked at is left out, because the run itself reports it.

use std::ffi::CStr;
use std::iter;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::descriptors::{Descriptors, Roots};
use crate::error::Error;
use crate::hashing::HashSet;
use crate::node::{Dir, Node, Place, Side};
use crate::observer::{Counts, Observer};
use crate::paths;
use crate::report::{Counted, Report};
use crate::sched::When;
use crate::setup::Setup;
use crate::sync::lock;
use crate::sys::{self, DirSlot, Fd, FileId, Listed, Stat, Symlinks};
use crate::walk::{
    self, OpenDirs, Purpose, Reconsidered, Settings, Sharer, Task, Visit, Visitor, Walker,
};

/// The most files with several names that a look-ahead remembers, in about 2 MB.
const MOST_REMEMBERED: usize = 1 << 16;

/// Says what a look-ahead counts.
pub(crate) struct Survey<'a> {
    pub(crate) setup: &'a Setup<'a>,
    /// Counts what is below directories.
    pub(crate) recursive: bool,
    /// Leaves out what is below a directory on another filesystem than its parent.
    pub(crate) one_file_system: bool,
    /// Says whether operands that are symbolic links are followed.
    pub(crate) symlinks: Symlinks,
    pub(crate) content: Content,
    /// Counts directories that the filter skips, because a copy makes them.
    pub(crate) skipped_directories: bool,
}

/// Says which bytes are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Ignored,
    /// The data of each regular file, without its holes.
    OfNames,
    /// The data of each regular file, once for all of its names.
    OfInodes,
}

impl Content {
    /// Returns the bytes of one name. A file with several names counts in equal parts.
    pub(crate) fn bytes(self, stat: &Stat) -> u64 {
        // A copy does not count holes. With `Sparse::Never` it does, and then this is too little.
        let data = (stat.st_size as u64).min(stat.st_blocks as u64 * 512);
        match (self, sys::file_type(stat)) {
            (Self::OfNames, FileType::RegularFile) => data,
            // The type of the field depends on the architecture.
            #[allow(clippy::unnecessary_cast)]
            (Self::OfInodes, FileType::RegularFile) => data / (stat.st_nlink as u64).max(1),
            _ => 0,
        }
    }
}

/// Adds to `counts` what `survey` says about the operands. Returns `true` unless it was cancelled, or some bytes may be
/// counted more than once.
pub(crate) fn count(
    survey: Survey<'_>,
    operands: impl IntoIterator<Item = PathBuf>,
    counts: &Counts,
) -> bool {
    let observer = Silent(counts);
    let operands = operands.into_iter();
    let look_ahead = LookAhead {
        settings: Settings::new(Some(NonZeroUsize::MIN), survey.setup.filter.clone()),
        seen: Mutex::default(),
        operands: operands
            .filter_map(|path| paths::to_c(&path).ok())
            .collect(),
        report: Report::new(&observer, survey.setup),
        descriptors: Descriptors::new(),
        survey,
    };
    let operands = 0..look_ahead.operands.len() as u32;
    walk::run(&look_ahead, iter::once(operands));
    let seen = lock(&look_ahead.seen).len();
    seen < MOST_REMEMBERED && !look_ahead.report.summary().cancelled
}

/// Passes on the counters only.
struct Silent<'a>(&'a Counts);

impl Observer for Silent<'_> {
    fn failed(&self, _: Error) {}

    fn counts(&self) -> Option<&Counts> {
        Some(self.0)
    }
}

struct LookAhead<'a> {
    survey: Survey<'a>,
    /// Files with several names, of which one was counted. At most [`MOST_REMEMBERED`].
    seen: Mutex<HashSet<FileId>>,
    settings: Settings,
    operands: Vec<Box<CStr>>,
    report: Report<'a>,
    descriptors: Descriptors<CountedDir>,
}

struct CountedDir {
    slot: DirSlot,
    /// The filesystem, if the scope depends on it.
    device: Option<u32>,
}

impl Dir for CountedDir {
    type State = ();

    fn slot(&self, _side: Side) -> &DirSlot {
        &self.slot
    }
}

type CountedNode = Arc<Node<CountedDir>>;

impl LookAhead<'_> {
    /// Opens the directory at `place`, if what is below it counts.
    fn open(&self, place: &Place<CountedDir>) -> Result<Option<(Fd, CountedDir)>, Errno> {
        let (fd, device) = match &place.parent {
            Some(parent) => {
                let dir = self.descriptors.pin(parent, Side::Source, self)?;
                let seen = || sys::stat(dir.as_fd(), &place.name, Symlinks::NoFollow);
                // To open a mount point could mount something, or wait for a dead server.
                if let Some(device) = parent.dir.device
                    && FileId::of(&seen()?).device != device
                {
                    return Ok(None);
                }
                let open = || self.open_below(dir.as_fd(), &place.name, Side::Source);
                (self.descriptors.making_room(open)?, parent.dir.device)
            }
            None => {
                let fd = self.open_operand(place.operand, Side::Source)?;
                let device = match self.survey.one_file_system {
                    true => Some(sys::stat_directory(fd.as_fd())?.identity.device()),
                    false => None,
                };
                (fd, device)
            }
        };
        let slot = DirSlot::empty();
        Ok(Some((fd, CountedDir { slot, device })))
    }

    /// Returns the bytes to count for a name.
    fn bytes(&self, stat: &Stat) -> u64 {
        let content = self.survey.content;
        if content != Content::OfInodes || stat.st_nlink == 1 {
            return content.bytes(stat);
        }
        let mut seen = lock(&self.seen);
        let is_first = match seen.len() < MOST_REMEMBERED {
            true => seen.insert(FileId::of(stat)),
            false => !seen.contains(&FileId::of(stat)),
        };
        match is_first {
            true => Content::OfNames.bytes(stat),
            false => 0,
        }
    }

    fn count(&self, bytes: u64, worker: &mut Walker<'_, '_, Self>) {
        worker.scratch.tally.count(Counted::Unknown);
        worker.scratch.tally.bytes += bytes;
    }
}

impl Roots for LookAhead<'_> {
    fn open_operand(&self, operand: u32, _side: Side) -> Result<Fd, Errno> {
        let path = &self.operands[operand as usize];
        Ok(sys::open_directory_noatime(self.survey.setup.dir, path, self.survey.symlinks)?.0)
    }

    /// Keeps the time of access, because a copy that preserves it may not have read it yet.
    fn open_below(&self, dir: BorrowedFd<'_>, name: &CStr, _side: Side) -> Result<Fd, Errno> {
        Ok(sys::open_directory_noatime(dir, name, Symlinks::NoFollow)?.0)
    }
}

impl Sharer for LookAhead<'_> {
    type Dir = CountedDir;
    /// Operands to begin.
    type Task = Range<u32>;

    fn roots(&self) -> &dyn Roots {
        self
    }
}

impl Visitor for LookAhead<'_> {
    type Scratch = ();

    fn descriptors(&self) -> &Descriptors<CountedDir> {
        &self.descriptors
    }

    fn report(&self) -> &Report<'_> {
        &self.report
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn operand_path(&self, operand: u32) -> &Path {
        paths::path_of(&self.operands[operand as usize])
    }

    fn enter(
        &self,
        place: Place<CountedDir>,
        purpose: Purpose,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Option<CountedNode> {
        if purpose != Purpose::ProcessEntries || self.survey.skipped_directories {
            self.count(0, worker);
        }
        match self.open(&place) {
            Ok(Some((fd, dir))) => {
                let finished = worker.scratch.finished.take();
                let node = Node::new(place, (), dir, finished);
                self.descriptors.adopt(&node, Side::Source, fd);
                Some(node)
            }
            _ => {
                walk::leave(place.parent, worker);
                None
            }
        }
    }

    fn visit(
        &self,
        node: &CountedNode,
        dirs: &OpenDirs<'_>,
        entry: Listed<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Visit {
        let has_bytes = self.survey.content != Content::Ignored;
        let mut kind = entry.kind();
        let mut bytes = 0;
        if kind == FileType::Unknown || kind == FileType::RegularFile && has_bytes {
            // The run has removed the name, and has counted it.
            let Ok(stat) = sys::stat(dirs.source(), entry.name, Symlinks::NoFollow) else {
                return Visit::Done;
            };
            kind = sys::file_type(&stat);
            bytes = self.bytes(&stat);
        }
        if entry.kind() == FileType::Directory {
            return walk::queue(node, entry, worker);
        }
        if kind != entry.kind() {
            match walk::reconsider(node, dirs.source(), entry.name, kind, worker) {
                Reconsidered::Process => {}
                queued_or_left_alone => return queued_or_left_alone.visit(),
            }
        }
        self.count(bytes, worker);
        Visit::Done
    }

    fn run_own(&self, operands: Range<u32>, worker: &mut Walker<'_, '_, Self>) {
        if self.report.must_stop() {
            return;
        }
        let (portion, rest) = paths::portion(operands);
        if let Some(rest) = rest {
            worker.push(Task::Own(rest), When::Next);
        }
        for operand in portion {
            let name = &self.operands[operand as usize];
            match sys::stat(self.survey.setup.dir, name, self.survey.symlinks) {
                Err(_) => {}
                Ok(stat) if !sys::is_directory(&stat) => {
                    self.count(self.bytes(&stat), worker);
                }
                Ok(_) if self.survey.recursive => {
                    let place = Place {
                        parent: None,
                        name: (&**name).into(),
                        operand,
                    };
                    let purpose = Purpose::Process { pass: 0 };
                    worker.push(Task::Enter { place, purpose }, When::Next);
                }
                Ok(_) => self.count(0, worker),
            }
        }
    }
}
