//! Mount points in the tree. Each run has a mount namespace of its own.

use testkit::{
    needs, or_skip,
    probe::{Fs, LoopMount},
    run::{Run, Status},
    tree::{Scratch, Tree, plant},
};

use crate::support::{RM, RMZ};

/// Runs the rows of a table after the shell commands `mounts`, and lists the entries that are gone on stdout.
#[track_caller]
fn with(mounts: &str, rows: &str) {
    needs!(root, "unshare");
    after(mounts, r#""$@""#, rows);
}

/// Runs the rows of a table by an ordinary user.
#[track_caller]
fn as_nobody_with(mounts: &str, rows: &str) {
    needs!(root, "unshare", "setpriv");
    let mounts = format!("chown -R 65534:65534 . && {mounts}");
    let run = r#"setpriv --reuid=65534 --regid=65534 --clear-groups "$@""#;
    after(&mounts, run, rows);
}

/// Runs the rows of a table such that the shell command `run` runs each program after the commands `mounts`.
#[track_caller]
fn after(mounts: &str, run: &str, rows: &str) {
    let script = format!(
        r#"exec unshare -m sh -c '
            {mounts}
            before=$(find d -printf "%p %y\n")
            {run}; status=$?
            {{ echo "$before"; find d -printf "%p %y\n"; }} | sort | uniq -u
            exit $status
        ' sh "$@""#
    );
    let table = RM.table().build(build);
    table.setting(|parity| parity.in_script(&script)).rows(rows);
}

fn build(tree: &Tree) {
    plant("d/a/f= d/a/mount/ d/source/f= d/source/sub/f= d/z/f=")(tree);
}

const TMPFS: &str = r"mount -t tmpfs none d/a/mount && mkdir d/a/mount/sub && : >d/a/mount/sub/f";
const EMPTY_TMPFS: &str = r"mount -t tmpfs none d/a/mount";
const UNREADABLE_TMPFS: &str = r"mount -t tmpfs -o uid=65534,mode=0 none d/a/mount";
const BIND: &str = r"mount --bind d/source d/a/mount";

#[test]
fn other_filesystems_are_emptied_or_skipped() {
    with(
        TMPFS,
        "# A mounted filesystem is emptied, and its mount point stays.
        rmz -v (d|d/a/mount)
        # Other filesystems are skipped if told to, but no operand.
        rmz --one-file-system (d|-v d d/a|d/a/mount)
        # The question comes before that.
        rmz -i --one-file-system d/a << y y y y
        # Operands that are mount points are refused if told to, and nothing else changes that.
        rmz --preserve-root=all d/a/mount d/z
        rmz --preserve-root=all d/a/mount/ d/a/mount/sub
        rmz --preserve-root=all (--preserve-root|--no-preserve-root) d/a/mount
        rmz --preserve-root=all d",
    );
    with(
        EMPTY_TMPFS,
        "# An empty directory on another filesystem is skipped unless asked about. Older releases try to remove it.
        newest rmz --one-file-system (d|-d d|-i d/a) << y y y y y
        # Without recursion, mount points are left to the kernel.
        newest rm -d --preserve-root=all d/a/mount",
    );
    with(
        BIND,
        "# A bind mount of the same filesystem is emptied.
        rmz (d/a|--one-file-system d/a/mount)",
    );
    with(
        &format!("{TMPFS} && mount -o remount,ro d/a/mount"),
        "# Missing names on a read-only filesystem are reported.
        rmz -f d/a/mount/missing
        rmz d/a/mount/missing d/a/mount/missing/f
        rmz d/a/mount/sub d/a/mount/sub/f
        rmz ---presume-input-tty -I d/a/mount/sub",
    );
}

#[test]
fn an_unreadable_mount_point_is_busy_or_skipped() {
    as_nobody_with(
        UNREADABLE_TMPFS,
        "newest rmz (-v|-f|-d|-i|-di) d/a d/a/mount << y y y y y y
        newest rmz (-v|-f|-d|-i|-di) --one-file-system d/a << y y y y y y
        newest rmz --one-file-system --preserve-root=all d/a/mount << y y y y",
    );
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

/// Opening it would mount what autofs has not mounted yet, and could wait for a dead server.
#[test]
fn a_skipped_mount_point_is_not_opened() {
    needs!(root, "unshare", "strace");
    for mount in [TMPFS, EMPTY_TMPFS, BIND] {
        for args in [
            &[][..],
            &["--dry-run=total"],
            &["--progress"],
            &["---presume-input-tty"],
        ] {
            let scratch = Scratch::new();
            build(&Tree::at(&scratch));
            let script = format!(
                r#"{mount}; strace -f -o log "$@"; grep -E 'open.*"(d/a/)?mount"' log >opens; test -d d/a/mount"#
            );
            let run = Run::new("unshare").args(["-m", "sh", "-c", &script, "sh", RMZ]);
            let run = run.args(args).words("--threads=1 --one-file-system d");
            let outcome = run.current_dir(&scratch).output();
            let name = format!("{mount} {args:?}: {outcome}");
            assert_eq!(outcome.status, Status::Exit(0), "{name}");
            let stderr = outcome.stderr_text().replace(RMZ, "rmz");
            assert!(stderr.contains(SKIPPED), "{name}");
            let opens = std::fs::read_to_string(scratch.at("opens"));
            assert_eq!(opens.expect("grep writes it"), "", "{name}");
        }
    }
}

#[test]
fn staying_on_one_filesystem_costs_two_calls_for_each_directory() {
    needs!("strace");
    let calls = |flag: &str| {
        let scratch = Scratch::new();
        let tree = Tree::at(&scratch);
        for number in 0..30 {
            tree.plant(format!("d/{number}/f="));
        }
        let words = ["-f", "-o", "log", RMZ, "--threads=1", flag, "d"];
        let run = Run::new("strace").args(words).current_dir(&scratch);
        run.output().assert_success();
        let log = std::fs::read_to_string(scratch.at("log")).expect("strace logs");
        log.lines().count()
    };
    let (without, with) = (calls("-r"), calls("--one-file-system"));
    assert!(
        with <= without + 31 + 30 + 2,
        "{without} calls, {with} calls"
    );
    assert!(with > without, "strace sees nothing here");
}

const SKIPPED: &str = "rmz: skipping 'd/a/mount', since it's on a different device\n";

/// rm takes a bind mount of the same filesystem for a part of the tree.
#[test]
fn a_bind_mount_of_the_same_filesystem_is_skipped_if_told_to() {
    with(
        BIND,
        "rmz --one-file-system d/a
        ! skipping 'd/a/mount', since it's on a different device
        > d/a/f f
        = -d/a/f
        # A dry run skips it, too.
        rmz --one-file-system --dry-run d/a
        ! skipping 'd/a/mount', since it's on a different device
        > would remove 'd/a/f'
        > would remove 1 entry...
        # As an operand, it is refused if told to.
        rmz --preserve-root=all (-r|--detach|--one-file-system) d/a/mount
        ! skipping 'd/a/mount', since it's on a different device
        ! and --preserve-root=all is in effect",
    );
    let rest = "rmz --one-file-system d
        ! skipping 'd/a/mount', since it's on a different device
        > d/a/f f
        > d/source d
        > d/source/f f
        > d/source/sub d
        > d/source/sub/f f
        > d/z d
        > d/z/f f
        = -d/a/f -d/source -d/z";
    let own = "mount --bind d/a/mount d/a/mount && : >d/a/mount/f";
    with(own, &format!("{rest} d/a/mount/f="));
    let unreadable = "mkdir o && chmod 0 o && mount --bind o d/a/mount";
    as_nobody_with(unreadable, &format!("{rest} o/ o %0"));
}
