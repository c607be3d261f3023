//! Trees that another process changes while 4 ranks work.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use testkit::or_skip;
use testkit::probe::Skip;
use testkit::run::{Outcome, Status};
use testkit::snapshot::{Attributes, Snapshot, assert_same_tree};
use testkit::tree::{Scratch, Tree, remove_for_sure};

use crate::cpz;
use crate::job::{CPZ, Program, RMZ, build, stat};

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
    /// Runs a job of 4 ranks while another thread calls `change` with one number after the other. It returns
    /// `true` if it has changed something.
    #[track_caller]
    fn run(
        &mut self,
        program: Program,
        arguments: &[&str],
        scratch: &Scratch,
        change: impl Fn(u64) -> bool + Sync,
    ) -> Result<Outcome, Skip> {
        let is_over = AtomicBool::new(false);
        let outcome = thread::scope(|scope| {
            let changing = scope.spawn(|| {
                let numbers = (0..CHANGED).cycle();
                let during = numbers.take_while(|_| !is_over.load(Ordering::Relaxed));
                during.filter(|&number| change(number)).count()
            });
            let outcome = program.run(4, arguments, scratch);
            is_over.store(true, Ordering::Relaxed);
            self.changes += changing.join().unwrap() as u64;
            outcome
        })?;
        // A directory that was gone may come back when its parent is empty, or after the job.
        let is_known = matches!(outcome.status, Status::Exit(0 | 1));
        assert!(is_known, "{outcome}");
        let has_reported = !program.diagnostics(&outcome).is_empty();
        assert_eq!(has_reported, outcome.status == Status::Exit(1), "{outcome}");
        let busiest = stat(&outcome, "most_entries_per_rank");
        self.shared += stat(&outcome, "entries") - busiest;
        self.rounds += 1;
        Ok(outcome)
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

/// Replaces a directory by a link to `outside`, and puts it back.
fn swap(dir: &Path, outside: &Path) -> bool {
    let aside = outside.with_file_name("aside");
    if fs::rename(dir, &aside).is_err() {
        return false;
    }
    let _ = symlink(outside, dir);
    thread::yield_now();
    let _ = fs::remove_file(dir);
    // If the job has made the directory again, the old one is not needed.
    if fs::rename(&aside, dir).is_err() {
        let _ = remove_for_sure(&aside);
    }
    true
}

/// Runs jobs while links to a directory outside replace directories in `parents`, which `build` fills, and asserts
/// that nothing there changes.
fn assert_that_links_lead_nowhere(
    program: Program,
    arguments: &[&str],
    parents: &[&str],
    build: impl Fn(&Tree, u64),
) -> Result<(), Skip> {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(scratch.path());
    let outside = scratch.at("outside");
    Tree::at(&outside).file("file", "precious").dir("sub");
    let unread = Attributes::ALL - Attributes::ATIME;
    let before = Snapshot::of(&outside, unread);
    let parents: Vec<PathBuf> = parents.iter().map(|it| scratch.at(it)).collect();
    let mut proof = Proof::default();
    while proof.needs_another_round() {
        build(&tree, proof.rounds);
        let swap_all = |number: u64| {
            let dirs = parents.iter().map(|parent| parent.join(number.to_string()));
            dirs.filter(|dir| swap(dir, &outside)).count() > 0
        };
        proof.run(program, arguments, &scratch, swap_all)?;
        assert_eq!(before.diff(&Snapshot::of(&outside, unread)), "");
        for parent in &parents {
            let _ = remove_for_sure(parent);
        }
    }
    Ok(())
}

#[test]
fn nothing_outside_is_removed_through_links_that_replace_directories() {
    let arguments = ["--threads=2", "--stats=json", "t"];
    let raced = assert_that_links_lead_nowhere(RMZ, &arguments, &["t"], |tree, round| {
        for number in 0..CHANGED {
            build(&tree.path().join(format!("t/{number}")), number + round);
        }
    });
    or_skip!(raced);
}

#[test]
fn nothing_outside_is_written_through_links_that_replace_directories() {
    let arguments = ["-a", "--threads=2", "--stats=json", "s", "d"];
    let raced = assert_that_links_lead_nowhere(CPZ, &arguments, &["s", "d/s"], |tree, round| {
        for number in 0..CHANGED {
            cpz::build(tree, &format!("s/{number}"), number + round, b'a');
            tree.dir(format!("d/s/{number}"));
        }
    });
    or_skip!(raced);
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
fn build_editable(tree: &Tree, root: &str) {
    for number in 0..CHANGED {
        for file in 0..30 {
            tree.file(format!("{root}/{number}/{file}/file"), "content")
                .file(format!("{root}/{number}/old/{file}"), "content")
                .file(format!("{root}/same/{number}/{file}/file"), "content");
        }
    }
}

#[test]
fn a_removal_ends_although_another_process_makes_and_renames_entries() {
    let scratch = Scratch::in_memory();
    let tree = scratch.at("t");
    let mut proof = Proof::default();
    while proof.needs_another_round() {
        build_editable(&Tree::at(scratch.path()), "t");
        let arguments = ["--threads=2", "--stats=json", "t"];
        let edit = |number: u64| edit(&tree.join(number.to_string()));
        let outcome = or_skip!(proof.run(RMZ, &arguments, &scratch, edit));
        assert_eq!(
            tree.exists(),
            outcome.status == Status::Exit(1),
            "{outcome}"
        );
        assert!(!tree.join("same").exists());
        let again = or_skip!(RMZ.run(4, &["-f", "t"], &scratch));
        again.assert_success();
        assert!(!tree.exists());
    }
}

#[test]
fn a_copy_is_complete_except_for_entries_that_another_process_makes_and_renames() {
    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.at(name));
    build_editable(&Tree::at(scratch.path()), "s");
    let mut proof = Proof::default();
    while proof.needs_another_round() {
        let arguments = ["-a", "--threads=2", "--stats=json", "s", "d"];
        let edit = |number: u64| edit(&source.join(number.to_string()));
        or_skip!(proof.run(CPZ, &arguments, &scratch, edit));
        let same = |root: &Path| root.join("same");
        assert_same_tree(same(&source), same(&dest), cpz::archived());
        for number in 0..CHANGED {
            let file = dest.join(format!("{number}/7/file"));
            assert_eq!(fs::read(file).unwrap(), b"content");
        }
        remove_for_sure(&dest).unwrap();
    }
}
