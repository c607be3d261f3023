//! The public trait [`Filter`], which chooses the entries that a run processes.

use std::ffi::{CStr, OsStr};
use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::paths;
use crate::sys::Fd;

/// Chooses the entries that a run processes, before the run looks at them.
///
/// Operands are not filtered, because the caller names them. Below them, the run asks about each entry that
/// it finds in a directory. It does not ask about the entries of a directory that it does not enter. If the run
/// lists a directory again because another process adds entries, it also asks again.
///
/// A verdict holds for the type that the filter was told. If another process replaces the entry by one of another
/// type, and the run notices that, it asks again. A removal cannot notice that a file has become a link or
/// anything else but a directory.
///
/// A closure is a filter, too:
///
/// ```
/// use std::sync::Mutex;
/// use fuc_engine::{Candidate, RemoveOp, Verdict};
///
/// # fn main() -> std::io::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// let tree = dir.path().join("tree");
/// std::fs::create_dir_all(tree.join("empty"))?;
/// std::fs::create_dir_all(tree.join("keep/sub"))?;
/// std::fs::write(tree.join("file"), "")?;
///
/// let filter = |entry: &Candidate<'_>| match entry.name().to_str() {
///     Some("keep") => Verdict::Prune,
///     _ => Verdict::Take,
/// };
/// let removal = RemoveOp::new().filtered_by(filter);
/// let summary = removal.run([tree.clone()], &Mutex::new(Vec::new()));
/// // `tree` stays because of `keep`. That is not a failure.
/// assert!(summary.is_complete());
/// assert_eq!(summary.entries, 2);
/// assert!(tree.join("keep/sub").exists());
/// # Ok(())
/// # }
/// ```
///
/// An `Arc<dyn Filter>` is one, too. So several operations can share a filter, or one that is chosen at run time.
///
/// The calls happen on the engine's threads, under the conditions that hold for an
/// [`Observer`](crate::Observer).
pub trait Filter: Send + Sync {
    /// Decides about an entry.
    fn verdict(&self, entry: &Candidate<'_>) -> Verdict;

    /// Returns the filter for the entries of a directory that the run has just opened, and for everything below
    /// them. The default returns `None`: this filter also decides there.
    ///
    /// The run drops the filter when the directory is finished.
    fn for_directory(&self, directory: &EnteredDirectory<'_>) -> Option<Arc<dyn Filter>> {
        let _ = directory;
        None
    }
}

impl<F: Fn(&Candidate<'_>) -> Verdict + Send + Sync> Filter for F {
    fn verdict(&self, entry: &Candidate<'_>) -> Verdict {
        self(entry)
    }
}

impl Filter for Arc<dyn Filter> {
    fn verdict(&self, entry: &Candidate<'_>) -> Verdict {
        (**self).verdict(entry)
    }

    fn for_directory(&self, directory: &EnteredDirectory<'_>) -> Option<Self> {
        (**self).for_directory(directory)
    }
}

/// The decision of a [`Filter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The entry is removed or copied. The filter is also asked about the entries of a directory.
    Take,
    /// The entry is left alone. A directory is entered nevertheless, and the filter is asked about its entries.
    ///
    /// A removal keeps the entry and all directories above it, without a failure. It asks the user no question
    /// about the entry, and about these directories only whether to enter them.
    ///
    /// A copy looks at no dest of a file. It makes the directory if its dest is missing, because the dests of the
    /// entries need it. If the dest is a directory, it keeps its attributes. Anything else at the dest is a failure, and
    /// stays even if [backups](crate::DestRules::backup) are made.
    ///
    /// It is a failure if the directory cannot be read, or if a removal with
    /// [`one_file_system`](crate::RemoveOp::one_file_system) finds it on another filesystem.
    Skip,
    /// The entry is left alone, and a directory is never opened. A copy does not look at its dest.
    ///
    /// A removal keeps the entry and all directories above it, without a failure.
    Prune,
}

