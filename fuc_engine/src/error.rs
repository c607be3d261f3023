//! Errors about entries: the operation, the paths, and the kernel's reason.
//!
//! Removals and copies have the same error type. It carries facts, so that a caller can choose its own
//! words and its own way of quoting paths. Its [`Display`](std::fmt::Display) is one line of English.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::node::Side;

/// An operation that the kernel refused.
///
/// If two paths take part, the documentation of the variant names both: the first is [`Error::path`],
/// the second [`Error::other_path`]. It is shown as the words that complete "cannot ...".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Operation {
    /// Removes a name.
    #[error("remove")]
    Remove,
    /// Reads the type, mode or size of a path.
    #[error("stat")]
    Stat,
    /// Reads facts about the directory that contains an operand.
    #[error("stat the parent of")]
    StatParent,
    /// Opens or lists a directory.
    #[error("read the directory")]
    ReadDirectory,
    /// Opens a source file to read its content.
    #[error("open for reading")]
    OpenSource,
    /// Reads a source file.
    #[error("read")]
    Read,
    /// Reads the target of a symbolic link.
    #[error("read the symbolic link")]
    ReadLink,
    /// Opens the directory that receives the copies.
    #[error("open the target directory")]
    OpenTarget,
    /// Opens [`CopyOp::link_dest`](crate::CopyOp::link_dest). This is a warning: nothing is linked to it.
    #[error("link to files in")]
    OpenLinkDest,
    /// Creates a directory.
    #[error("create the directory")]
    CreateDirectory,
    /// Creates, opens or truncates a regular file at the dest.
    #[error("create the regular file")]
    CreateFile,
    /// Creates a symbolic link. There is a second path if the link is made instead of a copy: dest, source.
    #[error("create the symbolic link")]
    CreateSymlink,
    /// Creates a hard link: dest, source.
    #[error("create the hard link")]
    CreateHardLink,
    /// Creates a FIFO.
    #[error("create the fifo")]
    CreateFifo,
    /// Creates a device node or a socket.
    #[error("create the special file")]
    CreateSpecial,
    /// Writes to a dest file.
    #[error("write")]
    Write,
    /// Shares the blocks of a source with a dest: dest, source.
    #[error("clone into")]
    Clone,
    /// Closes a dest file. The kernel may report delayed write errors at this point.
    #[error("close")]
    Close,
    /// Sets the permissions of a dest.
    #[error("set the permissions of")]
    SetMode,
    /// Renames an existing dest to its backup.
    #[error("back up")]
    Backup,
    /// Renames a backup to its old name, that of the dest.
    #[error("restore from its backup")]
    RestoreBackup,
    /// Reads facts about a directory that leads to a source.
    #[error("stat the source directory")]
    StatSourceParent,
    /// Creates a directory that leads to a dest.
    #[error("make the directory")]
    MakeParent,
    /// Writes a dest to the disk.
    #[error("write to the disk")]
    Sync,
    /// Gives a dest the permissions of its source, including ACLs.
    #[error("keep the permissions of")]
    KeepMode,
    /// Gives a dest the owner and the group of its source.
    #[error("keep the owner of")]
    KeepOwner,
    /// Gives a dest the times of its source.
    #[error("keep the times of")]
    KeepTimes,
    /// Gives a directory that leads to a dest the times of its source.
    #[error("keep the times of")]
    KeepParentTimes,
    /// Gives a dest the extended attributes of its source.
    #[error("keep the extended attributes of")]
    KeepXattrs,
    /// Gives a dest the [context](crate::CopyOp::context) that the options name.
    #[error("set the security context of")]
    SetContext,
}

