use super::*;
use crate::sys::open_path_only;
use crate::sys::xattr::Xattr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use testkit::{
    probe::has_calls_of,
    skip,
    tree::{Scratch, Tree},
};

/// A kernel or a sandbox that lacks what these say.
fn missing(fchmodat2: bool, xattrat: bool, proc: bool) -> MissingCalls {
    MissingCalls {
        fchmodat2: fchmodat2.into(),
        xattrat: xattrat.into(),
        proc: proc.into(),
    }
}

fn with_path_fd(path: &Path, test: impl FnOnce(PathFd<'_>)) {
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    let at = At {
        dir: CWD,
        name: &name,
        symlinks: Symlinks::NoFollow,
    };
    let fd = open_path_only(&at).unwrap();
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

fn takes_a_mode_by_the_descriptor_or_by_way_of_proc(path_fd: PathFd<'_>) {
    let by_descriptor = missing(false, true, has_calls_of(6, 6));
    path_fd.set_mode_with(0o2710, &by_descriptor).unwrap();
    assert_eq!(mode(&path_fd), 0o2710);
    let by_proc = missing(true, true, false);
    path_fd.set_mode_with(0o1701, &by_proc).unwrap();
    assert_eq!(mode(&path_fd), 0o1701);
}

#[test]
fn a_directory_takes_a_mode_by_the_descriptor_or_by_way_of_proc() {
    with_directory(takes_a_mode_by_the_descriptor_or_by_way_of_proc);
}

#[test]
fn a_fifo_takes_a_mode_by_the_descriptor_or_by_way_of_proc() {
    with_fifo(takes_a_mode_by_the_descriptor_or_by_way_of_proc);
}

#[test]
fn with_nothing_a_directory_is_opened() {
    with_directory(|path_fd| {
        let set = path_fd.set_mode_with(0o710, &missing(true, true, true));
        assert_eq!((set, mode(&path_fd)), (Ok(()), 0o710));
    });
}

#[test]
fn with_nothing_a_fifo_stays_as_it_is() {
    with_fifo(|path_fd| {
        let (before, nothing) = (mode(&path_fd), missing(true, true, true));
        let set = path_fd.set_mode_with(0o710, &nothing);
        assert_eq!((set, mode(&path_fd)), (Err(Errno::NOSYS), before));
        let listed = path_fd.apply_with(Xattr::List(&mut [0; 256]), &nothing);
        assert_eq!(listed, Err(InodeError::NoWay));
    });
}

fn takes_attributes(path_fd: PathFd<'_>, bits: u32, missing: &MissingCalls) {
    /// Of those that anybody may set, on a directory; on others, ACLs are.
    const NAME: &CStr = crate::sys::ACCESS_ACL;
    let (acl, mut buffer) = (crate::sys::plain_acl(bits), [0; 256]);
    match path_fd.apply_with(Xattr::Set(NAME, &acl), missing) {
        Err(InodeError::Failed(Errno::OPNOTSUPP)) => skip!("no ACLs here"),
        set => assert_eq!(set, Ok(0)),
    }
    assert_eq!(mode(&path_fd), bits);
    // A plain one is nothing but the mode.
    let got = path_fd.apply_with(Xattr::Get(NAME, &mut buffer), missing);
    assert_eq!(got, Err(Errno::NODATA.into()));
    let listed = path_fd.apply_with(Xattr::List(&mut buffer), missing);
    assert!(listed.is_ok(), "{listed:?}");
    let removed = path_fd.apply_with(Xattr::Remove(NAME), missing);
    assert_eq!(removed, Ok(0));
}

#[test]
fn attributes_go_by_way_of_proc() {
    with_directory(|path_fd| takes_attributes(path_fd, 0o711, &missing(false, true, false)));
    with_fifo(|path_fd| takes_attributes(path_fd, 0o711, &missing(false, true, false)));
}

#[test]
fn attributes_of_a_directory_go_by_opening_it() {
    with_directory(|path_fd| takes_attributes(path_fd, 0o722, &missing(false, true, true)));
}

#[test]
fn attributes_of_a_fifo_go_by_name_where_the_kernel_has_the_calls() {
    if !has_calls_of(6, 13) {
        skip!("setxattrat and its like may be missing");
    }
    with_fifo(|path_fd| takes_attributes(path_fd, 0o722, &missing(false, false, true)));
}

#[test]
fn what_has_taken_the_name_meanwhile_is_left_alone() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).fifo("f").fifo("other");
    let path = scratch.path().join("f");
    with_path_fd(&path, |path_fd| {
        std::fs::rename(scratch.path().join("other"), &path).unwrap();
        let acl = crate::sys::plain_acl(0o777);
        let set = path_fd.apply_with(
            Xattr::Set(crate::sys::ACCESS_ACL, &acl),
            &missing(false, false, true),
        );
        assert_eq!(set, Err(Errno::STALE.into()));
    });
}

/// Says that the path is missing, and yet finds the name.
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
        let missing = missing(false, false, false);
        assert_eq!(path_fd.apply_with(Gone, &missing), Err(Errno::NOENT.into()));
        assert!(!missing.proc.into_inner());
    });
}

fn denied() -> Result<(), Errno> {
    Err(Errno::PERM)
}

#[test]
fn a_call_that_a_sandbox_refuses_is_missing() {
    let missing = missing(false, false, false);
    let refused = missing.unless_missing(&missing.xattrat, Call::UNKNOWN, denied);
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
        let missing = missing(false, false, false);
        let refused = missing.unless_missing(&missing.xattrat, call, denied);
        assert_eq!(refused, Err(Errno::PERM));
        assert!(!missing.xattrat.into_inner());
    }
}
