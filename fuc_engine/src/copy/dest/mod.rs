//! Dests that are open to be written to, and the names that they have until they are complete.
//!
//! - [`settling`]: looks at dests, and unlinks or renames those in the way.
//! - [`backup`]: names backups, and renames dests to them and back.
//!
//! `decide::settle` has the table of what happens to a dest that exists. Here a dest file is created or opened in the way
//! that was settled. Nothing is truncated before it is known that the file that was opened is not the source: only this check,
//! and the order that [`settling`] describes, protect the source of `cp f f`, whatever alias names it.
//!
//! Each write sets the time of modification to the present. So a file that is being written looks newer than its source,
//! and `cp -u` would keep it after SIGKILL. A large dest therefore has no name until it is complete: the kernel removes it if its
//! process ends. A power cut may still leave the name without the content.

use std::ffi::CStr;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use rustix::io::Errno;

use super::attributes;
use super::changes::{Replaces, Spot, hidden_name};
use super::collisions;
use super::content::{OpenSource, has_holes};
use super::context::Failure;
use super::decide::mode::{OWNER_FILE, Origin};
use super::decide::settle::Way;
use super::entry::Entry;
use super::facts::{FileId, Symlinks};
use super::options::Sparse;
use super::writers::Writing;
use crate::error::{Error, Operation, Refusal};
use crate::paths;
use crate::sys::{self, At, Blocking, Fd, Stat, Storage};

use settling::{may_be_source, unlink};

pub(super) mod backup;
pub(super) mod settling;

/// Size from which a dest gets its name last, which takes up to four more calls.
///
/// With it, copying 400 files of 1 MiB took 1.00 times as long as without it, and 40 files of 8 MiB 1.02 times (tmpfs, 2
/// cores, 30 runs of each; to repeat it, build with `u64::MAX`).
const NAMED_LAST_FROM: u64 = 1 << 20;

/// Says when a dest gets its name.
#[derive(Debug)]
pub(crate) enum Naming {
    /// The dest has its name while it is written.
    AtOnce,
    /// The dest gets its name when it is complete, if that is possible. It has none until then.
    WhenComplete,
    /// It has a hidden name until it is complete, and is renamed then. If it replaces nothing, helpers of the caller fill it, too.
    Hidden(Box<CStr>, Replaces),
}

impl Naming {
    pub(crate) fn hidden_name(&self) -> Option<&CStr> {
        match self {
            Self::Hidden(name, _) => Some(name),
            Self::AtOnce | Self::WhenComplete => None,
        }
    }
}

/// A dest that is open and ready for the content of its source. `make/file` fills it.
pub(crate) struct OpenDest<'f> {
    pub(crate) entry: &'f Entry<'f>,
    pub(crate) source: &'f OpenSource<'f>,
    pub(crate) fd: Fd,
    /// `true` for a regular file, which may get holes and a final truncation.
    pub(crate) is_file: bool,
    pub(crate) origin: Origin,
    pub(crate) naming: Naming,
    /// The mode that an existing dest gets back if its copy fails, if it was changed.
    pub(crate) mode_before: Option<u32>,
    /// An existing dest has the owner and the permissions of its source already.
    pub(crate) has_rights: bool,
    /// The dest may be the source, so it was not truncated.
    pub(crate) keeps_content: bool,
    /// The guards that keep other workers from writing to the file, if they could, by its name and by its number.
    pub(crate) writing: Vec<Writing<'f>>,
}

impl<'f> OpenDest<'f> {
    /// Gives a complete dest that has no name its name. Returns `false` if that is not possible, so that the file must be
    /// written under its name instead.
    #[cold]
    pub(crate) fn give_name(&self) -> bool {
        let entry = self.entry;
        let linked = sys::create_hard_link_to(self.fd.as_fd(), entry.dest.dir, entry.dest.name);
        match linked {
            Ok(()) => {
                // A process that watches the directory learns from this that a file was closed after
                // it was written. Closing the dest sends no event for its new name.
                let dest = entry.dest.at(Symlinks::NoFollow);
                let _ = sys::open_existing(dest, Blocking::OnlyForLease);
            }
            Err(Errno::EXIST) => {}
            Err(_) => entry.ctx.lacks_unnamed_files.store(true, Ordering::Relaxed),
        }
        linked.is_ok()
    }

