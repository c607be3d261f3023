//! Tests of `cpz-mpi`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use testkit::probe::{Fs, LoopMount, gnu};
use testkit::run::{Outcome, Run, Status, Stream, twin};
use testkit::snapshot::{Attributes, Snapshot, assert_same_tree};
use testkit::tree::{Scratch, Tree, comb, noise, remove_for_sure};
use testkit::{needs, or_skip};

use crate::job::{
    CPZ, FEW_DESCRIPTORS, HIDING, PIDS, SLOW_HUNDREDS, SLOW_THOUSANDS, STATUSES,
    assert_interrupted, assert_shared, printed, signal, stat, statuses, with_immutable,
};
use crate::trees::{archived, build};

/// Copies twins by the same arguments: one by several ranks of ours, one by `expected`. Compares the dests, which the
/// arguments name last, the output and the status.
#[track_caller]
fn compare(
    ranks: usize,
    arguments: &str,
    attributes: Attributes,
    build: impl Fn(&Tree),
    expected: impl FnOnce(&Path) -> Outcome,
) -> Outcome {
    let (ours, theirs) = twin(build);
    let expected = expected(theirs.path());
    let outcome = CPZ.run(ranks, &format!("{SLOW_HUNDREDS} {arguments}"), &ours);
    assert_eq!(outcome.status, expected.status, "{arguments:?} {outcome}");
    let [ours_only, theirs_only] = [(&outcome, &expected), (&expected, &outcome)]
        .map(|(one, other)| Vec::from_iter(&printed(one) - &printed(other)));
    assert_eq!(ours_only, theirs_only, "{arguments:?}");
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
    let dest = arguments.rsplit(' ').next().unwrap();
    assert_same_tree(theirs.at(dest), ours.at(dest), attributes);
    outcome
}

#[test]
fn copies_random_trees_as_cp_does() {
    let cp = or_skip!(gnu("cp"));
    let mut shared = 0;
    for (seed, (ranks, arguments)) in (100..).zip([
        (1, "-a -v s new"),
        (4, "-a -v s new"),
        (4, "-v s/ d"),
        (4, "-d -v s/ d"),
        (4, "-L s/ d"),
        (4, "-l -v s/ d"),
        (4, "--no-preserve=mode --sparse=always s/ d"),
        (4, "--parents -v s/ d"),
    ]) {
        let attributes = match arguments.ends_with("new") {
            true => archived(),
            false => archived() - Attributes::MTIME,
        };
        let build = |tree: &Tree| {
            build(tree, "s", seed, b'a');
            tree.dir("d");
        };
        let outcome = compare(ranks, arguments, attributes, build, |twin| {
            let run = Run::new(&cp).arg("-r").words(arguments);
            run.current_dir(twin).output()
        });
        if ranks > 1 {
            shared += stat(&outcome, "fewest_entries_per_rank");
        }
    }
    assert!(shared > 0, "no rank but one has worked");
}

#[test]
fn updates_an_existing_copy_as_one_rank_does() {
    let mut shared = 0;
    for (seed, arguments) in (200..).zip([
        "-a -v s d",
        "-u -v s d",
        "-n -v s d",
        "--update=none-fail --debug --all-failures s d",
        "-b -S.old -v -p s d",
        "--remove-destination -v -a s d",
        "-a --verify --fsync s d",
        // Which name of a file is the first one, and so makes no line, depends on the order.
        "-u -a s d",
        "-a --resume s d",
    ]) {
        let build = |tree: &Tree| {
            build(tree, "s", seed, b'a');
            build(tree, "d/s", seed, b'b');
        };
        let attributes = archived() - Attributes::MTIME;
        let outcome = compare(4, arguments, attributes, build, |twin| {
            let alone = Run::new(CPZ.path).words(arguments);
            alone.current_dir(twin).output()
        });
        shared += stat(&outcome, "fewest_entries_per_rank");
    }
    assert!(shared > 0, "no rank but one has worked");
}

/// The number of files with three names each.
const LINKED: usize = 1_000;

/// Returns the names of a file in different directories, and that of a link to it.
fn linked_names(number: usize) -> [String; 4] {
    let dirs = 60;
    [0, 1, 2, 3].map(|index| {
        let dir = (number * 7 + index * 23) % dirs;
        format!("s/{}/{dir}/{number}.{index}", dir % 5)
    })
}

