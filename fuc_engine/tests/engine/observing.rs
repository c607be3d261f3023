//! Events for observers: each path once, in the promised order.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::Write,
    panic::AssertUnwindSafe,
    path::{Path, PathBuf},
    sync::{
        Condvar, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use fuc_engine::{CopyOp, Counts, Error, Event, Observer, RemoveOp, Summary, Throttle};
use testkit::tree::{Scratch, Tree, wide};

use crate::kit::{Limited as _, OnEvent, counts, entries_of, exactly, paths, places, until};

/// An event, and its paths.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Seen {
    Removed(PathBuf),
    RemovedDirectory(PathBuf),
    Copied(PathBuf, PathBuf),
    RemovedDest(PathBuf),
}

/// Returns the events of a run.
fn events_of(run: impl FnOnce(&dyn Observer) -> Summary) -> (Summary, Vec<Seen>) {
    let events = Mutex::new(Vec::new());
    let summary = run(&OnEvent(|event: Event<'_>| {
        let event = match event {
            Event::Removed(path) => Seen::Removed(path.into()),
            Event::RemovedDirectory(path) => Seen::RemovedDirectory(path.into()),
            Event::Copied { source, dest, .. } => Seen::Copied(source.into(), dest.into()),
            Event::RemovedDest(path) => Seen::RemovedDest(path.into()),
            other => panic!("what is {other:?}?"),
        };
        events.lock().unwrap().push(event);
    }));
    (summary, events.into_inner().unwrap())
}

/// Makes a hundred directories of five files each, three levels deep. Returns the paths of files and directories.
fn tree(at: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let tree = Tree::at(at);
    tree.plant("link->nowhere pipe<fifo>");
    let mut files = vec![at.join("link"), at.join("pipe")];
    let mut dirs = HashSet::from([at.to_owned()]);
    for dir in 0..100 {
        for file in 0..5 {
            let name = format!("{}/{}/{dir}/{file}", dir % 3, dir % 7);
            tree.file(&name, "x");
            files.push(at.join(&name));
            let above = files[files.len() - 1].ancestors().skip(1);
            dirs.extend(above.take_while(|dir| *dir != at).map(Path::to_owned));
        }
    }
    assert_eq!(entries_of(at), files.len() + dirs.len());
    (files, dirs.into_iter().collect())
}

#[track_caller]
fn assert_same_events(mut told: Vec<Seen>, mut expected: Vec<Seen>) {
    told.sort();
    expected.sort();
    assert_eq!(told, expected);
}

#[test]
fn each_removed_path_is_reported_once_and_a_directory_after_its_content() {
    for number in [1, 4] {
        let (_scratch, root, _) = places();
        let (files, dirs) = tree(&root);
        let removal = RemoveOp::new().threads(number);
        let (summary, told) = events_of(|observer| removal.run(paths([&root]), observer));
        assert_eq!(counts(summary), ((files.len() + dirs.len()) as u64, 0, 0));
        let mut gone = HashSet::new();
        for event in &told {
            if let Seen::RemovedDirectory(dir) = event {
                let inside = |path: &&PathBuf| path.parent() == Some(dir) && !gone.contains(*path);
                let early: Vec<_> = files.iter().chain(&dirs).filter(inside).collect();
                assert!(early.is_empty(), "{dir:?} went before {early:?}");
            }
            let (Seen::Removed(path) | Seen::RemovedDirectory(path)) = event else {
                panic!("{event:?} in a removal");
            };
            gone.insert(path.clone());
        }
        let mut expected: Vec<_> = files.into_iter().map(Seen::Removed).collect();
        expected.extend(dirs.into_iter().map(Seen::RemovedDirectory));
        assert_same_events(told, expected);
    }
}

#[test]
fn each_copied_path_is_reported_once_and_a_directory_before_its_content() {
    for number in [1, 4] {
        let (_scratch, root, copy) = places();
        let (files, dirs) = tree(&root);
        let op = CopyOp::new().threads(number);
        let (summary, told) =
            events_of(|observer| op.run(paths([&root]), &exactly(&copy), observer));
        let entries = (files.len() + dirs.len()) as u64;
        assert_eq!(counts(summary), (entries, files.len() as u64 - 2, 0));
        let mut made = HashSet::new();
        for event in &told {
            let Seen::Copied(source, _) = event else {
                panic!("{event:?} in a copy");
            };
            let is_in_time = *source == root || made.contains(source.parent().unwrap());
            assert!(is_in_time, "{source:?} before its directory");
            made.insert(source.clone());
        }
        let expected = files.into_iter().chain(dirs).map(|path| {
            let below = path.strip_prefix(&root).unwrap();
            // `join` with an empty path would add a slash.
            let dest = match below.as_os_str().is_empty() {
                true => copy.clone(),
                false => copy.join(below),
            };
            Seen::Copied(path, dest)
        });
        assert_same_events(told, expected.collect());
    }
}

