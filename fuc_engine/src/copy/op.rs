//! The public entry points of a copy.

use std::path::{Path, PathBuf};

use super::options::{CopyOptions, Dest};
use super::run::CopyRun;
use crate::cancel::Cancel;
use crate::error::Error;
use crate::observer::{Observer, Summary};
use crate::report::{Report, summary_or_first_failure};

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
    cancel: Option<Cancel>,
}

impl CopyOp {
    /// Creates a copy with these options.
    #[must_use]
    pub fn new(options: CopyOptions) -> Self {
        Self {
            options,
            cancel: None,
        }
    }

    /// Lets `cancel` stop the runs of this copy.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: Cancel) -> Self {
        self.cancel = Some(cancel);
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
    /// incomplete dest that it created is removed, and backups of unfinished dests are restored.
    pub fn run<P: AsRef<Path>>(
        &self,
        sources: impl IntoIterator<Item = P>,
        dest: &Dest,
        observer: &dyn Observer,
    ) -> Summary {
        let report = Report::new(observer, self.cancel.clone());
        CopyRun::new(&self.options, dest, report).run(sources)
    }
}

/// Copies `source`, a directory with all its entries or anything else, to `dest`.
///
/// # Errors
/// Returns the first entry that could not be copied. Everything else is still copied.
/// [`CopyOp::run`] reports every failure.
pub fn copy_tree(source: impl AsRef<Path>, dest: impl Into<PathBuf>) -> Result<Summary, Error> {
    let dest = Dest::Exactly(dest.into());
    summary_or_first_failure(|failures| CopyOp::default().run([source], &dest, failures))
}
