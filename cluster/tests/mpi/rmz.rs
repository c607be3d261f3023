//! Tests of `rmz-mpi`.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use testkit::probe::gnu;
use testkit::run::{Run, Status, Stream};
use testkit::snapshot::{Attributes, Snapshot};
use testkit::tree::{Scratch, Tree, wide};
use testkit::{needs, or_skip};

use crate::job::{
    HIDING, PIDS, RMZ, SLOW_THOUSANDS, STATUSES, assert_interrupted, assert_shared, build, count,
    lines, signal, stat, statuses, with_immutable,
};

#[track_caller]
fn assert_names(scratch: &Scratch, expected: &[&str]) {
    let left = Snapshot::of(scratch, Attributes::NAMES);
    assert_eq!(left.len(), 1 + expected.len(), "{left:?}");
    for name in expected {
        assert!(scratch.at(name).symlink_metadata().is_ok());
    }
}

#[test]
fn removes_random_trees_as_rm_does() {
    let rm = or_skip!(gnu("rm"));
    for ranks in [1, 4] {
        let scratch = Scratch::in_memory();
        let root = scratch.at("t");
        build(&root, ranks as u64);
        let listed = Run::new(&rm).args(["-rv", "t"]);
        let expected = listed.current_dir(&scratch).output().stdout_text();
        build(&root, ranks as u64);
        let outcome = or_skip!(RMZ.run(ranks, &["-v", "--threads=1", "t"], &scratch));
        outcome.assert_success();
        assert_eq!(lines(&outcome.stdout_text()), lines(&expected), "{ranks}");
        assert_eq!(outcome.stderr_text(), "");
        assert_names(&scratch, &[]);
    }
}

#[test]
fn all_ranks_take_part() {
    let scratch = Scratch::in_memory();
    for seed in 0..10 {
        build(&scratch.at(format!("t/{seed}")), seed);
    }
    let entries = Snapshot::of(scratch.at("t"), Attributes::NAMES).len();
    let arguments = ["--threads=1", "--stats=json", SLOW_THOUSANDS, "t"];
    let outcome = or_skip!(RMZ.run(4, &arguments, &scratch));
    outcome.assert_success();
    assert_eq!(stat(&outcome, "ranks"), 4);
    assert_eq!(stat(&outcome, "entries"), entries as u64);
    assert_shared(&outcome);
}

#[test]
fn the_names_in_a_list_are_operands_of_all_ranks() {
    let scratch = Scratch::in_memory();
    let names = (0..20_u64).map(|seed| format!("t/{seed}"));
    let names: Vec<_> = names.collect();
    for (name, seed) in names.iter().zip(0..) {
        build(&scratch.at(name), seed);
    }
    let list = names.join("\0") + "\0\0t/missing\0";
    fs::write(scratch.at("list"), list).unwrap();
    let options = ["--threads=1", "--stats=json", SLOW_THOUSANDS];
    let arguments = [&options[..], &["--files0-from=list"]].concat();
    let outcome = or_skip!(RMZ.run(4, &arguments, &scratch));
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let messages = [
        "rmz-mpi: cannot remove 't/missing': No such file or directory",
        "rmz-mpi: list:21: invalid zero-length file name",
    ];
    assert_eq!(RMZ.diagnostics(&outcome), messages);
    assert_eq!(stat(&outcome, "failures"), 2);
    assert_shared(&outcome);
    assert_names(&scratch, &["list", "t"]);
}