/// Makes files with three names each, and links to them.
fn build_linked(tree: &Tree) {
    for number in 0..LINKED {
        let [first, second, third, link] = linked_names(number);
        tree.file(&first, number.to_string())
            .hardlink(&first, second)
            .hardlink(&first, third)
            .symlink(link, Path::new("../../..").join(first));
    }
}

/// If an operand has other names, the leader keeps the links of all files, because it alone copies operands. If all links
/// are followed, they are names of what they lead to.
#[test]
fn all_names_of_a_file_become_names_of_one_copy() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    build_linked(&tree);
    tree.hardlink("s/0/0/0.0", "operand");
    for (arguments, hard_links) in [
        ("-a s d", 2 * LINKED),
        ("-a operand s d", 2 * LINKED + 1),
        ("-rL --preserve=links s d", 3 * LINKED),
    ] {
        tree.dir("d");
        let arguments = format!("{SLOW_THOUSANDS} --threads=2 {arguments}");
        let outcome = CPZ.run(4, &arguments, &scratch);
        outcome.assert_success();
        let linked = ["files", "hard_links"].map(|key| stat(&outcome, key) as usize);
        assert_eq!(linked, [LINKED, hard_links], "{arguments}");
        assert_shared(&outcome);
        for number in 0..LINKED {
            let inode = |name: &String| scratch.at("d").join(name).metadata().unwrap().ino();
            let inodes: BTreeSet<_> = linked_names(number).iter().map(inode).collect();
            assert_eq!(inodes.len(), 1, "{arguments}: {number}");
        }
        if hard_links == 2 * LINKED {
            assert_same_tree(scratch.at("s"), scratch.at("d/s"), archived());
        }
        remove_for_sure(scratch.at("d")).unwrap();
    }
}

#[test]
fn a_failure_is_printed_once_and_is_the_status_of_every_rank() {
    needs!(root, "chattr");
    let blocked = ["d/s/3", "d/s/17", "d/s/30"];
    let scratch = Scratch::with("s/{0..399}/{sub/,}file= d/s/{3,17,30}/");
    let run = CPZ.job(4, STATUSES, &format!("{SLOW_HUNDREDS} s d"));
    let run = run.current_dir(&scratch);
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
    assert_eq!(statuses(&scratch), ["1"; 4]);
}

/// With 16 KiB each, some of 2,000 files fit into 2 MiB.
#[test]
fn a_full_disk_ends_the_job_and_the_same_command_with_resume_completes_it() {
    let scratch = Scratch::in_memory();
    let mount = or_skip!(LoopMount::new(Fs::Tmpfs, 2));
    let tree = Tree::at(&scratch);
    for number in 0..2_000 {
        tree.file(format!("s/{}/{number}", number % 20), vec![7; 16 << 10]);
    }
    let dest = mount.path().join("d");
    let copy = format!("-aT --resume s {}", dest.display());
    let outcome = CPZ.run(4, &copy, &scratch);
    outcome.assert_status(1);
    let text = outcome.stderr_text();
    let ends = "cpz-mpi: 64 failures in a row, so the job ends: No space left on device";
    assert!(text.lines().any(|line| line == ends), "{outcome}");
    let interrupted = text.matches("cpz-mpi: interrupted: ").count();
    assert_eq!(interrupted, 1, "{outcome}");
    let failures = text.matches(": No space left on device").count();
    assert!((64..1_000).contains(&failures), "{failures} of 2,000");
    let larger = Run::new("mount").args(["-o", "remount,size=100M"]);
    larger.arg(mount.path()).output().assert_success();
    CPZ.run(4, &copy, &scratch).assert_success();
    assert_same_tree(scratch.at("s"), dest, archived());
}

/// Each of 300 directories is immutable.
#[test]
fn equal_failures_are_counted_after_the_first_hundred_unless_all_are_wanted() {
    needs!(root, "chattr");
    let scratch = Scratch::with("s/{0..299}/file= d/{0..299}/");
    let dirs: Vec<_> = (0..300).map(|number| format!("d/{number}")).collect();
    let [few, all] = with_immutable(&scratch, &dirs, || {
        ["-T s d", "-T --all-failures s d"]
            .map(|arguments| CPZ.diagnostics(&CPZ.run(1, arguments, &scratch)))
    });
    assert_eq!(few.len(), 101);
    let counted = "cpz-mpi: 200 more failures: Operation not permitted";
    assert!(few.iter().any(|line| line == counted), "{few:?}");
    assert_eq!(all.len(), 300);
}

