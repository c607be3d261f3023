//! Operands that name a source or a dest which an earlier operand of the run has named.

use std::ffi::CStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::context::{Context, Failure};
use super::decide::overwrite::Sameness;
use super::dest::overwrite as dest;
use super::facts::{Entry, Facts, FileId, Symlinks};
use super::options::Backup;
use super::{collisions, look};
use crate::error::{Error, Refusal};
use crate::hashing::HashMap;
use crate::node::Side;
use crate::sys::{self, Stat};

/// A source or a dest that an operand has used.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Used {
    /// A source, which is identified by its inode, not its path, and the name of its dest.
    Source(Box<CStr>, FileId),
    Dest(Box<CStr>),
}

/// The sources and dests that the operands of a run have used so far, with the first operand that used each.
#[derive(Default)]
pub(super) struct UsedNames(Mutex<HashMap<Used, u32>>);

/// Returns `true` if operands may collide: several of them go into one directory.
fn may_collide(ctx: &Context<'_>) -> bool {
    ctx.operands.len() >= 2 && ctx.target.is_some()
}

/// Returns the name of an operand's dest, relative to the target.
fn dest_name(ctx: &Context<'_>, operand: u32) -> Box<CStr> {
    ctx.operands[operand as usize].dest_name.clone()
}

impl UsedNames {
    fn map(&self) -> MutexGuard<'_, HashMap<Used, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, used: Used, operand: u32) {
        self.map().entry(used).or_insert(operand);
    }

    /// Notes the source of an operand. Returns the warning if an earlier operand was the same
    /// source: the operand is skipped then.
    pub(super) fn note_source(
        &self,
        ctx: &Context<'_>,
        entry: &Entry<'_>,
        source: &Stat,
    ) -> Result<(), Error> {
        if !may_collide(ctx) {
            return Ok(());
        }
        let is_directory = sys::file_type(source) == FileType::Directory;
        let used = Used::Source(dest_name(ctx, entry.operand), FileId::of(source));
        // With backups, a second copy of a file backs up the first one.
        let is_backed_up = !is_directory && ctx.backup_rule(entry).is_some();
        // An operand that has waited for earlier ones is begun again.
        let first = self.map().get(&used).copied();
        let was_used = first.is_some_and(|first| first != entry.operand);
        // A directory may be named through a link, too.
        let is_repeated = was_used && (is_directory || was_named_before(ctx, entry));
        if is_repeated && !is_backed_up {
            let refusal = if is_directory {
                Refusal::DirectoryNamedTwice
            } else {
                Refusal::FileNamedTwice
            };
            return Err(Error::refused(refusal, ctx.path(entry, Side::Source)));
        }
        if !is_directory {
            self.note(used, entry.operand);
        }
        Ok(())
    }

    /// Notes a directory operand as a source, once its copy was made.
    pub(super) fn note_directory(&self, ctx: &Context<'_>, operand: u32, source: FileId) {
        if may_collide(ctx) {
            let dest = dest_name(ctx, operand);
            self.note(Used::Source(dest, source), operand);
        }
    }

    /// Notes the dest of an operand, once its copy was made.
    pub(super) fn note_dest(&self, ctx: &Context<'_>, entry: &Entry<'_>) {
        if may_collide(ctx) {
            let dest = dest_name(ctx, entry.operand);
            self.note(Used::Dest(dest), entry.operand);
        }
    }

    /// Fails if an earlier operand has made the dest of this one, unless that dest is renamed
    /// to a numbered backup.
    pub(super) fn check_dest(
        &self,
        ctx: &Context<'_>,
        entry: &Entry<'_>,
        source: &Stat,
    ) -> Result<(), Failure> {
        if !may_collide(ctx) || ctx.backup_rule(entry) == Some(Backup::Numbered) {
            return Ok(());
        }
        let dest = dest_name(ctx, entry.operand);
        if !self.map().contains_key(&Used::Dest(dest)) {
            return Ok(());
        }
        let source = &Facts::of(source);
        match dest::sameness(ctx, entry, source) {
            Sameness::SameFile => return Err(ctx.refused(entry, Refusal::SameFile)),
            Sameness::AlreadyThere => return Ok(()),
            Sameness::Distinct => {}
        }
        let treatment = ctx.treatment(entry);
        let symlinks = ctx.policy.symlinks_of_dest(source, treatment);
        match look::at_dest(ctx, entry, symlinks) {
            Ok(_) | Err(Errno::NOENT) => {}
            Err(Errno::LOOP) if ctx.policy.options.force => {}
            Err(errno) => return Err(ctx.dest_stat_failure(entry, errno)),
        }
        Err(collisions::just_created(ctx, entry, source))
    }
}

impl UsedNames {
    /// Fails if a directory would replace the dest that an earlier operand has made. Without backups,
    /// a directory replaces nothing; a numbered backup loses nothing.
    pub(super) fn check_directory_dest(
        &self,
        ctx: &Context<'_>,
        entry: &Entry<'_>,
    ) -> Result<(), Failure> {
        let is_replaced = matches!(
            ctx.backup_rule(entry),
            Some(Backup::Simple | Backup::NumberedIfAny)
        );
        if !is_replaced || !may_collide(ctx) {
            return Ok(());
        }
        let dest = dest_name(ctx, entry.operand);
        let kind = || look::dest_facts(ctx, entry, Symlinks::NoFollow).map(|facts| facts.kind);
        if self.map().contains_key(&Used::Dest(dest)) && kind() != Some(FileType::Directory) {
            return Err(ctx.refused(entry, Refusal::JustCreated));
        }
        Ok(())
    }
}

/// Returns `true` if an earlier operand is the same name in the same directory, and not only
/// another name of the same file.
fn was_named_before(ctx: &Context<'_>, entry: &Entry<'_>) -> bool {
    let earlier = &ctx.operands[..entry.operand as usize];
    earlier.iter().any(|earlier| {
        look::names_same_entry(&Entry {
            dest_dir: ctx.bases.source,
            dest_name: &earlier.source,
            ..*entry
        })
    })
}
