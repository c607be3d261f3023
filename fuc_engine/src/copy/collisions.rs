//! Two names that the filesystem of the dests takes for one.
//!
//! Such a filesystem ignores case, or normalises or shortens names. Without care, two sources would be mixed
//! in one file, or one of them would be lost.
//!
//! - **In a directory that this run has made**, whatever exists already is the copy of another name, or belongs to
//!   another process. It is replaced only if it cannot be the former; see [`Context::is_of_run`].
//! - **In an older directory**, a file may be replaced, as by cp. Here the [`Writers`] make sure that no two
//!   workers write it at once.

use std::ffi::{CStr, CString};
use std::num::NonZeroUsize;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::FileType;

use super::context::{Context, Failure};
use super::decide::mode::Origin;
use super::decide::overwrite::just_created;
use super::facts::{Entry, Facts, FileId, Symlinks};
use super::look;
use super::node::{CopyDir, CopyNode};
use crate::error::{Error, Refusal};
use crate::hashing::HashSet;
use crate::node::{Dir, Place, Side};
use crate::sys::{self, Identity, Stat, Storage};

/// Size from which a new file may be a task of its own, so that another worker may meet it.
const LARGE_BYTES: i64 = 1 << 20;

/// The dests that are being written, and the directories that are being filled.
#[derive(Default)]
pub(super) struct Writers {
    /// At most one for each worker.
    files: Mutex<Vec<FileId>>,
    file_done: Condvar,
    /// Directories, and the operand whose entries go there.
    directories: Mutex<HashSet<(FileId, u32)>>,
    /// The filesystem that was queried last: its device number, and whether it is a native one.
    native: AtomicU64,
    /// The same for the directory that receives the operands.
    target_is_native: OnceLock<bool>,
}

/// A file that no other worker writes until this is dropped.
pub(super) struct Writing<'w> {
    writers: &'w Writers,
    id: FileId,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.writers.files().retain(|&id| id != self.id);
        self.writers.file_done.notify_all();
    }
}

impl Writers {
    fn files(&self) -> MutexGuard<'_, Vec<FileId>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other worker writes the file. A worker writes one file at a time, and does not wait
    /// while it writes, so this ends.
    fn begin(&self, id: FileId) -> Writing<'_> {
        let mut files = self.files();
        while files.contains(&id) {
            let woken = self.file_done.wait(files);
            files = woken.unwrap_or_else(PoisonError::into_inner);
        }
        files.push(id);
        drop(files);
        Writing { writers: self, id }
    }

    fn directories(&self) -> MutexGuard<'_, HashSet<(FileId, u32)>> {
        let directories = self.directories.lock();
        directories.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if a native filesystem has this device number. `file` is on it.
    fn is_native(&self, device: u32, file: BorrowedFd<'_>) -> bool {
        const NATIVE: u64 = 1 << 32;
        const KNOWN: u64 = 1 << 33;
        // Relaxed: the number is complete by itself.
        let last = self.native.load(Ordering::Relaxed);
        if last & !NATIVE == KNOWN | u64::from(device) {
            return last & NATIVE != 0;
        }
        let is_native = Storage::of(file) == Storage::Native;
        let native = if is_native { NATIVE } else { 0 };
        let known = KNOWN | native | u64::from(device);
        self.native.store(known, Ordering::Relaxed);
        is_native
    }
}

