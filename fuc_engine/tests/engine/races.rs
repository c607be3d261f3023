//! Trees that somebody else changes meanwhile. Nothing outside of them is ever touched or read, nothing
//! hangs, and what stays behind is reported.
//!
//! What is outside holds [`MARKER`], so that it is known wherever it turns up.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fuc_engine::{Cause, CopyOp, Dereference, Dest, Errno, Error, Event, Observer, Operation};
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use testkit::snapshot::{Attributes, Snapshot};
use testkit::tree::{Scratch, Tree, chain, comb, remove_for_sure, wide};

use crate::child;
use crate::kit::{
    Told, again_and_again, all_but_atime, assert_unchanged, copy, copy_options, copy_with,
    remove_options, remove_with, threads,
};

const TIME: Duration = Duration::from_secs(3);
const MARKER: &str = "this is outside";
const DIRS: usize = 40;

/// Calls `disturb` again and again on another thread while `work` runs.
fn during<T>(disturb: impl Fn() + Sync + Send, work: impl FnOnce() -> T) -> T {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                disturb();
            }
        });
        // Even if `work` panics.
        let _stop = Stop(&stop);
        work()
    })
}

/// A directory full of things that must stay as they are.
fn outside(scratch: &Scratch) -> PathBuf {
    let tree = Tree::at(scratch.path().join("outside"));
    for number in 0..4 {
        tree.file(format!("{number}/marked"), MARKER)
            .file(format!("marked{number}"), MARKER);
    }
    tree.path().to_owned()
}

/// Directories in `root`, each with a file and a sub-directory.
fn build(root: &Path) {
    let tree = Tree::at(root);
    for number in 0..DIRS {
        tree.file(format!("{number}/file"), "inside")
            .file(format!("{number}/sub/file"), "inside");
    }
}

fn exchange(a: &Path, b: &Path) {
    // Either may be gone by now.
    let _ = renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE);
}

/// Exchanges each directory in `root` with a link to `outside`, and back.
fn swap_all(root: &Path, decoy: &Path, outside: &Path) {
    for number in 0..DIRS {
        let dir = root.join(number.to_string());
        // The one before may have been removed in the place of the directory.
        let _ = symlink(outside, decoy);
        exchange(&dir, decoy);
        thread::yield_now();
        exchange(&dir, decoy);
    }
}

/// No file in `tree` has the marker in it. Links and what is gone meanwhile are left aside.
fn assert_nothing_from_outside(tree: &Path) {
    let mut dirs = vec![tree.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                dirs.push(entry.path());
            } else if kind.is_file() {
                let content = fs::read(entry.path()).unwrap();
                assert_ne!(content, MARKER.as_bytes(), "{:?}", entry.path());
            }
        }
    }
}

fn clean(paths: &[&Path]) {
    for path in paths {
        if path.symlink_metadata().is_ok() {
            remove_for_sure(path).unwrap();
        }
    }
}

#[test]
fn a_directory_swapped_for_a_link_while_a_tree_is_removed_leads_nowhere() {
    let scratch = Scratch::in_memory();
    let outside = outside(&scratch);
    let before = Snapshot::of(&outside, all_but_atime());
    let [root, decoy] = ["t", "decoy"].map(|name| scratch.path().join(name));
    let mut number = 0;
    again_and_again(TIME, || {
        build(&root);
        number += 1;
        let options = remove_options(|options| options.threads = threads(number % 3 + 1));
        during(
            || swap_all(&root, &decoy, &outside),
            || remove_with(options, [&root]),
        );
        assert_unchanged(&before, &outside, all_but_atime());
        clean(&[&root, &decoy]);
    });
}

#[test]
fn a_source_directory_swapped_for_a_link_is_not_read_through_it() {
    let scratch = Scratch::in_memory();
    let outside = outside(&scratch);
    let before = Snapshot::of(&outside, all_but_atime());
    let [root, dest, decoy] = ["s", "d", "decoy"].map(|name| scratch.path().join(name));
    build(&root);
    again_and_again(TIME, || {
        during(|| swap_all(&root, &decoy, &outside), || copy(&root, &dest));
        assert_unchanged(&before, &outside, all_but_atime());
        assert_nothing_from_outside(&dest);
        clean(&[&dest]);
    });
}

#[test]
fn a_dest_directory_swapped_for_a_link_is_not_written_through_it() {
    let scratch = Scratch::in_memory();
    let outside = outside(&scratch);
    let before = Snapshot::of(&outside, all_but_atime());
    let [root, dest, decoy] = ["s", "d", "decoy"].map(|name| scratch.path().join(name));
    build(&root);
    let mut number = 0;
    again_and_again(TIME, || {
        // Sometimes into directories that are there already.
        number += 1;
        if number % 2 == 0 {
            build(&dest);
        }
        during(|| swap_all(&dest, &decoy, &outside), || copy(&root, &dest));
        assert_unchanged(&before, &outside, all_but_atime());
        clean(&[&dest, &decoy]);
    });
}

