//! The public face of a copy.

use std::ffi::CString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::preserve::Preserve;
use super::rules::DestRules;
use super::tree::Copying;
use crate::error::Error;
use crate::observer::{Observer, Summary};

/// Where copies go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dest {
    /// Into this existing directory, each source under its own last component.
    Into(PathBuf),
    /// To exactly this path. A directory is merged into one that is there.
    Exactly(PathBuf),
}

/// Which symbolic links of a source are followed. Those that are not are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dereference {
    /// None.
    Never,
    /// Those that are a source themselves.
    Operands,
    /// All of them. One that leads to a directory around it is
    /// [refused](crate::Refusal::CyclicSymlink).
    Always,
}

/// What is made instead of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// A further name of the source.
    Hard,
    /// A symbolic link that says the path of the source. If that is relative,
    /// only in the working directory.
    Symbolic,
}

/// Whether a copy shares blocks with its source until one of them is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reflink {
    /// Where the filesystem can do it, and [`Sparse::Auto`] leaves it the choice.
    Auto,
    /// Or it is a failure; a dest that was not there before is unlinked again.
    Always,
    /// Nowhere.
    Never,
}

/// Which holes a copy has: blocks that read as zeros and take no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sparse {
    /// Those of the source.
    Auto,
    /// As many as can be: wherever a block of the source has only zeros.
    Always,
    /// None.
    Never,
}

/// How a copy goes. [`Default`] copies directories whole, as `cp -r` does.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CopyOptions {
    /// Copy directories with all that is in them, and FIFOs, sockets and
    /// devices as what they are. Without it a directory is
    /// [refused](crate::Refusal::NotRecursive), and the content of anything
    /// else is read.
    pub recursive: bool,
    /// Which symbolic links in a source stand for what they link to.
    pub dereference: Dereference,
    /// Leave out what is in a directory on another filesystem than its parent;
    /// the directory itself is made.
    pub one_file_system: bool,
    /// Read the content of FIFOs and devices even if recursive. That waits for
    /// whoever writes to a FIFO.
    pub copy_contents: bool,
    /// Make links to all that is no directory, instead of copies.
    pub as_links: Option<LinkKind>,
    /// Whether a copy shares the blocks of its source.
    pub reflink: Reflink,
    /// Which holes a copy has.
    pub sparse: Sparse,
    /// A dest file that cannot be opened for writing is unlinked and made anew.
    pub force: bool,
    /// What becomes of dests that exist.
    pub rules: DestRules,
    /// In [`Dest::Into`], each source gets its whole path, not only its last
    /// component: directories on the way are made as the source's are.
    pub parents: bool,
    /// What of a source, beside its content, its copy has too. Nothing by default.
    pub preserve: Preserve,
    /// The SELinux context of all that is copied, instead of that of its source. A file has it
    /// before its content, a directory after. What cannot have it is a failure.
    pub context: Option<CString>,
    /// Copy no content: a dest file that is there keeps its own, a new one is empty.
    pub attributes_only: bool,
    /// Threads at most, the caller's own included. `None`: as many as the
    /// process has cores to run on, or four times as many (32 at most) where
    /// they wait for a disk or a server. Fewer where they do not pay, where a
    /// thread is refused, or where the limit on open descriptors is low (one
    /// for each 12); a small tree never starts one.
    pub threads: Option<NonZeroUsize>,
}

impl Default for CopyOptions {
    fn default() -> Self {
        Self {
            recursive: true,
            dereference: Dereference::Never,
            one_file_system: false,
            copy_contents: false,
            as_links: None,
            reflink: Reflink::Auto,
            sparse: Sparse::Auto,
            force: false,
            rules: DestRules::default(),
            parents: false,
            preserve: Preserve::default(),
            context: None,
            attributes_only: false,
            threads: None,
        }
    }
}

impl CopyOptions {
    /// Whether a copy is to be given anything once its content is there.
    pub(super) fn needs_a_finish(&self) -> bool {
        self.preserve.needs_a_finish() || self.context.is_some()
    }
}

/// A copy, ready to run on any number of sources.
///
/// ```
/// use std::sync::Mutex;
/// use fuc_engine::{CopyOp, CopyOptions, Dest};
///
/// # fn main() -> std::io::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// let source = dir.path().join("source");
/// std::fs::create_dir_all(source.join("sub"))?;
/// std::fs::write(source.join("sub/file"), "content")?;
///
/// let failures = Mutex::new(Vec::new());
/// let dest = Dest::Exactly(dir.path().join("dest"));
/// let summary = CopyOp::new(CopyOptions::default()).run([&source], &dest, &failures);
/// assert!(summary.is_complete());
/// assert_eq!((summary.entries, summary.bytes), (3, 7));
/// assert_eq!(std::fs::read(dir.path().join("dest/sub/file"))?, b"content");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct CopyOp {
    options: CopyOptions,
}

impl CopyOp {
    /// A copy with these options.
    #[must_use]
    pub fn new(options: CopyOptions) -> Self {
        Self { options }
    }

    /// Copies the sources.
    ///
    /// They take effect as if they were copied one after the other. Nothing
    /// below a source or below a dest directory is reached through a symbolic
    /// link, but for two cases: sources [where that is asked for](Dereference::Always),
    /// and an existing dest *file* that is a link to an existing file, which is
    /// written through. Modes are those of the sources, less
    /// the umask (or as a default ACL in the dest says); holes stay holes.
    ///
    /// # Errors
    /// Each entry that is not completely copied is given to `observer`, once,
    /// and counted in [`Summary::failures`]; the rest of the work is done all
    /// the same. A dest file whose copying failed half-way holds what was written.
    pub fn run<P: AsRef<Path>>(
        &self,
        sources: impl IntoIterator<Item = P>,
        dest: &Dest,
        observer: &dyn Observer,
    ) -> Summary {
        Copying::new(&self.options, dest, observer).run(sources)
    }
}

/// Copies `source`, a directory with all that is in it or anything else, to `dest`.
///
/// # Errors
/// The first entry that could not be copied. Everything that can be copied is,
/// nevertheless; [`CopyOp::run`] tells of every failure.
pub fn copy_tree(source: impl AsRef<Path>, dest: impl Into<PathBuf>) -> Result<Summary, Error> {
    let failures = Mutex::new(Vec::new());
    let summary = CopyOp::default().run([source], &Dest::Exactly(dest.into()), &failures);
    let failures = failures
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    failures.into_iter().next().map_or(Ok(summary), Err)
}
