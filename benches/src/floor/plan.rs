//! Makes all decisions of the floor before the clock starts.

use std::{
    ffi::CString,
    fs::{self, FileType, Metadata},
    ops::Range,
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::{FileTypeExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

use super::Task;

/// The entries of one job: few enough to share a wide directory, and enough to make the cost of taking a job
/// negligible.
const BATCH: usize = 256;
/// The directories of one job.
const DIRS: usize = 64;

/// The tree, and the jobs on it in their order.
#[derive(Default)]
pub(super) struct Plan {
    /// All directories, level by level, so that each parent comes before its children.
    pub(super) dirs: Vec<Dir>,
    pub(super) entries: Vec<Entry>,
    pub(super) phases: Vec<Vec<Job>>,
}

pub(super) struct Dir {
    pub(super) source: CString,
    /// The path of the copy; it is empty for a removal.
    pub(super) dest: CString,
    pub(super) mode: u32,
    depth: usize,
    entries: Range<usize>,
}

/// An entry that is not a directory.
pub(super) struct Entry {
    pub(super) name: CString,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Empty,
    Data,
    Link,
}

/// The work that a thread takes at a time.
pub(super) enum Job {
    MakeDirs(Range<usize>),
    RemoveDirs(Range<usize>),
    Entries {
        verb: Verb,
        dir: usize,
        entries: Range<usize>,
        lists: bool,
    },
}

#[derive(Clone, Copy)]
pub(super) enum Verb {
    Remove,
    Copy,
    Compare,
}

impl Job {
    /// Returns a directory, by its place, for the message of a failure.
    pub(super) fn place(&self) -> usize {
        match self {
            Self::MakeDirs(dirs) | Self::RemoveDirs(dirs) => dirs.start,
            Self::Entries { dir, .. } => *dir,
        }
    }
}

impl Plan {
    pub(super) fn make(task: &Task) -> Result<Self> {
        let mut plan = Self::default();
        match task {
            Task::Remove { tree } => {
                plan.scan(tree, None)?;
                plan.add_entries(Verb::Remove);
                let levels: Vec<_> = plan.levels().into_iter().rev().collect();
                plan.add_dirs(&levels, Job::RemoveDirs);
            }
            Task::Copy { tree, dest } => {
                plan.scan(tree, Some(dest))?;
                plan.add_dirs(&plan.levels(), Job::MakeDirs);
                plan.add_entries(Verb::Copy);
            }
            Task::Compare { tree, dest } => {
                plan.scan(tree, Some(dest))?;
                plan.add_entries(Verb::Compare);
            }
        }
        Ok(plan)
    }

    /// Scans the tree breadth first, so that the directories of a level are neighbours.
    fn scan(&mut self, tree: &Path, dest: Option<&Path>) -> Result<()> {
        let mut queue = vec![(tree.to_owned(), dest.map(Path::to_owned))];
        for depth in 0.. {
            let mut below = Vec::new();
            for (source, dest) in queue {
                self.scan_dir(source, dest, depth, &mut below)?;
            }
            if below.is_empty() {
                break;
            }
            queue = below;
        }
        Ok(())
    }

    fn scan_dir(
        &mut self,
        source: PathBuf,
        dest: Option<PathBuf>,
        depth: usize,
        below: &mut Vec<(PathBuf, Option<PathBuf>)>,
    ) -> Result<()> {
        let context = || format!("cannot scan {}", source.display());
        let first = self.entries.len();
        for entry in fs::read_dir(&source).with_context(context)? {
            let entry = entry.with_context(context)?;
            let kind = entry.file_type().with_context(context)?;
            if kind.is_dir() {
                below.push((
                    entry.path(),
                    dest.as_ref().map(|dest| dest.join(entry.file_name())),
                ));
                continue;
            }
            // A removal needs nothing but the name.
            let kind = if dest.is_some() {
                Kind::of(kind, &entry.metadata().with_context(context)?)?
            } else {
                Kind::Empty
            };
            self.entries.push(Entry {
                name: CString::new(entry.file_name().into_vec())?,
                kind,
            });
        }
        let mode = fs::metadata(&source)
            .with_context(context)?
            .permissions()
            .mode();
        self.dirs.push(Dir {
            source: CString::new(source.as_os_str().as_bytes())?,
            dest: CString::new(dest.unwrap_or_default().into_os_string().into_vec())?,
            mode,
            depth,
            entries: first..self.entries.len(),
        });
        Ok(())
    }

    /// Returns the ranges of directories of equal depth, from the root down.
    fn levels(&self) -> Vec<Range<usize>> {
        let mut start = 0;
        let levels = self.dirs.chunk_by(|a, b| a.depth == b.depth).map(|level| {
            let range = start..start + level.len();
            start = range.end;
            range
        });
        levels.collect()
    }

    fn add_dirs(&mut self, levels: &[Range<usize>], job: impl Fn(Range<usize>) -> Job) {
        self.phases.extend(
            levels
                .iter()
                .map(|level| pieces(level.clone(), DIRS).map(&job).collect()),
        );
    }

    fn add_entries(&mut self, verb: Verb) {
        let mut jobs = Vec::new();
        for (dir, Dir { entries, .. }) in self.dirs.iter().enumerate() {
            let start = entries.start;
            // An empty directory has no piece, but is listed like the others.
            let alone = entries.is_empty().then_some(start..start);
            jobs.extend(
                alone
                    .into_iter()
                    .chain(pieces(entries.clone(), BATCH))
                    .map(|entries| {
                        let lists = entries.start == start;
                        Job::Entries {
                            verb,
                            dir,
                            entries,
                            lists,
                        }
                    }),
            );
        }
        self.phases.push(jobs);
    }
}

impl Kind {
    fn of(kind: FileType, meta: &Metadata) -> Result<Self> {
        if kind.is_symlink() {
            return Ok(Self::Link);
        }
        if kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device() {
            bail!("the floor copies no special files");
        }
        Ok(if meta.len() == 0 {
            Self::Empty
        } else {
            Self::Data
        })
    }
}

/// Returns `range` in pieces of at most `size`.
fn pieces(range: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range
        .step_by(size)
        .map(move |start| start..end.min(start + size))
}
