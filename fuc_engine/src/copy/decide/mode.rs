//! Decides the modes that dests are created with, and those they end up with.
//!
//! While the owner or the mode of a dest is still to be set, the dest has at most the owner's
//! permissions, so no user has permissions that the finished copy does not grant. If the copy of an
//! existing dest fails, it gets its previous permissions back, as with cp.
//!
//! All modes are `st_mode` bits. Unless a function says otherwise, the type bits are ignored.

use rustix::fs::FileType;

use crate::copy::options::{ModePolicy, Preserve};

const PERMISSIONS: u32 = 0o777;
const SET_ID: u32 = 0o6000;
const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;
const STICKY: u32 = 0o1000;
pub(crate) const WRITABLE_BY_OTHERS: u32 = 0o022;
/// The permissions that the owner of a directory needs to fill it.
pub(crate) const OWNER: u32 = 0o700;
/// The permissions that the owner of a file needs to read and write it.
pub(crate) const OWNER_FILE: u32 = 0o600;

/// Says whether this run created the dest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Created,
    Existing,
}

/// Says whether a dest may have an ACL before it gets that of its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DestAcl {
    /// This run created it in a directory that has no default ACL, and whose owner is trusted to give it none.
    Absent,
    Possible,
}

/// Returns the permission bits for creating the copy of a source with `mode`.
pub(crate) fn for_creation(preserve: &Preserve, mode: u32) -> u32 {
    if preserve.ownership || preserve.mode != ModePolicy::Default {
        // With an inherited ACL, the group bits become its mask and would enable its named
        // entries.
        mode & 0o700
    } else {
        mode & PERMISSIONS
    }
}

/// Returns the mode for creating the copy of a FIFO, socket or device with `mode`.
pub(crate) fn for_special_file(preserve: &Preserve, mode: u32) -> u32 {
    let special_bits = match preserve.mode {
        // The bits have no effect on special files, and cp keeps them.
        ModePolicy::Default | ModePolicy::Discard => mode & 0o7000,
        ModePolicy::Preserve => 0,
    };
    for_creation(preserve, mode) | special_bits
}

/// Returns the mode for creating the copy of a directory with `mode`.
pub(crate) fn for_directory(preserve: &Preserve, mode: u32) -> u32 {
    let special_bits = if preserve.ownership { STICKY } else { 0o7000 };
    mode & special_bits | for_creation(preserve, mode)
}

/// Returns the mode that is set when the copy of a source with `mode` (type included) is
/// complete. `None`: the dest keeps its mode.
pub(crate) fn when_complete(
    preserve: &Preserve,
    mode: u32,
    origin: Origin,
    umask: impl FnOnce() -> u32,
) -> Option<u32> {
    let kind = FileType::from_raw_mode(mode);
    match (preserve.mode, origin) {
        (ModePolicy::Preserve, _) => Some(mode & 0o7777),
        (ModePolicy::Default, Origin::Created) if preserve.ownership => {
            // `mkdir` honours the sticky bit, and no other special bit.
            let special_bits = if kind == FileType::Directory {
                STICKY
            } else {
                0
            };
            Some(mode & (special_bits | PERMISSIONS) & !umask())
        }
        (ModePolicy::Discard, Origin::Created) => {
            let requested = match kind {
                FileType::Directory | FileType::Socket => PERMISSIONS,
                _ => 0o666,
            };
            Some(requested & !umask())
        }
        (ModePolicy::Default | ModePolicy::Discard, _) => None,
    }
}

/// Returns the same as [`when_complete`], for a directory whose present mode is `present`.
pub(crate) fn when_directory_complete(
    preserve: &Preserve,
    mode: u32,
    present: u32,
    origin: Origin,
    umask: impl FnOnce() -> u32,
) -> Option<u32> {
    // A directory inherits set-group-id from its parent.
    let inherited = present & SET_GROUP_ID;
    let kept = match preserve.mode {
        ModePolicy::Default => inherited,
        ModePolicy::Preserve => 0,
        // As with cp 9.10.
        ModePolicy::Discard if inherited != 0 => inherited,
        ModePolicy::Discard => mode & STICKY,
    };
    when_complete(preserve, mode, origin, umask).map(|mode| mode | kept)
}

/// Returns the permissions to leave on an existing dest while it is written: at most those of
/// the finished copy. `None`: the present ones stay.
pub(crate) fn while_overwritten(
    preserve: &Preserve,
    source_mode: u32,
    present: u32,
) -> Option<u32> {
    let complete = when_complete(preserve, source_mode, Origin::Existing, || 0)?;
    let kept = present & complete & for_creation(preserve, PERMISSIONS);
    (present & PERMISSIONS != kept).then_some(kept)
}

