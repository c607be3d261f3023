//! Copies directories: a dest is made when its source is entered, and gets its final mode and
//! attributes when the last entry under it is finished.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::copy::attributes::{self, Attributes, PathOnly, Role, Times, Transfer};
use crate::copy::context::Context;
use crate::copy::decide::mode::{DestAcl, Origin};
use crate::copy::dest::backup::BackupNumbers;
use crate::copy::dest::directory;
use crate::copy::diagnose::{self, Unopened, Unreadable};
use crate::copy::durability::Durability;
use crate::copy::facts::{CopyDir, CopyNode, DirFacts, Entry, FileId, Mark, Symlinks};
use crate::error::{Error, Operation, Refusal};
use crate::node::{Node, Place, Side};
use crate::operand;
use crate::sys::{self, AtimeEffect, Fd, Identity, Inode};
use crate::walk::Purpose;

/// The reason why a directory was not entered.
pub(in crate::copy) struct NotEntered {
    /// `None` if nothing needs to be copied.
    pub(in crate::copy) error: Option<Error>,
    /// The empty dest of a directory that may not be read.
    pub(in crate::copy) unfilled: Option<Unfilled>,
}

/// The dest of a directory that may not be read. Like cp, this run leaves it empty.
pub(in crate::copy) struct Unfilled {
    pub(in crate::copy) source: FileId,
    origin: Origin,
}

impl Unfilled {
    /// Returns `true` if this run created the dest.
    pub(in crate::copy) fn is_created(&self) -> bool {
        self.origin == Origin::Created
    }
}

impl From<Error> for NotEntered {
    fn from(error: Error) -> Self {
        Self {
            error: Some(error),
            unfilled: None,
        }
    }
}

/// A source directory that is open.
struct SourceDir {
    fd: Fd,
    /// The effect of listing the directory on its access time.
    atime_effect: AtimeEffect,
    /// Says whether a link was followed to it.
    symlinks: Symlinks,
}

/// Both sides of a directory, open.
struct Opened {
    mark: Mark,
    source: Fd,
    source_identity: Identity,
    dest: Fd,
    dest_identity: Identity,
}

/// Opens the source directory at `place` and makes its dest. Only the entries of a skipped directory are copied, so
/// its dest stays as it is if it exists. Takes the memory of `finished`; see [`Node::new`]. Gives the place back if the
/// directory was not entered.
pub(in crate::copy) fn enter(
    ctx: &Context<'_>,
    place: Place<CopyDir>,
    purpose: Purpose,
    numbers: &mut BackupNumbers,
    finished: &mut Option<CopyNode>,
) -> Result<CopyNode, (Place<CopyDir>, NotEntered)> {
    let listed = sys::Entry::new(&place.name, FileType::Directory);
    let opened = ctx.with_entry(place.parent.as_ref(), place.operand, listed, |entry| {
        open(ctx, entry, purpose, numbers)
    });
    match opened.unwrap_or_else(|unreached| Err(unreached.into())) {
        Ok(opened) => {
            let dir = CopyDir::new(opened.source_identity, opened.dest_identity);
            let node = Node::new(place, opened.mark, dir, finished.take());
            ctx.descriptors.adopt(&node, Side::Source, opened.source);
            ctx.descriptors.adopt(&node, Side::Dest, opened.dest);
            Ok(node)
        }
        Err(not_entered) => Err((place, not_entered)),
    }
}

fn open(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    purpose: Purpose,
    numbers: &mut BackupNumbers,
) -> Result<Opened, NotEntered> {
    let source =
        open_source(ctx, entry).map_err(|errno| not_opened(ctx, entry, purpose, errno, numbers))?;
    let (stat, accessed) = sys::stat_directory_and_access(source.fd.as_fd())
        .map_err(|errno| ctx.source_error(entry, Operation::Stat, errno))?;
    let is_below_link = |parent: &CopyNode| parent.state.is_behind_link();
    check_into_itself(ctx, entry, stat.identity)?;
    if source.symlinks == Symlinks::Follow
        || entry.node.is_some_and(is_below_link)
        || ctx.policy.options.rules.follow_links_to_directories
    {
        diagnose::cycle(ctx, entry, stat.identity)?;
    }
    let dest = directory::make(ctx, entry, &stat, purpose, numbers)?;
    if entry.is_operand() {
        // This cannot fail, because an operand is entered once per run.
        let _ = ctx.operands.state(entry.operand).root.set(dest.identity);
    }
    if ctx.changes.is_absent(dest.fd.as_fd()) {
        check_absent(ctx, entry, stat.identity);
    }
    if stat.identity.file() == dest.identity.file() && !ctx.policy.keeps_existing() {
        return Err(refuse_itself(ctx, entry));
    }
    if dest.origin == Origin::Created {
        ctx.emit_copied(entry, None);
    }
    let gets_attributes =
        ctx.policy.sets_attributes && !directory::keeps_attributes(purpose, dest.origin);
    // Listing changes the source's time of access, so the dest gets it now. If the dest cannot
    // have it, that is reported when its attributes are set.
    let has_access_time = source.atime_effect == AtimeEffect::Changes
        && gets_attributes
        && Inode::directory(dest.fd.as_fd())
            .set_accessed(accessed)
            .is_ok();
    let facts = DirFacts {
        gets_attributes,
        is_behind_link: source.symlinks == Symlinks::Follow,
        has_access_time,
        origin: dest.origin,
        inherited_acl: dest.inherited_acl,
        mode_pending: dest.mode_pending,
    };
    Ok(Opened {
        mark: Mark::new(entry.node, &facts),
        source: source.fd,
        source_identity: stat.identity,
        dest: dest.fd,
        dest_identity: dest.identity,
    })
}

