//! Makes all decisions of the floor before the clock starts.

use std::{
    ffi::CString,
    fs::{self, FileType, Metadata},
    ops::Range,
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::MetadataExt as _,
    },
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

use super::Task;

/// The entries of one job: few enough to share a wide directory, and enough to make the cost of taking a job
/// negligible.
const BATCH: usize = 256;

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
    pub(super) entries: Range<usize>,
    depth: usize,
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

/// The work that a thread takes at a time: a directory, or some of its entries.
pub(super) struct Job {
    pub(super) verb: Verb,
    pub(super) dir: usize,
    /// The job with the first entries of a directory also lists it.
    pub(super) entries: Range<usize>,
}

#[derive(Clone, Copy)]
pub(super) enum Verb {
    MakeDir,
    RemoveDir,
    Remove,
    Copy,
}

impl Plan {
    pub(super) fn make(task: &Task) -> Result<Self> {
        let mut plan = Self::default();
        match task {
            Task::Remove { tree } => {
                plan.scan(tree, None)?;
                plan.add_entries(Verb::Remove);
                plan.add_dirs(Verb::RemoveDir);
                plan.phases[1..].reverse();
            }
            Task::Copy { tree, dest } => {
                plan.scan(tree, Some(dest))?;
                plan.add_dirs(Verb::MakeDir);
                plan.add_entries(Verb::Copy);
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
                let context = format!("cannot scan {}", source.display());
                let scanned = self.scan_dir(source, dest, depth, &mut below);
                scanned.context(context)?;
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
        let first = self.entries.len();
        for entry in fs::read_dir(&source)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                let dest = dest.as_ref().map(|dest| dest.join(entry.file_name()));
                below.push((entry.path(), dest));
                continue;
            }
            // A removal needs nothing but the name.
            let kind = match dest {
                Some(_) => Kind::of(kind, &entry.metadata()?)?,
                None => Kind::Empty,
            };
            let name = CString::new(entry.file_name().into_vec())?;
            self.entries.push(Entry { name, kind });
        }
        self.dirs.push(Dir {
            mode: fs::metadata(&source)?.mode() & 0o7777,
            source: CString::new(source.as_os_str().as_bytes())?,
            dest: CString::new(dest.unwrap_or_default().into_os_string().into_vec())?,
            depth,
            entries: first..self.entries.len(),
        });
        Ok(())
    }

    /// Adds a phase for each level, from the root down.
    fn add_dirs(&mut self, verb: Verb) {
        let job = |dir| Job {
            verb,
            dir,
            entries: 0..0,
        };
        let mut start = 0;
        for level in self.dirs.chunk_by(|a, b| a.depth == b.depth) {
            let end = start + level.len();
            self.phases.push((start..end).map(job).collect());
            start = end;
        }
    }

    fn add_entries(&mut self, verb: Verb) {
        let mut jobs = Vec::new();
        for (dir, Dir { entries, .. }) in self.dirs.iter().enumerate() {
            // An empty directory has no entry, but is listed like the others.
            let last = entries.end.max(entries.start + 1);
            jobs.extend((entries.start..last).step_by(BATCH).map(|start| Job {
                verb,
                dir,
                entries: start..entries.end.min(start + BATCH),
            }));
        }
        self.phases.push(jobs);
    }
}

impl Kind {
    fn of(kind: FileType, meta: &Metadata) -> Result<Self> {
        match meta.len() {
            _ if kind.is_symlink() => Ok(Self::Link),
            _ if !kind.is_file() => bail!("the floor copies no special files"),
            0 => Ok(Self::Empty),
            _ => Ok(Self::Data),
        }
    }
}
