//! Mount points in the tree. Each run has a mount namespace of its own.

use testkit::{
    or_skip,
    probe::{Fs, LoopMount, has_program, is_root},
    run::{Parity, Run, Status},
    skip,
    tree::{Scratch, Tree},
};

use crate::support::{RM, RMZ};

/// Runs both programs after the shell commands `mounts`, and lists the remaining entries on stdout.
#[track_caller]
fn with(mounts: &str, args: &[&str]) {
    if !is_root() || !has_program("unshare") {
        skip!("mounting takes root and unshare");
    }
    after(mounts, r#""$@""#).args(args).check(build);
}

/// Compares both programs with the newest release, because older ones try the removal of empty mount points.
#[track_caller]
fn newest_with(mounts: &str, args: &[&str]) {
    if !is_root() || !has_program("unshare") {
        skip!("mounting takes root and unshare");
    }
    let parity = after(mounts, r#""$@""#).only_newest();
    parity.args(args).stdin("y\n".repeat(9)).check(build);
}

/// Compares both programs, run by an ordinary user, with the newest release.
#[track_caller]
fn newest_as_nobody_with(mounts: &str, args: &[&str]) {
    if !is_root() || !has_program("unshare") || !has_program("setpriv") {
        skip!("mounting as another user takes root, unshare and setpriv");
    }
    let mounts = format!("chown -R 65534:65534 . && {mounts}");
    let run = r#"setpriv --reuid=65534 --regid=65534 --clear-groups "$@""#;
    let parity = after(&mounts, run).only_newest();
    parity.args(args).stdin("y\n".repeat(9)).check(build);
}

/// Starts a comparison in which the shell command `run` runs each program after the commands `mounts`.
fn after(mounts: &str, run: &str) -> Parity {
    RM.parity().in_script(&format!(
        r#"exec unshare -m sh -c '
            {mounts}
            {run}; status=$?
            find d -printf "%p %y\n"
            exit $status
        ' sh "$@""#
    ))
}

fn build(tree: &Tree) {
    tree.file("d/a/f", "")
        .dir("d/a/mount")
        .file("d/source/f", "")
        .file("d/source/sub/f", "")
        .file("d/z/f", "");
}

const TMPFS: &str = r"mount -t tmpfs none d/a/mount && mkdir d/a/mount/sub && : >d/a/mount/sub/f";
const EMPTY_TMPFS: &str = r"mount -t tmpfs none d/a/mount";
const UNREADABLE_TMPFS: &str = r"mount -t tmpfs -o uid=65534,mode=0 none d/a/mount";
const BIND: &str = r"mount --bind d/source d/a/mount";

#[test]
fn empties_a_mounted_filesystem_and_keeps_its_mount_point() {
    with(TMPFS, &["d"]);
    with(TMPFS, &["-v", "d/a/mount"]);
}

#[test]
fn skips_other_filesystems_if_told_to() {
    with(TMPFS, &["--one-file-system", "d"]);
    with(TMPFS, &["--one-file-system", "-v", "d", "d/a"]);
}

#[test]
fn does_not_skip_an_operand_that_is_a_mount_point() {
    with(TMPFS, &["--one-file-system", "d/a/mount"]);
}

#[test]
fn skips_an_empty_directory_on_another_filesystem_unless_asked_about_it() {
    newest_with(EMPTY_TMPFS, &["--one-file-system", "d"]);
    newest_with(EMPTY_TMPFS, &["--one-file-system", "-d", "d"]);
    newest_with(EMPTY_TMPFS, &["--one-file-system", "-i", "d/a"]);
}

#[test]
fn removes_an_empty_subvolume_only_if_asked_about_it() {
    for flag in ["-v", "-i"] {
        let mounts = [(), ()].map(|()| LoopMount::new(Fs::Btrfs, 300));
        let [ours, gnu] = mounts;
        let (ours, gnu) = (or_skip!(ours), or_skip!(gnu));
        let script = |mount: &LoopMount| {
            format!(
                r#"cd {} && mkdir d && btrfs -q subvolume create d/s && : >d/f
                "$@"; status=$?; find d; rm -rf d; exit $status"#,
                mount.path().display()
            )
        };
        RM.parity()
            .in_scripts(&script(&ours), &script(&gnu))
            .only_newest()
            .args([flag, "--one-file-system", "d"])
            .stdin("y\n".repeat(9))
            .check(|_| {});
    }
}

#[test]
fn reports_an_unreadable_mount_point_as_busy() {
    for flags in [&["-v"][..], &["-f"], &["-d"], &["-i"], &["-di"]] {
        let args = [flags, &["d/a", "d/a/mount"]].concat();
        newest_as_nobody_with(UNREADABLE_TMPFS, &args);
    }
}

#[test]
fn skips_an_unreadable_mount_point_if_told_to() {
    for flags in [&["-v"][..], &["-f"], &["-d"], &["-i"], &["-di"]] {
        let args = [flags, &["--one-file-system", "d/a"]].concat();
        newest_as_nobody_with(UNREADABLE_TMPFS, &args);
    }
    let refused = ["--one-file-system", "--preserve-root=all", "d/a/mount"];
    newest_as_nobody_with(UNREADABLE_TMPFS, &refused);
}

#[test]
fn empties_a_bind_mount_of_the_same_filesystem() {
    with(BIND, &["d/a"]);
    with(BIND, &["--one-file-system", "d/a/mount"]);
}

/// Runs rmz after the mounts, and asserts the messages and the entries that are left. rm takes a bind mount of the
/// same filesystem for a part of the tree.
#[track_caller]
fn is_protected(mounts: &str, args: &[&str], messages: &str, left: &[&str]) {
    if !is_root() || !has_program("unshare") {
        skip!("mounting takes root and unshare");
    }
    let scratch = Scratch::new();
    build(&Tree::at(scratch.path()));
    let script = format!(
        r#"{mounts}
        "$@"; status=$?
        find d -mindepth 1 | LC_ALL=C sort
        exit $status"#
    );
    let run = Run::new("unshare").args(["-m", "sh", "-c", &script, "sh", RMZ]);
    let outcome = run.args(args).current_dir(&scratch).output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    assert_eq!(outcome.stderr_text().replace(RMZ, "rmz"), messages);
    let stdout = outcome.stdout_text();
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines, left, "{outcome}");
}

const SKIPPED: &str = "rmz: skipping 'd/a/mount', since it's on a different device\n";

#[test]
fn skips_a_bind_mount_of_the_same_filesystem_if_told_to() {
    let left = [
        "d/a",
        "d/a/mount",
        "d/a/mount/f",
        "d/a/mount/sub",
        "d/a/mount/sub/f",
    ];
    let args = ["--one-file-system", "d"];
    let outside = "mkdir o && mv d/source o && mount --bind o/source d/a/mount";
    is_protected(outside, &args, SKIPPED, &left);
    is_protected(
        outside,
        &["--one-file-system", "--threads=1", "d/a"],
        SKIPPED,
        &[&left[..], &["d/z", "d/z/f"]].concat(),
    );
    let of_itself = "mount --bind d/a/mount d/a/mount && : >d/a/mount/f";
    is_protected(of_itself, &args, SKIPPED, &left[..3]);
}

#[test]
fn an_unreadable_bind_mount_of_the_same_filesystem_is_skipped() {
    let mounts = "chown -R 65534 . && mkdir o && chmod 0 o && mount --bind o d/a/mount";
    let script = format!("{mounts} && set -- setpriv --reuid=65534 --clear-groups \"$@\"");
    is_protected(
        &script,
        &["--one-file-system", "d"],
        SKIPPED,
        &["d/a", "d/a/mount"],
    );
}

#[test]
fn a_dry_run_skips_a_bind_mount_of_the_same_filesystem_too() {
    let left = [
        "would remove 'd/a/f'",
        "would remove 'd/z/f'",
        "would remove directory 'd/z'",
    ];
    let script = r#"
        mkdir o && mv d/source o && mount --bind o/source d/a/mount
        "$@" --dry-run >o/log; status=$?
        grep "^would.*'" o/log | LC_ALL=C sort
        exit $status"#;
    is_protected(script, &["--one-file-system", "d"], SKIPPED, &left);
}

#[test]
fn asks_before_it_skips() {
    let script = format!(
        r"{TMPFS}; exec <<E
y
y
y
y
E"
    );
    with(&script, &["-i", "--one-file-system", "d/a"]);
}

#[test]
fn refuses_operands_that_are_mount_points() {
    with(TMPFS, &["--preserve-root=all", "d/a/mount", "d/z"]);
    with(
        TMPFS,
        &["--preserve-root=all", "d/a/mount/", "d/a/mount/sub"],
    );
}

#[test]
fn leaves_mount_points_to_the_kernel_without_recursion() {
    if !is_root() || !has_program("unshare") {
        skip!("mounting takes root and unshare");
    }
    let script = r#"exec unshare -m sh -c 'mount -t tmpfs none d && exec "$@"' sh "$@""#;
    RM.strict()
        .only_newest()
        .args(["-d", "--preserve-root=all", "d"])
        .in_script(script)
        .check(|tree: &Tree| {
            tree.dir("d");
        });
}

#[test]
fn never_forgets_that_mount_points_are_refused() {
    with(
        TMPFS,
        &["--preserve-root=all", "--preserve-root", "d/a/mount"],
    );
    with(
        TMPFS,
        &["--preserve-root=all", "--no-preserve-root", "d/a/mount"],
    );
}

#[test]
fn reports_missing_names_on_a_read_only_filesystem() {
    let mount = format!("{TMPFS} && mount -o remount,ro d/a/mount");
    with(&mount, &["-f", "d/a/mount/missing"]);
    with(&mount, &["d/a/mount/missing", "d/a/mount/missing/f"]);
    with(&mount, &["d/a/mount/sub", "d/a/mount/sub/f"]);
    with(&mount, &["---presume-input-tty", "-I", "d/a/mount/sub"]);
}

#[test]
fn lets_mount_points_below_an_operand_go_as_far_as_possible() {
    with(TMPFS, &["--preserve-root=all", "d"]);
}

#[test]
fn refuses_an_operand_that_is_a_bind_mount_of_the_same_filesystem() {
    let message = "rmz: skipping 'd/a/mount', since it's on a different device\n\
                   rmz: and --preserve-root=all is in effect\n";
    let left = [
        "d/a",
        "d/a/f",
        "d/a/mount",
        "d/a/mount/f",
        "d/a/mount/sub",
        "d/a/mount/sub/f",
        "d/source",
        "d/source/f",
        "d/source/sub",
        "d/source/sub/f",
        "d/z",
        "d/z/f",
    ];
    for option in ["-r", "--detach", "--one-file-system"] {
        is_protected(
            BIND,
            &["--preserve-root=all", option, "d/a/mount"],
            message,
            &left,
        );
    }
}

/// Opening it would mount what autofs has not mounted yet, and could wait for a dead server.
#[test]
fn a_skipped_mount_point_is_not_opened() {
    if !is_root() || !has_program("unshare") || !has_program("strace") {
        skip!("mounting takes root and unshare, and there may be no strace");
    }
    for mount in [TMPFS, EMPTY_TMPFS, BIND] {
        for args in [
            &[][..],
            &["--dry-run=total"],
            &["--progress"],
            &["---presume-input-tty"],
        ] {
            let scratch = Scratch::new();
            build(&Tree::at(scratch.path()));
            let script = format!(
                r#"{mount}; strace -f -o log "$@"; grep -E 'open.*"(d/a/)?mount"' log >opens; test -d d/a/mount"#
            );
            let run = Run::new("unshare").args(["-m", "sh", "-c", &script, "sh", RMZ]);
            let run = run
                .args(args)
                .args(["--threads=1", "--one-file-system", "d"]);
            let outcome = run.current_dir(&scratch).output();
            let name = format!("{mount} {args:?}: {outcome}");
            assert_eq!(outcome.status, Status::Exit(0), "{name}");
            let stderr = outcome.stderr_text().replace(RMZ, "rmz");
            assert!(stderr.contains(SKIPPED), "{name}");
            let opens = std::fs::read_to_string(scratch.path().join("opens"));
            assert_eq!(opens.expect("grep writes it"), "", "{name}");
        }
    }
}

#[test]
fn staying_on_one_filesystem_costs_two_calls_for_each_directory() {
    if !has_program("strace") {
        skip!("there is no strace");
    }
    let calls = |flag: &str| {
        let scratch = Scratch::new();
        let tree = Tree::at(scratch.path());
        for number in 0..30 {
            tree.file(format!("d/{number}/f"), "");
        }
        let words = ["-f", "-o", "log", RMZ, "--threads=1", flag, "d"];
        let run = Run::new("strace").args(words).current_dir(&scratch);
        run.output().assert_success();
        let log = std::fs::read_to_string(scratch.path().join("log")).expect("strace logs");
        log.lines().count()
    };
    let (without, with) = (calls("-r"), calls("--one-file-system"));
    assert!(
        with <= without + 31 + 30 + 2,
        "{without} calls, {with} calls"
    );
    assert!(with > without, "strace sees nothing here");
}
