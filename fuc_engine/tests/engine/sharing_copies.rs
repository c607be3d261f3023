//! Copies that several engines share; see [`crate::hub`].
//!
//! Each test proves that entries changed hands: by their number, or because something happens at the moment at which
//! they do.

use std::ffi::OsString;
use std::fs;
use std::io::read_to_string;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use fuc_engine::{
    Backup, BackupNaming, Cancel, Candidate, CopyOp, Dereference, Dest, DestRules,
    EnteredDirectory, Error, Event, Execution, Filter, Observer, Operation, Preserve, Refusal,
    Replace, Summary, Verdict,
};
use proptest::prelude::*;
use rustix::io::Errno;
use testkit::snapshot::{Attributes, Snapshot, assert_same_tree};
use testkit::tree::{Scratch, Tree, chain, comb, remove_for_sure, wide_dirs};
use testkit::{or_skip, skip};

use crate::child;
use crate::hub::{Desk, Hub, Slow, failures, quick, slow, totals};
use crate::kit::{Counts, Failure, all_but_atime, exactly, exchange, plain};
use crate::properties::tree;
use crate::races::{Arena, BUILT, DIRS, assert_nothing_from_outside, build};

/// A place for two copies of one tree: by one engine, and by several.
struct Twins {
    scratch: Scratch,
}

impl Twins {
    fn new() -> Self {
        let scratch = Scratch::in_memory();
        Self { scratch }
    }

    fn source(&self) -> PathBuf {
        self.scratch.path().join("s")
    }

    /// The dest of one engine, and the dest of several.
    fn dests(&self) -> [PathBuf; 2] {
        ["alone", "together"].map(|name| self.scratch.path().join(name).join("d"))
    }

    /// Copies the tree by one engine and by those of the hub, and compares trees, totals and failures.
    fn assert_alike<F: Fn() + Sync>(
        &self,
        hub: &Hub<F>,
        copy: &CopyOp,
        attributes: Attributes,
    ) -> Vec<Summary> {
        let [alone, together] = self.dests();
        for dest in [&alone, &together] {
            fs::create_dir_all(dest.parent().unwrap()).unwrap();
        }
        let source = self.source();
        let one = slow(1);
        let expected = copy.run([&source], &exactly(&alone), &one[0]);
        let observers = slow(hub.engines());
        let summaries = hub.copy(copy, &[&source], &exactly(&together), &observers);
        assert_eq!(
            totals(&summaries),
            (expected.entries as usize, expected.failures)
        );
        let relative = |observers, dest: &Path| {
            let mut failures: Vec<_> = failures(observers)
                .iter()
                .map(|it| format!("{it:?}").replace(dest.to_str().unwrap(), "DEST"))
                .collect();
            failures.sort();
            failures
        };
        assert_eq!(relative(observers, &together), relative(one, &alone));
        assert_same_tree(&alone, &together, attributes);
        summaries
    }
}

/// Returns a copy that keeps everything, as `cp -a` does.
fn archive() -> CopyOp {
    CopyOp::new()
        .dereference(Dereference::Never)
        .preserve(Preserve::all())
}

fn rules(change: impl FnOnce(&mut DestRules)) -> DestRules {
    let mut rules = DestRules::default();
    change(&mut rules);
    rules
}

/// Returns a copy that follows all links, and keeps everything.
fn following() -> CopyOp {
    archive().dereference(Dereference::Always)
}

/// Makes files that have a name in each of several directories.
fn build_linked(root: &Path, directories: usize, files: usize) {
    let tree = Tree::at(root);
    for file in 0..files {
        tree.file(format!("0/{file}"), format!("content {file}"));
        for directory in 1..directories {
            tree.hardlink(format!("0/{file}"), format!("{directory}/{file}"));
        }
    }
}

