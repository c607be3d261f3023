//! Makes all decisions of the floor before the clock starts.

use std::{
    collections::VecDeque,
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

/// A directory of the tree.
pub(super) struct Dir {
    pub(super) source: CString,
    /// The path of the copy; it is empty for a removal.
    pub(super) dest: CString,
    pub(super) mode: u32,
    pub(super) entries: Vec<Entry>,
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
pub(super) struct Job<'a> {
    pub(super) verb: Verb,
    pub(super) dir: &'a Dir,
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

/// Scans the tree of a task breadth first. So each parent comes before its children, and the directories of a level are
/// neighbours.
pub(super) fn scan(task: &Task) -> Result<Vec<Dir>> {
    let root = match task {
        Task::Remove { tree } => (tree.clone(), None),
        Task::Copy { tree, dest } => (tree.clone(), Some(dest.clone())),
    };
    let mut dirs = Vec::new();
    let mut queue = VecDeque::from([(root, 0)]);
    while let Some(((source, dest), depth)) = queue.pop_front() {
        let (dir, below) = scan_dir(&source, dest.as_deref(), depth)
            .with_context(|| format!("cannot scan {}", source.display()))?;
        dirs.push(dir);
        queue.extend(below.into_iter().map(|paths| (paths, depth + 1)));
    }
    Ok(dirs)
}

/// The path of a directory, and that of its copy.
type Paths = (PathBuf, Option<PathBuf>);

/// Scans one directory. Returns the paths of its sub-directories, too.
fn scan_dir(source: &Path, dest: Option<&Path>, depth: usize) -> Result<(Dir, Vec<Paths>)> {
    let mut below = Vec::new();
    let mut entries = Vec::new();
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            let dest = dest.map(|dest| dest.join(entry.file_name()));
            below.push((entry.path(), dest));
            continue;
        }
        // A removal needs nothing but the name.
        let kind = match dest {
            Some(_) => Kind::of(kind, &entry.metadata()?)?,
            None => Kind::Empty,
        };
        let name = CString::new(entry.file_name().into_vec())?;
        entries.push(Entry { name, kind });
    }
    let dir = Dir {
        source: CString::new(source.as_os_str().as_bytes())?,
        dest: CString::new(dest.unwrap_or(Path::new("")).as_os_str().as_bytes())?,
        mode: fs::metadata(source)?.mode() & 0o7777,
        entries,
        depth,
    };
    Ok((dir, below))
}

/// Returns the phases of a task, each with its jobs.
pub(super) fn phases<'a>(task: &Task, dirs: &'a [Dir]) -> Vec<Vec<Job<'a>>> {
    match task {
        Task::Remove { .. } => {
            let levels = levels(Verb::RemoveDir, dirs).rev();
            [jobs(Verb::Remove, dirs)]
                .into_iter()
                .chain(levels)
                .collect()
        }
        Task::Copy { .. } => {
            let levels = levels(Verb::MakeDir, dirs);
            levels.chain([jobs(Verb::Copy, dirs)]).collect()
        }
    }
}

/// Returns a phase for each level, from the root down.
fn levels(verb: Verb, dirs: &[Dir]) -> impl DoubleEndedIterator<Item = Vec<Job<'_>>> {
    let levels = dirs.chunk_by(|a, b| a.depth == b.depth);
    let job = move |dir| Job {
        verb,
        dir,
        entries: 0..0,
    };
    levels.map(move |level| level.iter().map(job).collect())
}

/// Returns the phase of all entries.
fn jobs(verb: Verb, dirs: &[Dir]) -> Vec<Job<'_>> {
    let jobs = dirs.iter().flat_map(|dir| {
        // An empty directory has no entry, but is listed like the others.
        let starts = (0..dir.entries.len().max(1)).step_by(BATCH);
        starts.map(move |start| Job {
            verb,
            dir,
            entries: start..dir.entries.len().min(start + BATCH),
        })
    });
    jobs.collect()
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
