//! Creates a dest file, or opens and empties one that exists.
//!
//! A new name is tried first. Only `EEXIST` makes the engine look at the dest. Nothing is truncated
//! before it is known that the file that was opened is not the source: only this check, and the order that
//! [`super::alias`] describes, protect the source of `cp f f`, whatever alias names it.

use std::os::fd::AsFd;

use rustix::io::Errno;

use super::alias::may_be_source;
use super::existing::clear_dest;
use super::{
    Guards, Naming, OpenDest, create_beside, may_be_named_last, try_create_unnamed, unlink,
};
use crate::copy::attributes;
use crate::copy::changes::Spot;
use crate::copy::collisions;
use crate::copy::content::{OpenSource, has_holes};
use crate::copy::context::{Failure, Stage};
use crate::copy::decide::clear::{Clear, Making};
use crate::copy::decide::mode::Origin;
use crate::copy::diagnose;
use crate::copy::entry::Entry;
use crate::copy::facts::{DestState, Facts, FileId, Symlinks};
use crate::copy::options::Sparse;
use crate::error::{Operation, Refusal};
use crate::paths;
use crate::sys::{self, At, Blocking, Fd, Stat, Storage};

/// A dest that is created, or opened and emptied.
#[derive(Clone, Copy)]
struct Opening<'o> {
    entry: &'o Entry<'o>,
    source: &'o OpenSource,
}

/// Creates the dest of `source`, or opens and empties the file that is there. A large dest gets its
/// name when `naming` says.
#[inline(always)]
pub(crate) fn open<'o>(
    entry: &'o Entry<'o>,
    source: &'o OpenSource,
    naming: Naming,
) -> Result<OpenDest<'o>, Failure> {
    if naming != Naming::AtOnce
        && may_be_named_last(entry, &source.stat)
        && let Some(file) = try_create_unnamed(entry, &source.stat)
    {
        return Ok(OpenDest::new_file(file, Naming::WhenComplete));
    }
    let opening = Opening { entry, source };
    match collisions::may_be_met(entry) {
        true => opening.open_alone(),
        false => opening.create_or_open(),
    }
}

impl<'o> Opening<'o> {
    fn failed(self, errno: Errno) -> Failure {
        diagnose::file_creation(self.entry, errno)
    }

