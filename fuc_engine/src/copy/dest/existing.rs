//! Dests that exist: looks at them, asks `decide/` what happens to them, and renames or unlinks them.
//!
//! If there are rules for dests that exist, they are applied first, by [`decide`] and [`prepare`]. Otherwise a dest is
//! looked at only after its creation has failed with `EEXIST`, by [`clear_dest`]. The module above has a table of both.

use std::ffi::CStr;
use std::ops::ControlFlow;
use std::os::fd::AsFd;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::alias;
use super::backup::{self, BackupNumbers};
use super::power_cut;
use crate::copy::context::{Context, Failure};
use crate::copy::decide::clear::{
    Clear, ClearRules, Lookups, Making, clear, links_at_dest, obstacle,
};
use crate::copy::decide::overwrite::{DestTreatment, Overwrite, Questions, Sameness, overwrite};
use crate::copy::decide::times::StoredTimes;
use crate::copy::entry::Entry;
use crate::copy::facts::{DestState, Facts, FileId, FileTime, Symlinks};
use crate::copy::options::Replace;
use crate::copy::{attributes, collisions, diagnose};
use crate::error::Refusal;
use crate::node::Side;
use crate::observer::Question;
use crate::paths;
use crate::sync::lock;
use crate::sys::{self, At, Inode, InodeError, Stat, Storage};

/// The reason why a dest stays as it is.
pub(crate) enum Unreplaced {
    Skipped,
    /// It is the link to copy. Nothing is left to do.
    AlreadyThere,
    /// It stands for the copy. Further names of the source are linked to it.
    Adopted(Stat),
}

/// Looks at the dest and decides whether it is replaced. Asks the user if the rules say so. Returns the dest if there is
/// one. Breaks if it stays.
pub(crate) fn decide(
    entry: &Entry<'_>,
    stat: &Stat,
) -> Result<ControlFlow<Unreplaced, Option<Stat>>, Failure> {
    let ctx = entry.ctx;
    let (policy, source) = (&ctx.policy, &Facts::of(stat));
    let treatment = entry.treatment();
    let symlinks = policy.symlinks_of_dest(source, treatment);
    let dest = match entry.stat_dest(symlinks) {
        Ok(_) if collisions::may_be_other_copy(entry) => {
            return Err(collisions::just_created(entry, source));
        }
        Ok(dest) => dest,
        Err(Errno::NOENT) => return Ok(ControlFlow::Continue(None)),
        // Opening the link fails too, and then it is unlinked.
        Err(Errno::LOOP) if policy.options.force => {
            let link = entry.stat_dest(Symlinks::NoFollow);
            return Ok(ControlFlow::Continue(link.ok()));
        }
        Err(errno) => return Err(entry.dest_stat_failure(errno)),
    };
    let facts = Facts::of(&dest);
    let at = || At {
        // In a directory that this run has made, another process has planted a link.
        symlinks: match links_at_dest(entry.dest_directory_origin()) {
            Symlinks::Follow => symlinks,
            Symlinks::NoFollow => Symlinks::NoFollow,
        },
        ..entry.dest_at()
    };
    let questions = Questions {
        sameness: &|| alias::sameness(entry, treatment, source, &facts),
        time_stands_for_source: &|| time_stands_for(ctx, at(), &dest, source.modified),
        lost_content: &|| power_cut::has_taken_content(entry, at(), &dest),
        targets_are_equal: &|| alias::targets_are_equal(entry),
        ask: &|| ask_to_overwrite(entry, &dest),
    };
    let proceed = |dest| Ok(ControlFlow::Continue(Some(dest)));
    let kept = match overwrite(policy.options, treatment, source, &facts, &questions) {
        Overwrite::Proceed => return proceed(dest),
        Overwrite::Adopt if gets_rights(ctx, stat, &dest) => return proceed(dest),
        Overwrite::Skip => Unreplaced::Skipped,
        Overwrite::AlreadyThere => Unreplaced::AlreadyThere,
        Overwrite::Adopt => Unreplaced::Adopted(dest),
        Overwrite::Refuse(refusal) => return Err(entry.refused(refusal)),
    };
    Ok(ControlFlow::Break(kept))
}

