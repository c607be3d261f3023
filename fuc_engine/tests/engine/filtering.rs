//! Filters: the entries that a run is asked to leave alone.

use std::{
    collections::BTreeMap,
    fs, iter,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, Weak},
};

use fuc_engine::{
    Ask, Backup, Cancel, Candidate, CopyOp, Dereference, EnteredDirectory, Filter, Observer,
    Preserve, Refusal, RemoveOp, Summary, Verdict,
};
use rustix::io::Errno;
use testkit::{
    served,
    snapshot::{Attributes, Snapshot},
    tree::{Tree, comb, wide},
};

use crate::kit::{
    Failure, Limited as _, Person, Told, counts, entries_of, exactly, paths, places, told,
};

/// Runs without a failure.
#[track_caller]
fn succeeds(run: impl FnOnce(&dyn Observer) -> Summary) -> Summary {
    run(&Person::default())
}

/// Removes a tree, and returns the number of entries that were removed.
#[track_caller]
fn remove(options: RemoveOp<'static>, filter: impl Filter + 'static, path: &Path) -> u64 {
    let removal = options.filtered_by(filter);
    succeeds(|observer| removal.run(paths([path]), observer)).entries
}

/// Copies a tree, and returns the number of entries that were copied.
#[track_caller]
fn copy(options: CopyOp<'static>, filter: impl Filter + 'static, from: &Path, to: &Path) -> u64 {
    let copy = options.filtered_by(filter);
    succeeds(|observer| copy.run(paths([from]), &exactly(to), observer)).entries
}

/// Gives a verdict about the entries with this name, and takes all others.
fn about(name: &'static str, verdict: Verdict) -> impl Filter {
    move |entry: &Candidate<'_>| match entry.name() == name {
        true => verdict,
        false => Verdict::Take,
    }
}

/// Takes the entries of directories, but not the directories.
fn skips_directories(entry: &Candidate<'_>) -> Verdict {
    match entry.is_directory() {
        true => Verdict::Skip,
        false => Verdict::Take,
    }
}

fn names_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Counts the questions about each path.
#[derive(Clone, Default)]
struct Census(Arc<Mutex<BTreeMap<PathBuf, u32>>>);

impl Filter for Census {
    fn verdict(&self, entry: &Candidate<'_>) -> Verdict {
        *self
            .0
            .lock()
            .unwrap()
            .entry(entry.path_below_operand())
            .or_default() += 1;
        Verdict::Take
    }
}

#[test]
fn each_entry_is_asked_about_once() {
    for (number, ask) in [(1, Ask::Never), (4, Ask::Never), (4, Ask::Always)] {
        let (_scratch, source, dest) = places();
        wide(source.join("wide"), 2_000);
        comb(source.join("comb"), 100, 2);
        let entries = entries_of(&source);
        let is_asked = |census: &Census| {
            let asked = census.0.lock().unwrap();
            assert!(asked.values().all(|times| *times == 1));
            assert!(asked.contains_key(Path::new("wide")));
            // The operand itself is not asked about.
            assert_eq!(asked.len(), entries - 1, "{number} threads, {ask:?}");
        };
        let census = Census::default();
        let options = CopyOp::new().threads(number);
        let options = options.with(|copy| copy.rules.ask = ask == Ask::Always);
        let processed = copy(options, census.clone(), &source, &dest);
        assert_eq!(processed, entries as u64);
        is_asked(&census);

        let census = Census::default();
        let removal = RemoveOp::new()
            .threads(number)
            .with(|removal| removal.ask = ask);
        let removal = removal.filtered_by(census.clone());
        let summary = removal.run(paths([&source]), &Person::default());
        assert_eq!(counts(summary), (entries as u64, 0, 0));
        is_asked(&census);
    }
}

