//! A process that goes on after the command has ended.
//!
//! ```text
//!  count threads ─▶ block signals ─▶ fork ─┬─▶ unblock them, and return
//!                                          └─▶ new session, streams, signals ─▶ unblock ─▶ work ─▶ end
//! ```
//!
//! All signals are blocked until the new process has left the terminal. So no hangup can end it, even if
//! the terminal closes right after the command.

use std::ffi::c_int;
use std::fs::{self, File};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::panic::{self, AssertUnwindSafe};
use std::ptr;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::{process, stdio};

/// The first descriptor after the standard streams.
const FIRST_OTHER: u32 = 3;

/// Runs `work` in a new process, and returns as soon as that process exists. A pair of connected sockets of type
/// `SOCK_SEQPACKET` joins both processes: one is returned, and `work` gets the other.
///
/// If this process ends, however it ends, the socket of `work` is at its end.
///
/// | property | of the new process |
/// |---|---|
/// | session | its own, without a terminal; it ignores SIGHUP, SIGPIPE and SIGUSR1 |
/// | SIGINT and SIGTERM | their actions in this process; see [`cancel_on_signals`](super::cancel_on_signals), but without its limit of two seconds |
/// | standard streams | `/dev/null` |
/// | other descriptors | those in `keep`; all others are closed (before Linux 5.9 they stay open) |
/// | working directory | `/` |
///
/// The process ends when `work` returns. `work` must use no descriptors but those in `keep`, its socket, and those that
/// it opens itself.
///
/// # Errors
/// If the process cannot be created, nothing has happened. This is so if the system refuses, if there is no
/// `/proc` or `/dev/null`, or if this process has other threads.
pub fn spawn_background(
    keep: &[BorrowedFd<'_>],
    work: impl FnOnce(OwnedFd),
) -> io::Result<OwnedFd> {
    if threads()? != 1 {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    let null = File::options().read(true).write(true).open("/dev/null")?;
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    let mask = block_signals()?;
    // SAFETY: this is the only thread, so no lock is held by a thread that the child lacks. The child never
    // returns to the caller, so nothing is done or freed twice.
    match unsafe { libc::fork() } {
        -1 => {
            let error = io::Error::last_os_error();
            restore_signals(&mask);
            Err(error)
        }
        0 => {
            // A panic ends the process, too, instead of returning to the caller.
            let _ = panic::catch_unwind(AssertUnwindSafe(|| {
                // Otherwise the child would keep its own socket from being at its end.
                drop(ours);
                let keep = [keep, &[theirs.as_fd()]].concat();
                become_background(&keep, &null, mask);
                work(theirs);
            }));
            // SAFETY: the call has no conditions. Exit handlers do not run: they belong to the parent.
            unsafe { libc::_exit(0) }
        }
        _ => {
            restore_signals(&mask);
            Ok(ours)
        }
    }
}

fn threads() -> io::Result<usize> {
    let mut threads = 0;
    for entry in fs::read_dir("/proc/self/task")? {
        entry?;
        threads += 1;
    }
    Ok(threads)
}

/// Separates the child from the terminal and from the files of its parent, and restores the signals in `mask`.
fn become_background(keep: &[BorrowedFd<'_>], null: &File, mut mask: libc::sigset_t) {
    // None of these calls can fail here.
    let _ = process::setsid();
    let _ = stdio::dup2_stdin(null);
    let _ = stdio::dup2_stdout(null);
    let _ = stdio::dup2_stderr(null);
    close_others(keep);
    let _ = process::chdir("/");
    ignore_signals();
    // An interrupted command sets an alarm, because its user waits for its end.
    // SAFETY: the set is initialized, and the signal number is valid.
    unsafe { libc::sigaddset(&mut mask, libc::SIGALRM) };
    restore_signals(&mask);
}

/// Closes all descriptors except for the standard streams and `keep`.
fn close_others(keep: &[BorrowedFd<'_>]) {
    let mut kept: Vec<u32> = keep.iter().map(|fd| fd.as_raw_fd() as u32).collect();
    kept.sort_unstable();
    let mut first = FIRST_OTHER;
    for kept in kept {
        if kept > first {
            close_range(first, kept - 1);
        }
        first = first.max(kept + 1);
    }
    close_range(first, u32::MAX);
}

fn close_range(first: u32, last: u32) {
    // SAFETY: the closed descriptors belong to values of the parent. The child does not return to the code that
    // has these values, and the caller promises to use none of them. Without the system call, nothing is closed.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
}

/// Lets this process have only processor and disk time that no other process wants, as far as the schedulers know such
/// a class: nice 19, and the idle classes for the processor and for disks.
pub fn lower_priority() {
    const LEAST_URGENT: i32 = 19;
    const IOPRIO_WHO_PROCESS: c_int = 1;
    const IOPRIO_CLASS_IDLE: c_int = 3;
    const IOPRIO_CLASS_SHIFT: c_int = 13;
    let _ = process::nice(LEAST_URGENT);
    // SAFETY: all bytes zero are a valid `sched_param`, with the only priority that the class has.
    let zero: libc::sched_param = unsafe { MaybeUninit::zeroed().assume_init() };
    let idle = IOPRIO_CLASS_IDLE << IOPRIO_CLASS_SHIFT;
    // musl's own `sched_setscheduler` always fails, so both are made directly.
    // SAFETY: the first call reads a parameter of the right type, and the second takes numbers only. The thread 0
    // is the calling one. Threads that it starts inherit both classes.
    unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            0,
            libc::SCHED_IDLE,
            &raw const zero,
        );
        libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, idle);
    }
}

/// Ignores the signals that a closed terminal or a closed log cause, and SIGUSR1: it asks a command for its status.
fn ignore_signals() {
    for signal in [libc::SIGHUP, libc::SIGPIPE, libc::SIGUSR1] {
        // SAFETY: a valid signal number, and the constant that ignores it.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Blocks all signals of this thread. Returns the mask before.
fn block_signals() -> io::Result<libc::sigset_t> {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the first call fills `all` in and cannot fail with a valid pointer. The second one reads it, and
    // writes to memory of the right type.
    let error = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr())
    };
    match error {
        // SAFETY: the call has succeeded, and so has filled it in.
        0 => Ok(unsafe { before.assume_init() }),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

fn restore_signals(mask: &libc::sigset_t) {
    // SAFETY: the mask is one that the kernel has returned, and no old mask is asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, ptr::null_mut()) };
}
