//! `--atomic`: an existing file is replaced when its copy is complete, and not before.

use std::{
    fs::{self, File},
    io::Read,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use testkit::{
    or_skip,
    probe::{Errno, Fs, FuseMount, Habits, LoopMount, NOBODY, Numbering, is_root, supports_acls},
    run::{Run, Signal, Status},
    skip,
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, noise},
};

use crate::interrupts::{BEFORE, start_in_the_middle, write_until_closed};
use crate::support::{CP, CPZ, complaint, succeeds};

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
fn other_names_and_targets_of_links_keep_the_old_content() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    Tree::at(dir)
        .file("s/f", "new")
        .mode(0o600)
        .file("s/l", "new")
        .file("s/empty", "")
        .file("s/fresh", "new")
        .file("s/special", "new")
        .file("d/f", "old")
        .mode(0o640)
        .hardlink("d/f", "other")
        .file("target", "old")
        .symlink("d/l", "../target")
        .fifo("d/special")
        .file("d/empty", "old");
    succeeds(dir, &["--atomic", "-T", "s", "d"]);
    let inode = |name: &str| fs::symlink_metadata(dir.join(name)).unwrap();
    assert_eq!(inode("d/f").permissions().mode() & 0o7777, 0o600);
    assert_ne!(inode("d/f").ino(), inode("other").ino());
    assert!(inode("d/l").is_file());
    let contents = [
        "d/f",
        "d/l",
        "d/empty",
        "d/fresh",
        "d/special",
        "other",
        "target",
    ];
    assert_eq!(
        contents.map(|name| read(dir, name)),
        ["new", "new", "", "new", "new", "old", "old"]
    );
    let left = ["empty", "f", "fresh", "l", "special"];
    assert_eq!(names(&dir.join("d")), left);

    succeeds(dir, &["--atomic", "-aT", "s", "d"]);
    assert_eq!(inode("d/f").mtime(), inode("s/f").mtime());
}

/// The new file is a new one, and takes over nothing of the old one.
#[test]
#[ignore = "slow"]
fn a_file_is_what_a_removal_before_the_copy_would_have_left() {
    let build = |tree: &Tree| {
        tree.file("s/f", "new")
            .mode(0o664)
            .file("s/set-id", "new")
            .mode(0o4755)
            .file("s/empty", "")
            .mode(0o640)
            .symlink("s/l", "nowhere")
            .fifo("s/fifo")
            .file("s/one", "1")
            .hardlink("s/one", "s/two")
            .file("d/one", "old")
            .file("d/two", "old")
            .file("d/empty", "old")
            .file("d/l", "old")
            .file("d/fifo", "old")
            .file("d/f", "old")
            .mode(0o602)
            .file("d/set-id", "old")
            .mode(0o6777);
        if is_root() {
            tree.owner(12, 34);
        }
    };
    let acls = supports_acls(Scratch::new().path());
    for options in [
        &["-r"][..],
        &["-a"],
        &["-rp"],
        &["-r", "--preserve=mode"],
        &["-a", "--fsync"],
    ] {
        for inherits in [false, true] {
            let [atomic, removing] = ["--atomic", "--remove-destination"].map(|way| {
                let scratch = Scratch::new();
                let tree = Tree::at(scratch.path());
                build(&tree);
                if inherits && acls {
                    tree.select("d").acl("d:u:5:rw");
                }
                let args = [options, &[way, "-T", "s", "d"]].concat();
                succeeds(&scratch, &args);
                let kept = Attributes::ALL - Attributes::ATIME - Attributes::MTIME;
                Snapshot::of(scratch.path().join("d"), kept)
            });
            let difference = removing.diff(&atomic);
            assert!(
                difference.is_empty(),
                "{options:?} {inherits}\n{difference}"
            );
        }
    }
}

#[test]
fn a_file_that_may_not_be_written_to_is_replaced_only_by_force() {
    if !is_root() {
        skip!("only root can become another user");
    }
    let scratch = Scratch::new();
    let dir = scratch.path();
    Tree::at(dir)
        .file("new", "new")
        .file("d/own", "old")
        .mode(0o444)
        .owner(NOBODY, NOBODY)
        .file("d/other", "old")
        .mode(0o600)
        .select("d")
        .mode(0o777)
        .select("")
        .mode(0o755);
    for name in ["d/own", "d/other"] {
        for (option, status) in [("--atomic", 1), ("-i", 1), ("-f", 0)] {
            let run = Run::new(CPZ).uid(NOBODY).stdin("y\n");
            let run = run.args(["--atomic", option, "new", name]);
            let outcome = run.current_dir(dir).output();
            assert_eq!(outcome.status, Status::Exit(status), "{option} {outcome}");
            let denied = format!("cpz: cannot create regular file '{name}': Permission denied\n");
            let said = complaint(&outcome);
            match status {
                0 => assert_eq!(said, "", "{option}"),
                _ => assert!(said.ends_with(&denied), "{option} {said}"),
            }
            let content = if status == 0 { "new" } else { "old" };
            assert_eq!(read(dir, name), content, "{option}");
        }
    }
    assert_eq!(names(&dir.join("d")), ["other", "own"]);
}

