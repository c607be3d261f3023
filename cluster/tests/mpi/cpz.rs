//! Tests of `cpz-mpi`.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use testkit::probe::{Fs, LoopMount, Skip, gnu};
use testkit::run::{Outcome, Run, Status, Stream, twin};
use testkit::snapshot::{Attributes, Snapshot, assert_same_tree};
use testkit::tree::{Scratch, Tree, remove_for_sure};
use testkit::{needs, or_skip};

use crate::job::{
    CPZ, HIDING, Numbers, PIDS, SLOW_HUNDREDS, SLOW_THOUSANDS, STATUSES, assert_interrupted,
    assert_shared, lines, signal, stat, statuses, with_immutable,
};

/// The attributes that `-a` keeps, except for the atime: reading changes that of the sources.
pub(crate) fn archived() -> Attributes {
    Attributes::ALL - Attributes::ATIME
}

/// Builds 400 entries of all types below `root`, with hard links across directories, and various modes and times. `fill`
/// is the first byte of each file. The other things depend only on the seed.
pub(crate) fn build(tree: &Tree, root: &str, seed: u64, fill: u8) {
    let mut numbers = Numbers(seed);
    let mut dirs = vec![String::from(root)];
    let mut files: Vec<String> = Vec::new();
    tree.dir(root);
    for number in 0..400 {
        let dir = dirs[numbers.below(dirs.len() as u64) as usize].clone();
        let name = format!("{dir}/{number}");
        match numbers.below(10) {
            0..3 => {
                dirs.push(name.clone());
                tree.dir(&name);
            }
            3 => {
                tree.symlink(&name, "../0");
            }
            4 => {
                tree.fifo(&name);
                files.push(name.clone());
            }
            5 | 6 if !files.is_empty() => {
                let other = &files[numbers.below(files.len() as u64) as usize];
                tree.hardlink(other, &name);
            }
            7 => {
                let size_bytes = 1 + numbers.below(300_000);
                tree.file(&name, vec![fill; size_bytes as usize]);
            }
            _ => {
                tree.file(&name, format!("{}{number}", char::from(fill)));
                files.push(name.clone());
            }
        }
    }
    for name in dirs.iter().chain(&files) {
        let time = Duration::new(1_000_000_000 + numbers.below(1000), 5);
        let mode = [0o755, 0o700, 0o750, 0o640, 0o4711, 0o1777][numbers.below(6) as usize];
        tree.select(name).mode(mode).mtime(time);
    }
}

/// Runs cp in one twin, and several ranks of ours in the other. Compares the trees, the output and the status.
#[track_caller]
fn compare_with_cp(
    ranks: usize,
    arguments: &[&str],
    attributes: Attributes,
    build: impl Fn(&Tree),
) -> Result<Outcome, Skip> {
    let run = Run::new(gnu("cp")?).arg("-r").args(arguments);
    compare(ranks, arguments, attributes, build, |twin| {
        Ok(run.current_dir(twin).output())
    })
}

/// Runs one rank in one twin, and several in the other. Compares the trees, the output and the status.
#[track_caller]
fn compare_with_one_rank(
    ranks: usize,
    arguments: &[&str],
    attributes: Attributes,
    build: impl Fn(&Tree),
) -> Result<Outcome, Skip> {
    compare(ranks, arguments, attributes, build, |twin| {
        CPZ.run(1, arguments, twin)
    })
}