/// Without a limit, the copy would be complete long before.
#[test]
fn a_rate_of_bytes_limits_all_ranks_until_a_signal_cancels_them() {
    let scratch = Scratch::with("s/{0..499}=~100000");
    let copied = || fs::read_dir(scratch.at("d")).map_or(0, Iterator::count);
    let job = CPZ.job(4, PIDS, "--max-rate=1K s d");
    let mut live = job.current_dir(&scratch).start();
    live.wait_for_effect(|| copied() > 0);
    signal(&scratch, 1, "-TERM");
    assert_interrupted(CPZ, &live.finish());
    assert!(copied() < 500);
}

#[test]
fn a_dry_run_names_what_would_be_copied_and_copies_nothing() {
    let scratch = Scratch::in_memory();
    build(&Tree::at(&scratch), "s", 3, b'a');
    let outcome = CPZ.run(4, "-a --dry-run s d", &scratch);
    let text = outcome.assert_success().stdout_text();
    assert!(text.contains("would copy 's/0' -> 'd/0'\n"), "{outcome}");
    assert!(!scratch.at("d").exists());
}

/// Rank 0 alone reads its arguments, files and variables. The others have other working directories, umasks and
/// variables.
#[test]
fn all_ranks_work_by_the_command_line_of_rank_0() {
    let scratch = Scratch::in_memory();
    let here = scratch.at("here");
    let tree = Tree::at(&here);
    tree.plant("s/{0..199}/sub/file.o= d/s/{0..199}/file=old elsewhere/s/")
        .file("patterns", "*.o\n");
    for number in 0..200 {
        tree.plant(format!("s/{number}/file=new %666"));
    }
    let script = r#"
        umask 027
        export SIMPLE_BACKUP_SUFFIX=.bak
        if [ "$RANK" != 0 ]; then
            cd ../here/elsewhere; umask 777; shift $#
            export SIMPLE_BACKUP_SUFFIX=.wrong POSIXLY_CORRECT=1
            set -- "$CPZ_MPI" --no-such-option
        fi
        exec "$@""#;
    let arguments = format!("{SLOW_HUNDREDS} --exclude-from=patterns -b s d");
    let run = CPZ.job(4, script, &arguments);
    let outcome = run.current_dir(&here).output();
    outcome.assert_success();
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
    let run = CPZ.job(4, HIDING, "-a --stats=json s d");
    let run = run.env("HIDDEN", scratch.path()).current_dir(&here);
    let outcome = run.output();
    outcome.assert_status(1);
    let problem = "a rank cannot enter the working directory of rank 0, ";
    let reason = "No such file or directory";
    let message = format!("cpz-mpi: {problem}'{}': {reason}", here.display());
    assert_eq!(CPZ.diagnostics(&outcome), [message]);
    assert_shared(&outcome);
    assert_same_tree(here.join("s"), here.join("d"), archived());
}

/// The size of a file that the ranks divide, and a bit.
const DIVIDED: usize = (36 << 20) + 12_345;
/// The files are divided on a local filesystem, too, because their blocks may not be shared.
const DIVIDING: &str = "-aT --threads=1 --reflink=never --stats=json";

/// Makes a file that the ranks divide.
fn large<'a>(tree: &'a Tree, name: &str) -> &'a Tree {
    let time = Duration::new(1_000_000_000, 5);
    tree.file(name, noise(DIVIDED)).mtime(time)
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
    let tree = Tree::at(&scratch);
    large(&tree, "s/a").mode(0o640);
    large(&tree, "s/b").mode(0o4755);
    large(&tree, "s/sub/c").mode(0o400);
    tree.plant("s/small=content s/sub %700 @7");
    let script = r#"
        exec strace -f -e trace=pwrite64 -o "writes.$RANK" "$@""#;
    let at = |name: &str| scratch.at(name);
    for (source, entries, line) in [
        ("s", 6, "'s/sub/c' -> 'd/sub/c'\n"),
        ("s/a", 1, "'s/a' -> 'd'\n"),
    ] {
        let run = CPZ.job(4, script, &format!("{DIVIDING} -v {source} d"));
        let outcome = run.current_dir(&scratch).output();
        outcome.assert_success();
        assert_eq!(stat(&outcome, "entries"), entries);
        assert!(outcome.stdout_text().contains(line), "{outcome}");
        assert_same_tree(at(source), at("d"), archived());
        assert_eq!(hidden_names(scratch.path()), [""; 0]);
        for rank in 0..4 {
            let log = fs::read_to_string(at(&format!("writes.{rank}"))).unwrap();
            assert!(log.contains("pwrite64("), "rank {rank} has written nothing");
        }
        remove_for_sure(at("d")).unwrap();
    }
}