#[test]
fn a_dest_stays_if_its_filesystem_renames_nothing() {
    for removal in [None, Some(Errno::PERM)] {
        let place = or_skip!(FuseMount::with(Habits {
            rename: Some(Errno::XDEV),
            unlink_readonly: removal,
            ..Habits::default()
        }));
        let scratch = Scratch::new();
        let tree = Tree::at(scratch.path());
        for (name, content) in [("f", b"new".to_vec()), ("large", noise(2 << 20))] {
            tree.file(name, content).mode(0o444);
        }
        for name in ["f", "large"] {
            Tree::at(place.stored()).file(name, "old");
            let dest = place.path().join(name).display().to_string();
            let run = Run::new(CPZ).args(["--atomic", name, &dest]);
            let outcome = run.current_dir(&scratch).output();
            assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
            let said = complaint(&outcome);
            let reason =
                format!("cpz: cannot create regular file '{dest}': Invalid cross-device link\n");
            assert!(said.ends_with(&reason), "{said}");
            assert_eq!(read(place.stored(), name), "old");
            let hidden: Vec<_> = names(place.stored())
                .into_iter()
                .filter(|name| name.starts_with(".cpz-"))
                .collect();
            // The messages name the file that cannot be removed.
            assert_eq!(hidden.len(), usize::from(removal.is_some()), "{hidden:?}");
            assert_eq!(said.lines().count(), 1 + hidden.len(), "{said}");
            for name in hidden {
                let path = place.path().join(&name).display().to_string();
                let left = format!("cpz: cannot remove '{path}': Operation not permitted\n");
                assert!(said.starts_with(&left), "{said}");
                fs::remove_file(place.stored().join(name)).unwrap();
            }
        }
    }
}

#[test]
fn a_file_is_replaced_where_open_files_are_not_renamed_and_no_mode_is_set() {
    for numbering in [Numbering::True, Numbering::Lasting, Numbering::Fresh] {
        let place = or_skip!(FuseMount::with(Habits {
            numbering,
            busy: Some(Errno::TXTBSY),
            chmod: Some(Errno::PERM),
            ..Habits::default()
        }));
        let scratch = Scratch::new();
        Tree::at(scratch.path())
            .file("s/a", "new")
            .hardlink("s/a", "s/b")
            .file("s/large", noise(2 << 20));
        let tree = Tree::at(place.stored());
        tree.file("a", "old").file("b", "old").file("large", "old");
        let dest = place.path().display().to_string();
        for options in [&["-r"][..], &["-r", "--preserve=links,timestamps"]] {
            // Another thread would keep a copy of the descriptor.
            let args = [options, &["--threads=1", "--atomic", "-T", "s", &dest]].concat();
            succeeds(&scratch, &args);
            let source = scratch.path().join("s");
            let kept = Attributes::CONTENT - Attributes::LINKS;
            testkit::snapshot::assert_same_tree(&source, place.stored(), kept);
        }
    }
}

#[test]
fn nothing_is_left_in_a_directory_to_which_names_can_only_be_added() {
    let place = or_skip!(LoopMount::new(Fs::Ext4, 16));
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("new", "new");
    Tree::at(place.path()).file("d/old", "old");
    let chattr = |change: &str| {
        let run = Run::new("chattr").arg(change).arg(place.path().join("d"));
        run.output().assert_success();
    };
    chattr("+a");
    let dest = place.path().join("d/old").display().to_string();
    let run = Run::new(CPZ).args(["--atomic", "new", &dest]);
    let outcome = run.current_dir(&scratch).output();
    let left = names(&place.path().join("d"));
    chattr("-a");
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let reason = format!("cpz: cannot create regular file '{dest}': Operation not permitted\n");
    assert_eq!(complaint(&outcome), reason);
    assert_eq!(left, ["old"]);
    assert_eq!(read(place.path(), "d/old"), "old");
}

/// Otherwise a power cut could lose the old content and the new one.
#[test]
fn content_is_on_the_disk_before_it_replaces_a_file() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    for number in 0..9 {
        let name = format!("s/{number}");
        tree.file(&name, "new")
            .hardlink(&name, format!("s/{number}-linked"));
        tree.file(format!("d/{number}"), "old");
        tree.file(format!("d/{number}-linked"), "old");
        tree.file(format!("s/{number}-alone"), "new");
        tree.file(format!("d/{number}-alone"), "old");
    }
    let run = Run::new(CPZ).args(["--threads=1", "-aT", "--atomic", "--fsync", "s", "d"]);
    let calls = or_skip!(run.current_dir(scratch.path()).calls());
    let mut unsynced = 0;
    let mut renamed = 0;
    for call in &calls {
        match &*call.name {
            // A hidden name is created, its content synced, and only then renamed.
            "openat" if call.shown.contains("O_CREAT") && !call.shown.contains("= -1") => {
                unsynced += 1;
            }
            "fsync" if unsynced > 0 => unsynced -= 1,
            "renameat" | "renameat2" | "rename" => {
                assert_eq!(unsynced, 0, "{call:?}");
                renamed += 1;
            }
            _ => {}
        }
    }
    assert_eq!(renamed, 27);
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
fn names_of_the_source_and_ways_to_clear_a_dest() {
    CP.rows(
        r"
        # As with --remove-destination, another name of the source becomes a copy.
        f=content g==f l->f
        cpz --atomic f g
        = -g g=content
        cpz --atomic f l
        = -l l=content
        cpz --atomic f ./f
        ! 'f' and './f' are the same file
        # Other ways to clear a dest are refused.
        cpz --atomic (-b|--remove-destination|-l|-s|--attributes-only) a b
        ! --atomic is mutually exclusive with ...
        ! try",
    );
}
