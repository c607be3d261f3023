//! Inodes that are held without being opened: links, special files, and directories whose
//! entries were not copied.
//!
//! The inode is found once by its name and held from then on, so all calls go to the same
//! inode. An inode of another type than the source's is left alone.

use std::ffi::CString;
use std::os::fd::AsFd;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::{Attributes, Role, Times, Transfer};
use crate::copy::decide::mode::{self, DestAcl, Origin};
use crate::copy::facts::FileId;
use crate::copy::policy::Policy;
use crate::sys::{self, At, Fd, Inode, InodeError, PathFd, Stat};

pub(in crate::copy) struct PathOnly<'a> {
    fd: Fd,
    stat: Stat,
    /// Where the inode was found; `None` for a directory that this run created.
    at: Option<At<'a>>,
}

impl<'a> PathOnly<'a> {
    pub(in crate::copy) fn find(at: At<'a>) -> Result<Self, Errno> {
        let fd = sys::open_path_only(&at)?;
        let stat = sys::stat_open(&fd)?;
        let at = Some(at);
        Ok(Self { fd, stat, at })
    }

    /// Takes the facts from `seen`, if that was the same inode.
    pub(in crate::copy) fn with_facts_of(mut self, seen: &Stat) -> Self {
        if FileId::of(seen) == FileId::of(&self.stat) {
            self.stat = *seen;
        }
        self
    }

    /// Takes over the descriptor of a directory that this run created.
    pub(in crate::copy) fn created(dir: Fd) -> Result<Self, Errno> {
        let stat = sys::stat_open(&dir)?;
        Ok(Self {
            fd: dir,
            stat,
            at: None,
        })
    }

    pub(in crate::copy) fn stat(&self) -> &Stat {
        &self.stat
    }

    /// Reads the target of a symbolic link.
    ///
    /// # Errors
    /// `EINVAL` if the inode is not a symbolic link, as from `readlink`.
    pub(in crate::copy) fn read_link(&self) -> Result<CString, Errno> {
        match sys::file_type(&self.stat) {
            FileType::Symlink => sys::read_link(self.fd.as_fd(), c""),
            _ => Err(Errno::INVAL),
        }
    }

    fn inode(&self) -> Inode<'_> {
        let (fd, at) = (self.fd.as_fd(), self.at);
        Inode::PathOnly(PathFd { fd, at })
    }
}

/// Gives `dest` the attributes of `source`.
///
/// # Errors
/// `ESTALE` if they are of different types: another process has replaced one of them.
pub(in crate::copy) fn transfer(
    policy: &Policy<'_>,
    source: &PathOnly<'_>,
    dest: &PathOnly<'_>,
    origin: Origin,
    dest_acl: DestAcl,
    role: Role,
) -> Result<Attributes, Errno> {
    let (stat, present) = (&source.stat, &dest.stat);
    let kind = sys::file_type(stat);
    if sys::file_type(present) != kind {
        return Err(Errno::STALE);
    }
    let transfer = Transfer {
        source: source.inode(),
        stat,
        dest: dest.inode(),
        dest_acl,
        times: Times::AccessAndModification,
        role,
        mode: match kind {
            // A symbolic link has no mode.
            FileType::Symlink => None,
            FileType::Directory => {
                let mode = match role {
                    Role::Copy => stat.st_mode,
                    Role::Parent => mode::of_parent(&policy.options.preserve, stat.st_mode),
                };
                let last = policy.last_directory_mode(mode, present.st_mode, origin);
                last.or_else(|| mode::of_unfilled_directory(present.st_mode, origin))
            }
            // As in cp, a special file keeps the special bits that it was created with.
            _ => policy
                .last_mode(stat.st_mode, origin)
                .map(|mode| mode | present.st_mode & 0o7000),
        },
    };
    Ok(transfer.run(policy))
}

/// Gives the symbolic link at `dest`, which was made instead of a copy, the times of its source.
pub(in crate::copy) fn set_link_times(dest: At<'_>, source: &Stat) -> Result<(), Errno> {
    let link = sys::open_path_only(&dest)?;
    let inode = Inode::PathOnly(PathFd {
        fd: link.as_fd(),
        at: Some(dest),
    });
    inode.set_times(source).map_err(InodeError::errno)
}

/// Makes the incomplete file at `dest` older than its source, if it is a regular file.
pub(in crate::copy) fn mark_incomplete(dest: At<'_>, source: &Stat) -> Result<(), Errno> {
    let file = PathOnly::find(dest)?;
    if sys::file_type(file.stat()) != FileType::RegularFile {
        return Ok(());
    }
    super::mark_incomplete(&file.inode(), source).map_err(InodeError::errno)
}