    /// Closes a complete dest that has a hidden name, and renames it. Removes it if it does not get its name. Returns `false`
    /// if another file has that, which it may not replace.
    ///
    /// It is closed first, because a server may report only then that it has not stored the content, and because some
    /// filesystems rename no open files.
    #[cold]
    pub(crate) fn close_and_rename(self, replaces: Replaces) -> Result<bool, Failure> {
        let entry = self.entry;
        let (closed, stored) = self.close();
        let (dir, name) = (entry.dest.dir, closed.name());
        let changes = &entry.ctx.changes;
        let rename = |()| changes.rename(dir, name, entry.dest.name, replaces);
        let renamed = closed.check_name().and(stored).and_then(rename);
        let Err(errno) = renamed else {
            return Ok(true);
        };
        closed.remove_hidden();
        match stored {
            Err(errno) => Err(entry.making_failure(Operation::Close, errno)),
            Ok(()) if replaces == Replaces::Nothing && errno == Errno::EXIST => Ok(false),
            Ok(()) => Err(entry.making_failure(Operation::CreateFile, errno)),
        }
    }

    /// Closes the dest, and removes it by its name.
    ///
    /// # Errors
    /// It stays. `ESTALE` if its name leads elsewhere.
    pub(crate) fn remove(self) -> Result<(), Errno> {
        self.close().0.remove()
    }

    /// Does the same for a dest that has a hidden name. Reports that it stays.
    pub(crate) fn remove_hidden(self) {
        self.close().0.remove_hidden();
    }

    /// Closes the dest. Also returns the error that the kernel reports then.
    fn close(self) -> (ClosedDest<'f>, Result<(), Errno>) {
        let closed = ClosedDest {
            entry: self.entry,
            seen: sys::stat_open(&self.fd),
            naming: self.naming,
            _writing: self.writing,
        };
        (closed, sys::close_checked(self.fd))
    }
}

/// A dest that was closed, and that no other worker uses yet.
struct ClosedDest<'f> {
    entry: &'f Entry<'f>,
    seen: Result<Stat, Errno>,
    naming: Naming,
    _writing: Vec<Writing<'f>>,
}

impl ClosedDest<'_> {
    fn name(&self) -> &CStr {
        self.naming.hidden_name().unwrap_or(self.entry.dest.name)
    }

    /// Fails with `ESTALE` if the name leads elsewhere. Where files do not keep their inode numbers, type and size decide.
    fn check_name(&self) -> Result<(), Errno> {
        let entry = self.entry;
        let named = sys::stat(entry.dest.dir, self.name(), Symlinks::NoFollow)?;
        let seen = self.seen?;
        let looks_alike = || sys::is_regular(&named) && named.st_size == seen.st_size;
        match FileId::of(&named) == FileId::of(&seen) || looks_alike() && !entry.has_native_dest() {
            true => Ok(()),
            false => Err(Errno::STALE),
        }
    }

    fn remove(&self) -> Result<(), Errno> {
        let unlink = |()| sys::unlink(self.entry.dest.dir, self.name());
        match self.check_name().and_then(unlink) {
            Err(Errno::NOENT) => Ok(()),
            removed => removed,
        }
    }

    fn remove_hidden(&self) {
        match self.remove() {
            // Another process has put its own file there.
            Ok(()) | Err(Errno::STALE) => {}
            Err(errno) => {
                let path = self.entry.path_beside(self.name());
                self.entry
                    .fail(Error::failed(Operation::Remove, path, errno).at_dest());
            }
        }
    }
}