#[track_caller]
fn compare(
    ranks: usize,
    arguments: &[&str],
    attributes: Attributes,
    build: impl Fn(&Tree),
    expected: impl FnOnce(&Path) -> Result<Outcome, Skip>,
) -> Result<Outcome, Skip> {
    let (ours, theirs) = twin(build);
    let expected = expected(theirs.path())?;
    let ours_only = ["--threads=1", "--stats=json", SLOW_HUNDREDS];
    let outcome = CPZ.run(ranks, &[&ours_only, arguments].concat(), &ours)?;
    assert_eq!(outcome.status, expected.status, "{arguments:?} {outcome}");
    let mut printed = lines(&outcome.stdout_text());
    printed.retain(|line| !line.starts_with('{'));
    let expected_lines = lines(&expected.stdout_text());
    let differing: Vec<_> = printed.symmetric_difference(&expected_lines).collect();
    assert!(differing.is_empty(), "{arguments:?}: {differing:?}");
    let reported = |outcome: &Outcome| {
        let text = outcome.stderr_text();
        let reasons = text.lines().filter_map(|line| {
            let (name, reason) = line.split_once(": ")?;
            let is_ours = name == CPZ.name || name == "cp";
            is_ours.then(|| reason.to_owned())
        });
        let mut reasons: Vec<_> = reasons.collect();
        reasons.sort();
        reasons
    };
    assert_eq!(reported(&outcome), reported(&expected), "{arguments:?}");
    let copy = |twin: &Scratch| twin.path().join("d");
    assert_same_tree(copy(&theirs), copy(&ours), attributes);
    Ok(outcome)
}

#[test]
fn copies_random_trees_as_cp_does() {
    for ranks in [1, 4] {
        let seed = ranks as u64;
        let build = |tree: &Tree| build(tree, "s", seed, b'a');
        let outcome = or_skip!(compare_with_cp(
            ranks,
            &["-av", "s", "d"],
            archived(),
            build
        ));
        assert_eq!(outcome.status, Status::Exit(0));
        if ranks > 1 {
            assert_shared(&outcome);
        }
    }
}

#[test]
fn copies_with_any_options_as_cp_does() {
    let attributes = archived() - Attributes::MTIME;
    let options = [
        &["-v"][..],
        &["-d", "-v"],
        &["-L"],
        &["-l", "-v"],
        &["--no-preserve=mode", "--sparse=always"],
        &["--parents", "-v"],
    ];
    let mut shared = 0;
    for (options, seed) in options.into_iter().zip(100..) {
        let arguments = [options, &["s/", "d"]].concat();
        let compared = compare_with_cp(4, &arguments, attributes, |tree| {
            build(tree, "s", seed, b'a');
            tree.dir("d");
        });
        shared += stat(&or_skip!(compared), "fewest_entries_per_rank");
    }
    assert!(shared > 0, "no rank but one has worked");
}

#[test]
fn updates_an_existing_copy_as_one_rank_does() {
    let attributes = archived() - Attributes::MTIME;
    let options = [
        &["-a", "-v"][..],
        &["-u", "-v"],
        &["-n", "-v"],
        &["--update=none-fail", "--debug", "--all-failures"],
        &["-b", "-S.old", "-v", "-p"],
        &["--remove-destination", "-v", "-a"],
        &["-a", "--verify", "--fsync"],
        // Which name of a file is the first one, and so makes no line, depends on the order.
        &["-u", "-a"],
        &["-a", "--resume"],
    ];
    let mut shared = 0;
    for (options, seed) in options.into_iter().zip(200..) {
        let arguments = [options, &["s", "d"]].concat();
        let compared = compare_with_one_rank(4, &arguments, attributes, |tree| {
            build(tree, "s", seed, b'a');
            build(tree, "d/s", seed, b'b');
        });
        shared += stat(&or_skip!(compared), "fewest_entries_per_rank");
    }
    assert!(shared > 0, "no rank but one has worked");
}

/// The number of files with three names each.
const LINKED: usize = 1_000;

/// Makes files with three names each, in different directories.
fn build_linked(tree: &Tree) {
    let dirs = 60;
    for number in 0..LINKED {
        let name = |index: usize| {
            let dir = (number * 7 + index * 23) % dirs;
            format!("s/{}/{dir}/{number}.{index}", dir % 5)
        };
        tree.file(name(0), number.to_string());
        tree.hardlink(name(0), name(1)).hardlink(name(0), name(2));
    }
}

#[test]
fn all_names_of_a_file_become_names_of_one_copy() {
    let scratch = Scratch::in_memory();
    build_linked(&Tree::at(scratch.path()));
    let options = ["-a", "--threads=2", "--stats=json", SLOW_THOUSANDS];
    let arguments = [&options[..], &["s", "d"]].concat();
    let outcome = or_skip!(CPZ.run(4, &arguments, &scratch));
    outcome.assert_success();
    assert_eq!(stat(&outcome, "files"), LINKED as u64);
    assert_eq!(stat(&outcome, "hard_links"), 2 * LINKED as u64);
    assert_shared(&outcome);
    let at = |name: &str| scratch.at(name);
    assert_same_tree(at("s"), at("d"), archived());
}

