//! Dests that are open to be written to, and the names that they have until they are complete.
//!
//! - [`existing`]: looks at dests that exist, and renames or unlinks those in the way.
//! - [`alias`]: finds out whether a dest is the source, or may be.
//! - [`open`]: creates or opens a dest file, and truncates it.
//! - [`backup`]: renames dests to backups, and back.
//! - [`power_cut`]: finds dests whose content a power cut has taken.
//!
//! This is what happens to a dest that exists:
//!
//! | a dest | decided by | done by |
//! |---|---|---|
//! | is kept, or the user is asked | `decide::overwrite`, if there are rules | [`existing::decide`], which breaks |
//! | is renamed to a backup, or unlinked before the copy | `Entry::treatment`: the options alone | [`existing::prepare`] |
//! | is replaced by a rename when the copy is complete | [`existing::prepare`] | [`open`], `OpenDest::close_and_rename`; `make` |
//! | is unlinked, refused or written to, after `EEXIST` | `decide::clear` | [`clear_dest`]; [`open`] truncates it |
//! | cannot be opened, and is unlinked by `--force` | [`open`] | [`open`] |
//! | is replaced by a link or a special file | `decide::clear` | `make` |
//!
//! Each write sets the time of modification to the present. So a file that is being written looks newer than its source,
//! and `cp -u` would keep it after SIGKILL. A large dest therefore has no name until it is complete: the kernel removes it if its
//! process ends. A power cut may still leave the name without the content.
//!
//! Another machine cannot open a file without a name. A dest that several engines write is created beside its place,
//! under a hidden name that cannot be guessed. If the engine dies, only this file is left.

use std::ffi::CStr;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use rustix::io::Errno;

use super::changes::hidden_name;
use super::collisions;
use super::context::Failure;
use super::decide::mode::Origin;
use super::diagnose;
use super::entry::Entry;
use super::facts::{DestState, FileId, Symlinks};
use super::writers::Writing;
use crate::error::{Error, Operation};
use crate::observer::Event;
use crate::paths;
use crate::sys::{self, Blocking, Fd, Stat};

pub(super) mod alias;
pub(super) mod backup;
pub(super) mod existing;
pub(super) mod open;
mod power_cut;

pub(super) use existing::{clear_dest, decide_to_clear};

/// Size from which a dest gets its name last, which takes up to four more calls.
///
/// With it, copying 400 files of 1 MiB took 1.00 times as long as without it, and 40 files of 8 MiB 1.02 times (tmpfs, 2
/// cores, 30 runs of each; to repeat it, build with `u64::MAX`).
const NAMED_LAST_FROM: u64 = 1 << 20;

/// Says when a dest gets its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// The dest has its name while it is written.
    AtOnce,
    /// The dest gets its name when it is complete, if that is possible. It has none until then.
    WhenComplete,
    /// The same, and it has a hidden name until then, by which other engines open it.
    Hidden,
    /// It has a hidden name until it replaces the file at its place.
    Replacing,
}

/// An open dest that is ready for the content.
pub(crate) struct OpenDest<'w> {
    pub(crate) fd: Fd,
    /// `true` for a regular file, which may get holes and a final truncation.
    pub(crate) is_file: bool,
    pub(crate) origin: Origin,
    pub(crate) naming: Naming,
    /// The mode that an existing dest gets back if its copy fails, if it was changed.
    pub(crate) mode_before: Option<u32>,
    /// The dest may be the source, so it was not truncated.
    pub(crate) keeps_content: bool,
    /// Boxed, because few dests need it.
    pub(crate) writing: Option<Box<Guards<'w>>>,
}

/// The guards that keep other workers from writing to a file, if they could, by its name and by its number.
#[derive(Default)]
pub(crate) struct Guards<'w> {
    _name: Option<Writing<'w>>,
    _file: Option<Writing<'w>>,
    /// The name that the file has until it is complete.
    hidden_name: Option<Box<CStr>>,
}

impl<'w> Guards<'w> {
    fn of_file(file: Option<Writing<'w>>) -> Option<Box<Self>> {
        let guards = |file| Self {
            _file: Some(file),
            ..Self::default()
        };
        file.map(guards).map(Box::new)
    }
}

impl<'w> OpenDest<'w> {
    pub(crate) fn new_file(fd: Fd, naming: Naming) -> Self {
        Self {
            fd,
            is_file: true,
            origin: Origin::Created,
            naming,
            mode_before: None,
            keeps_content: false,
            writing: None,
        }
    }

