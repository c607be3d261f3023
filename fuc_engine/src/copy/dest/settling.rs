//! Looks at dests, asks [`decide::settle`](crate::copy::decide::settle) what happens to them, and unlinks or renames those in
//! the way.
//!
//! In most cases the inode numbers show whether a dest is its source, and they are compared before anything is opened.
//!
//! On some filesystems a file has several inode numbers: one for each path, for each spelling of its name, or for a
//! directory and its mirror. No look at both files can tell whether they are one. So a dest that [`may_be_source`] gets
//! the content in an order in which that does not matter:
//!
//! | a dest that may be the source, and | is not | but |
//! |---|---|---|
//! | would be written to | truncated before | written to, and then cut to the length of the content |
//! | the same, if the copy gets holes or the dest opens only empty | written to | replaced by a rename when the copy is complete |
//! | would be unlinked | unlinked | the same |
//!
//! # Power cuts
//!
//! A power cut may leave a dest with the size and the time of its source, but without its content.
//!
//! A filesystem may store size and time before the content. What is missing then is a hole, or an extent that was never
//! written, which `lseek` also reports as a hole.
//!
//! ```text
//!   changed since the kernel has started: nothing is missing             0 calls
//!   older, and without holes:             open, fadvise, lseek, close    4 calls
//!   older, with holes:                    their content is compared
//! ```
//!
//! The content decides, so a file is not copied again because a filesystem shows holes that are none, or because only
//! one of the two is sparse. If a filesystem does not know holes, nothing is found.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FileType, SeekFrom};
use rustix::io::Errno;

use crate::copy::content::is_zero;
use crate::copy::context::{Context, Failure};
use crate::copy::decide::mode::Origin;
use crate::copy::decide::settle::{
    DestTreatment, Lookups, Making, NamedFile, NamedFiles, Pair, Rules, Sameness, Settled, Vacant,
    Way, change, settle, settle_vacant,
};
use crate::copy::decide::times::StoredTimes;
use crate::copy::entry::Entry;
use crate::copy::facts::{Facts, FileId, FileTime, Symlinks};
use crate::copy::{attributes, collisions};
use crate::error::Operation;
use crate::node::Side;
use crate::observer::{Change, Event, Question};
use crate::paths;
use crate::sync::lock;
use crate::sys::{self, At, Blocking, Inode, Stat};

/// Largest difference of two times of one file, which one of its filesystems rounds. FAT stores even seconds.
const ROUNDED_SECONDS: u64 = 2;

/// The next step after a look at a dest.
pub(crate) enum Looked {
    Make(Way, Change),
    /// The dest is unlinked or renamed, as is settled, and the copy created.
    Vacate(Settled, Stat, Change),
    /// The dest stays as it is, as is settled.
    Keep(Settled, Stat),
}

/// Looks at the dest, and settles what happens to it. Looks at the source if the decision needs it and it was not seen. If the
/// place `is_occupied`, creation has failed before.
///
/// # Errors
/// One of the two cannot be looked at, or the dest is refused.
pub(crate) fn look_and_settle(
    entry: &Entry<'_>,
    making: Making,
    source: Option<&Stat>,
    is_occupied: bool,
) -> Result<Looked, Failure> {
    let options = entry.ctx.policy.options;
    let rules = Rules {
        options,
        treatment: entry.treatment(),
        symlinks: entry.source.symlinks,
        directory: entry.dest_directory_origin(),
        is_made: collisions::has_made_dest(entry),
        creates_through_links: entry.is_operand() && options.rules.create_through_links,
    };
    let make = |vacant| match settle_vacant(rules, making, vacant) {
        Ok(way) => Ok(Looked::Make(way, Change::New)),
        Err(refusal) => Err(entry.refused(refusal)),
    };
    let failed = |errno| entry.dest_stat_failure(errno);
    let itself = match entry.stat_dest(Symlinks::NoFollow) {
        Err(Errno::NOENT) if is_occupied => {
            let has_slash = entry.dest.name.to_bytes().ends_with(b"/");
            return make(Vacant::Hidden { has_slash });
        }
        Err(Errno::NOENT) => return make(Vacant::Nothing),
        seen => seen.map_err(failed)?,
    };
    let source = source.map_or_else(|| entry.stat_source(), |source| Ok(*source));
    let source = &source.map_err(|errno| entry.source_stat_failure(errno))?;
    let (dest, symlinks) = match follows(rules, entry, source, &itself) {
        false => (itself, Symlinks::NoFollow),
        true => match entry.stat_dest(Symlinks::Follow) {
            Ok(target) => (target, Symlinks::Follow),
            Err(Errno::NOENT) => return make(Vacant::Dangling),
            Err(Errno::LOOP) if options.force => return make(Vacant::Loop),
            Err(errno) => return Err(failed(errno)),
        },
    };
    let found = Found {
        entry,
        treatment: rules.treatment,
        source,
        dest: &dest,
        symlinks,
    };
    let pair = found.describe();
    let change = change(&pair.source, &pair.dest);
    match settle(rules, making, &pair) {
        Settled::Make(way) => Ok(Looked::Make(way, change)),
        Settled::Refuse(refusal) => Err(entry.refused(refusal)),
        settled @ (Settled::Unlink | Settled::BackUp) => Ok(Looked::Vacate(settled, dest, change)),
        settled => Ok(Looked::Keep(settled, dest)),
    }
}

