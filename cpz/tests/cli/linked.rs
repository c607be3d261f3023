//! Hard links among the sources.

use std::{fs, os::unix::fs::MetadataExt, thread, time::Duration};

use testkit::{
    or_skip,
    probe::{FuseMount, Habits, Numbering, has_program},
    run::{Outcome, Parity, Run, Status},
    skip,
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ, complaint};

fn with(flags: &[&str]) -> Parity {
    CP.parity().args(flags)
}

fn linked(tree: &Tree) {
    tree.file("s/one", b"content")
        .hardlink("s/one", "s/two")
        .hardlink("s/one", "s/deep/er/three")
        .hardlink("s/one", "t/four")
        .file("s/empty", b"")
        .hardlink("s/empty", "t/empty")
        .symlink("s/link", "one")
        .hardlink("s/link", "t/link")
        .fifo("s/fifo")
        .hardlink("s/fifo", "t/fifo")
        .file("s/alone", b"x")
        .dir("into");
}

#[test]
fn stay_linked_in_one_directory() {
    with(&["--preserve=links"]).args(["s", "new"]).check(linked);
}

#[test]
fn stay_linked_across_operands() {
    with(&["-a"]).args(["s", "t", "into"]).check(linked);
    with(&["-a"])
        .args(["s/one", "s/two", "t/four", "into"])
        .check(linked);
    with(&["-av"])
        .args(["t/link", "s/deep", "s/fifo", "t/four", "into"])
        .check(linked);
}

#[test]
fn are_not_linked_to_a_source_that_is_its_own_dest() {
    let build = |tree: &Tree| {
        tree.symlink("link", "nowhere")
            .hardlink("link", "s/link")
            .hardlink("link", "into/link");
    };
    with(&["-a"]).args(["link", "s", "into"]).check(build);
}

#[test]
fn are_not_made_of_different_files_with_one_inode_number() {
    let mount = or_skip!(FuseMount::with(Habits {
        numbering: Numbering::Equal,
        ..Habits::default()
    }));
    let tree = Tree::at(mount.path());
    // The last two differ only in the time at which their status changed.
    let contents = [("a", "1"), ("b", "22"), ("c", "333"), ("d", "444")];
    for (name, content) in contents {
        tree.file(name, content).mtime(Duration::from_secs(7));
    }
    let scratch = Scratch::new();
    for options in [&["-aT"][..], &["-aT"], &["-auT"], &["-aT", "--resume"]] {
        let run = Run::new(CPZ).args(options).arg(mount.path()).arg("new");
        let outcome = run.current_dir(&scratch).output();
        assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
        for (name, content) in contents {
            let copied = fs::read_to_string(scratch.path().join("new").join(name)).unwrap();
            assert_eq!(copied, content, "{options:?}");
        }
        let messages = complaint(&outcome);
        assert_eq!(messages.lines().count(), 3, "{messages}");
        for line in messages.lines() {
            let words =
                "has the inode number of another source file but differs from it: not linked";
            assert!(
                line.starts_with("cpz: warning: '") && line.ends_with(words),
                "{line}"
            );
        }
    }
}

#[test]
fn are_made_at_dests_that_have_one_inode_number() {
    let mount = or_skip!(FuseMount::with(Habits {
        numbering: Numbering::Equal,
        ..Habits::default()
    }));
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    tree.file("s/a", "new")
        .hardlink("s/a", "s/b")
        .file("s/c", "other");
    Tree::at(mount.path()).file("a", "old").file("b", "older");
    for _ in 0..2 {
        let run = Run::new(CPZ).args(["-aT", "s"]).arg(mount.path());
        let outcome = run.current_dir(&scratch).output();
        assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
        for (name, content) in [("a", "new"), ("b", "new"), ("c", "other")] {
            let copied = fs::read_to_string(mount.stored().join(name)).unwrap();
            assert_eq!(copied, content, "{name}");
        }
        let inode = |name| fs::metadata(mount.stored().join(name)).unwrap().ino();
        assert_eq!(inode("a"), inode("b"));
    }
}

