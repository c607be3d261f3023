//! A FUSE filesystem in this process. It stores everything in a directory of another filesystem, and by
//! default it behaves well. Each bad habit of the filesystems that people have is a field of [`Habits`].
//!
//! ```no_run
//! use testkit::{or_skip, probe::{Errno, FuseMount, Habits}, tree::Tree};
//!
//! fn copies_although_no_mode_can_be_set() {
//!     let mount = or_skip!(FuseMount::with(Habits {
//!         chmod: Some(Errno::PERM),
//!         ..Habits::default()
//!     }));
//!     Tree::at(mount.path()).file("f", b"content");
//!     assert!(mount.stored().join("f").exists());
//! }
//! ```

use std::{
    ops::RangeInclusive,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use fuser::{BackgroundSession, Config, FileType, MountOption, SessionACL};
use rustix::io::Errno;

use super::{Skip, mount::unmount, need_root};
use crate::tree::Scratch;

use server::Server;

mod replies;
mod requests;
mod server;
mod tables;

/// The bad habits of a [`FuseMount`]. By default it has none.
///
/// A field that holds an [`Errno`] is named after the operation that fails with it.
#[derive(Clone, Debug, Default)]
pub struct Habits {
    /// The inode numbers that `stat` and listings show.
    pub numbering: Numbering,
    /// Which names are taken for the same.
    pub names: Names,
    /// When `unlink` and `rmdir` fail.
    pub removal: Removal,

    /// Every extended attribute is stored as bytes without a meaning. For example, an ACL does not
    /// change the mode.
    pub meaningless_xattrs: bool,
    /// `setxattr` and `removexattr` of `system.posix_acl_*`.
    pub set_acl: Option<Errno>,
    /// The mode of an entry is shown as an ACL, too.
    pub mode_as_acl: bool,
    /// `getxattr` of `system.*`. Lists of attributes are empty then.
    pub get_system_xattr: Option<Errno>,

    /// `chmod`.
    pub chmod: Option<Errno>,
    /// `chown`.
    pub chown: Option<Errno>,
    /// `listxattr`.
    pub list_xattrs: Option<Errno>,
    /// `statfs`.
    pub statfs: Option<Errno>,
    /// `link`.
    pub link: Option<Errno>,
    /// `symlink`.
    pub symlink: Option<Errno>,
    /// `mknod`.
    pub mknod: Option<Errno>,
    /// `rename`.
    pub rename: Option<Errno>,
    /// `rename` of a directory.
    pub rename_directory: Option<Errno>,
    /// `rename` onto a name that exists.
    pub rename_over: Option<Errno>,
    /// Making an entry with a colon in its name, also by `rename`.
    pub colon: Option<Errno>,
    /// `mkdir`, after it has made the directory.
    pub after_mkdir: Option<Errno>,
    /// `unlink`, after it has removed the name.
    pub after_unlink: Option<Errno>,
    /// `unlink` of an entry that its owner may not write to.
    pub unlink_readonly: Option<Errno>,
    /// `open` that creates a file to which its owner may not write. The file is there afterwards.
    pub create_readonly: Option<Errno>,
    /// `unlink`, `rmdir` and `rename` of open files and directories, and `rename` onto them. The server answers one request
    /// at a time then.
    pub busy: Option<Errno>,
    /// `utimensat`.
    pub utimens: Option<Errno>,
    /// `truncate` and `ftruncate`, but not `open` with `O_TRUNC`.
    pub truncate: Option<Errno>,
    /// `lseek` with `SEEK_DATA` or `SEEK_HOLE`. After `NOSYS` the kernel shows files without holes.
    pub seek: Option<Errno>,
    /// `copy_file_range`. By default the server lacks it, and the kernel reads and writes.
    pub copy_file_range: Option<Errno>,
    /// `opendir` of directories with a name that begins with `bad`.
    pub opendir: Option<Errno>,
    /// Listing a directory with a name that begins with `bad`, after it was opened.
    pub readdir: Option<Errno>,
    /// `open` of an existing file for writing, except with `O_TRUNC`.
    pub open_untruncated: Option<Errno>,
    /// `open` of an existing file for writing with `O_TRUNC`.
    pub open_truncated: Option<Errno>,
    /// `open` of an existing file with `O_NONBLOCK`.
    pub open_nonblocking: Option<Errno>,
    /// `read` of a file.
    pub read: Option<Errno>,
    /// `read` of a file while it has `O_NONBLOCK`.
    pub read_nonblocking: Option<Errno>,
    /// `close` of a file.
    pub flush: Option<Errno>,
    /// `fsync`. By default the server lacks it, and it succeeds.
    pub fsync: Option<Errno>,
    /// Writing a page of a file. The kernel keeps what processes write, and writes it later.
    pub write_back: Option<Errno>,
    /// `read` of a file that was opened with `O_DIRECT`, even if the flag is taken away later.
    pub direct_read: Option<Errno>,

    /// The kernel trusts names and attributes for so long, like the client of a server. Listings bring attributes along
    /// then, and only the owner of the mount may use it: for a check of permissions, the kernel would ask for attributes
    /// again. Any number of requests up to 128 can wait at once.
    pub client_caches: Duration,
    /// The first `fstat` takes so long for entries with a name that begins with `late`. It does not go with
    /// [`Removal::Hesitant`].
    pub first_look: Duration,
    /// Transfers so many bytes per second in each direction, one request after the other.
    pub bandwidth: Option<u64>,
    /// A `read` that reaches beyond this offset fails with `EIO`.
    pub unreadable_from: Option<u64>,
    /// A `write` takes at most so many bytes.
    pub longest_write: Option<usize>,
    /// A file that is open for writing cannot seek: `lseek`, `pread` and `pwrite` fail with `ESPIPE`.
    pub nonseekable: bool,
    /// All files seem to have 0 bytes, as in procfs, but have content.
    pub hidden_sizes: bool,

    /// Times other than `ctime` are multiples of so many seconds. With 0, they are exact.
    pub time_step_seconds: i64,
    /// Times other than `ctime` are moved into this range of seconds since 1970.
    pub time_range: Option<RangeInclusive<i64>>,
    /// Nothing happens if only one of the times is set, as on servers with version 2 of libfuse.
    pub lone_times_ignored: bool,
    /// `statfs` says 0 for everything, also for the length of names and for the size of a block.
    pub zero_statfs: bool,
    /// No entry has any links.
    pub zero_links: bool,
    /// No file takes any blocks.
    pub zero_blocks: bool,
    /// The size of a block that `stat` shows. The kernel rounds it down to a power of two.
    pub block_bytes: Option<u32>,
    /// The time of modification is set when a file is closed that was open for writing.
    pub close_sets_time: bool,
    /// A directory vanishes with its last entry, as on stores of objects.
    pub implicit_directories: bool,
    /// Listings claim that entries have this type, if their name begins with `odd`.
    pub listed_type: Option<FileType>,
    /// Listings that go on after a removal skip entries.
    pub skipping_lists: bool,
}

impl Habits {
    fn is_client(&self) -> bool {
        !self.client_caches.is_zero()
    }
}

/// The inode numbers that a [`FuseMount`] shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbering {
    /// Hard links have the same number, which belongs to their file.
    #[default]
    True,
    /// Each path has a number of its own until it is removed, as on sshfs. The hard links of a file have
    /// different numbers.
    Lasting,
    /// As [`Lasting`](Self::Lasting), but a file gets a new number when a hard link to it is made. This stands
    /// for a kernel that forgets the inode because it is short of memory.
    Forgetful,
    /// All entries but directories have the same number and two links.
    Equal,
    /// All directories have the same number.
    EqualDirectories,
    /// All entries have the number 0, and directories have no links.
    Zero,
    /// Each `stat` shows a new number.
    Fresh,
}

