//! Dests that are open to be written to, and the names that they have until they are complete.
//!
//! - [`existing`]: looks at dests that exist, and renames or unlinks those in the way.
//! - [`alias`]: finds out whether a dest is the source, or equal to it.
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
//! | is unlinked, refused or written to, after `EEXIST` | `decide::clear` | [`clear_dest`]; [`open`] truncates it |
//! | is replaced by a rename when the copy is complete | the same, and `DestRules::atomic` | [`open`], `OpenDest::give_name` |
//! | cannot be opened, and is unlinked by `--force` | [`open`] | [`open`] |
//! | is replaced by a link or a special file | `decide::clear` | `make` |
//! | is a directory in the way of a mirror | `mirror::make_way` | `mirror` |
//!
//! Each write sets the time of modification to the present. So a file that is being written looks newer than its source,
//! and `cp -u` would keep it after SIGKILL. A large dest therefore has no name until it is complete: the kernel removes it if its
//! process ends. A power cut may still leave the name without the content.
//!
//! Another machine cannot open a file without a name. A dest that several engines write is created beside its place,
//! under a hidden name that cannot be guessed. If the engine dies, only this file is left.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

use rustix::io::Errno;

use super::changes::{New, hidden_name};
use super::collisions;
use super::context::Failure;
use super::decide::mode::Origin;
use super::entry::Entry;
use super::facts::{DestState, FileId, Symlinks};
use super::writers::Writing;
use crate::error::Operation;
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
    /// The dest has the content of its source already.
    pub(crate) has_content: bool,
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

impl OpenDest<'_> {
    pub(crate) fn new_file(fd: Fd, naming: Naming) -> Self {
        Self {
            fd,
            is_file: true,
            origin: Origin::Created,
            naming,
            mode_before: None,
            has_content: false,
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

    /// Gives a complete dest its name, and removes the one that it had. Returns `false` if that is not possible, so that
    /// the file must be written under its name instead.
    ///
    /// # Errors
    /// The dest could not replace the file at its place.
    #[cold]
    pub(crate) fn give_name(&self, entry: &Entry<'_>) -> Result<bool, Errno> {
        if self.naming == Naming::Replacing {
            // Servers may report only when a file is closed that they have not stored its content.
            let stored = sys::duplicate(self.fd.as_fd()).and_then(sys::close_checked);
            let replaced = stored.and_then(|()| self.rename_hidden(entry, sys::rename));
            if replaced.is_err() {
                self.remove_hidden(entry);
            }
            return replaced.map(|()| true);
        }
        // The name is given to the open file itself, so no file that has taken over the hidden name gets it. Unlike a
        // rename without replacement, all network filesystems can make a link.
        let linked = sys::create_hard_link_to(self.fd.as_fd(), entry.dest_dir, entry.dest_name);
        let has_name = match linked {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            // The filesystem has no hard links.
            Err(_) if self.hidden_name().is_some() => {
                self.rename_hidden(entry, sys::rename_to_new).is_ok()
            }
            Err(_) => {
                entry.ctx.lacks_unnamed_files.store(true, Ordering::Relaxed);
                false
            }
        };
        self.remove_hidden(entry);
        if has_name {
            // A process that watches the directory learns from this that a file was closed after
            // it was written. Closing the dest sends no event for its new name.
            let _ = sys::open_existing(entry.dest_at(), Blocking::OnlyForLease);
        }
        Ok(has_name)
    }

    /// Renames the dest from its hidden name to its own by `rename`.
    ///
    /// # Errors
    /// `ESTALE` if another process has put a file of its own at either name.
    fn rename_hidden(
        &self,
        entry: &Entry<'_>,
        rename: impl FnOnce(BorrowedFd<'_>, &CStr, &CStr) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        match self.hidden_name() {
            Some(hidden) if self.is_at(entry, hidden) => {
                rename(entry.dest_dir, hidden, entry.dest_name)?;
            }
            _ => return Err(Errno::STALE),
        }
        match self.is_at(entry, entry.dest_name) {
            true => Ok(()),
            false => Err(Errno::STALE),
        }
    }

    /// Removes the name that the dest has until it is complete, unless another file has taken it over.
    pub(crate) fn remove_hidden(&self, entry: &Entry<'_>) {
        if let Some(hidden) = self.hidden_name() {
            // If this fails, an incomplete file stays under its hidden name.
            let _ = self.remove(entry, hidden);
        }
    }

    /// Removes `name`, if it leads to the dest.
    ///
    /// # Errors
    /// `ESTALE` if it leads elsewhere.
    pub(crate) fn remove(&self, entry: &Entry<'_>, name: &CStr) -> Result<(), Errno> {
        match self.is_at(entry, name) {
            true => sys::unlink(entry.dest_dir, name),
            false => Err(Errno::STALE),
        }
    }

    /// Returns `true` if `name` leads to the dest.
    fn is_at(&self, entry: &Entry<'_>, name: &CStr) -> bool {
        let named = sys::stat(entry.dest_dir, name, Symlinks::NoFollow);
        let open = sys::stat_open(&self.fd);
        matches!((named, open), (Ok(named), Ok(open)) if FileId::of(&named) == FileId::of(&open))
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
    // Relaxed: the flag only saves calls that would fail, and publishes nothing.
    let lacks_unnamed_files = &ctx.lacks_unnamed_files;
    let names_file = !entry.dest_name.to_bytes().ends_with(b"/");
    if !names_file
        || lacks_unnamed_files.load(Ordering::Relaxed)
        || may_be_occupied(entry)
        || !collisions::is_native(entry)
    {
        return None;
    }
    let directory = paths::directory_of(entry.dest_name);
    let mode = ctx.policy.creation_mode(source.st_mode);
    let created = ctx
        .descriptors
        .making_room(|| sys::create_unnamed(entry.dest_dir, &directory, mode));
    // Linux before 3.11 ignores the flag, and takes this for an attempt to write to the directory.
    if let Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOSYS) = created {
        lacks_unnamed_files.store(true, Ordering::Relaxed);
    }
    created.ok()
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

/// Unlinks the dest, which makes its name vacant.
pub(super) fn unlink(entry: &Entry<'_>) -> Result<(), Failure> {
    entry
        .ctx
        .changes
        .unlink(entry.spot())
        .map_err(|errno| Failure::preparing(entry.dest_error(Operation::Remove, errno)))?;
    entry.emit(|_, dest, _| Event::RemovedDest(dest));
    Ok(())
}

/// Creates the dest of a directory.
#[inline]
pub(super) fn create_directory(entry: &Entry<'_>, mode: u32) -> Result<(), Errno> {
    let new = New::Directory(entry.source_at());
    entry.ctx.changes.create(entry.spot(), new, || {
        sys::create_directory(entry.dest_dir, entry.dest_name, mode)
    })
}
