//! Copies that several engines share; see [`crate::hub`].
//!
//! Each test proves that entries changed hands: by their number, or because something happens at the moment at which
//! they do.

mod links;
mod mirrors;
mod operands;
mod races;

use std::{
    ffi::OsString,
    fs,
    io::read_to_string,
    os::unix::fs::{MetadataExt, symlink},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    thread,
    time::Duration,
};

use fuc_engine::{
    Candidate, CopyOp, Dereference, EnteredDirectory, Event, Execution, Filter, Preserve, Refusal,
    RemoveOp, Summary, Verdict,
};
use proptest::prelude::*;
use testkit::{
    skip,
    snapshot::{Attributes, Snapshot, assert_same_tree},
    tree::{Scratch, Tree, chain, comb, wide_dirs},
};

use crate::child;
use crate::hub::{Hub, Slow, failures_below, quick, slow_at_first, totals};
use crate::kit::{
    Counts, Failure, Limited as _, Meddler, Told, all_but_atime, assert_unchanged, exactly, paths,
    places, plain, told,
};
use crate::properties::{config, tree};
use crate::races::{BUILT, DIRS, build};

/// A place for two copies of one tree: by one engine, and by several.
pub(crate) struct Twins {
    scratch: Scratch,
}

impl Twins {
    pub(crate) fn new() -> Self {
        let scratch = Scratch::in_memory();
        Self { scratch }
    }

    pub(crate) fn source(&self) -> PathBuf {
        self.scratch.at("s")
    }

    /// The dest of one engine, and the dest of several.
    pub(crate) fn dests(&self) -> [PathBuf; 2] {
        ["alone", "together"].map(|name| self.scratch.at(name).join("d"))
    }

    /// Copies the tree by one engine and by `engines`, and compares trees, totals and failures. Returns the hub and summaries
    /// of the latter.
    pub(crate) fn copy_alike(
        &self,
        engines: usize,
        copy: &CopyOp,
        attributes: Attributes,
    ) -> SharedRun {
        let hub = Hub::new(engines, (|| {}) as fn());
        let summaries = self.assert_alike(&hub, copy, attributes);
        (hub, summaries)
    }

    /// Does the same by the engines of a hub, and returns their summaries.
    pub(crate) fn assert_alike<F: Fn() + Sync>(
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
        let expected = told(|observer| copy.run(paths([&source]), &exactly(&alone), observer));
        let (summaries, failures) = hub.copy(copy, &[&source], &exactly(&together));
        assert_alike([&alone, &together], &expected, &summaries, &failures);
        assert_same_tree(&alone, &together, attributes);
        summaries
    }
}

/// Compares totals and failures of one engine, which has worked below the first root, and of several.
#[track_caller]
fn assert_alike(roots: [&Path; 2], one: &Told, several: &[Summary], failures: &[Failure]) {
    let (entries, _, failed) = one.counts;
    assert_eq!(totals(several), (entries as usize, failed));
    let expected = failures_below(roots[0], &one.failures);
    assert_eq!(failures_below(roots[1], failures), expected);
}

/// Returns a copy that keeps everything, as `cp -a` does.
pub(crate) fn archive() -> CopyOp<'static> {
    CopyOp::new().with(|copy| copy.preserve = Preserve::all())
}

/// Returns a copy that follows all links, and keeps everything.
fn following() -> CopyOp<'static> {
    archive().with(|copy| copy.dereference = Dereference::Always)
}

/// Makes files that have a name in each of several directories.
fn build_linked(root: &Path, directories: usize, files: usize) {
    let tree = Tree::at(root);
    for file in 0..files {
        tree.plant(format!("0/{file}='content {file}'"));
        for directory in 1..directories {
            tree.plant(format!("{directory}/{file}==0/{file}"));
        }
    }
}