#[test]
fn engines_steal_and_copy_a_tree_together() {
    for engines in [2, 3] {
        for threads in [1, 4] {
            let twins = Twins::new();
            build(&twins.source());
            let hub = Hub::new(engines, || {});
            let copy = CopyOp::new().threads(threads);
            let summaries = twins.assert_alike(&hub, &copy, plain());
            assert_eq!(totals(&summaries), (BUILT, 0));
            assert!(hub.stolen() > 0);
            assert_eq!(hub.not_reached(), 0);
            let assisted = summaries[1..].iter().any(|summary| summary.entries > 0);
            assert!(assisted, "the leader did everything: {summaries:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn engines_copy_random_trees(
        tree in tree(), links in any::<bool>(), engines in 2..4usize, threads in 1..3usize,
    ) {
        let twins = Twins::new();
        tree.build(&twins.source());
        if links {
            build_linked(&twins.source().join("linked"), 5, 9);
        }
        let hub = Hub::new(engines, || {});
        let copy = archive().threads(threads);
        twins.assert_alike(&hub, &copy, all_but_atime());
        assert_same_tree(twins.source(), &twins.dests()[1], all_but_atime());
        prop_assert_eq!(hub.not_reached(), 0);
        prop_assert_eq!(hub.entrusted() > 0, links);
    }
}

#[test]
fn directories_get_their_times_and_modes_after_everything_below() {
    let twins = Twins::new();
    let tree = Tree::at(twins.source());
    build(tree.path());
    for number in 0..DIRS {
        tree.select(format!("{number}/sub"))
            .mode(0o500)
            .mtime(Duration::from_secs(1_000));
        tree.select(number.to_string())
            .mode(0o1700)
            .mtime(Duration::from_secs(2_000));
    }
    tree.select("").mtime(Duration::from_secs(3_000));
    let hub = Hub::new(3, || {});
    twins.assert_alike(&hub, &archive().threads(1), all_but_atime());
    assert_same_tree(tree.path(), &twins.dests()[1], all_but_atime());
    assert!(hub.stolen() > 0);
}

#[test]
fn files_with_names_in_many_directories_stay_one_file() {
    for (engines, threads) in [(2, 1), (3, 1), (3, 4)] {
        let twins = Twins::new();
        build_linked(&twins.source(), 30, 100);
        let tree = Tree::at(twins.source());
        tree.symlink("0/link", "nowhere").fifo("0/fifo");
        for directory in 1..30 {
            tree.hardlink("0/link", format!("{directory}/link"))
                .hardlink("0/fifo", format!("{directory}/fifo"));
        }
        let hub = Hub::new(engines, || {});
        let summaries = twins.assert_alike(&hub, &archive().threads(threads), all_but_atime());
        assert_same_tree(tree.path(), &twins.dests()[1], all_but_atime());
        assert!(hub.entrusted() > 0);
        assert_eq!(hub.not_reached(), 0);
        for summary in summaries {
            assert!(summary.hard_links > 500, "{summary:?}");
        }
    }
}

#[test]
fn names_of_one_directory_travel_together() {
    let twins = Twins::new();
    build_linked(&twins.source(), 4, 1_000);
    let hub = Hub::new(2, || {}).with_home(1);
    let summaries = twins.assert_alike(&hub, &archive().threads(1), all_but_atime());
    assert_eq!((summaries[0].files, summaries[0].hard_links), (0, 0));
    assert_eq!(
        (summaries[1].files, summaries[1].hard_links),
        (1_000, 3_000)
    );
    // At most 256 names are in one message. The home may have stolen directories, but not all of them.
    assert!((4..=16).contains(&hub.entrusted()), "{}", hub.entrusted());
}

#[test]
fn followed_links_to_one_file_stay_one_file() {
    for home in [None, Some(0), Some(1)] {
        let twins = Twins::new();
        let tree = Tree::at(twins.source());
        for file in 0..20 {
            tree.file(format!("0/{file}"), format!("content {file}"));
            for directory in 1..20 {
                tree.symlink(format!("{directory}/{file}"), format!("../0/{file}"));
            }
        }
        tree.symlink("to-directory", "0");
        let mut hub = Hub::new(3, || {});
        if let Some(home) = home {
            hub = hub.with_home(home);
        }
        let summaries = twins.assert_alike(&hub, &following().threads(1), all_but_atime());
        let files: u64 = summaries.iter().map(|it| it.files).sum();
        assert_eq!(files, 20);
        assert!(hub.entrusted() > 0);
    }
}

#[test]
fn links_that_lead_back_are_reported_once() {
    let twins = Twins::new();
    build(&twins.source());
    for number in 0..DIRS {
        let loops = [
            ("up", ".."),
            ("here", "."),
            ("sub/top", "../.."),
            ("sub/all", "../../beside"),
        ];
        for (name, target) in loops {
            symlink(target, twins.source().join(format!("{number}/{name}"))).unwrap();
        }
    }
    let hub = Hub::new(3, || {});
    let copy = following().preserve(Preserve::default()).threads(1);
    let summaries = twins.assert_alike(&hub, &copy, plain());
    assert_eq!(totals(&summaries).1, 3 * DIRS as u64);
    assert!(hub.stolen() > 0);
}

#[test]
fn dests_of_linked_files_are_backed_up_once() {
    for naming in [BackupNaming::Simple, BackupNaming::Numbered] {
        let twins = Twins::new();
        build_linked(&twins.source(), 10, 20);
        for dest in twins.dests() {
            let tree = Tree::at(&dest);
            for directory in 0..10 {
                (0..20).for_each(|file| {
                    tree.file(format!("{directory}/{file}"), format!("old {directory}"));
                });
            }
        }
        let hub = Hub::new(3, || {});
        let backup = Backup {
            naming,
            suffix: "~".into(),
        };
        let copy = archive()
            .threads(2)
            .rules(rules(|rules| rules.backup = Some(backup)));
        twins.assert_alike(&hub, &copy, all_but_atime() - Attributes::MTIME);
        assert!(hub.entrusted() > 0);
        let names = Snapshot::of(&twins.dests()[1], Attributes::NAMES).len();
        assert_eq!(names, 1 + 10 * (1 + 2 * 20));
    }
}

#[test]
fn rules_about_dests_hold_for_linked_files() {
    for replace in [Replace::Older, Replace::Changed, Replace::None] {
        let twins = Twins::new();
        build_linked(&twins.source(), 10, 20);
        build(&twins.source().join("more"));
        let hub = Hub::new(3, || {});
        let copy = archive()
            .threads(1)
            .rules(rules(|rules| rules.replace = replace));
        twins.assert_alike(&hub, &copy, all_but_atime());
        assert!(hub.entrusted() > 0);
        // Once more, everything is there.
        let hub = Hub::new(3, || {});
        let dests = twins.dests();
        let before = Snapshot::of(&dests[1], Attributes::ALL - Attributes::ATIME);
        let summaries = twins.assert_alike(&hub, &copy, all_but_atime());
        let files: u64 = summaries.iter().map(|it| it.files).sum();
        assert_eq!(files, 0);
        assert!(hub.entrusted() > 0);
        let after = Snapshot::of(&dests[1], Attributes::ALL - Attributes::ATIME);
        assert_eq!(before.diff(&after), "");
    }
}

#[test]
fn dests_that_are_in_the_way_are_reported_once() {
    let twins = Twins::new();
    build(&twins.source());
    for dest in twins.dests() {
        let tree = Tree::at(dest);
        for number in (0..DIRS).step_by(3) {
            tree.file(format!("{number}/sub"), "in the way")
                .file(format!("{number}/file"), "old")
                .file(format!("{number}/more"), "stays");
        }
        tree.file("1", "in the way").dir("2/file");
    }
    let hub = Hub::new(3, || {});
    let copy = CopyOp::new().threads(1);
    let summaries = twins.assert_alike(&hub, &copy, plain());
    assert_eq!(totals(&summaries).1, DIRS.div_ceil(3) as u64 + 2);
    assert!(hub.stolen() > 0);
}

#[test]
fn linked_directories_at_the_dest_are_kept_if_that_is_asked_for() {
    for keeps in [false, true] {
        let twins = Twins::new();
        build(&twins.source());
        for dest in twins.dests() {
            let tree = Tree::at(&dest);
            for number in 0..DIRS / 2 {
                tree.dir(format!("elsewhere/{number}"))
                    .symlink(number.to_string(), format!("elsewhere/{number}"));
            }
        }
        let hub = Hub::new(3, || {});
        let rules = rules(|rules| rules.follow_links_to_directories = keeps);
        let copy = CopyOp::new().threads(1).rules(rules);
        let summaries = twins.assert_alike(&hub, &copy, plain());
        assert_eq!(totals(&summaries).1 == 0, keeps);
        assert!(hub.stolen() > 0);
    }
}

#[test]
fn what_the_filter_leaves_alone_is_not_copied() {
    let twins = Twins::new();
    build(&twins.source());
    build_linked(&twins.source().join("linked"), 10, 20);
    let hub = Hub::new(3, || {});
    let filter = |entry: &Candidate<'_>| match entry.name().as_encoded_bytes() {
        b"7" | b"file" => Verdict::Prune,
        b"3" => Verdict::Skip,
        _ => Verdict::Take,
    };
    let copy = archive().threads(1).filtered_by(Arc::new(filter));
    twins.assert_alike(&hub, &copy, all_but_atime());
    assert!(hub.stolen() > 0 && hub.entrusted() > 0);
    assert!(!twins.dests()[1].join("7").exists());
    assert!(twins.dests()[1].join("linked/8/8").exists());
}

/// Prunes the entries that a file `skip` in a directory above them names.
#[derive(Clone, Debug, Default)]
struct SkipFiles(Vec<OsString>);

impl Filter for SkipFiles {
    fn verdict(&self, entry: &Candidate<'_>) -> Verdict {
        match self.0.iter().any(|name| name == entry.name()) {
            true => Verdict::Prune,
            false => Verdict::Take,
        }
    }

    fn for_directory(&self, directory: &EnteredDirectory<'_>) -> Option<Arc<dyn Filter>> {
        let name = read_to_string(directory.open("skip").ok()?).unwrap();
        let mut nested = self.clone();
        nested.0.push(name.into());
        Some(Arc::new(nested))
    }
}

#[test]
fn filters_of_directories_are_found_by_each_engine() {
    let twins = Twins::new();
    let tree = Tree::at(twins.source());
    for parent in ["a", "b"] {
        build(&tree.path().join(parent));
        build_linked(&tree.path().join(parent).join("linked"), 10, 10);
    }
    tree.file("a/skip", "sub").file("b/5/sub/skip", "file");
    let hub = Hub::new(3, || {});
    let copy = archive()
        .threads(1)
        .filtered_by(Arc::new(SkipFiles::default()));
    twins.assert_alike(&hub, &copy, all_but_atime());
    assert!(hub.stolen() > 0 && hub.entrusted() > 0);
    let dest = Snapshot::of(&twins.dests()[1], Attributes::NAMES);
    assert_eq!(dest.kind("a/7/sub"), None);
    assert!(dest.kind("b/7/sub/file").is_some());
    assert_eq!(dest.kind("b/5/sub/file"), None);
}

#[test]
fn directories_on_other_filesystems_stay_empty_if_that_is_asked_for() {
    let elsewhere = Scratch::new();
    let twins = Twins::new();
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    if device(elsewhere.path()) == device(twins.scratch.path()) {
        skip!("memory and disk are one filesystem");
    }
    build(elsewhere.path());
    build(&twins.source());
    for number in 0..DIRS {
        let link = twins.source().join(format!("{number}/sub/elsewhere"));
        symlink(elsewhere.path(), link).unwrap();
    }
    let hub = Hub::new(3, || {});
    let copy = following().preserve(Preserve::default());
    let copy = copy.one_file_system(true).threads(1);
    let summaries = twins.assert_alike(&hub, &copy, plain());
    assert_eq!(totals(&summaries), (BUILT + DIRS, 0));
    assert!(hub.stolen() > 0);
}

#[test]
fn a_dry_run_is_made_by_the_leader() {
    let twins = Twins::new();
    build(&twins.source());
    build_linked(&twins.source().join("linked"), 10, 10);
    let hub = Hub::new(2, || {});
    let observers = slow(2);
    let copy = archive().execution(Execution::DryRun);
    let dest = twins.scratch.path().join("d");
    let summaries = hub.copy(&copy, &[twins.source()], &exactly(&dest), &observers);
    assert_eq!(totals(&summaries), (BUILT + 1 + 10 * 11, 0));
    assert_eq!(summaries[1].entries, 0);
    assert_eq!((hub.stolen(), hub.entrusted()), (0, 0));
    assert!(!dest.exists());
}

/// Copies operands by one engine and by three. Both begin in a directory of their own that `prepare` has filled,
/// and return the failures.
fn operands_alike(
    prepare: impl Fn(&Path),
    operands: &[&str],
    target: &str,
    copy: &CopyOp,
) -> Vec<String> {
    let scratch = Scratch::in_memory();
    let roots = ["alone", "together"].map(|name| scratch.path().join(name));
    roots.iter().for_each(|root| prepare(root));
    let failed = |observers, root: &Path| {
        let failures = failures(observers);
        let shown = failures.iter().map(|it| format!("{it:?}"));
        let mut shown: Vec<_> = shown
            .map(|it| it.replace(root.to_str().unwrap(), "ROOT"))
            .collect();
        shown.sort();
        shown
    };
    let paths = |root: &Path| operands.iter().map(|it| root.join(it)).collect::<Vec<_>>();
    let into = |root: &Path| Dest::Into(root.join(target));
    let one = slow(1);
    let expected = copy.run(paths(&roots[0]), &into(&roots[0]), &one[0]);
    let hub = Hub::new(3, || {});
    let observers = slow(3);
    let summaries = hub.copy(copy, &paths(&roots[1]), &into(&roots[1]), &observers);
    assert!(hub.stolen() > 0);
    assert_eq!(
        totals(&summaries),
        (expected.entries as usize, expected.failures)
    );
    let expected = failed(one, &roots[0]);
    assert_eq!(failed(observers, &roots[1]), expected);
    assert_same_tree(&roots[0], &roots[1], plain());
    expected
}

#[test]
fn a_directory_is_not_copied_into_itself() {
    let prepare = |root: &Path| {
        build(&root.join("s"));
        build(&root.join("s/5/sub/more"));
    };
    let failures = operands_alike(prepare, &["s"], "s/5/sub", &CopyOp::new().threads(1));
    assert_eq!(failures.len(), 1);
    assert!(failures[0].contains("IntoItself"), "{failures:?}");
}

#[test]
fn an_operand_that_contains_the_target_waits_for_all_engines() {
    let prepare = |root: &Path| {
        build(&root.join("a"));
        build(&root.join("b"));
        build(&root.join("around"));
        fs::create_dir(root.join("around/target")).unwrap();
    };
    let operands = ["a", "around", "b"];
    let failures = operands_alike(
        prepare,
        &operands,
        "around/target",
        &CopyOp::new().threads(1),
    );
    assert_eq!(failures.len(), 1);
}

#[test]
fn a_way_back_behind_a_link_is_reported_once() {
    let prepare = |root: &Path| {
        build(&root.join("around"));
        build(&root.join("around/s"));
        for number in 0..5 {
            let link = root.join(format!("around/s/{number}/sub/out"));
            symlink("../../..", link).unwrap();
        }
        fs::create_dir(root.join("target")).unwrap();
    };
    let copy = following().preserve(Preserve::default()).threads(1);
    let failures = operands_alike(prepare, &["around/s"], "target", &copy);
    assert_eq!(failures.len(), 5);
    assert!(failures.iter().all(|it| it.contains("CyclicSymlink")));
}

#[test]
fn directories_on_the_way_to_a_dest_are_made_by_the_leader() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(scratch.path());
    build(&scratch.path().join("a/b/c"));
    build_linked(&scratch.path().join("a/b/c/linked"), 5, 5);
    tree.select("a/b")
        .mode(0o711)
        .mtime(Duration::from_secs(5_000));
    tree.dir("target");
    let target = scratch.path().join("target");
    let hub = Hub::new(3, || {});
    let observers = slow(3);
    let copy = archive().parents(true).threads(1);
    let operands = [scratch.path().join("a/./b/c")];
    let dest = Dest::Into(target.clone());
    hub.copy(&copy, &operands, &dest, &observers);
    assert_eq!(failures(observers), []);
    assert!(hub.stolen() > 0 && hub.entrusted() > 0);
    assert_eq!(hub.not_reached(), 0);
    let made = target.join(scratch.path().strip_prefix("/").unwrap());
    assert_same_tree(
        scratch.path().join("a/b"),
        made.join("a/b"),
        all_but_atime(),
    );
}

