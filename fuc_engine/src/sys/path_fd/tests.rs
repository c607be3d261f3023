use super::*;
use crate::sys::open_path;
use crate::sys::xattr::Xattr;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use testkit::{
    probe::has_calls_of,
    skip,
    tree::{Scratch, Tree},
};

#[derive(Clone, Copy)]
enum Feature {
    Fchmodat2,
    Xattrat,
    Proc,
}
use Feature::{Fchmodat2, Proc, Xattrat};

/// Returns the state of a machine that lacks these features.
fn without(features: impl IntoIterator<Item = Feature>) -> MissingCalls {
    let missing = MissingCalls::default();
    for feature in features {
        let flag = match feature {
            Fchmodat2 => &missing.fchmodat2,
            Xattrat => &missing.xattrat,
            Proc => &missing.proc,
        };
        flag.store(true, Relaxed);
    }
    missing
}

fn with_path_fd(path: &Path, test: impl FnOnce(PathFd<'_>)) {
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    let at = At {
        dir: CWD,
        name: &name,
        symlinks: Symlinks::NoFollow,
    };
    let fd = open_path(at).unwrap();
    let (fd, at) = (fd.as_fd(), Some(at));
    test(PathFd { fd, at });
}

fn mode(of: &PathFd<'_>) -> u32 {
    stat_open(of.fd).unwrap().st_mode & 0o7777
}

fn with_directory(test: impl FnOnce(PathFd<'_>)) {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).dir("d");
    with_path_fd(&scratch.path().join("d"), test);
}

fn with_fifo(test: impl FnOnce(PathFd<'_>)) {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).fifo("f");
    with_path_fd(&scratch.path().join("f"), test);
}

fn takes_a_mode_by_the_descriptor_or_through_proc(path_fd: PathFd<'_>) {
    // With fchmodat2, the mode does not need /proc.
    let proc = has_calls_of(6, 6).then_some(Proc);
    let by_descriptor = without([Xattrat].into_iter().chain(proc));
    path_fd.set_mode_with(0o2710, &by_descriptor).unwrap();
    assert_eq!(mode(&path_fd), 0o2710);
    let by_proc = without([Fchmodat2, Xattrat]);
    path_fd.set_mode_with(0o1701, &by_proc).unwrap();
    assert_eq!(mode(&path_fd), 0o1701);
}

#[test]
fn a_directory_takes_a_mode_by_the_descriptor_or_through_proc() {
    with_directory(takes_a_mode_by_the_descriptor_or_through_proc);
}

#[test]
fn a_fifo_takes_a_mode_by_the_descriptor_or_through_proc() {
    with_fifo(takes_a_mode_by_the_descriptor_or_through_proc);
}

#[test]
fn without_any_feature_a_directory_is_opened() {
    with_directory(|path_fd| {
        let set = path_fd.set_mode_with(0o710, &without([Fchmodat2, Xattrat, Proc]));
        assert_eq!((set, mode(&path_fd)), (Ok(()), 0o710));
    });
}

#[test]
fn without_any_feature_a_fifo_stays_as_it_is() {
    with_fifo(|path_fd| {
        let (before, nothing) = (mode(&path_fd), without([Fchmodat2, Xattrat, Proc]));
        let set = path_fd.set_mode_with(0o710, &nothing);
        assert_eq!((set, mode(&path_fd)), (Err(Errno::NOSYS), before));
        let listed = path_fd.apply_with(Xattr::List(&mut [0; 256]), &nothing);
        assert_eq!(listed, Err(InodeError::NoWay));
    });
}

fn takes_attributes(path_fd: PathFd<'_>, bits: u32, missing: &MissingCalls) {
    /// An ACL: of all attributes that do not need root, only ACLs can be set on a FIFO.
    const NAME: &CStr = crate::sys::ACCESS_ACL;
    let (acl, mut buffer) = (crate::sys::plain_acl(bits), [0; 256]);
    match path_fd.apply_with(Xattr::Set(NAME, &acl), missing) {
        Err(InodeError::Failed(Errno::OPNOTSUPP)) => skip!("no ACLs here"),
        set => assert_eq!(set, Ok(0)),
    }
    assert_eq!(mode(&path_fd), bits);
    // The kernel does not store an ACL that says the same as the mode.
    let got = path_fd.apply_with(Xattr::Get(NAME, &mut buffer), missing);
    assert_eq!(got, Err(Errno::NODATA.into()));
    let listed = path_fd.apply_with(Xattr::List(&mut buffer), missing);
    assert!(listed.is_ok(), "{listed:?}");
    let removed = path_fd.apply_with(Xattr::Remove(NAME), missing);
    assert_eq!(removed, Ok(0));
}

#[test]
fn attributes_go_through_proc() {
    with_directory(|path_fd| takes_attributes(path_fd, 0o711, &without([Xattrat])));
    with_fifo(|path_fd| takes_attributes(path_fd, 0o711, &without([Xattrat])));
}

#[test]
fn attributes_of_a_directory_go_by_opening_it() {
    with_directory(|path_fd| takes_attributes(path_fd, 0o722, &without([Xattrat, Proc])));
}

#[test]
fn attributes_of_a_fifo_go_by_name_if_the_kernel_has_the_calls() {
    if !has_calls_of(6, 13) {
        skip!("setxattrat and its like may be missing");
    }
    with_fifo(|path_fd| takes_attributes(path_fd, 0o722, &without([Proc])));
}

#[test]
fn another_inode_that_has_taken_the_name_is_left_alone() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).fifo("f").fifo("other");
    let path = scratch.path().join("f");
    with_path_fd(&path, |path_fd| {
        std::fs::rename(scratch.path().join("other"), &path).unwrap();
        let acl = crate::sys::plain_acl(0o777);
        let set = path_fd.apply_with(Xattr::Set(crate::sys::ACCESS_ACL, &acl), &without([Proc]));
        assert_eq!(set, Err(Errno::STALE.into()));
    });
}

/// An operation that fails by path as if /proc were missing, and succeeds by name.
struct Gone;

impl InodeOp for Gone {
    type Output = ();

    fn on_open(&mut self, _: BorrowedFd<'_>) -> Result<(), Errno> {
        Ok(())
    }

    fn by_path(&mut self, _: &CStr) -> Result<(), Errno> {
        Err(Errno::NOENT)
    }

    fn by_name(&mut self, _: &At<'_>, _: &MissingCalls) -> Result<(), InodeError> {
        Ok(())
    }
}

#[test]
fn an_inode_that_is_gone_is_not_taken_for_a_missing_proc() {
    with_fifo(|path_fd| {
        let missing = without([]);
        assert_eq!(path_fd.apply_with(Gone, &missing), Err(Errno::NOENT.into()));
        assert!(!missing.proc.into_inner());
    });
}

fn denied() -> Result<(), Errno> {
    Err(Errno::PERM)
}

#[test]
fn a_call_that_a_sandbox_refuses_is_missing() {
    let missing = without([]);
    let refused = unless_missing(&missing.xattrat, Call::UNKNOWN, denied);
    assert_eq!(refused, Err(Errno::NOSYS));
    assert!(missing.xattrat.into_inner());
}

#[test]
fn a_call_that_is_refused_for_this_inode_is_not_missing() {
    if !has_calls_of(6, 13) {
        skip!("all may be missing");
    }
    for call in [
        Call::FCHMODAT2,
        Call::SETXATTRAT,
        Call::GETXATTRAT,
        Call::LISTXATTRAT,
        Call::REMOVEXATTRAT,
    ] {
        let missing = without([]);
        let refused = unless_missing(&missing.xattrat, call, denied);
        assert_eq!(refused, Err(Errno::PERM));
        assert!(!missing.xattrat.into_inner());
    }
}
