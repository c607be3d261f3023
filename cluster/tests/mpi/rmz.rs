//! Tests of `rmz-mpi`.

use std::fs;
use std::time::{Duration, Instant};

use testkit::probe::gnu;
use testkit::run::{Run, Stream};
use testkit::snapshot::{Attributes, Snapshot};
use testkit::tree::{Scratch, Tree, comb, wide_dirs};
use testkit::{needs, or_skip};

use crate::job::{
    FEW_DESCRIPTORS, PIDS, RMZ, SLOW_HUNDREDS, SLOW_THOUSANDS, STATUSES, assert_interrupted,
    assert_shared, printed, signal, stat, statuses, with_immutable,
};
use crate::trees::{build, count};

#[track_caller]
fn assert_names(scratch: &Scratch, expected: &[&str]) {
    let left = Snapshot::of(scratch, Attributes::NAMES);
    assert_eq!(left.len(), 1 + expected.len(), "{left:?}");
    for name in expected {
        assert!(scratch.at(name).symlink_metadata().is_ok());
    }
}

/// Builds as many random trees in `t`, and returns their names.
fn build_trees(scratch: &Scratch, trees: u64) -> Vec<String> {
    let names = (0..trees).map(|number| format!("t/{number}"));
    let names: Vec<_> = names.collect();
    for (name, seed) in names.iter().zip(0..) {
        build(&Tree::at(scratch), name, seed, b'a');
    }
    names
}

#[test]
fn removes_random_trees_as_rm_does() {
    let rm = or_skip!(gnu("rm"));
    for ranks in [1, 4] {
        let scratch = Scratch::in_memory();
        build_trees(&scratch, 6);
        let listed = Run::new(&rm).args(["-rv", "t"]);
        let expected = listed.current_dir(&scratch).output();
        build_trees(&scratch, 6);
        let entries = 1 + count(&scratch.at("t"));
        let outcome = RMZ.run(ranks, &format!("-v {SLOW_THOUSANDS} t"), &scratch);
        outcome.assert_success();
        assert_eq!(printed(&outcome), printed(&expected), "{ranks}");
        assert_eq!(stat(&outcome, "entries"), entries as u64);
        assert_eq!(stat(&outcome, "ranks"), ranks as u64);
        if ranks > 1 {
            assert_shared(&outcome);
        }
        assert_names(&scratch, &[]);
    }
}

#[test]
fn the_names_in_a_list_are_operands_of_all_ranks() {
    let scratch = Scratch::in_memory();
    let names = build_trees(&scratch, 10);
    let list = names.join("\0") + "\0\0t/missing\0";
    fs::write(scratch.at("list"), list).unwrap();
    let arguments = format!("{SLOW_THOUSANDS} --files0-from=list");
    let outcome = RMZ.run(4, &arguments, &scratch);
    outcome.assert_status(1);
    let messages = [
        "rmz-mpi: cannot remove 't/missing': No such file or directory",
        "rmz-mpi: list:11: invalid zero-length file name",
    ];
    assert_eq!(RMZ.diagnostics(&outcome), messages);
    assert_eq!(stat(&outcome, "failures"), 2);
    assert_shared(&outcome);
    assert_names(&scratch, &["list", "t"]);
}

#[test]
fn works_with_64_descriptors() {
    let scratch = Scratch::in_memory();
    comb(scratch.at("t"), 500, 3);
    let run = RMZ.job(4, FEW_DESCRIPTORS, &format!("{SLOW_THOUSANDS} t"));
    let outcome = run.current_dir(&scratch).output();
    outcome.assert_success();
    assert_shared(&outcome);
    assert_names(&scratch, &[]);
}

#[test]
fn a_failure_is_printed_once_and_is_the_status_of_every_rank() {
    needs!(root, "chattr");
    let cannot = |name: &str, reason: &str| format!("rmz-mpi: cannot remove '{name}': {reason}");
    let missing = cannot("missing", "No such file or directory");
    let kept = ["t/17/sub/kept", "t/3/sub/kept", "t/30/sub/kept"];
    let not_permitted = kept.map(|name| cannot(name, "Operation not permitted"));
    for (arguments, kept, messages) in [
        ("t", &[][..], &[][..]),
        ("-f missing t", &[], &[]),
        ("missing t", &[], &[missing]),
        ("t", &kept, &not_permitted),
    ] {
        let scratch = Scratch::new();
        scratch.plant("t/{0..39}/sub/file=");
        for name in kept {
            Tree::at(&scratch).file(name, "");
        }
        let arguments = format!("--threads=1 --stats=json {arguments}");
        let run = RMZ.job(4, STATUSES, &arguments).current_dir(&scratch);
        let outcome = with_immutable(&scratch, kept, || run.output());
        assert_eq!(RMZ.diagnostics(&outcome), messages, "{arguments}");
        assert_eq!(stat(&outcome, "failures"), messages.len() as u64);
        let status = if messages.is_empty() { "0" } else { "1" };
        assert_eq!(statuses(&scratch), [status; 4], "{arguments}");
        // The files, and what is above them.
        let left = count(scratch.path());
        assert_eq!(left, usize::from(!kept.is_empty()) + 3 * kept.len());
    }
}