#[test]
fn a_linked_file_that_is_an_operand_is_linked_if_the_leader_is_its_home() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(scratch.path());
    tree.file("file", "content").dir("target");
    build_linked(&scratch.path().join("s"), 20, 5);
    tree.hardlink("file", "s/9/file")
        .hardlink("file", "s/19/file");
    let operands = ["file", "s"].map(|name| scratch.path().join(name));
    for home in [0, 1] {
        let target = scratch.path().join("target");
        let hub = Hub::new(2, || {}).with_home(home);
        let observers = slow(2);
        let dest = Dest::Into(target.clone());
        hub.copy(&archive().threads(1), &operands, &dest, &observers);
        if home == 0 {
            assert_eq!(failures(observers), []);
            assert_eq!(fs::metadata(target.join("file")).unwrap().nlink(), 3);
        } else {
            let lost =
                Failure::failed(Operation::CreateHardLink, target.join("file"), Errno::STALE);
            assert_eq!(failures(observers), [lost.and(&operands[0])]);
            assert!(!target.join("file").exists());
            assert_eq!(fs::metadata(target.join("s/9/file")).unwrap().nlink(), 2);
        }
        assert_eq!(fs::metadata(target.join("s/3/4")).unwrap().nlink(), 20);
        assert!(hub.entrusted() + hub.stolen() > 0);
        remove_for_sure(target).unwrap();
        tree.dir("target");
    }
}

