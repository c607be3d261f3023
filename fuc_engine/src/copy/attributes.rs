//! Gives a copy the attributes of its source, once its content is complete.
//!
//! The owner is set before extended attributes, and those before the mode with its ACLs. So until
//! the copy is complete, no user has permissions that it will not grant. The times come last: if they
//! are those of the source, the content is complete, and all attributes were tried. If this user may not set the times
//! of files of others, those of a file that is given away are set first, as by cp.
//!
//! Beside an ACL, the mode's bits for the group are the mask of the ACL. So the group bits are set last: after
//! the ACL of the source was set, or after one that the dest must not have is gone.
//!
//! Filesystems lie, so a call that succeeds proves only that it succeeded. Modes are therefore always
//! set by `fchmod`, which every filesystem understands. Calls on ACLs are made only if there may be an ACL,
//! and their errors matter only if an ACL had to be kept.
//!
//! Links, special files, and directories whose entries were not copied are held without being opened. The inode is found
//! once by its name and held from then on, so all calls go to the same inode. An inode of another type than the source's
//! is left alone.
//!
//! Errors and warnings are returned. Nothing here reports them or knows a path.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::decide::mode::{self, DestAcl, Origin};
use super::options::{ModePolicy, Xattrs};
use super::policy::{Policy, XattrAction, is_posix_acl};
use crate::error::Operation;
use crate::sys::{self, ACCESS_ACL, At, DEFAULT_ACL, Inode, PathOnly, Stat};

/// An attribute that could not be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AttributeError {
    pub(super) operation: Operation,
    pub(super) errno: Errno,
}

impl AttributeError {
    fn new(operation: Operation, errno: Errno) -> Self {
        let errno = match errno {
            // A descriptor that only names the inode is of no use for the call. Users know of no descriptor.
            Errno::BADF => Errno::OPNOTSUPP,
            errno => errno,
        };
        Self { operation, errno }
    }
}

/// The result of setting the attributes of one dest.
#[must_use]
#[derive(Debug)]
pub(super) struct Attributes {
    /// The first attribute that could not be set and should have been.
    pub(super) outcome: Result<(), AttributeError>,
    /// An attribute that could not be set, which is not a failure.
    pub(super) warning: Option<AttributeError>,
}

impl Attributes {
    /// Returns the error if content of the dest is lost.
    pub(super) fn lost_content(&self) -> Option<Errno> {
        let failed = self.outcome.err();
        let lost = failed.filter(|error| error.operation == Operation::Write)?;
        Some(lost.errno)
    }
}

/// A transfer of attributes from one inode to another.
pub(super) struct Transfer<'a> {
    pub(super) policy: &'a Policy<'a>,
    pub(super) source: Inode<'a>,
    /// Stat of the source when it was opened.
    pub(super) stat: &'a Stat,
    pub(super) dest: Inode<'a>,
    pub(super) dest_acl: DestAcl,
    /// The dest got its time of access before.
    pub(super) has_access_time: bool,
    /// The dest is a directory on the way to a copy. As in cp, such a directory keeps the special bits of its source even
    /// without the owner.
    pub(super) is_parent: bool,
    /// The mode to set; `None`: the dest keeps its mode.
    pub(super) mode: Option<u32>,
    /// The dest has its owner already. On a server, each call is a request. Not asked if it [has its rights](Self::has_rights).
    pub(super) has_owner: bool,
    /// The dest has its owner and its mode already, and no ACL.
    pub(super) has_rights: bool,
}

/// Makes an incomplete dest older than its source, so that no later run takes it for complete.
pub(super) fn mark_incomplete(dest: &Inode<'_>, source: &Stat) -> Result<(), Errno> {
    dest.set_modified(sys::modified(source).earlier())
}