#[test]
fn engines_steal_and_copy_a_tree_together() {
    for threads in [1, 4] {
        let twins = Twins::new();
        build(&twins.source());
        let copy = CopyOp::new().threads(threads);
        let (hub, summaries) = twins.copy_alike(4, &copy, plain());
        assert_eq!(totals(&summaries), (BUILT, 0));
        hub.assert_assisted(&summaries);
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn engines_copy_and_remove_random_trees(
        tree in tree(), links in any::<bool>(), engines in 2..5usize, threads in 1..3usize,
    ) {
        let twins = Twins::new();
        tree.build(&twins.source());
        if links {
            build_linked(&twins.source().join("linked"), 5, 9);
        }
        let entries = Snapshot::of(twins.source(), plain()).len();
        let (hub, _) = twins.copy_alike(engines, &archive().threads(threads), all_but_atime());
        assert_same_tree(twins.source(), &twins.dests()[1], all_but_atime());
        prop_assert_eq!(hub.not_reached(), 0);
        prop_assert_eq!(hub.entrusted() > 0, links);

        let hub = Hub::new(engines, || {});
        let removal = RemoveOp::new().threads(threads);
        let (summaries, _) = hub.remove(&removal, &twins.dests()[1..]);
        assert_eq!(totals(&summaries), (entries, 0));
        prop_assert!(!twins.dests()[1].exists());
    }
}

/// A hub that has served, and the summaries of its engines.
pub(crate) type SharedRun = (Hub<fn()>, Vec<Summary>);

/// Copies `source` to `dest` with several engines, and removes the source with them.
fn copy_and_remove(
    engines: usize,
    source: &Path,
    dest: &Path,
    observe: fn(usize) -> Vec<Slow>,
) -> [SharedRun; 2] {
    let [copying, removing] = [(); 2].map(|()| Hub::new(engines, (|| {}) as fn()));
    let copied = copying.copy_observed(
        &archive().threads(1),
        &[source],
        &exactly(dest),
        &observe(engines),
    );
    let removal = RemoveOp::new().threads(1);
    let removed = removing.remove_observed(&removal, &[source], &observe(engines));
    [(copying, copied), (removing, removed)]
}

#[test]
#[ignore = "slow"]
fn very_deep_and_wide_trees_are_shared_if_they_have_branches() {
    const SIZE: usize = 8_000;
    type Build = fn(&Path, usize);
    let rows: [(&str, Build, bool); 3] = [
        (
            "a chain stays with one engine",
            |at, size| chain(at, size),
            false,
        ),
        (
            "a deep tree with branches",
            |at, size| comb(at, size / 10, 2),
            true,
        ),
        (
            "many directories in one",
            |at, size| wide_dirs(at, size / 2),
            true,
        ),
    ];
    for (shape, build, is_shared) in rows {
        let (_scratch, source, dest) = places();
        build(&source, SIZE);
        let before = Snapshot::of(&source, all_but_atime());
        let observe = if is_shared { slow_at_first } else { quick };
        for (hub, summaries) in copy_and_remove(4, &source, &dest, observe) {
            assert_eq!(totals(&summaries), (before.len(), 0), "{shape}");
            assert_eq!(hub.stolen() > 0, is_shared, "{shape}");
        }
        assert_unchanged(&before, &dest, all_but_atime());
        assert!(!source.exists(), "{shape}");
    }
}

#[test]
fn directories_get_their_times_and_modes_after_everything_below() {
    let twins = Twins::new();
    let tree = Tree::at(twins.source());
    build(tree.path());
    for number in 0..DIRS {
        tree.plant(format!("{number}/sub %500 @1000"))
            .select(number.to_string())
            .mode(0o1700)
            .mtime(Duration::from_secs(2_000));
    }
    tree.select("").mtime(Duration::from_secs(3_000));
    let (hub, _) = twins.copy_alike(3, &archive().threads(1), all_but_atime());
    assert_same_tree(tree.path(), &twins.dests()[1], all_but_atime());
    assert!(hub.stolen() > 0);
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
    let copy = following()
        .with(|copy| copy.preserve = Preserve::default())
        .threads(1);
    let (hub, summaries) = twins.copy_alike(3, &copy, plain());
    assert_eq!(totals(&summaries).1, 3 * DIRS as u64);
    assert!(hub.stolen() > 0);
}

#[test]
fn dests_that_are_in_the_way_are_reported_once() {
    let twins = Twins::new();
    build(&twins.source());
    for dest in twins.dests() {
        let tree = Tree::at(dest);
        for number in (0..DIRS).step_by(3) {
            tree.plant(format!(
                "{number}/sub='in the way' {number}/file=old {number}/more=stays"
            ));
        }
        tree.plant("1='in the way' 2/file/");
    }
    let copy = CopyOp::new().threads(1);
    let (hub, summaries) = twins.copy_alike(3, &copy, plain());
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
        let copy = CopyOp::new()
            .threads(1)
            .with(|copy| copy.rules.follow_links_to_directories = keeps);
        let (hub, summaries) = twins.copy_alike(3, &copy, plain());
        assert_eq!(totals(&summaries).1 == 0, keeps);
        assert!(hub.stolen() > 0);
    }
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
    tree.plant("a/skip=sub b/5/sub/skip=file");
    let copy = archive().threads(1).filtered_by(SkipFiles::default());
    let (hub, _) = twins.copy_alike(3, &copy, all_but_atime());
    assert!(hub.stolen() > 0 && hub.entrusted() > 0);
    let dest = Snapshot::of(&twins.dests()[1], Attributes::NAMES);
    assert_eq!(dest.kind("a/7/sub"), None);
    assert!(dest.kind("b/7/sub/file").is_some());
    assert_eq!(dest.kind("b/5/sub/file"), None);
}

#[test]
fn directories_on_other_filesystems_stay_empty_if_that_is_asked_for() {
    let elsewhere = Scratch::new_in(&std::env::temp_dir());
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
    let copy = following().with(|copy| copy.preserve = Preserve::default());
    let copy = copy.with(|copy| copy.one_file_system = true).threads(1);
    let (hub, summaries) = twins.copy_alike(3, &copy, plain());
    assert_eq!(totals(&summaries), (BUILT + DIRS, 0));
    assert!(hub.stolen() > 0);
}