#[test]
fn a_removal_keeps_what_is_left_alone_and_the_directories_above() {
    for (name, verdict, gone, left) in [
        (
            "keep",
            Verdict::Prune,
            4,
            &["a", "a/b", "a/b/keep", "a/b/keep/file"][..],
        ),
        ("keep", Verdict::Skip, 5, &["a", "a/b", "a/b/keep"]),
        (
            "file",
            Verdict::Skip,
            4,
            &["a", "a/b", "a/b/keep", "a/b/keep/file"],
        ),
    ] {
        for number in [1, 4] {
            let (_scratch, top, _) = places();
            Tree::at(&top).plant("a/b/keep/file= a/b/gone= a/sibling/gone= gone=");
            let options = RemoveOp::new().threads(number);
            let processed = remove(options, about(name, verdict), &top);
            let there = Snapshot::of(&top, Attributes::NAMES);
            assert_eq!(
                (processed, there.len()),
                (gone, 1 + left.len()),
                "{name} {verdict:?}"
            );
            assert!(
                left.iter().all(|name| there.kind(name).is_some()),
                "{there:?}"
            );
        }
    }
}

#[test]
fn a_skipped_directory_is_made_for_its_entries_or_left_as_it_is() {
    let (_scratch, source, dest) = places();
    Tree::at(&source).plant("directory/taken= new/sub/file= new %700 directory %700");
    Tree::at(&dest).plant("directory/ %750");
    let options = CopyOp::new().with(|options| options.preserve = Preserve::all());
    copy(options, skips_directories, &source, &dest);
    assert_eq!(names_in(&dest.join("directory")), ["taken"]);
    assert_eq!(names_in(&dest.join("new/sub")), ["file"]);
    let mode = |name: &str| fs::metadata(dest.join(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("directory"), mode("new")), (0o750, 0o700));
}

#[test]
fn a_skipped_directory_does_not_replace_another_file() {
    let (_scratch, source, dest) = places();
    Tree::at(&source).dir("x");
    Tree::at(&dest).file("x", "was here");
    let copy = CopyOp::new()
        .with(|copy| {
            copy.rules.backup = Some(Backup::Simple);
        })
        .filtered_by(skips_directories);
    let told = told(|observer| copy.run(paths([&source]), &exactly(&dest), observer));
    let refused = Failure::refused(Refusal::NonDirectoryByDirectory, dest.join("x"));
    assert_eq!(
        told,
        Told::complete(0, 0).with([refused.and(source.join("x"))])
    );
    assert_eq!(names_in(&dest), ["x"]);
    assert_eq!(fs::read(dest.join("x")).unwrap(), b"was here");
}

#[test]
fn operations_may_share_a_filter_that_is_chosen_at_run_time() {
    let (_scratch, source, dest) = places();
    Tree::at(&source).plant("keep= other=");
    let census = Census::default();
    let filters: [Arc<dyn Filter>; 2] = [
        Arc::new(census.clone()),
        Arc::new(about("keep", Verdict::Prune)),
    ];
    for (filter, copied) in filters.iter().zip([&["keep", "other"][..], &["other"]]) {
        let copy = CopyOp::new().filtered_by(Arc::clone(filter));
        succeeds(|observer| copy.run(paths([&source]), &exactly(&dest), observer));
        assert_eq!(names_in(&dest), copied);
        let removal = RemoveOp::new().filtered_by(Arc::clone(filter));
        succeeds(|observer| removal.run(paths([&dest]), observer));
        assert!(!dest.exists());
    }
    assert_eq!(census.0.lock().unwrap()[Path::new("other")], 2);
}

