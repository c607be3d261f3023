//! Gives a copy the attributes of its source, once its content is complete.
//!
//! ```text
//!   created     source mode & 0777; the owner's bits alone while owner or mode are pending
//!   finished    times, owner, extended attributes, ACL or mode
//! ```
//!
//! So at no moment has anybody rights that they don't have in the end: the
//! mode, with set-id bits, comes last. None of the later calls changes a time.
//! Files and directories with entries are reached through the descriptors that
//! their content went through; for others see [`unopened`](super::unopened).

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::item::Item;
use super::node::CopyNode;
use super::preserve::{ModePolicy, Xattrs};
use super::tree::Copying;
use super::xattrs::{
    copy_xattrs, is_left_to_others, names_in, read_acl, set_acl, set_default_acl,
    set_mode_beside_unknown_acl, set_permissions,
};
use crate::error::{Error, Operation};
use crate::node::Side;
use crate::sys::{self, ACCESS_ACL, DEFAULT_ACL, Inode, InodeError, Stat};

/// What an SELinux context is called.
const CONTEXT: &CStr = c"security.selinux";

/// Why a copy lacks an attribute.
pub(super) type Lacks = (Operation, InodeError);

/// Whether the dest was made by this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    New,
    Found,
}

/// Which times are set, if any are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    Both,
    /// That of access was set before.
    OfModification,
}

/// One inode's attributes on their way to another.
pub(super) struct Transfer<'a> {
    pub(super) source: Inode<'a>,
    /// As it was when it was opened.
    pub(super) stat: &'a Stat,
    pub(super) dest: Inode<'a>,
    pub(super) age: Age,
    pub(super) times: Times,
    /// The mode that the dest is to have; `None`: the one it has.
    pub(super) mode: Option<u32>,
}