/// The way in which a [`FuseMount`] changes names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// They are kept.
    #[default]
    Kept,
    /// They are stored in lower case, so `A` and `a` are one name.
    LowerCase,
    /// They are stored without the bytes beyond this length.
    Cut(usize),
    /// Longer ones are refused, and `statfs` shows this limit.
    Limited(usize),
    /// They are stored without the dots and spaces at their end.
    Trimmed,
    /// An `é` of one character is stored as the two characters that Unicode decomposes it to.
    Decomposed,
}

/// When `unlink` and `rmdir` fail on a [`FuseMount`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Removal {
    /// When they should.
    #[default]
    Honest,
    /// Also until this time has passed since a success.
    Pausing(Errno, Duration),
    /// Also at the first attempt for each path.
    Hesitant(Errno),
    /// Also `rmdir` until this time has passed since the last removal in the directory.
    Settling(Errno, Duration),
    /// `unlink` of a name that begins with `open` only renames it, and what it is renamed to cannot be removed. NFS does so
    /// while another process has the file open.
    Silly,
}

/// A mounted FUSE filesystem, which is unmounted when this is dropped.
#[derive(Debug)]
pub struct FuseMount {
    // Fields are dropped in this order: the server ends before its directories are removed.
    _session: BackgroundSession,
    latency_micros: Arc<AtomicU64>,
    point: PathBuf,
    stored: PathBuf,
    /// The directories that were made for it.
    made: Option<[Scratch; 2]>,
}