/// Otherwise a large file would be the last one to run, and only one worker would have work.
#[test]
fn a_large_file_is_copied_when_it_is_found() {
    let (_scratch, source, dest) = places();
    let tree = Tree::at(&source);
    for i in 0..1_000 {
        tree.plant(format!("a-longer-name-of-a-small-file-{i}=x"));
        if i % 500 == 250 {
            tree.file(format!("large-{i}"), vec![1; 4 << 20]);
        }
    }
    let copy = CopyOp::new().threads(1);
    let (_, events) = events_of(|observer| copy.run(paths([&source]), &exactly(&dest), observer));
    let listed = std::fs::read_dir(&source)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut expected = vec![Seen::Copied(source.clone(), dest.clone())];
    expected.extend(listed.map(|name| Seen::Copied(source.join(&name), dest.join(name))));
    assert!(events == expected, "not in the order of the listing");
}

/// Stops the thread that began a copy, once another thread helps it. Returns `true` if the other one copied many entries
/// in the meantime.
fn others_go_on(attempt: usize) -> bool {
    /// More entries than two buffers hold.
    const MANY: usize = 4_000;
    let (_scratch, source, dest) = places();
    wide(&source, 10_000);
    let first = thread::current().id();
    // The number of entries that each thread has copied, and a notice of each change.
    let (copied, changed) = (Mutex::new(HashMap::new()), Condvar::new());
    let meanwhile = OnceLock::new();
    let stopper = OnEvent(|_: Event<'_>| {
        let mut copied = copied.lock().unwrap();
        let this = thread::current().id();
        *copied.entry(this).or_default() += 1;
        changed.notify_all();
        if this == first && copied.len() > 1 && meanwhile.get().is_none() {
            let total = |copied: &HashMap<_, usize>| copied.values().sum::<usize>();
            let before = total(&copied);
            let limit = Duration::from_secs(1 << attempt);
            let (copied, _) = changed
                .wait_timeout_while(copied, limit, |copied| total(copied) - before < MANY)
                .unwrap();
            let _ = meanwhile.set(total(&copied) - before);
        }
    });
    let copy = CopyOp::new().threads(2);
    let summary = copy.run(paths([source]), &exactly(dest), &stopper);
    assert_eq!(summary.entries, 10_001);
    meanwhile.into_inner() >= Some(MANY)
}

#[test]
fn a_slow_entry_does_not_hold_up_a_wide_directory() {
    // The governor may stop the other thread, too, but not each time.
    assert!((0..6).any(others_go_on), "the rest waited for the entry");
}

/// Makes each removal slow, and holds up the fourth one of the first thread until most files are removed. Returns `true` if
/// the other thread removed them.
fn others_are_removed(attempt: usize) -> bool {
    const FILES: usize = 64;
    /// The first thread shares half of its files with the other one, and then half of the rest before its next
    /// files. So it keeps at most a quarter.
    const ENOUGH: usize = FILES - FILES / 4;
    let (_scratch, dir, _) = places();
    wide(&dir, FILES);
    let first = thread::current().id();
    // The number of files that the first thread has removed, and all threads.
    let (removed, changed) = (Mutex::new((0, 0)), Condvar::new());
    let waited = OnceLock::new();
    let slow = OnEvent(|event: Event<'_>| {
        let Event::Removed(_) = event else {
            return;
        };
        thread::sleep(Duration::from_millis(2));
        let mut removed = removed.lock().unwrap();
        removed.1 += 1;
        changed.notify_all();
        if thread::current().id() != first {
            return;
        }
        removed.0 += 1;
        if removed.0 == 4 {
            let limit = Duration::from_secs(1 << attempt);
            let before = removed.1;
            let (removed, _) = changed
                .wait_timeout_while(removed, limit, |removed| removed.1 < ENOUGH)
                .unwrap();
            let _ = waited.set((before, removed.1));
        }
    });
    let summary = RemoveOp::new().threads(2).run(paths([&dir]), &slow);
    assert_eq!(summary.entries, FILES as u64 + 1);
    assert!(!dir.exists());
    let waited = waited.into_inner();
    waited.is_some_and(|(before, after)| before < ENOUGH && after >= ENOUGH)
}

#[test]
fn a_slow_removal_does_not_hold_up_the_files_beside_it() {
    // The governor may stop the other thread, or start it late, but not each time.
    assert!(
        (0..6).any(others_are_removed),
        "the files waited for the removal"
    );
}

#[test]
fn a_dest_removed_to_make_room_is_reported_before_the_copy() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.plant("s/link->new d/link->old");
    let [source, copy] = ["s/link", "d/link"].map(|name| tree.path().join(name));
    let run =
        |observer: &dyn Observer| CopyOp::new().run(paths([&source]), &exactly(&copy), observer);
    let (_, told) = events_of(run);
    let copied = Seen::Copied(source.clone(), copy.clone());
    assert_eq!(told, [Seen::RemovedDest(copy.clone()), copied]);
}

#[test]
fn an_observer_that_wants_no_events_gets_none() {
    struct Silent;
    impl Observer for Silent {
        fn failed(&self, error: Error) {
            panic!("{error}");
        }
        fn on_event(&self, event: Event<'_>) {
            panic!("told of {event:?}");
        }
    }
    let scratch = Scratch::with("d/f=");
    let summary = RemoveOp::new().run(paths([scratch.at("d")]), &Silent);
    assert_eq!(summary.entries, 2);
}

