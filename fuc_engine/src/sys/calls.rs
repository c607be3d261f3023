//! The file system calls, one function each, repeated when a signal interrupts them.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{Access, AtFlags, Dev, FileType, Mode, OFlags, SeekFrom, StatxFlags, accessat};
use rustix::io::{Errno, retry_on_intr};

use super::identity::{FileId, Identity, identity};
use super::listing::Listing;
use super::times::{FileTime, times};

pub(crate) use rustix::fs::{CWD, Dev as Device, Stat};

/// What to do when the last component is a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symlinks {
    Follow,
    NoFollow,
}

impl Symlinks {
    pub(super) fn open_flag(self) -> OFlags {
        match self {
            Self::Follow => OFlags::empty(),
            Self::NoFollow => OFlags::NOFOLLOW,
        }
    }

    pub(super) fn at_flag(self) -> AtFlags {
        match self {
            Self::Follow => AtFlags::empty(),
            Self::NoFollow => AtFlags::SYMLINK_NOFOLLOW,
        }
    }
}

/// What is asked of an open directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirStat {
    pub(crate) identity: Identity,
    /// `st_mode`, the type included.
    pub(crate) mode: u32,
}

pub(crate) fn open_directory(
    dir: BorrowedFd<'_>,
    name: &CStr,
    symlinks: Symlinks,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | symlinks.open_flag();
    retry_on_intr(|| rustix::fs::openat(dir, name, flags, Mode::empty()))
}

/// A descriptor that only names the directory, for which no permission to read it is needed.
pub(crate) fn open_path_directory(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    retry_on_intr(|| rustix::fs::openat(dir, name, flags, Mode::empty()))
}

/// The same for a directory that a link may lead to.
pub(crate) fn open_linked_directory(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    retry_on_intr(|| rustix::fs::openat(dir, name, flags, Mode::empty()))
}

/// A second descriptor of the same open directory: they share their position in the listing.
pub(crate) fn duplicate(dir: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    rustix::io::fcntl_dupfd_cloexec(dir, 3)
}

/// Type, mode and identity of an open directory.
pub(crate) fn stat_directory(dir: BorrowedFd<'_>) -> Result<DirStat, Errno> {
    stat_directory_for(dir, StatxFlags::empty()).map(|(stat, _)| stat)
}

/// The same, and when it was read.
pub(crate) fn stat_directory_and_access(dir: BorrowedFd<'_>) -> Result<(DirStat, FileTime), Errno> {
    stat_directory_for(dir, StatxFlags::ATIME)
}

fn stat_directory_for(dir: BorrowedFd<'_>, also: StatxFlags) -> Result<(DirStat, FileTime), Errno> {
    let wanted = StatxFlags::TYPE | StatxFlags::MODE | StatxFlags::INO | StatxFlags::BTIME;
    match rustix::fs::statx(dir, c"", AtFlags::EMPTY_PATH, wanted | also) {
        Ok(stat) => {
            let device = rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor);
            let birth = (stat.stx_mask & StatxFlags::BTIME.bits() != 0)
                .then_some((stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec));
            let found = DirStat {
                identity: Identity::new(FileId::new(device, stat.stx_ino), birth),
                mode: u32::from(stat.stx_mode),
            };
            let accessed = FileTime {
                seconds: stat.stx_atime.tv_sec,
                nanoseconds: stat.stx_atime.tv_nsec,
            };
            Ok((found, accessed))
        }
        // Before Linux 4.11, or in a sandbox that does not know it.
        Err(Errno::NOSYS | Errno::PERM) => {
            let stat = rustix::fs::fstat(dir)?;
            let found = DirStat {
                identity: identity(&stat),
                mode: stat.st_mode,
            };
            Ok((found, times(&stat)[0]))
        }
        Err(errno) => Err(errno),
    }
}

pub(crate) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