/// Threads of a server with clients, and so the most requests that wait at once.
const MOST_WAITING: usize = 128;

impl FuseMount {
    /// Mounts an empty filesystem with these habits. Several threads of this process serve it, and every user
    /// may use it. Attributes and names are not cached, unless [`Habits::client_caches`] says so.
    ///
    /// # Errors
    /// Fails without root, or if the kernel refuses the mount.
    pub fn with(habits: Habits) -> Result<Self, Skip> {
        let made = [Scratch::new(), Scratch::in_memory()];
        let mut mount = Self::over(made[1].path(), made[0].path(), habits)?;
        mount.made = Some(made);
        Ok(mount)
    }

    /// Does the same at an existing directory, with the content of another one. Both stay. If several mounts have the same
    /// content, each is a client of one server.
    ///
    /// # Errors
    /// Fails without root, or if the kernel refuses the mount.
    pub fn over(stored: &Path, point: &Path, habits: Habits) -> Result<Self, Skip> {
        need_root("FUSE")?;
        let latency_micros = Arc::default();
        let mut config = Config::default();
        (config.acl, config.n_threads) = match habits.is_client() {
            true => (SessionACL::Owner, Some(MOST_WAITING)),
            false => {
                config.mount_options = vec![MountOption::DefaultPermissions];
                let threads = if habits.busy.is_some() { 1 } else { 4 };
                (SessionACL::All, Some(threads))
            }
        };
        config.clone_fd = true;
        let server = Server::new(habits, stored, Arc::clone(&latency_micros));
        let session = fuser::spawn_mount(server, point, &config)
            .map_err(|e| Skip(format!("no FUSE: {e}")))?;
        Ok(Self {
            _session: session,
            latency_micros,
            point: point.to_owned(),
            stored: stored.to_owned(),
            made: None,
        })
    }

    /// Lets the server answer each of the following requests late. That takes no processor time.
    pub fn set_latency(&self, latency: Duration) {
        // Relaxed: the number publishes nothing.
        let micros = latency.as_micros() as u64;
        self.latency_micros.store(micros, Ordering::Relaxed);
    }

    /// Returns the mount point.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.point
    }

    /// Returns the path of an entry.
    #[must_use]
    pub fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path().join(name)
    }

    /// Returns the directory in which the filesystem stores everything. Numbers, sizes and times there are true.
    #[must_use]
    pub fn stored(&self) -> &Path {
        &self.stored
    }

    /// Returns the path of an entry in that directory.
    #[must_use]
    pub fn stored_at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.stored.join(name)
    }
}

impl Drop for FuseMount {
    fn drop(&mut self) {
        unmount(&self.point);
    }
}

#[cfg(test)]
mod tests;