/// Returns `true` if an existing dest, which was seen as `present`, has the owner and the permissions of its source already,
/// and neither has an ACL. They need not be set again: on a server, each call is a request.
pub(super) fn are_rights_equal(
    policy: &Policy<'_>,
    [source_file, dest]: [BorrowedFd<'_>; 2],
    [source, present]: [&Stat; 2],
    is_native: bool,
) -> bool {
    const SET_ID: u32 = 0o6000;
    let preserve = &policy.options.preserve;
    let acl_of = |file| Inode::Opened(file).xattr(ACCESS_ACL);
    // MooseFS shows a mode as an ACL, too.
    let is_mode = |acl: Vec<u8>| acl == sys::plain_acl(source.st_mode);
    preserve.ownership
        && preserve.mode == ModePolicy::Preserve
        && source.st_mode == present.st_mode
        // The kernel may remove these bits when content is written.
        && source.st_mode & SET_ID == 0
        && !has_other_owner(source, present)
        && match acl_of(dest) {
            Ok(acl) => is_mode(acl),
            Err(Errno::NODATA) => true,
            // A server may have ACLs of another kind.
            Err(Errno::OPNOTSUPP) => is_native,
            _ => false,
        }
        // Beside an ACL, the bits of the source for the group would give its group more than it has.
        && acl_of(source_file).map_or_else(
            |errno| matches!(errno, Errno::NODATA | Errno::OPNOTSUPP),
            is_mode,
        )
}

/// Removes the permissions of an existing dest that the finished copy will not have, before any content
/// is written to it. Returns the previous mode if it was changed.
///
/// Only the owner keeps permissions. If the dest has an ACL, the bits for the group are its mask, so that
/// it grants nothing either.
pub(super) fn restrict(
    policy: &Policy<'_>,
    dest: BorrowedFd<'_>,
    present: &Stat,
    source: &Stat,
) -> Option<u32> {
    let preserve = &policy.options.preserve;
    let mode = mode::while_overwritten(preserve, source.st_mode, present.st_mode)?;
    // A failure is reported when the final mode is set.
    let _ = Inode::Opened(dest).set_mode(mode | present.st_mode & 0o7000);
    Some(present.st_mode)
}

/// Lets the owner create entries in a new directory, which has the mode `granted`. Returns the mode to set in the end, if
/// it is another one.
///
/// The umask is not needed for this: the mode that `mkdirat` grants shows the effect of the umask and of default ACLs.
pub(super) fn let_owner_fill(dir: BorrowedFd<'_>, granted: u32) -> Result<Option<u32>, Errno> {
    let Some(filling) = mode::while_filled(granted) else {
        return Ok(None);
    };
    match Inode::PathOnly(dir).set_mode(filling) {
        Ok(()) => Ok(Some(granted)),
        // Root may do it without the mode.
        Err(_) if sys::check_adding(dir, c".").is_ok() => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Gives an existing dest its permissions back, after its copy has failed. Set-id bits that the kernel
/// has dropped since then are not set again.
pub(super) fn restore_permissions(mode: u32, dest: BorrowedFd<'_>) {
    let special_bits = sys::stat_open(dest).map_or(0, |present| present.st_mode & 0o7000);
    // The failure to report is that of the copy.
    let _ = Inode::Opened(dest).set_mode(mode & 0o777 | special_bits);
}

impl Transfer<'_> {
    /// Sets all attributes. After a failure to set the owner only the times are set, as in cp. Returns the
    /// failure that cp reports, which sets the times first.
    pub(super) fn set_all(&self) -> Attributes {
        let mut warning = None;
        let preserve = &self.policy.options.preserve;
        let set_times = || match preserve.timestamps {
            true => self.set_times(),
            false => Ok(()),
        };
        // Once the file belongs to another user, this one may not set its times.
        let is_given_away = preserve.ownership && self.stat.st_uid != self.policy.user;
        let early = (is_given_away && !self.policy.changes_files_of_others()).then(set_times);
        let others = self.set_all_but_times(&mut warning);
        let mut attributes = Attributes {
            outcome: others,
            warning,
        };
        let times = early.unwrap_or_else(set_times);
        if attributes.lost_content().is_none() {
            attributes.outcome = times.and(others);
        }
        attributes
    }

    /// Returns the error to report after a call on the dest has failed.
    #[cold]
    fn error(&self, operation: Operation, errno: Errno) -> AttributeError {
        let lost = self.check_content(errno).err();
        lost.unwrap_or(AttributeError::new(operation, errno))
    }

    /// Fails if content is lost, and a call on the dest has failed with `errno` because of that.
    fn check_content(&self, errno: Errno) -> Result<(), AttributeError> {
        let operation = Operation::Write;
        let checked = self.dest.check_content(errno);
        checked.map_err(|errno| AttributeError { operation, errno })
    }

    fn set_all_but_times(
        &self,
        warning: &mut Option<AttributeError>,
    ) -> Result<(), AttributeError> {
        let mut mode = self.mode;
        let preserve = &self.policy.options.preserve;
        if preserve.ownership && !self.has_rights {
            let kind = sys::file_type(self.stat);
            let owned = match self.has_owner {
                true => Ownership::Set,
                false => self.set_owner()?,
            };
            if owned != Ownership::NotSet {
                mode = mode.map(|mode| mode::after_chown(preserve, mode, kind));
            }
            if owned != Ownership::Set && !self.is_parent {
                mode = mode.map(|mode| mode::without_owner(preserve, mode, kind));
            }
        }
        let names = self.names_of_xattrs();
        let mut outcome = self.set_xattrs(&names, warning);
        // A regular file got its context before its content.
        if !sys::is_regular(self.stat) {
            outcome = outcome.and(label(self.policy, &self.dest));
        }
        // Set-id bits and ACLs matter even if another attribute could not be set.
        if let Some(mode) = mode {
            let set = self.set_mode(mode, &names);
            let set = set.map_err(|error| self.error(Operation::KeepMode, error));
            // Lost content matters more than an attribute.
            outcome = match set {
                Err(error) if error.operation == Operation::Write => set,
                // cp does not set a mode that is right already.
                Err(_) if preserve.mode == ModePolicy::Default && self.has_mode(mode) => outcome,
                _ => outcome.and(set),
            };
        }
        outcome
    }

    /// Lists the extended attributes of the source, if the options ask for them or for ACLs, which are
    /// some of them.
    fn names_of_xattrs(&self) -> Result<Vec<u8>, Errno> {
        let preserve = &self.policy.options.preserve;
        let keeps_acl = preserve.mode == ModePolicy::Preserve && self.mode.is_some();
        if preserve.xattrs == Xattrs::Leave && !keeps_acl {
            return Ok(Vec::new());
        }
        match self.source.xattr_names() {
            // The source's filesystem has no extended attributes.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(Vec::new()),
            listed => listed,
        }
    }

    fn set_times(&self) -> Result<(), AttributeError> {
        let set = match self.has_access_time {
            true => self.dest.set_modified(sys::modified(self.stat)),
            false => self.dest.set_times(self.stat),
        };
        // The server has followed the link, which may lead nowhere yet. It cannot set the times of a link.
        if set == Err(Errno::NOENT) && sys::file_type(self.stat) == FileType::Symlink {
            return Ok(());
        }
        let operation = match self.is_parent {
            true => Operation::KeepParentTimes,
            false => Operation::KeepTimes,
        };
        set.map_err(|error| self.error(operation, error))
    }

    fn set_owner(&self) -> Result<Ownership, AttributeError> {
        let (user, group) = (self.stat.st_uid, self.stat.st_gid);
        match self.dest.set_owner(Some(user), group) {
            Ok(()) => Ok(Ownership::Set),
            Err(errno) if self.dest.has_owner_of(self.stat) => {
                self.check_content(errno)?;
                Ok(Ownership::Set)
            }
            Err(Errno::PERM | Errno::INVAL) if self.policy.user != 0 => {
                // Without root's rights the group may still be set. As in cp, a link keeps its group.
                let is_link = sys::file_type(self.stat) == FileType::Symlink;
                if is_link {
                    return Ok(Ownership::NotSet);
                }
                match self.dest.set_owner(None, group) {
                    Ok(()) => Ok(Ownership::OnlyGroup),
                    Err(errno) => self.check_content(errno).map(|()| Ownership::NotSet),
                }
            }
            Err(errno) => Err(self.error(Operation::KeepOwner, errno)),
        }
    }

    fn has_mode(&self, mode: u32) -> bool {
        let dest = self.dest.stat();
        dest.is_ok_and(|dest| dest.st_mode & 0o7777 == mode)
    }

    /// Copies the extended attributes that the options ask for, as many as possible.
    fn set_xattrs(
        &self,
        names: &Result<Vec<u8>, Errno>,
        warning: &mut Option<AttributeError>,
    ) -> Result<(), AttributeError> {
        let unset = |error| self.error(Operation::KeepXattrs, error);
        let policy = self.policy;
        let wants = policy.options.preserve.xattrs;
        if wants == Xattrs::Leave {
            if !copies_context(policy) {
                return Ok(());
            }
            let context = std::iter::once(CONTEXT);
            return match self.copy_xattrs(context) {
                // The source has none.
                Err(Errno::NODATA) => Ok(()),
                copied => copied.map_err(unset),
            };
        }
        let copied = names.as_ref().map_err(|&error| error).and_then(|names| {
            let wanted = names_in(names).filter(|&name| match name == CONTEXT {
                true => copies_context(policy),
                false => {
                    !is_posix_acl(name)
                        && policy.xattr_action(name) == XattrAction::Copy
                        && (!is_layout(name) || self.stays_on_filesystem())
                }
            });
            self.copy_xattrs(wanted)
        });
        let Err(error) = copied else {
            return Ok(());
        };
        let lost = unset(error);
        let is_optional = matches!(error, Errno::NODATA | Errno::OPNOTSUPP);
        match wants {
            // Lost content matters more than an attribute.
            _ if lost.operation == Operation::Write => return Err(lost),
            Xattrs::Require => return Err(lost),
            // As in cp, if nothing else is copied, the first loss is always reported.
            _ if policy.options.attributes_only => *warning = Some(lost),
            Xattrs::Warn if !is_optional => *warning = Some(lost),
            Xattrs::Warn | Xattrs::Try | Xattrs::Leave => {}
        }
        Ok(())
    }

    /// Returns `true` if source and dest are on the same filesystem.
    #[cold]
    fn stays_on_filesystem(&self) -> bool {
        let dest = self.dest.stat();
        dest.is_ok_and(|dest| dest.st_dev == self.stat.st_dev)
    }

    /// Sets the mode, and the ACLs that the source has. Removes those that the dest may have and the source
    /// has not. `names` are those of the source's extended attributes.
    fn set_mode(&self, mode: u32, names: &Result<Vec<u8>, Errno>) -> Result<(), Errno> {
        let policy_of_mode = self.policy.options.preserve.mode;
        if policy_of_mode == ModePolicy::Default {
            // The ACL that the dest inherited from its directory stays in force.
            return self.dest.set_mode(mode);
        }
        let keeps_acls = policy_of_mode == ModePolicy::Preserve;
        let is_directory = sys::is_directory(self.stat);
        let acl_of_source = |acl| match keeps_acls {
            true => self.read_acl(acl, names),
            false => Ok(None),
        };
        let access =
            acl_of_source(ACCESS_ACL).inspect_err(|_| self.set_mode_beside_unknown_acl(mode))?;
        self.set_access(mode, access.as_deref())?;
        if keeps_acls && is_directory {
            match acl_of_source(DEFAULT_ACL)? {
                Some(acl) => self.dest.set_xattr(DEFAULT_ACL, &acl),
                None => self.remove_acl(DEFAULT_ACL),
            }?;
        }
        let listed = names.as_deref().unwrap_or_default();
        let others = names_in(listed)
            .filter(|&name| keeps_acls && !is_posix_acl(name))
            .filter(|&name| self.policy.xattr_action(name) == XattrAction::KeepWithMode);
        self.copy_other_acls(others)?;
        // There may be other ACLs than those that were asked for by name.
        match names {
            Err(error) if keeps_acls => Err(*error),
            _ => Ok(()),
        }
    }
}

/// Extended attributes, and the ACLs among them with the permissions that depend on them.
impl Transfer<'_> {
    /// Copies the attributes with these names, as many as possible. The first failure is returned.
    fn copy_xattrs<'n>(&self, names: impl Iterator<Item = &'n CStr>) -> Result<(), Errno> {
        let mut mode_before = None;
        let copied = names.map(|name| {
            let value = self.source.xattr(name)?;
            match self.dest.set_xattr(name, &value) {
                // The owner of a file may set its attributes only if the file is writable, so make
                // it writable.
                Err(Errno::ACCESS | Errno::PERM) if mode_before.is_none() => {
                    let mode = self.dest.stat()?.st_mode & 0o7777;
                    if mode & OWNER_WRITES == 0 {
                        self.dest.set_mode(mode | OWNER_WRITES)?;
                    }
                    mode_before = Some(mode);
                    self.dest.set_xattr(name, &value)
                }
                set => set,
            }
        });
        let outcome = copied.fold(Ok(()), Result::and);
        match mode_before {
            Some(mode) if mode & OWNER_WRITES == 0 => outcome.and(self.dest.set_mode(mode)),
            _ => outcome,
        }
    }

    /// Sets the mode and the access ACL, or removes the ACL that the dest may have. After a failure about an
    /// ACL, the dest has the part of the mode that grants no more than the ACL.
    fn set_access(&self, mode: u32, acl: Option<&[u8]>) -> Result<(), Errno> {
        match acl.filter(|acl| *acl != sys::plain_acl(mode)) {
            Some(acl) => {
                self.dest.set_mode(match self.dest_acl {
                    DestAcl::Absent => sys::mode_without_acl(mode, acl),
                    DestAcl::Possible => mode & !GROUP,
                })?;
                self.dest.set_xattr(ACCESS_ACL, acl)?;
            }
            None if self.has_rights => return Ok(()),
            None => self
                .remove_acl(ACCESS_ACL)
                .inspect_err(|_| self.set_mode_beside_unknown_acl(mode))?,
        }
        self.dest.set_mode(mode)
    }

    /// Sets the part of `mode` that is safe if an ACL is unknown: that of the source, which cannot be
    /// read, or that of the dest, which cannot be removed.
    fn set_mode_beside_unknown_acl(&self, mode: u32) {
        let _ = self.dest.set_mode(mode & !GROUP);
    }

    /// Removes an ACL that the dest may have. Fails only if it is still there.
    fn remove_acl(&self, acl: &CStr) -> Result<(), Errno> {
        if self.dest_acl == DestAcl::Absent {
            return Ok(());
        }
        match self.dest.remove_xattr(acl) {
            Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(errno) => match self.dest.xattr(acl) {
                Ok(_) | Err(Errno::BADF) => Err(errno),
                Err(_) => Ok(()),
            },
        }
    }

    /// Reads an ACL of the source, unless `names` shows that it does not have it. `names` lists the extended attributes
    /// of the source. If they could not be listed, which the caller reports, an ACL that cannot be read counts as none.
    fn read_acl(
        &self,
        acl: &CStr,
        names: &Result<Vec<u8>, Errno>,
    ) -> Result<Option<Vec<u8>>, Errno> {
        match names {
            Ok(names) if names_in(names).all(|name| name != acl) => Ok(None),
            Ok(_) => self.source.xattr(acl).map(Some),
            Err(_) => Ok(self.source.xattr(acl).ok()),
        }
    }

    /// Copies the ACLs of other kinds, which have these names, as many as possible. The first failure is returned.
    fn copy_other_acls<'n>(&self, names: impl Iterator<Item = &'n CStr>) -> Result<(), Errno> {
        let copied = names.map(|name| match self.source.xattr(name) {
            Ok(acl) => match self.dest.set_xattr(name, &acl) {
                // An NFS server returns such an ACL for each file.
                Err(_) if sys::is_nfs4_acl_of_mode(&acl) => Ok(()),
                set => set,
            },
            // As in cp, such an ACL may be listed by a server that has none.
            Err(Errno::OPNOTSUPP) => Ok(()),
            Err(errno) => Err(errno),
        });
        copied.fold(Ok(()), Result::and)
    }
}