fn open_source(ctx: &Context<'_>, entry: &Entry<'_>) -> Result<SourceDir, Errno> {
    let open = |symlinks| {
        let (dir, name) = (entry.source_dir, entry.source_name);
        let opened = ctx
            .descriptors
            .making_room(|| open_to_list(ctx, dir, name, symlinks));
        opened.map(|(fd, atime_effect)| SourceDir {
            fd,
            atime_effect,
            symlinks,
        })
    };
    match open(Symlinks::NoFollow) {
        Err(Errno::LOOP | Errno::NOTDIR) if entry.symlinks == Symlinks::Follow => {
            open(Symlinks::Follow)
        }
        opened => opened,
    }
}

fn open_to_list(
    ctx: &Context<'_>,
    dir: BorrowedFd<'_>,
    name: &CStr,
    symlinks: Symlinks,
) -> Result<(Fd, AtimeEffect), Errno> {
    if ctx.policy.options.preserve.timestamps {
        sys::open_directory_noatime(dir, name, symlinks)
    } else {
        // Timestamps are not preserved, so the change of the time of access does not matter.
        Ok((sys::open_directory(dir, name, symlinks)?, AtimeEffect::None))
    }
}

/// Refuses to copy a directory to itself. This is not an error if hard links are made, because each entry
/// already is one.
fn refuse_itself(ctx: &Context<'_>, entry: &Entry<'_>) -> NotEntered {
    let is_complete = ctx.policy.makes_hard_links();
    NotEntered {
        error: (!is_complete).then(|| ctx.refused(entry, Refusal::SameFile).error),
        unfilled: None,
    }
}

/// Fails if the copy of an operand has reached its own dest.
fn check_into_itself(ctx: &Context<'_>, entry: &Entry<'_>, source: Identity) -> Result<(), Error> {
    match ctx.operands.state(entry.operand).root.get() {
        Some(root) if root.file() == source.file() => Err(into_itself(ctx, entry.operand)),
        _ => Ok(()),
    }
}

fn into_itself(ctx: &Context<'_>, operand: u32) -> Error {
    let path = |side| ctx.operand_path(operand, side);
    diagnose::refused(Refusal::IntoItself, [Side::Source, Side::Dest].map(path))
}

/// Reports that an operand would be copied into itself, although its root cannot be met because it does not exist yet:
/// `source` is the directory in which it would be listed.
#[cold]
fn check_absent(ctx: &Context<'_>, entry: &Entry<'_>, source: Identity) {
    let operand = ctx.operands.state(entry.operand);
    if entry.is_operand() {
        let directory = operand::directory_of(entry.dest_name);
        if let Ok(above) = sys::stat(entry.dest_dir, &directory, Symlinks::Follow) {
            // An operand is entered once per run.
            let _ = operand.above_root.set(FileId::of(&above));
        }
    }
    if operand.above_root.get() == Some(&source.file()) {
        ctx.fail(entry.operand, into_itself(ctx, entry.operand));
    }
}

/// Returns the reason why a source directory was not opened. If it may not be read, makes an
/// empty dest, as cp does, unless the filter skips the directory.
fn not_opened(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    purpose: Purpose,
    errno: Errno,
    numbers: &mut BackupNumbers,
) -> NotEntered {
    let (error, unreadable) = match diagnose::directory_opening(ctx, entry, errno) {
        Unopened::Unreadable(error, _) if purpose == Purpose::ProcessEntries => {
            return error.into();
        }
        Unopened::Unreadable(error, unreadable) => (error, unreadable),
        Unopened::IsItsDest => return refuse_itself(ctx, entry),
        Unopened::Failed(error) => return error.into(),
    };
    match make_unfilled(ctx, entry, &unreadable, numbers) {
        Ok(origin) => {
            let finish = || finish_unfilled(ctx, entry, &unreadable);
            if let Err(error) = ctx.changes.really(finish) {
                ctx.fail(entry.operand, error);
            }
            let source = FileId::of(&unreadable.source);
            NotEntered {
                error: Some(error),
                unfilled: Some(Unfilled { source, origin }),
            }
        }
        Err(error) => error.into(),
    }
}

