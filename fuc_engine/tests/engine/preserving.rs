//! Attributes and hard links with many threads and few descriptors, and the costs of keeping them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fuc_engine::{CopyOp, Dest, Error, Event, Observer, Preserve};
use testkit::snapshot::{Attributes, assert_same_tree};
use testkit::tree::{Scratch, Tree, comb};

use crate::child;
use crate::kit::{Told, copy_with, paths, threads};

const NAMES: usize = 1000;
const DIRS: usize = 40;

/// Makes ten inodes with a hundred names each, spread over forty directories in two sources.
fn many_names(at: &Path) {
    let tree = Tree::at(at);
    let place = |name: usize| format!("{}/{}/{name}", name % 2, name % DIRS);
    for name in 0..NAMES {
        if name < 10 {
            tree.file(place(name), format!("inode {name}"));
        } else {
            tree.hardlink(place(name % 10), place(name));
        }
    }
}

fn archive(sources: [&Path; 2], dest: &Path, workers: usize) -> Told {
    let options = CopyOp::new().with(|options| {
        options.preserve = Preserve::all();
        options.threads = threads(workers);
    });
    copy_with(options, sources, &Dest::Into(dest.to_owned()))
}

#[track_caller]
fn keeps_links(workers: usize) {
    let scratch = Scratch::in_memory();
    let source = scratch.path().join("source");
    many_names(&source);
    for round in 0..15 {
        let dest = scratch.path().join(format!("dest-{round}"));
        fs::create_dir(&dest).unwrap();
        let told = archive([&source.join("0"), &source.join("1")], &dest, workers);
        assert_eq!(told.failures, []);
        assert_eq!(told.counts.0 as usize, NAMES + DIRS + 2);
        for side in ["0", "1"] {
            let all = Attributes::ALL - Attributes::ATIME;
            assert_same_tree(source.join(side), dest.join(side), all);
        }
        let inode = |name: &str| fs::metadata(dest.join(name)).unwrap();
        assert_eq!(inode("0/0/0").nlink() as usize, NAMES / 10);
    }
}

#[test]
fn links_stay_links_on_one_thread() {
    keeps_links(1);
}

#[test]
fn links_stay_links_on_four_threads() {
    keeps_links(4);
}

#[test]
fn links_stay_links_on_eight_threads() {
    keeps_links(8);
}

/// Records the largest number of dest directories that are open at once.
struct OpenAtDest<'a>(&'a Path, AtomicUsize);

impl Observer for OpenAtDest<'_> {
    fn failed(&self, error: Error) {
        panic!("{error}");
    }

    fn wants_events(&self) -> bool {
        true
    }

    fn on_event(&self, _: Event<'_>) {
        let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
        let targets = open.filter_map(|fd| fs::read_link(fd.path()).ok());
        let open = targets.filter(|target| target.starts_with(self.0)).count();
        self.1.fetch_max(open, Ordering::Relaxed);
    }
}

#[test]
fn links_to_finished_directories_leave_none_of_them_open() {
    const MANY: usize = 300;
    let scratch = Scratch::in_memory();
    let tree = Tree::at(scratch.path());
    for number in 0..MANY {
        let apart = format!("apart/{number}/name");
        tree.file(&apart, "")
            .hardlink(&apart, format!("together/{number}"));
    }
    // Test both orders of the directories.
    for order in [["apart", "together"], ["together", "apart"]] {
        let dest = scratch.path().join(format!("first-{}", order[0]));
        fs::create_dir(&dest).unwrap();
        let options = CopyOp::new().with(|options| {
            options.preserve = Preserve::all();
            options.threads = threads(1);
        });
        let most = OpenAtDest(&dest, AtomicUsize::new(0));
        let sources = order.map(|name| scratch.path().join(name));
        let summary = options.run(paths(sources), &Dest::Into(dest.clone()), &most);
        assert!(summary.is_complete());
        assert_eq!(fs::metadata(dest.join("together/7")).unwrap().nlink(), 2);
        let most = most.1.into_inner();
        assert!(most < 20, "{most} open at once");
    }
}

#[test]
fn finishes_directories_whose_descriptors_were_taken() {
    let scratch = Scratch::in_memory();
    let source = scratch.path().join("source");
    comb(source.clone(), 60, 2);
    let tree = Tree::at(&source);
    tree.file("first", "x");
    let mut deepest = source.clone();
    while let Some(next) = fs::read_dir(&deepest)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.is_dir())
    {
        deepest = next;
    }
    fs::hard_link(source.join("first"), deepest.join("last")).unwrap();
    tree.select("").mtime(Duration::new(77, 88));
    let dest = scratch.path().join("dest");
    let report = child::copy(&source, &dest).archive().nofile_limit(20).run();
    assert_eq!(report.failures, [""; 0]);
    assert_same_tree(&source, &dest, Attributes::ALL - Attributes::ATIME);
}
