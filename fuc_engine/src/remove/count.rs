//! The look-ahead: counts what is below operands, with one worker, and changes nothing.
//!
//! It is a dry removal of what the operands contain, with a filter that counts the entries and takes none. So it needs no
//! walk of its own, and would remove nothing in earnest either. It runs beside a removal or a copy of the same operands,
//! to say how much there is. Anything that cannot be looked at is left out, because the run itself reports it.

use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rustix::fs::FileType;

use super::options::RemoveOp;
use crate::error::Error;
use crate::filter::{Candidate, EnteredDirectory, Filter, Verdict};
use crate::hashing::HashSet;
use crate::observer::{Counts, Observer};
use crate::paths;
use crate::setup::{Cancel, Execution, Setup};
use crate::sync::lock;
use crate::sys::{self, FileId, Stat, Symlinks};

/// The most files with several names that a look-ahead remembers, in about 2 MB.
const MOST_REMEMBERED: usize = 1 << 16;

/// Says what a look-ahead counts.
pub(crate) struct Survey<'a> {
    pub(crate) setup: &'a Setup<'a>,
    /// Counts what is below directories.
    pub(crate) recursive: bool,
    /// Leaves out what is below a directory on another filesystem than its operand.
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
            (Self::OfInodes, FileType::RegularFile) => data / sys::links(stat).max(1),
            _ => 0,
        }
    }
}

impl Survey<'_> {
    /// Adds each entry to `counts` when it is found. Returns `true` unless it was cancelled, or some bytes may be counted
    /// more than once.
    pub(crate) fn count(
        self,
        operands: impl IntoIterator<Item = PathBuf>,
        counts: &Arc<Counts>,
    ) -> bool {
        let Setup {
            dir,
            cancel,
            filter,
            ..
        } = self.setup;
        let found = Arc::new(Found {
            content: self.content,
            counts: Arc::clone(counts),
            seen: Mutex::default(),
        });
        let removal = RemoveOp {
            execution: Execution::DryRun,
            threads: Some(NonZeroUsize::MIN),
            one_file_system: self.one_file_system,
            preserve_root: false,
            keeps_operands: true,
            setup: Setup {
                dir: dir.clone(),
                cancel: cancel.clone(),
                filter: Some(Arc::new(Counting {
                    filter: filter.clone(),
                    skipped_directories: self.skipped_directories,
                    found: Arc::clone(&found),
                })),
                ..Setup::default()
            },
            ..RemoveOp::default()
        };
        let entered = operands.into_iter().filter_map(|path| {
            let at = paths::to_c(&path).ok()?;
            let stat = sys::stat(dir.as_fd(), &at, self.symlinks).ok()?;
            found.count_entry(Some(&stat));
            let is_entered = self.recursive && sys::is_directory(&stat);
            is_entered.then(|| match self.symlinks {
                // A slash at the end makes the kernel follow a link.
                Symlinks::Follow => path.join(""),
                Symlinks::NoFollow => path,
            })
        });
        let _failures = removal.run(entered, &Silent);
        if cancel.as_ref().is_some_and(Cancel::is_cancelled) {
            return false;
        }
        lock(&found.seen).len() < MOST_REMEMBERED
    }
}

/// The run itself reports what fails.
struct Silent;

impl Observer for Silent {
    fn failed(&self, _: Error) {}
}

/// The entries that were found so far.
struct Found {
    content: Content,
    counts: Arc<Counts>,
    /// Files with several names, of which one was counted. At most [`MOST_REMEMBERED`].
    seen: Mutex<HashSet<FileId>>,
}

impl Found {
    fn count_entry(&self, stat: Option<&Stat>) {
        self.counts.add(1, stat.map_or(0, |stat| self.bytes(stat)));
    }

    /// Returns the bytes to count for a name.
    fn bytes(&self, stat: &Stat) -> u64 {
        if self.content != Content::OfInodes || stat.st_nlink == 1 {
            return self.content.bytes(stat);
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
}

/// Counts the entries that another filter takes.
struct Counting {
    filter: Option<Arc<dyn Filter>>,
    skipped_directories: bool,
    found: Arc<Found>,
}

impl Filter for Counting {
    fn verdict(&self, entry: &Candidate<'_>) -> Verdict {
        let filter = self.filter.as_ref();
        let verdict = filter.map_or(Verdict::Take, |filter| filter.verdict(entry));
        let is_counted = match verdict {
            Verdict::Take => true,
            Verdict::Skip => self.skipped_directories && entry.is_directory(),
            Verdict::Prune => return Verdict::Prune,
        };
        let has_bytes = self.found.content != Content::Ignored && entry.is_file();
        let look = || sys::stat(entry.dir, entry.name, Symlinks::NoFollow);
        // If the name is missing, the run has removed it, and has counted it.
        if is_counted && let Ok(stat) = has_bytes.then(look).transpose() {
            self.found.count_entry(stat.as_ref());
        }
        Verdict::Skip
    }

    fn for_directory(&self, directory: &EnteredDirectory<'_>) -> Option<Arc<dyn Filter>> {
        let filter = self.filter.as_ref()?.for_directory(directory)?;
        Some(Arc::new(Self {
            filter: Some(filter),
            found: Arc::clone(&self.found),
            ..*self
        }))
    }
}
