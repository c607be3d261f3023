//! Removes operands and directories: enters a directory, removes one that is empty, or a name that is not entered.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::asking::{self, IfLeft};
use super::context::{RemoveContext, needs_room};
use super::guards;
use super::node::{Consent, ENTRIES_ONLY, GONE, KEPT, Name, RemoveNode, SHRUNK, STAYS};
use super::options::Ask;
use super::prompt::Prompt;
use crate::error::{Error, Operation, Refusal};
use crate::node::Side;
use crate::paths;
use crate::report::Counted;
use crate::sys::{self, Fd, Mount, Symlinks};
use crate::walk::Purpose;

/// The result of entering a directory.
pub(super) enum Entered {
    /// The directory is open and may be listed.
    Open(Fd, Consent),
    /// The name is gone already.
    Removed(Counted),
    /// The name stays. Any failure has already been reported.
    Left,
    /// The name, of this type, could not be removed because the filesystem is full.
    NoRoom(FileType, Errno),
    /// Another process has replaced the directory by a file of another type. The filter may decide about that, too.
    Replaced,
}

/// A directory that the run comes to.
#[derive(Clone, Copy)]
pub(super) struct Entering<'a> {
    pub(super) context: &'a RemoveContext<'a>,
    pub(super) name: Name<'a>,
    pub(super) purpose: Purpose,
}

impl Entering<'_> {
    /// Opens the directory and decides whether it is entered.
    pub(super) fn enter(self) -> Entered {
        let Self { context, name, .. } = self;
        if context.options.one_file_system && self.is_skipped_unopened() {
            return skip_other_filesystem(context, name);
        }
        match context.open_directory(name) {
            Ok(dir) => self.enter_open(dir),
            Err(errno) => self.enter_unopened(errno),
        }
    }

    /// Returns `true` if the directory is on another filesystem, and no question about it depends on what is in it. To
    /// open a mount point could mount something, or wait for a dead server.
    fn is_skipped_unopened(self) -> bool {
        let Self { context, name, .. } = self;
        let is_elsewhere = |mount| guards::is_other_mount(context, name.operand, mount);
        let prompt = || asking::prompt_to_try_unread(context, name, Errno::ACCESS);
        name.parent.is_some()
            && context.on(name, Mount::of).is_ok_and(is_elsewhere)
            && prompt() == Ok(Prompt::Proceed)
    }

    /// Deals with a directory that could not be opened.
    #[cold]
    fn enter_unopened(self, errno: Errno) -> Entered {
        let Self { context, name, .. } = self;
        let stays = context.stays(name);
        if !stays && self.purpose != Purpose::ProcessEntries {
            return self.remove_unopened(errno);
        }
        match context.open_locked(name, errno) {
            Some(dir) => self.enter_open(dir),
            None if stays => report_left(context, name, errno),
            None => leave_unread(context, name, errno),
        }
    }

    /// Enters a directory that is open, unless it stays.
    #[inline(always)]
    fn enter_open(self, dir: Fd) -> Entered {
        match self.decide(dir.as_fd()) {
            Ok(consent) => Entered::Open(dir, consent),
            Err(entered) => entered,
        }
    }

    /// Decides whether the directory, open as `dir`, is entered. If not, returns what became of it.
    #[inline(always)]
    fn decide(self, dir: BorrowedFd<'_>) -> Result<Consent, Entered> {
        let Self {
            context,
            name,
            purpose,
        } = self;
        if name.parent.is_none()
            && let Err(error) = guards::check_operand(context, name, dir)
        {
            context.fail(name, error);
            return Err(Entered::Left);
        }
        let consent = match (context.asks, purpose) {
            (false, _) => Consent::ToRemove,
            // The caller has named this directory to empty it.
            (true, Purpose::Process { pass: 0 }) if context.stays(name) => Consent::ToEnter,
            (true, Purpose::Process { pass: 0 }) => {
                asking::ask_to_enter(context, name, dir).ok_or(Entered::Left)?
            }
            // The user has already allowed this directory to be entered, or is asked only about its entries.
            (true, _) => Consent::ToEnter,
        };
        if !context.options.one_file_system {
            return Ok(consent);
        }
        let is_elsewhere = guards::is_on_other_filesystem(context, name.operand, dir);
        Err(match is_elsewhere {
            Ok(false) => return Ok(consent),
            // The directory is empty, and the user wants it removed. That is possible if it is a subvolume and
            // not a mount point.
            Ok(true) if context.asks && consent == Consent::ToRemove => {
                remove_or_report(context, name, FileType::Directory)
            }
            Ok(true) => skip_other_filesystem(context, name),
            // The directory may be on another filesystem.
            Err(errno) => report_left(context, name, errno),
        })
    }

    /// Tries the removal of a directory that could not be opened because of `errno`, unless it was replaced.
    fn remove_unopened(self, errno: Errno) -> Entered {
        let Self { context, name, .. } = self;
        if name.parent.is_none()
            && let Err(error) = guards::check_unopened(context, name)
        {
            context.fail(name, error);
            return Entered::Left;
        }
        // A filesystem may say this about a directory, too.
        let is_replaced = matches!(errno, Errno::NOTDIR | Errno::LOOP)
            && !context
                .look(name)
                .is_ok_and(|stat| sys::is_directory(&stat));
        match is_replaced {
            true => Entered::Replaced,
            false => self.remove_unread(errno),
        }
    }

    /// Removes a directory that cannot be opened because of `unread`. That is possible if it is empty.
    fn remove_unread(self, unread: Errno) -> Entered {
        let Self { context, name, .. } = self;
        let prompt = asking::prompt_to_try_unread(context, name, unread);
        if context.options.one_file_system && matches!(prompt, Ok(Prompt::Proceed | Prompt::Ask(_)))
        {
            let mount = context.on(name, Mount::of);
            match mount.map(|mount| guards::is_other_mount(context, name.operand, mount)) {
                Ok(false) => {}
                Ok(true) => return skip_other_filesystem(context, name),
                Err(errno) => return report_left(context, name, errno),
            }
        }
        if !asking::ask_and_apply(context, name, prompt, IfLeft::TryParent) {
            return Entered::Left;
        }
        match try_remove(context, name, FileType::Directory) {
            Ok(removed) => removed,
            Err(errno) if context.is_ignorable(name, errno) => Entered::Left,
            Err(errno) => {
                let reason = reason_to_stay(unread, errno);
                match context.open_locked(name, reason) {
                    Some(dir) => self.enter_open(dir),
                    None => report_left(context, name, reason),
                }
            }
        }
    }
}

