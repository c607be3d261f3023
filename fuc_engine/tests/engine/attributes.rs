//! Attributes during a copy. A source that is a FIFO blocks the copy, so that a test can look at the unfinished dest.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use fuc_engine::{CopyOp, Dest, ModePolicy, Operation, Preserve};
use rustix::io::Errno;
use testkit::tree::{Scratch, Tree};

use crate::kit::{self, Told, copy_with};

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
        let end = Instant::now() + Duration::from_secs(20);
        while !dest.exists() {
            assert!(Instant::now() < end, "nothing was made");
            thread::yield_now();
        }
        meanwhile();
        drop(writer);
        copying.join().unwrap()
    })
}

#[test]
fn a_made_parent_swapped_for_a_link_leads_nowhere() {
    let scratch = Scratch::in_memory();
    let at = |name: &str| scratch.path().join(name);
    Tree::at(at("s"))
        .fifo("a/b/fifo")
        .select("a/b")
        .mode(0o777)
        .select("a")
        .mode(0o777);
    Tree::at(at("victim")).dir("b").mode(0o700);
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

#[track_caller]
fn is_its_makers_alone_until_complete(modes: ModePolicy, in_the_end: u32) {
    let scratch = Scratch::in_memory();
    if !testkit::probe::supports_acls(scratch.path()) {
        testkit::skip!("no ACLs here");
    }
    let at = |name: &str| scratch.path().join(name);
    Tree::at(at("s")).fifo("fifo").mode(0o640);
    Tree::at(at("d")).select("").acl("d:u:1000:rwx");
    let (fifo, into, dest) = (at("s/fifo"), at("d"), at("d/fifo"));
    let told = held_up(keeping(modes, false), [&fifo, &into, &dest], || {
        // The group bits show the mask of the ACL.
        assert_eq!(mode_of(&dest) & 0o077, 0);
    });
    assert_eq!(told.failures, []);
    assert_eq!(mode_of(&dest) & !0o022, in_the_end);
}

#[test]
fn copies_belong_to_their_maker_alone_until_their_mode_is_set() {
    is_its_makers_alone_until_complete(ModePolicy::Preserve, 0o640);
}

#[test]
fn copies_belong_to_their_maker_alone_until_they_get_a_new_files_mode() {
    is_its_makers_alone_until_complete(ModePolicy::Discard, 0o644);
}

#[test]
fn a_context_is_copied_without_the_other_attributes() {
    if !testkit::probe::is_root() {
        testkit::skip!("only root can set contexts");
    }
    let scratch = Scratch::in_memory();
    let at = |name: &str| scratch.path().join(name);
    Tree::at(at("s"))
        .file("f", "x")
        .xattr("security.selinux", "a:b:c")
        .xattr("user.other", "x");
    fs::create_dir(at("d")).unwrap();
    let options = CopyOp::new().with(|options| options.preserve.context = true);
    let told = copy_with(options, [at("s/f")], &Dest::Into(at("d")));
    assert_eq!(told.failures, []);
    let value = |name: &str| {
        let mut buffer = [0; 16];
        let length = rustix::fs::getxattr(at("d/f"), name, &mut buffer)?;
        Ok::<_, Errno>(buffer[..length].to_vec())
    };
    assert_eq!(value("security.selinux"), Ok(b"a:b:c".to_vec()));
    assert_eq!(value("user.other"), Err(Errno::NODATA));
}

/// Returns the SELinux context of a name, without following it.
fn context_of(path: &Path) -> Result<Vec<u8>, Errno> {
    let mut buffer = [0; 16];
    let length = rustix::fs::lgetxattr(path, "security.selinux", &mut buffer)?;
    Ok(buffer[..length].to_vec())
}

#[test]
fn a_context_that_is_asked_for_is_that_of_all_copies() {
    if !testkit::probe::is_root() {
        testkit::skip!("only root can set contexts");
    }
    let scratch = Scratch::in_memory();
    let at = |name: &str| scratch.path().join(name);
    Tree::at(at("s"))
        .file("full", "x")
        .xattr("security.selinux", "a:b:c")
        .xattr("user.other", "x")
        .file("empty", "")
        .file("found", "x")
        .file("sub/large", vec![1; 5 << 20])
        .fifo("sub/fifo")
        .symlink("sub/link", "large");
    Tree::at(at("d")).file("found", "y");
    for preserve in [Preserve::default(), Preserve::all()] {
        let options = CopyOp::new().with(|options| {
            options.preserve = preserve;
            options.context = Some(c"x:y:z".into());
        });
        let told = copy_with(options, [at("s")], &Dest::Exactly(at("d")));
        assert_eq!(told.failures, []);
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
            assert_eq!(
                context_of(&at("d").join(name)),
                Ok(b"x:y:z\0".to_vec()),
                "{name}"
            );
        }
        std::fs::remove_dir_all(at("d")).unwrap();
    }
}

#[test]
fn a_file_has_its_context_before_its_content() {
    if !testkit::probe::is_root() {
        testkit::skip!("only root can set contexts");
    }
    let scratch = Scratch::in_memory();
    let at = |name: &str| scratch.path().join(name);
    Tree::at(scratch.path()).fifo("fifo").dir("d");
    let options = CopyOp::new().with(|options| {
        options.recursive = false;
        options.context = Some(c"x:y:z".into());
    });
    let (fifo, into, dest) = (at("fifo"), at("d"), at("d/fifo"));
    let told = held_up(options, [fifo.as_path(), &into, &dest], || {
        let end = Instant::now() + Duration::from_secs(20);
        while context_of(&dest) != Ok(b"x:y:z\0".to_vec()) {
            assert!(Instant::now() < end, "no context without content");
            thread::yield_now();
        }
    });
    assert_eq!(told.failures, []);
}

#[test]
fn content_is_copied_without_the_context_that_is_asked_for() {
    let scratch = Scratch::in_memory();
    let at = |name: &str| scratch.path().join(name);
    let tree = Tree::at(scratch.path());
    tree.file("s/found", "new")
        .file("s/other", "x")
        .file("d/found", "old");
    let options = CopyOp::new().with(|options| {
        options.recursive = false;
        // The kernel refuses an attribute of this length even for root.
        options.context = Some(CString::new("x".repeat(100_000)).unwrap());
    });
    let told = copy_with(
        options,
        [at("s/found"), at("s/other")],
        &Dest::Into(at("d")),
    );
    let failed = told
        .failures
        .iter()
        .map(|failure| (failure.cause, failure.path.clone()));
    let cause = kit::failed(Operation::SetContext, Errno::TOOBIG);
    assert_eq!(
        failed.collect::<Vec<_>>(),
        [(cause, at("d/found")), (cause, at("d/other"))]
    );
    for (name, content) in [("d/found", "new"), ("d/other", "x")] {
        assert_eq!(fs::read_to_string(at(name)).unwrap(), content);
    }
}
