use super::*;
use crate::sys::{ACCESS_ACL, plain_acl};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use testkit::{
    skip,
    tree::{Scratch, Tree},
};

fn with_path_fd(path: &Path, test: impl FnOnce(BorrowedFd<'_>)) {
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    let at = At {
        dir: CWD,
        name: &name,
        symlinks: Symlinks::NoFollow,
    };
    test(open_path(at).unwrap().as_fd());
}

fn mode(of: BorrowedFd<'_>) -> u32 {
    stat_open(of).unwrap().st_mode & 0o7777
}

fn with_directory(test: impl FnOnce(BorrowedFd<'_>)) {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).dir("d");
    with_path_fd(&scratch.path().join("d"), test);
}

fn with_fifo(test: impl FnOnce(BorrowedFd<'_>)) {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).fifo("f");
    with_path_fd(&scratch.path().join("f"), test);
}

fn change_mode(inode: Reached<'_>, mode: u32) -> Result<(), Errno> {
    let bits = Mode::from_raw_mode(mode & 0o7777);
    match inode {
        Reached::Opened(fd) => fs::fchmod(fd, bits),
        Reached::By(path) => fs::chmodat(CWD, path, bits, AtFlags::empty()),
    }
}

fn list_xattrs(inode: Reached<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    match inode {
        Reached::Opened(fd) => fs::flistxattr(fd, buffer),
        Reached::By(path) => fs::listxattr(path, buffer),
    }
}

fn get_xattr(inode: Reached<'_>, name: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
    match inode {
        Reached::Opened(fd) => fs::fgetxattr(fd, name, buffer),
        Reached::By(path) => fs::getxattr(path, name, buffer),
    }
}

fn set_xattr(inode: Reached<'_>, name: &CStr, value: &[u8]) -> Result<(), Errno> {
    match inode {
        Reached::Opened(fd) => fs::fsetxattr(fd, name, value, XattrFlags::empty()),
        Reached::By(path) => fs::setxattr(path, name, value, XattrFlags::empty()),
    }
}

fn remove_xattr(inode: Reached<'_>, name: &CStr) -> Result<(), Errno> {
    match inode {
        Reached::Opened(fd) => fs::fremovexattr(fd, name),
        Reached::By(path) => fs::removexattr(path, name),
    }
}

fn no_proc() -> Result<CString, Errno> {
    Err(Errno::NOENT)
}

#[test]
fn a_mode_is_taken_by_the_descriptor_or_through_proc() {
    let takes = |fd: BorrowedFd<'_>| {
        Inode::PathOnly(fd).set_mode(0o2710).unwrap();
        assert_eq!(mode(fd), 0o2710);
        call_by_path(path_of_open(fd), fd, |inode| change_mode(inode, 0o1701)).unwrap();
        assert_eq!(mode(fd), 0o1701);
    };
    with_directory(takes);
    with_fifo(takes);
}

#[test]
fn without_proc_a_directory_is_opened_and_a_fifo_stays_as_it_is() {
    let change =
        |fd: BorrowedFd<'_>| call_by_path(no_proc(), fd, |inode| change_mode(inode, 0o710));
    with_directory(|fd| assert_eq!((change(fd), mode(fd)), (Ok(()), 0o710)));
    with_fifo(|fd| {
        let before = mode(fd);
        assert_eq!((change(fd), mode(fd)), (Err(Errno::BADF), before));
        let listed = call_by_path(no_proc(), fd, |inode| list_xattrs(inode, &mut [0; 256]));
        assert_eq!(listed, Err(Errno::BADF));
    });
}

fn takes_attributes(
    fd: BorrowedFd<'_>,
    bits: u32,
    path: fn(BorrowedFd<'_>) -> Result<CString, Errno>,
) {
    /// An ACL: of all attributes that do not need root, only ACLs can be set on a FIFO.
    const NAME: &CStr = crate::sys::ACCESS_ACL;
    let (acl, mut buffer) = (crate::sys::plain_acl(bits), [0; 256]);
    match call_by_path(path(fd), fd, |inode| set_xattr(inode, NAME, &acl)) {
        Err(Errno::OPNOTSUPP) => skip!("no ACLs here"),
        set => assert_eq!(set, Ok(())),
    }
    assert_eq!(mode(fd), bits);
    // The kernel does not store an ACL that says the same as the mode.
    let got = call_by_path(path(fd), fd, |inode| get_xattr(inode, NAME, &mut buffer));
    assert_eq!(got, Err(Errno::NODATA));
    let listed = call_by_path(path(fd), fd, |inode| list_xattrs(inode, &mut buffer));
    assert!(listed.is_ok(), "{listed:?}");
    let removed = call_by_path(path(fd), fd, |inode| remove_xattr(inode, NAME));
    assert_eq!(removed, Ok(()));
}

#[test]
fn attributes_go_through_proc_or_by_opening_a_directory() {
    with_directory(|fd| takes_attributes(fd, 0o711, path_of_open));
    with_fifo(|fd| takes_attributes(fd, 0o711, path_of_open));
    with_directory(|fd| takes_attributes(fd, 0o722, |_| no_proc()));
}

/// Makes a call that fails through /proc.
fn refused_through_proc(fd: BorrowedFd<'_>, errno: Errno) -> Result<(), Errno> {
    call_by_path(path_of_open(fd), fd, |inode| match inode {
        Reached::Opened(_) => Ok(()),
        Reached::By(_) => Err(errno),
    })
}

#[test]
fn an_error_through_proc_is_about_the_inode_unless_a_sandbox_may_refuse_the_path() {
    with_fifo(|fd| {
        for errno in [Errno::NOENT, Errno::ACCESS] {
            assert_eq!(refused_through_proc(fd, errno), Err(errno));
        }
    });
    with_directory(|fd| {
        assert_eq!(refused_through_proc(fd, Errno::NOENT), Err(Errno::NOENT));
        assert_eq!(refused_through_proc(fd, Errno::ACCESS), Ok(()));
    });
}

#[test]
fn a_plain_acl_is_the_mode() {
    let file = tempfile::tempfile().unwrap();
    let inode = Inode::Opened(file.as_fd());
    match inode.set_xattr(ACCESS_ACL, &plain_acl(0o751)) {
        Err(Errno::OPNOTSUPP) => testkit::skip!("no ACLs here"),
        set => {
            set.unwrap();
            assert_eq!(fs::fstat(&file).unwrap().st_mode & 0o7777, 0o751);
        }
    }
}

#[test]
fn patterns_match_as_by_fnmatch() {
    for (pattern, name, matching) in [
        (c"a.*", c"a.", true),
        (c"a.*.z", c"a.b.c.z", true),
        (c"a.*.z", c"a.z", false),
        (c"?", c"", false),
        (c"a?c", c"abc", true),
        (c"[a-c]x", c"bx", true),
        (c"[!a-c]x", c"bx", false),
        (c"[]]", c"]", true),
        (c"[a-]", c"-", true),
        (c"[x", c"[x", true),
        (c"\\*", c"*", true),
        (c"\\*", c"a", false),
        (c"abc", c"ab", false),
    ] {
        let found = matches_pattern(pattern, name);
        assert_eq!(found, matching, "{pattern:?} {name:?}");
    }
}