/// A directory in the middle of a chain and one outside change places, so that `..` from below the first
/// leads outside. Few descriptors make the engine go that way.
fn moved_while(run: impl Fn(&Path, &Path)) {
    let scratch = Scratch::in_memory();
    let outside = outside(&scratch);
    Tree::at(&outside).dir("slot/d/d/d");
    let [root, dest] = ["t", "d"].map(|name| scratch.path().join(name));
    let middle: PathBuf = [root.as_path()]
        .into_iter()
        .chain([Path::new("d"); 30])
        .collect();
    let slot = outside.join("slot");
    let guarded = |tree: &Path| {
        let names = fs::read_dir(tree).unwrap().map(|e| e.unwrap().file_name());
        let mut names: Vec<_> = names.filter(|name| name != "slot").collect();
        names.sort();
        names
    };
    let before = guarded(&outside);
    again_and_again(TIME, || {
        chain(&root, 60);
        for number in 0..30 {
            comb(root.join(format!("comb{number}")), 5, 1);
        }
        during(|| exchange(&middle, &slot), || run(&root, &dest));
        assert_eq!(guarded(&outside), before);
        for number in 0..4 {
            let marked = outside.join(format!("{number}/marked"));
            assert_eq!(fs::read_to_string(marked).unwrap(), MARKER);
        }
        if dest.exists() {
            assert_nothing_from_outside(&dest);
        }
        clean(&[&root, &dest, &slot]);
        Tree::at(&slot).dir("d/d/d");
    });
}

#[test]
fn the_way_up_from_a_directory_moved_elsewhere_is_not_taken_by_a_removal() {
    moved_while(|root, _| {
        child::remove(root).nofile_limit(20).run();
    });
}

#[test]
fn the_way_up_from_a_directory_moved_elsewhere_is_not_taken_by_a_copy() {
    moved_while(|root, dest| {
        child::copy(root, dest).nofile_limit(20).run();
    });
}

#[test]
fn files_that_appear_in_a_directory_end_with_it_or_are_reported_once() {
    let scratch = Scratch::in_memory();
    let root = scratch.path().join("t");
    let busy = root.join("a/busy");
    let number = std::sync::atomic::AtomicU64::new(0);
    again_and_again(TIME, || {
        wide(&busy, 200);
        build(&root);
        let told = during(
            || {
                // Fails once the directory is gone.
                let name = number.fetch_add(1, Ordering::Relaxed) % 1000;
                let _ = fs::write(busy.join(name.to_string()), "");
            },
            || remove_with(remove_options(|_| ()), [&root]),
        );
        match &told.failures[..] {
            [] => assert!(!root.exists()),
            [failure] => {
                let notempty = Cause::Failed(Operation::Remove, Errno::NOTEMPTY);
                assert_eq!((failure.cause, &failure.path), (notempty, &busy));
                // t, a, and what is in there
                let left = Snapshot::of(&root, Attributes::NAMES);
                assert!(left.kind("a/busy").is_some());
                assert!(left.kind("0").is_none());
            }
            more => panic!("{more:?}"),
        }
        assert_eq!(told.counts.2, told.failures.len() as u64);
        clean(&[&root]);
    });
}

/// Removes one tree twice at once; returns what both told.
fn removed_twice(root: &Path, ignore_missing: bool) -> [Told; 2] {
    build(root);
    comb(root.join("comb"), 20, 3);
    wide(root.join("wide"), 2_000);
    let remove = || {
        let options = remove_options(|options| {
            options.ignore_missing = ignore_missing;
            options.threads = threads(2);
        });
        remove_with(options, [root])
    };
    thread::scope(|scope| {
        let other = scope.spawn(remove);
        [remove(), other.join().unwrap()]
    })
}

#[test]
fn two_removals_at_once_that_ignore_what_is_missing_leave_nothing_and_do_not_fail() {
    let scratch = Scratch::in_memory();
    let root = scratch.path().join("t");
    again_and_again(TIME, || {
        let told = removed_twice(&root, true);
        assert_eq!(told.each_ref().map(|told| &told.failures[..]), [&[]; 2]);
        let left = root
            .exists()
            .then(|| Snapshot::of(&root, Attributes::NAMES));
        assert_eq!(left, None, "left behind by both, without a word");
        // Each name was removed by one of the two.
        let entries = 1 + DIRS * 4 + 1 + 20 * (1 + 2 * 4) + 1 + 2_000;
        assert_eq!(told[0].counts.0 + told[1].counts.0, entries as u64);
    });
}