pub(crate) fn stat(dir: BorrowedFd<'_>, name: &CStr, symlinks: Symlinks) -> Result<Stat, Errno> {
    retry_on_intr(|| rustix::fs::statat(dir, name, symlinks.at_flag()))
}

pub(crate) fn stat_open(file: impl AsFd) -> Result<Stat, Errno> {
    rustix::fs::fstat(file)
}

/// Returns `true` if this process may write to `name`, by its mode or by whatever else decides.
///
/// Fails if the kernel cannot say. It asks about the effective user. Before Linux 5.8, and in a sandbox
/// that refuses the newer call, it asks about the real user and follows symlinks.
pub(crate) fn may_write(
    dir: BorrowedFd<'_>,
    name: &CStr,
    symlinks: Symlinks,
) -> Result<bool, Errno> {
    may_write_by(symlinks, |flags| {
        accessat(dir, name, Access::WRITE_OK, flags)
    })
}

fn may_write_by(
    symlinks: Symlinks,
    mut access: impl FnMut(AtFlags) -> Result<(), Errno>,
) -> Result<bool, Errno> {
    let mut ask = |flags| retry_on_intr(|| access(flags));
    let answer = match ask(AtFlags::EACCESS | symlinks.at_flag()) {
        Err(Errno::NOSYS | Errno::PERM) => ask(AtFlags::empty()),
        answer => answer,
    };
    match answer {
        Ok(()) => Ok(true),
        Err(Errno::ACCESS) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Whether nothing is in a directory that stands at its beginning, where it is left.
pub(crate) fn is_empty_directory(dir: BorrowedFd<'_>) -> Result<bool, Errno> {
    let mut listing = Listing::with_capacity(1024);
    let mut is_empty = true;
    while is_empty && listing.fill(dir)? {
        is_empty = listing.entries().next().is_none();
    }
    seek(dir, SeekFrom::Start(0))?;
    Ok(is_empty)
}

pub(crate) fn unlink(dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    retry_on_intr(|| rustix::fs::unlinkat(dir, name, AtFlags::empty()))
}

pub(crate) fn remove_directory(dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    retry_on_intr(|| rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR))
}

pub(crate) fn create_directory(dir: BorrowedFd<'_>, name: &CStr, mode: u32) -> Result<(), Errno> {
    retry_on_intr(|| rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(mode)))
}

/// Creates an empty file, FIFO, socket or device node; `mode` tells which.
pub(crate) fn create_node(
    dir: BorrowedFd<'_>,
    name: &CStr,
    mode: u32,
    device: Dev,
) -> Result<(), Errno> {
    let (kind, mode) = (
        FileType::from_raw_mode(mode),
        Mode::from_raw_mode(mode & 0o7777),
    );
    retry_on_intr(|| rustix::fs::mknodat(dir, name, kind, mode, device))
}

pub(crate) fn create_symlink(target: &CStr, dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    retry_on_intr(|| rustix::fs::symlinkat(target, dir, name))
}

/// Gives a file, by its directory and name, one more name.
pub(crate) fn create_hard_link(
    source: (BorrowedFd<'_>, &CStr, Symlinks),
    dir: BorrowedFd<'_>,
    name: &CStr,
) -> Result<(), Errno> {
    let (source_dir, source, symlinks) = source;
    let flags = match symlinks {
        Symlinks::Follow => AtFlags::SYMLINK_FOLLOW,
        Symlinks::NoFollow => AtFlags::empty(),
    };
    retry_on_intr(|| rustix::fs::linkat(source_dir, source, dir, name, flags))
}

pub(crate) fn set_mode(file: impl AsFd, mode: u32) -> Result<(), Errno> {
    retry_on_intr(|| rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o7777)))
}

/// What all threads of the process have used, in the kernel too.
pub(crate) fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.try_into().unwrap_or(0),
        time.tv_nsec.try_into().unwrap_or(0),
    )
}

