use super::*;
use crate::sys::open_named;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use testkit::{
    probe::has_calls_of,
    skip,
    tree::{Scratch, Tree},
};

/// A kernel or a sandbox that lacks what these say.
fn lacking(fchmodat2: bool, xattrat: bool, proc: bool) -> Lacking {
    Lacking {
        fchmodat2: fchmodat2.into(),
        xattrat: xattrat.into(),
        proc: proc.into(),
    }
}

fn with_named(path: &Path, test: impl FnOnce(Named<'_>)) {
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    let at = At {
        dir: CWD,
        name: &name,
        symlinks: Symlinks::NoFollow,
    };
    let fd = open_named(&at).unwrap();
    let (fd, at) = (fd.as_fd(), Some(at));
    test(Named { fd, at });
}

fn mode(of: &Named<'_>) -> u32 {
    stat_open(of.fd).unwrap().st_mode & 0o7777
}

fn with_directory(test: impl FnOnce(Named<'_>)) {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).dir("d");
    with_named(&scratch.path().join("d"), test);
}

fn with_fifo(test: impl FnOnce(Named<'_>)) {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).fifo("f");
    with_named(&scratch.path().join("f"), test);
}

fn takes_a_mode_by_the_descriptor_or_by_way_of_proc(named: Named<'_>) {
    let by_descriptor = lacking(false, true, has_calls_of(6, 6));
    named.set_mode_with(0o2710, &by_descriptor).unwrap();
    assert_eq!(mode(&named), 0o2710);
    let by_proc = lacking(true, true, false);
    named.set_mode_with(0o1701, &by_proc).unwrap();
    assert_eq!(mode(&named), 0o1701);
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
    with_directory(|named| {
        let set = named.set_mode_with(0o710, &lacking(true, true, true));
        assert_eq!((set, mode(&named)), (Ok(()), 0o710));
    });
}

#[test]
fn with_nothing_a_fifo_stays_as_it_is() {
    with_fifo(|named| {
        let (before, nothing) = (mode(&named), lacking(true, true, true));
        let set = named.set_mode_with(0o710, &nothing);
        assert_eq!((set, mode(&named)), (Err(Errno::NOSYS), before));
        let listed = named.reach_with(Xattr::List(&mut [0; 256]), &nothing);
        assert_eq!(listed, Err(OUT_OF_REACH));
    });
}

fn takes_attributes(named: Named<'_>, bits: u32, lacking: &Lacking) {
    /// Of those that anybody may set, on a directory; on others, ACLs are.
    const NAME: &CStr = crate::sys::ACCESS_ACL;
    let (acl, mut buffer) = (crate::sys::plain_acl(bits), [0; 256]);
    match named.reach_with(Xattr::Set(NAME, &acl), lacking) {
        Err(Errno::OPNOTSUPP) => skip!("no ACLs here"),
        set => assert_eq!(set, Ok(0)),
    }
    assert_eq!(mode(&named), bits);
    // A plain one is nothing but the mode.
    let got = named.reach_with(Xattr::Get(NAME, &mut buffer), lacking);
    assert_eq!(got, Err(Errno::NODATA));
    let listed = named.reach_with(Xattr::List(&mut buffer), lacking);
    assert!(listed.is_ok(), "{listed:?}");
    let removed = named.reach_with(Xattr::Remove(NAME), lacking);
    assert_eq!(removed, Ok(0));
}

#[test]
fn attributes_go_by_way_of_proc() {
    with_directory(|named| takes_attributes(named, 0o711, &lacking(false, true, false)));
    with_fifo(|named| takes_attributes(named, 0o711, &lacking(false, true, false)));
}

#[test]
fn attributes_of_a_directory_go_by_opening_it() {
    with_directory(|named| takes_attributes(named, 0o722, &lacking(false, true, true)));
}

#[test]
fn attributes_of_a_fifo_go_by_name_where_the_kernel_has_the_calls() {
    if !has_calls_of(6, 13) {
        skip!("setxattrat and its like may be missing");
    }
    with_fifo(|named| takes_attributes(named, 0o722, &lacking(false, false, true)));
}

#[test]
fn what_has_taken_the_name_meanwhile_is_left_alone() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).fifo("f").fifo("other");
    let path = scratch.path().join("f");
    with_named(&path, |named| {
        std::fs::rename(scratch.path().join("other"), &path).unwrap();
        let acl = crate::sys::plain_acl(0o777);
        let set = named.reach_with(
            Xattr::Set(crate::sys::ACCESS_ACL, &acl),
            &lacking(false, false, true),
        );
        assert_eq!(set, Err(Errno::STALE));
    });
}

/// Says that the path is missing, and yet finds the name.
struct Gone;

impl Deed for Gone {
    type Output = ();

    fn on_open(&mut self, _: BorrowedFd<'_>) -> Result<(), Errno> {
        Ok(())
    }

    fn by_path(&mut self, _: &CStr) -> Result<(), Errno> {
        Err(Errno::NOENT)
    }

    fn by_name(&mut self, _: &At<'_>, _: &Lacking) -> Result<(), Errno> {
        Ok(())
    }
}

#[test]
fn an_inode_that_is_gone_is_not_taken_for_a_missing_proc() {
    with_fifo(|named| {
        let lacking = lacking(false, false, false);
        assert_eq!(named.reach_with(Gone, &lacking), Err(Errno::NOENT));
        assert!(!lacking.proc.into_inner());
    });
}

fn denied() -> Result<(), Errno> {
    Err(Errno::PERM)
}

#[test]
fn a_call_that_a_sandbox_refuses_is_missing() {
    const OF_NO_KERNEL: c_long = 100_000;
    let lacking = lacking(false, false, false);
    let refused = lacking.unless_missing(&lacking.xattrat, OF_NO_KERNEL, denied);
    assert_eq!(refused, Err(Errno::NOSYS));
    assert!(lacking.xattrat.into_inner());
}

#[test]
fn a_call_that_is_refused_for_this_inode_is_not_missing() {
    if !has_calls_of(6, 13) {
        skip!("all may be missing");
    }
    for number in [
        FCHMODAT2,
        SETXATTRAT,
        GETXATTRAT,
        LISTXATTRAT,
        REMOVEXATTRAT,
    ] {
        let lacking = lacking(false, false, false);
        let refused = lacking.unless_missing(&lacking.xattrat, number, denied);
        assert_eq!(refused, Err(Errno::PERM));
        assert!(!lacking.xattrat.into_inner());
    }
}