/// Reports that a directory, which would have stayed, could not be opened.
#[cold]
fn leave_unread(context: &RemoveContext<'_>, name: Name<'_>, errno: Errno) -> Entered {
    if !context.is_ignorable(name, errno) {
        name.mark(KEPT);
        let error = Error::failed(Operation::ReadDirectory, context.path(name), errno);
        context.fail(name, error);
    }
    Entered::Left
}

fn skip_other_filesystem(context: &RemoveContext<'_>, name: Name<'_>) -> Entered {
    name.mark(KEPT);
    context.refuse(name, Refusal::OtherFilesystem);
    Entered::Left
}

/// Removes a name of this type that is not entered.
pub(super) fn try_remove(
    context: &RemoveContext<'_>,
    name: Name<'_>,
    kind: FileType,
) -> Result<Entered, Errno> {
    let removed = context.unlocking(name, |dir, name| match kind {
        FileType::Directory => context.remover.remove_directory(dir, name),
        _ => context.unlink(dir, name),
    });
    match removed {
        Ok(()) => {
            context.note_removed(name, kind);
            Ok(Entered::Removed(Counted::of(kind)))
        }
        Err(errno) if needs_room(errno) => Ok(Entered::NoRoom(kind, errno)),
        Err(errno) => Err(errno),
    }
}

/// Does the same as [`try_remove`], and reports a failure.
pub(super) fn remove_or_report(
    context: &RemoveContext<'_>,
    name: Name<'_>,
    kind: FileType,
) -> Entered {
    try_remove(context, name, kind).unwrap_or_else(|errno| report_left(context, name, errno))
}

/// Reports that a name stays because of `errno`.
pub(super) fn report_left(context: &RemoveContext<'_>, name: Name<'_>, errno: Errno) -> Entered {
    context.fail_and_keep(name, errno);
    Entered::Left
}

/// Returns the error to report about a directory that could be neither read nor removed.
fn reason_to_stay(unread: Errno, not_removed: Errno) -> Errno {
    match not_removed {
        // The directory has entries, and they cannot be removed because they cannot be listed.
        Errno::NOTEMPTY | Errno::EXIST | Errno::ISDIR | Errno::NOTDIR => unread,
        errno => errno,
    }
}

