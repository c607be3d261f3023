//! Opens files and directories, each with the flags that its use permits, and closes files.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd};

use rustix::fs::{self, CWD, FileType, MemfdFlags, Mode, OFlags, fstat, memfd_create, openat};
use rustix::io::Errno;

use super::calls::{At, Symlinks, path_of_open, retry_on_intr};
use super::fd::Fd;
use super::filesystem::Storage;
use super::stat::stat_directory;

/// Says for what opening may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocking {
    /// For everything, also for another process to open the other end of a FIFO.
    MayBlock,
    /// Only for another process to give up its lease on a regular file.
    OnlyForLease,
}

/// Says what listing an open directory does to its time of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtimeEffect {
    None,
    Changes,
}

fn call_openat(
    dir: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlags,
    creation_mode: u32,
) -> Result<Fd, Errno> {
    let mode = Mode::from_raw_mode(creation_mode & 0o777);
    retry_on_intr(|| openat(dir, name, flags | OFlags::CLOEXEC, mode)).map(Fd::from)
}

fn open_file(at: At<'_>, flags: OFlags, blocking: Blocking) -> Result<Fd, Errno> {
    let open_by_name =
        |more| call_openat(at.dir, at.name, flags | at.symlinks.open_flag() | more, 0);
    match blocking {
        Blocking::MayBlock => open_by_name(OFlags::empty()),
        Blocking::OnlyForLease => match open_by_name(OFlags::NONBLOCK) {
            // The caller reads the file in another way.
            Err(errno) if flags.contains(OFlags::DIRECT) && errno != Errno::AGAIN => Err(errno),
            // Some FUSE servers refuse flags that they do not know.
            Err(errno) if !is_final(errno) => open_held(at, flags, errno),
            opened => opened,
        },
    }
}

/// Returns `true` if a file cannot be opened after this error, whatever the flags are: because of its name, its type, its
/// permissions, or a limit of this process.
fn is_final(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOENT
            | Errno::NOTDIR
            | Errno::LOOP
            | Errno::NAMETOOLONG
            | Errno::NXIO
            | Errno::ISDIR
            | Errno::TXTBSY
            | Errno::ACCESS
            | Errno::ROFS
            | Errno::MFILE
            | Errno::NFILE
            | Errno::NOMEM
    )
}

/// Opens a file without `O_NONBLOCK`, after that flag was refused, if it is a regular file.
///
/// An `O_PATH` descriptor holds the inode first. So if a FIFO takes over the name, opening does not
/// wait for it.
///
/// # Errors
/// Fails with `first`, the error of the first attempt, if the file is not a regular one, or if /proc is missing.
#[cold]
fn open_held(at: At<'_>, flags: OFlags, first: Errno) -> Result<Fd, Errno> {
    let held = open_path(at)?;
    if FileType::from_raw_mode(fstat(&held)?.st_mode) != FileType::RegularFile {
        return Err(first);
    }
    let Ok(path) = path_of_open(held.as_fd()) else {
        return Err(first);
    };
    match call_openat(CWD, &path, flags, 0) {
        // To open a file with a lease by its name was permitted.
        Err(Errno::ACCESS) if first == Errno::AGAIN => Err(first),
        opened => opened,
    }
}

/// Opens a directory to list it.
pub(crate) fn open_directory(
    dir: BorrowedFd<'_>,
    name: &CStr,
    symlinks: Symlinks,
) -> Result<Fd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | symlinks.open_flag();
    call_openat(dir, name, flags, 0)
}

/// Opens a directory to list it, without a change of its time of access if the kernel permits that.
///
/// The kernel permits it to the directory's owner and to root.
pub(crate) fn open_directory_noatime(
    dir: BorrowedFd<'_>,
    name: &CStr,
    symlinks: Symlinks,
) -> Result<(Fd, AtimeEffect), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | symlinks.open_flag();
    match call_openat(dir, name, flags | OFlags::NOATIME, 0) {
        Err(Errno::PERM | Errno::INVAL) => {
            Ok((call_openat(dir, name, flags, 0)?, AtimeEffect::Changes))
        }
        result => Ok((result?, AtimeEffect::None)),
    }
}

/// Opens a file of any type only to name it. That needs no permission to read it, does not wait, and has no side effects.
pub(crate) fn open_path(at: At<'_>) -> Result<Fd, Errno> {
    call_openat(at.dir, at.name, OFlags::PATH | at.symlinks.open_flag(), 0)
}