impl Context<'_> {
    /// Returns `true` if a dest that exists may be the copy of another name. Then it is not replaced, and the copy fails.
    ///
    /// This run has made the directory of such a dest. On a native filesystem, another spelling of its name leads to it,
    /// too. On any other, it may have names that cannot be foreseen. An operand that is backed up may replace an
    /// earlier one.
    pub(super) fn is_of_run(&self, entry: &Entry<'_>) -> bool {
        self.dest_directory_origin(entry) == Origin::Created
            && self.plan.is_none()
            && (!entry.is_operand() || self.backup_rule(entry).is_none())
            && (!self.is_native(entry) || has_other_spelling(entry.dest_dir, entry.dest_name))
    }

    /// Returns the same about the dest of a directory.
    pub(super) fn is_place_of_run(&self, place: &Place<CopyDir>) -> bool {
        let Some(parent) = &place.parent else {
            return false;
        };
        let is_of_run = |dir: BorrowedFd<'_>, name: &CStr| {
            let identity = parent.dir.slot(Side::Dest).identity();
            let is_native = identity.is_some_and(|it| self.writers.is_native(it.device(), dir));
            Ok(!is_native || has_other_spelling(dir, name))
        };
        parent.state.origin() == Origin::Created
            && self.plan.is_none()
            && self.at(place, Side::Dest, is_of_run).unwrap_or(true)
    }

    /// Returns the refusal to replace a dest that this run has made from another source.
    pub(super) fn just_created(&self, entry: &Entry<'_>, source: &Facts) -> Failure {
        let kind = |symlinks| look::dest_facts(self, entry, symlinks).map(|facts| facts.kind);
        let writes_to_dest = self.policy.options.as_links.is_none()
            && source.kind == FileType::RegularFile
            && !self.treatment(entry).vacates();
        let refusal = just_created(
            writes_to_dest,
            || kind(Symlinks::NoFollow),
            || kind(Symlinks::Follow),
        );
        self.refused(entry, refusal)
    }

    /// Returns the same for a directory, which would be merged.
    pub(super) fn directory_just_created(&self, place: &Place<CopyDir>) -> Error {
        Error::refused(Refusal::JustCreated, self.place_path(place, Side::Dest))
            .at_dest()
            .with_other(Side::Source, self.place_path(place, Side::Source))
    }

    /// Lets no other worker write to a file that this worker has opened.
    pub(super) fn begin_writing(&self, dest: &Stat) -> Option<Writing<'_>> {
        self.has_workers()
            .then(|| self.writers.begin(FileId::of(dest)))
    }

    /// Does the same for a file that this worker has created, if another worker may meet it: in a directory that existed,
    /// if the file is large or if no native filesystem stores it.
    pub(super) fn begin_writing_new(
        &self,
        entry: &Entry<'_>,
        source: &Stat,
        dest: BorrowedFd<'_>,
    ) -> Option<Writing<'_>> {
        let has_operands = self.operands.len() > 1;
        let is_reached_twice = match entry.node {
            Some(node) => has_operands || node.state.origin() == Origin::Existing,
            None => has_operands,
        };
        if !is_reached_twice || !self.has_workers() {
            return None;
        }
        let is_doubtful = source.st_size >= LARGE_BYTES || !self.is_native(entry);
        let stat = is_doubtful.then(|| sys::stat_open(dest).ok())??;
        self.begin_writing(&stat)
    }

    /// Returns `true` if an open dest is on a native filesystem.
    pub(super) fn is_on_native(&self, dest: &Stat, file: BorrowedFd<'_>) -> bool {
        self.writers.is_native(FileId::of(dest).device, file)
    }

    /// Returns `true` if the directory of the dest is on a native filesystem.
    fn is_native(&self, entry: &Entry<'_>) -> bool {
        match entry.node {
            None => *self
                .writers
                .target_is_native
                .get_or_init(|| Storage::of(entry.dest_dir) == Storage::Native),
            Some(node) => {
                let identity = node.dir.slot(Side::Dest).identity();
                identity.is_some_and(|dir| self.writers.is_native(dir.device(), entry.dest_dir))
            }
        }
    }

    /// Notes that the entries of a directory are copied to `dest`. Fails if those of another directory below the same
    /// operand are being copied there.
    pub(super) fn begin_filling(
        &self,
        place: &Place<CopyDir>,
        dest: BorrowedFd<'_>,
        identity: Identity,
    ) -> Result<(), Error> {
        let is_reached_twice =
            |parent: &CopyNode| self.plan.is_none() && parent.state.origin() == Origin::Existing;
        if !place.parent.as_ref().is_some_and(is_reached_twice)
            || self.writers.is_native(identity.device(), dest)
        {
            return Ok(());
        }
        let is_first = self
            .writers
            .directories()
            .insert((identity.file(), place.operand));
        match is_first {
            true => Ok(()),
            false => Err(self.directory_just_created(place)),
        }
    }

    /// Notes that a directory is complete.
    pub(super) fn end_filling(&self, node: &CopyNode) {
        let may_be_noted = |parent: &CopyNode| parent.state.origin() == Origin::Existing;
        if node.place.parent.as_ref().is_some_and(may_be_noted)
            && let Some(identity) = node.dir.slot(Side::Dest).identity()
        {
            let noted = (identity.file(), node.place.operand);
            self.writers.directories().remove(&noted);
        }
    }

    fn has_workers(&self) -> bool {
        self.policy.options.threads != Some(NonZeroUsize::MIN)
    }
}

/// Returns `true` if a name in another case leads to the same file.
fn has_other_spelling(dir: BorrowedFd<'_>, name: &CStr) -> bool {
    let id = |name: &CStr| {
        let stat = sys::stat(dir, name, Symlinks::NoFollow);
        stat.ok().map(|stat| FileId::of(&stat))
    };
    let itself = id(name);
    let is_same = |other: &CString| **other != *name && itself.is_some() && id(other) == itself;
    other_spellings(name).iter().any(is_same)
}

/// Returns a name with lower and upper case exchanged: in ASCII, and in Unicode.
fn other_spellings(name: &CStr) -> [CString; 2] {
    let ascii = name.to_bytes().iter().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' => byte ^ 0x20,
        _ => *byte,
    });
    let ascii: Vec<u8> = ascii.collect();
    let exchanged = |c: char| -> String {
        match c.is_uppercase() {
            true => c.to_lowercase().collect(),
            false => c.to_uppercase().collect(),
        }
    };
    let unicode = match name.to_str() {
        Ok(name) => name.chars().map(exchanged).collect::<String>().into_bytes(),
        Err(_) => ascii.clone(),
    };
    [ascii, unicode].map(|name| CString::new(name).expect("BUG: a NUL within a C string"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    #[test]
    fn another_spelling_has_the_other_case() {
        for (name, ascii, unicode) in [
            (c"aB1", c"Ab1", c"Ab1"),
            (c"\xc3\x89x", c"\xc3\x89X", c"\xc3\xa9X"),
            (c"\xffx", c"\xffX", c"\xffX"),
            (c"12", c"12", c"12"),
        ] {
            assert_eq!(
                other_spellings(name),
                [ascii.to_owned(), unicode.to_owned()]
            );
        }
    }

    #[test]
    fn a_file_is_written_by_one_worker_at_a_time() {
        let id = |inode| FileId { device: 0, inode };
        let (writers, is_done) = (Writers::default(), AtomicBool::new(false));
        let first = writers.begin(id(1));
        let other = writers.begin(id(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let _second = writers.begin(id(1));
                assert!(is_done.load(Ordering::Relaxed));
            });
            drop(other);
            thread::yield_now();
            is_done.store(true, Ordering::Relaxed);
            drop(first);
        });
        assert!(writers.files().is_empty());
    }
}