/// Says whether the dest has the owner of its source. Without root's rights it usually cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ownership {
    Set,
    OnlyGroup,
    NotSet,
}

/// Returns `true` if the user or the group differs.
pub(super) fn has_other_owner(source: &Stat, dest: &Stat) -> bool {
    (source.st_uid, source.st_gid) != (dest.st_uid, dest.st_gid)
}

/// Returns `true` if the options give a dest that is kept another mode or another owner.
pub(super) fn need_update(policy: &Policy<'_>, source: &Stat, dest: &Stat) -> bool {
    let preserve = &policy.options.preserve;
    preserve.mode == ModePolicy::Preserve && source.st_mode != dest.st_mode
        || preserve.ownership && has_other_owner(source, dest)
}

/// Returns `true` if `older` has exactly the extended attributes and ACLs that a new copy of `source` would get, whose mode is
/// preserved. If that cannot be found out, returns `false`.
pub(super) fn have_same_xattrs(policy: &Policy<'_>, source: &Inode<'_>, older: &Inode<'_>) -> bool {
    // The system gives each file its own.
    let is_own = |name: &CStr| {
        is_layout(name)
            || name == CONTEXT && !copies_context(policy)
            || matches!(name.to_bytes(), b"security.evm" | b"security.ima")
    };
    let is_copied = |name: &CStr| {
        name == CONTEXT
            || is_posix_acl(name)
            || match policy.xattr_action(name) {
                XattrAction::KeepWithMode => true,
                XattrAction::Copy => policy.options.preserve.xattrs != Xattrs::Leave,
                XattrAction::Skip => false,
            }
    };
    let read = |inode: &Inode<'_>, is_read: &dyn Fn(&CStr) -> bool| -> Result<_, Errno> {
        let names = match inode.xattr_names() {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Vec::new(),
            names => names?,
        };
        let named = names_in(&names).filter(|name| !is_own(name) && is_read(name));
        let values = named.map(|name| Ok((name.to_owned(), inode.xattr(name)?)));
        values.collect::<Result<BTreeMap<_, _>, Errno>>()
    };
    let found = (read(source, &is_copied), read(older, &|_| true));
    matches!(found, (Ok(source), Ok(older)) if source == older)
}

