//! Names that wait for another name of their inode to be copied lose nothing of what they are.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fuc_engine::{
    Backup, BackupNaming, CopyOp, CopyOptions, Dereference, Dest, Error, Event, Observer, Preserve,
};
use testkit::tree::{Scratch, Tree};

use crate::kit::{copy_options, exactly, threads};

const DIRS: usize = 100;
/// Long enough in copying that others come by.
const LARGE: usize = 24 << 20;
/// In which somebody waits, unless the machine is very busy.
const ROUNDS: usize = 20;

fn options(change: impl FnOnce(&mut CopyOptions)) -> CopyOptions {
    copy_options(|options| {
        options.preserve = Preserve::all();
        options.threads = threads(8);
        change(options);
    })
}

fn names() -> impl Iterator<Item = String> {
    (0..DIRS).map(|dir| format!("{dir}/name"))
}

#[test]
fn what_waited_behind_a_symbolic_link_is_no_symbolic_link() {
    let scratch = Scratch::in_memory();
    let source = Tree::at(scratch.path().join("s"));
    let target = scratch.path().join("large");
    fs::write(&target, vec![b'x'; LARGE]).unwrap();
    for name in names() {
        source.symlink(name, &target);
    }
    let dest = scratch.path().join("d");
    let failures = Mutex::new(Vec::new());
    let following = options(|options| options.dereference = Dereference::Always);
    let _ = CopyOp::new(following).run([source.path()], &exactly(&dest), &failures);
    assert_eq!(failures.into_inner().unwrap().len(), 0);
    for name in names() {
        let copy = fs::symlink_metadata(dest.join(name)).unwrap();
        assert!(copy.is_file());
        assert_eq!(copy.nlink() as usize, DIRS);
    }
}

/// Counts what it is told, and may be a stranger when it first hears of a copy.
struct Witness<'a> {
    dest: &'a Path,
    is_stranger: bool,
    copied: Mutex<Vec<Option<PathBuf>>>,
    restored: AtomicUsize,
    put: AtomicUsize,
    failures: AtomicUsize,
}

impl Witness<'_> {
    /// Puts a file wherever the old one was moved away and the new one is not there yet.
    fn put(&self) {
        let moved = names().filter(|name| self.dest.join(format!("{name}~")).exists());
        for name in moved {
            if let Ok(mut file) = fs::File::create_new(self.dest.join(name)) {
                file.write_all(b"stranger").unwrap();
                self.put.fetch_add(1, Ordering::Relaxed);
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

    fn on_event(&self, done: Event<'_>) {
        match done {
            Event::Copied { source, backup, .. } if source.ends_with("name") => {
                let mut copied = self.copied.lock().unwrap();
                copied.push(backup.map(Path::to_owned));
                if copied.len() == 1 && self.is_stranger {
                    self.put();
                }
            }
            Event::RestoredBackup { .. } => drop(self.restored.fetch_add(1, Ordering::Relaxed)),
            _ => {}
        }
    }
}

fn witness(dest: &Path, is_stranger: bool) -> Witness<'_> {
    Witness {
        dest,
        is_stranger,
        copied: Mutex::default(),
        restored: AtomicUsize::new(0),
        put: AtomicUsize::new(0),
        failures: AtomicUsize::new(0),
    }
}

/// Copies a hundred names of one inode over files, with backups.
fn copy_over(scratch: &Scratch, witness: &Witness<'_>) {
    let source = Tree::at(scratch.path().join("s"));
    source.file("0/name", vec![b'x'; LARGE]);
    let dest = Tree::at(witness.dest);
    for name in names() {
        dest.file(&name, "old");
        if name != "0/name" {
            source.hardlink("0/name", &name);
        }
    }
    let with_backups = options(|options| {
        options.rules.backup = Some(Backup {
            naming: BackupNaming::Simple,
            suffix: "~".into(),
        });
    });
    let exactly = Dest::Exactly(witness.dest.to_owned());
    let _ = CopyOp::new(with_backups).run([source.path()], &exactly, witness);
}

#[test]
fn what_waited_tells_of_its_backup() {
    let scratch = Scratch::in_memory();
    let dest = scratch.path().join("d");
    let witness = witness(&dest, false);
    copy_over(&scratch, &witness);
    let told = witness.copied.into_inner().unwrap();
    assert_eq!(told.len(), DIRS);
    assert!(told.iter().all(Option::is_some), "{told:?}");
    for name in names() {
        assert_eq!(fs::read(dest.join(format!("{name}~"))).unwrap(), b"old");
        assert_eq!(fs::metadata(dest.join(name)).unwrap().nlink(), 100);
    }
}

#[test]
fn what_waited_in_vain_gets_its_backup_back() {
    for _ in 0..ROUNDS {
        let scratch = Scratch::in_memory();
        let dest = scratch.path().join("d");
        let witness = witness(&dest, true);
        copy_over(&scratch, &witness);
        let put = witness.put.into_inner();
        assert_eq!(witness.failures.into_inner(), put);
        assert_eq!(witness.restored.into_inner(), put);
        let is_old = |name: &String| fs::read(dest.join(name)).unwrap() == b"old";
        assert_eq!(names().filter(is_old).count(), put);
        if put > 0 {
            return;
        }
    }
    panic!("nobody ever waited");
}