/// Returns `true` if `source` is so large that its copy gets its name last.
#[inline]
fn may_be_named_last(entry: &Entry<'_>, source: &Stat) -> bool {
    source.st_size >= NAMED_LAST_FROM as i64
        && sys::is_regular(source)
        && entry.ctx.policy.writes_content
}

/// Returns `true` if the user may open the complete copy to write to it. That is how a process that watches the directory
/// learns of a file that gets its name last.
fn may_be_opened_again(entry: &Entry<'_>, source_mode: u32) -> bool {
    const OWNER_WRITES: u32 = 0o200;
    let policy = &entry.ctx.policy;
    policy.user == 0 || source_mode & !policy.umask() & OWNER_WRITES != 0
}

/// A dest that is created, or opened and emptied.
#[derive(Clone, Copy)]
struct Opening<'o> {
    entry: &'o Entry<'o>,
    source: &'o OpenSource<'o>,
}

/// Creates or opens the dest of `source` in the way that is settled. Returns `None` if it should be created, and something is
/// there. A large new dest gets its name when it is complete, if that is possible.
#[inline(always)]
pub(crate) fn open_for_content<'o>(
    entry: &'o Entry<'o>,
    source: &'o OpenSource<'o>,
    way: Way,
) -> Result<Option<OpenDest<'o>>, Failure> {
    let opening = Opening { entry, source };
    if way == Way::Create
        && may_be_named_last(entry, source.stat)
        && let Some(dest) = opening.try_create_nameless()
    {
        return Ok(Some(dest));
    }
    match entry.may_be_met() {
        true => opening.open_alone(way),
        false => opening.open_by(way),
    }
}

impl<'o> Opening<'o> {
    fn creation_failure(self, errno: Errno) -> Failure {
        self.entry.making_failure(Operation::CreateFile, errno)
    }