/// The reason why the engine itself declined an entry, without an error of the kernel.
///
/// If a variant is about two paths, its documentation says which is [`Error::path`] and which is
/// [`Error::other_path`], in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The operand's last component is `.` or `..`.
    #[error("its last component is '.' or '..'")]
    DotOrDotDot,
    /// The operand is the root directory.
    #[error("it is the root directory")]
    Root,
    /// The operand is on another device than the directory that contains it.
    #[error("it is a mount point")]
    MountPoint,
    /// The directory is on another filesystem than its operand.
    #[error("it is on another filesystem than the operand")]
    OtherFilesystem,
    /// The operand is a directory, and the options do not ask for recursion.
    #[error("it is a directory and recursion was not asked for")]
    NotRecursive,
    /// The copy of the directory would be inside the directory itself: source, dest.
    #[error("it would be copied into itself")]
    IntoItself,
    /// The source and the dest are one file: source, dest.
    #[error("source and dest are the same file")]
    SameFile,
    /// The dest is a directory, and the source is not: dest, source.
    #[error("a directory is not replaced by a non-directory")]
    DirectoryByNonDirectory,
    /// The source is a directory, and the dest is not: dest, source.
    #[error("a non-directory is not replaced by a directory")]
    NonDirectoryByDirectory,
    /// An earlier operand of this run has made the dest: dest, source.
    #[error("it was just created by this run")]
    JustCreated,
    /// The dest is a symbolic link that was made during this run: by an earlier operand, or by any
    /// process in a directory that this run has made. It is not written through: dest, source.
    #[error("it is a link that was just created")]
    ThroughJustCreatedLink,
    /// The dest is a symbolic link whose target does not exist.
    #[error("it is a dangling symbolic link")]
    DanglingDest,
    /// The source is not a directory, and was named before with the same dest. This is a warning. It is not one with
    /// `DirectoryNamedTwice`, because [`gnu`](crate::gnu) has other words for it.
    #[error("it was named more than once")]
    FileNamedTwice,
    /// The source is a directory, and was named before with the same dest. This is a warning.
    #[error("it was named more than once")]
    DirectoryNamedTwice,
    /// The source has the inode number of a source that was copied before, but is another file, or has changed
    /// since then and the other name is gone. So it is copied, and not linked to the copy of the other. This is a
    /// warning.
    #[error("it has the inode number of another file")]
    SharedInodeNumber,
    /// The dest exists, and the options forbid to replace it: dest, source.
    #[error("it exists and is not to be replaced")]
    NotReplacing,
    /// The backup of the dest would replace the source: dest, source.
    #[error("backing it up might destroy the source")]
    BackupOverSource,
    /// A component of the path to the dest is not a directory.
    #[error("it exists and is not a directory")]
    ParentNotDirectory,
    /// The source is a symbolic link to a directory that contains it.
    #[error("it links to a directory around it")]
    CyclicSymlink,
    /// The dest would be a symbolic link to a relative source, and is not in the directory in which the source
    /// is looked up: the working directory, or that of [`in_dir`](crate::CopyOp::in_dir).
    #[error("a relative link is made only in the directory that the source is relative to")]
    RelativeSymlink,
    /// The content of the dest differs from that of the source, after the copy: dest, source.
    #[error("its content differs from that of its source")]
    Different,
    /// The dest cannot be a mirror of its source, from which names are [deleted](crate::Deletion).
    #[error(
        "entries cannot be deleted there: it contains a source, is the dest of several, links are followed, or backups are made"
    )]
    CannotMirror,
    /// Another process copies all names of this file, and does not see the directory of this one: dest, source.
    #[error("the process that copies its hard links does not see its directory")]
    HomeNotReached,
    /// The source is no longer the file whose copying began.
    #[error("it was replaced while being copied")]
    SourceReplaced,
    /// This dest holds a part of the content: its copy has failed, or was [cancelled](crate::Cancel). The dest had existed
    /// before, or could not be removed.
    #[error("it is incomplete")]
    LeftIncomplete,
    /// The run was [cancelled](crate::Cancel) before this operand was complete. Observers do not receive it, because
    /// [`Summary::cancelled`](crate::Summary::cancelled) says the same.
    #[error("the run was cancelled")]
    Cancelled,
}

/// The two ways in which an entry fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The kernel refused an operation, with this [error number](io::Error::raw_os_error).
    Failed(Operation, i32),
    /// The engine declined the entry.
    Refused(Refusal),
}

/// Shows the reason: that of the kernel, or of the engine.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(_, raw) => io::Error::from_raw_os_error(*raw).fmt(f),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

/// One entry that could not be processed.
///
/// If the kernel refused, [`source`](std::error::Error::source) is its reason as an [`io::Error`]. The
/// message contains the reason, too.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(Box<Inner>);

#[derive(Debug, thiserror::Error)]
struct Inner {
    cause: Cause,
    /// The reason of the kernel.
    #[source]
    reason: Option<io::Error>,
    path: PathBuf,
    side: Side,
    other: Option<(Side, PathBuf)>,
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cause, path, .. } = self;
        match (cause, &self.other) {
            (Cause::Failed(operation, _), _) => write!(f, "cannot {operation} {path:?}: {cause}"),
            (Cause::Refused(_), None) => write!(f, "refused {path:?}: {cause}"),
            (Cause::Refused(_), Some((_, other))) => {
                write!(f, "refused {path:?} and {other:?}: {cause}")
            }
        }
    }
}