/// Returns the mode to set on a new directory before entries are created in it, or `None` if its owner has all
/// permissions. It was created with the mode `granted`, which is also its last one.
///
/// As by cp, it was created without the permissions that only filling needs. So it has its last mode even where no mode
/// can be set. If the user is not in the group that it inherits, setting a mode makes the kernel remove its
/// set-group-ID bit, and what is created in it does not inherit the group.
pub(crate) fn while_filled(granted: u32) -> Option<u32> {
    (granted & OWNER != OWNER).then_some(granted | OWNER)
}

/// Returns the mode to set on a directory that is not filled, and whose present mode is `present`.
/// `None`: the directory keeps its mode.
///
/// The mode that is set is the present one. This makes the kernel remove an inherited set-group-ID bit
/// if the user is not in the group. A directory that is filled loses the bit in the same way.
pub(crate) fn of_unfilled_directory(present: u32, origin: Origin) -> Option<u32> {
    let is_set_again = origin == Origin::Created
        && present & SET_GROUP_ID != 0
        && (present & OWNER != OWNER || present & WRITABLE_BY_OTHERS != 0);
    is_set_again.then_some(present & 0o7777)
}

/// Returns the mode to set on a new directory when it is complete, although it was created with that
/// mode. `None`: the directory keeps its mode.
///
/// cp lets other users write to a directory only when it is complete. This makes the kernel remove an
/// inherited set-group-ID bit if the user is not in the group.
pub(crate) fn of_writable_directory(granted: u32) -> Option<u32> {
    let is_set_again = granted & SET_GROUP_ID != 0 && granted & WRITABLE_BY_OTHERS != 0;
    is_set_again.then_some(granted & 0o7777)
}

/// Returns the mode of a source directory as far as the copy gets it that `--parents` makes. If modes
/// are not preserved on request, cp keeps the sticky bit of every directory but a parent.
pub(crate) fn of_parent(preserve: &Preserve, mode: u32) -> u32 {
    match preserve.mode {
        ModePolicy::Discard => mode & !STICKY,
        ModePolicy::Default | ModePolicy::Preserve => mode,
    }
}

/// Removes the bit that the kernel has removed when the owner or the group of a copy was set. As in cp, it comes back only
/// if modes are preserved.
pub(crate) fn after_chown(preserve: &Preserve, mode: u32, kind: FileType) -> u32 {
    match (preserve.mode, kind) {
        (ModePolicy::Preserve, _) | (_, FileType::Directory) => mode,
        _ => mode & !SET_USER_ID,
    }
}

/// Removes set-id and sticky bits, for a copy whose owner could not be set. As in cp, a directory
/// keeps its sticky bit, and a special file all of them, if modes are not preserved.
pub(crate) fn without_owner(preserve: &Preserve, mode: u32, kind: FileType) -> u32 {
    match (preserve.mode, kind) {
        (ModePolicy::Preserve, _) => mode & !(SET_ID | STICKY),
        (_, FileType::Directory) => mode & !SET_ID,
        _ => mode,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands show the modes of finished copies, but not those before.
    #[test]
    fn special_bits_are_created_only_if_the_owner_stays() {
        let kept = Preserve::default();
        let owned = Preserve {
            ownership: true,
            ..kept
        };
        assert_eq!(for_special_file(&kept, 0o4644), 0o4644);
        assert_eq!(for_special_file(&owned, 0o4644), 0o4600);
        assert_eq!(for_directory(&kept, 0o7755), 0o7755);
        assert_eq!(for_directory(&owned, 0o7755), 0o1700);
    }

    /// Only another user could see these bits: the owner of the copy.
    #[test]
    fn another_owner_gets_no_special_bits() {
        for (mode, kind, left) in [
            (ModePolicy::Preserve, FileType::RegularFile, 0o755),
            (ModePolicy::Preserve, FileType::Directory, 0o755),
            (ModePolicy::Default, FileType::Fifo, 0o7755),
            (ModePolicy::Default, FileType::Directory, 0o1755),
        ] {
            let preserve = Preserve {
                mode,
                ..Preserve::default()
            };
            assert_eq!(
                without_owner(&preserve, 0o7755, kind),
                left,
                "{mode:?} {kind:?}"
            );
        }
    }

    /// The bit of another group would be lost.
    #[test]
    fn a_directory_that_existed_keeps_its_set_group_id_bit() {
        assert_eq!(of_unfilled_directory(0o2311, Origin::Created), Some(0o2311));
        assert_eq!(of_unfilled_directory(0o2311, Origin::Existing), None);
    }
}
