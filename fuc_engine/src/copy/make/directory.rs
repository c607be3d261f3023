//! Copies directories: a dest is made, or the one that is there is opened, when its source is entered. It gets its final
//! mode and attributes when the last entry under it is finished.
//!
//! The dest of a source that cannot be listed is finished at once. As with cp, it has the attributes of its source, and
//! no entries.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::copy::attributes::{self, Attributes, Transfer};
use crate::copy::collisions;
use crate::copy::context::Context;
use crate::copy::cycles;
use crate::copy::decide::mode::{self, DestAcl, Origin};
use crate::copy::dest::backup::{self, BackupNumbers};
use crate::copy::entry::Entry;
use crate::copy::facts::{CopyDir, CopyNode, FileId, FileTime, Mark, Symlinks};
use crate::copy::options::LinkKind;
use crate::error::{Error, Operation, Refusal};
use crate::node::{Marks, Node, Place, Side};
use crate::paths;
use crate::sys::{self, At, AtimeEffect, DirStat, Fd, Identity, Inode, Stat};
use crate::walk::Purpose;

/// A source directory that is open.
struct SourceDir {
    fd: Fd,
    stat: DirStat,
    /// The time of access, if listing the directory changes it.
    accessed: Option<FileTime>,
    /// Says whether a link was followed to it.
    symlinks: Symlinks,
    /// `None` if it is listed.
    unlisted: Option<Box<Unlisted>>,
}

/// A source directory that is not listed. Its descriptor only names it.
struct Unlisted {
    /// `None` if the options say that the dest stays empty, because the source is on another filesystem.
    errno: Option<Errno>,
    /// The source before its dest was made, perhaps in it.
    seen: Stat,
}

/// Both sides of a directory, open.
struct Opened {
    dir: CopyDir,
    mark: Mark,
    source: Fd,
    dest: Fd,
}

/// Opens the source directory at `place` and makes its dest. Only the entries of a skipped directory are copied, so
/// its dest stays as it is if it exists. Takes the memory of `finished`; see [`Node::new`].
///
/// If the source cannot be listed, reports that, and returns a node that is marked as unlisted. Gives the place back if
/// the directory was not entered, with the error unless nothing needs to be copied.
pub(crate) fn enter(
    ctx: &Context<'_>,
    place: Place<CopyDir>,
    purpose: Purpose,
    numbers: &mut BackupNumbers,
    finished: &mut Option<CopyNode>,
) -> Result<CopyNode, (Place<CopyDir>, Option<Error>)> {
    let opened = Entry::reach(ctx, &place, FileType::Directory, |entry| {
        let entering = Entering { entry, purpose };
        entering.open_sides(numbers)
    });
    match opened.unwrap_or_else(|unreached| Err(Some(unreached))) {
        Ok(opened) => {
            let node = Node::new(place, opened.mark, opened.dir, finished.take());
            ctx.descriptors.adopt(&node, Side::Source, opened.source);
            ctx.descriptors.adopt(&node, Side::Dest, opened.dest);
            Ok(node)
        }
        Err(error) => Err((place, error)),
    }
}

/// The file that is at the dest.
enum Present {
    /// A directory, which gets the entries.
    Directory(Fd),
    /// Something else, of which a backup is made.
    Other(Stat),
}

/// A directory that is entered.
struct Entering<'e> {
    entry: &'e Entry<'e>,
    purpose: Purpose,
}