/// Then the leader keeps the links of all files, because it alone copies operands.
#[test]
fn names_that_are_operands_stay_linked_to_names_in_directories() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(scratch.path());
    build_linked(&tree);
    tree.hardlink("s/0/0/0.0", "operand").dir("d");
    let arguments = ["-a", "--threads=2", "--stats=json", "operand", "s", "d"];
    let outcome = or_skip!(CPZ.run(4, &arguments, &scratch));
    outcome.assert_success();
    assert_eq!(stat(&outcome, "hard_links"), 2 * LINKED as u64 + 1);
    let inode = |name: &str| scratch.at(name).metadata().unwrap().ino();
    assert_eq!(inode("d/operand"), inode("d/s/0/0/0.0"));
    assert_eq!(inode("d/operand"), inode("d/s/3/23/0.1"));
}

#[test]
fn a_failure_is_printed_once_and_is_the_status_of_every_rank() {
    needs!(root, "chattr");
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    let blocked = ["d/s/3", "d/s/17", "d/s/30"];
    for number in 0..400 {
        tree.file(format!("s/{number}/sub/file"), "")
            .file(format!("s/{number}/file"), "");
    }
    for name in blocked {
        tree.dir(name);
    }
    let arguments = ["--threads=1", "--stats=json", SLOW_HUNDREDS, "s", "d"];
    let run = or_skip!(CPZ.job(4, STATUSES, &arguments)).current_dir(&scratch);
    let outcome = with_immutable(&scratch, &blocked, || run.output());
    let failures = blocked.iter().flat_map(|dir| {
        [("directory", "sub"), ("regular file", "file")].map(|(what, name)| {
            format!("cpz-mpi: cannot create {what} '{dir}/{name}': Operation not permitted")
        })
    });
    let mut expected: Vec<_> = failures.collect();
    expected.sort();
    assert_eq!(CPZ.diagnostics(&outcome), expected);
    assert_eq!(stat(&outcome, "failures"), 6);
    assert_shared(&outcome);
    assert_eq!(statuses(&scratch, 4), ["1"; 4]);
}

/// With 16 KiB each, some of 2,000 files fit into 2 MiB.
#[test]
fn a_full_disk_ends_the_job_and_the_same_command_with_resume_completes_it() {
    let scratch = Scratch::in_memory();
    let mount = or_skip!(LoopMount::new(Fs::Tmpfs, 2));
    let tree = Tree::at(scratch.path());
    for number in 0..2_000 {
        tree.file(format!("s/{}/{number}", number % 20), vec![7; 16 << 10]);
    }
    let dest = mount.path().join("d");
    let dest = dest.to_str().unwrap();
    let copy = ["-aT", "--resume", "s", dest];
    let outcome = or_skip!(CPZ.run(4, &copy, &scratch));
    assert_eq!(outcome.status, Status::Exit(1));
    let text = outcome.stderr_text();
    let ends = "cpz-mpi: 64 failures in a row, so the job ends: No space left on device";
    assert!(text.lines().any(|line| line == ends), "{outcome}");
    assert_eq!(
        text.matches("cpz-mpi: interrupted: ").count(),
        1,
        "{outcome}"
    );
    let failures = text.matches(": No space left on device").count();
    assert!((64..1_000).contains(&failures), "{failures} of 2,000");
    Run::new("mount")
        .args(["-o", "remount,size=100M"])
        .arg(mount.path())
        .output()
        .assert_success();
    or_skip!(CPZ.run(4, &copy, &scratch)).assert_success();
    assert_same_tree(scratch.at("s"), dest, archived());
}