#[test]
fn of_the_source_that_are_removed_at_the_dest_do_not_matter() {
    with(&["-aT", "--remove-destination"])
        .args(["s", "d"])
        .check(|tree| {
            tree.file("s/a", "1")
                .hardlink("s/a", "s/b")
                .hardlink("s/a", "s/c");
            for name in ["d/a", "d/b", "d/c"] {
                tree.hardlink("s/a", name);
            }
        });
}

#[test]
fn stay_linked_in_many_threads() {
    for _ in 0..20 {
        with(&["-a"])
            .args(["s", "t", "into"])
            .env("CPZ_THREADS", "8")
            .check(linked);
    }
}

#[test]
fn come_apart_when_not_asked_for() {
    with(&["-p"]).args(["s", "t", "into"]).check(linked);
    with(&["-a", "--no-preserve=links"])
        .args(["s", "t", "into"])
        .check(linked);
}

#[test]
fn are_linked_to_the_target_of_a_link_at_the_dest() {
    let behind_a_link = |tree: &Tree| {
        linked(tree);
        tree.symlink("into/one", "old").file("into/old", b"old");
    };
    let names = ["s/one", "s/two", "t/four", "into"];
    CP.check_strict(["--preserve=links"].into_iter().chain(names), behind_a_link);
    with(&["-L", "--preserve=links"])
        .args(names)
        .check(behind_a_link);
    with(&["--preserve=links"]).args(names).check(behind_a_link);
    with(&["-a"]).args(names).check(behind_a_link);
    with(&["-aH"])
        .args(["s/one", "s/deep", "t/four", "into"])
        .check(behind_a_link);
}

#[test]
fn replace_existing_dests() {
    with(&["-av"])
        .args(["s/one", "s/two", "t/four", "into"])
        .check(|tree| {
            linked(tree);
            tree.file("into/two", b"old").symlink("into/four", "two");
        });
    with(&["-av"]).args(["s", "t", "into"]).check(|tree| {
        linked(tree);
        tree.file("into/s/one", b"old")
            .hardlink("into/s/one", "into/s/two")
            .hardlink("into/s/one", "into/s/deep/er/three")
            .hardlink("into/s/one", "into/t/four");
    });
}

#[test]
fn replace_no_directory() {
    with(&["-av"])
        .only_newest()
        .args(["s/one", "s/two", "into"])
        .check(|tree| {
            linked(tree);
            tree.dir("into/two");
        });
}

#[test]
fn let_go_of_other_names_of_the_dest() {
    with(&["--preserve=links", "-v"])
        .args(["s/alone", "into"])
        .check(|tree| {
            linked(tree);
            tree.file("into/alone", b"old")
                .hardlink("into/alone", "into/other");
        });
    with(&["-v"]).args(["s/alone", "into"]).check(|tree| {
        linked(tree);
        tree.file("into/alone", b"old")
            .hardlink("into/alone", "into/other");
    });
}

#[test]
fn are_not_linked_to_their_own_source() {
    with(&["-a"])
        .args(["s/one", "s/two", "into"])
        .check(|tree| {
            linked(tree);
            tree.hardlink("s/one", "into/two");
        });
}

#[test]
fn are_copied_once_more_if_the_first_could_not_be() {
    with(&["-a"])
        .only_newest()
        .args(["s/one", "s/two", "t/four", "into"])
        .check(|tree| {
            linked(tree);
            tree.dir("into/one/in-the-way");
        });
}

#[test]
fn become_links_if_symbolic_links_are_followed() {
    let build = |tree: &Tree| {
        linked(tree);
        tree.symlink("s/to-alone", "alone")
            .symlink("s/to-dir", "../t");
    };
    with(&["--preserve=links", "-L"])
        .args(["s/alone", "s/to-alone", "s/link", "into"])
        .check(build);
    with(&["-a", "-H"])
        .args(["s/to-alone", "s/alone", "into"])
        .check(build);
    with(&["-aL"]).args(["s", "new"]).check(|tree| {
        linked(tree);
        tree.symlink("s/to-alone", "alone");
    });
    CP.check_strict(["--preserve=links", "s/alone", "s/to-alone", "into"], build);
}