#[test]
fn a_dry_run_is_made_by_the_leader() {
    let twins = Twins::new();
    build(&twins.source());
    build_linked(&twins.source().join("linked"), 10, 10);
    let before = Snapshot::of(twins.source(), all_but_atime());
    let dest = twins.scratch.at("d");
    let copy = archive().with(|copy| copy.execution = Execution::DryRun);
    let removal = RemoveOp::new().with(|removal| removal.execution = Execution::DryRun);
    let [copying, removing] = [(); 2].map(|()| Hub::new(2, || {}));
    let (copied, _) = copying.copy(&copy, &[twins.source()], &exactly(&dest));
    let (removed, _) = removing.remove(&removal, &[twins.source()]);
    for (hub, summaries) in [(copying, copied), (removing, removed)] {
        assert_eq!(totals(&summaries), (before.len(), 0));
        assert_eq!(summaries[1].entries, 0);
        assert_eq!((hub.stolen(), hub.entrusted()), (0, 0));
    }
    assert!(!dest.exists());
    assert_unchanged(&before, twins.source(), all_but_atime());
}

#[test]
fn the_entries_of_a_wide_directory_are_shared_with_their_types_and_links() {
    for threads in [1, 2] {
        let twins = Twins::new();
        let tree = Tree::at(twins.source());
        for number in 0..100 {
            tree.plant(format!("{number}='content {number}' twin{number}=={number} link{number}->17 fifo{number}<fifo>
                dir{number}/below="));
        }
        let filter = |entry: &Candidate<'_>| match entry.name().as_encoded_bytes() {
            b"dir3" | b"dir50" => Verdict::Skip,
            b"fifo7" => Verdict::Prune,
            _ => Verdict::Take,
        };
        let copy = archive().threads(threads).filtered_by(filter);
        let (_, summaries) = twins.copy_alike(3, &copy, all_but_atime());
        let shares = summaries.iter().map(|it| it.files);
        assert!(shares.clone().all(|it| it > 0), "{threads}: {shares:?}");
        let dest = Snapshot::of(&twins.dests()[1], Attributes::NAMES | Attributes::LINKS);
        assert!(dest.kind("dir50/below").is_some());
        assert_eq!(dest.kind("fifo7"), None);
    }
}

#[test]
#[ignore = "slow"]
fn each_engine_verifies_and_writes_what_it_has_copied() {
    let twins = Twins::new();
    build(&twins.source());
    build_linked(&twins.source().join("linked"), 10, 20);
    let tree = Tree::at(twins.source());
    for number in 0..3 {
        tree.file(format!("large/{number}/file"), vec![number; 5 << 20]);
    }
    let copy = archive()
        .threads(1)
        .with(|copy| (copy.verify, copy.durable) = (true, true));
    let (hub, _) = twins.copy_alike(4, &copy, all_but_atime());
    assert!(hub.stolen() > 0 && hub.entrusted() > 0);
}

#[test]
fn an_engine_that_assists_reports_a_copy_that_differs() {
    let (_scratch, source, dest) = places();
    build(&source);
    // Changes the dest of one file that the second engine has copied.
    let spoilt = OnceLock::new();
    let observers = [false, true].map(|spoils| {
        let spoilt = &spoilt;
        Meddler::new(move |event| {
            thread::sleep(Duration::from_micros(300));
            if let Event::Copied { dest, .. } = event
                && dest.is_file()
                && spoils
                && spoilt.set(dest.to_owned()).is_ok()
            {
                fs::write(dest, "spoilt").unwrap();
            }
        })
    });
    let hub = Hub::new(2, || {});
    let copy = CopyOp::new().threads(1).with(|copy| copy.verify = true);
    let summaries = hub.copy_observed(&copy, &[&source], &exactly(&dest), &observers);
    assert_eq!(totals(&summaries), (BUILT, 1));
    let [_, assistant] = observers;
    let told = assistant.told(summaries[1]);
    let spoilt = spoilt.get().expect("it copied a file");
    let original = source.join(spoilt.strip_prefix(&dest).unwrap());
    let expected = Failure::refused(Refusal::Different, spoilt).and(original);
    assert_eq!(told.failures, [expected]);
}

/// Copies a tree with two engines, and removes it with them. They must steal. Returns the sum.
pub(crate) fn copy_and_remove_with_two(source: &Path, dest: &Path) -> Counts {
    let mut sum = (0, 0, 0);
    for (hub, summaries) in copy_and_remove(2, source, dest, slow_at_first) {
        hub.assert_shared();
        let (entries, failures) = totals(&summaries);
        sum = (sum.0 + entries as u64, 0, sum.2 + failures);
    }
    sum
}

#[test]
fn engines_share_a_deep_tree_with_few_descriptors() {
    let (_scratch, source, dest) = places();
    comb(&source, 150, 2);
    build_linked(&source.join("linked"), 20, 20);
    let before = Snapshot::of(&source, all_but_atime());
    let report = child::share(&source, &dest).nofile_limit(32).run();
    report.assert_complete(2 * before.len(), 0);
    assert_unchanged(&before, &dest, all_but_atime());
    assert!(!source.exists());
}