/// Each of 300 directories is immutable.
#[test]
fn equal_failures_are_counted_after_the_first_hundred_unless_all_are_wanted() {
    needs!(root, "chattr");
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    let dirs: Vec<_> = (0..300).map(|number| format!("d/{number}")).collect();
    for (number, dir) in dirs.iter().enumerate() {
        tree.file(format!("s/{number}/file"), "").dir(dir);
    }
    let [few, all] = with_immutable(&scratch, &dirs, || {
        [&["-T", "s", "d"][..], &["-T", "--all-failures", "s", "d"]]
            .map(|arguments| CPZ.run(1, arguments, &scratch))
    });
    let few = CPZ.diagnostics(&or_skip!(few));
    assert_eq!(few.len(), 101);
    let counted = "cpz-mpi: 200 more failures: Operation not permitted";
    assert!(few.iter().any(|line| line == counted), "{few:?}");
    assert_eq!(CPZ.diagnostics(&or_skip!(all)).len(), 300);
}

/// Without a limit, the copy would be complete long before.
#[test]
fn a_rate_of_bytes_limits_all_ranks_until_a_signal_cancels_them() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(scratch.path());
    for number in 0..500 {
        tree.file(format!("s/{number}"), vec![1; 100 << 10]);
    }
    let copied = || fs::read_dir(scratch.at("d")).map_or(0, Iterator::count);
    let job = or_skip!(CPZ.job(4, PIDS, &["--max-rate=1K", "s", "d"]));
    let mut live = job.current_dir(&scratch).start();
    live.wait_for_effect(|| copied() > 0);
    signal(&scratch, 1, "-TERM");
    assert_interrupted(CPZ, &live.finish());
    assert!(copied() < 500);
}

#[test]
fn a_dry_run_names_what_would_be_copied_and_copies_nothing() {
    let scratch = Scratch::in_memory();
    build(&Tree::at(scratch.path()), "s", 3, b'a');
    let outcome = or_skip!(CPZ.run(4, &["-a", "--dry-run", "s", "d"], &scratch));
    outcome.assert_success();
    assert!(
        outcome
            .stdout_text()
            .contains("would copy 's/0' -> 'd/0'\n"),
        "{outcome}"
    );
    assert!(!scratch.at("d").exists());
}

/// Rank 0 alone reads its arguments, files and variables. The others have other working directories, umasks and
/// variables.
#[test]
fn all_ranks_work_by_the_command_line_of_rank_0() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(scratch.at("here"));
    for number in 0..200 {
        tree.file(format!("s/{number}/file"), "new")
            .mode(0o666)
            .file(format!("s/{number}/sub/file.o"), "")
            .file(format!("d/s/{number}/file"), "old");
    }
    tree.file("patterns", "*.o\n").dir("elsewhere/s");
    let script = r#"
        umask 027
        export SIMPLE_BACKUP_SUFFIX=.bak
        if [ "$RANK" != 0 ]; then
            cd ../here/elsewhere; umask 777; shift $#
            export SIMPLE_BACKUP_SUFFIX=.wrong POSIXLY_CORRECT=1
            set -- "$CPZ_MPI" --no-such-option
        fi
        exec "$@""#;
    let slow = ["--threads=1", SLOW_HUNDREDS, "--stats=json"];
    let arguments = [&slow[..], &["--exclude-from=patterns", "-b", "s", "d"]].concat();
    let run = or_skip!(CPZ.job(4, script, &arguments));
    let here = scratch.at("here");
    let outcome = run.current_dir(&here).output();
    outcome.assert_success();
    assert_eq!(outcome.stderr_text(), "");
    assert_shared(&outcome);
    for number in 0..200 {
        let dir = here.join(format!("d/s/{number}"));
        let mode = |name: &str| dir.join(name).metadata().unwrap().permissions().mode();
        assert_eq!(fs::read(dir.join("file.bak")).unwrap(), b"old");
        assert_eq!(fs::read(dir.join("file")).unwrap(), b"new");
        assert_eq!(mode("file") & 0o7777, 0o640);
        assert_eq!(mode("sub") & 0o7777, 0o750);
        assert_eq!(fs::read_dir(dir.join("sub")).unwrap().count(), 0);
    }
    assert_eq!(fs::read_dir(here.join("elsewhere/s")).unwrap().count(), 0);
}

