//! The public entry points of a copy.

use std::ffi::CString;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bases::Bases;
use super::options::{
    CopyOptions, Dereference, Dest, DestRules, LinkKind, Preserve, Reflink, Sparse,
};
use super::run::CopyRun;
use crate::cancel::Cancel;
use crate::count::{self, Survey};
use crate::distribute::Exchange;
use crate::error::Error;
use crate::execution::Execution;
use crate::filter::{Filter, SharedFilter};
use crate::observer::{Counts, Observer, Summary};
use crate::report::{Report, complete_or_first_failure};
use crate::setters::setters;
use crate::sys::{CWD, PrivateTables, Symlinks};
use crate::walk::Part;

/// Copies any number of sources.
///
/// ```
/// use std::sync::Mutex;
/// use fuc_engine::{CopyOp, Dest, Preserve};
///
/// # fn main() -> std::io::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// let source = dir.path().join("source");
/// std::fs::create_dir_all(source.join("sub"))?;
/// std::fs::write(source.join("sub/file"), "content")?;
///
/// let failures = Mutex::new(Vec::new());
/// let dest = Dest::Exactly(dir.path().join("dest"));
/// let copy = CopyOp::new().preserve(Preserve::all()).threads(4);
/// let summary = copy.run([&source], &dest, &failures);
/// assert!(summary.is_complete());
/// assert_eq!((summary.entries, summary.bytes), (3, 7));
/// assert_eq!(std::fs::read(dir.path().join("dest/sub/file"))?, b"content");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct CopyOp {
    options: CopyOptions,
    cancel: Option<Cancel>,
    filter: Option<SharedFilter>,
    tables: Option<PrivateTables>,
}

impl CopyOp {
    /// Creates a copy with the default options: it copies whole directories, as `cp -r` does.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a copy with these options.
    #[must_use]
    pub fn with_options(options: CopyOptions) -> Self {
        Self {
            options,
            cancel: None,
            filter: None,
            tables: None,
        }
    }

    setters! { CopyOptions in options:
        /// Says whether directories are copied with their entries.
        recursive: bool,
        /// Selects the symbolic links that are followed.
        dereference: Dereference,
        /// Says whether directories on another filesystem than their parent are left empty.
        one_file_system: bool,
        /// Says whether the content of FIFOs and devices is read.
        copy_contents: bool,
        /// Selects the links that are made instead of copies, if it is not `None`.
        as_links: Option<LinkKind>,
        /// Says whether a copy shares the blocks of its source.
        reflink: Reflink,
        /// Selects the holes of a copy.
        sparse: Sparse,
        /// Says whether a dest that cannot be written to is unlinked and created anew.
        force: bool,
        /// Sets the rules for dests that exist.
        rules: DestRules,
        /// Says whether the whole path of each source is appended to [`Dest::Into`].
        parents: bool,
        /// Selects the attributes that a copy gets from its source.
        preserve: Preserve,
        /// Sets the SELinux context of all copies, if it is not `None`.
        context: Option<CString>,
        /// Says whether only attributes are copied, and no content.
        attributes_only: bool,
        /// Says whether each new file is opened and closed, even if it is empty.
        closes_empty_files: bool,
        /// Says whether everything is written to the disk before the run returns.
        durable: bool,
        /// Says whether each copy is compared with its source.
        verify: bool,
        /// Says whether anything is copied.
        execution: Execution,
    }

    /// Limits the number of threads, which includes the caller's. With 0, the engine chooses the number.
    ///
    /// Sets [`CopyOptions::threads`].
    #[must_use]
    pub fn threads(mut self, most: usize) -> Self {
        self.options.threads = NonZeroUsize::new(most);
        self
    }

    /// Divides files of at least this many bytes among several engines. With 0, the engines choose the files.
    ///
    /// Sets [`CopyOptions::divide_from`].
    #[must_use]
    pub fn divide_from(mut self, bytes: usize) -> Self {
        self.options.divide_from = NonZeroUsize::new(bytes);
        self
    }