/// Returns `true` if the content of the source would be written through the link at the dest. A dest that is renamed, unlinked,
/// or replaced by something without content is the link itself.
fn follows(rules: Rules<'_>, entry: &Entry<'_>, source: &Stat, dest: &Stat) -> bool {
    let has_content = match sys::file_type(source) {
        FileType::RegularFile => true,
        FileType::Symlink | FileType::Directory => false,
        _ => entry.ctx.policy.reads_special_content(),
    };
    rules.directory == Origin::Existing
        && sys::file_type(dest) == FileType::Symlink
        && has_content
        && rules.options.as_links.is_none()
        // The link may lead to a file of the older copy.
        && rules.options.link_dest.is_none()
        && rules.treatment == DestTreatment::WrittenTo
}

/// A source and the file at its dest, which were seen.
struct Found<'f> {
    entry: &'f Entry<'f>,
    treatment: DestTreatment,
    source: &'f Stat,
    dest: &'f Stat,
    /// Says whether a symbolic link was followed to the dest.
    symlinks: Symlinks,
}

impl Found<'_> {
    fn describe(&self) -> Pair<'_> {
        Pair {
            source: Facts::of(self.source),
            dest: Facts::of(self.dest),
            is_behind_link: self.symlinks == Symlinks::Follow,
            lookups: self,
        }
    }

    /// Returns the place of the dest.
    fn at(&self) -> At<'_> {
        self.entry.dest.at(self.symlinks)
    }

    /// Returns `true` if a file that is kept would get the rights of another user. That user may have written its content,
    /// so it is copied again.
    fn gets_rights(&self) -> bool {
        let policy = &self.entry.ctx.policy;
        policy.options.preserve.ownership
            && policy.user == 0
            && sys::is_regular(self.source)
            && self.source.st_mode & 0o6000 != 0
            && attributes::has_other_owner(self.source, self.dest)
    }

    /// Returns `true` if a file that is kept would get other attributes, and may be a file of the older copy.
    fn would_change_older_copy(&self) -> bool {
        let policy = &self.entry.ctx.policy;
        policy.may_be_in_older_copy(self.dest)
            && attributes::need_update(policy, self.source, self.dest)
    }

    /// Returns `true` if the inode numbers of source and dest show whether they are one file.
    fn are_native(&self) -> bool {
        let Self { entry, .. } = self;
        let is_source_native = || paths::is_on_native(entry.source.dir, entry.source.name);
        entry.has_native_dest()
            && (FileId::of(self.source).device == FileId::of(self.dest).device
                || is_source_native())
    }
}