#[test]
fn a_panic_of_an_observer_reaches_the_caller() {
    let scratch = Scratch::in_memory();
    for _ in 0..3 {
        let tree = Tree::at(scratch.at("t"));
        for dir in 0..200 {
            wide(tree.path().join(format!("{}/{dir}", dir % 20)), 10);
        }
        tree.plant("0/100/7=");
        let (root, (send, caught)) = (tree.path().to_owned(), mpsc::channel());
        // Do not use a scoped thread, so that this test ends even if the run hangs.
        thread::spawn(move || {
            let panicking = OnEvent(|event: Event<'_>| match event {
                Event::Removed(path) if path.ends_with("100/7") => panic!("as it should"),
                _ => {}
            });
            let removing = || RemoveOp::new().threads(8).run(paths([root]), &panicking);
            let _ = send.send(std::panic::catch_unwind(AssertUnwindSafe(removing)).is_err());
        });
        let caught = caught.recv_timeout(Duration::from_secs(60));
        assert_eq!(caught, Ok(true), "the run hangs, or ends as if nothing was");
        testkit::tree::remove_for_sure(tree.path()).unwrap();
    }
}

/// Reads the counts at each event.
#[derive(Default)]
struct Onlooker {
    counts: Counts,
    seen: Mutex<Vec<u64>>,
}

impl Observer for Onlooker {
    fn failed(&self, error: Error) {
        panic!("{error}");
    }

    fn wants_events(&self) -> bool {
        true
    }

    fn on_event(&self, _: Event<'_>) {
        self.seen.lock().unwrap().push(self.counts.entries());
    }

    fn counts(&self) -> Option<&Counts> {
        Some(&self.counts)
    }
}

#[test]
fn counts_grow_within_a_wide_directory() {
    let (_scratch, source, dest) = places();
    let wide = Tree::at(&source);
    for name in 0..100 {
        wide.file(name.to_string(), "x");
    }
    let onlooker = Onlooker::default();
    let copy = CopyOp::new().threads(1);
    let summary = copy.run(paths([source]), &exactly(dest), &onlooker);
    assert_eq!((summary.entries, summary.bytes), (101, 100));
    assert_eq!(
        (onlooker.counts.entries(), onlooker.counts.bytes()),
        (101, 100)
    );
    let seen = onlooker.seen.into_inner().unwrap();
    // An event comes before its entry is counted.
    let lags = seen
        .iter()
        .zip(0..)
        .map(|(&counted, event)| event - counted);
    assert!(lags.max() <= Some(33), "{seen:?}");
}

#[test]
fn counts_grow_within_a_large_file() {
    const MIB: usize = 1 << 20;
    let scratch = Scratch::in_memory();
    let at = |name: &str| scratch.at(name);
    Tree::at(&scratch).fifo("fifo");
    let onlooker = Onlooker::default();
    let options = CopyOp::new().with(|options| options.recursive = false);
    let summary = thread::scope(|scope| {
        let copying = scope.spawn(|| {
            let dest = exactly(at("copy"));
            options.run(paths([at("fifo")]), &dest, &onlooker)
        });
        let mut writer = File::options().write(true).open(at("fifo")).unwrap();
        writer.write_all(&vec![1; 9 * MIB]).unwrap();
        until("nothing is counted", || {
            onlooker.counts.bytes() >= 8 * MIB as u64
        });
        drop(writer);
        copying.join().unwrap()
    });
    assert_eq!((summary.entries, summary.bytes), (1, 9 * MIB as u64));
    assert_eq!(onlooker.counts.bytes(), summary.bytes);
}

/// Counts the entries and bytes that a run has waited for.
#[derive(Debug, Default)]
struct Turnstile {
    entries: AtomicU64,
    bytes: AtomicU64,
}

impl Throttle for Turnstile {
    fn wait(&self, entries: u64, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.entries.fetch_add(entries, Ordering::Relaxed);
    }
}

impl Observer for Turnstile {
    fn failed(&self, error: Error) {
        panic!("{error}");
    }
}

#[test]
fn a_run_waits_for_each_entry_that_it_finds() {
    for workers in [1, 4] {
        let (_scratch, source, dest) = places();
        let (files, dirs) = tree(&source);
        let found = (files.len() + dirs.len() - 1) as u64;
        let copying = Turnstile::default();
        let copy = CopyOp::new().threads(workers).throttled_by(&copying);
        let copied = copy.run(paths([&source]), &exactly(&dest), &copying);
        assert_eq!(copied.entries, found + 1);
        assert_eq!(copying.entries.into_inner(), found);
        assert_eq!(copying.bytes.into_inner(), copied.bytes);
        let removing = Turnstile::default();
        let removal = RemoveOp::new().threads(workers).throttled_by(&removing);
        let removed = removal.run(paths([&dest]), &removing);
        assert_eq!(removed.entries, found + 1);
        assert_eq!(removing.entries.into_inner(), found);
    }
}