/// The links of files must not have their home at a rank that cannot enter the directory.
#[test]
fn a_rank_that_cannot_take_part_is_a_failure_and_the_others_do_the_work() {
    needs!(root, "unshare");
    let scratch = Scratch::new();
    let here = scratch.at("here");
    build_linked(&Tree::at(&here));
    let arguments = ["-a", "--stats=json", "s", "d"];
    let run = or_skip!(CPZ.job(4, HIDING, &arguments));
    let run = run.env("HIDDEN", scratch.path()).current_dir(&here);
    let outcome = run.output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let problem = "a rank cannot enter the working directory of rank 0, ";
    let reason = "No such file or directory";
    let message = format!("cpz-mpi: {problem}'{}': {reason}", here.display());
    assert_eq!(CPZ.diagnostics(&outcome), [message]);
    let most = stat(&outcome, "most_entries_per_rank");
    assert!(most < stat(&outcome, "entries"), "{outcome}");
    assert_same_tree(here.join("s"), here.join("d"), archived());
}

/// The size of a file that the ranks divide, and a bit.
const DIVIDED: u64 = (36 << 20) + 12_345;
/// The files are divided on a local filesystem, too, because their blocks may not be shared.
const DIVIDING: [&str; 4] = ["-aT", "--threads=1", "--reflink=never", "--stats=json"];

/// Makes a file of which no two blocks are equal.
fn large(tree: &Tree, name: &str, bytes: u64) {
    let blocks = (0..bytes.div_ceil(8)).flat_map(u64::to_le_bytes);
    tree.file(name, blocks.take(bytes as usize).collect::<Vec<_>>())
        .mtime(Duration::new(1_000_000_000, 5));
}

/// Returns the names of incomplete files below a directory.
fn hidden_names(dir: &Path) -> Vec<String> {
    let found = Run::new("find").arg(dir).args(["-name", ".cpz-*"]).output();
    found.stdout_text().lines().map(str::to_owned).collect()
}

#[test]
fn all_ranks_copy_parts_of_large_files() {
    needs!("strace");
    let scratch = Scratch::in_memory();
    let tree = Tree::at(scratch.path());
    tree.dir("s/sub");
    for (name, mode) in [("s/a", 0o640), ("s/b", 0o4755), ("s/sub/c", 0o400)] {
        large(&tree, name, DIVIDED);
        tree.select(name).mode(mode);
    }
    tree.file("s/small", "content");
    tree.select("s/sub")
        .mode(0o700)
        .mtime(Duration::from_secs(7));
    let script = r#"
        exec strace -f -e trace=pwrite64 -o "writes.$RANK" "$@""#;
    let at = |name: &str| scratch.at(name);
    for (source, dest, entries, line) in [
        ("s", "d", 6, "'s/sub/c' -> 'd/sub/c'\n"),
        ("s/a", "d", 1, "'s/a' -> 'd'\n"),
    ] {
        let arguments = [&DIVIDING[..], &["-v", source, dest]].concat();
        let run = or_skip!(CPZ.job(4, script, &arguments));
        let outcome = run.current_dir(&scratch).output();
        outcome.assert_success();
        assert_eq!(stat(&outcome, "entries"), entries);
        assert!(outcome.stdout_text().contains(line), "{outcome}");
        assert_same_tree(at(source), at(dest), archived());
        assert_eq!(hidden_names(scratch.path()), [""; 0]);
        for rank in 0..4 {
            let log = fs::read_to_string(at(&format!("writes.{rank}"))).unwrap();
            assert!(log.contains("pwrite64("), "rank {rank} has written nothing");
        }
        remove_for_sure(at(dest)).unwrap();
    }
}

