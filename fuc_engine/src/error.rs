//! What went wrong, with which paths, and the kernel's reason.
//!
//! One type serves removal and copying. It carries facts (an operation, paths,
//! an errno), never prepared text: wording and quoting are the caller's.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// What the engine was doing when the kernel refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Removing a name.
    Remove,
    /// Reading the type, mode or size of a path.
    Stat,
    /// Looking at the directory that an operand is in.
    StatParent,
    /// Opening or listing a directory.
    ReadDirectory,
    /// Opening a source file to read its content.
    OpenSource,
    /// Reading a source file.
    Read,
    /// Reading the target of a symbolic link.
    ReadLink,
    /// Opening the directory that is to receive the copies.
    OpenTarget,
    /// Creating a directory.
    CreateDirectory,
    /// Creating, opening or truncating a regular file at the dest.
    CreateFile,
    /// Creating a symbolic link; with a second path, one that stands for a copy: dest, source.
    CreateSymlink,
    /// Creating a hard link: dest, source.
    CreateHardLink,
    /// Creating a FIFO.
    CreateFifo,
    /// Creating a device node or a socket.
    CreateSpecial,
    /// Writing to a dest file.
    Write,
    /// Moving content from a source to a dest inside the kernel, which does
    /// not say which of the two it was.
    CopyData,
    /// Letting a dest share the blocks of its source: dest, source.
    Clone,
    /// Closing a dest file, when delayed write errors are reported.
    Close,
    /// Setting the permissions of a dest.
    SetMode,
    /// Renaming what is at a dest to its backup.
    Backup,
    /// Renaming a backup to what it was.
    RestoreBackup,
    /// Looking at a directory that leads to a source.
    StatSourceParent,
    /// Creating a directory that leads to a dest.
    MakeParent,
    /// Giving a dest the permissions of its source, ACLs included.
    KeepMode,
    /// Giving a dest the owner and the group of its source.
    KeepOwner,
    /// Giving a dest the times of its source.
    KeepTimes,
    /// Giving a dest the extended attributes of its source.
    KeepXattrs,
    /// Giving a dest the [context](crate::CopyOptions::context) that was asked for.
    SetContext,
}

impl Operation {
    /// A verb phrase that completes "cannot ...", for people.
    fn describe(self) -> &'static str {
        match self {
            Self::Remove => "remove",
            Self::Stat => "stat",
            Self::StatParent => "stat the parent of",
            Self::ReadDirectory => "read the directory",
            Self::OpenSource => "open for reading",
            Self::Read => "read",
            Self::ReadLink => "read the symbolic link",
            Self::OpenTarget => "open the target directory",
            Self::CreateDirectory => "create the directory",
            Self::CreateFile => "create the regular file",
            Self::CreateSymlink => "create the symbolic link",
            Self::CreateHardLink => "create the hard link",
            Self::CreateFifo => "create the fifo",
            Self::CreateSpecial => "create the special file",
            Self::Write => "write",
            Self::CopyData => "copy the content of",
            Self::Clone => "clone into",
            Self::Close => "close",
            Self::SetMode => "set the permissions of",
            Self::Backup => "back up",
            Self::RestoreBackup => "restore from its backup",
            Self::StatSourceParent => "stat the source directory",
            Self::MakeParent => "make the directory",
            Self::KeepMode => "keep the permissions of",
            Self::KeepOwner => "keep the owner of",
            Self::KeepTimes => "keep the times of",
            Self::KeepXattrs => "keep the extended attributes of",
            Self::SetContext => "set the security context of",
        }
    }
}