#[test]
fn an_engine_that_reaches_nothing_gives_directories_back() {
    for (source, dest) in [("missing", "d"), ("s", "missing/d")] {
        let scratch = Scratch::in_memory();
        let at = |name: &str| scratch.path().join(name);
        build(&at("s"));
        let hub = Hub::new(2, || {});
        let observers = slow(2);
        let copy = CopyOp::new().threads(1);
        let summaries = hub.run(&observers, |engine, observer, desk| match engine {
            0 => copy.lead([at("s")], &exactly(at("d")), observer, desk),
            _ => copy.assist([at(source)], &exactly(at(dest)), observer, desk),
        });
        assert_eq!(totals(&summaries), (BUILT, 0));
        assert_eq!(summaries[1].entries, 0);
        assert!(hub.not_reached() > 0);
        assert_same_tree(at("s"), at("d"), plain());
    }
}

#[test]
fn an_engine_whose_target_is_missing_ends_with_the_others() {
    let scratch = Scratch::in_memory();
    let at = |name: &str| scratch.path().join(name);
    build(&at("s"));
    fs::create_dir(at("target")).unwrap();
    for missing_at in [0, 1] {
        let hub = Hub::new(2, || {});
        let observers = slow(2);
        let copy = CopyOp::new().threads(1);
        let target = |engine| match engine == missing_at {
            true => Dest::Into(at("missing")),
            false => Dest::Into(at("target")),
        };
        let summaries = hub.run(&observers, |engine, observer, desk| match engine {
            0 => copy.lead([at("s")], &target(0), observer, desk),
            _ => copy.assist([at("s")], &target(1), observer, desk),
        });
        let (entries, failed) = [(0, 1), (BUILT, 0)][missing_at];
        assert_eq!(totals(&summaries), (entries, failed));
        assert_eq!(summaries[1].entries + summaries[1].failures, 0);
        if missing_at == 1 {
            assert!(hub.not_reached() > 0);
            assert_same_tree(at("s"), at("target/s"), plain());
        }
    }
}

