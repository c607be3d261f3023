//! Trees for tests. [`Tree`] builds them entry by entry, generators make deep and wide ones, and [`Scratch`]
//! is a directory that is removed after the test.
//!
//! ```
//! use testkit::tree::{Scratch, Tree};
//!
//! let scratch = Scratch::new();
//! Tree::at(scratch.path())
//!     .file("a/b", b"content").mode(0o640)
//!     .dir("empty")
//!     .symlink("link", "a/b")
//!     .fifo("pipe");
//! ```

use std::{
    env,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use rustix::fs::{Access, XattrFlags, access, lsetxattr};

use crate::util::note;

pub use builder::Tree;
pub use generators::{chain, comb, odd_names, sparse_dirs, wide, wide_dirs};
pub use noise::noise;
pub use removal::remove_for_sure;
pub use words::plant;

pub(crate) use builder::OMIT;

pub(crate) mod acl;
mod builder;
mod generators;
mod noise;
mod removal;
pub(crate) mod words;

/// A temporary directory of mode 755 that is removed on drop, even if it is 100,000 levels deep or has no
/// permissions. (`TempDir` of the crate tempfile runs out of descriptors in a deep tree.)
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes a directory in [`place`].
    #[must_use]
    #[track_caller]
    pub fn new() -> Self {
        Self::new_in(&place())
    }

    /// Makes a directory in [`place`] with the entries that `words` name, as the function [`plant`] explains.
    #[must_use]
    #[track_caller]
    pub fn with(words: impl AsRef<str>) -> Self {
        let scratch = Self::new();
        scratch.plant(words);
        scratch
    }

    /// Makes a directory in `parent`, for a test on a certain filesystem.
    ///
    /// # Panics
    /// Panics if it can't be made.
    #[must_use]
    #[track_caller]
    pub fn new_in(parent: &Path) -> Self {
        let made = tempfile::Builder::new()
            .prefix("testkit-")
            .tempdir_in(parent);
        let path = match made {
            Ok(dir) => dir.keep(),
            Err(e) => panic!("no scratch directory in {}: {e}", parent.display()),
        };
        Tree::at(&path).mode(0o755);
        Self { path }
    }

    /// Makes a directory in [`memory`].
    #[must_use]
    #[track_caller]
    pub fn in_memory() -> Self {
        Self::new_in(&memory())
    }

    /// Returns the path, which is absolute if that of the parent was.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of an entry.
    #[must_use]
    pub fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// Adds the entries that `words` name, as the function [`plant`] explains.
    #[track_caller]
    pub fn plant(&self, words: impl AsRef<str>) {
        Tree::at(self).plant(words);
    }
}

/// Returns the directory in which tests make their trees: that of `TMPDIR`, or else one in memory if it has ACLs and
/// extended attributes, or else the one of temporary files. In memory, they take a third of the processor time.
#[must_use]
pub fn place() -> PathBuf {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    let choose = || {
        let has_attributes = || supports_xattrs(&memory()) && supports_acls(&memory());
        match env::var_os("TMPDIR").is_none() && has_attributes() {
            true => memory(),
            false => env::temp_dir(),
        }
    };
    PLACE.get_or_init(choose).clone()
}

/// Returns `true` if files in `dir` can have extended attributes such as `user.note`.
#[must_use]
pub fn supports_xattrs(dir: &Path) -> bool {
    let scratch = Scratch::new_in(dir);
    lsetxattr(scratch.path(), "user.probe", b"", XattrFlags::empty()).is_ok()
}

/// Returns `true` if files in `dir` can have ACLs.
#[must_use]
pub fn supports_acls(dir: &Path) -> bool {
    acl::add(Scratch::new_in(dir).path(), "u:1:rwx").is_ok()
}

/// Returns `/dev/shm`, a directory in memory, or [`env::temp_dir`] if there is none. It is for trees of
/// 100,000 entries: deleting a chain of that depth takes 3 s there and 20 s on ext4.
#[must_use]
pub fn memory() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if access(memory, Access::WRITE_OK | Access::EXEC_OK).is_ok() {
        memory.to_owned()
    } else {
        env::temp_dir()
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl AsRef<Path> for Scratch {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Do not panic: the test may be failing already, and a second panic would hide the first.
        if let Err(e) = remove_for_sure(&self.path) {
            note(&format!("left behind: {}: {e}", self.path.display()));
        }
    }
}