#[test]
fn help_is_printed_once() {
    let scratch = Scratch::in_memory();
    let outcome = RMZ.run(4, "--help", &scratch);
    let help = outcome.assert_success().stdout_text();
    assert_eq!(help.matches("Usage: ").count(), 1);
    for refused in ["-i", "-I", "--interactive", "--detach", "--reap"] {
        assert!(!help.contains(&format!("  {refused}")), "{refused}");
    }
}

#[test]
fn a_dry_run_names_what_would_be_removed_and_removes_nothing() {
    let scratch = Scratch::in_memory();
    build_trees(&scratch, 1);
    let before = Snapshot::of(&scratch, Attributes::ALL - Attributes::ATIME);
    let outcome = RMZ.run(4, "--dry-run --stats=json t", &scratch);
    outcome.assert_success();
    let entries = 1 + count(&scratch.at("t"));
    let text = outcome.stdout_text();
    // One line has the totals.
    assert_eq!(text.matches("would remove ").count(), entries + 1);
    assert_eq!(stat(&outcome, "entries"), entries as u64);
    let after = Snapshot::of(&scratch, Attributes::ALL - Attributes::ATIME);
    assert_eq!(before.diff(&after), "");
}

/// Ranks that steal must know the filesystem of an operand that they have not begun. Most directories that they can
/// steal are mount points here, so the first one that they open usually is.
#[test]
fn other_filesystems_are_skipped_on_every_rank() {
    needs!(root, "unshare", "strace");
    let scratch = Scratch::new();
    scratch.plant("t/mount{0..99}/ t/{0..9}/file=");
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
    let job = RMZ.words(4, script, "--threads=1 --one-file-system t");
    let run = Run::new("unshare").args(["-m", "sh", "-c", mounted, "sh"]);
    let outcome = run.args(job).current_dir(&scratch).output();
    outcome.assert_status(1);
    assert_eq!(outcome.stdout_text(), "");
    let skipped = (0..100).map(|number| {
        format!("rmz-mpi: skipping 't/mount{number}', since it's on a different device")
    });
    let mut expected: Vec<_> = skipped.collect();
    expected.sort();
    assert_eq!(RMZ.diagnostics(&outcome), expected);
    assert_eq!(count(&scratch.at("t")), 100);
}

#[test]
fn a_rate_limits_all_ranks_together_and_progress_is_that_of_all() {
    let scratch = Scratch::in_memory();
    scratch.plant("t/{0..99}/sub/file=");
    let arguments = "--max-rate=100/s --progress=always --stats=json t";
    let began = Instant::now();
    let outcome = RMZ.run(4, arguments, &scratch);
    // The first permits come at once.
    assert!(began.elapsed() > Duration::from_secs(2), "{outcome}");
    outcome.assert_status(0);
    assert_eq!(stat(&outcome, "entries"), 301);
    assert_shared(&outcome);
    let shown = outcome.stderr_text();
    let last = shown.lines().last().unwrap_or_default();
    assert!(last.starts_with("301 entries removed"), "{shown}");
    assert_names(&scratch, &[]);
}

#[test]
fn excluded_names_stay_on_every_rank() {
    let scratch = Scratch::with(r"t/{0..199}/{sub/file,kept.o}= patterns='*.o\n'");
    let arguments = format!("{SLOW_HUNDREDS} --exclude-from=patterns t");
    let outcome = RMZ.run(4, &arguments, &scratch);
    outcome.assert_success();
    assert_shared(&outcome);
    let left = Snapshot::of(scratch.at("t"), Attributes::NAMES);
    assert_eq!(left.len(), 1 + 2 * 200, "{left:?}");
}

#[test]
fn a_signal_to_one_rank_cancels_all() {
    let scratch = Scratch::in_memory();
    wide_dirs(scratch.at("t"), 20_000);
    let job = RMZ.job(4, PIDS, &format!("{SLOW_THOUSANDS} -v t"));
    let mut live = job.current_dir(&scratch).start();
    // The first lines come from rank 0 when it has removed a few hundred entries.
    live.wait_for(Stream::Stdout, "removed");
    signal(&scratch, 1, "-TERM");
    assert_interrupted(RMZ, &live.finish());
    assert!(scratch.at("t").exists());
}
