//! Facts about the start of the process that Rust's runtime hides before `main`: it ignores SIGPIPE,
//! and it opens `/dev/null` in place of closed standard streams, unless something else is opened there.
//!
//! Therefore a function looks at them earlier, while the loader runs the initialisers.

use std::ffi::{CStr, CString, c_int};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::stdio;

// These are written before `main`, when there is one thread; so Relaxed is enough.
static SIGPIPE_IGNORED: AtomicBool = AtomicBool::new(false);
/// Says of stdin, stdout and stderr, whose descriptors are the indices, whether they were closed.
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

// SAFETY: the loader calls each entry of this section once, before main, with
// arguments that an `extern "C"` function without parameters may ignore.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = record_startup_state;

extern "C" fn record_startup_state() {
    for (stream, closed) in (0..).zip(&CLOSED) {
        if is_closed(stream) {
            closed.store(true, Ordering::Relaxed);
            occupy();
        }
    }
    SIGPIPE_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
}

/// Opens a socket as the lowest free descriptor. It cannot be opened by a path such as `/dev/stdin`. The runtime would
/// open `/dev/null`, so that a copy of it succeeds, or abort where that is missing.
fn occupy() {
    // SAFETY: it takes no pointers. If it fails, the runtime opens something itself.
    unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM, 0) };
}

fn is_closed(stream: c_int) -> bool {
    // SAFETY: the command takes no further argument and changes nothing. It
    // returns an error for a descriptor that is not open.
    let failed = unsafe { libc::fcntl(stream, libc::F_GETFD) == -1 };
    // A filter of system calls may refuse this one.
    failed && io::Error::last_os_error().raw_os_error() == Some(libc::EBADF)
}

/// Takes the place of the C library's function in the whole process, for the sake of one call: before `main`, Rust's
/// runtime looks at the standard streams, and aborts if a filter of system calls refuses that. After EINVAL, it looks at
/// them in another way.
// SAFETY: the signature and the effects are those of the C library, except for the number of an error.
#[unsafe(no_mangle)]
unsafe extern "C" fn poll(
    polled: *mut libc::pollfd,
    count: libc::nfds_t,
    milliseconds: c_int,
) -> c_int {
    // SAFETY: what the caller may give to `poll`, it may give to the kernel.
    #[cfg(target_arch = "x86_64")]
    let ready = unsafe { libc::syscall(libc::SYS_poll, polled, count, milliseconds) } as c_int;
    // Other kernels lack the call.
    #[cfg(not(target_arch = "x86_64"))]
    let ready = {
        let limit = libc::timespec {
            tv_sec: (milliseconds / 1000).into(),
            tv_nsec: (milliseconds % 1000 * 1_000_000).into(),
        };
        let limit = match milliseconds < 0 {
            true => ptr::null(),
            false => &raw const limit,
        };
        // SAFETY: the same, and the limit outlives the call.
        unsafe { libc::ppoll(polled, count, limit, ptr::null()) }
    };
    // SAFETY: the location of this thread's error is always valid.
    let errno = unsafe { &mut *libc::__errno_location() };
    if ready == -1 && matches!(*errno, libc::EPERM | libc::EACCES | libc::ENOSYS) {
        *errno = libc::EINVAL;
    }
    ready
}

fn is_ignored(signal: c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: no new action is given, so nothing changes. The kernel's present
    // one goes to memory of the right type.
    let failed = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: read only after a success, which has filled it in.
    failed == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// Gives SIGPIPE its default action back, unless it was ignored when the process began.
///
/// A write to a closed pipe then ends the command, as it ends any C program.
pub(crate) fn restore_sigpipe() {
    if !SIGPIPE_IGNORED.load(Ordering::Relaxed) {
        // SAFETY: a valid signal number and the constant for its default action.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
}

/// Executes `program` in place of this process, with the state that this process inherited: the same SIGPIPE, and
/// without the streams that were opened instead. Returns the reason if that is not possible.
pub(crate) fn execute(program: &CStr, arguments: &[CString], environment: &[CString]) -> Errno {
    restore_sigpipe();
    for stream in [stdio::stdin(), stdio::stdout(), stdio::stderr()] {
        if was_closed(stream) {
            // If the call below fails, the stream stays open.
            let _ = fcntl_setfd(stream, FdFlags::CLOEXEC);
        }
    }
    let pointers = |strings: &[CString]| -> Vec<_> {
        let pointers = strings.iter().map(|string| string.as_ptr());
        pointers.chain([ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // The function of the C library might be that of a preloaded library, which may look for the program elsewhere.
    // SAFETY: the strings outlive the call, and a null pointer ends both lists.
    unsafe {
        libc::syscall(
            libc::SYS_execve,
            program.as_ptr(),
            arguments.as_ptr(),
            environment.as_ptr(),
        )
    };
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::NOSYS)
}

/// Returns `true` if stdin, stdout or stderr was closed when the process began. Something else is open in its place.
pub(crate) fn was_closed(stream: BorrowedFd<'_>) -> bool {
    CLOSED[stream.as_raw_fd() as usize].load(Ordering::Relaxed)
}