impl Error {
    pub(crate) fn failed(operation: Operation, path: PathBuf, errno: Errno) -> Self {
        Self::new(Cause::Failed(operation, errno.raw_os_error()), path)
    }

    pub(crate) fn refused(refusal: Refusal, path: PathBuf) -> Self {
        Self::new(Cause::Refused(refusal), path)
    }

    /// Makes an error about a source.
    fn new(cause: Cause, path: PathBuf) -> Self {
        let raw = match cause {
            Cause::Failed(_, raw) => Some(raw),
            Cause::Refused(_) => None,
        };
        Self(Box::new(Inner {
            cause,
            reason: raw.map(io::Error::from_raw_os_error),
            path,
            side: Side::Source,
            other: None,
        }))
    }

    /// Says that the path is that of a dest.
    pub(crate) fn at_dest(self) -> Self {
        self.at(Side::Dest)
    }

    /// Says whether the path is that of a source or of a dest.
    pub(crate) fn at(mut self, side: Side) -> Self {
        self.0.side = side;
        self
    }

    pub(crate) fn with_other(mut self, side: Side, other: PathBuf) -> Self {
        self.0.other = Some((side, other));
        self
    }

    /// Returns the error with the paths that are relative below `dir`.
    ///
    /// After [`in_dir`](crate::RemoveOp::in_dir), errors name paths in a directory, and only the caller knows the path of
    /// that directory.
    #[must_use]
    pub fn below(self, dir: &Path) -> Self {
        self.below_each(dir, dir)
    }

    /// Returns the error with the relative paths of sources below `source_dir`, and those of dests below
    /// `dest_dir`.
    ///
    /// After [`dest_in_dir`](crate::CopyOp::dest_in_dir), errors name paths in two directories, and only the caller
    /// knows their paths.
    #[must_use]
    pub fn below_each(mut self, source_dir: &Path, dest_dir: &Path) -> Self {
        let move_below = |side, path: &mut PathBuf| {
            *path = match side {
                Side::Source => source_dir.join(&path),
                Side::Dest => dest_dir.join(&path),
            }
        };
        move_below(self.0.side, &mut self.0.path);
        if let Some((side, other)) = &mut self.0.other {
            move_below(*side, other);
        }
        self
    }

    /// Returns what happened.
    #[must_use]
    pub fn cause(&self) -> Cause {
        self.0.cause
    }

    /// Returns the path that failed: an operand, followed by the names below it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns the second path, if the cause is about two.
    #[must_use]
    pub fn other_path(&self) -> Option<&Path> {
        self.0.other.as_ref().map(|(_, path)| &**path)
    }

    /// Returns the kernel's error number, or `None` if the engine declined.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        self.0.reason.as_ref()?.raw_os_error()
    }

    /// Returns the kind of the kernel's reason, or `InvalidInput` if the engine declined.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        let reason = self.0.reason.as_ref();
        reason.map_or(io::ErrorKind::InvalidInput, io::Error::kind)
    }
}

/// The [kind](io::Error::kind) is that of [`Error::kind`].
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::new(error.kind(), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn the_kernels_reason_is_the_source_and_part_of_the_message() {
        let error = Error::failed(Operation::Remove, "a".into(), Errno::ACCESS);
        let source = error
            .source()
            .and_then(<dyn std::error::Error>::downcast_ref);
        let reason: &io::Error = source.expect("the kernel gave a reason");
        assert_eq!(reason.kind(), io::ErrorKind::PermissionDenied);
        let message = error.to_string();
        assert_eq!(message, format!("cannot remove \"a\": {reason}"));
        let raw = Errno::ACCESS.raw_os_error();
        assert_eq!(error.cause(), Cause::Failed(Operation::Remove, raw));
        assert_eq!(error.raw_os_error(), Some(raw));
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn relative_paths_are_shown_below_a_directory() {
        let error =
            Error::refused(Refusal::SameFile, "a".into()).with_other(Side::Dest, "/b".into());
        let error = error.below(Path::new("dir"));
        assert_eq!(error.path(), Path::new("dir/a"));
        assert_eq!(error.other_path(), Some(Path::new("/b")));
    }

    #[test]
    fn a_refusal_names_both_paths_and_has_no_source() {
        let error =
            Error::refused(Refusal::SameFile, "a".into()).with_other(Side::Dest, "b".into());
        assert!(error.source().is_none());
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(
            error.to_string(),
            "refused \"a\" and \"b\": source and dest are the same file"
        );
        assert_eq!(error.other_path(), Some(Path::new("b")));
    }
}