impl Entering<'_> {
    /// Opens both sides. Fails with `None` if nothing needs to be copied.
    fn open_sides(&self, numbers: &mut BackupNumbers) -> Result<Opened, Option<Error>> {
        let entry = self.entry;
        let ctx = entry.ctx;
        // As in cp, the dest is looked at first. In a new directory, nothing is there.
        let present = match entry.dest_directory_origin() {
            Origin::Existing => self.settle_directory(false)?,
            Origin::Created => None,
        };
        let source = self
            .open_source_directory()
            .map_err(|errno| self.not_opened(errno))?;
        let id = source.stat.identity;
        cycles::check_end(entry, id, source.symlinks)?;
        let (dest, origin) = self.make_dest(&source.stat, present, numbers)?;
        let failed = |operation| move |errno| entry.dest_error(operation, errno);
        let stat = sys::stat_directory(dest.as_fd()).map_err(failed(Operation::Stat))?;
        if entry.is_operand() {
            // This cannot fail, because an operand is entered once per run.
            let _ = ctx.operands.state(entry.operand).root.set(stat.identity);
        }
        if source.unlisted.is_none() && ctx.changes.is_absent(dest.as_fd()) {
            self.check_absent(id);
        }
        let is_new = origin == Origin::Created;
        if is_new && sys::is_of_another(dest.as_fd(), stat.owner, ctx.policy.user) {
            return Err(Some(entry.dest_error(Operation::Stat, Errno::STALE)));
        }
        // Some filesystems give all directories one number, also new ones.
        let is_same = id.file() == stat.identity.file() && origin == Origin::Existing;
        if is_same && !ctx.policy.keeps_existing() {
            // Each entry already is a hard link to itself.
            let is_complete = ctx.policy.makes_hard_links();
            return Err((!is_complete).then(|| entry.refused(Refusal::SameFile).error));
        }
        let mark = self
            .describe(&source, dest.as_fd(), &stat, origin)
            .map_err(failed(Operation::SetMode))?;
        if origin == Origin::Created {
            entry.emit_copied(None);
        }
        if let Some(unlisted) = &source.unlisted {
            self.finish_unlisted(unlisted, &mark, [source.fd.as_fd(), dest.as_fd()]);
        }
        Ok(Opened {
            dir: CopyDir::new(id, stat.identity),
            mark,
            source: source.fd,
            dest,
        })
    }

    /// Opens the source to list it. As with cp, one that may not be listed gets a dest, unless the filter skips it.
    fn open_source_directory(&self) -> Result<SourceDir, Errno> {
        let entry = self.entry;
        let ctx = entry.ctx;
        let (dir, name) = (entry.source.dir, entry.source.name);
        let open = |symlinks| {
            if ctx.policy.options.one_file_system && entry.is_mount_point(symlinks) {
                return self.hold(symlinks, None);
            }
            let listed = || match ctx.policy.options.preserve.timestamps {
                true => sys::open_directory_noatime(dir, name, symlinks),
                // The change of the time of access does not matter.
                false => Ok((sys::open_directory(dir, name, symlinks)?, AtimeEffect::None)),
            };
            let (fd, atime_effect) = match ctx.descriptors.making_room(listed) {
                Err(errno) if self.may_be_named(errno) => {
                    return self.hold(symlinks, Some(errno)).map_err(|_| errno);
                }
                opened => opened?,
            };
            let accessed = match atime_effect {
                AtimeEffect::Changes => Some(sys::times(&sys::stat_open(&fd)?)[0]),
                AtimeEffect::None => None,
            };
            Ok(SourceDir {
                stat: sys::stat_directory(fd.as_fd())?,
                fd,
                accessed,
                symlinks,
                unlisted: None,
            })
        };
        match open(Symlinks::NoFollow) {
            Err(Errno::LOOP | Errno::NOTDIR) if entry.source.symlinks == Symlinks::Follow => {
                open(Symlinks::Follow)
            }
            opened => opened,
        }
    }

    /// Opens a source that is not listed, only to name it. Mounts nothing, and does not ask a server to open it.
    #[cold]
    fn hold(&self, symlinks: Symlinks, errno: Option<Errno>) -> Result<SourceDir, Errno> {
        let at = At {
            symlinks,
            ..self.entry.source
        };
        let fd = self
            .entry
            .ctx
            .descriptors
            .making_room(|| sys::open_path(at))?;
        let seen = sys::stat_open(&fd)?;
        if !sys::is_directory(&seen) {
            return Err(Errno::NOTDIR);
        }
        Ok(SourceDir {
            stat: sys::stat_directory(fd.as_fd())?,
            fd,
            accessed: None,
            symlinks,
            unlisted: Some(Box::new(Unlisted { errno, seen })),
        })
    }

    /// Returns `true` if a dest is made although its source cannot be listed because of `errno`. As with cp, it is not if
    /// the source is missing, or may be opened later.
    fn may_be_named(&self, errno: Errno) -> bool {
        let is_missing = matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP);
        let is_short = matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM);
        self.purpose != Purpose::ProcessEntries && !is_missing && !is_short
    }

    /// Reports that an operand would be copied into itself, although its root cannot be met because it does not exist
    /// yet: `source` is the directory in which it would be listed.
    #[cold]
    fn check_absent(&self, source: Identity) {
        let entry = self.entry;
        let operand = entry.ctx.operands.state(entry.operand);
        if entry.is_operand()
            && let Some(above) = paths::directory_id_of(entry.dest.dir, entry.dest.name)
        {
            // An operand is entered once per run.
            let _ = operand.above_root.set(above);
        }
        if operand.above_root.get() == Some(&source.file()) {
            entry.fail(cycles::into_itself(entry));
        }
    }

    /// Returns the error of opening the source: first that of looking at it.
    #[cold]
    fn not_opened(&self, errno: Errno) -> Error {
        match self.entry.stat_source() {
            Ok(_) => self.entry.source_error(Operation::ReadDirectory, errno),
            Err(unseen) => self.entry.source_error(Operation::Stat, unseen),
        }
    }

    /// Settles what happens to the dest, in the order of cp. Returns `None` if the directory must be created.
    /// If the place `is_occupied`, that has failed before.
    ///
    /// | if | the dest |
    /// |---|---|
    /// | nothing is there | is created; or stays, if that has failed because something is there |
    /// | it is a directory, perhaps that of another name | stays |
    /// | it is a directory | gets the entries |
    /// | dests are backed up, and it is not the copy of another name | becomes a backup |
    /// | it is a link to the source, and cp would compare them | is refused as the same file |
    /// | it is anything else | is refused as no directory |
    fn settle_directory(&self, is_occupied: bool) -> Result<Option<Present>, Error> {
        let entry = self.entry;
        let seen = self
            .look()
            .map_err(|errno| entry.dest_error(Operation::Stat, errno))?;
        let may_be_other_copy = || !entry.is_operand() && collisions::may_be_other_copy(entry);
        let backs_up = entry.ctx.policy.options.rules.backup.is_some()
            && self.purpose != Purpose::ProcessEntries;
        let stays = match &seen {
            None => is_occupied,
            Some(Present::Directory(_)) => may_be_other_copy(),
            Some(Present::Other(_)) if backs_up && !may_be_other_copy() => false,
            Some(Present::Other(_)) if self.is_led_to_source() => {
                return Err(entry.refused(Refusal::SameFile).error);
            }
            Some(Present::Other(_)) => {
                return Err(entry.refused(Refusal::NonDirectoryByDirectory).error);
            }
        };
        match stays {
            true => Err(entry.dest_error(Operation::CreateDirectory, Errno::EXIST)),
            false => Ok(seen),
        }
    }

    /// Opens the directory at the dest, or looks at what else is there.
    fn look(&self) -> Result<Option<Present>, Errno> {
        let seen = match self.open_dest_directory(Origin::Existing) {
            Err(Errno::NOTDIR | Errno::LOOP) => {
                self.entry.stat_dest(Symlinks::NoFollow).map(Present::Other)
            }
            opened => opened.map(Present::Directory),
        };
        match seen {
            Err(Errno::NOENT) => Ok(None),
            seen => seen.map(Some),
        }
    }

    fn open_dest_directory(&self, origin: Origin) -> Result<Fd, Errno> {
        let Entry { ctx, .. } = *self.entry;
        let (dir, name) = (self.entry.dest.dir, self.entry.dest.name);
        ctx.descriptors.making_room(|| {
            let open = || ctx.open_dest_directory(dir, name);
            ctx.changes.open_dest(self.entry.dest, origin, open)
        })
    }

    /// Returns `true` if a link at the dest leads to the source. As in cp, they are not compared if source links are followed, or
    /// if no file would be written through the link.
    fn is_led_to_source(&self) -> bool {
        let entry = self.entry;
        let policy = &entry.ctx.policy;
        let options = policy.options;
        entry.source.symlinks == Symlinks::NoFollow
            && !options.rules.removes_dests()
            && options.as_links != Some(LinkKind::Symbolic)
            && !policy.keeps_existing()
            && matches!((entry.stat_source(), entry.stat_dest(Symlinks::Follow)), (Ok(source), Ok(target))
                if FileId::of(&source) == FileId::of(&target))
    }

    /// Makes the dest, unless a directory is `present`.
    fn make_dest(
        &self,
        source: &DirStat,
        mut present: Option<Present>,
        numbers: &mut BackupNumbers,
    ) -> Result<(Fd, Origin), Error> {
        let entry = self.entry;
        let changes = &entry.ctx.changes;
        let mode = entry.ctx.policy.directory_creation_mode(source.mode);
        let failed = |operation| move |errno| entry.dest_error(operation, errno);
        if present.is_none() {
            match changes.create_directory(entry.dest, mode) {
                Err(Errno::EXIST) => present = self.settle_directory(true)?,
                created => created.map_err(failed(Operation::CreateDirectory))?,
            }
        }
        match present {
            Some(Present::Directory(dest)) => return Ok((dest, Origin::Existing)),
            Some(Present::Other(dest)) => {
                let replaced = backup::replace_by_directory(entry, &dest, mode, numbers);
                replaced.map_err(failed(Operation::Backup))?;
            }
            None => {}
        }
        match self.open_dest_directory(Origin::Created) {
            Ok(dest) => Ok((dest, Origin::Created)),
            // Another process has replaced it.
            Err(Errno::NOTDIR | Errno::LOOP) => {
                Err(entry.refused(Refusal::NonDirectoryByDirectory).error)
            }
            Err(errno) => Err(entry.dest_error(Operation::CreateDirectory, errno)),
        }
    }

    /// Prepares the dest, which was seen as `seen`, to be filled. Fails if its owner may not do that.
    fn describe(
        &self,
        source: &SourceDir,
        dest: BorrowedFd<'_>,
        seen: &DirStat,
        origin: Origin,
    ) -> Result<Mark, Errno> {
        let entry = self.entry;
        let policy = &entry.ctx.policy;
        let mut mode_pending = None;
        if origin == Origin::Created {
            let granted = seen.mode & 0o7777;
            mode_pending = entry
                .ctx
                .changes
                .really(|| attributes::let_owner_fill(dest, granted))?
                .or_else(|| mode::of_writable_directory(granted));
        }
        // A dest that existed keeps its attributes if the filter skips the source.
        let is_kept = self.purpose == Purpose::ProcessEntries && origin == Origin::Existing;
        let gets_attributes = policy.sets_attributes && !is_kept;
        if gets_attributes {
            let last = policy.last_directory_mode(source.stat.mode, seen.mode, origin);
            mode_pending = last.or(mode_pending);
        }
        let inode = Inode::PathOnly(dest);
        // Listing changes the source's time of access, so the dest gets it now. If the dest cannot
        // have it, that is reported when its attributes are set.
        let has_access_time = source
            .accessed
            .is_some_and(|time| gets_attributes && inode.set_accessed(time).is_ok());
        let gives_acl = self.inherited_acl(&inode, seen, origin) == DestAcl::Possible;
        let keeps_entries = seen.mode & mode::WRITABLE_BY_OTHERS == 0;
        let marks = Marks::when(gets_attributes, Mark::GETS_ATTRIBUTES)
            | Marks::when(source.symlinks == Symlinks::Follow, Mark::BEHIND_LINK)
            | Marks::when(has_access_time, Mark::HAS_ACCESS_TIME)
            | Marks::when(origin == Origin::Created, Mark::CREATED)
            | Marks::when(gives_acl, Mark::GIVES_ACL)
            | Marks::when(keeps_entries, Mark::KEEPS_ENTRIES);
        Ok(Mark::new(entry.node, mode_pending, marks))
    }

    /// Returns whether what is created in the dest may inherit an ACL from it.
    fn inherited_acl(&self, dest: &Inode<'_>, seen: &DirStat, origin: Origin) -> DestAcl {
        let ctx = self.entry.ctx;
        // It is the directory that was created, and has no default ACL.
        let inherits_nothing = |parent: &CopyNode| {
            let marks = &parent.state.marks;
            marks.has(Mark::KEEPS_ENTRIES) && !marks.has(Mark::GIVES_ACL)
        };
        if !ctx.policy.replaces_acls() {
            return DestAcl::Absent;
        }
        // Another operand may give a common dest to another user while this one fills it.
        if ctx.merges_directories {
            return DestAcl::Possible;
        }
        if origin == Origin::Created && self.entry.node.is_some_and(inherits_nothing) {
            return DestAcl::Absent;
        }
        attributes::inherited_in(&ctx.policy, dest, seen.owner)
    }

    /// Gives the dest of a source that is not listed its attributes. Reports the reason if it is an error.
    #[cold]
    fn finish_unlisted(
        &self,
        unlisted: &Unlisted,
        mark: &Mark,
        [source, dest]: [BorrowedFd<'_>; 2],
    ) {
        let entry = self.entry;
        if let Some(errno) = unlisted.errno {
            entry.fail(entry.source_error(Operation::ReadDirectory, errno));
        }
        mark.marks.set(Mark::UNLISTED);
        if mark.marks.has(Mark::GETS_ATTRIBUTES) {
            let source = Inode::PathOnly(source);
            let set = transfer(entry.ctx, mark, source, &unlisted.seen, dest);
            if let Err(error) = entry.report_attributes(set) {
                entry.fail(error);
            }
        }
    }
}

