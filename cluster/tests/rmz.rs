//! Tests of `rmz-mpi` by `mpirun`, with several ranks on this machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use testkit::probe::{Skip, gnu, has_program, is_root};
use testkit::run::{Outcome, Run, Status, Stream};
use testkit::snapshot::{Attributes, Snapshot};
use testkit::tree::{Scratch, Tree, chain, wide, wide_dirs};
use testkit::{or_skip, skip};

const RMZ_MPI: &str = env!("CARGO_BIN_EXE_rmz-mpi");

/// Prepares a job. Each rank runs `script` in a shell, in which `"$@"` is the command. If the script goes on after it,
/// it must see to the status.
fn job(ranks: usize, script: &str, arguments: &[&str]) -> Result<Run, Skip> {
    if !has_program("mpirun") {
        return Err(Skip("there is no mpirun".into()));
    }
    let words = words(ranks, script, arguments);
    let run = Run::new(&words[0]).args(&words[1..]);
    Ok(run.time_limit(Duration::from_secs(120)))
}

/// Returns the command line of a job.
fn words(ranks: usize, script: &str, arguments: &[&str]) -> Vec<String> {
    // Root in a container, on a machine with few cores.
    let mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n"];
    let ranks = ranks.to_string();
    let shell = [&ranks, "sh", "-c", script, "sh", RMZ_MPI];
    let words = mpirun.iter().chain(&shell).chain(arguments);
    words.map(ToString::to_string).collect()
}

