//! Filesystems on which a removal may fail for a moment: until others have made room, or until a server has seen them.

use std::{collections::BTreeSet, time::Duration};

use testkit::{
    or_skip,
    probe::{Errno, FileType, Fs, FuseMount, Habits, LoopMount, Removal, Skip},
    run::{Outcome, Run, Status},
    tree::{Scratch, Tree},
};

use crate::support::RMZ;

const LINES: usize = 15;

/// Makes a tree, an empty directory and a file, which are `LINES` names.
fn tree() -> Scratch {
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .file("t/a/1", "")
        .file("t/a/2", "")
        .symlink("t/a/link", "1")
        .fifo("t/a/fifo")
        .dir("t/a/empty")
        .file("t/b/c/d/1", "")
        .file("t/b/2", "")
        .file("t/1", "")
        .dir("empty")
        .file("file", "");
    scratch
}

/// Runs rmz such that its calls of `unlinkat` of these numbers fail.
fn run(scratch: &Scratch, error: &str, when: &str, args: &[&str]) -> Outcome {
    let inject = format!("inject=unlinkat:error={error}:when={when}");
    Run::new("strace")
        .args(["-f", "-o", "/dev/null", "-e", &inject, RMZ])
        .args(args)
        .args(["t", "empty", "file"])
        .current_dir(scratch)
        .output()
}

#[test]
fn names_that_fail_for_a_moment_are_removed_once_others_are() {
    or_skip!(Run::new(RMZ).arg("-f").calls());
    for error in ["ENOSPC", "EDQUOT"] {
        for when in ["1", "1+2", "2+2", "1..14", "3..40"] {
            for threads in ["--threads=1", "--threads=4"] {
                let scratch = tree();
                let outcome = run(&scratch, error, when, &["-v", threads]);
                assert_eq!(outcome.status, Status::Exit(0), "{error} {when}: {outcome}");
                assert_eq!(outcome.stderr_text(), "");
                let stdout = outcome.stdout_text();
                let lines: BTreeSet<&str> = stdout.lines().collect();
                assert_eq!((lines.len(), stdout.lines().count()), (LINES, LINES));
                for name in ["t", "empty", "file"] {
                    assert!(!scratch.path().join(name).exists());
                }
            }
        }
    }
}