#[test]
fn linked_files_fail_if_their_home_cannot_reach_them() {
    let scratch = Scratch::in_memory();
    let at = |name: &str| scratch.path().join(name);
    build_linked(&at("s"), 10, 3);
    fs::write(at("s/alone"), "has one name").unwrap();
    let hub = Hub::new(2, || {}).with_home(1);
    let observers = slow(2);
    let copy = archive().threads(1);
    let summaries = hub.run(&observers, |engine, observer, desk| match engine {
        0 => copy.lead([at("s")], &exactly(at("d")), observer, desk),
        _ => copy.assist([at("missing")], &exactly(at("d")), observer, desk),
    });
    assert_eq!(totals(&summaries), (1 + 10 + 1, 30));
    let mut reported = failures(observers);
    reported.sort_by(|a, b| a.path.cmp(&b.path));
    let names = (0..10).flat_map(|directory| (0..3).map(move |file| format!("{directory}/{file}")));
    let expected = names.map(|name| {
        let dest = at("d").join(&name);
        Failure::failed(Operation::CreateHardLink, dest, Errno::STALE).and(at("s").join(&name))
    });
    assert_eq!(reported, expected.collect::<Vec<_>>());
    assert_eq!(Snapshot::of(at("d"), Attributes::NAMES).len(), 12);
    assert!(hub.entrusted() > 0);
}

