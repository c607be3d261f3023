//! Runs that are cancelled: they skip the rest of their work, and leave nothing incomplete.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    sync::Mutex,
    thread::{self, ThreadId},
    time::Duration,
};

use fuc_engine::{
    Backup, Cancel, Cause, CopyOp, Dereference, Error, Event, Observer, Refusal, RemoveOp, Summary,
};
use testkit::tree::{Scratch, Tree};

use crate::kit::{Failure, Limited as _, OnEvent, Person, entries_of, exactly, paths};

/// Returns an observer that cancels a run at its first event of a file. A failure is a panic.
fn cancelling(cancel: &Cancel) -> impl Observer {
    OnEvent(|event: Event<'_>| match event {
        Event::Copied { source, .. } if source.is_dir() => {}
        Event::Copied { .. } | Event::Removed(_) => cancel.cancel(),
        _ => {}
    })
}

/// The directories of which a file was removed.
#[derive(Default)]
struct Begun {
    dirs: HashSet<PathBuf>,
    /// How many of them each thread was the first in.
    by_thread: HashMap<ThreadId, usize>,
    /// The one in which the run was cancelled.
    last: Option<PathBuf>,
}

/// Makes directories with files.
fn make_files(root: &Path, dirs: usize, files: usize) {
    let tree = Tree::at(root);
    for dir in 0..dirs {
        for file in 0..files {
            tree.plant(format!("{dir}/{file}=content"));
        }
    }
}

#[test]
fn a_cancelled_removal_keeps_the_rest_without_a_failure() {
    for threads in [1, 4] {
        let scratch = Scratch::in_memory();
        let root = scratch.at("tree");
        make_files(&root, 20, 100);
        let cancel = Cancel::new();
        let removal = RemoveOp::new().threads(threads);
        let removal = removal.cancelled_by(cancel.clone());
        let summary = removal.run(paths([&root]), &cancelling(&cancel));
        assert!(summary.cancelled && !summary.is_complete(), "{summary:?}");
        assert!(
            summary.entries >= 1 && summary.entries < 2020,
            "{summary:?}"
        );
        assert_eq!(entries_of(&root), 2021 - summary.entries as usize);
    }
}

#[test]
fn slow_work_stops_in_the_middle_of_a_small_directory() {
    let scratch = Scratch::in_memory();
    let root = scratch.at("tree");
    // Directories are only queued, which is fast. A worker that has queued many must find out that files are slow.
    make_files(&root, 100, 6);
    let (cancel, begun) = (Cancel::new(), Mutex::<Begun>::default());
    // Cancel the run after a thread has removed the first file of its fifth directory.
    let observer = OnEvent(|event: Event<'_>| {
        let Event::Removed(file) = event else {
            return;
        };
        thread::sleep(Duration::from_millis(1));
        let dir = file.parent().unwrap();
        let mut begun = begun.lock().unwrap();
        if begun.last.is_some() || !begun.dirs.insert(dir.to_owned()) {
            return;
        }
        let dirs = begun.by_thread.entry(thread::current().id()).or_default();
        *dirs += 1;
        if *dirs == 5 {
            begun.last = Some(dir.to_owned());
            cancel.cancel();
        }
    });
    let removal = RemoveOp::new().threads(2).cancelled_by(cancel.clone());
    let summary = removal.run(paths([&root]), &observer);
    assert!(summary.cancelled, "{summary:?}");
    let dir = begun.into_inner().unwrap().last.unwrap();
    let left = fs::read_dir(dir).map_or(0, Iterator::count);
    // The other worker may have removed one of them.
    assert!(left >= 4, "{left} files are left");
}

#[test]
fn functions_without_an_observer_fail_if_the_run_was_cancelled() {
    let scratch = Scratch::new();
    let [source, dest] = ["s", "d"].map(|name| scratch.at(name));
    Tree::at(&source).plant("file=");
    let cancel = Cancel::new();
    cancel.cancel();
    let removal = RemoveOp::new().cancelled_by(cancel.clone());
    for result in [
        CopyOp::new()
            .cancelled_by(cancel.clone())
            .copy(&source, &dest),
        removal.remove(&source),
        removal.clone().contents_only().remove(&source),
    ] {
        let error = Failure::of(&result.unwrap_err());
        assert_eq!(error, Failure::refused(Refusal::Cancelled, &source));
    }
    assert!(source.join("file").exists());
    assert!(!dest.exists());
}