/// Returns `true` if a file that is kept would get the rights of another user. That user may have written its content, so
/// it is copied again.
fn gets_rights(ctx: &Context<'_>, source: &Stat, dest: &Stat) -> bool {
    let options = ctx.policy.options;
    options.rules.replace == Replace::Changed
        && options.preserve.ownership
        && ctx.policy.user == 0
        && sys::is_regular(source)
        && source.st_mode & 0o6000 != 0
        && attributes::has_other_owner(source, dest)
}

/// Fails if the dest can never be replaced by the content of the source: it is the same file, a
/// directory, or cannot be looked at.
pub(crate) fn check(entry: &Entry<'_>, source: &Facts) -> Result<(), Failure> {
    let treatment = entry.treatment();
    let symlinks = entry.ctx.policy.symlinks_of_dest(source, treatment);
    let Some(dest) = entry.present_dest(symlinks)? else {
        return Ok(());
    };
    let dest = Facts::of(&dest);
    if alias::sameness(entry, treatment, source, &dest) == Sameness::SameFile {
        return Err(entry.refused(Refusal::SameFile));
    }
    // Do not wait for the other end of a FIFO if the copy must fail, even if dests are backed up.
    let treatment = match source.kind {
        FileType::Fifo => DestTreatment::WrittenTo,
        _ => treatment,
    };
    match obstacle(treatment, None, &dest) {
        Some(refusal) => Err(entry.refused(refusal)),
        None => Ok(()),
    }
}

fn ask_to_overwrite(entry: &Entry<'_>, dest: &Stat) -> bool {
    let ctx = entry.ctx;
    let path = &entry.path(Side::Dest);
    let is_writable =
        sys::file_type(dest) == FileType::Symlink || ctx.policy.user == 0 || entry.may_write_dest();
    let options = ctx.policy.options;
    ctx.report.confirm(Question::Overwrite {
        path,
        mode: dest.st_mode & 0o7777,
        is_write_protected: !is_writable,
        is_removed_first: options.rules.remove_first || options.force,
    })
}

/// Renames or unlinks the dest, if the rules say so. Returns its state after that.
pub(crate) fn prepare(
    entry: &Entry<'_>,
    source: &Stat,
    dest: Option<&Stat>,
    numbers: &mut BackupNumbers,
) -> Result<DestState<Box<CStr>>, Failure> {
    let Some(dest) = dest else {
        return Ok(DestState::Vacant { backup: None });
    };
    match entry.treatment() {
        // A directory is not backed up.
        _ if sys::is_directory(dest) => Ok(DestState::Occupied),
        DestTreatment::Renamed => {
            let backup = backup::make(entry, source, dest, numbers)?;
            Ok(DestState::Vacant { backup })
        }
        DestTreatment::Unlinked if entry.ctx.policy.options.rules.atomic => {
            check_writing(entry, source, dest)?;
            Ok(DestState::Replaced)
        }
        DestTreatment::Unlinked
            if alias::may_be_source(source, dest, || are_native(entry, source, dest)) =>
        {
            Ok(DestState::Replaced)
        }
        DestTreatment::Unlinked => {
            super::unlink(entry)?;
            Ok(DestState::Vacant { backup: None })
        }
        DestTreatment::LinkedOver | DestTreatment::WrittenTo => Ok(DestState::Occupied),
    }
}

/// Fails if content would replace a regular file that the user may not write to, unless `--force` is given. So does cp, which
/// opens it.
fn check_writing(entry: &Entry<'_>, source: &Stat, dest: &Stat) -> Result<(), Failure> {
    let ctx = entry.ctx;
    let has_content = sys::is_regular(source) || ctx.policy.reads_special_content();
    let is_forbidden = has_content
        && sys::is_regular(dest)
        && !ctx.policy.options.force
        && !entry.may_write_dest();
    match is_forbidden {
        true => Err(diagnose::file_creation(entry, Errno::ACCESS)),
        false => Ok(()),
    }
}

