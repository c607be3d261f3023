//! Attributes during a copy. A source that is a FIFO blocks the copy, so that a test can look at the unfinished dest.

use std::{
    ffi::CString,
    fs::{self, File, OpenOptions},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    thread,
};

use fuc_engine::{CopyOp, Dest, ModePolicy, Operation, Preserve};
use rustix::io::Errno;
use testkit::{
    needs,
    tree::{Scratch, Tree},
};

use crate::kit::{self, Told, copy_with, until};

fn keeping(modes: ModePolicy, parents: bool) -> CopyOp<'static> {
    CopyOp::new().with(|options| {
        options.recursive = false;
        options.parents = parents;
        options.preserve.mode = modes;
    })
}

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Copies `fifo` into `into`, and calls `meanwhile` when `dest` exists and has no content yet.
fn held_up(
    options: CopyOp<'static>,
    [fifo, into, dest]: [&Path; 3],
    meanwhile: impl FnOnce(),
) -> Told {
    thread::scope(|scope| {
        let copying = scope.spawn(|| copy_with(options, [fifo], &Dest::Into(into.to_owned())));
        // Opening the FIFO blocks until the copy opens it.
        let writer: File = OpenOptions::new().write(true).open(fifo).unwrap();
        until("nothing was made", || dest.exists());
        meanwhile();
        drop(writer);
        copying.join().unwrap()
    })
}

#[test]
fn a_made_parent_swapped_for_a_link_leads_nowhere() {
    let scratch = Scratch::in_memory();
    let at = |name: &str| scratch.at(name);
    Tree::at(at("s")).plant("a/b/fifo<fifo> a/b %777 a %777");
    Tree::at(at("victim")).plant("b/ %700");
    fs::create_dir(at("d")).unwrap();
    let made = at("d").join(at("s").strip_prefix("/").unwrap());
    let (fifo, into, dest) = (at("s/a/b/fifo"), at("d"), made.join("a/b/fifo"));
    let paths = [fifo.as_path(), &into, &dest];
    let told = held_up(keeping(ModePolicy::Preserve, true), paths, || {
        fs::rename(made.join("a"), at("moved")).unwrap();
        symlink(at("victim"), made.join("a")).unwrap();
    });
    assert_eq!(mode_of(&at("victim/b")), 0o700);
    // There is one failure for each of the two directories on the way.
    assert_eq!(told.failures.len(), 2, "{told:?}");
}

#[test]
fn copies_belong_to_their_maker_alone_until_they_have_their_mode() {
    for (modes, in_the_end) in [(ModePolicy::Preserve, 0o640), (ModePolicy::Discard, 0o644)] {
        let scratch = Scratch::in_memory();
        if !testkit::probe::supports_acls(scratch.path()) {
            testkit::skip!("no ACLs here");
        }
        let at = |name: &str| scratch.at(name);
        Tree::at(at("s")).plant("fifo<fifo> %640");
        Tree::at(at("d")).select("").acl("d:u:1000:rwx");
        let (fifo, into, dest) = (at("s/fifo"), at("d"), at("d/fifo"));
        let told = held_up(keeping(modes, false), [&fifo, &into, &dest], || {
            // The group bits show the mask of the ACL.
            assert_eq!(mode_of(&dest) & 0o077, 0);
        });
        assert_eq!(told.failures, []);
        assert_eq!(mode_of(&dest) & !0o022, in_the_end);
    }
}

/// Returns the SELinux context of a name, without following it.
fn context_of(path: &Path) -> Option<Vec<u8>> {
    let mut buffer = [0; 16];
    let length = rustix::fs::lgetxattr(path, "security.selinux", &mut buffer).ok()?;
    Some(buffer[..length].to_vec())
}

fn with_context(context: CString, preserve: Preserve) -> CopyOp<'static> {
    CopyOp::new().with(|copy| {
        copy.preserve = preserve;
        copy.context = Some(context);
    })
}

#[test]
fn a_context_is_copied_alone_or_that_is_given_to_all_copies_which_is_asked_for() {
    needs!(root);
    let scratch = Scratch::in_memory();
    let at = |name: &str| scratch.at(name);
    Tree::at(at("s"))
        .plant("full=x")
        .xattr("security.selinux", "a:b:c")
        .xattr("user.other", "x")
        .plant("empty= found=x")
        .file("sub/large", vec![1; 5 << 20])
        .plant("sub/fifo<fifo> sub/link->large");
    Tree::at(at("found")).plant("found=y");
    let mut with_theirs = Preserve::default();
    with_theirs.context = true;
    let copying = CopyOp::new().with(|copy| copy.preserve = with_theirs);
    assert_eq!(
        copy_with(copying, [at("s")], &Dest::Exactly(at("theirs"))).failures,
        []
    );
    assert_eq!(context_of(&at("theirs/full")), Some(b"a:b:c".to_vec()));
    let other = rustix::fs::getxattr(at("theirs/full"), "user.other", &mut [0; 16]);
    assert_eq!(other, Err(Errno::NODATA));
    for preserve in [Preserve::default(), Preserve::all()] {
        let copying = with_context(c"x:y:z".into(), preserve);
        assert_eq!(
            copy_with(copying, [at("s")], &Dest::Exactly(at("found"))).failures,
            []
        );
        for name in [
            "",
            "full",
            "empty",
            "found",
            "sub",
            "sub/large",
            "sub/fifo",
            "sub/link",
        ] {
            let context = context_of(&at("found").join(name));
            assert_eq!(context, Some(b"x:y:z\0".to_vec()), "{name}");
        }
        fs::remove_dir_all(at("found")).unwrap();
    }
}

#[test]
fn a_file_has_its_context_before_its_content() {
    needs!(root);
    let scratch = Scratch::in_memory();
    let at = |name: &str| scratch.at(name);
    scratch.plant("fifo<fifo> d/");
    let options = with_context(c"x:y:z".into(), Preserve::default());
    let options = options.with(|copy| copy.recursive = false);
    let (fifo, into, dest) = (at("fifo"), at("d"), at("d/fifo"));
    let told = held_up(options, [&fifo, &into, &dest], || {
        until("no context without content", || {
            context_of(&dest) == Some(b"x:y:z\0".to_vec())
        });
    });
    assert_eq!(told.failures, []);
}

#[test]
fn content_is_copied_without_the_context_that_is_asked_for() {
    let scratch = Scratch::in_memory();
    let at = |name: &str| scratch.at(name);
    let tree = Tree::at(&scratch);
    tree.plant("s/found=new s/other=x d/found=old");
    // The kernel refuses an attribute of this length even for root.
    let options = with_context(
        CString::new("x".repeat(100_000)).unwrap(),
        Preserve::default(),
    );
    let told = copy_with(
        options,
        [at("s/found"), at("s/other")],
        &Dest::Into(at("d")),
    );
    let failed = told.failures.iter().map(|it| (it.cause, it.path.clone()));
    let cause = kit::failed(Operation::SetContext, Errno::TOOBIG);
    let expected = ["d/found", "d/other"].map(|name| (cause, at(name)));
    assert_eq!(failed.collect::<Vec<_>>(), expected);
    let content = |name| fs::read_to_string(at(name)).unwrap();
    assert_eq!(["d/found", "d/other"].map(content), ["new", "x"]);
}
