//! Creates a dest file, or opens and empties one that exists.
//!
//! A new name is tried first. Only `EEXIST` makes the engine look at the dest. Nothing is truncated
//! before it is known that the file that was opened is not the source: only this check, and that of
//! [`super::alias`], protect the source of `cp f f`, whatever alias names it.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::alias::{Likeness, Opening, likeness_of};
use super::existing::clear_dest;
use super::{
    Guards, Naming, OpenDest, create_beside, may_be_named_last, try_create_unnamed, unlink,
};
use crate::copy::attributes;
use crate::copy::collisions;
use crate::copy::content::OpenSource;
use crate::copy::context::{Failure, Stage};
use crate::copy::decide::clear::{Clear, Making};
use crate::copy::decide::mode::Origin;
use crate::copy::diagnose;
use crate::copy::entry::Entry;
use crate::copy::facts::{Facts, FileId, Symlinks};
use crate::error::{Operation, Refusal};
use crate::sys::{self, At, Blocking, Fd, Stat, Storage};

/// Permissions of a new file until it gets those of the file that it replaces.
const OWNER_ONLY: u32 = 0o600;

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
        match self.create() {
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
    fn create(self) -> Result<OpenDest<'o>, Errno> {
        let Self { entry, source } = self;
        let ctx = entry.ctx;
        let mode = ctx.policy.creation_mode(source.stat.st_mode);
        let (spot, source) = (entry.spot(), entry.source_at());
        let file = ctx
            .descriptors
            .making_room(|| ctx.changes.create_file(spot, source, mode))?;
        Ok(OpenDest::new_file(file, Naming::AtOnce))
    }

    fn create_again(self) -> Result<OpenDest<'o>, Failure> {
        self.create().map_err(|errno| self.failed(errno))
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
        let facts = Some(Facts::of(&source.stat));
        let decision = clear_dest(entry, Making::File, facts)?;
        if ctx.policy.options.rules.atomic
            && let Some(decision) = decision
            && let Some(dest) = self.open_replacing(decision)?
        {
            return Ok(dest);
        }
        let symlinks = match decision {
            Some(Clear::Write(symlinks)) => symlinks,
            None => return self.open_dangling(),
            // The dest was unlinked, or the file to replace has vanished.
            Some(Clear::Unlink | Clear::Replace(_)) => return self.create_again(),
            Some(_) => return Err(self.failed(Errno::EXIST)),
        };
        let dest = At {
            symlinks,
            ..entry.dest_at()
        };
        let spot = entry.spot();
        let open = || ctx.changes.open_existing(spot, symlinks, entry.blocking());
        match ctx.descriptors.making_room(open) {
            Ok(dest) => self.prepare_opened(dest, None),
            // Another process has just replaced the file by a link.
            Err(Errno::LOOP) if symlinks == Symlinks::NoFollow => {
                Err(entry.refused(Refusal::ThroughJustCreatedLink))
            }
            Err(errno) => match self.hold(dest, errno) {
                Some(held) => self.prepare_opened(held, Some(errno)),
                None => self.replace_by_force(errno),
            },
        }
    }

    /// Replaces a file that could not be opened and emptied because of `errno`, if the options say so and that may help.
    #[cold]
    fn replace_by_force(self, errno: Errno) -> Result<OpenDest<'o>, Failure> {
        let Self { entry, source } = self;
        if !entry.ctx.policy.options.force
            || !is_about_the_file(errno)
            || likeness_of(entry, &source.stat)? == Likeness::Unclear
        {
            return Err(self.failed(errno));
        }
        // The copy had begun, so `-v` names it even if the removal fails.
        unlink(entry).map_err(|failure| Failure::making(failure.error))?;
        self.create_again()
    }

    /// Creates a file that replaces the dest when it is complete. Returns `None` if the dest is written to because of its
    /// type, or has vanished.
    #[cold]
    fn open_replacing(self, decision: Clear) -> Result<Option<OpenDest<'o>>, Failure> {
        let Self { entry, source } = self;
        let ctx = entry.ctx;
        let symlinks = match decision {
            Clear::Write(symlinks) => symlinks,
            Clear::Replace(_) => Symlinks::NoFollow,
            _ => return Ok(None),
        };
        let present = match entry.stat_dest(symlinks) {
            Err(Errno::NOENT) => return Ok(None),
            present => present.map_err(|errno| entry.dest_stat_failure(errno))?,
        };
        let is_file = sys::is_regular(&present);
        if !is_file && matches!(decision, Clear::Write(_)) {
            return Ok(None);
        }
        self.check_not_source(&present)?;
        let failed = |errno| self.failed(errno);
        if !ctx.changes.are_visible() {
            // A rename takes the permissions of a removal.
            ctx.changes.unlink(entry.spot()).map_err(failed)?;
            return self.create_again().map(Some);
        }
        let mode = match is_file {
            true => OWNER_ONLY,
            false => source.stat.st_mode,
        };
        let mut dest = create_beside(entry, mode, Naming::Replacing).map_err(failed)?;
        if is_file {
            let replaced = At {
                symlinks,
                ..entry.dest_at()
            };
            if let Err(error) = attributes::take_over(dest.fd.as_fd(), &present, replaced) {
                dest.remove_hidden(entry);
                return Err(failed(error.errno()));
            }
            attributes::restrict(&ctx.policy, dest.fd.as_fd(), &present, &source.stat);
            dest.origin = Origin::Existing;
        }
        Ok(Some(dest))
    }

    /// Holds a dest file that could not be opened because of `errno`. Some filesystems open existing files for writing only
    /// if that removes their content. Returns `None` if that cannot be the reason.
    #[cold]
    fn hold(self, dest: At<'_>, errno: Errno) -> Option<Fd> {
        let ctx = self.entry.ctx;
        if !is_about_the_file(errno) || !ctx.policy.writes_content {
            return None;
        }
        sys::check_writing(dest).ok()?;
        let held = ctx.descriptors.making_room(|| sys::open_path(dest)).ok()?;
        let present = sys::stat_open(&held).ok().filter(sys::is_regular)?;
        match self.open_to_read(held.as_fd(), &present) {
            // Without permission to read it, it may still be written to.
            Ok(_) | Err(Errno::ACCESS) => Some(held),
            Err(_) => None,
        }
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
        let dest = self.prepare_opened(opened, None)?;
        Ok(OpenDest { origin, ..dest })
    }

    /// Empties an open dest, which was seen as `present`.
    fn empty(self, dest: BorrowedFd<'_>, present: &Stat) -> Result<(), Errno> {
        sys::set_size(dest, 0)?;
        let writers = &self.entry.ctx.writers;
        let is_native = || writers.is_native(FileId::of(present).device, dest);
        match present.st_size > 0 && !is_native() && has_kept_content(dest) {
            true => Err(Errno::OPNOTSUPP),
            false => Ok(()),
        }
    }

    /// Prepares the opened dest for the content: truncates it, unless only attributes are copied. Takes away permissions
    /// until the copy is complete. Stats it again, because another process may have replaced it since. If `refused` is the
    /// errno of opening it, it is only held so far.
    fn prepare_opened(self, mut dest: Fd, refused: Option<Errno>) -> Result<OpenDest<'o>, Failure> {
        let Self { entry, source } = self;
        let ctx = entry.ctx;
        let opened = sys::stat_open(&dest).map_err(|errno| entry.dest_stat_failure(errno))?;
        self.check_not_source(&opened)?;
        let is_file = sys::is_regular(&opened);
        if let Some(durability) = &ctx.durability
            && is_file
            && refused.is_none()
        {
            // A link may have led to another filesystem.
            let device = FileId::of(&opened).device;
            let noted = durability.note_filesystem(device, || sys::duplicate(dest.as_fd()));
            noted.map_err(|errno| entry.making_failure(Operation::Sync, errno))?;
        }
        let mut writing = None;
        let mut has_content = false;
        if is_file && ctx.policy.writes_content {
            writing = collisions::begin_writing(ctx, &opened);
            has_content = self.likeness(dest.as_fd(), &opened)? != Likeness::Different;
            let emptied = match refused {
                Some(errno) => Err(errno),
                None if has_content => Ok(()),
                // An empty file is truncated too: that gives it a new time of modification.
                None => self.empty(dest.as_fd(), &opened),
            };
            if let Err(errno) = emptied {
                let access = match has_content {
                    // Only its attributes are set.
                    true => sys::Access::Read,
                    // The filesystem may remove content only when the file is opened.
                    false => sys::Access::WriteFromStart,
                };
                let reopened = ctx
                    .descriptors
                    .making_room(|| sys::reopen(dest.as_fd(), access));
                dest = match reopened {
                    Ok(reopened) if has_content || !has_kept_content(reopened.as_fd()) => reopened,
                    _ => return self.replace_by_force(errno),
                };
            }
        } else if entry.blocking() == Blocking::OnlyForLease {
            // The FIFO has a reader, or open would have failed. Clear `O_NONBLOCK` so that a full
            // pipe makes writes wait instead of failing with EAGAIN.
            sys::clear_nonblock(dest.as_fd()).map_err(|errno| self.failed(errno))?;
        }
        let mode_before = attributes::restrict(&ctx.policy, dest.as_fd(), &opened, &source.stat);
        Ok(OpenDest {
            is_file,
            origin: Origin::Existing,
            mode_before,
            has_content,
            writing: Guards::of_file(writing),
            ..OpenDest::new_file(dest, Naming::AtOnce)
        })
    }
}

/// Returns `true` if a server has only pretended to empty a file.
fn has_kept_content(file: BorrowedFd<'_>) -> bool {
    // The size is known already, but a server would be asked for the filesystem.
    sys::stat_open(file).is_ok_and(|stat| stat.st_size > 0) && Storage::of(file) == Storage::Server
}

/// Returns `true` if unlinking the dest and creating a new file may help: this process does not lack descriptors or memory.
fn is_about_the_file(errno: Errno) -> bool {
    !matches!(
        errno,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN
    )
}
