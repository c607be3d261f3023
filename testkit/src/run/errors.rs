//! The errors that each system call may return, as far as the commands can meet them.

use std::collections::BTreeMap;

use super::{Call, Outcome};

/// Calls, and errors that they may return. A call that cannot fail, or whose errors other tests are
/// about, has none.
const ERRORS: &[(&str, &str)] = &[
    // These are calls on files and directories. musl makes `open` and `stat` for a path that is not relative to a descriptor.
    (
        "openat open",
        "EIO EINTR ENOMEM EACCES EPERM ESTALE EMFILE ENFILE ENOSPC ENOENT EROFS ELOOP EOPNOTSUPP",
    ),
    ("newfstatat stat", "EIO EINTR ENOMEM EACCES ESTALE ENOENT"),
    ("getdents64", "EIO EINTR ENOMEM ESTALE ENOENT"),
    ("fstat", "EIO EINTR ENOMEM ESTALE"),
    ("statx", "EIO EINTR ENOMEM EACCES ESTALE ENOSYS EPERM"),
    ("fstatfs statfs", "EIO EINTR ENOSYS"),
    ("readlinkat", "EIO EINTR ENOMEM EACCES ESTALE"),
    (
        "mkdirat",
        "EIO EINTR ENOMEM EACCES EPERM ENOSPC EDQUOT EROFS EMLINK",
    ),
    ("mknodat", "EIO EINTR EPERM ENOSPC EROFS EOPNOTSUPP"),
    ("symlinkat", "EIO EINTR EPERM ENOSPC EROFS"),
    (
        "linkat",
        "EIO EINTR ENOMEM EACCES EPERM ENOSPC EXDEV ENOENT EMLINK",
    ),
    (
        "unlinkat",
        "EIO EINTR ENOMEM EACCES EPERM EBUSY EROFS ENOENT ESTALE ENOTEMPTY",
    ),
    // Of content.
    (
        "copy_file_range",
        "EIO EINTR ENOMEM ENOSPC EDQUOT EFBIG EXDEV ENOSYS EOPNOTSUPP EPERM EINVAL ESTALE",
    ),
    (
        "ioctl",
        "EIO EINTR EOPNOTSUPP ENOTTY EXDEV EINVAL EPERM ENOSPC",
    ),
    ("lseek", "EIO EINTR EINVAL ENXIO ESTALE"),
    ("fallocate", "EIO EINTR EOPNOTSUPP ENOSYS ENOSPC EPERM"),
    ("ftruncate", "EIO EINTR EFBIG EPERM EACCES ENOSPC"),
    ("read", "EIO EINTR ESTALE"),
    (
        "write close fsync syncfs fdatasync sync_file_range",
        "EIO EINTR ENOSPC EDQUOT",
    ),
    ("fadvise64", "EINVAL"),
    // Of attributes.
    ("utimensat", "EIO EINTR EPERM EACCES EROFS ENOSYS"),
    ("fchown fchownat", "EIO EINTR EPERM EDQUOT EROFS ENOSYS"),
    ("fchmod", "EIO EINTR EPERM EROFS"),
    ("fchmodat2", "EIO EINTR EPERM EROFS ENOSYS"),
    (
        "listxattr flistxattr",
        "EIO EINTR EOPNOTSUPP EPERM ENOMEM ERANGE",
    ),
    (
        "getxattr fgetxattr",
        "EIO EINTR EOPNOTSUPP ENODATA ENOMEM ERANGE EACCES",
    ),
    (
        "setxattr fsetxattr",
        "EIO EINTR EOPNOTSUPP EPERM ENOSPC EDQUOT ENOSYS",
    ),
    (
        "removexattr fremovexattr",
        "EIO EINTR EOPNOTSUPP EPERM ENODATA",
    ),
    // Of the process.
    ("getrandom", "EINTR ENOSYS EPERM"),
    // strace before 6.6 does not know fchmodat2, whose number is 0x1c4, and cannot make it fail.
    (
        "fcntl geteuid prlimit64 brk mmap mremap munmap madvise futex rt_sigaction rt_sigprocmask sigaltstack \
         exit_group syscall_0x1c4",
        "",
    ),
];

/// Part of the stderr of runs that are left out.
///
/// Std panics if it can't close a directory. The commands list only `/proc/self/fd` by std, which can
/// always be closed.
const LEFT_OUT: &str = "unexpected error during closedir";

/// Returns `true` if a run with an error ended in a way that says nothing about the command.
#[must_use]
pub fn is_left_out(outcome: &Outcome) -> bool {
    outcome.stderr_text().contains(LEFT_OUT)
}

/// Pairs calls of a trace with the errors that they may return. Each error of a call occurs at the first
/// call of that name, at one in the middle, and at the last.
///
/// If `FAULTS=all` is in the environment, each error occurs at every call.
///
/// # Panics
/// Panics if the table of errors has no row for a call.
#[must_use]
#[track_caller]
pub fn possible_errors(calls: &[Call]) -> Vec<(&Call, &'static str)> {
    let mut by_name: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
    for call in calls {
        by_name.entry(&call.name).or_default().push(call);
    }
    let everywhere = std::env::var_os("FAULTS").is_some_and(|which| which == "all");
    let mut pairs = Vec::new();
    for (name, mut calls) in by_name {
        let row = ERRORS
            .iter()
            .find(|(calls, _)| calls.split(' ').any(|call| call == name));
        let (_, errors) = row.unwrap_or_else(|| panic!("add a row for {name} to {}", file!()));
        if !everywhere {
            let last = calls.len() - 1;
            calls = [0, last / 2, last].map(|position| calls[position]).into();
            calls.dedup();
        }
        for error in errors.split_whitespace() {
            pairs.extend(calls.iter().map(|&call| (call, error)));
        }
    }
    pairs
}
