//! Trees that another thread changes at random moments during the run. This meets moments between two
//! system calls that the observer of [`races`](crate::races) cannot reach.
//!
//! Each test repeats until enough runs met a change, which is seen from their results.

use std::{
    fs,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use fuc_engine::{CopyOp, ModePolicy, Operation, Preserve, RemoveOp, Replace};
use rustix::io::Errno;
use testkit::{
    needs, or_skip,
    tree::{Scratch, Tree, comb, remove_for_sure, wide},
};

use crate::child;
use crate::kit::{
    Limited as _, Told, can_exchange, copy, copy_with, exactly, exchange, failed, remove_with,
    until_raced,
};
use crate::races::{Arena, BUILT, DIRS, assert_nothing_from_outside, build};

/// Repeats `disturb` on another thread while `work` runs.
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
        // The guard stops the thread on drop, even if `work` panics.
        let _stop = Stop(&stop);
        work()
    })
}

/// Exchanges two names, unless one of them is missing: the run may have removed it, or not made it yet.
#[track_caller]
fn exchange_if_there(a: &Path, b: &Path) {
    match exchange(a, b) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => panic!("{a:?} and {b:?} cannot be exchanged: {errno}"),
    }
}

/// Exchanges each directory in `root` with a link to the outside, and back.
fn swap_all(arena: &Arena, root: &Path) {
    let decoy = arena.at("decoy");
    for number in 0..DIRS {
        let dir = root.join(number.to_string());
        // The run may have removed the link while it had the name of a directory, so make it again.
        let _ = symlink(arena.outside(), &decoy);
        exchange_if_there(&dir, &decoy);
        thread::yield_now();
        exchange_if_there(&dir, &decoy);
    }
}

fn clean(paths: &[&Path]) {
    for path in paths {
        remove_for_sure(path).unwrap();
    }
}

#[test]
#[ignore = "slow"]
fn a_removal_follows_no_link_that_replaces_a_directory() {
    let arena = or_skip!(Arena::new());
    let root = arena.at("t");
    let mut number = 0;
    until_raced(20, || {
        build(&root);
        number += 1;
        let removal = RemoveOp::new().threads(number % 3 + 1);
        let told = during(|| swap_all(&arena, &root), || remove_with(removal, [&root]));
        arena.assert_outside_is_untouched();
        clean(&[&root, &arena.at("decoy")]);
        told.failures.len()
    });
}

#[test]
#[ignore = "slow"]
fn a_copy_reads_through_no_link_that_replaces_a_source_directory() {
    let (arena, root, dest) = or_skip!(Arena::with_source());
    until_raced(20, || {
        let told = during(|| swap_all(&arena, &root), || copy(&root, &dest));
        arena.assert_outside_is_untouched();
        assert_nothing_from_outside(&dest);
        clean(&[&dest]);
        told.failures.len()
    });
}

#[test]
#[ignore = "slow"]
fn a_copy_writes_through_no_link_that_replaces_a_dest_directory() {
    let (arena, root, dest) = or_skip!(Arena::with_source());
    let mut number = 0;
    until_raced(20, || {
        // In every second round the directories exist before the run.
        number += 1;
        if number % 2 == 0 {
            build(&dest);
        }
        let told = during(|| swap_all(&arena, &dest), || copy(&root, &dest));
        arena.assert_outside_is_untouched();
        clean(&[&dest, &arena.at("decoy")]);
        told.failures.len()
    });
}

#[test]
#[ignore = "slow"]
fn a_copy_of_a_name_that_turns_from_file_to_fifo_and_back_does_not_block() {
    let scratch = Scratch::in_memory();
    or_skip!(can_exchange(&scratch));
    let [root, dest] = ["s", "d"].map(|name| scratch.at(name));
    Tree::at(&root).plant("name=inside");
    Tree::at(&scratch).fifo("spare");
    let [name, spare] = [root.join("name"), scratch.at("spare")];
    until_raced(20, || {
        Tree::at(&dest);
        let dests = || (0..200).map(|number| dest.join(number.to_string()));
        during(
            || exchange(&name, &spare).expect("both exist"),
            || {
                let copies = child::copies(dests().map(|dest| (root.clone(), dest)));
                copies.within(Duration::from_secs(10)).run()
            },
        );
        let is_fifo = |dest: std::path::PathBuf| {
            let copy = fs::symlink_metadata(dest.join("name")).ok()?;
            Some(copy.file_type().is_fifo())
        };
        let kinds: Vec<_> = dests().filter_map(is_fifo).collect();
        clean(&[&dest]);
        kinds.windows(2).filter(|pair| pair[0] != pair[1]).count()
    });
}