#[test]
fn a_deep_tree_with_branches_is_shared() {
    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    comb(&source, 2_000, 2);
    let hub = Hub::new(3, || {});
    let copy = archive().threads(1);
    let summaries = hub.copy(&copy, &[&source], &exactly(&dest), &quick(3));
    assert_eq!(totals(&summaries), (1 + 2_000 * 7, 0));
    assert!(hub.stolen() > 0);
    assert_same_tree(&source, &dest, all_but_atime());
}

#[test]
fn a_chain_of_directories_stays_with_one_engine() {
    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    chain(&source, 50_000);
    let hub = Hub::new(3, || {});
    let summaries = hub.copy(&archive(), &[&source], &exactly(&dest), &quick(3));
    assert_eq!(totals(&summaries), (50_001, 0));
    assert_eq!(hub.stolen(), 0);
    assert_eq!(Snapshot::of(&dest, Attributes::NAMES).len(), 50_001);
}

#[test]
fn the_directories_of_a_wide_directory_are_shared() {
    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    wide_dirs(&source, 20_000);
    let hub = Hub::new(3, || {});
    let copy = archive().threads(1);
    let summaries = hub.copy(&copy, &[&source], &exactly(&dest), &quick(3));
    assert_eq!(totals(&summaries), (20_001, 0));
    assert!(hub.stolen() > 0);
    assert_same_tree(&source, &dest, all_but_atime());
}

#[test]
fn each_engine_verifies_and_writes_what_it_has_copied() {
    for engines in [2, 3] {
        let twins = Twins::new();
        build(&twins.source());
        build_linked(&twins.source().join("linked"), 10, 20);
        let tree = Tree::at(twins.source());
        for number in 0..3 {
            tree.file(format!("large/{number}/file"), vec![number; 5 << 20]);
        }
        let hub = Hub::new(engines, || {});
        let copy = archive().threads(1).verify(true).durable(true);
        twins.assert_alike(&hub, &copy, all_but_atime());
        assert!(hub.stolen() > 0 && hub.entrusted() > 0);
    }
}

