//! ACLs as bytes, in the form that their extended attributes have.

use std::ffi::CStr;

/// The extended attribute of the access ACL.
pub(crate) const ACCESS_ACL: &CStr = c"system.posix_acl_access";
/// The extended attribute of the ACL that a directory gives to new entries.
pub(crate) const DEFAULT_ACL: &CStr = c"system.posix_acl_default";

// The layout is that of linux/posix_acl_xattr.h: a version, then entries of a tag, permissions and an id.
const HEADER_BYTES: usize = 4;
const ENTRY_BYTES: usize = 8;
const VERSION: u32 = 2;
const UNDEFINED_ID: u32 = u32::MAX;

// The tags of linux/posix_acl.h.
const USER_OBJ: u16 = 0x01;
const GROUP_OBJ: u16 = 0x04;
const OTHER: u16 = 0x20;

/// Returns the ACL that grants the nine permission bits of `mode` and nothing else.
pub(crate) fn plain_acl(mode: u32) -> [u8; HEADER_BYTES + 3 * ENTRY_BYTES] {
    const ENTRIES: [(u16, u32); 3] = [(USER_OBJ, 6), (GROUP_OBJ, 3), (OTHER, 0)];
    let mut acl = [0; HEADER_BYTES + 3 * ENTRY_BYTES];
    let (header, entries) = acl.split_at_mut(HEADER_BYTES);
    header.copy_from_slice(&VERSION.to_le_bytes());
    for (entry, (tag, shift)) in entries.chunks_exact_mut(ENTRY_BYTES).zip(ENTRIES) {
        entry[..2].copy_from_slice(&tag.to_le_bytes());
        entry[2..4].copy_from_slice(&((mode >> shift & 7) as u16).to_le_bytes());
        entry[4..].copy_from_slice(&UNDEFINED_ID.to_le_bytes());
    }
    acl
}

/// Returns the part of `mode` that is safe to set if `acl`, which belongs to it, cannot be set.
///
/// Beside an ACL, the mode's bits for the group are a mask for all entries. Without the ACL they
/// would be the group's own permissions, so they are reduced to what the ACL grants the group.
pub(crate) fn mode_without_acl(mode: u32, acl: &[u8]) -> u32 {
    let entries = acl.get(HEADER_BYTES..).unwrap_or_default();
    let group = entries
        .chunks_exact(ENTRY_BYTES)
        .map(|entry| [0, 2].map(|at| u16::from_le_bytes([entry[at], entry[at + 1]])))
        .find_map(|[tag, bits]| (tag == GROUP_OBJ).then_some(u32::from(bits)));
    mode & (0o7707 | (group.unwrap_or(0) & 7) << 3)
}

/// Returns `true` if `acl`, which is that of an NFSv4 server, names only the owner, the group and everyone, as the
/// mode does.
///
/// The layout is that of RFC 7530, section 6.2.1, in XDR: a number of entries, and for each its type, flags, mask,
/// and the name to which it applies, as bytes with their number before and zeros after them.
pub(crate) fn is_nfs4_acl_of_mode(acl: &[u8]) -> bool {
    /// The entry is for a group.
    const IDENTIFIER_GROUP: u32 = 0x40;
    const ALLOW_OR_DENY: u32 = 1;
    let entries = || {
        let (count, mut rest) = take_number(acl)?;
        for _ in 0..count {
            let (kind, flags, length);
            (kind, rest) = take_number(rest)?;
            (flags, rest) = take_number(rest)?;
            (_, rest) = take_number(rest)?;
            (length, rest) = take_number(rest)?;
            let (name, after) = rest.split_at_checked(length as usize)?;
            let padding = name.len().next_multiple_of(4) - name.len();
            rest = after.get(padding..)?;
            let is_of_mode = matches!(name, b"OWNER@" | b"GROUP@" | b"EVERYONE@")
                && kind <= ALLOW_OR_DENY
                && flags & !IDENTIFIER_GROUP == 0;
            if !is_of_mode {
                return None;
            }
        }
        rest.is_empty().then_some(())
    };
    entries().is_some()
}

/// Returns the number that the bytes of XDR begin with, and the bytes after it.
fn take_number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (first, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*first), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_nfs4_acl_of_the_mode_has_no_other_entries() {
        let entry = |kind: u32, flags: u32, name: &[u8]| {
            let mut bytes: Vec<u8> = [kind, flags, 0x0012_0089, name.len() as u32]
                .map(u32::to_be_bytes)
                .concat();
            bytes.extend(name);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let acl = |entries: &[Vec<u8>]| {
            let count = entries.len() as u32;
            [&count.to_be_bytes()[..], &entries.concat()].concat()
        };
        let (owner, group) = (entry(0, 0, b"OWNER@"), entry(1, 0x40, b"GROUP@"));
        assert!(is_nfs4_acl_of_mode(&acl(&[owner.clone(), group])));
        for other in [
            entry(0, 0, b"bob@ex.org"),
            entry(0, 1, b"OWNER@"),
            entry(2, 0, b"EVERYONE@"),
        ] {
            assert!(!is_nfs4_acl_of_mode(&acl(&[owner.clone(), other])));
        }
        assert!(!is_nfs4_acl_of_mode(&[0]));
        assert!(!is_nfs4_acl_of_mode(&[&acl(&[owner])[..], &[0]].concat()));
    }

    #[test]
    fn without_its_acl_a_mode_gives_the_group_what_the_acl_gave_it() {
        let mut acl = plain_acl(0o4740).to_vec();
        // The mask: its tag, `rwx`.
        acl.extend([0x10, 0, 7, 0, 255, 255, 255, 255]);
        assert_eq!(mode_without_acl(0o4770, &acl), 0o4740);
        // The mask: `-w-`.
        assert_eq!(mode_without_acl(0o4720, &acl), 0o4700);
        assert_eq!(mode_without_acl(0o4775, b"what is this?"), 0o4705);
    }
}