#[test]
fn holes_of_divided_files_stay_holes_unless_there_must_be_none() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(scratch.path());
    let data = [7; 1 << 20];
    let places = [0, 9, 10, 40].map(|mib| (mib << 20, &data[..]));
    tree.sparse("s/middle", DIVIDED * 2, &places)
        .sparse("s/all", DIVIDED, &[]);
    let at = |name: &str| scratch.at(name);
    for (sparse, blocks) in [("auto", 4 << 11), ("never", DIVIDED * 2 / 512)] {
        let sparse = format!("--sparse={sparse}");
        let arguments = [&DIVIDING[..], &[&sparse, "s", "d"]].concat();
        or_skip!(CPZ.run(4, &arguments, &scratch)).assert_success();
        assert_same_tree(at("s"), at("d"), archived() - Attributes::HOLES);
        let found = fs::metadata(at("d/middle")).unwrap().blocks();
        assert!(
            found >= blocks && found < blocks + 4096,
            "{sparse}: {found}"
        );
        remove_for_sure(at("d")).unwrap();
    }
}

/// The filesystem is too small for one of the two files, and large enough for the other.
#[test]
fn a_large_file_without_room_is_one_failure() {
    let scratch = Scratch::in_memory();
    let mount = or_skip!(LoopMount::new(Fs::Tmpfs, 60));
    let tree = Tree::at(scratch.path());
    large(&tree, "s/huge", DIVIDED * 2);
    let dest = mount.path().join("d");
    let arguments = [&DIVIDING[..], &["s", dest.to_str().unwrap()]].concat();
    let outcome = or_skip!(CPZ.run(4, &arguments, &scratch));
    assert_eq!(outcome.status, Status::Exit(1));
    let problem = format!(
        "cpz-mpi: error writing '{}': No space left on device",
        dest.join("huge").display()
    );
    assert_eq!(CPZ.diagnostics(&outcome), [problem]);
    assert_eq!(stat(&outcome, "failures"), 1);
    assert_eq!(hidden_names(mount.path()), [""; 0]);
}

#[test]
fn a_cancelled_job_leaves_no_part_of_a_divided_file() {
    let scratch = Scratch::in_memory();
    large(&Tree::at(scratch.path()), "s/large", DIVIDED);
    let begun = || !hidden_names(scratch.path()).is_empty();
    let arguments = [&DIVIDING[..], &["--max-rate=1M", "s", "d"]].concat();
    for rank in [0, 3] {
        let job = or_skip!(CPZ.job(4, PIDS, &arguments));
        let mut live = job.current_dir(&scratch).start();
        live.wait_for_effect(begun);
        signal(&scratch, rank, "-TERM");
        let outcome = live.finish();
        assert_ne!(outcome.status, Status::Exit(0), "{outcome}");
        assert!(!scratch.at("d/large").exists());
        assert_eq!(hidden_names(scratch.path()), [""; 0]);
        remove_for_sure(scratch.at("d")).unwrap();
    }
}

#[test]
fn a_file_that_appears_at_the_dest_while_ranks_copy_parts_is_treated_by_the_rules() {
    let scratch = Scratch::in_memory();
    large(&Tree::at(scratch.path()), "s/large", DIVIDED);
    let dest = scratch.at("d/large");
    for (rule, is_kept) in [("--update=none", true), ("--update=all", false)] {
        let arguments = [&DIVIDING[..], &["--max-rate=20M", rule, "s", "d"]].concat();
        let job = or_skip!(CPZ.job(4, PIDS, &arguments));
        let mut live = job.current_dir(&scratch).start();
        live.wait_for_effect(|| !hidden_names(scratch.path()).is_empty());
        fs::write(&dest, "other").unwrap();
        live.finish().assert_success();
        let len = fs::metadata(&dest).unwrap().len();
        assert_eq!(len, if is_kept { 5 } else { DIVIDED });
        assert_eq!(hidden_names(scratch.path()), [""; 0]);
        remove_for_sure(scratch.at("d")).unwrap();
    }
}