/// Gives a dest the context that the options name, if they do. A regular file gets it before its content.
pub(super) fn label(policy: &Policy<'_>, dest: &Inode<'_>) -> Result<(), AttributeError> {
    let Some(context) = &policy.options.context else {
        return Ok(());
    };
    let labelled = dest.set_xattr(CONTEXT, context.as_bytes_with_nul());
    labelled.map_err(|errno| AttributeError::new(Operation::SetContext, errno))
}

/// Gives `dest` the attributes of `source`. A directory is one on the way to a copy.
///
/// # Errors
/// `ESTALE` if they are of different types: another process has replaced one of them.
pub(super) fn transfer(
    policy: &Policy<'_>,
    source: &PathOnly,
    dest: &PathOnly,
    origin: Origin,
    dest_acl: DestAcl,
) -> Result<Attributes, Errno> {
    let (stat, present) = (source.stat(), dest.stat());
    let kind = sys::file_type(stat);
    if sys::file_type(present) != kind {
        return Err(Errno::STALE);
    }
    let transfer = Transfer {
        policy,
        source: source.inode(),
        stat,
        dest: dest.inode(),
        dest_acl,
        has_access_time: false,
        is_parent: kind == FileType::Directory,
        mode: match kind {
            // A symbolic link has no mode.
            FileType::Symlink => None,
            FileType::Directory => {
                let mode = mode::of_parent(&policy.options.preserve, stat.st_mode);
                let last = policy.last_directory_mode(mode, present.st_mode, origin);
                last.or_else(|| mode::of_unfilled_directory(present.st_mode, origin))
            }
            FileType::RegularFile => policy.last_mode(stat.st_mode, origin),
            // As in cp, a special file keeps the special bits that it was created with.
            _ => policy
                .last_mode(stat.st_mode, origin)
                .map(|mode| mode | present.st_mode & 0o7000),
        },
        has_owner: !has_other_owner(stat, present),
        has_rights: false,
    };
    Ok(transfer.set_all())
}