#[test]
fn a_cancelled_copy_leaves_complete_files_only() {
    for threads in [1, 4] {
        let scratch = Scratch::in_memory();
        let source = scratch.at("s");
        make_files(&source, 20, 100);
        let dest = scratch.at("d");
        let cancel = Cancel::new();
        let copy = CopyOp::new().threads(threads);
        let copy = copy.cancelled_by(cancel.clone());
        let summary = copy.run(paths([&source]), &exactly(&dest), &cancelling(&cancel));
        assert!(summary.cancelled && !summary.is_complete(), "{summary:?}");
        assert_eq!(summary.entries as usize, entries_of(&dest));
        assert!(entries_of(&dest) < 2021);
        for dir in fs::read_dir(&dest).unwrap() {
            for file in fs::read_dir(dir.unwrap().path()).unwrap() {
                let content = fs::read(file.unwrap().path()).unwrap();
                assert_eq!(content, b"content");
            }
        }
    }
}

/// Copies the content of a FIFO, and cancels the copy between two pieces. Returns the reasons of failures, too.
fn cancel_within_a_file(
    dest: &Path,
    change: impl FnOnce(&mut CopyOp<'_>),
) -> (Summary, Vec<Cause>) {
    let piece = vec![1; 9 << 20];
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.fifo("fifo");
    let fifo = scratch.at("fifo");
    let cancel = Cancel::new();
    let options = CopyOp::new().with(|options| {
        options.copy_contents = true;
        change(options);
    });
    let copy = options.cancelled_by(cancel.clone());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = File::create(&fifo).unwrap();
            // A FIFO holds much less, so the copy has read nearly all of the piece when this
            // returns.
            writer.write_all(&piece).unwrap();
            cancel.cancel();
            // The copy closes the FIFO in the middle of this write.
            let _ = writer.write_all(&piece);
        });
        let failures = Mutex::new(Vec::new());
        let summary = copy.run(paths([&fifo]), &exactly(dest), &failures);
        let failures = failures.into_inner().unwrap();
        assert!(failures.iter().all(|failure| failure.path() == dest));
        (summary, failures.iter().map(Error::cause).collect())
    })
}

#[test]
fn an_incomplete_file_is_removed_or_reported_if_it_existed() {
    let backup = Some(Backup::Simple);
    let incomplete = &[Cause::Refused(Refusal::LeftIncomplete)];
    for (what, existed, backup, failures, left, discarded) in [
        ("it is new", false, None, &[][..], &[][..], 1),
        ("it existed", true, None, incomplete, &["d"], 0),
        (
            "it has a backup, which gets its name back",
            true,
            backup,
            &[],
            &["d"],
            1,
        ),
    ] {
        let scratch = Scratch::new();
        let dest = scratch.at("d");
        if existed {
            fs::write(&dest, "old").unwrap();
        }
        let (summary, told) = cancel_within_a_file(&dest, |options| {
            options.rules.backup = backup;
            // If links are not followed, a FIFO's dest is unlinked before it is read.
            if existed && backup.is_none() {
                options.dereference = Dereference::Always;
            }
        });
        assert_eq!(told, failures, "{what}");
        let counts = (summary.cancelled, summary.entries, summary.discarded);
        assert_eq!(counts, (true, 0, discarded), "{what}");
        let names = fs::read_dir(&scratch)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), left, "{what}");
        assert!(
            backup.is_none() || fs::read(&dest).unwrap() == b"old",
            "{what}"
        );
    }
}

#[test]
fn a_run_that_was_cancelled_before_it_began_does_nothing() {
    let scratch = Scratch::in_memory();
    let source = scratch.at("s");
    make_files(&source, 2, 10);
    let cancel = Cancel::new();
    cancel.cancel();
    let observer = Person::default();
    let copy = CopyOp::new().cancelled_by(cancel.clone());
    let summary = copy.run(paths([&source]), &exactly(scratch.at("d")), &observer);
    assert_eq!((summary.cancelled, summary.entries), (true, 0));
    let removal = RemoveOp::new().cancelled_by(cancel.clone());
    let summary = removal.run(paths([&source]), &observer);
    assert_eq!((summary.cancelled, summary.entries), (true, 0));
    assert_eq!(entries_of(&source), 23);
    assert!(!scratch.at("d").exists());
}