pub(crate) fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// An open directory and all those above it, as far as they can be reached.
pub(crate) fn ancestry(dir: BorrowedFd<'_>) -> Vec<Identity> {
    let mut found = Vec::new();
    let mut above = open_path_directory(dir, c".");
    while let Ok(dir) = above {
        match stat_directory(dir.as_fd()) {
            // The root is its own parent.
            Ok(stat) if found.last() != Some(&stat.identity) => found.push(stat.identity),
            _ => break,
        }
        above = open_path_directory(dir.as_fd(), c"..");
    }
    found
}

/// Opens, by its path, the directory that copies are to go into.
pub(crate) fn open_target(path: &CStr) -> Result<OwnedFd, Errno> {
    open_linked_directory(CWD, path)
}

/// Open descriptors that this process may have at once.
pub(crate) fn descriptor_limit() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    })
}

/// Large files are moved in pieces of this many bytes, so that their worker can
/// look up in between: some milliseconds' worth, against one more system call.
pub(crate) const PIECE: usize = 8 << 20;

/// Opens a source to read it. Below an operand neither a FIFO nor a terminal
/// can hold this up, whatever a file may have become.
pub(crate) fn open_source(
    dir: BorrowedFd<'_>,
    name: &CStr,
    symlinks: Symlinks,
    blocking: Blocking,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | symlinks.open_flag();
    let flags = flags | blocking.open_flag();
    retry_on_intr(|| rustix::fs::openat(dir, name, flags, Mode::empty()))
}

/// Whether opening may wait for another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocking {
    MayBlock,
    Never,
}

impl Blocking {
    fn open_flag(self) -> OFlags {
        match self {
            Self::MayBlock => OFlags::empty(),
            Self::Never => OFlags::NONBLOCK,
        }
    }
}

/// Lets reading and writing wait, even if opening was not to.
pub(crate) fn let_block(file: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    rustix::fs::fcntl_setfl(file, flags - OFlags::NONBLOCK)
}

/// Creates a file that must not exist yet.
pub(crate) fn create_file(dir: BorrowedFd<'_>, name: &CStr, mode: u32) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    retry_on_intr(|| rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(mode & 0o777)))
}

/// The same where a link at the dest leads; what has come to be there meanwhile is not truncated.
pub(crate) fn create_through_link(
    dir: BorrowedFd<'_>,
    name: &CStr,
    mode: u32,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOCTTY;
    retry_on_intr(|| rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(mode & 0o777)))
}

/// Opens what exists at the dest to write to it; nothing is truncated.
pub(crate) fn open_existing(
    dir: BorrowedFd<'_>,
    name: &CStr,
    blocking: Blocking,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOCTTY | blocking.open_flag();
    retry_on_intr(|| rustix::fs::openat(dir, name, flags, Mode::empty()))
}

pub(crate) fn set_size(file: BorrowedFd<'_>, bytes: u64) -> Result<(), Errno> {
    retry_on_intr(|| rustix::fs::ftruncate(file, bytes))
}

/// Gives back blocks that the filesystem holds ready where there is to be a
/// hole, as xfs does behind what was written. Where it cannot, they just stay.
pub(crate) fn punch_hole(file: BorrowedFd<'_>, range: std::ops::Range<u64>) {
    use rustix::fs::FallocateFlags as Flags;
    if !range.is_empty() {
        let bytes = range.end - range.start;
        let flags = Flags::PUNCH_HOLE | Flags::KEEP_SIZE;
        let _ = rustix::fs::fallocate(file, flags, range.start, bytes);
    }
}

pub(crate) fn seek(file: BorrowedFd<'_>, to: SeekFrom) -> Result<u64, Errno> {
    rustix::fs::seek(file, to)
}

/// Lets `dest` share all blocks of `source`.
pub(crate) fn clone_file(source: BorrowedFd<'_>, dest: BorrowedFd<'_>) -> Result<(), Errno> {
    retry_on_intr(|| rustix::fs::ioctl_ficlone(dest, source))
}

