//! Access control lists, written as for `setfacl -m`. The program is often not installed, and costs a process.

use std::{collections::BTreeMap, fs, io, os::unix::fs::PermissionsExt as _, path::Path};

use rustix::{
    buffer::spare_capacity,
    fs::{XattrFlags, lgetxattr, lsetxattr},
    io::Errno,
};

use crate::snapshot::XATTR_MAX_BYTES;

const ACCESS: &str = "system.posix_acl_access";
const DEFAULT: &str = "system.posix_acl_default";

/// The version of the format.
const VERSION: [u8; 4] = 2_u32.to_le_bytes();
const ENTRY_BYTES: usize = 8;

const OWNER: u16 = 1;
const USER: u16 = 2;
const GROUP: u16 = 4;
const NAMED_GROUP: u16 = 8;
const MASK: u16 = 0x10;
const OTHERS: u16 = 0x20;

/// The id of an entry that has none.
const NO_ID: u32 = u32::MAX;

/// The rights of each entry, by its tag and its id. The kernel wants this order.
type List = BTreeMap<(u16, u32), u16>;

/// Adds entries, such as `u:1:rwx` or `d:g:2:rx`, to the lists of `path`. Without an entry for the mask, it becomes
/// what the entries for groups and named users have in all.
pub(crate) fn add(path: &Path, entries: &str) -> io::Result<()> {
    let mode = fs::symlink_metadata(path)?.permissions().mode() as u16;
    let base = [(OWNER, mode >> 6), (GROUP, mode >> 3), (OTHERS, mode)];
    let base = base.map(|(tag, rights)| ((tag, NO_ID), rights & 7));
    let access = read(path, ACCESS)?.unwrap_or(List::from(base));
    let is_base = |tag| [OWNER, GROUP, OTHERS].contains(&tag);
    let mut base = access.clone();
    base.retain(|(tag, _), _| is_base(*tag));

    let (default, own): (Vec<_>, Vec<_>) = entries
        .split(',')
        .partition(|entry| entry.starts_with("d:"));
    if !own.is_empty() {
        write(path, ACCESS, access, own.into_iter().map(parsed).collect())?;
    }
    if !default.is_empty() {
        let added = default.into_iter().map(|entry| parsed(&entry[2..]));
        let list = read(path, DEFAULT)?.unwrap_or(base);
        write(path, DEFAULT, list, added.collect())?;
    }
    Ok(())
}

fn parsed(entry: &str) -> ((u16, u32), u16) {
    let [kind, id, rights] = entry.splitn(3, ':').collect::<Vec<_>>()[..] else {
        panic!("{entry:?} is not an entry of an ACL");
    };
    let tag = match (kind, id.is_empty()) {
        ("u", true) => OWNER,
        ("u", false) => USER,
        ("g", true) => GROUP,
        ("g", false) => NAMED_GROUP,
        ("m", true) => MASK,
        ("o", true) => OTHERS,
        _ => panic!("{entry:?} is not an entry of an ACL"),
    };
    let right = |(letter, bit)| if rights.contains(letter) { bit } else { 0 };
    let rights = [('r', 4), ('w', 2), ('x', 1)].map(right).iter().sum();
    let id = match id {
        "" => NO_ID,
        _ => id.parse().expect("ids are numbers"),
    };
    ((tag, id), rights)
}

fn read(path: &Path, name: &str) -> io::Result<Option<List>> {
    let mut value = Vec::with_capacity(XATTR_MAX_BYTES);
    match lgetxattr(path, name, spare_capacity(&mut value)) {
        Err(Errno::NODATA) => return Ok(None),
        got => got?,
    };
    let entries = value[VERSION.len()..].chunks_exact(ENTRY_BYTES);
    let list = entries.map(|entry| {
        let word = |at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
        let id = u32::from(word(4)) | u32::from(word(6)) << 16;
        ((word(0), id), word(2))
    });
    Ok(Some(list.collect()))
}

fn write(path: &Path, name: &str, mut list: List, added: List) -> io::Result<()> {
    let has_mask = added.contains_key(&(MASK, NO_ID));
    list.extend(added);
    let is_limited = |tag| [USER, GROUP, NAMED_GROUP].contains(&tag);
    let limited = list.iter().filter(|((tag, _), _)| is_limited(*tag));
    let all = limited.fold(0, |all, (_, rights)| all | rights);
    // A list of the owner, the group and others alone has no mask.
    if !has_mask && list.len() > 3 {
        list.insert((MASK, NO_ID), all);
    }
    let mut value = VERSION.to_vec();
    for ((tag, id), rights) in list {
        value.extend([tag.to_le_bytes(), rights.to_le_bytes()].concat());
        value.extend(id.to_le_bytes());
    }
    Ok(lsetxattr(path, name, &value, XattrFlags::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        or_skip,
        probe::run,
        skip,
        snapshot::{Attributes, assert_same_tree},
        tree::{Scratch, Tree},
    };

    #[test]
    fn lists_are_those_of_setfacl() {
        let [ours, theirs] = [(); 2].map(|()| Scratch::new());
        if !crate::probe::supports_acls(ours.path()) {
            skip!("the temporary directory has no ACLs");
        }
        for entries in [
            &["u:1:rwx,g:77:r"][..],
            &["u:1:rw,m::r", "g:2:x", "u:1:-"],
            &["d:u:1:rwx,d:g:2:rx,d:o::-", "u:5:w"],
            &["d:u::rwx,d:g::rwx,d:o::-", "d:u:3:r"],
            &["u::rw,g::r,o::-"],
        ] {
            for scratch in [&ours, &theirs] {
                Tree::at(scratch.path()).dir("d").mode(0o2741);
            }
            for entries in entries {
                add(&ours.path().join("d"), entries).unwrap();
                let dir = theirs.path().join("d");
                let args = ["-m", entries].map(AsRef::as_ref);
                or_skip!(run("setfacl", args.into_iter().chain([dir.as_os_str()])));
            }
            assert_same_tree(
                &ours,
                &theirs,
                Attributes::ALL - Attributes::ATIME - Attributes::MTIME,
            );
            for scratch in [&ours, &theirs] {
                fs::remove_dir(scratch.path().join("d")).unwrap();
            }
        }
    }
}