    /// Returns a new dest that has another name until it is complete.
    pub(crate) fn beside(fd: Fd, naming: Naming, name: Box<CStr>) -> Self {
        let mut dest = Self::new_file(fd, naming);
        dest.writing.get_or_insert_default().hidden_name = Some(name);
        dest
    }

    /// Returns the name that the dest has until it is complete.
    pub(crate) fn hidden_name(&self) -> Option<&CStr> {
        self.writing.as_ref()?.hidden_name.as_deref()
    }

    /// Gives a complete dest that has no name its name. Returns `false` if that is not possible, so that the file must be
    /// written under its name instead.
    #[cold]
    pub(crate) fn give_name(&self, entry: &Entry<'_>) -> bool {
        let linked = sys::create_hard_link_to(self.fd.as_fd(), entry.dest_dir, entry.dest_name);
        match linked {
            Ok(()) => {
                // A process that watches the directory learns from this that a file was closed after
                // it was written. Closing the dest sends no event for its new name.
                let _ = sys::open_existing(entry.dest_at(), Blocking::OnlyForLease);
            }
            Err(Errno::EXIST) => {}
            Err(_) => entry.ctx.lacks_unnamed_files.store(true, Ordering::Relaxed),
        }
        linked.is_ok()
    }

    /// Closes a complete dest that has a hidden name, and renames it. Returns `false` if it replaces nothing and cannot be
    /// renamed, so that the file must be written under its name instead. Removes it if it does not get its name.
    ///
    /// It is closed first, because a server may report only then that it has not stored the content, and because some
    /// filesystems rename no open files.
    #[cold]
    pub(crate) fn close_and_rename(self, entry: &Entry<'_>) -> Result<bool, Failure> {
        let naming = self.naming;
        let (closed, stored) = self.close();
        let (dir, name) = (entry.dest_dir, closed.name(entry));
        let renamed = closed.check(entry).and_then(|()| match (stored, naming) {
            (Err(errno), _) => Err(errno),
            (Ok(()), Naming::Hidden) => sys::rename_to_new(dir, name, entry.dest_name),
            (Ok(()), _) => sys::rename(dir, name, entry.dest_name),
        });
        let Err(errno) = renamed else {
            return Ok(true);
        };
        closed.remove_hidden(entry);
        match (stored, naming) {
            (Err(errno), _) => Err(entry.making_failure(Operation::Close, errno)),
            (Ok(()), Naming::Hidden) => Ok(false),
            (Ok(()), _) => Err(diagnose::file_creation(entry, errno)),
        }
    }

    /// Closes the dest, and removes it by its name.
    ///
    /// # Errors
    /// It stays. `ESTALE` if its name leads elsewhere.
    pub(crate) fn remove(self, entry: &Entry<'_>) -> Result<(), Errno> {
        self.close().0.remove(entry)
    }

    /// Does the same for a dest that has a hidden name. Reports that it stays.
    pub(crate) fn remove_hidden(self, entry: &Entry<'_>) {
        self.close().0.remove_hidden(entry);
    }

    /// Closes the dest. Also returns the error that the kernel reports then.
    fn close(self) -> (ClosedDest<'w>, Result<(), Errno>) {
        let closed = ClosedDest {
            seen: sys::stat_open(&self.fd),
            writing: self.writing,
        };
        (closed, sys::close_checked(self.fd))
    }
}

/// A dest that was closed, and that no other worker uses yet.
struct ClosedDest<'w> {
    seen: Result<Stat, Errno>,
    writing: Option<Box<Guards<'w>>>,
}

impl ClosedDest<'_> {
    fn name<'n>(&'n self, entry: &Entry<'n>) -> &'n CStr {
        let writing = self.writing.as_ref();
        writing
            .and_then(|guards| guards.hidden_name.as_deref())
            .unwrap_or(entry.dest_name)
    }

    /// Fails with `ESTALE` if the name leads elsewhere. Where files do not keep their inode numbers, type and size decide.
    fn check(&self, entry: &Entry<'_>) -> Result<(), Errno> {
        let named = sys::stat(entry.dest_dir, self.name(entry), Symlinks::NoFollow)?;
        let seen = self.seen?;
        let looks_alike = || sys::is_regular(&named) && named.st_size == seen.st_size;
        match FileId::of(&named) == FileId::of(&seen)
            || looks_alike() && !collisions::is_native(entry)
        {
            true => Ok(()),
            false => Err(Errno::STALE),
        }
    }

    fn remove(&self, entry: &Entry<'_>) -> Result<(), Errno> {
        let unlink = |()| sys::unlink(entry.dest_dir, self.name(entry));
        match self.check(entry).and_then(unlink) {
            Err(Errno::NOENT) => Ok(()),
            removed => removed,
        }
    }

    fn remove_hidden(&self, entry: &Entry<'_>) {
        match self.remove(entry) {
            // Another process has put its own file there.
            Ok(()) | Err(Errno::STALE) => {}
            Err(errno) => {
                let path = entry.path_beside(self.name(entry));
                entry.fail(Error::failed(Operation::Remove, path, errno).at_dest());
            }
        }
    }
}