#[test]
fn replaces_a_dest_that_leads_to_a_file_of_several_names() {
    let build = |tree: &Tree| {
        tree.file("new", b"new")
            .file("two", b"old")
            .hardlink("two", "names")
            .symlink("to-two", "two")
            .file("one", b"old")
            .symlink("to-one", "one")
            .hardlink("to-one", "link-of-two-names");
    };
    for dest in ["two", "to-two", "to-one"] {
        for flag in ["-a", "-d", "--preserve=links"] {
            Parity::new(CPZ, "cp")
                .args([flag, "-r", "new", dest])
                .check(build);
        }
    }
}

/// Makes two names of one inode, and a newer file at the dest of the first.
fn updated(tree: &Tree) {
    let at = |seconds| Duration::new(seconds, 0);
    tree.file("s/one", b"content")
        .mtime(at(5_000))
        .hardlink("s/one", "s/two")
        .file("into/one", b"newer")
        .mtime(at(6_000));
}

#[test]
fn become_links_to_a_newer_dest() {
    with(&["-auv"])
        .args(["s/one", "s/two", "into"])
        .check(updated);
    with(&["-auv"])
        .args(["s/one", "s/two", "into"])
        .check(|tree| {
            updated(tree);
            tree.file("into/two", b"older")
                .mtime(Duration::new(4_000, 0));
        });
    with(&["-auv", "--no-preserve=links"])
        .args(["s/one", "s/two", "into"])
        .check(updated);
}

#[test]
fn replace_dests_that_are_newer_than_their_copy() {
    for flags in [["-auv"], ["-auvL"], ["-aubv"]] {
        with(&flags).args(["s/two", "s/one", "into"]).check(updated);
    }
    with(&["-auv"])
        .args(["s/two", "s/one", "into"])
        .check(|tree| {
            updated(tree);
            tree.hardlink("into/one", "into/two");
        });
}

#[test]
fn replace_newer_dests_that_are_links_but_not_directories() {
    let check = |args: &[&str], build: fn(&Tree)| {
        let parity = with(&["-auv"]).only_newest().args(args);
        parity.check(|tree| {
            updated(tree);
            tree.file("into/two", b"older")
                .mtime(Duration::from_secs(4_000));
            fs::remove_file(tree.path().join("into/one")).unwrap();
            build(tree);
        });
    };
    let in_order: &[&str] = &["s/two", "s/one", "into"];
    check(in_order, |tree| {
        tree.dir("into/one");
    });
    check(in_order, |tree| {
        tree.dir("into/one").mtime(Duration::from_secs(3_000));
    });
    check(in_order, |tree| {
        tree.dir("into/dir").symlink("into/one", "dir");
    });
    check(in_order, |tree| {
        tree.symlink("into/one", "nowhere");
    });
    // The directory counts as the first copy.
    check(&["s/one", "s/two", "into"], |tree| {
        tree.dir("into/one");
    });
}

#[test]
fn become_links_to_a_link_to_a_newer_dest() {
    with(&["-auv"])
        .args(["s/three", "s/four", "into"])
        .check(|tree| {
            updated(tree);
            tree.file("s/three", b"x")
                .mtime(Duration::new(5_000, 0))
                .hardlink("s/three", "s/four")
                .symlink("into/three", "one");
        });
}

