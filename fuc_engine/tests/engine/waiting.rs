//! Names that wait while another name of their inode is copied.
//!
//! A worker is held up in an event until another worker has gone on, however slow or busy the machine is. That worker
//! passes names of the same inode, which must then have been waiting.

use std::{
    collections::{HashMap, HashSet},
    fs,
    io::Write,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, ThreadId},
    time::Duration,
};

use fuc_engine::{
    Backup, Candidate, CopyOp, Dereference, Error, Event, Observer, Preserve, Replace, Verdict,
};
use testkit::tree::{Scratch, Tree};

use crate::kit::{Limited as _, exactly, paths};

const DIRS: usize = 100;
/// Several times the piece after which a copy gives tasks to other workers.
const LARGE: usize = 24 << 20;
/// The time to wait for another worker before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

fn options(change: impl FnOnce(&mut CopyOp<'_>)) -> CopyOp<'static> {
    let archive = CopyOp::new().with(|options| options.preserve = Preserve::all());
    archive.threads(8).with(change)
}

fn names() -> impl Iterator<Item = String> {
    (0..DIRS).map(|dir| format!("{dir}/name"))
}

/// Makes a file of its own inode beside each name. Its copy shows that a worker was there.
fn add_marks(source: &Tree) {
    for dir in 0..DIRS {
        source.plant(format!("{dir}/mark=mark"));
    }
}

/// Blocks the first copy of a name until other names of the same inode wait for it.
#[derive(Default)]
struct HoldUp {
    /// The directories whose marks were copied, by thread.
    passed: Mutex<HashMap<ThreadId, HashSet<PathBuf>>>,
    more_passed: Condvar,
    waited: AtomicUsize,
}

impl HoldUp {
    fn pass(&self, mark: &Path) {
        let dir = mark.parent().unwrap().to_owned();
        let mut passed = self.passed.lock().unwrap();
        passed
            .entry(thread::current().id())
            .or_default()
            .insert(dir);
        self.more_passed.notify_all();
    }

    /// Waits, on the thread of the first copy, for names to wait.
    ///
    /// Another thread that has copied marks in two directories has left one of them, and so has
    /// met the name in it. It cannot have copied that name: the first copy is still under way.
    fn wait_for_waiters(&self) {
        let this = thread::current().id();
        let waiting = |passed: &HashMap<ThreadId, HashSet<PathBuf>>| -> usize {
            let others = passed.iter().filter(|&(&thread, _)| thread != this);
            others.map(|(_, dirs)| dirs.len().saturating_sub(1)).sum()
        };
        let passed = self.passed.lock().unwrap();
        let (passed, _) = self
            .more_passed
            .wait_timeout_while(passed, PATIENCE, |passed| waiting(passed) == 0)
            .unwrap();
        self.waited.store(waiting(&passed), Ordering::Relaxed);
    }

    #[track_caller]
    fn assert_some_waited(&self) {
        assert!(self.waited.load(Ordering::Relaxed) > 0, "no name waited");
    }
}

/// Counts events, and may change the dest while names wait.
struct Witness<'a> {
    dest: &'a Path,
    /// Runs when names wait for the first copy.
    meddle: fn(&Self),
    first_copy_began: Arc<OnceLock<()>>,
    first_copy_lost: Arc<OnceLock<()>>,
    hold_up: HoldUp,
    /// The backup of each copied name, if it has one.
    copied: Mutex<Vec<Option<PathBuf>>>,
    intruded: AtomicUsize,
    failures: AtomicUsize,
}

impl<'a> Witness<'a> {
    fn new(dest: &'a Path) -> Self {
        Self {
            dest,
            meddle: |_| {},
            first_copy_began: Arc::default(),
            first_copy_lost: Arc::default(),
            hold_up: HoldUp::default(),
            copied: Mutex::default(),
            intruded: AtomicUsize::new(0),
            failures: AtomicUsize::new(0),
        }
    }

    /// Creates a file at each dest whose old file was moved away and whose new one does not exist yet.
    fn intrude(&self) {
        let moved = names().filter(|name| self.dest.join(format!("{name}~")).exists());
        for name in moved {
            if let Ok(mut file) = fs::File::create_new(self.dest.join(name)) {
                file.write_all(b"intruder").unwrap();
                self.intruded.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Observer for Witness<'_> {
    fn failed(&self, error: Error) {
        assert!(error.path().starts_with(self.dest), "{error}");
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    fn wants_events(&self) -> bool {
        true
    }

    fn on_event(&self, event: Event<'_>) {
        match event {
            Event::Copied { source, .. } if source.ends_with("mark") => self.hold_up.pass(source),
            Event::Copied { source, backup, .. } if source.ends_with("name") => {
                let mut copied = self.copied.lock().unwrap();
                copied.push(backup.map(Path::to_owned));
                if copied.len() == 1 {
                    let _ = self.first_copy_began.set(());
                    self.hold_up.wait_for_waiters();
                    (self.meddle)(self);
                }
            }
            _ => {}
        }
    }
}

#[test]
fn a_name_that_waited_behind_a_symlink_becomes_a_file() {
    let scratch = Scratch::in_memory();
    let source = Tree::at(scratch.at("s"));
    let target = scratch.at("large");
    fs::write(&target, vec![b'x'; LARGE]).unwrap();
    for name in names() {
        source.symlink(name, &target);
    }
    add_marks(&source);
    let dest = scratch.at("d");
    let witness = Witness::new(&dest);
    let following = options(|options| options.dereference = Dereference::Always);
    let _ = following.run(paths([source.path()]), &exactly(&dest), &witness);
    witness.hold_up.assert_some_waited();
    assert_eq!(witness.failures.into_inner(), 0);
    for name in names() {
        let copy = fs::symlink_metadata(dest.join(name)).unwrap();
        assert!(copy.is_file());
        assert_eq!(copy.nlink() as usize, DIRS);
    }
}

/// Copies a hundred names of one inode over files, with backups.
fn copy_over(scratch: &Scratch, witness: &Witness<'_>) {
    let source = Tree::at(scratch.at("s"));
    source.file("0/name", vec![b'x'; LARGE]);
    let dest = Tree::at(witness.dest);
    for name in names() {
        dest.file(&name, "old");
        if name != "0/name" {
            source.hardlink("0/name", &name);
        }
    }
    add_marks(&source);
    let with_backups = options(|options| options.rules.backup = Some(Backup::Simple));
    let _ = with_backups.run(paths([source.path()]), &exactly(witness.dest), witness);
    witness.hold_up.assert_some_waited();
}

#[test]
fn a_name_that_waited_has_a_backup_in_its_event_and_its_dest_stayed_in_its_place_meanwhile() {
    let scratch = Scratch::in_memory();
    let dest = scratch.at("d");
    let witness = Witness {
        meddle: Witness::intrude,
        ..Witness::new(&dest)
    };
    copy_over(&scratch, &witness);
    assert_eq!(witness.intruded.into_inner(), 0);
    assert_eq!(witness.failures.into_inner(), 0);
    let backups = witness.copied.into_inner().unwrap();
    assert_eq!(backups.len(), DIRS);
    assert!(backups.iter().all(Option::is_some), "{backups:?}");
    for name in names() {
        assert_eq!(fs::read(dest.join(format!("{name}~"))).unwrap(), b"old");
        assert_eq!(fs::metadata(dest.join(name)).unwrap().nlink(), 100);
    }
}

#[test]
fn a_name_that_waited_beside_a_newer_dest_leaves_it_if_the_first_copy_is_lost() {
    let scratch = Scratch::in_memory();
    let source = Tree::at(scratch.at("s"));
    let dest = Tree::at(scratch.at("d"));
    for (number, name) in names().enumerate() {
        // Other workers find directories before the first name, in whatever order they are listed.
        match number {
            0 => source.fifo(&name),
            50 => source.plant("name==0/name").hardlink("name", &name),
            _ => source.hardlink("0/name", &name),
        };
        dest.file(&name, "newer")
            .mtime(Duration::from_secs(1 << 32));
    }
    add_marks(&source);
    let witness = Witness {
        meddle: |witness| {
            let _ = witness.first_copy_lost.set(());
            // The names that have passed the filter wait by then.
            thread::sleep(Duration::from_millis(50));
            fs::remove_file(witness.dest.join("name")).unwrap();
        },
        ..Witness::new(dest.path())
    };
    let began = Arc::clone(&witness.first_copy_began);
    let lost = Arc::clone(&witness.first_copy_lost);
    let if_it_waits = move |entry: &Candidate<'_>| {
        let path = entry.path_below_operand();
        if entry.is_directory() {
            // So the governor starts other workers before the first name.
            thread::sleep(Duration::from_millis(1));
        } else if path.ends_with("name") && path != Path::new("name") {
            began.wait();
            if lost.get().is_some() {
                return Verdict::Skip;
            }
        }
        Verdict::Take
    };
    let updating = options(|options| options.rules.replace = Replace::Older);
    let updating = updating.filtered_by(if_it_waits);
    let _ = updating.run(paths([source.path()]), &exactly(dest.path()), &witness);
    witness.hold_up.assert_some_waited();
    assert_eq!(witness.failures.into_inner(), 1);
    let is_left = |name: &String| fs::symlink_metadata(dest.path().join(name)).unwrap().len() == 5;
    assert_eq!(names().filter(is_left).count(), DIRS);
}