/// Creates the dest of a large source without a name. Returns `None` if that is not possible, or if
/// something may be at the dest.
///
/// Only native filesystems are trusted with a file without a name. JuiceFS deletes it when it is closed, although it has
/// accepted the link.
#[cold]
fn try_create_unnamed(entry: &Entry<'_>, source: &Stat) -> Option<Fd> {
    let ctx = entry.ctx;
    let names_file = !entry.dest_name.to_bytes().ends_with(b"/");
    if !names_file
        // Relaxed: the flag only saves a copy that would get no name, and publishes nothing.
        || ctx.lacks_unnamed_files.load(Ordering::Relaxed)
        || may_be_occupied(entry)
        || !collisions::is_native(entry)
    {
        return None;
    }
    let directory = paths::directory_of(entry.dest_name);
    let mode = ctx.policy.creation_mode(source.st_mode);
    let create = || sys::create_unnamed(entry.dest_dir, &directory, mode);
    ctx.descriptors.making_room(create).ok()
}

/// Creates a dest under a hidden name. Returns `None` if that is not possible, or if something may be at the dest.
#[cold]
pub(crate) fn try_create_hidden<'w>(entry: &Entry<'_>, source: &Stat) -> Option<OpenDest<'w>> {
    if may_be_occupied(entry) {
        return None;
    }
    create_beside(entry, source.st_mode, Naming::Hidden).ok()
}

/// Creates a file in the directory of the dest, which has another name until it is complete.
fn create_beside<'w>(
    entry: &Entry<'_>,
    source_mode: u32,
    naming: Naming,
) -> Result<OpenDest<'w>, Errno> {
    let name = hidden_name(entry.dest_name);
    let mode = entry.ctx.policy.creation_mode(source_mode);
    let file = entry
        .ctx
        .descriptors
        .making_room(|| sys::create_file(entry.dest_dir, &name, mode))?;
    Ok(OpenDest::beside(file, naming, name.into_boxed_c_str()))
}

/// Returns `true` if `source` is so large that its copy gets its name last.
#[inline]
fn may_be_named_last(entry: &Entry<'_>, source: &Stat) -> bool {
    source.st_size >= NAMED_LAST_FROM as i64
        && sys::is_regular(source)
        && entry.ctx.policy.writes_content
        && may_be_opened_again(entry, source)
}

/// Returns `true` if the user may open the complete copy of `source` to write to it. That is how a process that watches
/// the directory learns of a file that gets its name last.
fn may_be_opened_again(entry: &Entry<'_>, source: &Stat) -> bool {
    const OWNER_WRITES: u32 = 0o200;
    let policy = &entry.ctx.policy;
    policy.user == 0 || source.st_mode & !policy.umask() & OWNER_WRITES != 0
}

/// Returns `true` if something may be at the dest.
fn may_be_occupied(entry: &Entry<'_>) -> bool {
    let is_vacant = matches!(entry.dest_state, DestState::Vacant { .. })
        || entry.dest_directory_origin() == Origin::Created;
    !is_vacant && entry.stat_dest(Symlinks::NoFollow).err() != Some(Errno::NOENT)
}

/// Unlinks the dest, which makes its name vacant. Another process may have done that before.
pub(super) fn unlink(entry: &Entry<'_>) -> Result<(), Failure> {
    match entry.ctx.changes.unlink(entry.spot()) {
        Ok(()) => entry.emit(|_, dest, _| Event::RemovedDest(dest)),
        Err(Errno::NOENT) => {}
        Err(errno) => {
            let error = entry.dest_error(Operation::Remove, errno);
            return Err(Failure::preparing(error));
        }
    }
    Ok(())
}
