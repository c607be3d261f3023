//! Backups: a dest gets another name in its directory, and its own name back if the copy fails.

use std::ffi::CStr;
use std::os::fd::AsFd;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::backup_names::{BackupNames, BackupNumbers};
use crate::copy::changes::{DestPath, Replaces, Spot};
use crate::copy::context::{Context, Failure};
use crate::copy::decide::mode::Origin;
use crate::copy::facts::{Entry, FileId, Symlinks};
use crate::copy::look;
use crate::copy::node::{CopyDir, CopyNode};
use crate::copy::options::{Backup, DestRules};
use crate::error::{Error, Operation, Refusal};
use crate::node::{Place, Side};
use crate::observer::Event;
use crate::operand;
use crate::sys::{self, Stat};

/// Renames the dest of `entry` to its backup. Returns the backup's name, or `None` if the dest
/// has vanished or is not backed up.
pub(super) fn make(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &Stat,
    dest: &Stat,
    numbers: &mut BackupNumbers,
) -> Result<Option<Box<CStr>>, Failure> {
    let Some(backup) = ctx.backup_rule(entry) else {
        return Ok(None);
    };
    let rules = &ctx.policy.options.rules;
    if backup != Backup::Numbered && would_replace_source(entry, source, rules) {
        return Err(ctx.refused(entry, Refusal::BackupOverSource));
    }
    let renamed = rename_to_backup(ctx, ctx.spot(entry), dest, numbers);
    renamed.map_err(|errno| Failure::preparing(ctx.dest_error(entry, Operation::Backup, errno)))
}

/// Returns `true` if the source is the file that a simple backup of the dest would replace.
fn would_replace_source(entry: &Entry<'_>, source: &Stat, rules: &DestRules) -> bool {
    let Ok(backup) = BackupNames::simple(rules, entry.dest_dir, entry.dest_name).next() else {
        return false;
    };
    let (_, source_base) = operand::split(entry.source_name.to_bytes());
    let (_, backup_base) = operand::split(backup.name.to_bytes());
    source_base == backup_base
        && sys::stat(entry.dest_dir, &backup.name, Symlinks::Follow)
            .is_ok_and(|backup| FileId::of(source) == FileId::of(&backup))
}

/// Gives the dest its name back after its copy failed. Reports an error if the rename fails.
pub(in crate::copy) fn restore(ctx: &Context<'_>, entry: &Entry<'_>) {
    let Some(name) = entry.dest_state.backup() else {
        return;
    };
    let spot = ctx.spot(entry);
    let restored = ctx.changes.rename(spot, name, spot.name, Replaces::Files);
    match restored {
        Ok(()) => ctx.emit(entry, |_, dest, backup| Event::RestoredBackup {
            backup: backup.unwrap_or(dest),
            dest,
        }),
        Err(errno) => {
            let error = ctx.dest_error(entry, Operation::RestoreBackup, errno);
            ctx.fail(entry.operand, error);
        }
    }
}

/// Restores the backup for an entry of `node` whose dest directory is not open.
pub(in crate::copy) fn restore_in(ctx: &Context<'_>, node: &CopyNode, entry: &Entry<'_>) {
    if entry.dest_state.backup().is_none() {
        return;
    }
    match ctx.descriptors.pin(node, Side::Dest, ctx) {
        Ok(dir) => restore(
            ctx,
            &Entry {
                dest_dir: dir.as_fd(),
                ..*entry
            },
        ),
        Err(errno) => {
            let error = ctx.dest_error(entry, Operation::RestoreBackup, errno);
            ctx.fail(entry.operand, error);
        }
    }
}

/// Makes a directory at `place`, where creation failed with EEXIST. If the rules ask for backups, a
/// dest that is not a directory is renamed to one. Otherwise the dest stays.
pub(in crate::copy) fn replace_by_directory(
    ctx: &Context<'_>,
    place: &Place<CopyDir>,
    mode: u32,
    numbers: &mut BackupNumbers,
) -> Result<Origin, Error> {
    let rules = &ctx.policy.options.rules;
    if rules.backup.is_none() {
        return Ok(Origin::Existing);
    }
    let failed = |operation| move |errno| ctx.place_error(place, Side::Dest, operation, errno);
    let look = |symlinks| look::at_dest_of(ctx, place, symlinks);
    let is_directory = |stat: &Stat| sys::file_type(stat) == FileType::Directory;
    let dest = look(Symlinks::NoFollow).map_err(failed(Operation::Stat))?;
    let leads_to_directory = rules.follow_links_to_directories
        && look(Symlinks::Follow).is_ok_and(|target| is_directory(&target));
    if is_directory(&dest) || leads_to_directory {
        return Ok(Origin::Existing);
    }
    let made = ctx.at(place, Side::Dest, |dir, name| {
        let spot = ctx.spot_of(place, dir, name);
        let moved = rename_to_backup(ctx, spot, &dest, numbers)?;
        ctx.changes.create_directory(spot, mode).inspect_err(|_| {
            if let Some(moved) = moved {
                // Ignore a failure: the error to report is that of creating the directory.
                let _ = ctx.changes.rename(spot, &moved, name, Replaces::Nothing);
            }
        })
    });
    made.map_err(failed(Operation::Backup))?;
    Ok(Origin::Created)
}

/// Renames a name, which was seen as `dest`, to a backup. Returns the backup's name, or `None` if the dest has
/// vanished.
fn rename_to_backup(
    ctx: &Context<'_>,
    spot: Spot<'_, impl DestPath>,
    dest: &Stat,
    numbers: &mut BackupNumbers,
) -> Result<Option<Box<CStr>>, Errno> {
    let name = spot.name;
    let mut names = BackupNames::new(&ctx.policy.options.rules, spot.dir, name, numbers);
    loop {
        let backup = names.next()?;
        if *backup.name == *name {
            // The name was shortened to itself.
            return Err(Errno::EXIST);
        }
        let replaces = match backup.replaces {
            true => Replaces::Files,
            false => Replaces::Nothing,
        };
        let renamed = ctx.changes.rename(spot, name, &backup.name, replaces);
        match (renamed, backup.number) {
            (Ok(()), Some(number)) => {
                let (_, base) = operand::split(name.to_bytes());
                numbers.note(base, number);
                return Ok(Some(backup.name));
            }
            (Ok(()), None) => {
                // Between two names of one file, rename succeeds without an effect.
                let still = ctx.changes.look(spot, Symlinks::NoFollow);
                let is_still_there =
                    still.is_ok_and(|still| FileId::of(&still) == FileId::of(dest));
                if dest.st_nlink > 1 && is_still_there {
                    ctx.changes.unlink(spot)?;
                }
                return Ok(Some(backup.name));
            }
            (Err(Errno::EXIST), Some(_)) => {}
            (Err(Errno::NOENT), _) => return Ok(None),
            (Err(errno), _) => return Err(errno),
        }
    }
}