/// Makes the dest of a directory that may not be read, unless it was `seen` to exist.
#[cold]
fn make_unfilled(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    Unreadable { source, dest: seen }: &Unreadable,
    numbers: &mut BackupNumbers,
) -> Result<Origin, Error> {
    let (id, mode) = (FileId::of(source), source.st_mode);
    let origin = directory::claim(ctx, entry, id, mode, Purpose::Process { pass: 0 }, numbers)?;
    match (origin, seen) {
        (Origin::Created, _) => ctx.emit_copied(entry, None),
        (Origin::Existing, Origin::Existing) => {}
        // The dest is a dangling link named with a trailing slash.
        (Origin::Existing, Origin::Created) => {
            return Err(diagnose::directory_creation(ctx, entry, id, Errno::EXIST));
        }
    }
    Ok(origin)
}

/// Gives the dest of a directory that may not be read its mode and its attributes: those that the source
/// had before the dest was made, perhaps in it.
fn finish_unfilled(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    Unreadable {
        source: seen,
        dest: origin,
    }: &Unreadable,
) -> Result<(), Error> {
    if !ctx.policy.sets_attributes && *origin == Origin::Existing {
        return Ok(());
    }
    let unseen = |errno| ctx.dest_error(entry, Operation::Stat, errno);
    let source = PathOnly::find(entry.source_at())
        .map_err(|errno| ctx.source_error(entry, Operation::Stat, errno))?;
    let source = source.with_facts_of(seen);
    let dest = PathOnly::find(entry.dest_at()).map_err(unseen)?;
    let (policy, acl) = (&ctx.policy, DestAcl::Possible);
    let set = attributes::transfer(policy, &source, &dest, *origin, acl, Role::Copy);
    let set = set.map_err(unseen)?;
    ctx.report_attributes(entry.operand, set, || ctx.path(entry, Side::Dest))
}

/// Gives a directory its final mode and attributes, after its last entry.
pub(in crate::copy) fn finish(ctx: &Context<'_>, node: &CopyNode) {
    if let Some(parent) = &node.place.parent {
        for side in [Side::Source, Side::Dest] {
            if node.state.returns_to(side) {
                // If this fails, the parent is reached from its operand when it is needed, or
                // the failure is reported then.
                let _ = ctx.descriptors.pin_parent(parent, side, node, ctx);
            }
        }
    }
    let finished = if node.state.gets_attributes() {
        set_attributes(ctx, node)
    } else if let Some(mode) = node.state.mode() {
        set_mode(ctx, node, mode)
    } else {
        Ok(())
    };
    if let Err(error) = finished.and_then(|()| sync(ctx, node)) {
        ctx.fail(node.place.operand, error);
    }
    ctx.descriptors.close(node, Side::Source);
    ctx.descriptors.close(node, Side::Dest);
}

/// Writes a complete directory to the disk, if the options say so.
#[inline]
pub(in crate::copy) fn sync(ctx: &Context<'_>, node: &CopyNode) -> Result<(), Error> {
    match &ctx.durability {
        Some(durability) => sync_with(ctx, node, durability),
        None => Ok(()),
    }
}

#[cold]
fn sync_with(ctx: &Context<'_>, node: &CopyNode, durability: &Durability) -> Result<(), Error> {
    let dest = ctx.descriptors.pin(node, Side::Dest, ctx);
    dest.and_then(|dest| durability.directory_complete(dest.as_fd()))
        .map_err(|errno| ctx.node_error(node, Side::Dest, Operation::Sync, errno))
}

fn set_mode(ctx: &Context<'_>, node: &CopyNode, mode: u32) -> Result<(), Error> {
    let dest = ctx.descriptors.pin(node, Side::Dest, ctx);
    dest.and_then(|dest| Inode::directory(dest.as_fd()).set_mode(mode))
        .map_err(|errno| ctx.node_error(node, Side::Dest, Operation::SetMode, errno))
}

/// Copies the attributes. They are read again, since keeping them from the start would take
/// memory for each level of depth. If listing changes the source's access time, the dest already
/// has the old one.
fn set_attributes(ctx: &Context<'_>, node: &CopyNode) -> Result<(), Error> {
    let failed = |side, operation| move |errno| ctx.node_error(node, side, operation, errno);
    let source = ctx
        .descriptors
        .pin(node, Side::Source, ctx)
        .map_err(failed(Side::Source, Operation::Stat))?;
    let stat = sys::stat_open(source.as_fd()).map_err(failed(Side::Source, Operation::Stat))?;
    let dest = ctx
        .descriptors
        .pin(node, Side::Dest, ctx)
        .map_err(failed(Side::Dest, Operation::KeepMode))?;
    let transfer = Transfer {
        source: Inode::Opened(source.as_fd()),
        stat: &stat,
        dest: Inode::directory(dest.as_fd()),
        dest_acl: match node.state.origin() {
            Origin::Created => node.state.inherited_acl(),
            Origin::Existing => DestAcl::Possible,
        },
        role: Role::Copy,
        times: if node.state.has_access_time() {
            Times::Modification
        } else {
            Times::AccessAndModification
        },
        mode: node.state.mode(),
    };
    let set: Attributes = transfer.run(&ctx.policy);
    ctx.report_attributes(node.place.operand, set, || {
        ctx.place_path(&node.place, Side::Dest)
    })
}
