//! Filters: the entries that a run is asked to leave alone.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use fuc_engine::{
    Ask, Backup, Cancel, Candidate, CopyOp, Dereference, EnteredDirectory, Error, Filter, Observer,
    Preserve, Question, Refusal, RemoveOp, Summary, Verdict,
};
use rustix::io::Errno;
use testkit::or_skip;
use testkit::probe::{FuseMount, Habits};
use testkit::snapshot::{Attributes, Snapshot};
use testkit::tree::{Scratch, Tree, comb, wide};

use crate::kit::{Failure, Told, assert_unchanged, counts, exactly, paths, threads};

/// Runs without a failure.
#[track_caller]
fn succeeds(run: impl FnOnce(&dyn Observer) -> Summary) -> Summary {
    let failures = Mutex::new(Vec::<Error>::new());
    let summary = run(&failures);
    assert_eq!(summary.failures, 0, "{failures:?}");
    summary
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
    for number in [1, 4] {
        for ask in [Ask::Never, Ask::Always] {
            let scratch = Scratch::in_memory();
            let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
            wide(source.join("wide"), 5_000);
            comb(source.join("comb"), 200, 2);
            let entries = Snapshot::of(&source, Attributes::NAMES).len();
            let asked_by = |census: &Census| {
                let asked = census.0.lock().unwrap();
                assert!(asked.values().all(|times| *times == 1));
                assert!(asked.contains_key(Path::new("wide")));
                // The operand itself is not asked about.
                assert_eq!(asked.len(), entries - 1, "{number} threads, {ask:?}");
            };
            let census = Census::default();
            let options = CopyOp::new().with(|options| {
                options.threads = threads(number);
                options.rules.ask = ask == Ask::Always;
            });
            let processed = copy(options, census.clone(), &source, &dest);
            assert_eq!(processed, entries as u64);
            asked_by(&census);

            let census = Census::default();
            let options = RemoveOp::new().with(|options| {
                options.threads = threads(number);
                options.ask = ask;
            });
            let removal = options.filtered_by(census.clone());
            let summary = removal.run(paths([&source]), &Agrees::default());
            assert_eq!(counts(summary), (entries as u64, 0, 0));
            asked_by(&census);
        }
    }
}

/// Answers yes, and keeps the questions.
#[derive(Default)]
struct Agrees(Mutex<Vec<String>>);

impl Observer for Agrees {
    fn failed(&self, error: Error) {
        panic!("{error}");
    }

    fn confirm(&self, question: Question<'_>) -> bool {
        let (what, target) = match question {
            Question::Remove(target) => ("remove", target),
            Question::Descend(target) => ("descend", target),
            other => panic!("{other:?}"),
        };
        let name = target.path.file_name().unwrap().to_str().unwrap();
        self.0.lock().unwrap().push(format!("{what} {name}"));
        true
    }
}

#[test]
fn a_removal_keeps_what_is_left_alone_and_the_directories_above() {
    for verdict in [Verdict::Skip, Verdict::Prune] {
        for number in [1, 4] {
            let scratch = Scratch::new();
            let top = scratch.path().join("t");
            Tree::at(&top)
                .file("a/b/keep", "")
                .file("a/b/gone", "")
                .file("a/sibling/gone", "")
                .file("gone", "");
            let options = RemoveOp::new().with(|options| options.threads = threads(number));
            let processed = remove(options, about("keep", verdict), &top);
            assert_eq!(processed, 4);
            assert_eq!(names_in(&top), ["a"]);
            assert_eq!(names_in(&top.join("a")), ["b"]);
            assert_eq!(names_in(&top.join("a/b")), ["keep"]);
        }
    }
}

#[test]
fn a_pruned_directory_keeps_its_content_and_a_skipped_one_itself() {
    let build = || {
        let scratch = Scratch::new();
        Tree::at(scratch.path().join("t"))
            .file("keep/sub/file", "")
            .file("keep/file", "");
        scratch
    };
    let scratch = build();
    let before = Snapshot::of(scratch.path().join("t"), Attributes::NAMES);
    let pruned = about("keep", Verdict::Prune);
    let processed = remove(RemoveOp::new(), pruned, &scratch.path().join("t"));
    assert_eq!(processed, 0);
    assert_unchanged(&before, scratch.path().join("t"), Attributes::NAMES);

    let scratch = build();
    let skipped = about("keep", Verdict::Skip);
    let processed = remove(RemoveOp::new(), skipped, &scratch.path().join("t"));
    assert_eq!(processed, 3);
    let keep = scratch.path().join("t/keep");
    assert_eq!(names_in(&keep), [""; 0]);
}