impl Lookups for Found<'_> {
    fn may_be_other_copy(&self) -> bool {
        collisions::may_be_other_copy(self.entry)
    }

    fn sameness(&self) -> Sameness {
        let Pair { source, dest, .. } = self.describe();
        let is_same_file = source.id == dest.id;
        let is_link = |facts: &Facts| facts.kind == FileType::Symlink;
        let copies_links = self.entry.source.symlinks == Symlinks::NoFollow;
        if self.entry.ctx.policy.makes_hard_links() {
            // No content is written, so nothing is lost.
            let is_linked = || {
                copies_links && is_link(&source) && !self.treatment.vacates() && {
                    let target = stat_source(self.entry, Symlinks::Follow);
                    target.is_some_and(|target| target.id == dest.id)
                }
            };
            return match is_same_file || is_linked() {
                true => Sameness::AlreadyThere,
                false => Sameness::Distinct,
            };
        }
        let may_lead_there = copies_links && (is_link(&source) || is_link(&dest));
        if !is_same_file && !may_lead_there {
            return Sameness::Distinct;
        }
        let [itself, target] = [Symlinks::NoFollow, Symlinks::Follow];
        let name = |look: &dyn Fn(Symlinks) -> Option<Facts>, known: Facts| NamedFile {
            itself: look(itself).unwrap_or(known),
            target: look(target),
        };
        let names = NamedFiles {
            source: name(&|symlinks| stat_source(self.entry, symlinks), source),
            dest: name(&|symlinks| self.entry.dest_facts(symlinks), dest),
            symlinks: self.entry.source.symlinks,
            treatment: self.treatment,
        };
        names.sameness(|| names_same_entry(self.entry))
    }

    fn time_stands_for_source(&self) -> bool {
        if self.entry.ctx.policy.may_be_in_older_copy(self.dest) {
            // A probe would set its time.
            return false;
        }
        let wanted = sys::modified(self.source);
        time_stands_for(self.entry.ctx, self.at(), self.dest, wanted)
    }

    fn is_in_doubt(&self) -> bool {
        has_lost_content(self.entry, self.at(), self.dest)
            || self.gets_rights()
            || self.would_change_older_copy()
    }

    fn targets_are_equal(&self) -> bool {
        let Self { entry, .. } = self;
        let source = sys::read_link(entry.source.dir, entry.source.name);
        let dest = sys::read_link(entry.dest.dir, entry.dest.name);
        matches!((source, dest), (Ok(source), Ok(dest)) if source == dest)
    }

    fn ask(&self) -> bool {
        let (ctx, dest) = (self.entry.ctx, self.dest);
        let is_writable = sys::file_type(dest) == FileType::Symlink
            || ctx.policy.user == 0
            || self.entry.may_write_dest();
        let options = ctx.policy.options;
        ctx.report.confirm(Question::Overwrite {
            path: &self.entry.path(Side::Dest),
            mode: dest.st_mode & 0o7777,
            is_write_protected: !is_writable,
            is_removed_first: options.rules.remove_first || options.force,
        })
    }

    fn may_be_source(&self) -> bool {
        may_be_source(self.source, self.dest, || self.are_native())
    }

    fn may_write(&self) -> bool {
        self.entry.may_write_dest()
    }
}

/// Returns `true` if the dest may be the source under another inode number. `are_native` says whether the numbers of both
/// can be trusted.
#[inline]
pub(super) fn may_be_source(source: &Stat, dest: &Stat, are_native: impl FnOnce() -> bool) -> bool {
    let [modified, dest_modified] = [source, dest].map(sys::modified);
    sys::is_regular(source)
        && sys::is_regular(dest)
        && source.st_size == dest.st_size
        && modified.seconds.abs_diff(dest_modified.seconds) <= ROUNDED_SECONDS
        && FileId::of(source) != FileId::of(dest)
        && !are_native()
}

fn stat_source(entry: &Entry<'_>, symlinks: Symlinks) -> Option<Facts> {
    let stat = sys::stat(entry.source.dir, entry.source.name, symlinks).ok();
    stat.map(|stat| Facts::of(&stat))
}

/// Returns `true` if source and dest are the same name in the same directory.
fn names_same_entry(entry: &Entry<'_>) -> bool {
    let (_, source) = paths::split(entry.source.name.to_bytes());
    let (_, dest) = paths::split(entry.dest.name.to_bytes());
    let is_in_source_directory = || {
        let source = paths::directory_id_of(entry.source.dir, entry.source.name);
        source.is_some() && paths::directory_id_of(entry.dest.dir, entry.dest.name) == source
    };
    source == dest && is_in_source_directory()
}

/// Unlinks the dest, which makes its name vacant. Another process may have done that before.
pub(crate) fn unlink(entry: &Entry<'_>) -> Result<(), Failure> {
    match entry.ctx.changes.unlink(entry.dest) {
        Ok(()) => entry.emit(|_, dest, _| Event::RemovedDest(dest)),
        Err(Errno::NOENT) => {}
        Err(errno) => {
            let error = entry.dest_error(Operation::Remove, errno);
            return Err(Failure::preparing(error));
        }
    }
    Ok(())
}