/// Gives the symbolic link at `dest`, which was made instead of a copy, the times of its source.
pub(super) fn set_link_times(dest: At<'_>, source: &Stat) -> Result<(), Errno> {
    let link = sys::open_path(dest)?;
    let inode = Inode::PathOnly(link.as_fd());
    inode.set_times(source)
}

/// Makes the incomplete file at `dest` older than its source, if it is a regular file.
pub(super) fn mark_incomplete_at(dest: At<'_>, source: &Stat) -> Result<(), Errno> {
    let file = PathOnly::find(dest)?;
    if !sys::is_regular(file.stat()) {
        return Ok(());
    }
    mark_incomplete(&file.inode(), source)
}

/// Name of the extended attribute that holds an SELinux context.
const CONTEXT: &CStr = c"security.selinux";

/// Returns `true` if an attribute says on which servers or disks a filesystem has put a file: those of Lustre and of Ceph.
/// On another filesystem, it would be wrong, or put the copy where its directory does not want it.
fn is_layout(name: &CStr) -> bool {
    let name = name.to_bytes();
    let is_of_lustre = matches!(
        name,
        b"trusted.hsm"
            | b"trusted.link"
            | b"trusted.lma"
            | b"trusted.lmv"
            | b"trusted.lov"
            | b"trusted.som"
    );
    is_of_lustre || name.starts_with(b"lustre.") || name.starts_with(b"ceph.")
}

/// Returns `true` if the SELinux context of the source is copied.
fn copies_context(policy: &Policy<'_>) -> bool {
    policy.options.preserve.context && policy.options.context.is_none()
}

/// The bit of a mode that lets the owner write.
const OWNER_WRITES: u32 = 0o200;

/// Splits a list of names, each of which ends with a NUL.
fn names_in(list: &[u8]) -> impl Iterator<Item = &CStr> {
    list.split_inclusive(|&byte| byte == 0)
        .filter_map(|name| CStr::from_bytes_with_nul(name).ok())
}

/// The bits of a mode for the group.
const GROUP: u32 = 0o070;

/// Finds out whether entries that are created in a directory may inherit an ACL before the run ends.
///
/// Only its owner and root can give it a default ACL. So what is seen now is believed if this user trusts its owner.
pub(super) fn inherited_in(policy: &Policy<'_>, dir: &Inode<'_>, owner: u32) -> DestAcl {
    if !policy.trusts(owner) {
        return DestAcl::Possible;
    }
    match dir.xattr(DEFAULT_ACL) {
        Err(Errno::NODATA | Errno::OPNOTSUPP) => DestAcl::Absent,
        _ => DestAcl::Possible,
    }
}