fn plain(ranks: usize, arguments: &[&str], scratch: &Scratch) -> Result<Outcome, Skip> {
    let run = job(ranks, r#"exec "$@""#, arguments)?;
    Ok(run.current_dir(scratch).output())
}

/// Returns the lines that the command has written to stderr, without those of `mpirun`.
fn diagnostics(outcome: &Outcome) -> Vec<String> {
    let stderr = outcome.stderr_text();
    let ours = stderr.lines().filter(|line| line.starts_with("rmz-mpi:"));
    let mut ours: Vec<_> = ours.map(str::to_owned).collect();
    ours.sort();
    ours
}

fn lines(text: &str) -> BTreeSet<String> {
    text.lines().map(str::to_owned).collect()
}

#[track_caller]
fn assert_names(scratch: &Scratch, expected: &[&str]) {
    let left = Snapshot::of(scratch, Attributes::NAMES);
    assert_eq!(left.len(), 1 + expected.len(), "{left:?}");
    for name in expected {
        assert!(scratch.path().join(name).symlink_metadata().is_ok());
    }
}

/// A sequence of numbers that is the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// Builds a tree with about 400 entries of all types.
fn build(root: &Path, seed: u64) {
    let tree = Tree::at(root);
    let mut numbers = Numbers(seed);
    let mut dirs = vec![String::from("top")];
    tree.dir("top");
    for number in 0..400 {
        let dir = &dirs[numbers.below(dirs.len() as u64) as usize];
        let name = format!("{dir}/{number}");
        match numbers.below(8) {
            0..3 => {
                dirs.push(name.clone());
                tree.dir(name)
            }
            3 => tree.symlink(&name, "/nowhere"),
            4 => tree.fifo(&name),
            5 => tree.file(format!("{name}\n'quoted'"), ""),
            _ => tree.file(&name, "content"),
        };
    }
}

#[test]
fn removes_random_trees_as_rm_does() {
    let rm = or_skip!(gnu("rm"));
    for ranks in [1, 2, 3, 8] {
        let scratch = Scratch::in_memory();
        let root = scratch.path().join("t");
        build(&root, ranks as u64);
        let listed = Run::new(&rm).args(["-rv", "t"]);
        let expected = listed.current_dir(&scratch).output().stdout_text();
        build(&root, ranks as u64);
        let outcome = or_skip!(plain(ranks, &["-v", "--threads=1", "t"], &scratch));
        outcome.assert_success();
        assert_eq!(lines(&outcome.stdout_text()), lines(&expected), "{ranks}");
        assert_eq!(outcome.stderr_text(), "");
        assert_names(&scratch, &[]);
    }
}

#[test]
fn all_ranks_take_part() {
    if !has_program("strace") {
        skip!("there is no strace");
    }
    let scratch = Scratch::in_memory();
    for seed in 0..10 {
        build(&scratch.path().join(format!("t/{seed}")), seed);
    }
    let entries = Snapshot::of(scratch.path().join("t"), Attributes::NAMES).len();
    let script = r#"exec strace -f -qq -e trace=unlinkat -o "trace.$OMPI_COMM_WORLD_RANK" "$@""#;
    let run = or_skip!(job(3, script, &["--threads=1", "t"]));
    run.current_dir(&scratch).output().assert_success();
    let removed = [0, 1, 2].map(|rank| {
        let trace = fs::read_to_string(scratch.path().join(format!("trace.{rank}"))).unwrap();
        let removals = trace.lines().filter(|line| line.ends_with(" = 0"));
        // MPI removes files of its own by other calls.
        removals.filter(|line| line.contains("unlinkat(")).count()
    });
    assert!(removed.iter().all(|&removed| removed > 0), "{removed:?}");
    assert_eq!(removed.iter().sum::<usize>(), entries, "{removed:?}");
}

#[test]
fn removes_deep_and_wide_trees() {
    let scratch = Scratch::in_memory();
    let at = |name: &str| scratch.path().join(name);
    chain(at("chain"), 20_000);
    wide(at("files"), 20_000);
    wide_dirs(at("directories"), 20_000);
    let arguments = ["--stats=json", "chain", "files", "directories"];
    let outcome = or_skip!(plain(3, &arguments, &scratch));
    outcome.assert_success();
    let stats = outcome.stdout_text();
    assert!(
        stats.contains(r#""entries":60003,"files":20000,"directories":40003,"#),
        "{stats}"
    );
    assert_names(&scratch, &[]);
}

#[test]
fn works_with_64_descriptors() {
    let scratch = Scratch::in_memory();
    testkit::tree::comb(scratch.path().join("t"), 500, 3);
    let run = or_skip!(job(3, r#"ulimit -n 64; exec "$@""#, &["t"]));
    run.current_dir(&scratch).output().assert_success();
    assert_names(&scratch, &[]);
}

/// Lets each rank write its status to a file, because `mpirun` shows only one.
const STATUSES: &str = r#""$@"; echo $? > "status.$OMPI_COMM_WORLD_RANK""#;

fn statuses(scratch: &Scratch, ranks: usize) -> Vec<String> {
    let ranks = 0..ranks;
    let read = ranks.map(|rank| {
        let path = scratch.path().join(format!("status.{rank}"));
        let status = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        status.trim().to_owned()
    });
    read.collect()
}

#[test]
fn a_failure_is_printed_once_and_is_the_status_of_every_rank() {
    if !has_program("chattr") || !is_root() {
        skip!("only root can make a file immutable, by chattr");
    }
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    let kept = ["t/3/sub/kept", "t/17/sub/kept", "t/30/sub/kept"];
    for number in 0..40 {
        tree.file(format!("t/{number}/sub/file"), "");
    }
    for name in kept {
        tree.file(name, "");
    }
    let chattr = |flag: &str| {
        let run = Run::new("chattr").arg(flag).args(kept);
        run.current_dir(&scratch).output().assert_success();
    };
    chattr("+i");
    let run = or_skip!(job(3, STATUSES, &["--threads=1", "--stats=json", "t"]));
    let outcome = run.current_dir(&scratch).output();
    chattr("-i");
    let mut expected =
        kept.map(|name| format!("rmz-mpi: cannot remove '{name}': Operation not permitted"));
    expected.sort();
    assert_eq!(diagnostics(&outcome), expected);
    assert!(
        outcome.stdout_text().contains(r#""failures":3,"#),
        "{outcome}"
    );
    assert_eq!(statuses(&scratch, 3), ["1", "1", "1"]);
    // The files, and what is above them.
    let left = Snapshot::of(scratch.path().join("t"), Attributes::NAMES);
    assert_eq!(left.len(), 1 + 3 * 3, "{left:?}");
}

#[test]
fn a_job_without_failures_has_status_0_on_every_rank() {
    let scratch = Scratch::in_memory();
    build(&scratch.path().join("t"), 2);
    let run = or_skip!(job(3, STATUSES, &["t"]));
    run.current_dir(&scratch).output().assert_success();
    assert_eq!(statuses(&scratch, 3), ["0", "0", "0"]);
}

#[test]
fn missing_operands_are_failures_unless_they_are_ignored() {
    let scratch = Scratch::in_memory();
    let outcome = or_skip!(plain(2, &["missing"], &scratch));
    assert_eq!(outcome.status, Status::Exit(1));
    let message = "rmz-mpi: cannot remove 'missing': No such file or directory";
    assert_eq!(diagnostics(&outcome), [message]);
    let outcome = or_skip!(plain(2, &["-f", "missing"], &scratch));
    outcome.assert_success();
    assert_eq!(outcome.stderr_text(), "");
}

#[test]
fn what_several_ranks_cannot_do_is_refused_once_and_before_any_work() {
    let scratch = Scratch::in_memory();
    Tree::at(scratch.path()).file("t/file", "");
    for (arguments, message) in [
        (&["-i"][..], "cannot prompt: other ranks have no terminal"),
        (&["-I"], "cannot prompt: other ranks have no terminal"),
        (
            &["--dry-run"],
            "--dry-run is not available on several ranks",
        ),
        (
            &["--detach"],
            "--detach or --reap is not available on several ranks",
        ),
        (
            &["--progress"],
            "--progress is not available on several ranks",
        ),
        (
            &["--files0-from=-"],
            "--files0-from is not available on several ranks",
        ),
    ] {
        let arguments: Vec<_> = arguments.iter().copied().chain(["t"]).collect();
        let run = or_skip!(job(2, STATUSES, &arguments));
        let outcome = run.current_dir(&scratch).output();
        assert_eq!(diagnostics(&outcome), [format!("rmz-mpi: {message}")]);
        assert_eq!(statuses(&scratch, 2), ["1", "1"], "{arguments:?}");
    }
    assert!(scratch.path().join("t/file").exists());
}

#[test]
fn help_is_printed_once() {
    let scratch = Scratch::in_memory();
    let outcome = or_skip!(plain(3, &["--help"], &scratch));
    outcome.assert_success();
    assert_eq!(outcome.stdout_text().matches("Usage: ").count(), 1);
}

/// Rank 0 alone reads its arguments, its file of patterns and its variables. The others have other working
/// directories, umasks and variables.
#[test]
fn all_ranks_work_by_the_command_line_of_rank_0() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(scratch.path().join("here"));
    for number in 0..200 {
        tree.file(format!("t/{number}/file"), "")
            .file(format!("t/{number}/sub/file"), "")
            .dir(format!("t/{number}/empty"));
    }
    tree.file("t/150/sub/precious", "")
        .file("patterns", "precious\n");
    Tree::at(scratch.path().join("elsewhere")).file("t/0/file", "");
    let script = r#"
        if [ "$OMPI_COMM_WORLD_RANK" != 0 ]; then
            cd ../elsewhere; umask 777; shift $#
            set -- "$RMZ_MPI" --no-such-option
        fi
        exec "$@""#;
    let run = or_skip!(job(
        3,
        script,
        &["--threads=1", "--exclude-from=patterns", "t"]
    ));
    let run = run.env("RMZ_MPI", RMZ_MPI);
    let run = run.current_dir(scratch.path().join("here"));
    let outcome = run.output();
    outcome.assert_success();
    assert_eq!(outcome.stderr_text(), "");
    let left = Snapshot::of(scratch.path().join("here/t"), Attributes::NAMES);
    assert_eq!(left.len(), 4, "{left:?}");
    assert!(scratch.path().join("here/t/150/sub/precious").exists());
    assert!(scratch.path().join("elsewhere/t/0/file").exists());
}

#[test]
fn a_rank_that_cannot_enter_the_working_directory_is_a_failure_and_the_others_do_the_work() {
    if !is_root() || !has_program("unshare") {
        skip!("only root can hide a directory from a rank, by unshare");
    }
    let scratch = Scratch::new();
    build(&scratch.path().join("here/t"), 3);
    // The rank sees an empty directory in place of the one that has the working directory.
    let script = r#"
        if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then
            cd /
            exec unshare -m sh -c 'mount -t tmpfs none "$HIDDEN" && exec "$@"' sh "$@"
        fi
        exec "$@""#;
    let run = or_skip!(job(2, script, &["t"]));
    let here = scratch.path().join("here");
    let run = run.env("HIDDEN", scratch.path()).current_dir(&here);
    let outcome = run.output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let problem = "a rank cannot enter the working directory of rank 0, ";
    let reason = "No such file or directory";
    let message = format!("rmz-mpi: {problem}'{}': {reason}", here.display());
    assert_eq!(diagnostics(&outcome), [message]);
    assert_names(&scratch, &["here"]);
}

/// Ranks that steal must know the filesystem of an operand that they have not begun. Most directories that they can
/// steal are mount points here, so the first one that they open usually is.
#[test]
fn other_filesystems_are_skipped_on_every_rank() {
    if !is_root() || !has_program("unshare") || !has_program("strace") {
        skip!("only root can mount, by unshare, and strace slows a rank down");
    }
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
        [ "$OMPI_COMM_WORLD_RANK" != 0 ] || exec strace -f -o /dev/null "$@"
        exec "$@""#;
    let job = words(3, script, &["--threads=1", "--one-file-system", "t"]);
    let run = Run::new("unshare").args(["-m", "sh", "-c", mounted, "sh"]);
    let outcome = run.args(job).current_dir(&scratch).output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    assert_eq!(outcome.stdout_text(), "");
    let skipping =
        |mount: &String| format!("rmz-mpi: skipping '{mount}', since it's on a different device");
    let mut expected: Vec<_> = mounts.iter().map(skipping).collect();
    expected.sort();
    assert_eq!(diagnostics(&outcome), expected);
    let left = Snapshot::of(scratch.path().join("t"), Attributes::NAMES);
    assert_eq!(left.len(), 1 + mounts.len(), "{left:?}");
}

#[test]
fn a_signal_to_one_rank_cancels_all() {
    let scratch = Scratch::in_memory();
    for number in 0..100 {
        build(&scratch.path().join(format!("t/{number}")), number);
    }
    let script = r#"echo $$ > "pid.$OMPI_COMM_WORLD_RANK"; exec "$@""#;
    let job = or_skip!(job(3, script, &["--threads=1", "-v", "t"]));
    let mut live = job.current_dir(&scratch).start();
    // The first lines come from rank 0 when it has removed a few hundred entries.
    live.wait_for(Stream::Stdout, "removed");
    let pid = fs::read_to_string(scratch.path().join("pid.1")).unwrap();
    Run::new("kill").args(["-TERM", pid.trim()]).output();
    let outcome = live.finish();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let last = diagnostics(&outcome);
    assert_eq!(last.len(), 1, "{last:?}");
    assert!(last[0].starts_with("rmz-mpi: interrupted: "), "{last:?}");
    assert!(scratch.path().join("t").exists());
}

/// Counts the entries below a directory that is being removed.
fn count(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let below = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => 1 + count(&entry.path()),
        _ => 1,
    });
    below.sum()
}

/// Kills one rank at another moment in each round, but not before the removal has begun: `mpirun` 4.1.4 sometimes
/// hangs if a rank dies while it starts.
#[test]
fn a_killed_rank_ends_the_job_and_the_same_command_completes_it() {
    let mut killed = 0;
    for round in 0..10_u64 {
        let scratch = Scratch::in_memory();
        for seed in 0..12 {
            build(&scratch.path().join(format!("t/{seed}")), seed);
        }
        let tree = scratch.path().join("t");
        let entries = count(&tree);
        let script = r#"echo $$ > "pid.$OMPI_COMM_WORLD_RANK"; exec "$@""#;
        let arguments = ["--threads=1", "-v", "t"];
        let job = or_skip!(job(4, script, &arguments));
        let live = job.current_dir(&scratch).start();
        let victim = scratch.path().join(format!("pid.{}", round % 4));
        while count(&tree) == entries {
            thread::yield_now();
        }
        let pid = fs::read_to_string(&victim).unwrap();
        thread::sleep(Duration::from_millis(4 * round));
        Run::new("kill").args(["-KILL", pid.trim()]).output();
        let outcome = live.finish();
        if outcome.status == Status::Exit(0) {
            // The rank had ended, or had nothing left to do.
            assert!(!scratch.path().join("t").exists(), "round {round}");
        } else {
            assert_ne!(outcome.stderr_text(), "", "round {round}");
            killed += 1;
        }
        let again = or_skip!(plain(4, &["-f", "t"], &scratch));
        again.assert_success();
        assert!(!scratch.path().join("t").exists());
    }
    assert!(killed > 0, "all ranks ended before they were killed");
}