    /// Lets `cancel` stop the runs of this copy.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Lets threads that [`run`](Self::run) starts have private descriptor tables, so that they do not wait for each
    /// other at each `open` and `close`. They have none before Linux 6.9, in a sandbox, if the limit on open files is
    /// low, if the copy is [durable](Self::durable), or if stdout or stderr is a file on a server.
    #[must_use]
    pub fn private_tables(mut self, permit: PrivateTables) -> Self {
        self.tables = Some(permit);
        self
    }

    /// Copies `source`, a directory with all its entries or anything else, to exactly `dest`.
    ///
    /// See [`copy_tree`] for what happens if `dest` exists. [`rules`](Self::rules) changes that. A
    /// [cancelled](Self::cancelled_by) run is not a failure: look at [`Summary::cancelled`].
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
        complete_or_first_failure(source, |failures| self.run([source], &dest, failures))
    }

    /// Lets `filter` choose the entries that are copied.
    ///
    /// The dest of an entry that is not taken stays as it is. The run does not even look at it, except at that of a
    /// directory that is [skipped](crate::Verdict::Skip). Clones of this operation share the filter.
    #[must_use]
    pub fn filtered_by(mut self, filter: Arc<dyn Filter>) -> Self {
        self.filter = Some(SharedFilter(filter));
        self
    }

    /// Copies the sources.
    ///
    /// The result is the same as if the sources were copied one after the other. Nothing
    /// below a source or below a dest directory is reached through a symbolic link, with two
    /// exceptions: sources if [that is asked for](crate::Dereference::Always), and an existing
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
    ///
    /// # Sources
    /// The sources are an array, a slice or a vector. A single path is not accepted, because a path is a
    /// sequence of its components: `/home/me/src` would be `/`, `home`, `me` and `src`.
    ///
    /// ```compile_fail,E0277
    /// # use std::{path::Path, sync::Mutex};
    /// # use fuc_engine::{CopyOp, Dest};
    /// let dest = Dest::Exactly("/home/me/copy".into());
    /// CopyOp::new().run(Path::new("/home/me/src"), &dest, &Mutex::new(Vec::new()));
    /// ```
    #[must_use = "only the summary and the observer say whether the run failed"]
    pub fn run<P: AsRef<Path>>(
        &self,
        sources: impl AsRef<[P]>,
        dest: &Dest,
        observer: &dyn Observer,
    ) -> Summary {
        self.run_in(CWD, sources, CWD, dest, observer)
    }

    /// Copies the sources as [`run`](Self::run) does, but looks up relative paths in open directories
    /// instead of the working directory: sources in `source_dir`, and `dest` in `dest_dir`.
    ///
    /// The directories may be renamed or replaced by others at any time: only the open ones matter. Errors and
    /// events have the paths as given; see [`Error::below_each`].
    ///
    /// ```
    /// use std::fs::{self, File};
    /// use std::path::PathBuf;
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
    /// let dest = Dest::Exactly(PathBuf::from("copy"));
    /// let summary = CopyOp::new().run_in(&source_dir, ["tree"], &dest_dir, &dest, &failures);
    /// assert!(summary.is_complete());
    /// assert!(moved.join("copy/sub").is_dir());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As with [`run`](Self::run).
    #[must_use = "only the summary and the observer say whether the run failed"]
    pub fn run_in<P: AsRef<Path>>(
        &self,
        source_dir: impl AsFd,
        sources: impl AsRef<[P]>,
        dest_dir: impl AsFd,
        dest: &Dest,
        observer: &dyn Observer,
    ) -> Summary {
        let bases = Bases {
            source: source_dir.as_fd(),
            dest: dest_dir.as_fd(),
        };
        let report = Report::new(observer, self.cancel.clone());
        let run = CopyRun::new(&self.options, bases, dest, report, self.filter.clone());
        run.with_private_tables(self.tables).run(sources)
    }

    /// Copies the sources as [`run`](Self::run) does, and shares the work with other engines. They call
    /// [`assist`](Self::assist) with the same sources, dest and options.
    ///
    /// Each engine reports the failures and events that it meets, and its own part of the summary. The order
    /// of the sources holds for this engine's reports only. Questions, too, come from every engine and
    /// in no order.
    ///
    /// - Each engine verifies what it has copied, and writes it to the disk if the copy is
    ///   [durable](Self::durable).
    /// - A file with several names is copied by the engine that is its [home](Exchange::home).
    /// - Files that are overwritten in place are written one after the other by each engine, not by all of them. So
    ///   after SIGKILL, as many files may be incomplete as there are engines.
    /// - Each engine knows only its own large files when it looks for free space.
    /// - A dry run is not shared.
    ///
    /// # Panics
    /// If the system refuses the thread that talks to the other engines.
    #[must_use = "only the summary and the observer say whether the run failed"]
    pub fn lead<P: AsRef<Path>>(
        &self,
        sources: impl AsRef<[P]>,
        dest: &Dest,
        observer: &dyn Observer,
        exchange: &dyn Exchange,
    ) -> Summary {
        self.run_shared(Part::Leader, sources, dest, observer, exchange)
    }

    /// Takes part in a copy that another engine [leads](Self::lead), until the exchange ends it.
    ///
    /// A relative path must name the same directory for each engine. If it does not, this engine gives the work
    /// back undone.
    ///
    /// # Panics
    /// If the system refuses the thread that talks to the other engines.
    #[must_use = "only the summary and the observer say whether the run failed"]
    pub fn assist<P: AsRef<Path>>(
        &self,
        sources: impl AsRef<[P]>,
        dest: &Dest,
        observer: &dyn Observer,
        exchange: &dyn Exchange,
    ) -> Summary {
        self.run_shared(Part::Assistant, sources, dest, observer, exchange)
    }

    fn run_shared<P: AsRef<Path>>(
        &self,
        part: Part,
        sources: impl AsRef<[P]>,
        dest: &Dest,
        observer: &dyn Observer,
        exchange: &dyn Exchange,
    ) -> Summary {
        let bases = Bases {
            source: CWD,
            dest: CWD,
        };
        let report = Report::new(observer, self.cancel.clone());
        let run = CopyRun::new(&self.options, bases, dest, report, self.filter.clone());
        run.shared(exchange, part).run(sources)
    }

    /// Counts the entries and bytes that a run on these sources would copy, and adds them to `counts`.
    /// Changes nothing.
    ///
    /// Dests are not looked at: sources that stay uncopied because of the [rules](crate::DestRules) count, too.
    /// Holes count like data. It may run beside the copy itself, and needs the calling thread only. Entries that
    /// cannot be looked at are not counted.
    ///
    /// Returns `true` if everything was counted. Returns `false` if it was [cancelled](Self::cancelled_by), or if
    /// all symbolic links are followed: then one entry may stand for any number of others. If hard links are kept,
    /// a file with several names counts once. Returns `false` if there are so many of them that some may count
    /// more than once.
    pub fn count<P: AsRef<Path>>(&self, sources: impl AsRef<[P]>, counts: &Counts) -> bool {
        self.count_in(CWD, sources, counts)
    }

    /// Counts as [`count`](Self::count) does, but looks up relative paths in the open directory `dir` instead
    /// of the working directory.
    pub fn count_in<P: AsRef<Path>>(
        &self,
        dir: impl AsFd,
        sources: impl AsRef<[P]>,
        counts: &Counts,
    ) -> bool {
        let options = &self.options;
        let operands = match options.dereference {
            Dereference::Never => Symlinks::NoFollow,
            Dereference::Operands => Symlinks::Follow,
            Dereference::Always if options.recursive => return false,
            Dereference::Always => Symlinks::Follow,
        };
        let survey = Survey {
            base: dir.as_fd(),
            recursive: options.recursive,
            one_file_system: options.one_file_system,
            operands,
            content: options.counted_content(),
            skipped_directories: true,
            filter: self.filter.clone(),
        };
        count::count(survey, sources.as_ref(), counts, self.cancel.clone())
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