#[test]
fn holes_of_divided_files_stay_holes_unless_there_must_be_none() {
    let scratch = Scratch::in_memory();
    let bytes = DIVIDED as u64;
    let data = [7; 1 << 20];
    let places = [0, 9, 10, 40].map(|mib| (mib << 20, &data[..]));
    Tree::at(&scratch)
        .sparse("s/middle", bytes * 2, &places)
        .sparse("s/all", bytes, &[]);
    let at = |name: &str| scratch.at(name);
    for (sparse, blocks) in [("auto", 4 << 11), ("never", bytes * 2 / 512)] {
        let copy = format!("{DIVIDING} --sparse={sparse} s d");
        CPZ.run(4, &copy, &scratch).assert_success();
        assert_same_tree(at("s"), at("d"), archived() - Attributes::HOLES);
        let found = fs::metadata(at("d/middle")).unwrap().blocks();
        let expected = blocks..blocks + 4096;
        assert!(expected.contains(&found), "{sparse}: {found}");
        remove_for_sure(at("d")).unwrap();
    }
}

/// The filesystem is too small for the file.
#[test]
fn a_large_file_without_room_is_one_failure() {
    let scratch = Scratch::in_memory();
    let mount = or_skip!(LoopMount::new(Fs::Tmpfs, 30));
    large(&Tree::at(&scratch), "s/huge");
    let dest = mount.path().join("d");
    let arguments = format!("{DIVIDING} s {}", dest.display());
    let outcome = CPZ.run(4, &arguments, &scratch);
    outcome.assert_status(1);
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
    large(&Tree::at(&scratch), "s/large");
    let begun = || !hidden_names(scratch.path()).is_empty();
    for rank in [0, 3] {
        let job = CPZ.job(4, PIDS, &format!("{DIVIDING} --max-rate=1M s d"));
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

/// No link has its home at a rank without the source, and the parts of a large file that it gets go to another one.
#[test]
fn ranks_with_few_descriptors_or_without_the_source_leave_nothing_out() {
    needs!(root, "unshare");
    let build_comb = |tree: &Tree| {
        comb(tree.path().join("s/comb"), 500, 3);
        build_linked(tree);
    };
    let build_large = |tree: &Tree| _ = large(tree, "s/large");
    let slow = format!("-aT {SLOW_THOUSANDS}");
    for (script, build, options) in [
        (FEW_DESCRIPTORS, &build_comb as &dyn Fn(&Tree), &*slow),
        (HIDING, &build_linked, &slow),
        (HIDING, &build_large, DIVIDING),
    ] {
        let scratch = Scratch::new();
        build(&Tree::at(&scratch));
        let [source, dest] = ["s", "d"].map(|name| scratch.at(name));
        let arguments = format!("{options} {} {}", source.display(), dest.display());
        let run = CPZ.job(4, script, &arguments);
        let outcome = run.env("HIDDEN", &source).current_dir("/").output();
        outcome.assert_success();
        if options == slow {
            assert_shared(&outcome);
        }
        assert_same_tree(source, dest, archived());
    }
}

/// Several ranks cannot read one file, but it is one failure.
#[test]
fn a_gitignore_file_that_cannot_be_read_is_reported_once() {
    let scratch = Scratch::in_memory();
    // More than git reads.
    Tree::at(&scratch)
        .plant("s/{0..499}/file= s/{0..499}/sub/file.o= s/{0..499}/.gitignore=*.o")
        .sparse("s/.gitignore", (100 << 20) + 1, &[]);
    let arguments = format!("{SLOW_HUNDREDS} --gitignore --exclude=.gitignore s d");
    let outcome = CPZ.run(4, &arguments, &scratch);
    outcome.assert_status(1);
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
        build(&Tree::at(&scratch), &format!("s/{number}"), number, b'a');
    }
    let job = CPZ.job(4, PIDS, &format!("{SLOW_THOUSANDS} -v s d"));
    let mut live = job.current_dir(&scratch).start();
    live.wait_for(Stream::Stdout, "' -> '");
    for rank in 0..4 {
        signal(&scratch, rank, "-USR1");
    }
    let outcome = live.finish();
    outcome.assert_status(0);
    let shown = outcome.stderr_text();
    assert_eq!(shown.lines().count(), 1, "{shown}");
    assert!(shown.contains(" copied so far"), "{shown}");
    assert_same_tree(scratch.at("s"), scratch.at("d"), Attributes::DATA);
}
