//! Dests that exist: the only place that decides to rename, unlink or truncate a dest that was there
//! before its copy. This file makes room for a copy whose creation failed with `EEXIST`.
//!
//! - [`overwrite`]: applies the rules for existing dests, and asks their filesystem which times it stores.
//! - [`alias`]: finds out whether a dest is the source, or equal to it.
//! - [`open`]: creates or opens a dest file, and truncates it.
//! - [`backup`]: renames dests to backups, and back.

use std::ffi::CStr;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::collisions;
use super::context::{Context, Failure};
use super::decide::clear::{
    Clear, Lookups, Making, RemovalEvent, clear, clear_whatever_the_source,
};
use super::decide::mode::Origin;
use super::facts::{DestState, Entry, Facts, Symlinks};
use super::large::naming::Naming;
use super::look;
use super::mirror;
use super::writers::Writing;
use crate::error::{Operation, Refusal};
use crate::observer::Event;
use crate::sys::{self, Fd};

mod alias;
pub(super) mod backup;
pub(super) mod open;
pub(super) mod overwrite;

/// An open dest that is ready for the content.
pub(in crate::copy) struct OpenDest<'w> {
    pub(in crate::copy) fd: Fd,
    /// `true` for a regular file, which may get holes and a final truncation.
    pub(in crate::copy) is_file: bool,
    pub(in crate::copy) origin: Origin,
    /// A dest that was created without its name gets it [`WhenComplete`](Naming::WhenComplete).
    pub(in crate::copy) naming: Naming,
    /// The mode that an existing dest gets back if its copy fails, if it was changed.
    pub(in crate::copy) mode_before: Option<u32>,
    /// The dest has the content of its source already.
    pub(in crate::copy) has_content: bool,
    /// Boxed, because few dests need it.
    pub(in crate::copy) writing: Option<Box<Guards<'w>>>,
}

/// The guards that keep other workers from writing to a file, if they could, by its name and by its number.
#[derive(Default)]
pub(in crate::copy) struct Guards<'w> {
    _name: Option<Writing<'w>>,
    _file: Option<Writing<'w>>,
    /// The name by which other engines write to the file until it is complete.
    hidden_name: Option<Box<CStr>>,
    /// The name that the file has until it replaces the one at its place.
    replacing_name: Option<Box<CStr>>,
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
    pub(in crate::copy) fn new_file(fd: Fd, naming: Naming) -> Self {
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
    pub(in crate::copy) fn hidden(fd: Fd, name: Box<CStr>) -> Self {
        let mut dest = Self::new_file(fd, Naming::WhenComplete);
        dest.writing.get_or_insert_default().hidden_name = Some(name);
        dest
    }

    pub(in crate::copy) fn hidden_name(&self) -> Option<&CStr> {
        self.writing.as_ref()?.hidden_name.as_deref()
    }

    /// Returns the name of a dest that replaces another file when it is complete.
    pub(in crate::copy) fn replacing_name(&self) -> Option<&CStr> {
        self.writing.as_ref()?.replacing_name.as_deref()
    }
}

/// The dest after it was cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cleared {
    /// Nothing is there now: create the copy.
    Vacant,
    /// A file is there that the copy opens, perhaps through a symbolic link, and writes to.
    Writable(Symlinks),
    /// The dest is a dangling symbolic link, or has just vanished.
    LeadsNowhere,
    /// The dest already is what the copy would be.
    AlreadyThere,
    /// Create the copy under another name, and rename it to the dest.
    ToReplace(RemovalEvent),
    /// The dest stays, and the caller fails with EEXIST.
    Kept,
    /// The dest stays, and the caller fails with EISDIR.
    KeptDirectory,
}

/// Decides about the dest that is in the way, and unlinks it if that is the decision.
/// `source` holds the facts about the source if they are known.
pub(super) fn clear_dest(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    making: Making,
    source: Option<Facts>,
) -> Result<Cleared, Failure> {
    match decide(ctx, entry, making, source)? {
        Some(decision) => apply(ctx, entry, decision),
        None if making == Making::File => Ok(Cleared::LeadsNowhere),
        None => Ok(Cleared::Vacant),
    }
}