/// Changes the dest of one file that this engine has copied, and collects failures.
struct Spoils {
    failures: Mutex<Vec<Error>>,
    spoilt: Mutex<Option<PathBuf>>,
    is_wanted: AtomicBool,
}

impl Observer for Spoils {
    fn failed(&self, error: Error) {
        self.failures.failed(error);
    }

    fn wants_events(&self) -> bool {
        true
    }

    fn on_event(&self, event: Event<'_>) {
        thread::sleep(Duration::from_micros(300));
        if let Event::Copied { dest, .. } | Event::CopiedContent { dest, .. } = event
            && dest.is_file()
            && self.is_wanted.swap(false, Ordering::Relaxed)
        {
            fs::write(dest, "spoilt").unwrap();
            *self.spoilt.lock().unwrap() = Some(dest.to_owned());
        }
    }
}

#[test]
fn an_engine_that_assists_reports_a_copy_that_differs() {
    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    build(&source);
    let observers = [false, true].map(|is_wanted| Spoils {
        failures: Mutex::default(),
        spoilt: Mutex::default(),
        is_wanted: AtomicBool::new(is_wanted),
    });
    let hub = Hub::new(2, || {});
    let copy = CopyOp::new().threads(1).verify(true);
    let summaries = hub.copy(&copy, &[&source], &exactly(&dest), &observers);
    assert_eq!(totals(&summaries), (BUILT, 1));
    let [_, assistant] = observers;
    let spoilt = assistant
        .spoilt
        .into_inner()
        .unwrap()
        .expect("it copied a file");
    let found = assistant.failures.into_inner().unwrap();
    let original = source.join(spoilt.strip_prefix(&dest).unwrap());
    let expected = Failure::refused(Refusal::Different, &spoilt).and(original);
    assert_eq!(
        found.iter().map(Failure::of).collect::<Vec<_>>(),
        [expected]
    );
}

#[test]
fn a_cancelled_run_ends_although_entries_are_away() {
    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    for number in 0..20 {
        build(&source.join(number.to_string()));
    }
    build_linked(&source.join("linked"), 20, 50);
    let entries = Snapshot::of(&source, Attributes::NAMES).len();
    let cancel = Cancel::new();
    let hub = Hub::new(3, || cancel.cancel());
    let copy = archive().threads(2).verify(true).cancelled_by(&cancel);
    let observers = slow(3);
    let summaries = hub.copy(&copy, &[&source], &exactly(&dest), &observers);
    assert!(summaries[0].cancelled);
    assert!(failures(observers).is_empty());
    assert!(totals(&summaries).0 < entries);
}

#[test]
fn an_engine_that_is_cancelled_alone_leaves_its_part() {
    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    build(&source);
    build_linked(&source, 20, 5);
    let cancel = Cancel::new();
    cancel.cancel();
    let hub = Hub::new(2, || {}).with_home(1);
    let observers = slow(2);
    let summaries = hub.run(&observers, |engine, observer: &Slow, desk: &Desk<'_, _>| {
        let copy = archive().threads(1);
        match engine {
            0 => copy.lead([&source], &exactly(&dest), observer, desk),
            _ => copy
                .cancelled_by(&cancel)
                .assist([&source], &exactly(&dest), observer, desk),
        }
    });
    assert!(hub.stolen() > 0 && hub.entrusted() > 0);
    assert_eq!(summaries[1].entries, 0);
    assert!(summaries[1].cancelled && !summaries[0].cancelled);
    assert!(failures(observers).is_empty());
    for number in 0..20 {
        assert!(!dest.join(format!("{number}/3")).exists());
    }
}

#[test]
fn links_that_replace_directories_while_engines_work_lead_nowhere() {
    let arena = or_skip!(Arena::new());
    let mut changed_hands = 0;
    for side in ["s", "d"] {
        for _ in 0..10 {
            let [source, dest] = ["s", "d"].map(|name| arena.at(name));
            build(&source);
            build_linked(&source.join("linked"), 10, 10);
            let decoy = arena.at("decoy");
            let swaps = AtomicUsize::new(0);
            let hub = Hub::new(3, || {
                let number = swaps.fetch_add(7, Ordering::Relaxed) % DIRS;
                let _ = symlink(arena.outside(), &decoy);
                let victim = match number % 4 {
                    0 => arena.at(side).join(format!("linked/{}", number / 4)),
                    _ => arena.at(side).join(number.to_string()),
                };
                let _ = exchange(victim, &decoy);
            });
            let copy = archive().threads(1);
            hub.copy(&copy, &[&source], &exactly(&dest), &slow(3));
            changed_hands += hub.stolen() + hub.entrusted();
            arena.assert_outside_is_untouched();
            assert_nothing_from_outside(&dest);
            for left in [&source, &dest, &decoy] {
                remove_for_sure(left).unwrap();
            }
        }
    }
    assert!(changed_hands > 40);
}

