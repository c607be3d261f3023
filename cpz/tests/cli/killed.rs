//! SIGKILL at any system call, and then the same command again.

use std::{fs, path::Path, time::Duration};

use testkit::{
    needs, or_skip,
    run::{Call, Run, Status},
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, remove_for_sure},
};

use crate::support::{CPZ, cpz, succeeds};

/// Larger than a file that is copied by a task of its own.
const LARGE_BYTES: usize = 5 << 20;

/// Builds a source with every kind of entry, and files that are sparse, large, empty and linked.
fn build(dir: &Path) {
    let tree = Tree::at(dir);
    tree.plant("s/file=1 %640 s/empty= s/fifo<fifo> s/link->file s/none/")
        .file("s/d/e/f/file", vec![2; 100_000])
        .plant("s/d/e/name==s/file")
        .sparse("s/d/sparse", LARGE_BYTES as u64, &[(3 << 20, b"3")])
        .file("s/d/large", vec![4; LARGE_BYTES]);
    for name in ["s/file", "s/d/large", "s/d/e/f", "s/d", "s/none"] {
        tree.select(name).mtime(Duration::from_secs(1_000_000_000));
    }
}

/// Builds a source with large files and directories, some of which the owner may not write to.
fn build_large(dir: &Path) {
    let tree = Tree::at(dir);
    for name in ["s/a", "s/d/b", "s/d/e/c", "s/d/e/d"] {
        tree.file(name, vec![1; LARGE_BYTES]);
    }
    tree.plant("s/d/e %555 s/d %550");
}

/// Kills cpz at `rounds` calls, which are spread over the whole run, and runs it again each time, with the
/// second of the `options` added. Asserts that the copy is then equal to an undisturbed one in `attributes`.
#[track_caller]
fn is_completed_by_a_second_run(
    build: impl Fn(&Path),
    options: [&str; 2],
    threads: usize,
    rounds: usize,
    attributes: Attributes,
) {
    let [option, option_then] = options;
    let scratch = Scratch::in_memory();
    build(scratch.path());
    let threads_arg = format!("--threads={threads}");
    let args = [option, "-T", &threads_arg, "s"];
    let run = cpz(&scratch, args);
    let calls = or_skip!(run.clone().arg("undisturbed").calls());

    let snapshot = |name| Snapshot::of(scratch.at(name), attributes);
    let (source, undisturbed) = (snapshot("s"), snapshot("undisturbed"));
    let mut killed = 0;
    for round in 0..rounds {
        let call = &calls[calls.len() * round / rounds];
        let outcome = run
            .clone()
            .arg("d")
            .with_fault(call, "signal=KILL")
            .output();
        killed += usize::from(outcome.status == Status::Signal(9));
        succeeds(
            &scratch,
            [option, option_then, "-T", &threads_arg, "s", "d"],
        );
        let difference = undisturbed.diff(&snapshot("d"));
        assert!(
            difference.is_empty(),
            "killed at {}\n{difference}",
            call.shown
        );
        remove_for_sure(scratch.at("d")).unwrap();
    }
    // With several threads, the numbers of calls depend on timing, so some rounds end before the call is reached.
    let least = if threads == 1 { rounds / 2 } else { 1 };
    assert!(killed >= least, "killed in {killed} of {rounds} rounds");
    assert_eq!(source, snapshot("s"));
}

#[test]
#[ignore = "slow"]
fn an_archive_that_was_killed_is_completed_by_the_same_command() {
    let kept = Attributes::ALL - Attributes::ATIME;
    is_completed_by_a_second_run(build, ["-a", "-a"], 1, 70, kept);
    is_completed_by_a_second_run(build, ["-a", "-a"], 4, 20, kept);
}

#[test]
#[ignore = "slow"]
fn a_copy_that_was_killed_is_completed_by_the_same_command() {
    is_completed_by_a_second_run(build, ["-r", "-r"], 1, 40, Attributes::CONTENT);
    is_completed_by_a_second_run(build, ["-r", "-r"], 4, 20, Attributes::CONTENT);
}

#[test]
#[ignore = "slow"]
fn large_files_that_were_killed_are_not_taken_for_complete() {
    needs!(root);
    // As with cp, the second run leaves the modes of directories that exist.
    let kept = Attributes::CONTENT - Attributes::MODE;
    is_completed_by_a_second_run(build_large, ["-r", "-u"], 1, 40, kept);
    is_completed_by_a_second_run(build_large, ["-r", "-u"], 4, 20, kept);
}

#[test]
#[ignore = "slow"]
fn an_archive_that_was_killed_is_resumed() {
    let kept = Attributes::ALL - Attributes::ATIME;
    is_completed_by_a_second_run(build, ["-a", "--resume"], 1, 70, kept);
    is_completed_by_a_second_run(build, ["-a", "--resume"], 4, 20, kept);
}

#[test]
#[ignore = "slow"]
fn only_one_large_file_that_existed_is_incomplete() {
    const NAMES: [&str; 6] = ["a", "d/b", "d/e/c", "d/e/d", "f", "g"];
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    let new = vec![1; LARGE_BYTES];
    for name in NAMES {
        tree.file(format!("s/{name}"), &new);
    }
    let run = Run::new(CPZ).words("-T --threads=4 s d");
    let run = run.current_dir(&scratch);
    or_skip!(run.calls());
    let rounds = 12;
    let mut incomplete = 0;
    for round in 0..rounds {
        for name in NAMES {
            tree.plant(format!("d/{name}=old"));
        }
        let call = Call {
            name: "copy_file_range".to_owned(),
            // Each thread has its own numbers.
            number: 1 + round % 3,
            shown: String::new(),
        };
        run.with_fault(&call, "signal=KILL").output();
        let found = NAMES.map(|name| fs::read(scratch.at("d").join(name)).unwrap());
        let is_incomplete = |content: &&Vec<u8>| ***content != *b"old" && **content != new;
        let number = found.iter().filter(is_incomplete).count();
        assert!(number <= 1, "{number} files are incomplete");
        incomplete += number;
    }
    assert!(
        incomplete > rounds / 2,
        "no file was incomplete in most rounds"
    );
}