/// Decides about the dest that is in the way. Returns `None` if it has vanished, or is a dangling link
/// that is followed or named with a trailing slash.
pub(super) fn decide(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    making: Making,
    source: Option<Facts>,
) -> Result<Option<Clear>, Failure> {
    let origin = ctx.dest_directory_origin(entry);
    let may_be_other_copy = collisions::may_be_other_copy(ctx, entry);
    let treatment = ctx.treatment(entry);
    let rules = ctx
        .policy
        .clear_rules(entry, treatment, origin, may_be_other_copy);
    let was_vacated = matches!(entry.dest_state, DestState::Vacant { .. });
    let symlinks = match making {
        Making::File => rules.links_at_dest,
        _ => Symlinks::NoFollow,
    };
    let dest = match look::at_dest(ctx, entry, symlinks) {
        Ok(dest) => Facts::of(&dest),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) if making == Making::File && ctx.policy.options.force => {
            return Ok(Some(if was_vacated {
                Clear::Keep
            } else {
                Clear::Unlink
            }));
        }
        Err(errno) => return Err(ctx.dest_stat_failure(entry, errno)),
    };
    if let Some(decision) = clear_whatever_the_source(making, rules, was_vacated, &dest) {
        return Ok(Some(decision));
    }
    let source = match source {
        Some(source) => source,
        None => {
            let stat =
                look::at_source(entry).map_err(|errno| ctx.source_stat_failure(entry, errno))?;
            Facts::of(&stat)
        }
    };
    let lookups = Lookups {
        are_one_entry: &|| look::names_same_entry(entry),
        one_leads_to_other: &|| look::one_leads_to_other(ctx, entry, &source, &dest),
        dest_leads_to_directory: &|| {
            let treatment = ctx.treatment(entry);
            dest.kind == FileType::Symlink
                && ctx.policy.symlinks_of_dest(&source, treatment) == Symlinks::Follow
                && look::dest_facts(ctx, entry, Symlinks::Follow)
                    .is_some_and(|target| target.kind == FileType::Directory)
        },
    };
    Ok(Some(clear(making, rules, &source, &dest, &lookups)))
}

fn apply(ctx: &Context<'_>, entry: &Entry<'_>, decision: Clear) -> Result<Cleared, Failure> {
    match decision {
        Clear::Write(symlinks) => Ok(Cleared::Writable(symlinks)),
        Clear::Unlink if ctx.policy.options.rules.atomic => {
            Ok(Cleared::ToReplace(RemovalEvent::Silent))
        }
        Clear::Unlink => unlink_dest(ctx, entry).map(|()| Cleared::Vacant),
        Clear::Replace(removal) => Ok(Cleared::ToReplace(removal)),
        Clear::AlreadyThere => Ok(Cleared::AlreadyThere),
        Clear::Keep => Ok(Cleared::Kept),
        Clear::KeepDirectory => Ok(Cleared::KeptDirectory),
        Clear::Refuse(Refusal::DirectoryByNonDirectory) if mirror::make_way(ctx, entry) => {
            Ok(Cleared::Vacant)
        }
        Clear::Refuse(refusal) => Err(ctx.refused(entry, refusal)),
    }
}

/// Creates the dest of a directory. A dry run looks at the source, perhaps through a link.
#[inline]
pub(super) fn create_directory(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    mode: u32,
) -> Result<(), Errno> {
    let source = || sys::stat(entry.source_dir, entry.source_name, Symlinks::Follow);
    ctx.changes.create_directory(ctx.spot(entry), mode, source)
}

/// Unlinks the dest, which makes its name vacant.
pub(super) fn unlink_dest(ctx: &Context<'_>, entry: &Entry<'_>) -> Result<(), Failure> {
    ctx.changes
        .unlink(ctx.spot(entry))
        .map_err(|errno| Failure::preparing(ctx.dest_error(entry, Operation::Remove, errno)))?;
    ctx.emit(entry, |_, dest, _| Event::RemovedDest(dest));
    Ok(())
}