#[test]
fn names_that_fail_for_a_moment_are_counted_once() {
    or_skip!(Run::new(RMZ).arg("-f").calls());
    let counts = |when| {
        let outcome = run(&tree(), "ENOSPC", when, &["--stats=json"]);
        outcome.assert_success();
        let stdout = outcome.stdout_text();
        let counts = stdout.split(r#","wall_seconds":"#).next();
        counts.unwrap_or_default().to_owned()
    };
    assert_eq!(counts("1+2"), counts("1000"));
}

#[test]
fn names_that_fail_until_the_end_are_reported_once_and_their_directories_stay() {
    or_skip!(Run::new(RMZ).arg("-f").calls());
    let scratch = tree();
    let outcome = run(&scratch, "EDQUOT", "1+", &[]);
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let complaints = outcome.stderr_text().replace(RMZ, "rmz");
    let mut lines: Vec<&str> = complaints.lines().collect();
    lines.sort_unstable();
    let names = [
        "empty",
        "file",
        "t/1",
        "t/a/1",
        "t/a/2",
        "t/a/empty",
        "t/a/fifo",
        "t/a/link",
        "t/b/2",
        "t/b/c/d/1",
    ];
    let expected = names.map(|name| format!("rmz: cannot remove '{name}': Disk quota exceeded"));
    assert_eq!(lines, expected);
    assert!(scratch.path().join("t/b/c/d/1").exists());
}

#[test]
fn an_operand_that_must_be_empty_waits_for_room() {
    or_skip!(Run::new(RMZ).arg("-f").calls());
    let scratch = tree();
    let inject = "inject=unlinkat:error=ENOSPC:when=1..3";
    let run = Run::new("strace").args(["-f", "-o", "/dev/null", "-e", inject]);
    let link = crate::support::RM.link("rm");
    let run = run.arg(link.path()).args(["-d", "file", "empty"]);
    run.current_dir(&scratch).output().assert_success();
    assert!(!scratch.path().join("empty").exists());
}

#[test]
fn an_empty_directory_that_cannot_be_listed_waits_for_room() {
    or_skip!(Run::new(RMZ).arg("-f").calls());
    let full = "rmz: cannot remove 'empty': No space left on device\n";
    for (when, status, complaint) in [("1", 0, ""), ("1..2", 0, ""), ("1+", 1, full)] {
        let scratch = tree();
        let unlisted = "inject=getdents64:error=EIO:when=1";
        let full = format!("inject=unlinkat:error=ENOSPC:when={when}");
        let run = Run::new("strace").args(["-f", "-o", "/dev/null", "-e", unlisted, "-e", &full]);
        let outcome = run.args([RMZ, "empty"]).current_dir(&scratch).output();
        assert_eq!(outcome.status, Status::Exit(status), "{when}: {outcome}");
        assert_eq!(outcome.stderr_text(), complaint, "{when}");
        assert_eq!(scratch.path().join("empty").exists(), status == 1);
    }
}

#[test]
fn names_are_removed_although_all_fail_for_a_moment_after_each_removal() {
    for error in [Errno::NOSPC, Errno::DQUOT] {
        let pause = Duration::from_millis(20);
        let mount = or_skip!(FuseMount::with(Habits {
            removal: Removal::Pausing(error, pause),
            ..Habits::default()
        }));
        let stored = Tree::at(mount.stored());
        for number in 0..5 {
            stored
                .file(format!("t/{number}/f"), "")
                .dir(format!("t/{number}/d"));
        }
        let run = Run::new(RMZ).arg("t").current_dir(mount.path());
        let outcome = run.output();
        outcome.assert_success();
        assert_eq!(outcome.stderr_text(), "", "{error:?}");
        assert!(!mount.stored().join("t").exists());
    }
}

#[test]
fn a_file_in_place_of_a_directory_waits_for_room() {
    let mount = or_skip!(FuseMount::with(Habits {
        removal: Removal::Hesitant(Errno::NOSPC),
        listed_type: Some(FileType::Directory),
        ..Habits::default()
    }));
    Tree::at(mount.stored()).file("t/odd", "");
    let run = Run::new(RMZ).args(["-v", "t"]).current_dir(mount.path());
    let outcome = run.output();
    outcome.assert_success();
    assert_eq!(
        outcome.stdout_text(),
        "removed 't/odd'\nremoved directory 't'\n"
    );
    assert!(!mount.stored().join("t").exists());
}

#[test]
fn an_empty_subvolume_waits_for_room() {
    let mount = or_skip!(LoopMount::new(Fs::Btrfs, 300));
    or_skip!(Run::new(RMZ).arg("-f").calls());
    for when in ["1", "1..5"] {
        let script = format!(
            r#"mkdir d && btrfs -q subvolume create d/s &&
            yes | strace -f -o /dev/null -e inject=unlinkat:error=ENOSPC:when={when} {RMZ} -i --one-file-system d"#
        );
        let run = Run::new("sh").args(["-c", &script]);
        let outcome = run.current_dir(mount.path()).output();
        assert_eq!(outcome.status, Status::Exit(0), "{when}: {outcome}");
        assert!(!mount.path().join("d").exists());
    }
}

/// Makes a tree on a filesystem on which directories cannot be removed until this time has passed since a removal.
fn seen_later(error: Errno, pause: Duration) -> Result<FuseMount, Skip> {
    let mount = FuseMount::with(Habits {
        removal: Removal::Settling(error, pause),
        ..Habits::default()
    })?;
    for number in 0..3 {
        let tree = Tree::at(mount.stored());
        tree.file(format!("t/{number}/sub/f"), "")
            .file(format!("t/{number}/f"), "");
    }
    Ok(mount)
}

#[test]
fn directories_are_removed_although_a_server_sees_the_last_removal_later() {
    for error in [Errno::NOTEMPTY, Errno::BUSY, Errno::EXIST] {
        for threads in ["--threads=1", "--threads=4"] {
            let mount = or_skip!(seen_later(error, Duration::from_millis(30)));
            let run = Run::new(RMZ).args(["-v", threads, "t"]);
            let outcome = run.current_dir(mount.path()).output();
            outcome.assert_success();
            assert_eq!(outcome.stderr_text(), "", "{error:?}");
            assert_eq!(outcome.stdout_text().lines().count(), 13, "{outcome}");
            assert!(!mount.stored().join("t").exists());
        }
    }
}

#[test]
fn directories_that_are_never_empty_on_a_server_are_reported_at_the_end() {
    for (error, text) in [
        (Errno::NOTEMPTY, "Directory not empty"),
        (Errno::BUSY, "Device or resource busy"),
    ] {
        let mount = or_skip!(seen_later(error, Duration::from_secs(3600)));
        let outcome = Run::new(RMZ).arg("t").current_dir(mount.path()).output();
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        let stderr = outcome.stderr_text();
        let mut lines: Vec<&str> = stderr.lines().collect();
        lines.sort_unstable();
        let expected =
            [0, 1, 2].map(|number| format!("rmz: cannot remove 't/{number}/sub': {text}"));
        assert_eq!(lines, expected);
        for number in 0..3 {
            assert!(!mount.stored().join(format!("t/{number}/f")).exists());
        }
    }
}

/// Counts the attempts to remove a directory that is busy, `d/busy`, after `prepare` has filled it.
fn attempts(dir: &std::path::Path, prepare: &str) -> usize {
    let script = format!(
        "{prepare} && : >d/busy/f && strace -f -o trace -e trace=unlinkat,unlink,rmdir {RMZ} d"
    );
    let run = Run::new("unshare").args(["-m", "sh", "-c", &script]);
    let outcome = run.current_dir(dir).output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let stderr = outcome.stderr_text();
    assert!(stderr.ends_with("cannot remove 'd/busy': Device or resource busy\n"));
    let trace = std::fs::read_to_string(dir.join("trace")).unwrap();
    let is_attempt = |line: &&str| line.contains("\"busy\"");
    trace.lines().filter(is_attempt).count()
}

#[test]
fn a_mount_point_is_tried_once() {
    or_skip!(Run::new(RMZ).arg("-f").calls());
    let mount = or_skip!(FuseMount::with(Habits::default()));
    Tree::at(mount.stored()).dir("d/busy");
    assert_eq!(attempts(mount.path(), "mount -t tmpfs none d/busy"), 1);
    let bound = "mkdir of && mount --bind of d/busy";
    assert_eq!(attempts(mount.path(), bound), 1);
}
