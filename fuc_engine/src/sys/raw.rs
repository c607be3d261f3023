//! System calls, most of them by their numbers: those that rustix lacks, or has only in a form that does not fit.

use std::ffi::{CStr, c_int, c_long, c_uint};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use libc::syscall;
use linux_raw_sys::general::{
    __NR_fchmodat2, __NR_getxattrat, __NR_listxattrat, __NR_removexattrat, __NR_setxattrat,
    xattr_args,
};
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::at::At;

/// The number of a system call that a machine may lack. Its first arguments are a directory and a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call(c_long);

impl Call {
    // Since Linux 6.6.
    pub(super) const FCHMODAT2: Self = Self(__NR_fchmodat2 as c_long);
    // Since Linux 6.13.
    pub(super) const SETXATTRAT: Self = Self(__NR_setxattrat as c_long);
    pub(super) const GETXATTRAT: Self = Self(__NR_getxattrat as c_long);
    pub(super) const LISTXATTRAT: Self = Self(__NR_listxattrat as c_long);
    pub(super) const REMOVEXATTRAT: Self = Self(__NR_removexattrat as c_long);

    /// A number that no kernel has given to a call.
    #[cfg(test)]
    pub(super) const UNKNOWN: Self = Self(100_000);

    /// Returns `true` if the kernel has this call and no sandbox refuses it.
    pub(super) fn is_available(self) -> bool {
        // Every argument has the width of a register, so that all bits are defined.
        let (no_dir, zero): (c_long, c_long) = (-1, 0);
        // SAFETY: without a directory and a path, the call fails before it does anything.
        let returned = unsafe { syscall(self.0, no_dir, zero, zero, zero, zero, zero) };
        !matches!(result(returned), Err(Errno::NOSYS | Errno::PERM))
    }
}

fn result(returned: c_long) -> Result<usize, Errno> {
    usize::try_from(returned).map_err(|_| {
        let error = std::io::Error::last_os_error();
        Errno::from_io_error(&error).unwrap_or(Errno::NOSYS)
    })
}

/// Returns the processor on which the calling thread runs.
///
/// The function of rustix reads memory that valgrind hides, and crashes there.
pub(super) fn processor() -> Option<usize> {
    // SAFETY: the call has no arguments.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Sets the mode of the inode that a path descriptor names.
pub(super) fn fchmodat2(fd: BorrowedFd<'_>, mode: u32) -> Result<(), Errno> {
    let flags = AtFlags::EMPTY_PATH.bits() as c_uint;
    let mode = (mode & 0o7777) as c_uint;
    let (Call(number), path) = (Call::FCHMODAT2, c"".as_ptr());
    // SAFETY: the descriptor is open, the path is a C string, and both are only read.
    let returned = unsafe { syscall(number, fd.as_raw_fd(), path, mode, flags) };
    result(returned).map(drop)
}

/// Begins to write all content of a file to the disk, or waits for it, as `flags` say.
pub(super) fn sync_file_range(file: BorrowedFd<'_>, flags: c_uint) -> Result<(), Errno> {
    // A length of zero means up to the end.
    // SAFETY: the descriptor is open, and the call gets no memory.
    let returned = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) };
    result(returned.into()).map(drop)
}

/// Gives the calling thread a private descriptor table, with copies of the descriptors below `end`.
pub(super) fn unshare_descriptors_below(end: RawFd) -> Result<(), Errno> {
    const CLOSE_RANGE_UNSHARE: c_uint = 1 << 1;
    let (first, last) = (end as c_uint, c_uint::MAX);
    // SAFETY: nothing is closed in the table that was shared. Numbers below `end` mean the same as before.
    let returned = unsafe { syscall(libc::SYS_close_range, first, last, CLOSE_RANGE_UNSHARE) };
    result(returned).map(drop)
}

/// Closes the descriptors from `first` on, which must not be used afterwards.
pub(super) fn close_from(first: RawFd) {
    // SAFETY: as the caller promises. The call cannot fail.
    let _ = unsafe { syscall(libc::SYS_close_range, first as c_uint, c_uint::MAX, 0) };
}

/// Returns how the file of a descriptor was opened, or `None` if the number is not that of an open descriptor.
pub(super) fn status_flags(number: RawFd) -> Option<c_int> {
    // SAFETY: the call takes no pointers and changes nothing.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFL) };
    (flags != -1).then_some(flags)
}

/// Replaces the content of `buffer` by directory entries, as many as its capacity has room for.
///
/// The buffer is empty after an error, and at the end of the directory. `RawDir` of rustix would keep
/// a filled buffer borrowed, so it could not be given to another thread.
#[inline]
pub(super) fn getdents64(dir: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> Result<(), Errno> {
    buffer.clear();
    let (start, capacity) = (buffer.as_mut_ptr(), buffer.capacity());
    // SAFETY: the pointer and the capacity describe the allocation of the vector, and the kernel
    // writes at most that many bytes to it.
    let returned = unsafe { syscall(libc::SYS_getdents64, dir.as_raw_fd(), start, capacity) };
    let filled = result(returned)?;
    assert!(filled <= capacity, "BUG: getdents64 wrote too much");
    // SAFETY: the kernel has initialised the first `filled` bytes, which are within the capacity.
    unsafe { buffer.set_len(filled) };
    Ok(())
}

/// Makes a call on extended attributes, of all or of the one with this name. Returns how many bytes were written.
///
/// # Safety
/// The kernel may do with `size` bytes of `value` what the call does.
pub(super) unsafe fn xattrat(
    Call(number): Call,
    at: &At<'_>,
    name: Option<&CStr>,
    value: *const u8,
    size: usize,
) -> Result<usize, Errno> {
    let (dir, path) = (at.dir.as_raw_fd(), at.name.as_ptr());
    let flags = at.symlinks.at_flag().bits() as c_uint;
    let args = xattr_args {
        value: value.expose_provenance() as u64,
        // The kernel refuses values above 64 KiB.
        size: u32::try_from(size).unwrap_or(u32::MAX),
        flags: 0,
    };
    let (args, args_bytes) = (&raw const args, size_of_val(&args));
    // SAFETY: the directory is open, and path and name are C strings. The structure has the given size, and the caller
    // permits the use of the value. A call that needs fewer arguments ignores the others.
    result(unsafe {
        match name.map(CStr::as_ptr) {
            Some(name) => syscall(number, dir, path, flags, name, args, args_bytes),
            None => syscall(number, dir, path, flags, value, size),
        }
    })
}
