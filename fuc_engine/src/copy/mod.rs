//! Copies trees.
//!
//! A directory's copy is made when the directory is entered, and gets its final mode when the
//! last entry under it is finished, by the same climb that removes a directory in a removal.
//! Everything else takes one way. It ends early for an entry that waits or is given away: before `settle_and_make`, nothing
//! is done about its dest.
//!
//! ```text
//! look at or open the source ─▶ another name of it was copied? ─▶ settle what happens to the dest ─▶ make ─▶ report
//! ```
//!
//! In a directory that this run has made, nothing is there, so the dest is created at once, and looked at only if something is
//! there after all. In an older directory the dest is looked at first. `decide/settle` has the table of what happens to it.
//!
//! This is the walk of a small file into a new directory:
//!
//! ```text
//! run/visitor     visit         names the entry, which `entry` describes
//! run/pipeline    copy_file
//!   make/file       open_source   opens the source: open; its stat stays here: fstat
//!   dest            open_for_content
//!                                 creates the dest, by `changes`: open
//!   make/file       move_content
//!     content         copy_to_end   moves the content: copy_file_range
//!   make/file       complete_dest
//!     attributes      set_all       sets times, owner and mode
//!   run/pipeline    note_filled   counts and reports
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `options` | [`CopyOp`], the options of a caller: data only |
//! | `facts` | facts about a file, made once from a stat; what is kept for each directory in flight |
//! | `policy` | the options of a run and the rules of the system, and the answers that need nothing else |
//! | `decide/mode` | the modes that dests are created with and end up with |
//! | `decide/settle` | what happens to a dest that exists |
//! | `decide/times` | whether a dest is older than its source, and what a filesystem makes of times |
//! | `mirror` | deletes what sources do not have, before anything is copied there: finds these names, and removes them |
//! | `context` | what all stages share: options, operands, descriptors and the report |
//! | `entry` | an entry: its names and directories, what is there, which rules apply to its dest, its paths, errors and events; an entry that is kept for later |
//! | `cycles` | directories whose copies would not end |
//! | `dest/` | creates or opens a dest file; the names that it has until it is complete |
//! | `dest/settling` | looks at dests, answers the questions of `decide/settle`, and unlinks or renames what is in the way |
//! | `dest/backup` | names backups, and renames dests to them and back |
//! | `content/` | moves content by the best possible way |
//! | `content/sparse` | finds the holes of a source, and leaves holes in a dest |
//! | `content/read_ahead` | lets the kernel read the source of a slow server ahead |
//! | `attributes` | sets times, owner, extended attributes, mode and ACLs, in the order of cp |
//! | `make/file` | copies regular files and the content of special files |
//! | `make/` | copies symbolic links, FIFOs, sockets and devices; makes links instead of copies; what a worker keeps from file to file |
//! | `make/unchanged` | links to the unchanged files of an older copy |
//! | `make/hardlink` | the table of sources with several names, and links to the first copy of each |
//! | `make/directory` | makes or opens the dests of directories, and finishes them |
//! | `changes` | makes the changes at the dests, or checks in a dry run whether they are permitted |
//! | `operand` | the operands: their sources and where their copies go; where relative paths are looked up; opens the directories on the way to a dest, one by one |
//! | `collisions` | two names that the filesystem of the dests takes for one; operands that name the same source or dest |
//! | `writers` | the dests that are being written, so that no two workers write one of them at once |
//! | `durability` | writes copies to the disk before the run ends |
//! | `parents` | makes the directories on the way to a dest, for `--parents` |
//! | `run` | one run, from its operands to its summary |
//! | `run/visitor` | the run, as the walk sees it: lists, enters and finishes directories |
//! | `run/pipeline` | leads one entry through the stages; links it to another copy; counts and reports each copy |
//! | `run/large` | which files are large, which of them are written and which wait |
//! | `run/sharing` | shares a copy with other engines |
//! | `run/durable` | which directories and filesystems are written to the disk |
//! | `run/verifying` | compares copies with their sources, in batches |
//! | `run/tasks` | what is queued besides directories: operands, and entries that are copied later |
//!
//! The public entry points are here: no module imports `run`. `decide` makes no system call. Only these touch a dest that was
//! there before the run, or that an earlier operand has made: `dest` and `changes` rename, replace, unlink or empty it, `content`
//! writes to it and cuts it, `attributes` changes its attributes, and `mirror` removes it. Three calls are elsewhere:
//! `make/directory` sets the time of access of a directory before it is filled, `dest/settling` gives a file another time for a
//! moment where times are coarse, and `run/verifying` unlinks a name of an older copy that differs. What other modules unlink or
//! cut was made by the run.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
use crate::observer::{Counts, Observer, Summary};
use crate::remove::Survey;
use crate::report::complete_or_first_failure;
use crate::setup::BaseDir;
use crate::sys::Symlinks;