#[test]
fn a_copy_leaves_out_what_is_not_taken() {
    for number in [1, 4] {
        let scratch = Scratch::new();
        let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
        Tree::at(&source)
            .file("d/no", "")
            .file("d/yes", "x")
            .file("pruned/file", "");
        Tree::at(&dest).file("d/no", "was here").file("pruned", "");
        let before = Snapshot::of(dest.join("pruned"), Attributes::SIZE);
        let filter = |entry: &Candidate<'_>| match entry.name().to_str() {
            Some("pruned" | "no") => Verdict::Prune,
            _ => Verdict::Take,
        };
        let options = CopyOp::new().with(|options| options.threads = threads(number));
        let processed = copy(options, filter, &source, &dest);
        assert_eq!(processed, 3);
        assert_eq!(fs::read(dest.join("d/no")).unwrap(), b"was here");
        assert_eq!(names_in(&dest.join("d")), ["no", "yes"]);
        assert_unchanged(&before, dest.join("pruned"), Attributes::SIZE);
    }
}

#[test]
fn a_copy_makes_a_skipped_directory_for_its_entries() {
    let scratch = Scratch::new();
    let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    Tree::at(&source).file("d/sub/file", "").file("d/no", "");
    let filter = |entry: &Candidate<'_>| match entry.is_directory() || entry.name() == "no" {
        true => Verdict::Skip,
        false => Verdict::Take,
    };
    copy(CopyOp::new(), filter, &source, &dest);
    assert_eq!(names_in(&dest.join("d")), ["sub"]);
    assert_eq!(names_in(&dest.join("d/sub")), ["file"]);
}

#[test]
fn a_skipped_directory_leaves_an_existing_dest_as_it_is() {
    let scratch = Scratch::new();
    let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    Tree::at(&source)
        .file("directory/taken", "")
        .dir("new")
        .mode(0o700)
        .select("directory")
        .mode(0o700);
    Tree::at(&dest).dir("directory").mode(0o750);
    let options = CopyOp::new().with(|options| options.preserve = Preserve::all());
    copy(options, skips_directories, &source, &dest);
    assert_eq!(names_in(&dest.join("directory")), ["taken"]);
    let mode = |name: &str| fs::metadata(dest.join(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("directory"), mode("new")), (0o750, 0o700));
}

#[test]
fn a_skipped_directory_does_not_replace_another_file() {
    let scratch = Scratch::new();
    let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    Tree::at(&source).dir("x");
    Tree::at(&dest).file("x", "was here");
    let copy = CopyOp::new()
        .with(|copy| {
            copy.rules.backup = Some(Backup::Simple);
        })
        .filtered_by(skips_directories);
    let failures = Mutex::new(Vec::new());
    let summary = copy.run(paths([&source]), &exactly(&dest), &failures);
    let refused = Failure::refused(Refusal::NonDirectoryByDirectory, dest.join("x"));
    let told = Told::new(summary, failures);
    assert_eq!(
        told,
        Told::complete(1, 0).with([refused.and(source.join("x"))])
    );
    assert_eq!(names_in(&dest), ["x"]);
    assert_eq!(fs::read(dest.join("x")).unwrap(), b"was here");
}

#[test]
fn a_directory_into_which_a_copy_goes_may_be_left_out() {
    let scratch = Scratch::new();
    let source = scratch.path().join("s");
    Tree::at(&source).file("file", "").dir("backup");
    let filter = about("backup", Verdict::Prune);
    copy(CopyOp::new(), filter, &source, &source.join("backup/s"));
    assert_eq!(names_in(&source.join("backup/s")), ["file"]);
}

