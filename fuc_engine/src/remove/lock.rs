//! The locks that an [unlocking](super::RemoveOp::unlock) run takes away: how a file or directory was before, and the directories that are unlocked.

use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, OnceLock};

use rustix::fs::IFlags;
use rustix::io::Errno;

use crate::hashing::HashMap;
use crate::sync::lock;
use crate::sys::{self, FileId, Inode};

/// Permissions of the owner, by which all entries of a directory can be removed.
const ALL: u32 = 0o700;

/// The directories in flight that a run has unlocked.
#[derive(Default)]
pub(super) struct Unlocking {
    /// Is empty until the first failure.
    pub(super) directories: OnceLock<Mutex<HashMap<FileId, Lock>>>,
    /// Held while an entry is unlocked, so that its other hard links wait until it is locked again.
    pub(super) entry: Mutex<()>,
}

impl Unlocking {
    pub(super) fn directories(&self) -> MutexGuard<'_, HashMap<FileId, Lock>> {
        lock(self.directories.get_or_init(Mutex::default))
    }
}

/// The state of a file or directory before it was unlocked, as far as it was changed.
#[derive(PartialEq, Eq)]
pub(super) struct Lock {
    mode: Option<u32>,
    attributes: IFlags,
    is_read_only: bool,
}

impl Lock {
    pub(super) const NONE: Self = Self {
        mode: None,
        attributes: IFlags::empty(),
        is_read_only: false,
    };

    /// Takes away the lock that may be the reason for `errno`. Fails if there is none, or if this process may not.
    /// Succeeds if that was done before.
    pub(super) fn take(&mut self, dir: BorrowedFd<'_>, errno: Errno) -> Result<(), Errno> {
        let is_taken = match errno {
            Errno::PERM => {
                self.attributes |= sys::clear_attributes(dir)?;
                !self.attributes.is_empty()
            }
            Errno::ROFS => {
                self.is_read_only |= sys::make_subvolume_writable(dir)?;
                self.is_read_only
            }
            _ if self.mode.is_some() => true,
            _ => {
                let stat = sys::stat_open(dir)?;
                if stat.st_uid != sys::effective_user() || stat.st_mode & ALL == ALL {
                    return Err(errno);
                }
                Inode::directory(dir).set_mode(stat.st_mode | ALL)?;
                self.mode = Some(stat.st_mode);
                true
            }
        };
        is_taken.then_some(()).ok_or(errno)
    }

    /// Locks `file` again. A failure is not reported: what could not be removed has been.
    pub(super) fn restore(&self, file: BorrowedFd<'_>) {
        if let Some(mode) = self.mode {
            let _ = Inode::directory(file).set_mode(mode);
        }
        if !self.attributes.is_empty() {
            let _ = sys::set_attributes(file, self.attributes);
        }
        if self.is_read_only {
            let _ = sys::make_subvolume_read_only(file);
        }
    }
}