/// Returns `true` if the inode numbers of source and dest show whether they are one file.
fn are_native(entry: &Entry<'_>, source: &Stat, dest: &Stat) -> bool {
    let is_source_native = || {
        let dir = paths::open_directory_of(entry.source_dir, entry.source_name);
        dir.is_ok_and(|dir| Storage::of(dir.as_fd()) == Storage::Native)
    };
    collisions::is_native(entry)
        && (FileId::of(source).device == FileId::of(dest).device || is_source_native())
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
) -> Result<Option<StoredTimes>, InodeError> {
    let stored = sys::modified(dest);
    let held = ctx.descriptors.making_room(|| sys::open_path(at))?;
    let inode = Inode::PathOnly(held.as_fd());
    let seen = inode.stat()?;
    if FileId::of(&seen) != FileId::of(dest) || sys::modified(&seen) != stored {
        return Err(Errno::STALE.into());
    }
    let set = |time| {
        inode.set_modified(time)?;
        Ok(sys::modified(&inode.stat()?))
    };
    let shown: Result<Option<StoredTimes>, InodeError> = StoredTimes::ask(stored, wanted, set);
    // A limit may not be a multiple of the step: then only a time beyond it is stored as the limit.
    let is_complete = matches!(shown, Ok(Some(shown)) if shown.stored(wanted) == Some(stored));
    let restored = set(if is_complete { wanted } else { stored });
    Ok(shown?.filter(|_| restored == Ok(stored)))
}

/// Decides about the dest that is in the way, as [`decide_to_clear`]. If the decision is to unlink or to refuse it, does
/// that. Returns the decision for the caller to follow.
pub(crate) fn clear_dest(
    entry: &Entry<'_>,
    making: Making,
    source: Option<Facts>,
) -> Result<Option<Clear>, Failure> {
    let decision = decide_to_clear(entry, making, source)?;
    match decision {
        Some(Clear::Unlink) => super::unlink(entry)?,
        Some(Clear::Refuse(refusal)) => return Err(entry.refused(refusal)),
        _ => {}
    }
    Ok(decision)
}

fn clear_rules(entry: &Entry<'_>) -> ClearRules {
    let (options, treatment) = (entry.ctx.policy.options, entry.treatment());
    let keeps_content = options.attributes_only;
    ClearRules {
        treatment,
        symlinks: entry.symlinks,
        links_at_dest: match treatment {
            DestTreatment::LinkedOver => Symlinks::NoFollow,
            _ => links_at_dest(entry.dest_directory_origin()),
        },
        keeps_content,
        separates_links: options.preserve.links && !keeps_content,
        force: options.force,
        asks: options.rules.ask,
        was_vacated: matches!(entry.dest_state, DestState::Vacant { .. }),
        may_be_other_copy: collisions::may_be_other_copy(entry),
    }
}

/// Decides about the dest that is in the way. Returns `None` if it has vanished, or is a dangling link
/// that is followed or named with a trailing slash. `source` holds the facts about the source if they are known.
pub(crate) fn decide_to_clear(
    entry: &Entry<'_>,
    making: Making,
    source: Option<Facts>,
) -> Result<Option<Clear>, Failure> {
    let rules = clear_rules(entry);
    let symlinks = match making {
        Making::File => rules.links_at_dest,
        _ => Symlinks::NoFollow,
    };
    let dest = match entry.stat_dest(symlinks) {
        Ok(dest) => Facts::of(&dest),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) if making == Making::File && entry.ctx.policy.options.force => {
            return Ok(Some(match rules.was_vacated {
                true => Clear::Keep,
                false => Clear::Unlink,
            }));
        }
        Err(errno) => return Err(entry.dest_stat_failure(errno)),
    };
    let look = || entry.stat_source().map(|stat| Facts::of(&stat));
    let source = source.map_or_else(look, Ok);
    let source = source.map_err(|errno| entry.source_stat_failure(errno))?;
    let lookups = Lookups {
        are_one_entry: &|| alias::names_same_entry(entry),
        one_leads_to_other: &|| alias::one_leads_to_other(entry, &source, &dest),
        dest_leads_to_directory: &|| {
            dest.kind == FileType::Symlink
                && entry.ctx.policy.symlinks_of_dest(&source, rules.treatment) == Symlinks::Follow
                && entry
                    .dest_facts(Symlinks::Follow)
                    .is_some_and(|target| target.kind == FileType::Directory)
        },
    };
    Ok(Some(clear(making, rules, &source, &dest, &lookups)))
}