#[test]
fn a_candidate_knows_its_type_and_its_paths() {
    let (_scratch, top, _) = places();
    Tree::at(&top).plant("sub/file= sub/link->file sub/fifo<fifo>");
    let seen = Arc::new(Mutex::new(BTreeMap::new()));
    let filter = {
        let (seen, top) = (Arc::clone(&seen), top.clone());
        move |entry: &Candidate<'_>| {
            let below = entry.path_below_operand();
            assert_eq!(entry.path(), top.join(&below));
            assert_eq!(below.file_name(), Some(entry.name()));
            let kind = (entry.is_directory(), entry.is_file(), entry.is_symlink());
            seen.lock().unwrap().insert(below, kind);
            Verdict::Take
        }
    };
    // A slash at the end of an operand does not get into the paths.
    let operand = PathBuf::from(format!("{}//", top.display()));
    remove(RemoveOp::new(), filter, &operand);
    let expected = [
        ("sub", (true, false, false)),
        ("sub/fifo", (false, false, false)),
        ("sub/file", (false, true, false)),
        ("sub/link", (false, false, true)),
    ];
    let expected = expected.map(|(path, kind)| (PathBuf::from(path), kind));
    assert_eq!(*seen.lock().unwrap(), BTreeMap::from(expected));
}

#[test]
fn a_filter_may_choose_by_size_and_by_type_of_what_a_copy_follows() {
    let (_scratch, source, dest) = places();
    // The size of a link is that of the name in it.
    Tree::at(&source).plant(
        "sub/large=12345 sub/small=1 sub/link->small sub/to-directory->../other other/12345=",
    );
    for (dereference, expected) in [
        (Dereference::Never, &["large", "link", "to-directory"][..]),
        (Dereference::Always, &["large", "to-directory"]),
    ] {
        let filter = |entry: &Candidate<'_>| {
            let metadata = entry.metadata().unwrap();
            assert_eq!(metadata.is_dir(), entry.is_directory());
            assert_eq!(metadata.is_file(), entry.is_file());
            assert_eq!(metadata.is_symlink(), entry.is_symlink());
            match entry.is_directory() || metadata.len() >= 5 {
                true => Verdict::Take,
                false => Verdict::Prune,
            }
        };
        let options = CopyOp::new().with(|options| options.dereference = dereference);
        copy(options, filter, &source, &dest);
        assert_eq!(names_in(&dest.join("sub")), expected, "{dereference:?}");
        fs::remove_dir_all(&dest).unwrap();
    }
}

/// Removes a tree, and returns the questions about it.
fn questions(filter: impl Filter + 'static, top: &Path) -> Vec<String> {
    let person = Person::default();
    let removal = RemoveOp::new().with(|removal| removal.ask = Ask::Always);
    let summary = removal.filtered_by(filter).run(paths([top]), &person);
    assert!(summary.is_complete());
    person.asked()
}

#[test]
fn the_entries_of_skipped_directories_are_asked_about_in_the_order_of_the_listing() {
    let (_scratch, top, _) = places();
    for number in 0..20 {
        Tree::at(&top).plant(format!("taken{number}=x skipped{number}/file{number}=x"));
    }
    let listed = fs::read_dir(&top)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let names = listed.map(|name| name.into_string().unwrap().replace("skipped", "file"));
    let expected = iter::once("descend Directory s".to_owned());
    let expected = expected.chain(names.map(|name| format!("remove File {name}")));
    let expected: Vec<_> = expected.collect();
    assert_eq!(questions(skips_directories, &top), expected);
    assert_eq!(names_in(&top).len(), 20);
}

#[test]
fn a_filter_does_not_open_what_a_link_leads_to_or_wait_for_a_writer() {
    struct Opens;
    impl Filter for Opens {
        fn verdict(&self, _: &Candidate<'_>) -> Verdict {
            Verdict::Take
        }

        fn for_directory(&self, directory: &EnteredDirectory<'_>) -> Option<Arc<dyn Filter>> {
            let open = |name: &str| {
                let opened = directory.open(name);
                opened.map_err(|error| Errno::from_io_error(&error).unwrap())
            };
            assert_eq!(open("link").unwrap_err(), Errno::LOOP);
            assert_eq!(open("missing").unwrap_err(), Errno::NOENT);
            assert_eq!(open("nul\0").unwrap_err(), Errno::INVAL);
            assert!(!open("fifo").unwrap().metadata().unwrap().is_file());
            assert_eq!(
                std::io::read_to_string(open("file").unwrap()).unwrap(),
                "content"
            );
            None
        }
    }
    let (_scratch, top, _) = places();
    Tree::at(&top).plant("file=content link->file fifo<fifo>");
    assert_eq!(remove(RemoveOp::new(), Opens, &top), 4);
}