mod attributes;
mod changes;
mod collisions;
mod content;
mod context;
mod cycles;
mod dest;
mod durability;
mod entry;
mod facts;
mod make;
mod mirror;
mod operand;
mod options;
mod parents;
mod policy;
mod run;
mod writers;

pub use options::{
    Backup, CopyOp, Deletion, Dereference, Dest, DestRules, LinkKind, ModePolicy, Preserve,
    Reflink, Replace, Sparse, Xattrs,
};

use run::CopyRun;

/// Decisions about a copy: facts in, a decision out. Nothing here makes a system call, reports
/// or changes anything. A fact that costs a stat comes as a closure, which is called if the
/// decision needs it.
mod decide {
    pub(super) mod mode;
    pub(super) mod settle;
    pub(super) mod times;
}

impl<'a> CopyOp<'a> {
    /// Looks up a dest that is a relative path in the open directory `dir`, not in the working directory.
    ///
    /// The errors of a copy from one open directory to another name paths in both; see [`Error::below_each`].
    ///
    /// ```
    /// use std::fs::{self, File};
    /// use std::sync::Mutex;
    /// use fuc_engine::{CopyOp, Dest};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// # let scratch = tempfile::tempdir()?;
    /// # let [from, to, moved] = ["from", "to", "moved"].map(|name| scratch.path().join(name));
    /// fs::create_dir_all(from.join("tree/sub"))?;
    /// fs::create_dir(&to)?;
    /// let (source_dir, dest_dir) = (File::open(&from)?, File::open(&to)?);
    /// fs::rename(&to, &moved)?;
    ///
    /// let failures = Mutex::new(Vec::new());
    /// let copy = CopyOp::new().in_dir(&source_dir).dest_in_dir(&dest_dir);
    /// let summary = copy.run(["tree".into()], &Dest::Exactly("copy".into()), &failures);
    /// assert!(summary.is_complete());
    /// assert!(moved.join("copy/sub").is_dir());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn dest_in_dir(mut self, dir: &'a impl AsFd) -> Self {
        self.dest_dir = BaseDir::Borrowed(dir.as_fd());
        self
    }

    /// Does the same as [`dest_in_dir`](Self::dest_in_dir) with a directory that the operation owns, alone or together with
    /// others.
    #[must_use]
    pub fn dest_in_owned_dir(mut self, dir: impl Into<Arc<OwnedFd>>) -> Self {
        self.dest_dir = BaseDir::Owned(dir.into());
        self
    }

    /// Lets threads that [`run`](Self::run) starts have private descriptor tables, so that they do not wait for each
    /// other at each `open` and `close`. They have none before Linux 6.9, in a sandbox, if the limit on open files is
    /// low, if the copy is [durable](Self::durable), or if stdout or stderr is a file on a server.
    #[cfg(feature = "private-tables")]
    #[doc(hidden)]
    #[must_use]
    pub fn private_tables(mut self, permit: crate::PrivateTables) -> Self {
        self.tables = Some(permit);
        self
    }

    /// Copies `source`, a directory with all its entries or anything else, to exactly `dest`.
    ///
    /// See [`copy_tree`] for what happens if `dest` exists. [`rules`](Self::rules) changes that.
    ///
    /// # Errors
    /// Returns the first entry that could not be copied. Everything else is still copied. Use
    /// [`run`](Self::run) to receive every failure. If nothing failed but the run was
    /// [cancelled](Self::cancelled_by), the error is [`Refusal::Cancelled`](crate::Refusal::Cancelled).
    pub fn copy(
        &self,
        source: impl AsRef<Path>,
        dest: impl Into<PathBuf>,
    ) -> Result<Summary, Error> {
        let dest = Dest::Exactly(dest.into());
        let source = source.as_ref();
        complete_or_first_failure(source, |failures| {
            self.run([source.to_path_buf()], &dest, failures)
        })
    }

    /// Copies the sources that an iterator yields, once it has yielded all of them.
    ///
    /// The result is the same as if the sources were copied one after the other. Nothing
    /// below a source or below a dest directory is reached through a symbolic link, with two
    /// exceptions: sources if [that is asked for](Dereference::Always), and an existing
    /// dest *file* that is a link to an existing file. It is written through, unless the run has
    /// made the directory that it is in. Modes are those of the sources, less the umask or as a
    /// default ACL in the dest says. Holes stay holes.
    ///
    /// # Errors
    /// Each entry that is not completely copied is given to `observer`, once, and counted in
    /// [`Summary::failures`]. The rest of the work is still done. A dest file whose copy
    /// failed holds the part that was written. If the run is [cancelled](Self::cancelled_by), an
    /// incomplete dest that it created is removed, and backups of unfinished dests are restored. A dest that existed
    /// before is a failure then: [`Refusal::LeftIncomplete`](crate::Refusal::LeftIncomplete).
    #[must_use = "only the summary and the observer say whether the run failed"]
    pub fn run(
        &self,
        sources: impl IntoIterator<Item = PathBuf>,
        dest: &Dest,
        observer: &dyn Observer,
    ) -> Summary {
        CopyRun::new(self, dest, observer).run(sources)
    }

    /// Counts the entries and bytes that a run on these sources would copy, and adds each to `counts` when it is found.
    /// Changes nothing.
    ///
    /// Dests are not looked at: sources that stay uncopied because of the [rules](Self::rules) count, too.
    /// Holes count like data. It may run beside the copy itself, and needs the calling thread only. Entries that
    /// cannot be looked at are not counted.
    ///
    /// Returns `true` if everything was counted. Returns `false` if it was [cancelled](Self::cancelled_by), or if
    /// all symbolic links are followed: then one entry may stand for any number of others. If hard links are kept,
    /// a file with several names counts once. Returns `false` if there are so many of them that some may count
    /// more than once.
    pub fn count(&self, sources: impl IntoIterator<Item = PathBuf>, counts: &Arc<Counts>) -> bool {
        let symlinks = match self.dereference {
            Dereference::Never => Symlinks::NoFollow,
            Dereference::Operands => Symlinks::Follow,
            Dereference::Always if self.recursive => return false,
            Dereference::Always => Symlinks::Follow,
        };
        let survey = Survey {
            setup: &self.setup,
            recursive: self.recursive,
            one_file_system: self.one_file_system,
            symlinks,
            content: self.counted_content(),
            skipped_directories: true,
        };
        survey.count(sources, counts)
    }
}

/// Copies `source`, a directory with all its entries or anything else, to exactly `dest`.
///
/// The directory that contains `dest` must exist. If `source` and `dest` are directories, the entries of `source`
/// are added to those of `dest`, and files with the same names are overwritten.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// # let [project, backup] = ["project", "backup"].map(|name| dir.path().join(name));
/// std::fs::create_dir_all(project.join("src"))?;
/// std::fs::write(project.join("src/main.rs"), "fn main() {}")?;
/// let summary = fuc_engine::copy_tree(&project, &backup)?;
/// assert_eq!((summary.files, summary.directories, summary.bytes), (1, 2, 12));
/// assert!(backup.join("src/main.rs").exists());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the first entry that could not be copied. Everything else is still copied.
/// [`CopyOp::run`] reports every failure.
pub fn copy_tree(source: impl AsRef<Path>, dest: impl Into<PathBuf>) -> Result<Summary, Error> {
    CopyOp::new().copy(source, dest)
}
