//! `--atomic`: an existing file is replaced when its copy is complete, and not before.

use std::{
    fs::{self, File},
    io::Read,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use testkit::{
    or_skip,
    probe::{Errno, Fs, FuseMount, Habits, LoopMount, NOBODY, is_root, supports_acls},
    run::{Run, Signal, Status},
    skip,
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, noise},
};

use crate::interrupts::{BEFORE, start_in_the_middle, write_until_closed};
use crate::support::{CPZ, complaint, succeeds};

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn read(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap()
}

#[test]
fn readers_see_the_old_file_until_the_new_one_is_complete() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    Tree::at(dir).fifo("fifo").file("old", "old");
    let mut opened = File::open(dir.join("old")).unwrap();
    let run = Run::new(CPZ)
        .args(["--atomic", "-L", "--copy-contents", "fifo", "old"])
        .current_dir(dir);
    let (live, fifo) = start_in_the_middle(&run, dir);
    assert_eq!(read(dir, "old"), "old");
    assert_eq!(names(dir).len(), 3, "the new file lies elsewhere");
    drop(fifo);
    let outcome = live.finish();
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    assert_eq!(fs::metadata(dir.join("old")).unwrap().len(), BEFORE as u64);
    assert_eq!(names(dir), ["fifo", "old"]);
    let mut seen = String::new();
    opened.read_to_string(&mut seen).unwrap();
    assert_eq!(seen, "old", "an open file changes");
}

#[test]
fn a_signal_leaves_the_old_file() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    Tree::at(dir).fifo("fifo").file("old", "old");
    let run = Run::new(CPZ)
        .args(["--atomic", "-L", "--copy-contents", "fifo", "old"])
        .current_dir(dir);
    let (live, fifo) = start_in_the_middle(&run, dir);
    live.signal(Signal::TERM);
    write_until_closed(fifo);
    let outcome = live.finish();
    assert_eq!(outcome.status, Status::Signal(15));
    assert_eq!(
        complaint(&outcome),
        "cpz: interrupted: 0 entries copied, 1 incomplete file removed\n"
    );
    assert_eq!(names(dir), ["fifo", "old"]);
    assert_eq!(read(dir, "old"), "old");
}

#[test]
fn a_failure_leaves_the_old_file() {
    let full = or_skip!(LoopMount::new(Fs::Tmpfs, 1));
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .file("s/big", noise(3 << 20))
        .symlink("full", full.path());
    Tree::at(full.path()).file("big", "old");
    let outcome = Run::new(CPZ)
        .args(["--atomic", "-T", "s", "full/"])
        .current_dir(&scratch)
        .output();
    assert_eq!(outcome.status, Status::Exit(1));
    assert_eq!(
        complaint(&outcome),
        "cpz: error writing 'full/big': No space left on device\n"
    );
    assert_eq!(names(full.path()), ["big"]);
    assert_eq!(read(full.path(), "big"), "old");
}

/// cp removes these dests first.
#[test]
fn a_failure_leaves_dests_with_several_names_and_links_too() {
    for way in [
        &["-aT"][..],
        &["-aT", "--delete"],
        &["-aT", "--resume", "--delete"],
    ] {
        let full = or_skip!(LoopMount::new(Fs::Tmpfs, 1));
        let scratch = Scratch::new();
        Tree::at(scratch.path())
            .file("s/linked", noise(3 << 20))
            .file("s/link", noise(3 << 20))
            .symlink("full", full.path());
        Tree::at(full.path())
            .file("d/linked", "old")
            .hardlink("d/linked", "other")
            .symlink("d/link", "../other");
        let outcome = Run::new(CPZ)
            .arg("--atomic")
            .args(way)
            .args(["s", "full/d"])
            .current_dir(&scratch)
            .output();
        assert_eq!(outcome.status, Status::Exit(1), "{way:?}: {outcome}");
        let dir = full.path().join("d");
        assert_eq!(names(&dir), ["link", "linked"], "{way:?}");
        assert_eq!(read(&dir, "linked"), "old", "{way:?}");
        assert!(dir.join("link").is_symlink(), "{way:?}");
        assert_eq!(fs::metadata(dir.join("linked")).unwrap().nlink(), 2);
    }
}

#[test]
fn permissions_stay_and_other_names_and_targets_of_links_keep_the_old_content() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    Tree::at(dir)
        .file("s/f", "new")
        .mode(0o600)
        .file("s/l", "new")
        .file("s/empty", "")
        .file("s/fresh", "new")
        .file("d/f", "old")
        .mode(0o640)
        .hardlink("d/f", "other")
        .file("target", "old")
        .symlink("d/l", "../target")
        .file("d/empty", "old");
    succeeds(dir, &["--atomic", "-T", "s", "d"]);
    let inode = |name: &str| fs::symlink_metadata(dir.join(name)).unwrap();
    assert_eq!(inode("d/f").permissions().mode() & 0o7777, 0o640);
    assert_ne!(inode("d/f").ino(), inode("other").ino());
    assert!(inode("d/l").is_file());
    let contents = ["d/f", "d/l", "d/empty", "d/fresh", "other", "target"];
    assert_eq!(
        contents.map(|name| read(dir, name)),
        ["new", "new", "", "new", "old", "old"]
    );
    assert_eq!(names(&dir.join("d")), ["empty", "f", "fresh", "l"]);

    succeeds(dir, &["--atomic", "-aT", "s", "d"]);
    assert_eq!(inode("d/f").permissions().mode() & 0o7777, 0o600);
    assert_eq!(inode("d/f").mtime(), inode("s/f").mtime());
}