#[test]
fn are_reported_and_missing_if_the_kernel_refuses_the_link() {
    if !has_program("strace") {
        skip!("there is no strace");
    }
    for errno in [
        "EMLINK", "ENOENT", "ESTALE", "ENOTDIR", "ELOOP", "EACCES", "EPERM", "EIO", "ENOMEM",
        "EXDEV",
    ] {
        let script =
            format!(r#"exec strace -f -qq -o /dev/null -e inject=link,linkat:error={errno} "$@""#);
        // Over an existing file, too.
        for args in [["s/one", "s/two", "into"], ["t/four", "s/two", "into"]] {
            let outcome = with(&["-a"]).args(args).in_script(&script).check(|tree| {
                linked(tree);
                tree.file("into/four", "old");
            });
            assert!(outcome.is_none_or(|outcome| outcome.status == Status::Exit(1)));
        }
    }
}

/// Copies two names of one source with an error of the look at the first copy. Returns the outcome, and
/// the number of links of the second copy.
fn with_an_unseen_first_copy(build: impl Fn(&Tree)) -> (Outcome, u64) {
    let run = |strace: &[&str]| {
        let scratch = Scratch::new();
        let tree = Tree::at(scratch.path());
        build(&tree);
        tree.dir("into");
        let outcome = Run::new("strace")
            .args(["-qq", "-o", "log"])
            .args(strace)
            .args([CPZ, "-a", "one", "two", "into"])
            .current_dir(&scratch)
            .output();
        (outcome, scratch)
    };
    let (_, scratch) = run(&["-e", "trace=newfstatat"]);
    let log = fs::read_to_string(scratch.path().join("log")).expect("strace logs");
    let is_first_copy = |line: &str| line.contains(r#", "one", "#) && !line.contains("AT_FDCWD");
    // A call that strace does not know is always in the log.
    let looks = log.lines().filter(|line| line.starts_with("newfstatat"));
    let looks: Vec<_> = looks.collect();
    // The first look finds nothing there.
    let position = looks.iter().rposition(|line| is_first_copy(line));
    let number = 1 + position.expect("cpz looks at the first copy");
    let inject = format!("inject=newfstatat:error=EIO:when={number}");
    let (outcome, scratch) = run(&["-e", &inject]);
    let second = fs::symlink_metadata(scratch.path().join("into/two"));
    (outcome, second.expect("a second copy").nlink())
}

#[test]
fn are_kept_or_reported_if_the_first_copy_cannot_be_looked_at() {
    if !has_program("strace") {
        skip!("there is no strace");
    }
    let (outcome, links) = with_an_unseen_first_copy(|tree| {
        tree.file("one", "content").hardlink("one", "two");
    });
    assert_eq!((outcome.status, links), (Status::Exit(0), 2), "{outcome}");
    let makers: [fn(&Tree); 2] = [
        |tree| _ = tree.symlink("one", "nowhere"),
        |tree| _ = tree.fifo("one"),
    ];
    for make in makers {
        let (outcome, _) = with_an_unseen_first_copy(|tree| {
            make(tree);
            tree.hardlink("one", "two");
        });
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        assert_eq!(
            complaint(&outcome),
            "cpz: cannot stat 'into/one': Input/output error\n"
        );
    }
}

#[test]
fn a_dest_stays_if_another_process_replaces_the_first_copy() {
    if !has_program("strace") {
        skip!("there is no strace");
    }
    let scratch = Scratch::new();
    let at = |name: &str| scratch.path().join(name);
    Tree::at(scratch.path())
        .file("s/first", "1")
        .hardlink("s/first", "s/sub/second")
        .file("d/first", "old")
        .file("d/sub/second", "old")
        .file("new", "new");
    thread::scope(|scope| {
        scope.spawn(|| {
            while fs::read(at("d/first")).unwrap() != b"1" {
                thread::sleep(Duration::from_millis(10));
            }
            fs::rename(at("new"), at("d/first")).unwrap();
        });
        let inject = "inject=linkat:delay_enter=500000:when=1";
        let strace = [
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=linkat",
            "-e",
            inject,
        ];
        let run = Run::new("strace").args(strace).args([CPZ, "-aT", "s", "d"]);
        let outcome = run.current_dir(&scratch).output();
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    });
    assert_eq!(fs::read(at("d/first")).unwrap(), b"new");
    assert_eq!(fs::read(at("d/sub/second")).unwrap(), b"old");
}