/// No link has its home at a rank without the source, and the parts of a large file that it gets go to another one.
#[test]
fn ranks_with_few_descriptors_or_without_the_source_leave_nothing_out() {
    needs!(root, "unshare");
    let build_comb = |tree: &Tree| {
        testkit::tree::comb(tree.path().join("s/comb"), 500, 3);
        build_linked(tree);
    };
    let build_large = |tree: &Tree| large(tree, "s/large", DIVIDED);
    let slow = ["-aT", "--stats=json", SLOW_THOUSANDS];
    let few_descriptors = r#"ulimit -n 64; exec "$@""#;
    for (script, build, options) in [
        (few_descriptors, &build_comb as &dyn Fn(&Tree), &slow[..]),
        (HIDING, &build_linked, &slow),
        (HIDING, &build_large, &DIVIDING),
    ] {
        let scratch = Scratch::new();
        build(&Tree::at(scratch.path()));
        let [source, dest] = ["s", "d"].map(|name| scratch.at(name));
        let operands = [source.to_str().unwrap(), dest.to_str().unwrap()];
        let run = or_skip!(CPZ.job(4, script, &[options, &operands].concat()));
        let outcome = run.env("HIDDEN", &source).current_dir("/").output();
        outcome.assert_success();
        if options == slow {
            assert_shared(&outcome);
        }
        assert_same_tree(source, dest, archived());
    }
}

/// If all links are followed, they are names of what they lead to.
#[test]
fn followed_links_become_names_of_one_copy() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(scratch.path());
    for number in 0..500 {
        tree.file(format!("s/{}/{number}", number % 40), number.to_string());
        let target = format!("../{}/{number}", number % 40);
        tree.symlink(format!("s/{}/link{number}", number % 37), target);
    }
    let options = ["-rL", "--preserve=links", "--threads=2", "--stats=json"];
    let arguments = [&options[..], &[SLOW_HUNDREDS, "s", "d"]].concat();
    let outcome = or_skip!(CPZ.run(4, &arguments, &scratch));
    outcome.assert_success();
    assert_eq!(stat(&outcome, "files"), 500);
    assert_eq!(stat(&outcome, "hard_links"), 500);
    assert_shared(&outcome);
    for number in 0..500 {
        let at = |name: String| scratch.at("d").join(name);
        let file = at(format!("{}/{number}", number % 40)).metadata().unwrap();
        let link = at(format!("{}/link{number}", number % 37));
        assert_eq!(link.symlink_metadata().unwrap().ino(), file.ino());
    }
}

/// Several ranks cannot read one file, but it is one failure.
#[test]
fn a_gitignore_file_that_cannot_be_read_is_reported_once() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(scratch.path());
    // More than git reads.
    tree.sparse("s/.gitignore", (100 << 20) + 1, &[]);
    for number in 0..500 {
        tree.file(format!("s/{number}/file"), "")
            .file(format!("s/{number}/sub/file.o"), "")
            .file(format!("s/{number}/.gitignore"), "*.o\n");
    }
    let options = ["--threads=1", "--stats=json", SLOW_HUNDREDS, "--gitignore"];
    let arguments = [&options[..], &["--exclude=.gitignore", "s", "d"]].concat();
    let outcome = or_skip!(CPZ.run(4, &arguments, &scratch));
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let reason = "File too large";
    let message = format!("cpz-mpi: cannot open 's/.gitignore' for reading: {reason}");
    assert_eq!(CPZ.diagnostics(&outcome), [message]);
    assert_eq!(stat(&outcome, "failures"), 1);
    assert_shared(&outcome);
    let copied = Snapshot::of(scratch.at("d"), Attributes::NAMES);
    assert_eq!(copied.len(), 1 + 500 * 3, "{copied:?}");
}

#[test]
fn signals_for_the_status_end_no_rank() {
    let scratch = Scratch::in_memory();
    for number in 0..20 {
        let name = format!("s/{number}");
        build(&Tree::at(scratch.path()), &name, number, b'a');
    }
    let job = or_skip!(CPZ.job(4, PIDS, &["--threads=1", "-v", "s", "d"]));
    let mut live = job.current_dir(&scratch).start();
    live.wait_for(Stream::Stdout, "' -> '");
    for rank in 0..4 {
        signal(&scratch, rank, "-USR1");
    }
    let outcome = live.finish();
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    let shown = outcome.stderr_text();
    assert_eq!(shown.lines().count(), 1, "{shown}");
    assert!(shown.contains(" copied so far"), "{shown}");
    assert_same_tree(scratch.at("s"), scratch.at("d"), Attributes::DATA);
}