    #[inline(always)]
    fn create_or_open(self) -> Result<OpenDest<'o>, Failure> {
        match self.create(self.entry.spot()) {
            Ok(dest) => Ok(dest),
            Err(Errno::EXIST) => self.open_existing(),
            Err(errno) => Err(self.failed(errno)),
        }
    }

    /// Opens a dest that another worker may meet, and keeps it from writing to it.
    #[cold]
    fn open_alone(self) -> Result<OpenDest<'o>, Failure> {
        let ctx = self.entry.ctx;
        let name = collisions::reserve_name(self.entry);
        let mut dest = self.create_or_open()?;
        // A file that existed is guarded already.
        let is_new = dest.origin == Origin::Created && dest.writing.is_none();
        if is_new && (name.is_some() || ctx.merges_directories) {
            let begin = || collisions::begin_writing_new(ctx, dest.fd.as_fd());
            let begun = ctx.changes.really(begin);
            dest.writing = Guards::of_file(begun.map_err(|errno| self.failed(errno))?);
        }
        if name.is_some() {
            dest.writing.get_or_insert_default()._name = name;
        }
        Ok(dest)
    }

    #[inline(always)]
    fn create(self, spot: Spot<'_>) -> Result<OpenDest<'o>, Errno> {
        let Self { entry, source } = self;
        let ctx = entry.ctx;
        let mode = ctx.policy.creation_mode(source.stat.st_mode);
        let file = ctx
            .descriptors
            .making_room(|| ctx.changes.create_file(spot, mode))?;
        Ok(OpenDest::new_file(file, Naming::AtOnce))
    }

    fn create_again(self) -> Result<OpenDest<'o>, Failure> {
        let created = self.create(self.entry.spot().vacated());
        created.map_err(|errno| self.failed(errno))
    }

    /// Fails if a file, which was seen as `present`, is the source.
    fn check_not_source(self, present: &Stat) -> Result<(), Failure> {
        match FileId::of(&self.source.stat) == FileId::of(present) {
            true => Err(self.entry.refused(Refusal::SameFile)),
            false => Ok(()),
        }
    }

    fn open_existing(self) -> Result<OpenDest<'o>, Failure> {
        let Self { entry, source } = self;
        let ctx = entry.ctx;
        if matches!(entry.dest_state, DestState::Replaced) {
            return self.create_beside();
        }
        let facts = Some(Facts::of(&source.stat));
        let symlinks = match clear_dest(entry, Making::File, facts)? {
            Some(Clear::Write(symlinks)) => symlinks,
            None => return self.open_dangling(),
            Some(Clear::Unlink) => return self.create_again(),
            Some(_) => return Err(self.failed(Errno::EXIST)),
        };
        let dest = At {
            symlinks,
            ..entry.dest_at()
        };
        let spot = entry.spot();
        let open = || ctx.changes.open_existing(spot, symlinks, entry.blocking());
        match ctx.descriptors.making_room(open) {
            Ok(opened) => self.prepare_opened(opened, dest),
            // Another process has just replaced the file by a link.
            Err(Errno::LOOP) if symlinks == Symlinks::NoFollow => {
                Err(entry.refused(Refusal::ThroughJustCreatedLink))
            }
            Err(errno) => self.open_emptied(dest, errno),
        }
    }

    /// Opens a dest file, which could not be opened or truncated because of `errno`, in the way of cp: opening it removes
    /// its content. Some filesystems know no other way.
    #[cold]
    fn open_emptied(self, dest: At<'_>, errno: Errno) -> Result<OpenDest<'o>, Failure> {
        let Self { entry, .. } = self;
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
        if self.may_be_source(&present, || collisions::is_native(entry)) {
            return self.create_beside();
        }
        let writing = collisions::begin_writing(ctx, &present);
        match ctx
            .descriptors
            .making_room(|| sys::open_emptied(dest, errno))
        {
            Ok(opened) => {
                let seen = self.look(&opened)?;
                let writing = Guards::of_file(writing);
                Ok(OpenDest {
                    writing,
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
            return Err(self.failed(errno));
        }
        let present = sys::stat(entry.dest_dir, entry.dest_name, Symlinks::NoFollow);
        let is_native = || collisions::is_native(entry);
        if present.is_ok_and(|present| self.may_be_source(&present, is_native)) {
            return self.create_beside();
        }
        // The copy had begun, so `-v` names it even if the removal fails.
        unlink(entry).map_err(|failure| Failure::making(failure.error))?;
        self.create_again()
    }

    /// Creates a file that replaces the dest when it is complete.
    #[cold]
    fn create_beside(self) -> Result<OpenDest<'o>, Failure> {
        let Self { entry, source } = self;
        let failed = |errno| self.failed(errno);
        if !entry.ctx.changes.are_visible() {
            // A rename takes the permissions of a removal.
            entry.ctx.changes.unlink(entry.spot()).map_err(failed)?;
            return self.create_again();
        }
        // Neither would the new file get its name, nor could it be removed.
        if sys::is_append_only(entry.dest_dir, &paths::directory_of(entry.dest_name)) {
            return Err(failed(Errno::PERM));
        }
        create_beside(entry, source.stat.st_mode, Naming::Replacing).map_err(failed)
    }

    /// Opens a dest that is a dangling link, if the options allow that. Below operands nothing is
    /// created through a link.
    fn open_dangling(self) -> Result<OpenDest<'o>, Failure> {
        let Self { entry, source } = self;
        let ctx = entry.ctx;
        if let Err(errno) = entry.stat_dest(Symlinks::NoFollow) {
            return Err(self.failed(errno));
        }
        let may_follow = entry.is_operand() && !entry.treatment().vacates();
        if !may_follow || !ctx.policy.options.rules.create_through_links {
            return Err(Failure {
                stage: Stage::AtDanglingDest,
                ..entry.refused(Refusal::DanglingDest)
            });
        }
        let mode = ctx.policy.creation_mode(source.stat.st_mode);
        let create = || sys::create_through_link(entry.dest_dir, entry.dest_name, mode);
        let (spot, origin) = (entry.spot(), Origin::Created);
        let opened = ctx
            .changes
            .open(spot, origin, || ctx.descriptors.making_room(create));
        let opened =
            opened.map_err(|errno| diagnose::creation(entry, Operation::CreateFile, errno))?;
        // Another process may have created it since, so it is emptied like an existing file.
        let at = At {
            symlinks: Symlinks::Follow,
            ..entry.dest_at()
        };
        let dest = self.prepare_opened(opened, at)?;
        Ok(OpenDest { origin, ..dest })
    }

    /// Prepares the opened dest for the content: truncates it, unless only attributes are copied or it may be the source.
    fn prepare_opened(self, dest: Fd, at: At<'_>) -> Result<OpenDest<'o>, Failure> {
        let Self { entry, source } = self;
        let ctx = entry.ctx;
        let present = self.look(&dest)?;
        if !sys::is_regular(&present) || !ctx.policy.writes_content {
            if entry.blocking() == Blocking::OnlyForLease {
                // The FIFO has a reader, or open would have failed. Clear `O_NONBLOCK` so that a full
                // pipe makes writes wait instead of failing with EAGAIN.
                sys::clear_nonblock(dest.as_fd()).map_err(|errno| self.failed(errno))?;
            }
            return Ok(self.opened(dest, &present));
        }
        let writing = collisions::begin_writing(ctx, &present);
        let device = FileId::of(&present).device;
        let is_native = || ctx.writers.is_native(device, dest.as_fd());
        let keeps_content = self.may_be_source(&present, is_native);
        let gets_holes = || has_holes(&source.stat) || ctx.policy.options.sparse == Sparse::Always;
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
            writing: Guards::of_file(writing),
            ..self.opened(dest, &present)
        })
    }

    /// Returns `true` if an existing dest, which was seen as `present`, may be the source. `is_native` says whether the
    /// filesystem of the dest is a native one.
    #[inline]
    fn may_be_source(self, present: &Stat, is_native: impl FnOnce() -> bool) -> bool {
        let source = self.source;
        let are_native = || source.storage == Storage::Native && is_native();
        !source.is_known_empty() && may_be_source(&source.stat, present, are_native)
    }

    /// Looks at an opened dest again, because another process may have replaced it since. Fails if it is the source.
    fn look(self, dest: &Fd) -> Result<Stat, Failure> {
        let Self { entry, .. } = self;
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

    /// Takes away permissions of an existing dest until its copy is complete.
    fn opened(self, dest: Fd, present: &Stat) -> OpenDest<'o> {
        let Self { entry, source } = self;
        let policy = &entry.ctx.policy;
        OpenDest {
            is_file: sys::is_regular(present),
            origin: Origin::Existing,
            mode_before: attributes::restrict(policy, dest.as_fd(), present, &source.stat),
            ..OpenDest::new_file(dest, Naming::AtOnce)
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