/// Returns `true` if the filesystem stores the time `wanted` as the one that the dest has.
///
/// The dest, which was seen as `dest`, is probed only if the filesystem has not shown that before. Returns `false`
/// if it cannot be probed: its user may not set its times, or the run is a dry one.
fn time_stands_for(ctx: &Context<'_>, at: At<'_>, dest: &Stat, wanted: FileTime) -> bool {
    let device = FileId::of(dest).device;
    let stored = sys::modified(dest);
    let known = lock(&ctx.stored_times).get(&device).copied();
    if let Some(found) = known.and_then(|known| known.stored(wanted)) {
        return found == stored;
    }
    let shown = ctx.changes.really(|| probe_times(ctx, at, dest, wanted));
    let Ok(Some(shown)) = shown else {
        return false;
    };
    let mut times = lock(&ctx.stored_times);
    let known = shown.added_to(times.get(&device).copied());
    times.insert(device, known);
    shown.stored(wanted) == Some(stored)
}

/// Probes the dest, and gives it its time again. Its other times cannot be taken for that of its source. A process that
/// is killed in between leaves a dest that a later run copies.
fn probe_times(
    ctx: &Context<'_>,
    at: At<'_>,
    dest: &Stat,
    wanted: FileTime,
) -> Result<Option<StoredTimes>, Errno> {
    let stored = sys::modified(dest);
    let held = ctx.descriptors.making_room(|| sys::open_path(at))?;
    let inode = Inode::PathOnly(held.as_fd());
    let seen = inode.stat()?;
    if FileId::of(&seen) != FileId::of(dest) || sys::modified(&seen) != stored {
        return Err(Errno::STALE);
    }
    let set = |time| {
        inode.set_modified(time)?;
        Ok(sys::modified(&inode.stat()?))
    };
    let shown: Result<Option<StoredTimes>, Errno> = StoredTimes::ask(stored, wanted, set);
    // A limit may not be a multiple of the step: then only a time beyond it is stored as the limit.
    let is_complete = matches!(shown, Ok(Some(shown)) if shown.stored(wanted) == Some(stored));
    let restored = set(if is_complete { wanted } else { stored });
    Ok(shown?.filter(|_| restored == Ok(stored)))
}

/// Bytes that are compared at once.
const PIECE_BYTES: usize = 16 << 10;

/// Returns `true` if a dest that was seen as `dest` has a hole in place of content of its source.
///
/// Also returns `true` if a file cannot be opened or read: the copy then reports that.
pub(crate) fn has_lost_content(entry: &Entry<'_>, at: At<'_>, dest: &Stat) -> bool {
    sys::is_regular(dest)
        && dest.st_size > 0
        && !sys::is_since_boot(sys::changed(dest))
        && lacks_content(entry, at, dest.st_size as u64).unwrap_or(true)
}

#[cold]
fn lacks_content(entry: &Entry<'_>, at: At<'_>, size: u64) -> Result<bool, Errno> {
    let descriptors = &entry.ctx.descriptors;
    let open = |at| descriptors.making_room(|| sys::open_source(at, Blocking::OnlyForLease));
    let dest = open(at)?;
    let dest = dest.as_fd();
    // Pages of an extent that was never written count as data after they were read.
    sys::drop_cache(dest, None);
    let next_hole = |from| sys::seek(dest, SeekFrom::Hole(from)).unwrap_or(size);
    let mut start = next_hole(0);
    if start >= size {
        return Ok(false);
    }
    let source = open(entry.source)?;
    while start < size && !entry.ctx.report.must_stop() {
        let end = sys::seek(dest, SeekFrom::Data(start)).unwrap_or(size);
        if has_more(source.as_fd(), dest, start..end.min(size))? {
            return Ok(true);
        }
        start = next_hole(end);
    }
    Ok(false)
}

/// Returns `true` if the source has content in a hole of the dest, and the dest has other content there.
fn has_more(source: BorrowedFd<'_>, dest: BorrowedFd<'_>, hole: Range<u64>) -> Result<bool, Errno> {
    let mut buffers = [const { [0; PIECE_BYTES] }; 2];
    let [content, found] = &mut buffers;
    let mut at = hole.start;
    while at < hole.end {
        at = match sys::seek(source, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => return Ok(false),
            // Its filesystem does not know holes.
            Err(_) => at,
        };
        let piece = PIECE_BYTES.min(hole.end.saturating_sub(at) as usize);
        let bytes = sys::read_at(source, &mut content[..piece], at)?;
        let content = &content[..bytes];
        if !is_zero(content) {
            let found = &mut found[..bytes];
            if sys::read_at(dest, found, at)? != bytes || found != content {
                return Ok(true);
            }
        }
        // Nothing is read at the end of the hole, or because the source has become shorter.
        if bytes == 0 {
            return Ok(false);
        }
        at += bytes as u64;
    }
    Ok(false)
}