#[test]
fn works_with_64_descriptors() {
    let scratch = Scratch::in_memory();
    testkit::tree::comb(scratch.at("t"), 500, 3);
    let arguments = ["--stats=json", SLOW_THOUSANDS, "t"];
    let run = or_skip!(RMZ.job(4, r#"ulimit -n 64; exec "$@""#, &arguments));
    let outcome = run.current_dir(&scratch).output();
    outcome.assert_success();
    assert_shared(&outcome);
    assert_names(&scratch, &[]);
}

#[test]
fn a_failure_is_printed_once_and_is_the_status_of_every_rank() {
    needs!(root, "chattr");
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    let kept = ["t/3/sub/kept", "t/17/sub/kept", "t/30/sub/kept"];
    for number in 0..40 {
        tree.file(format!("t/{number}/sub/file"), "");
    }
    for name in kept {
        tree.file(name, "");
    }
    let run = or_skip!(RMZ.job(4, STATUSES, &["--threads=1", "--stats=json", "t"]));
    let run = run.current_dir(&scratch);
    let outcome = with_immutable(&scratch, &kept, || run.output());
    let mut expected =
        kept.map(|name| format!("rmz-mpi: cannot remove '{name}': Operation not permitted"));
    expected.sort();
    assert_eq!(RMZ.diagnostics(&outcome), expected);
    assert_eq!(stat(&outcome, "failures"), 3);
    assert_eq!(statuses(&scratch, 4), ["1"; 4]);
    // The files, and what is above them.
    let left = Snapshot::of(scratch.at("t"), Attributes::NAMES);
    assert_eq!(left.len(), 1 + 3 * 3, "{left:?}");
}

#[test]
fn missing_operands_are_failures_of_every_rank_unless_they_are_ignored() {
    let missing = "rmz-mpi: cannot remove 'missing': No such file or directory";
    for (arguments, status, messages) in [
        (&["t"][..], "0", &[][..]),
        (&["missing", "t"], "1", &[missing]),
        (&["-f", "missing", "t"], "0", &[]),
    ] {
        let scratch = Scratch::in_memory();
        build(&scratch.at("t"), 2);
        let run = or_skip!(RMZ.job(4, STATUSES, arguments));
        let outcome = run.current_dir(&scratch).output();
        assert_eq!(RMZ.diagnostics(&outcome), messages, "{arguments:?}");
        assert_eq!(statuses(&scratch, 4), [status; 4], "{arguments:?}");
        assert_names(&scratch, &[]);
    }
}

#[test]
fn help_is_printed_once() {
    let scratch = Scratch::in_memory();
    let outcome = or_skip!(RMZ.run(4, &["--help"], &scratch));
    outcome.assert_success();
    let help = outcome.stdout_text();
    assert_eq!(help.matches("Usage: ").count(), 1);
    for refused in ["-i", "-I", "--interactive", "--detach", "--reap"] {
        assert!(!help.contains(&format!("  {refused}")), "{refused}");
    }
}

#[test]
fn a_dry_run_names_what_would_be_removed_and_removes_nothing() {
    let scratch = Scratch::in_memory();
    build(&scratch.at("t"), 2);
    let before = Snapshot::of(scratch.path(), Attributes::ALL - Attributes::ATIME);
    let outcome = or_skip!(RMZ.run(4, &["--dry-run", "--stats=json", "t"], &scratch));
    outcome.assert_success();
    let entries = 1 + count(&scratch.at("t"));
    let text = outcome.stdout_text();
    let removed = text
        .lines()
        .filter(|line| line.starts_with("would remove "));
    // The last line has the totals.
    assert_eq!(removed.count(), entries + 1);
    assert_eq!(stat(&outcome, "entries"), entries as u64);
    let after = Snapshot::of(scratch.path(), Attributes::ALL - Attributes::ATIME);
    assert_eq!(before.diff(&after), "");
}

/// Rank 0 alone reads its arguments, its file of patterns and its variables. The others have other working
/// directories, umasks and variables.
#[test]
fn all_ranks_work_by_the_command_line_of_rank_0() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(scratch.at("here"));
    for number in 0..200 {
        tree.file(format!("t/{number}/file"), "")
            .file(format!("t/{number}/sub/file"), "")
            .dir(format!("t/{number}/empty"));
    }
    tree.file("t/150/sub/precious", "")
        .file("patterns", "precious\n");
    Tree::at(scratch.at("elsewhere")).file("t/0/file", "");
    let script = r#"
        if [ "$RANK" != 0 ]; then
            cd ../elsewhere; umask 777; shift $#
            set -- "$RMZ_MPI" --no-such-option
        fi
        exec "$@""#;
    let run = or_skip!(RMZ.job(4, script, &["--threads=1", "--exclude-from=patterns", "t"]));
    let run = run.current_dir(scratch.at("here"));
    let outcome = run.output();
    outcome.assert_success();
    assert_eq!(outcome.stderr_text(), "");
    let left = Snapshot::of(scratch.at("here/t"), Attributes::NAMES);
    assert_eq!(left.len(), 4, "{left:?}");
    assert!(scratch.at("here/t/150/sub/precious").exists());
    assert!(scratch.at("elsewhere/t/0/file").exists());
}

#[test]
fn a_rank_that_cannot_enter_the_working_directory_is_a_failure_and_the_others_do_the_work() {
    needs!(root, "unshare");
    let scratch = Scratch::new();
    build(&scratch.at("here/t"), 3);
    let run = or_skip!(RMZ.job(4, HIDING, &["t"]));
    let here = scratch.at("here");
    let run = run.env("HIDDEN", scratch.path()).current_dir(&here);
    let outcome = run.output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let problem = "a rank cannot enter the working directory of rank 0, ";
    let reason = "No such file or directory";
    let message = format!("rmz-mpi: {problem}'{}': {reason}", here.display());
    assert_eq!(RMZ.diagnostics(&outcome), [message]);
    assert_names(&scratch, &["here"]);
}

/// Ranks that steal must know the filesystem of an operand that they have not begun. Most directories that they can
/// steal are mount points here, so the first one that they open usually is.
#[test]
fn other_filesystems_are_skipped_on_every_rank() {
    needs!(root, "unshare", "strace");
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    let mounts: Vec<_> = (0..100).map(|number| format!("t/mount{number}")).collect();
    for mount in &mounts {
        tree.dir(mount);
    }
    for number in 0..10 {
        tree.file(format!("t/{number}/file"), "");
    }
    let mounted = r#"
        set -e
        for mount in t/mount*; do
            mount -t tmpfs none "$mount"
            : > "$mount/file"
        done
        "$@" && status=0 || status=$?
        for mount in t/mount*; do
            [ -e "$mount/file" ] || echo "$mount was emptied"
        done
        exit $status"#;
    let script = r#"
        [ "$RANK" != 0 ] || exec strace -f -o /dev/null "$@"
        exec "$@""#;
    let job = RMZ.words(4, script, &["--threads=1", "--one-file-system", "t"]);
    let run = Run::new("unshare").args(["-m", "sh", "-c", mounted, "sh"]);
    let outcome = run.args(job).current_dir(&scratch).output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    assert_eq!(outcome.stdout_text(), "");
    let skipping =
        |mount: &String| format!("rmz-mpi: skipping '{mount}', since it's on a different device");
    let mut expected: Vec<_> = mounts.iter().map(skipping).collect();
    expected.sort();
    assert_eq!(RMZ.diagnostics(&outcome), expected);
    let left = Snapshot::of(scratch.at("t"), Attributes::NAMES);
    assert_eq!(left.len(), 1 + mounts.len(), "{left:?}");
}

/// Builds 300 entries below `t`.
fn build_small(scratch: &Scratch) {
    let tree = Tree::at(scratch.path());
    for number in 0..100 {
        tree.file(format!("t/{number}/sub/file"), "");
    }
}

#[test]
fn a_rate_limits_all_ranks_together_and_progress_is_that_of_all() {
    let scratch = Scratch::in_memory();
    build_small(&scratch);
    let arguments = ["--max-rate=100/s", "--progress=always", "--stats=json", "t"];
    let began = Instant::now();
    let outcome = or_skip!(RMZ.run(4, &arguments, &scratch));
    // The first permits come at once.
    assert!(began.elapsed() > Duration::from_secs(2), "{outcome}");
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    assert_eq!(stat(&outcome, "entries"), 301);
    assert_shared(&outcome);
    let shown = outcome.stderr_text();
    let last = shown.lines().last().unwrap_or_default();
    assert!(last.starts_with("301 entries removed"), "{shown}");
    assert_names(&scratch, &[]);
}

#[test]
fn a_signal_cancels_ranks_that_wait_because_of_the_rate() {
    let scratch = Scratch::in_memory();
    wide(scratch.at("t"), 300);
    let job = or_skip!(RMZ.job(4, PIDS, &["--max-rate=1/s", "t"]));
    let live = job.current_dir(&scratch).start();
    while count(&scratch.at("t")) == 300 {
        thread::sleep(Duration::from_millis(10));
    }
    signal(&scratch, 2, "-TERM");
    assert_interrupted(RMZ, &live.finish());
    assert!(count(&scratch.at("t")) > 200);
}

#[test]
fn a_signal_to_one_rank_cancels_all() {
    let scratch = Scratch::in_memory();
    for number in 0..100 {
        build(&scratch.at(format!("t/{number}")), number);
    }
    let job = or_skip!(RMZ.job(4, PIDS, &["--threads=1", "-v", "t"]));
    let mut live = job.current_dir(&scratch).start();
    // The first lines come from rank 0 when it has removed a few hundred entries.
    live.wait_for(Stream::Stdout, "removed");
    signal(&scratch, 1, "-TERM");
    assert_interrupted(RMZ, &live.finish());
    assert!(scratch.at("t").exists());
}