#[test]
fn two_removals_at_once_end_and_report_only_what_is_missing() {
    let scratch = Scratch::in_memory();
    let root = scratch.path().join("t");
    again_and_again(TIME, || {
        let told = removed_twice(&root, false);
        for failure in told.iter().flat_map(|told| &told.failures) {
            let Cause::Failed(operation, errno) = failure.cause else {
                panic!("{failure:?}");
            };
            // Not empty: the other one has removed everything else, but left what it failed at.
            assert_eq!(operation, Operation::Remove, "{failure:?}");
            assert!(
                matches!(errno, Errno::NOENT | Errno::NOTEMPTY),
                "{failure:?}"
            );
        }
        clean(&[&root]);
    });
}

#[test]
fn files_that_become_fifos_and_links_neither_block_a_copy_nor_lead_it_outside() {
    let scratch = Scratch::in_memory();
    let outside = outside(&scratch);
    let before = Snapshot::of(&outside, all_but_atime());
    let [root, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    let tree = Tree::at(&root);
    for number in 0..DIRS {
        tree.file(format!("file{number}"), "inside")
            .fifo(format!("pipe{number}"))
            .symlink(format!("link{number}"), outside.join("marked0"));
    }
    again_and_again(TIME, || {
        // In a process of its own, which is killed if it blocks.
        during(
            || {
                for number in 0..DIRS {
                    let [file, pipe, link] =
                        ["file", "pipe", "link"].map(|kind| root.join(format!("{kind}{number}")));
                    exchange(&file, &pipe);
                    exchange(&file, &link);
                    exchange(&pipe, &file);
                }
            },
            || {
                child::copy(tree.path(), &dest)
                    .within(Duration::from_secs(10))
                    .run()
            },
        );
        assert_unchanged(&before, &outside, all_but_atime());
        assert_nothing_from_outside(&dest);
        clean(&[&dest]);
    });
}

#[test]
fn one_name_that_turns_from_file_to_fifo_and_back_does_not_block_a_copy() {
    let scratch = Scratch::in_memory();
    let [root, dest, spare] = ["s", "d", "spare"].map(|name| scratch.path().join(name));
    Tree::at(&root).file("name", "inside");
    mknodat(CWD, &spare, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let name = root.join("name");
    again_and_again(TIME, || {
        during(
            || exchange(&name, &spare),
            || {
                let many = (0..200).map(|number| dest.join(number.to_string()));
                Tree::at(&dest);
                let script = many.map(|dest| (root.clone(), dest));
                child::copies(script).within(Duration::from_secs(10)).run()
            },
        );
        assert_nothing_from_outside(&dest);
        clean(&[&dest]);
    });
}

#[test]
fn two_copies_at_once_to_one_dest_end() {
    let scratch = Scratch::in_memory();
    let [root, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    build(&root);
    again_and_again(TIME / 2, || {
        let run = || {
            let options = copy_options(|options| options.threads = threads(2));
            copy_with(options, [&root], &fuc_engine::Dest::Exactly(dest.clone()))
        };
        let told = thread::scope(|scope| {
            let other = scope.spawn(run);
            [run(), other.join().unwrap()]
        });
        assert_eq!(told.each_ref().map(|told| &told.failures[..]), [&[]; 2]);
        testkit::snapshot::assert_same_tree(&root, &dest, Attributes::MODE);
        clean(&[&dest]);
    });
}

/// Puts a link to what is outside in the place of each copy, as soon as it is complete.
struct Swapper<'a> {
    target: &'a Path,
    failures: Mutex<Vec<Error>>,
}

impl Observer for Swapper<'_> {
    fn failed(&self, error: Error) {
        self.failures.lock().unwrap().push(error);
    }

    fn wants_events(&self) -> bool {
        true
    }

    fn on_event(&self, done: Event<'_>) {
        if let Event::Copied { dest, .. } = done
            && dest.ends_with("one")
        {
            fs::remove_file(dest).unwrap();
            symlink(self.target, dest).unwrap();
        }
    }
}

#[test]
fn other_names_are_never_links_to_what_took_the_place_of_the_first_copy() {
    for dereference in [Dereference::Never, Dereference::Always] {
        let scratch = Scratch::in_memory();
        let outside = outside(&scratch);
        let before = Snapshot::of(&outside, all_but_atime());
        Tree::at(scratch.path().join("s"))
            .file("one", "inside")
            .hardlink("one", "two");
        let at = |name: &str| scratch.path().join(name);
        fs::create_dir(at("d")).unwrap();
        let options = copy_options(|options| {
            options.dereference = dereference;
            options.preserve.links = true;
        });
        let target = outside.join("marked0");
        let swapper = Swapper {
            target: &target,
            failures: Mutex::default(),
        };
        let summary =
            CopyOp::new(options).run([at("s/one"), at("s/two")], &Dest::Into(at("d")), &swapper);
        assert_eq!(summary.failures, 0);
        assert_eq!(fs::read_to_string(at("d/two")).unwrap(), "inside");
        assert!(fs::symlink_metadata(at("d/two")).unwrap().is_file());
        assert_unchanged(&before, &outside, all_but_atime());
    }
}