/// Moves up to `bytes` bytes inside the kernel; 0 at the end of the source.
pub(crate) fn copy_range(
    source: BorrowedFd<'_>,
    source_offset: Option<&mut u64>,
    dest: BorrowedFd<'_>,
    dest_offset: Option<&mut u64>,
    bytes: usize,
) -> Result<usize, Errno> {
    let (mut source_offset, mut dest_offset) = (source_offset, dest_offset);
    retry_on_intr(|| {
        rustix::fs::copy_file_range(
            source,
            source_offset.as_deref_mut(),
            dest,
            dest_offset.as_deref_mut(),
            bytes,
        )
    })
}

pub(crate) fn read(file: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    retry_on_intr(|| rustix::io::read(file, &mut *buffer))
}

pub(crate) fn write_all(file: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match retry_on_intr(|| rustix::io::write(file, bytes))? {
            0 => return Err(Errno::NOSPC),
            written => bytes = &bytes[written..],
        }
    }
    Ok(())
}

pub(crate) fn read_link(dir: BorrowedFd<'_>, name: &CStr) -> Result<CString, Errno> {
    retry_on_intr(|| rustix::fs::readlinkat(dir, name, Vec::new()))
}

// From linux/magic.h.
pub(crate) const BTRFS: u64 = 0x9123_683e;
pub(crate) const XFS: u64 = 0x5846_5342;

/// The type of the filesystem that `file` is on, by its magic number.
pub(crate) fn filesystem(file: BorrowedFd<'_>) -> Option<u64> {
    rustix::fs::fstatfs(file)
        .ok()
        .map(|stat| stat.f_type as u64)
}

/// Whether this filesystem tells the true size of a file: those that make up
/// their files as they are read, or fetch them from elsewhere, do not.
pub(crate) fn is_truthful(file: BorrowedFd<'_>) -> bool {
    // From linux/magic.h, in its order of the names below.
    const TRUTHFUL: [u64; 5] = [
        BTRFS,
        0xef53,      // ext2, ext3, ext4
        0xf2f5_2010, // f2fs
        0x0102_1994, // tmpfs
        XFS,
    ];
    filesystem(file).is_some_and(|kind| TRUTHFUL.contains(&kind))
}

/// How many bytes a name in this directory may have.
pub(crate) fn longest_name(dir: BorrowedFd<'_>) -> Result<usize, Errno> {
    rustix::fs::fstatvfs(dir).map(|stat| stat.f_namemax as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers `first` to the call that knows flags, `second` to the older one.
    fn may_write_where(first: Result<(), Errno>, second: Result<(), Errno>) -> Result<bool, Errno> {
        may_write_by(Symlinks::NoFollow, |flags| match flags.is_empty() {
            false => first,
            true => second,
        })
    }

    #[test]
    fn a_call_that_is_missing_or_refused_by_a_sandbox_falls_back_on_the_older_one() {
        for refused in [Errno::NOSYS, Errno::PERM] {
            assert_eq!(may_write_where(Err(refused), Ok(())), Ok(true));
            let denied = Err(Errno::ACCESS);
            assert_eq!(may_write_where(Err(refused), denied), Ok(false));
            // The older call says so of an immutable file.
            let immutable = Err(Errno::PERM);
            assert_eq!(may_write_where(Err(refused), immutable), Err(Errno::PERM));
        }
    }

    #[test]
    fn the_answer_of_the_newer_call_is_final() {
        for (answer, expected) in [
            (Ok(()), Ok(true)),
            (Err(Errno::ACCESS), Ok(false)),
            (Err(Errno::ROFS), Err(Errno::ROFS)),
        ] {
            let found = may_write_by(Symlinks::Follow, |flags| {
                assert_eq!(flags, AtFlags::EACCESS);
                answer
            });
            assert_eq!(found, expected);
        }
    }
}