/// Prunes the entries whose names are those of directories above them.
struct Nested {
    pruned: Option<PathBuf>,
    made: Arc<Mutex<Vec<Weak<Nested>>>>,
}

impl Filter for Nested {
    fn verdict(&self, entry: &Candidate<'_>) -> Verdict {
        match self.pruned.as_deref() == Some(Path::new(entry.name())) {
            true => Verdict::Prune,
            false => Verdict::Take,
        }
    }

    fn for_directory(&self, directory: &EnteredDirectory<'_>) -> Option<Arc<dyn Filter>> {
        let path = directory.path_below_operand();
        if path.as_os_str().is_empty() || !path.ends_with("inner") {
            return None;
        }
        let nested = Arc::new(Self {
            pruned: Some("file".into()),
            made: Arc::clone(&self.made),
        });
        self.made.lock().unwrap().push(Arc::downgrade(&nested));
        Some(nested)
    }
}

#[test]
fn a_directory_may_have_a_filter_of_its_own() {
    for number in [1, 4] {
        let (_scratch, top, _) = places();
        for dir in 0..40 {
            Tree::at(&top).plant(format!(
                "{dir}/inner/deep/file= {dir}/inner/gone= {dir}/outer/file="
            ));
        }
        let made = Arc::default();
        let filter = Nested {
            pruned: None,
            made: Arc::clone(&made),
        };
        let removal = RemoveOp::new().threads(number).filtered_by(filter);
        let summary = succeeds(|observer| removal.run(paths([&top]), observer));
        // In each directory: `inner/gone`, `outer/file` and `outer`.
        assert_eq!(summary.entries, 3 * 40);
        assert!(top.join("7/inner/deep/file").exists());
        // Filters do not outlive their directories, although the operation still exists.
        let made = made.lock().unwrap();
        assert_eq!(made.len(), 40);
        assert!(made.iter().all(|filter| filter.strong_count() == 0));
    }
}

#[test]
fn a_filesystem_that_skips_entries_is_listed_again_although_some_stay() {
    for number in [1, 4] {
        let mount = served!(skipping_lists: true);
        let top = mount.at("t");
        let stored = Tree::at(mount.stored_at("t"));
        for directory in ["sub", "skipped/sub"] {
            // The filesystem lists names in order, so the filter is asked about this one first.
            stored.plant(format!("{directory}/0-keep="));
            for file in 0..1_000 {
                stored.plant(format!("{directory}/a-file-with-a-long-name-{file}="));
            }
        }
        let filter = |entry: &Candidate<'_>| match entry.name().to_str() {
            Some("0-keep") => Verdict::Prune,
            Some("skipped") => Verdict::Skip,
            _ => Verdict::Take,
        };
        let processed = remove(RemoveOp::new().threads(number), filter, &top);
        assert_eq!(processed, 2 * 1_000, "{number} threads");
        assert_eq!(names_in(&top), ["skipped", "sub"]);
        for directory in ["sub", "skipped/sub"] {
            assert_eq!(names_in(&top.join(directory)), ["0-keep"]);
        }
    }
}

#[test]
fn a_run_that_its_filter_cancels_removes_nothing_more() {
    let (_scratch, top, _) = places();
    wide(&top, 1_000);
    let cancel = Cancel::new();
    let filter = {
        let cancel = cancel.clone();
        move |_: &Candidate<'_>| {
            cancel.cancel();
            Verdict::Take
        }
    };
    let removal = RemoveOp::new()
        .filtered_by(filter)
        .cancelled_by(cancel.clone());
    let summary = succeeds(|observer| removal.run(paths([&top]), observer));
    assert!(summary.cancelled);
    assert_eq!(summary.entries, 0);
    assert_eq!(names_in(&top).len(), 1_000);
}