#[test]
fn links_that_are_planted_before_entries_arrive_are_not_written_through() {
    for attributes_only in [false, true] {
        let arena = or_skip!(Arena::new());
        let [source, dest] = ["s", "d"].map(|name| arena.at(name));
        build_linked(&source, 10, 10);
        let planted = AtomicUsize::new(0);
        let hub = Hub::new(2, || {
            for number in 0..100 {
                let name = format!("{}/{}", number / 10, number % 10);
                let planting = symlink(arena.outside().join("marked3"), dest.join(name));
                planted.fetch_add(usize::from(planting.is_ok()), Ordering::Relaxed);
            }
        });
        let copy = archive().attributes_only(attributes_only).threads(1);
        hub.copy(&copy, &[&source], &exactly(&dest), &slow(2));
        assert!(hub.entrusted() > 0);
        assert!(planted.into_inner() > 0);
        arena.assert_outside_is_untouched();
    }
}

#[test]
fn a_directory_that_replaces_the_parent_at_the_dest_is_not_taken_for_it() {
    let arena = or_skip!(Arena::new());
    let [source, dest, moved] = ["s", "d", "moved"].map(|name| arena.at(name));
    build(&source.join("top"));
    let hub = Hub::new(2, || {
        // Another directory takes the place of the parent.
        if !moved.exists() {
            fs::rename(dest.join("top"), &moved).unwrap();
            fs::create_dir(dest.join("top")).unwrap();
        }
    });
    let copy = CopyOp::new().threads(1);
    let summaries = hub.copy(&copy, &[&source], &exactly(&dest), &slow(2));
    assert!(hub.not_reached() > 0);
    assert_eq!(totals(&summaries), (1 + BUILT, 0));
    // The victim has filled the directory that it had made.
    assert_same_tree(source.join("top"), &moved, plain());
    assert_eq!(Snapshot::of(&dest, Attributes::NAMES).len(), 2);
}

#[test]
fn a_linked_source_that_is_replaced_by_a_file_of_another_home_is_not_copied() {
    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    let tree = Tree::at(scratch.path());
    // The engine that lists is the home of one file, and the other engine of the other one.
    let [mut listed, mut other] = [None, None];
    for number in 0.. {
        let name = format!("file{number}");
        tree.file(&name, "content")
            .hardlink(&name, format!("{name}b"));
        let inode = fs::metadata(scratch.path().join(&name)).unwrap().ino();
        match inode % 2 {
            0 => other = Some(name),
            _ => listed = Some(name),
        }
        if listed.is_some() && other.is_some() {
            break;
        }
    }
    let (listed, other) = (listed.unwrap(), other.unwrap());
    tree.hardlink(&listed, "s/file").hardlink(&other, "other");
    let replaced = AtomicBool::new(false);
    let hub = Hub::new(2, || {
        if !replaced.swap(true, Ordering::Relaxed) {
            fs::rename(scratch.path().join("other"), source.join("file")).unwrap();
        }
    });
    let observers = slow(2);
    hub.copy(&archive(), &[&source], &exactly(&dest), &observers);
    assert_eq!(hub.entrusted(), 1);
    let expected = Failure::refused(Refusal::SourceReplaced, source.join("file"));
    assert_eq!(failures(observers), [expected]);
    assert!(!dest.join("file").exists());
}

/// Copies a tree with two engines, which must steal.
pub(crate) fn copy_with_two(source: PathBuf, dest: PathBuf) -> Counts {
    let hub = Hub::new(2, || {});
    let copy = archive().threads(1);
    let summaries = hub.copy(&copy, &[source], &exactly(dest), &quick(2));
    assert!(hub.stolen() > 0);
    assert_eq!(hub.not_reached(), 0);
    let (entries, failures) = totals(&summaries);
    (entries as u64, 0, failures)
}

#[test]
fn engines_share_a_deep_tree_with_few_descriptors() {
    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    comb(&source, 500, 2);
    build_linked(&source.join("linked"), 20, 20);
    let entries = Snapshot::of(&source, Attributes::NAMES).len();
    let report = child::share_copy(&source, &dest).nofile_limit(32).run();
    report.assert_complete(entries, 0);
    assert_same_tree(&source, &dest, all_but_atime());
}
