//! Trees that another process changes while 4 ranks work.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use testkit::run::{Outcome, Status};
use testkit::snapshot::assert_same_tree;
use testkit::tree::{Scratch, remove_for_sure};

use crate::job::{CPZ, Program, RMZ, stat};
use crate::trees::archived;

/// The number of directories in each parent that another process changes. Their names are numbers.
const CHANGED: u64 = 20;
/// The fewest jobs of a test.
const ROUNDS: u64 = 4;
/// The most jobs of a test. On a busy machine rank 0 can complete a job before the others run at all, and then nothing
/// was shared.
const MOST_ROUNDS: u64 = 60;

/// Counts the jobs, the changes of another process, and the entries of all ranks but the busiest.
#[derive(Default)]
struct Proof {
    rounds: u64,
    changes: u64,
    shared: u64,
}

impl Proof {
    /// Runs a job of 4 ranks while another thread [edits](edit) the directories below `root`.
    #[track_caller]
    fn run(
        &mut self,
        program: Program,
        arguments: &str,
        scratch: &Scratch,
        root: &Path,
    ) -> Outcome {
        let is_over = AtomicBool::new(false);
        let outcome = thread::scope(|scope| {
            let changing = scope.spawn(|| {
                let numbers = (0..CHANGED).cycle();
                let during = numbers.take_while(|_| !is_over.load(Ordering::Relaxed));
                let edited = during.filter(|number| edit(&root.join(number.to_string())));
                edited.count()
            });
            let arguments = format!("--threads=2 --stats=json {arguments}");
            let outcome = program.run(4, &arguments, scratch);
            is_over.store(true, Ordering::Relaxed);
            self.changes += changing.join().unwrap() as u64;
            outcome
        });
        // A directory that was gone may come back when its parent is empty, or after the job.
        let is_known = matches!(outcome.status, Status::Exit(0 | 1));
        assert!(is_known, "{outcome}");
        let has_reported = !program.diagnostics(&outcome).is_empty();
        assert_eq!(has_reported, outcome.status == Status::Exit(1), "{outcome}");
        let busiest = stat(&outcome, "most_entries_per_rank");
        self.shared += stat(&outcome, "entries") - busiest;
        self.rounds += 1;
        outcome
    }

    /// Returns `true` until there were enough jobs, and changes while several ranks worked.
    #[track_caller]
    fn needs_another_round(&self) -> bool {
        let is_given = self.changes > 0 && self.shared > 0;
        let is_in_time = self.rounds < MOST_ROUNDS;
        assert!(is_given || is_in_time, "{} {}", self.changes, self.shared);
        !is_given || self.rounds < ROUNDS
    }
}

/// Makes, renames and removes entries of a directory. Returns `false` if the directory is gone.
fn edit(dir: &Path) -> bool {
    let [made, sub, renamed] = ["made", "made/sub", "renamed"].map(|name| dir.join(name));
    if fs::create_dir(&made).is_err() {
        return false;
    }
    let _ = fs::create_dir(&sub);
    let _ = fs::write(sub.join("file"), "made");
    let _ = fs::rename(&made, &renamed);
    let old = dir.join("old");
    let _ = fs::rename(&old, renamed.join("old"));
    thread::yield_now();
    let _ = fs::rename(renamed.join("old"), &old);
    let _ = remove_for_sure(&renamed);
    true
}

/// Makes directories that are [edited](edit), and as many beside them that stay as they are.
fn build_editable(scratch: &Scratch, root: &str) {
    for number in 0..CHANGED {
        let [edited, same] = [format!("{root}/{number}"), format!("{root}/same/{number}")];
        scratch.plant(format!(
            "{{{edited},{same}}}/{{0..29}}/file=content {edited}/old/{{0..29}}=content"
        ));
    }
}

#[test]
fn a_removal_ends_although_another_process_makes_and_renames_entries() {
    let scratch = Scratch::in_memory();
    let tree = scratch.at("t");
    let mut proof = Proof::default();
    while proof.needs_another_round() {
        build_editable(&scratch, "t");
        let outcome = proof.run(RMZ, "t", &scratch, &tree);
        let has_failed = outcome.status == Status::Exit(1);
        assert_eq!(tree.exists(), has_failed, "{outcome}");
        assert!(!tree.join("same").exists());
        RMZ.run(4, "-f t", &scratch).assert_success();
        assert!(!tree.exists());
    }
}

#[test]
fn a_copy_is_complete_except_for_entries_that_another_process_makes_and_renames() {
    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.at(name));
    build_editable(&scratch, "s");
    let mut proof = Proof::default();
    while proof.needs_another_round() {
        proof.run(CPZ, "-a s d", &scratch, &source);
        let same = |root: &Path| root.join("same");
        assert_same_tree(same(&source), same(&dest), archived());
        for number in 0..CHANGED {
            let file = dest.join(format!("{number}/7/file"));
            assert_eq!(fs::read(file).unwrap(), b"content");
        }
        remove_for_sure(&dest).unwrap();
    }
}