/// Tries the removal of a directory whose listing failed, because it may be empty. The directory is finished as any
/// other later. Returns the error to report if it is still there.
#[cold]
pub(super) fn remove_unlisted(
    context: &RemoveContext<'_>,
    node: &RemoveNode,
    unread: Errno,
) -> Result<(), Errno> {
    let state = &node.state;
    if state.marks.has(SHRUNK | STAYS | ENTRIES_ONLY)
        || context.asks
        || context.remover.leaves_names()
        || context.stays(Name::of(&node.place))
    {
        return Err(unread);
    }
    match context.on(Name::of(&node.place), sys::remove_directory) {
        Ok(()) => state.marks.set(GONE),
        // The removal is tried again when the directory is finished, and may wait then.
        Err(errno) if needs_room(errno) => {}
        Err(errno) => return Err(reason_to_stay(unread, errno)),
    }
    Ok(())
}

/// Removes the directory of `node`, under which nothing is left to do. Returns `false` if it is kept or the user declines.
pub(super) fn remove_emptied(
    context: &RemoveContext<'_>,
    node: &RemoveNode,
) -> Result<bool, Errno> {
    let descriptors = &context.descriptors;
    let Some(parent) = &node.place.parent else {
        descriptors.close(node, Side::Source);
        return remove_unless_kept(context, node, context.base);
    };
    // The child is closed only after this, because an evicted parent is reopened through the
    // child's `..`.
    let dir = descriptors.pin_parent(parent, Side::Source, node, context);
    descriptors.close(node, Side::Source);
    match dir {
        Ok(dir) => remove_unless_kept(context, node, dir.as_fd()),
        Err(_) if node.state.marks.has(STAYS) => Ok(false),
        Err(errno) => Err(errno),
    }
}

fn remove_unless_kept(
    context: &RemoveContext<'_>,
    node: &RemoveNode,
    dir: BorrowedFd<'_>,
) -> Result<bool, Errno> {
    if node.state.marks.has(STAYS) {
        return Ok(false);
    }
    if context.asks && !asking::ask_about_emptied(context, node, dir) {
        return Ok(false);
    }
    let remover = context.remover;
    if !node.state.marks.has(GONE)
        && let Err(errno) = remover.remove_emptied(dir, &node.place.name, &node.state)
    {
        context.unlock_and_retry(Name::of(&node.place), errno, |dir, name| {
            remover.remove_emptied(dir, name, &node.state)
        })?;
    }
    context.note_removed(Name::of(&node.place), FileType::Directory);
    Ok(true)
}

/// Removes an operand. Returns `None` if it is a directory to enter.
pub(super) fn begin_operand(context: &RemoveContext<'_>, name: Name<'_>) -> Option<Entered> {
    let stays = |errno| Some(report_left(context, name, errno));
    let looked_at = sys::stat(context.base, name.name, Symlinks::NoFollow);
    match &looked_at {
        Ok(stat) if sys::is_directory(stat) => return begin_directory_operand(context, name),
        _ if context.options.keeps_operands => {
            return stays(looked_at.err().unwrap_or(Errno::NOTDIR));
        }
        Ok(stat) if context.asks => {
            let kind = sys::file_type(stat);
            if !asking::ask_about(context, name, kind, IfLeft::KeepAncestors) {
                return Some(Entered::Left);
            }
        }
        // The user cannot be asked about a name that cannot be looked at. No mode makes rm ask root.
        Err(errno)
            if context.options.ask == Ask::Always || context.asks && !context.is_superuser =>
        {
            return stays(*errno);
        }
        // If unlinking fails, its error is the one to report.
        Ok(_) | Err(_) => {}
    }
    let kind = looked_at.as_ref().map_or(FileType::Unknown, sys::file_type);
    match (try_remove(context, name, kind), looked_at) {
        (Ok(removed), _) => Some(removed),
        // Two calls agree, so the name need not be looked at again.
        (Err(Errno::NOENT), Err(Errno::NOENT)) if context.options.ignore_missing => {
            Some(Entered::Left)
        }
        // On a read-only filesystem the kernel returns EROFS even for a missing name.
        (Err(Errno::ROFS), Err(errno)) | (Err(errno), _) => stays(errno),
    }
}

fn begin_directory_operand(context: &RemoveContext<'_>, name: Name<'_>) -> Option<Entered> {
    let options = context.options;
    let refused = |refusal| {
        context.refuse(name, refusal);
        Some(Entered::Left)
    };
    if !options.recursive {
        return match options.empty_directories && !options.keeps_operands {
            // The kernel refuses all that are not empty, so nothing else is checked before.
            true if context.asks && !asking::ask_about_empty(context, name) => Some(Entered::Left),
            true => Some(remove_or_report(context, name, FileType::Directory)),
            false => refused(Refusal::NotRecursive),
        };
    }
    let (_, last) = paths::split(name.name.to_bytes());
    if !options.keeps_operands && paths::is_dot_or_dot_dot(last) {
        return refused(Refusal::DotOrDotDot);
    }
    None
}