/// Why the engine itself declined, without asking the kernel.
///
/// Where a variant speaks of two paths, the first is [`Error::path`] and the
/// second [`Error::other_path`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// The operand's last component is `.` or `..`.
    DotOrDotDot,
    /// The operand is the root directory.
    Root,
    /// The operand is on another device than the directory that it is in.
    MountPoint,
    /// A directory on another filesystem than its operand.
    OtherFilesystem,
    /// A directory, and recursion was not asked for.
    NotRecursive,
    /// The source directory, and the place inside it where its copy would go.
    IntoItself,
    /// The source and the dest, which are one file.
    SameFile,
    /// The dest is a directory, the source is not.
    DirectoryByNonDirectory,
    /// The dest is not a directory, the source is one: dest, source.
    NonDirectoryByDirectory,
    /// The dest was made by an earlier operand of this run: dest, source.
    JustCreated,
    /// The dest is a symbolic link that an earlier operand of this run made: dest, source.
    ThroughJustCreatedLink,
    /// The dest is a symbolic link whose target does not exist.
    DanglingDest,
    /// The source, no directory, was named before, with the same dest. A warning.
    FileNamedTwice,
    /// The source, a directory, was named before, with the same dest. A warning.
    DirectoryNamedTwice,
    /// The dest exists and is not to be replaced: dest, source.
    NotReplacing,
    /// The backup of the dest would take the place of the source: dest, source.
    BackupOverSource,
    /// What leads to the dest is no directory.
    ParentNotDirectory,
    /// The source is a symbolic link to a directory that it lies in.
    CyclicSymlink,
    /// The dest would be a symbolic link to a relative source, and is not in the working directory.
    RelativeSymlink,
    /// The source is no longer the file that it was when its copying began.
    SourceReplaced,
}

impl Refusal {
    fn describe(self) -> &'static str {
        match self {
            Self::DotOrDotDot => "its last component is '.' or '..'",
            Self::Root => "it is the root directory",
            Self::MountPoint => "it is a mount point",
            Self::OtherFilesystem => "it is on another filesystem than the operand",
            Self::NotRecursive => "it is a directory and recursion was not asked for",
            Self::IntoItself => "it would be copied into itself",
            Self::SameFile => "source and dest are the same file",
            Self::DirectoryByNonDirectory => "a directory is not replaced by a non-directory",
            Self::NonDirectoryByDirectory => "a non-directory is not replaced by a directory",
            Self::JustCreated => "it was just created by this run",
            Self::ThroughJustCreatedLink => "it is a link just created by this run",
            Self::DanglingDest => "it is a dangling symbolic link",
            Self::FileNamedTwice | Self::DirectoryNamedTwice => "it was named more than once",
            Self::NotReplacing => "it exists and is not to be replaced",
            Self::BackupOverSource => "backing it up might destroy the source",
            Self::ParentNotDirectory => "it exists and is no directory",
            Self::CyclicSymlink => "it links to a directory around it",
            Self::RelativeSymlink => "a relative link is made in the working directory only",
            Self::SourceReplaced => "it was replaced while being copied",
        }
    }
}

/// The two ways in which an entry fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The kernel refused: what was tried, and the errno.
    Failed(Operation, Errno),
    /// The engine declined.
    Refused(Refusal),
}

/// One entry that could not be processed.
#[derive(Debug, thiserror::Error)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    cause: Cause,
    path: PathBuf,
    other: Option<PathBuf>,
}

impl Error {
    pub(crate) fn failed(operation: Operation, path: PathBuf, errno: Errno) -> Self {
        Self(Box::new(Inner {
            cause: Cause::Failed(operation, errno),
            path,
            other: None,
        }))
    }

    pub(crate) fn refused(refusal: Refusal, path: PathBuf) -> Self {
        Self(Box::new(Inner {
            cause: Cause::Refused(refusal),
            path,
            other: None,
        }))
    }

    pub(crate) fn with_other(mut self, other: PathBuf) -> Self {
        self.0.other = Some(other);
        self
    }

    /// What happened.
    #[must_use]
    pub fn cause(&self) -> Cause {
        self.0.cause
    }

    /// The path that failed, as an operand followed by the names below it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The second path, where the cause is about two.
    #[must_use]
    pub fn other_path(&self) -> Option<&Path> {
        self.0.other.as_deref()
    }

    /// The kernel's reason, where it was the kernel that refused.
    #[must_use]
    pub fn errno(&self) -> Option<Errno> {
        match self.0.cause {
            Cause::Failed(_, errno) => Some(errno),
            Cause::Refused(_) => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.cause {
            Cause::Failed(operation, errno) => {
                write!(
                    f,
                    "cannot {} {:?}: {}",
                    operation.describe(),
                    self.0.path,
                    io::Error::from(errno)
                )
            }
            Cause::Refused(refusal) => {
                write!(f, "refused {:?}", self.0.path)?;
                if let Some(other) = &self.0.other {
                    write!(f, " and {other:?}")?;
                }
                write!(f, ": {}", refusal.describe())
            }
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = error
            .errno()
            .map_or(io::ErrorKind::InvalidInput, Errno::kind);
        Self::new(kind, error)
    }
}