    /// Describes a new dest file.
    fn new_file(self, fd: Fd, naming: Naming) -> OpenDest<'o> {
        OpenDest {
            entry: self.entry,
            source: self.source,
            fd,
            is_file: true,
            origin: Origin::Created,
            naming,
            mode_before: None,
            has_rights: false,
            keeps_content: false,
            writing: Vec::new(),
        }
    }

    /// Returns `true` if helpers of the caller copy parts of a source: the content must be read and written, and zeros in
    /// several parts need not be found together.
    fn is_divided(self) -> bool {
        let Self { entry, source } = self;
        let options = entry.ctx.policy.options;
        let kernel_copies = options.lets_kernel_copy() && source.storage == Storage::Native;
        !kernel_copies
            && options.sparse != Sparse::Always
            && entry.ctx.changes.are_visible()
            && options.setup.divides(source.stat.st_size as u64)
    }

    /// Creates the dest of a large source, which gets its name when it is complete. Returns `None` if that is not possible.
    ///
    /// Only native filesystems are trusted with a file without a name. JuiceFS accepts the link, and deletes the file
    /// when it is closed.
    #[cold]
    fn try_create_nameless(self) -> Option<OpenDest<'o>> {
        let Self { entry, source } = self;
        let (ctx, source_mode) = (entry.ctx, source.stat.st_mode);
        if entry.dest.name.to_bytes().ends_with(b"/") {
            return None;
        }
        if self.is_divided() {
            return self.create_hidden(Replaces::Nothing).ok();
        }
        if !may_be_opened_again(entry, source_mode)
            // Relaxed: the flag only saves a copy that would get no name, and publishes nothing.
            || ctx.lacks_unnamed_files.load(Ordering::Relaxed)
            || !entry.has_native_dest()
        {
            return None;
        }
        let directory = paths::directory_of(entry.dest.name);
        let mode = ctx.policy.creation_mode(source_mode);
        let create = || sys::create_unnamed(entry.dest.dir, &directory, mode);
        let file = ctx.descriptors.making_room(create).ok()?;
        Some(self.new_file(file, Naming::WhenComplete))
    }

    /// Creates a file in the directory of the dest, which has another name until it is complete. If helpers of the caller must
    /// open it, and it gets its mode last, the owner may.
    fn create_hidden(self, replaces: Replaces) -> Result<OpenDest<'o>, Errno> {
        let Self { entry, source } = self;
        let (policy, source_mode) = (&entry.ctx.policy, source.stat.st_mode);
        let name = hidden_name(entry.dest.name);
        let mut mode = policy.creation_mode(source_mode);
        if replaces == Replaces::Nothing && policy.last_mode(source_mode, Origin::Created).is_some()
        {
            mode |= OWNER_FILE;
        }
        let create = || sys::create_file(entry.dest.dir, &name, mode);
        let file = entry.ctx.descriptors.making_room(create)?;
        let naming = Naming::Hidden(name.into_boxed_c_str(), replaces);
        Ok(self.new_file(file, naming))
    }

    #[inline(always)]
    fn open_by(self, way: Way) -> Result<Option<OpenDest<'o>>, Failure> {
        match way {
            Way::Create => match self.create_named(self.entry.dest) {
                Ok(dest) => Ok(Some(dest)),
                Err(Errno::EXIST) => Ok(None),
                // The kernel says so of each name with a slash at the end.
                Err(Errno::ISDIR) => Err(self.creation_failure(Errno::NOTDIR)),
                Err(errno) => Err(self.creation_failure(errno)),
            },
            Way::CreateThrough => self.create_through_link().map(Some),
            Way::Write(symlinks) => self.open_existing(symlinks).map(Some),
            Way::Replace(_) => self.create_beside().map(Some),
            Way::Stay(errno) => Err(self.creation_failure(errno)),
            Way::StayLink => {
                let refused = self.entry.refused(Refusal::DanglingDest);
                Err(Failure::making(refused.error))
            }
        }
    }

    /// Opens a dest that another worker may meet, and keeps it from writing to it.
    #[cold]
    fn open_alone(self, way: Way) -> Result<Option<OpenDest<'o>>, Failure> {
        let ctx = self.entry.ctx;
        let name = collisions::reserve_name(self.entry);
        let Some(mut dest) = self.open_by(way)? else {
            return Ok(None);
        };
        // A file that existed is guarded already.
        let is_new = dest.origin == Origin::Created && dest.writing.is_empty();
        if is_new && (name.is_some() || ctx.merges_directories) {
            let begin = || collisions::begin_writing_new(ctx, dest.fd.as_fd()).map(Some);
            let begun = ctx.changes.really(begin);
            dest.writing
                .extend(begun.map_err(|errno| self.creation_failure(errno))?);
        }
        dest.writing.extend(name);
        Ok(Some(dest))
    }

    #[inline(always)]
    fn create_named(self, spot: Spot<'_>) -> Result<OpenDest<'o>, Errno> {
        let Self { entry, source } = self;
        let ctx = entry.ctx;
        let mode = ctx.policy.creation_mode(source.stat.st_mode);
        let file = ctx
            .descriptors
            .making_room(|| ctx.changes.create_file(spot, mode))?;
        Ok(self.new_file(file, Naming::AtOnce))
    }

    fn create_again(self) -> Result<OpenDest<'o>, Failure> {
        let created = self.create_named(self.entry.dest.vacated());
        created.map_err(|errno| self.creation_failure(errno))
    }

    /// Fails if a file, which was seen as `present`, is the source.
    fn check_not_source(self, present: &Stat) -> Result<(), Failure> {
        match FileId::of(self.source.stat) == FileId::of(present) {
            true => Err(self.entry.refused(Refusal::SameFile)),
            false => Ok(()),
        }
    }

    fn open_existing(self, symlinks: Symlinks) -> Result<OpenDest<'o>, Failure> {
        let entry = self.entry;
        let ctx = entry.ctx;
        let dest = entry.dest.at(symlinks);
        let spot = entry.dest;
        let open = || ctx.changes.open_existing(spot, symlinks, entry.blocking());
        match ctx.descriptors.making_room(open) {
            Ok(opened) => self.prepare_opened(opened, dest),
            // Another process has just replaced the file by a link.
            Err(Errno::LOOP) if symlinks == Symlinks::NoFollow => {
                Err(entry.refused(Refusal::ThroughJustCreatedLink))
            }
            // Another process has removed it, perhaps on another machine, and this one saw what its client remembered.
            Err(Errno::NOENT) => self.create_again(),
            Err(errno) => self.open_emptied(dest, errno),
        }
    }

    /// Opens a dest file, which could not be opened or truncated because of `errno`, in the way of cp: opening it removes
    /// its content. Some filesystems know no other way.
    #[cold]
    fn open_emptied(self, dest: At<'_>, errno: Errno) -> Result<OpenDest<'o>, Failure> {
        let entry = self.entry;
        let ctx = entry.ctx;
        let present = sys::stat(dest.dir, dest.name, dest.symlinks);
        let present = present.ok().filter(|present| {
            is_about_the_file(errno)
                && errno != Errno::TXTBSY
                && ctx.policy.writes_content
                && sys::is_regular(present)
                && entry.may_write_dest()
        });
        let Some(present) = present else {
            return self.replace_by_force(errno);
        };
        self.check_not_source(&present)?;
        if self.may_lose_source(&present, entry.has_native_dest()) {
            return self.create_beside();
        }
        let writing = collisions::begin_writing(ctx, &present);
        match ctx
            .descriptors
            .making_room(|| sys::open_emptied(dest, errno))
        {
            Ok(opened) => {
                let seen = self.look_again(&opened)?;
                Ok(OpenDest {
                    writing: vec![writing],
                    ..self.opened(opened, &seen)
                })
            }
            Err(_) => self.replace_by_force(errno),
        }
    }

    /// Replaces a file that could not be opened and emptied because of `errno`, if the options say so and that may help.
    #[cold]
    fn replace_by_force(self, errno: Errno) -> Result<OpenDest<'o>, Failure> {
        let entry = self.entry;
        if !entry.ctx.policy.options.force || !is_about_the_file(errno) {
            return Err(self.creation_failure(errno));
        }
        let present = sys::stat(entry.dest.dir, entry.dest.name, Symlinks::NoFollow);
        let is_native = entry.has_native_dest();
        if present.is_ok_and(|present| self.may_lose_source(&present, is_native)) {
            return self.create_beside();
        }
        // The copy had begun, so `-v` names it even if the removal fails.
        unlink(entry).map_err(|failure| Failure::making(failure.error))?;
        self.create_again()
    }

    /// Creates a file that replaces the dest when it is complete.
    #[cold]
    fn create_beside(self) -> Result<OpenDest<'o>, Failure> {
        let entry = self.entry;
        let failed = |errno| self.creation_failure(errno);
        if !entry.ctx.changes.are_visible() {
            // A rename takes the permissions of a removal.
            entry.ctx.changes.unlink(entry.dest).map_err(failed)?;
            return self.create_again();
        }
        // Neither would the new file get its name, nor could it be removed.
        if sys::is_append_only(entry.dest.dir, &paths::directory_of(entry.dest.name)) {
            return Err(failed(Errno::PERM));
        }
        self.create_hidden(Replaces::Files).map_err(failed)
    }

    /// Creates the file that a link at the dest leads to.
    fn create_through_link(self) -> Result<OpenDest<'o>, Failure> {
        let Self { entry, source } = self;
        let ctx = entry.ctx;
        let mode = ctx.policy.creation_mode(source.stat.st_mode);
        let create = || sys::create_through_link(entry.dest.dir, entry.dest.name, mode);
        let (spot, origin) = (entry.dest, Origin::Created);
        let opened = ctx
            .changes
            .open_dest(spot, origin, || ctx.descriptors.making_room(create));
        let opened = opened.map_err(|errno| self.creation_failure(errno))?;
        // Another process may have created it since, so it is emptied like an existing file.
        let dest = self.prepare_opened(opened, entry.dest.at(Symlinks::Follow))?;
        Ok(OpenDest { origin, ..dest })
    }

    /// Prepares the opened dest for the content, if it gets any.
    fn prepare_opened(self, dest: Fd, at: At<'_>) -> Result<OpenDest<'o>, Failure> {
        let entry = self.entry;
        let present = self.look_again(&dest)?;
        if sys::is_regular(&present) && entry.ctx.policy.writes_content {
            return self.empty(dest, at, &present);
        }
        if entry.blocking() == Blocking::OnlyForLease {
            // The FIFO has a reader, or open would have failed. Clear `O_NONBLOCK` so that a full
            // pipe makes writes wait instead of failing with EAGAIN.
            sys::clear_nonblock(dest.as_fd()).map_err(|errno| self.creation_failure(errno))?;
        }
        Ok(self.opened(dest, &present))
    }

    /// Removes the content of the opened dest, unless it may be the source.
    fn empty(self, dest: Fd, at: At<'_>, present: &Stat) -> Result<OpenDest<'o>, Failure> {
        let Self { entry, source } = self;
        let ctx = entry.ctx;
        let writing = collisions::begin_writing(ctx, present);
        let is_native = ctx.is_native(FileId::of(present).device, dest.as_fd());
        let keeps_content = self.may_lose_source(present, is_native);
        let gets_holes = || has_holes(source.stat) || ctx.policy.options.sparse == Sparse::Always;
        if keeps_content && gets_holes() {
            return self.create_beside();
        }
        // An empty file is truncated too: that gives it a new time of modification.
        if !keeps_content && let Err(errno) = sys::set_size(dest.as_fd(), 0) {
            drop((dest, writing));
            return self.open_emptied(at, errno);
        }
        Ok(OpenDest {
            keeps_content,
            writing: vec![writing],
            ..self.opened(dest, present)
        })
    }

    /// Returns `true` if an existing dest, which was seen as `present`, may be the source. `is_native` says whether the
    /// filesystem of the dest is a native one.
    #[inline]
    fn may_lose_source(self, present: &Stat, is_native: bool) -> bool {
        let source = self.source;
        let are_native = || source.storage == Storage::Native && is_native;
        !source.is_known_empty() && may_be_source(source.stat, present, are_native)
    }

    /// Looks at an opened dest again, because another process may have replaced it since. Fails if it is the source.
    fn look_again(self, dest: &Fd) -> Result<Stat, Failure> {
        let entry = self.entry;
        let present = sys::stat_open(dest).map_err(|errno| entry.dest_stat_failure(errno))?;
        self.check_not_source(&present)?;
        if let Some(durability) = &entry.ctx.durability
            && sys::is_regular(&present)
        {
            // A link may have led to another filesystem.
            let device = FileId::of(&present).device;
            let noted = durability.note_filesystem(device, || sys::duplicate(dest.as_fd()));
            noted.map_err(|errno| entry.making_failure(Operation::Sync, errno))?;
        }
        Ok(present)
    }

    /// Takes away permissions of an existing dest until its copy is complete, unless it has those of its source.
    fn opened(self, dest: Fd, present: &Stat) -> OpenDest<'o> {
        let Self { entry, source } = self;
        let ctx = entry.ctx;
        let is_native = ctx.is_native(FileId::of(present).device, dest.as_fd());
        let both = [source.stat, present];
        let files = [source.fd.as_fd(), dest.as_fd()];
        let has_rights = attributes::are_rights_equal(&ctx.policy, files, both, is_native);
        let restrict = || attributes::restrict(&ctx.policy, dest.as_fd(), present, source.stat);
        OpenDest {
            is_file: sys::is_regular(present),
            origin: Origin::Existing,
            mode_before: if has_rights { None } else { restrict() },
            has_rights,
            ..self.new_file(dest, Naming::AtOnce)
        }
    }
}

/// Returns `true` if unlinking the dest and creating a new file may help: this process does not lack descriptors or memory.
fn is_about_the_file(errno: Errno) -> bool {
    !matches!(
        errno,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN
    )
}