/// Gives a directory its final mode and attributes, after its last entry.
pub(crate) fn finish(ctx: &Context<'_>, node: &CopyNode) {
    if let Some(parent) = &node.place.parent {
        for side in [Side::Source, Side::Dest] {
            if node.state.returns_to(side) {
                // If this fails, the parent is reached from its operand when it is needed, or
                // the failure is reported then.
                let _ = ctx.descriptors.pin_parent(parent, side, node, ctx);
            }
        }
    }
    if let Err(error) = set_attributes(ctx, node).and_then(|()| sync(ctx, node)) {
        ctx.fail(node.place.operand, error);
    }
    ctx.descriptors.close(node, Side::Source);
    ctx.descriptors.close(node, Side::Dest);
}

/// Writes a complete directory to the disk, if the options say so.
pub(crate) fn sync(ctx: &Context<'_>, node: &CopyNode) -> Result<(), Error> {
    let Some(durability) = &ctx.durability else {
        return Ok(());
    };
    let dest = ctx.descriptors.pin(node, Side::Dest, ctx);
    dest.and_then(|dest| durability.directory_complete(dest.as_fd()))
        .map_err(|errno| ctx.node_error(node, Side::Dest, Operation::Sync, errno))
}

/// Copies the attributes, or sets the mode. Attributes are read again, since keeping them from the start would take
/// memory for each level of depth.
fn set_attributes(ctx: &Context<'_>, node: &CopyNode) -> Result<(), Error> {
    let mark = &node.state;
    let failed = |side, operation| move |errno| ctx.node_error(node, side, operation, errno);
    let pin = |side| ctx.descriptors.pin(node, side, ctx);
    if mark.marks.has(Mark::GETS_ATTRIBUTES) {
        // A dest whose source is not listed has its attributes already.
        if mark.marks.has(Mark::UNLISTED) {
            return Ok(());
        }
        let unseen = failed(Side::Source, Operation::Stat);
        let source = pin(Side::Source).map_err(unseen)?;
        let stat = sys::stat_open(source.as_fd()).map_err(unseen)?;
        let dest = pin(Side::Dest).map_err(failed(Side::Dest, Operation::KeepMode))?;
        let opened = Inode::Opened(source.as_fd());
        let set = transfer(ctx, mark, opened, &stat, dest.as_fd());
        ctx.report_attributes(node.place.operand, set, || {
            ctx.place_path(&node.place, Side::Dest)
        })
    } else if let Some(mode) = mark.mode() {
        let set = pin(Side::Dest).and_then(|dest| Inode::PathOnly(dest.as_fd()).set_mode(mode));
        set.map_err(failed(Side::Dest, Operation::SetMode))
    } else {
        Ok(())
    }
}

/// Gives a dest the attributes of its source. If listing changes the source's access time, the dest already
/// has the old one.
fn transfer(
    ctx: &Context<'_>,
    mark: &Mark,
    source: Inode<'_>,
    stat: &Stat,
    dest: BorrowedFd<'_>,
) -> Attributes {
    let transfer = Transfer {
        policy: &ctx.policy,
        source,
        stat,
        dest: Inode::PathOnly(dest),
        dest_acl: match mark.origin() {
            Origin::Created => mark.inherited_acl(),
            Origin::Existing => DestAcl::Possible,
        },
        has_access_time: mark.marks.has(Mark::HAS_ACCESS_TIME),
        is_parent: false,
        has_owner: false,
        has_rights: false,
        mode: mark.mode(),
    };
    transfer.set_all()
}