#[test]
#[ignore = "slow"]
fn a_copied_device_has_numbers_and_mode_of_the_same_source() {
    let scratch = Scratch::in_memory();
    or_skip!(can_exchange(&scratch));
    needs!(root);
    let [name, spare, dest] = ["s", "spare", "d"].map(|name| scratch.at(name));
    Tree::at(&scratch)
        .char_device("s", 1, 3)
        .mode(0o600)
        .char_device("spare", 1, 5)
        .mode(0o666);
    let options = || CopyOp::new().with(|options| options.preserve.mode = ModePolicy::Preserve);
    let seen = |path: &Path| {
        let metadata = fs::symlink_metadata(path).unwrap();
        (metadata.rdev(), metadata.mode() & 0o7777)
    };
    let sources = [seen(&name), seen(&spare)];
    let mut before = sources[0];
    until_raced(20, || {
        let disturb = || exchange(&name, &spare).expect("both exist");
        let copies = during(disturb, || {
            let copy_once = |_| {
                let told = copy_with(options(), [&name], &exactly(&dest));
                assert_eq!(told, Told::complete(1, 0));
                let copied = seen(&dest);
                clean(&[&dest]);
                copied
            };
            (0..100).map(copy_once).collect::<Vec<_>>()
        });
        let mut changes = 0;
        for copied in copies {
            assert!(
                sources.contains(&copied),
                "{copied:?} is not of {sources:?}"
            );
            changes += usize::from(copied != before);
            before = copied;
        }
        changes
    });
}

/// Removes one tree by two runs at once.
fn removed_twice(root: &Path, ignore_missing: bool) -> [Told; 2] {
    build(root);
    comb(root.join("comb"), 20, 3);
    wide(root.join("wide"), 2_000);
    let remove = || {
        let removal = RemoveOp::new().threads(2);
        remove_with(
            removal.with(|it| it.ignore_missing = ignore_missing),
            [root],
        )
    };
    thread::scope(|scope| {
        let other = scope.spawn(remove);
        [remove(), other.join().unwrap()]
    })
}

#[test]
#[ignore = "slow"]
fn two_removals_at_once_leave_nothing_and_report_only_missing_names() {
    let scratch = Scratch::in_memory();
    let root = scratch.at("t");
    until_raced(20, || {
        let [one, other] = removed_twice(&root, true);
        assert_eq!((&one.failures, &other.failures), (&Vec::new(), &Vec::new()));
        assert!(!root.exists());
        // Each name was removed by one of the two runs.
        let entries = BUILT + 1 + 20 * (1 + 2 * 4) + 1 + 2_000;
        assert_eq!(one.counts.0 + other.counts.0, entries as u64);
        usize::from(one.counts.0 > 0 && other.counts.0 > 0)
    });
    until_raced(20, || {
        let [one, other] = removed_twice(&root, false);
        for failure in one.failures.iter().chain(&other.failures) {
            // A directory is not empty if the other run failed to remove one of its entries.
            let errnos = [Errno::NOENT, Errno::NOTEMPTY];
            let expected = errnos.map(|errno| failed(Operation::Remove, errno));
            assert!(expected.contains(&failure.cause), "{failure:?}");
        }
        clean(&[&root]);
        one.failures.len() + other.failures.len()
    });
}

/// Both directories of the source are copied into one. A name then often waits for the copy of its
/// twin, which has the same dest.
#[test]
#[ignore = "slow"]
fn a_name_whose_dest_has_become_the_first_copy_is_not_a_failure() {
    const FILES: usize = 3_000;
    let scratch = Scratch::new();
    let source = Tree::at(scratch.at("s"));
    for file in 0..FILES {
        source.plant(format!("x/{file}=new y/{file}==x/{file}"));
    }
    for round in 0..3 {
        let dest = Tree::at(scratch.at(format!("d{round}")));
        dest.plant("x/ y->x");
        let options = CopyOp::new().threads(4).with(|options| {
            options.preserve = Preserve::all();
            options.rules.replace = Replace::Older;
            options.rules.follow_links_to_directories = true;
        });
        let told = copy_with(options, [source.path()], &exactly(dest.path()));
        assert_eq!(told.failures, [], "round {round}");
        for file in 0..FILES {
            let copied = fs::read(dest.path().join(format!("x/{file}"))).unwrap();
            assert_eq!(copied, b"new", "{file}");
        }
    }
}