#[test]
fn an_acl_stays_with_the_permissions() {
    let scratch = Scratch::new();
    if !supports_acls(scratch.path()) {
        skip!("no ACLs on the filesystem of the test");
    }
    let tree = Tree::at(scratch.path());
    tree.file("s", "new").mode(0o644);
    tree.file("d", "old").mode(0o640).acl("u:5:rw");
    let access = || {
        Snapshot::of(
            scratch.path().join("d"),
            Attributes::MODE | Attributes::XATTRS,
        )
    };
    let before = access();
    succeeds(&scratch, &["--atomic", "s", "d"]);
    assert_eq!(read(scratch.path(), "d"), "new");
    let difference = before.diff(&access());
    assert!(difference.is_empty(), "{difference}");
}

#[test]
fn the_owner_stays_if_root_copies() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    Tree::at(dir).file("new", "new").file("old", "old");
    if std::os::unix::fs::chown(dir.join("old"), Some(12), Some(34)).is_err() {
        skip!("changing owners takes root");
    }
    succeeds(dir, &["--atomic", "new", "old"]);
    let old = fs::metadata(dir.join("old")).unwrap();
    assert_eq!((old.uid(), old.gid()), (12, 34));
    assert_eq!(read(dir, "old"), "new");
}

#[test]
fn a_dest_that_is_the_source_is_refused() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    Tree::at(dir)
        .file("f", "content")
        .hardlink("f", "g")
        .symlink("l", "f");
    for dest in ["f", "g", "l"] {
        let outcome = Run::new(CPZ)
            .args(["--atomic", "f", dest])
            .current_dir(dir)
            .output();
        assert_eq!(outcome.status, Status::Exit(1), "{dest}: {outcome}");
        let message = format!("cpz: 'f' and '{dest}' are the same file\n");
        assert_eq!(complaint(&outcome), message);
    }
    assert_eq!(names(dir), ["f", "g", "l"]);
    assert!(dir.join("l").is_symlink());
}

#[test]
fn a_file_stays_if_its_server_stores_no_other_content() {
    let place = or_skip!(FuseMount::with(Habits {
        flush: Some(Errno::DQUOT),
        ..Habits::default()
    }));
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("new", "new");
    Tree::at(place.stored()).file("f", "old");
    let dest = place.path().join("f").display().to_string();
    let run = Run::new(CPZ).args(["--atomic", "new", &dest]);
    let outcome = run.current_dir(&scratch).output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    assert!(complaint(&outcome).contains(&dest), "{outcome}");
    assert_eq!(names(place.stored()), ["f"]);
    assert_eq!(read(place.stored(), "f"), "old");
}

#[test]
fn a_dry_run_foresees_a_directory_that_may_not_be_changed() {
    if !is_root() {
        skip!("only root can become another user");
    }
    let scratch = Scratch::new();
    let dir = scratch.path();
    Tree::at(dir)
        .file("s/f", "new")
        .file("s/same", "new")
        .file("d/f", "old")
        .mode(0o666)
        .file("d/same", "old")
        .mode(0o666)
        .select("")
        .mode(0o755);
    for (options, status, said) in [
        (&["--atomic"][..], 1, DENIED),
        (&["--atomic", "--delete"], 1, DENIED),
        (&[], 0, ""),
    ] {
        for dry in [true, false] {
            let mut args = vec!["-rT", "s", "d"];
            args.extend(options);
            args.extend(dry.then_some("--dry-run=total"));
            let run = Run::new(CPZ).uid(NOBODY).args(args).current_dir(dir);
            let outcome = run.output();
            let row = format!("{options:?}, dry: {dry}: {outcome}");
            assert_eq!(outcome.status, Status::Exit(status), "{row}");
            let mut lines: Vec<_> = outcome.stderr_text().lines().map(str::to_owned).collect();
            lines.retain(|line| line.starts_with("cpz: "));
            lines.sort();
            assert_eq!(lines.join("\n"), said, "{row}");
            let content = if options.is_empty() && !dry {
                "new"
            } else {
                "old"
            };
            assert_eq!(read(dir, "d/f"), content, "{row}");
        }
    }
}

const DENIED: &str = "cpz: cannot create regular file 'd/f': Permission denied\n\
                      cpz: cannot create regular file 'd/same': Permission denied";

#[test]
fn ways_to_clear_a_dest_are_refused() {
    let scratch = Scratch::new();
    for flag in [
        "-b",
        "--remove-destination",
        "-l",
        "-s",
        "--attributes-only",
    ] {
        let outcome = Run::new(CPZ)
            .args(["--atomic", flag, "a", "b"])
            .current_dir(&scratch)
            .output();
        assert_eq!(outcome.status, Status::Exit(1), "{flag}");
        let message = complaint(&outcome);
        assert!(
            message.starts_with("cpz: --atomic is mutually exclusive with "),
            "{flag}: {message}"
        );
    }
}