#[test]
fn operations_may_share_a_filter_that_is_chosen_at_run_time() {
    let scratch = Scratch::new();
    let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    Tree::at(&source).file("keep", "").file("other", "");
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
fn an_operand_is_not_filtered() {
    let scratch = Scratch::new();
    let top = scratch.path().join("t");
    Tree::at(&top).dir(".");
    remove(RemoveOp::new(), about("t", Verdict::Prune), &top);
    assert!(!top.exists());
}

#[test]
fn a_candidate_knows_its_type_and_its_paths() {
    let scratch = Scratch::new();
    let top = scratch.path().join("t");
    Tree::at(&top)
        .file("sub/file", "")
        .symlink("sub/link", "file")
        .fifo("sub/fifo");
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
fn a_filter_may_choose_by_size() {
    let scratch = Scratch::new();
    let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    // The size of a link is that of the name in it.
    Tree::at(&source)
        .file("sub/large", "12345")
        .file("sub/small", "1")
        .symlink("sub/link", "small");
    for (dereference, expected) in [
        (Dereference::Never, &["large", "link"][..]),
        (Dereference::Always, &["large"]),
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

#[test]
fn a_link_to_a_directory_is_a_directory_if_a_copy_follows_it() {
    let scratch = Scratch::new();
    let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    Tree::at(&source)
        .file("dir/file", "")
        .symlink("link", "dir");
    for (dereference, expected) in [
        (Dereference::Never, &["link"][..]),
        (Dereference::Always, &[][..]),
    ] {
        let options = CopyOp::new().with(|options| options.dereference = dereference);
        let filter = |entry: &Candidate<'_>| match entry.is_directory() {
            true => Verdict::Prune,
            false => Verdict::Take,
        };
        copy(options, filter, &source, &dest);
        assert_eq!(names_in(&dest), expected, "{dereference:?}");
        fs::remove_dir_all(&dest).unwrap();
    }
}

#[test]
fn the_user_is_not_asked_about_directories_that_stay() {
    let scratch = Scratch::new();
    let top = scratch.path().join("t");
    Tree::at(&top).file("d/keep", "").file("d/e/gone", "");
    let options = RemoveOp::new().with(|options| options.ask = Ask::Always);
    let agrees = Agrees::default();
    let removal = options.filtered_by(about("keep", Verdict::Prune));
    assert!(removal.run(paths([&top]), &agrees).is_complete());
    let expected = [
        "descend t",
        "descend d",
        "descend e",
        "remove gone",
        "remove e",
    ];
    assert_eq!(agrees.0.into_inner().unwrap(), expected);
    assert_eq!(names_in(&top.join("d")), ["keep"]);
}

#[test]
fn the_user_is_not_asked_about_a_skipped_directory() {
    let scratch = Scratch::new();
    let top = scratch.path().join("t");
    Tree::at(&top).file("keep/gone", "").dir("keep/empty");
    let options = RemoveOp::new().with(|options| options.ask = Ask::Always);
    let agrees = Agrees::default();
    let removal = options.filtered_by(about("keep", Verdict::Skip));
    assert!(removal.run(paths([&top]), &agrees).is_complete());
    let mut asked = agrees.0.into_inner().unwrap();
    asked.sort();
    assert_eq!(asked, ["descend t", "remove empty", "remove gone"]);
    assert_eq!(names_in(&top.join("keep")), [""; 0]);
}

#[test]
fn the_entries_of_skipped_directories_are_asked_about_in_the_order_of_the_listing() {
    let scratch = Scratch::new();
    let top = scratch.path().join("t");
    for number in 0..20 {
        Tree::at(&top)
            .file(format!("taken{number}"), "")
            .file(format!("skipped{number}/file{number}"), "");
    }
    let expected: Vec<_> = fs::read_dir(&top)
        .unwrap()
        .map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            format!("remove {}", name.replace("skipped", "file"))
        })
        .collect();
    let agrees = Agrees::default();
    let options = RemoveOp::new().with(|options| options.ask = Ask::Always);
    let removal = options.filtered_by(skips_directories);
    assert!(removal.run(paths([&top]), &agrees).is_complete());
    let asked = agrees.0.into_inner().unwrap();
    assert_eq!(asked[0], "descend t");
    assert_eq!(asked[1..], expected);
}

/// Counts the names in each directory before the run lists it.
#[derive(Clone, Default)]
struct ReadsAhead(Arc<Mutex<BTreeMap<PathBuf, usize>>>);

impl Filter for ReadsAhead {
    fn verdict(&self, _: &Candidate<'_>) -> Verdict {
        Verdict::Take
    }

    fn for_directory(&self, directory: &EnteredDirectory<'_>) -> Option<Arc<dyn Filter>> {
        let open = directory.open(".").unwrap();
        let names = rustix::fs::Dir::read_from(&open).unwrap().count();
        // `.` and `..` are among the names.
        let path = directory.path_below_operand();
        self.0.lock().unwrap().insert(path, names - 2);
        None
    }
}

#[test]
fn a_filter_may_read_a_directory_before_it_is_listed() {
    let scratch = Scratch::new();
    let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    Tree::at(&source).file("sub/one", "").file("sub/two", "");
    let filter = ReadsAhead::default();
    let processed = copy(CopyOp::new(), filter.clone(), &source, &dest);
    assert_eq!(processed, 4);
    let expected = [("", 1), ("sub", 2)].map(|(path, names)| (PathBuf::from(path), names));
    assert_eq!(*filter.0.lock().unwrap(), BTreeMap::from(expected));
    let processed = remove(RemoveOp::new(), ReadsAhead::default(), &source);
    assert_eq!(processed, 4);
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
    let scratch = Scratch::new();
    let top = scratch.path().join("t");
    Tree::at(&top)
        .file("file", "content")
        .symlink("link", "file")
        .fifo("fifo");
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
        let scratch = Scratch::new();
        let top = scratch.path().join("t");
        for dir in 0..40 {
            Tree::at(&top)
                .file(format!("{dir}/inner/deep/file"), "")
                .file(format!("{dir}/inner/gone"), "")
                .file(format!("{dir}/outer/file"), "");
        }
        let made = Arc::default();
        let filter = Nested {
            pruned: None,
            made: Arc::clone(&made),
        };
        let options = RemoveOp::new().with(|options| options.threads = threads(number));
        let removal = options.filtered_by(filter);
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
fn all_levels_of_a_deep_tree_stay_if_a_file_in_each_is_left_alone() {
    const DEPTH: usize = 2_000;
    let scratch = Scratch::in_memory();
    let top = scratch.path().join("t");
    comb(&top, DEPTH, 2);
    let entries = Snapshot::of(&top, Attributes::NAMES).len();
    let options = RemoveOp::new();
    let processed = remove(options, about("f1", Verdict::Prune), &top);
    // Each level has two directories, and a file `f0` in either. The last level is empty.
    let gone = 2 * DEPTH + 1;
    assert_eq!(processed, gone as u64);
    let left = Snapshot::of(&top, Attributes::NAMES).len();
    assert_eq!(left, entries - gone);
}

#[test]
fn most_of_a_wide_directory_may_stay() {
    let scratch = Scratch::in_memory();
    let top = scratch.path().join("t");
    wide(&top, 100_000);
    let ends_in_7 = |entry: &Candidate<'_>| match entry.name().as_encoded_bytes() {
        [.., b'7'] => Verdict::Take,
        _ => Verdict::Skip,
    };
    let before = names_in(&top);
    let expected = before.iter().filter(|name| !name.ends_with('7'));
    let processed = remove(RemoveOp::new(), ends_in_7, &top);
    let left = names_in(&top);
    assert_eq!(processed, (before.len() - left.len()) as u64);
    assert!(left.iter().eq(expected));
}

#[test]
fn a_filesystem_that_skips_entries_is_listed_again_although_some_stay() {
    for number in [1, 4] {
        let mount = or_skip!(FuseMount::with(Habits {
            skipping_lists: true,
            ..Habits::default()
        }));
        let top = mount.path().join("t");
        let stored = Tree::at(mount.stored().join("t"));
        for directory in ["sub", "skipped/sub"] {
            // The filesystem lists names in order, so the filter is asked about this one first.
            stored.file(format!("{directory}/0-keep"), "");
            for file in 0..1_000 {
                stored.file(format!("{directory}/a-file-with-a-long-name-{file}"), "");
            }
        }
        let filter = |entry: &Candidate<'_>| match entry.name().to_str() {
            Some("0-keep") => Verdict::Prune,
            Some("skipped") => Verdict::Skip,
            _ => Verdict::Take,
        };
        let options = RemoveOp::new().with(|options| options.threads = threads(number));
        let processed = remove(options, filter, &top);
        assert_eq!(processed, 2 * 1_000, "{number} threads");
        assert_eq!(names_in(&top), ["skipped", "sub"]);
        for directory in ["sub", "skipped/sub"] {
            assert_eq!(names_in(&top.join(directory)), ["0-keep"]);
        }
    }
}

#[test]
fn a_run_that_its_filter_cancels_removes_nothing_more() {
    let scratch = Scratch::in_memory();
    let top = scratch.path().join("t");
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