/// Opens a directory as a starting point only, which needs no permission to read it.
pub(crate) fn open_path_directory(
    dir: BorrowedFd<'_>,
    name: &CStr,
    symlinks: Symlinks,
) -> Result<Fd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | symlinks.open_flag();
    call_openat(dir, name, flags, 0)
}

/// Creates an empty file that has no name and is on no disk.
pub(crate) fn create_in_memory() -> Result<Fd, Errno> {
    memfd_create(c"", MemfdFlags::CLOEXEC).map(Fd::from)
}

/// Returns `true` if what was opened by the name of something that this process has just created as `user` is another
/// inode, because it belongs to `owner`.
///
/// Many servers decide who owns what is created, so only native filesystems are believed. A tracer may show
/// a user as root, but not its files.
pub(crate) fn is_of_another(opened: BorrowedFd<'_>, owner: u32, user: u32) -> bool {
    let is_own = || {
        let own = create_in_memory().and_then(|own| stat_directory(own.as_fd()));
        own.is_ok_and(|own| own.owner == owner)
    };
    owner != user && Storage::of(opened) == Storage::Native && !is_own()
}

/// Opens a source to read it.
///
/// The opened file never becomes the controlling terminal of this process.
pub(crate) fn open_source(at: At<'_>, blocking: Blocking) -> Result<Fd, Errno> {
    open_file(at, OFlags::RDONLY | OFlags::NOCTTY, blocking)
}

/// Creates a file to write to it; fails if the name exists.
pub(crate) fn create_file(dir: BorrowedFd<'_>, name: &CStr, mode: u32) -> Result<Fd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    call_openat(dir, name, flags, mode)
}

/// Creates a file that has no name yet, in a directory, to write to it. The kernel removes it when it is
/// closed, unless it was given a name.
pub(crate) fn create_unnamed(
    dir: BorrowedFd<'_>,
    directory: &CStr,
    mode: u32,
) -> Result<Fd, Errno> {
    call_openat(dir, directory, OFlags::WRONLY | OFlags::TMPFILE, mode)
}

/// Creates the file that the symbolic link `name` leads to, and opens it to write to it.
///
/// If another process has created it first, it is opened and keeps its content.
pub(crate) fn create_through_link(
    dir: BorrowedFd<'_>,
    name: &CStr,
    mode: u32,
) -> Result<Fd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOCTTY;
    call_openat(dir, name, flags, mode)
}

/// Opens an existing dest to write to it. It keeps its content.
pub(crate) fn open_existing(at: At<'_>, blocking: Blocking) -> Result<Fd, Errno> {
    open_file(at, OFlags::WRONLY | OFlags::NOCTTY, blocking)
}

/// Opens an existing dest, which could not be opened or truncated because of `first`, so that it loses its content.
///
/// # Errors
/// Fails with `first` if it is not a regular file, or if /proc is missing.
pub(crate) fn open_emptied(at: At<'_>, first: Errno) -> Result<Fd, Errno> {
    let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::NOCTTY;
    open_held(at, flags, first)
}

/// The ways to read a file past the page cache, which shows what is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uncached {
    /// The kernel writes cached pages to the disk first, and then reads the disk. Buffers must be aligned to the block
    /// size of the device. Not all filesystems can do that, and some refuse it only when the file is read.
    Direct,
    /// The file is written to the disk and dropped from the cache when it is opened.
    Dropped,
}

/// Opens a file to read it past the page cache.
pub(crate) fn open_uncached(at: At<'_>, way: Uncached) -> Result<Fd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOCTTY;
    match way {
        Uncached::Direct => open_file(at, flags | OFlags::DIRECT, Blocking::OnlyForLease),
        Uncached::Dropped => {
            let file = open_file(at, flags, Blocking::OnlyForLease)?;
            // If these fail, the kernel does not let the file be read from the disk.
            let _ = retry_on_intr(|| fs::fdatasync(&file));
            super::drop_cache(file.as_fd(), None);
            Ok(file)
        }
    }
}

/// Closes the descriptor of a written file and returns the error that the kernel reports then.
///
/// The descriptor is closed even after an error, but written data may be lost.
pub(crate) fn close_checked(fd: Fd) -> Result<(), Errno> {
    // SAFETY: `into_raw_fd` gave up the only owner, so the number is not used afterwards.
    match unsafe { rustix::io::try_close(fd.into_raw_fd()) } {
        // Linux has closed the descriptor when it reports EINTR.
        Ok(()) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno),
    }
}