impl Copying<'_> {
    /// The permission bits with which something is created that is a copy of a source with `mode`.
    pub(super) fn creation_mode(&self, mode: u32) -> u32 {
        let preserve = &self.options().preserve;
        if preserve.ownership || preserve.mode != ModePolicy::Default {
            // A default ACL of its directory would give others what its mask, these bits, lets through.
            mode & 0o700
        } else {
            mode & 0o777
        }
    }

    /// The mode to be set in the end on the copy of a source with `mode` (its type included).
    pub(super) fn last_mode(&self, mode: u32, age: Age) -> Option<u32> {
        let preserve = &self.options().preserve;
        match (preserve.mode, age) {
            (ModePolicy::Preserve, _) => Some(mode & 0o7777),
            (ModePolicy::Default, Age::New) if preserve.ownership => {
                // Of the special bits, `mkdir` takes the sticky one.
                let special = match FileType::from_raw_mode(mode) {
                    FileType::Directory => 0o1000,
                    _ => 0,
                };
                Some(mode & (special | 0o777) & !self.umask())
            }
            (ModePolicy::Discard, Age::New) => {
                let most = match FileType::from_raw_mode(mode) {
                    FileType::Directory | FileType::Socket => 0o777,
                    _ => 0o666,
                };
                Some(most & !self.umask())
            }
            (ModePolicy::Default | ModePolicy::Discard, _) => None,
        }
    }

    /// The same for a directory that has the mode `made` until then.
    pub(super) fn last_directory_mode(&self, source: u32, made: u32, age: Age) -> Option<u32> {
        // What a directory inherits from the one it is in, a plain mode leaves alone.
        let inherited = match self.options().preserve.mode {
            ModePolicy::Default => made & 0o2000,
            ModePolicy::Preserve | ModePolicy::Discard => 0,
        };
        self.last_mode(source, age).map(|mode| mode | inherited)
    }

    fn umask(&self) -> u32 {
        *self.umask.get_or_init(sys::umask)
    }

    /// Takes from a file that is there already what its new content must not be read with.
    pub(super) fn restrict(&self, dest: BorrowedFd<'_>, found: &Stat, source: &Stat) {
        let Some(mode) = self.last_mode(source.st_mode, Age::Found) else {
            return;
        };
        let kept = found.st_mode & mode & self.creation_mode(0o777);
        if found.st_mode & 0o777 != kept {
            // Who may not change the mode is told so when it is to be set for good.
            let _ = set_permissions(&Inode::Opened(dest), kept);
        }
    }

    /// Finishes the copy of what is open on both sides.
    pub(super) fn finish_file(
        &self,
        item: &Item<'_>,
        source: (BorrowedFd<'_>, &Stat),
        dest: (BorrowedFd<'_>, Age),
    ) -> Result<(), Error> {
        if !self.options().needs_a_finish() {
            return Ok(());
        }
        let transfer = Transfer {
            source: Inode::Opened(source.0),
            stat: source.1,
            dest: Inode::Opened(dest.0),
            age: dest.1,
            times: Times::Both,
            mode: self.last_mode(source.1.st_mode, dest.1),
        };
        self.transfer(&transfer, || self.item_path(item, Side::Dest))
    }

    /// Finishes a directory, which has all its entries. Its attributes are asked for
    /// again, since to keep them meanwhile would take memory for each level of depth; a time of
    /// access that listing has changed since, the dest has kept.
    pub(super) fn finish_directory(&self, node: &CopyNode) {
        let path = |side| node.place.path(self.operand_path(node.place.operand, side));
        let opened = self
            .descriptors
            .pin(node, Side::Source, self)
            .and_then(|source| Ok((sys::stat_open(source.as_fd())?, source)));
        let (stat, source) = match opened {
            Ok(opened) => opened,
            Err(errno) => {
                let error = Error::failed(Operation::Stat, path(Side::Source), errno);
                return self.report.failed(error);
            }
        };
        let finished = match self.descriptors.pin(node, Side::Dest, self) {
            Ok(dest) => {
                let transfer = Transfer {
                    source: Inode::Opened(source.as_fd()),
                    stat: &stat,
                    dest: Inode::directory(dest.as_fd()),
                    // Of one that was found, the set-id bits stay as well, as with cp.
                    age: Age::New,
                    times: match node.state.has_access_time() {
                        true => Times::OfModification,
                        false => Times::Both,
                    },
                    mode: node.state.mode(),
                };
                self.transfer(&transfer, || path(Side::Dest))
            }
            Err(errno) => Err(Error::failed(Operation::KeepMode, path(Side::Dest), errno)),
        };
        if let Err(error) = finished {
            self.report.failed(error);
        }
    }

    /// In cp's order. Without times or owner the rest is not done, as in cp; the first failure is told.
    pub(super) fn transfer(
        &self,
        transfer: &Transfer<'_>,
        dest_path: impl Fn() -> PathBuf,
    ) -> Result<(), Error> {
        let preserve = &self.options().preserve;
        let failed =
            |(operation, error): Lacks| Error::failed(operation, dest_path(), error.errno());
        if preserve.timestamps {
            let set = match transfer.times {
                Times::Both => transfer.dest.set_times(transfer.stat),
                Times::OfModification => transfer.dest.set_modified(transfer.stat),
            };
            set.map_err(|error| failed((Operation::KeepTimes, error)))?;
        }
        let mut mode = transfer.mode;
        if preserve.ownership && !self.give_owner(transfer).map_err(failed)? {
            let is_directory = sys::file_type(transfer.stat) == FileType::Directory;
            let dropped = if is_directory { 0o6000 } else { 0o7000 };
            mode = mode.map(|mode| mode & !dropped);
        }
        // `None`: nobody has asked yet.
        let mut names = None;
        let mut outcome = Ok(());
        if preserve.xattrs != Xattrs::Leave {
            let copied = self.give_xattrs(transfer, &mut names);
            match (copied, preserve.xattrs) {
                (Err(lacks), Xattrs::Require) => outcome = Err(failed(lacks)),
                (Err(lacks), Xattrs::Warn) if lacks.1 != InodeError::Failed(Errno::OPNOTSUPP) => {
                    self.report.warn(failed(lacks));
                }
                (Ok(()) | Err(_), _) => {}
            }
        } else if self.keeps_context() {
            let context = std::iter::once(CONTEXT);
            let copied = copy_xattrs(&transfer.source, &transfer.dest, context);
            outcome = copied.map_err(|error| failed((Operation::KeepXattrs, error)));
        }
        // Elsewhere it came before the content.
        if sys::file_type(transfer.stat) != FileType::RegularFile {
            outcome = outcome.and(self.give_context(&transfer.dest).map_err(failed));
        }
        // Whatever became of the others, set-id bits and ACLs are more than attributes.
        if let Some(mode) = mode {
            let given = self.give_mode(transfer, mode, names.as_deref());
            outcome = outcome.and(given.map_err(failed));
        }
        outcome
    }

    /// Whether the dest is now the source's owner's, which nobody but root can bring about.
    fn give_owner(&self, transfer: &Transfer<'_>) -> Result<bool, Lacks> {
        let (user, group) = (transfer.stat.st_uid, transfer.stat.st_gid);
        match transfer.dest.set_owner(Some(user), group) {
            Ok(()) => Ok(true),
            Err(Errno::PERM | Errno::INVAL) if self.user != 0 => {
                // It may be in the group at least.
                let _ = transfer.dest.set_owner(None, group);
                Ok(false)
            }
            Err(errno) => Err((Operation::KeepOwner, errno.into())),
        }
    }

    /// Copies all that it can; the first failure is told.
    fn give_xattrs(
        &self,
        transfer: &Transfer<'_>,
        names: &mut Option<Vec<u8>>,
    ) -> Result<(), Lacks> {
        let lacks = |error| (Operation::KeepXattrs, error);
        let listed = match transfer.source.xattr_names() {
            // There are none on this filesystem.
            Err(InodeError::Failed(Errno::OPNOTSUPP | Errno::NOSYS)) => Vec::new(),
            listed => listed.map_err(lacks)?,
        };
        let listed = names.insert(listed);
        let wanted = names_in(listed)
            .filter(|&name| !is_left_to_others(name) && (name != CONTEXT || self.keeps_context()));
        copy_xattrs(&transfer.source, &transfer.dest, wanted).map_err(lacks)
    }

    fn keeps_context(&self) -> bool {
        self.options().preserve.context && self.options().context.is_none()
    }

    /// Gives a dest the context that all are to have.
    pub(super) fn give_context(&self, dest: &Inode<'_>) -> Result<(), Lacks> {
        let Some(context) = &self.options().context else {
            return Ok(());
        };
        dest.set_xattr(CONTEXT, context.as_bytes_with_nul())
            .map_err(|error| (Operation::SetContext, error))
    }

    /// Sets mode and ACLs; `names` are the source's attributes, if they are known.
    fn give_mode(
        &self,
        transfer: &Transfer<'_>,
        mode: u32,
        names: Option<&[u8]>,
    ) -> Result<(), Lacks> {
        let lacks = |error| (Operation::KeepMode, error);
        let set_mode = || Ok(transfer.dest.set_mode(mode)?);
        if self.options().preserve.mode == ModePolicy::Default {
            // A default ACL of its directory stays in force.
            return set_mode().map_err(lacks);
        }
        let of_source = |acl: &CStr| match names {
            _ if self.options().preserve.mode != ModePolicy::Preserve => Ok(None),
            Some(names) if names_in(names).all(|name| name != acl) => Ok(None),
            _ => read_acl(&transfer.source, acl),
        };
        let given = of_source(ACCESS_ACL).and_then(|access| match &access {
            Some(acl) => set_acl(&transfer.dest, mode, acl).map(|()| true),
            None => set_permissions(&transfer.dest, mode),
        });
        if given == Err(InodeError::NoWay) {
            set_mode_beside_unknown_acl(&transfer.dest, mode);
        }
        let has_acls = given.map_err(lacks)?;
        // The kernel drops set-id bits when a found file is written to, but not for root.
        if has_acls && (mode & 0o7000 != 0 || transfer.age == Age::Found) {
            set_mode().map_err(lacks)?;
        }
        if has_acls
            && self.options().preserve.mode == ModePolicy::Preserve
            && sys::file_type(transfer.stat) == FileType::Directory
        {
            let default = of_source(DEFAULT_ACL).map_err(lacks)?;
            set_default_acl(&transfer.dest, default.as_deref()).map_err(lacks)?;
        }
        Ok(())
    }
}