/// Returns the path of a directory, or of a name in it, if the path of its operand is the first argument.
pub(crate) type PathBuilder<'a> = &'a dyn Fn(&Path, Option<&CStr>) -> PathBuf;

/// An entry of a directory that a [`Filter`] decides about.
pub struct Candidate<'a> {
    pub(crate) dir: BorrowedFd<'a>,
    pub(crate) name: &'a CStr,
    pub(crate) kind: FileType,
    pub(crate) operand: &'a Path,
    pub(crate) build_path: PathBuilder<'a>,
    /// Opens the entry to look at it.
    pub(crate) open: &'a dyn Fn() -> Result<Fd, Errno>,
}

impl Candidate<'_> {
    /// Returns the last component of the path.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        OsStr::from_bytes(self.name.to_bytes())
    }

    /// Returns `true` if the entry is a directory. If a copy follows symbolic links below its sources, a link to a
    /// directory is one, too.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.kind == FileType::Directory
    }

    /// Returns `true` if the entry is a regular file, or a link to one that a copy follows.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.kind == FileType::RegularFile
    }

    /// Returns `true` if the entry is a symbolic link that is not followed, or that leads nowhere.
    #[must_use]
    pub fn is_symlink(&self) -> bool {
        self.kind == FileType::Symlink
    }

    /// Looks at the entry: its size, times, owner and mode. If a copy follows a link, looks at the file that the link
    /// leads to.
    ///
    /// The entry is looked up in its open directory, so this is faster than [`std::fs::metadata`] of the
    /// [path](Self::path), and never leads elsewhere. It takes three system calls. The entry may be of another type
    /// by then, if another process has replaced it.
    ///
    /// # Errors
    /// Fails if the entry no longer exists, or if its directory must not be searched.
    pub fn metadata(&self) -> io::Result<Metadata> {
        File::from((self.open)()?).metadata()
    }

    /// Returns the number of components below the operand: 1 for an entry of the operand itself.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.path_below_operand().components().count()
    }

    /// Builds the path: that of the operand, and the names below it.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        (self.build_path)(self.operand, Some(self.name))
    }

    /// Builds the path relative to the operand.
    #[must_use]
    pub fn path_below_operand(&self) -> PathBuf {
        (self.build_path)(Path::new(""), Some(self.name))
    }
}

impl fmt::Debug for Candidate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate")
            .field("path", &self.path())
            .field("kind", &self.kind)
            .finish()
    }
}

/// A directory that a run has opened and will list next. In a copy, it is the source.
pub struct EnteredDirectory<'a> {
    /// Opens an entry. The directory itself is not lent, because its descriptor has the offset of the listing.
    pub(crate) open: &'a dyn Fn(&CStr) -> Result<Fd, Errno>,
    pub(crate) operand: &'a Path,
    pub(crate) build_path: PathBuilder<'a>,
}

impl EnteredDirectory<'_> {
    /// Opens an entry of the directory to read it, or the directory itself if `name` is `.`.
    ///
    /// The directory is the one that the run lists, even if another process has renamed it. Opening a FIFO does not
    /// wait for a writer.
    ///
    /// # Errors
    /// Returns the reason why the kernel does not open it, which is `ELOOP` for a symbolic link.
    pub fn open(&self, name: impl AsRef<Path>) -> io::Result<File> {
        let opened = paths::to_c(name.as_ref()).and_then(|name| (self.open)(&name));
        Ok(File::from(opened?))
    }

    /// Builds the path: that of the operand, and the names below it.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        (self.build_path)(self.operand, None)
    }

    /// Builds the path relative to the operand. It is empty for the operand itself.
    #[must_use]
    pub fn path_below_operand(&self) -> PathBuf {
        (self.build_path)(Path::new(""), None)
    }
}

impl fmt::Debug for EnteredDirectory<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EnteredDirectory")
            .field(&self.path())
            .finish()
    }
}
