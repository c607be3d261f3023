//! The start of a command: the `main` that the C library calls, in place of the one of Rust's runtime.
//!
//! That one makes 21 system calls, and changes what the process inherited: it ignores SIGPIPE, and opens `/dev/null` in
//! place of closed standard streams. It also aborts if a filter of system calls refuses to look at these.

use std::env;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::stdio;

// These are written when there is one thread; so Relaxed is enough.
/// The argv of `main`, or null.
static ARGUMENTS: AtomicPtr<*const c_char> = AtomicPtr::new(ptr::null_mut());
/// Says of stdin, stdout and stderr, whose descriptors are the indices, whether they were closed.
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

// If a panic ends the process, the shared library of the unwinder serves backtraces only, and loading it takes 9 system
// calls. The optimiser joins the standard library with the crates, so that its symbols are found here first.
#[cfg(all(
    target_env = "gnu",
    panic = "abort",
    not(target_feature = "crt-static")
))]
#[link(name = "gcc_eh", kind = "static", modifiers = "-bundle")]
unsafe extern "C" {}

/// Defines the `main` of a program. It calls a function that returns an [`ExitCode`](std::process::ExitCode).
///
/// The crate needs the attribute `#![cfg_attr(not(test), no_main)]`.
#[macro_export]
macro_rules! program {
    ($run:path) => {
        // The harness of unit tests has a `main` of its own.
        #[cfg_attr(test, allow(dead_code))]
        #[allow(unsafe_code)]
        #[cfg_attr(not(test), unsafe(export_name = "main"))]
        extern "C" fn c_main(
            _count: ::std::ffi::c_int,
            arguments: *const *const ::std::ffi::c_char,
        ) -> ::std::ffi::c_int {
            // SAFETY: the C library calls this function once, with the arguments that the kernel has put on the stack.
            unsafe { $crate::sys::begin(arguments) };
            let status: ::std::process::ExitCode = $run();
            (status != ::std::process::ExitCode::SUCCESS).into()
        }
    };
}

/// Keeps the arguments of `main`, and occupies the descriptors of closed standard streams.
///
/// # Safety
/// No other thread runs yet. `arguments` is an array of C strings that ends with a null pointer. Both stay as long as the
/// process, unchanged.
pub unsafe fn begin(arguments: *const *const c_char) {
    ARGUMENTS.store(arguments.cast_mut(), Ordering::Relaxed);
    for (stream, closed) in (0..).zip(&CLOSED) {
        if is_closed(stream) {
            closed.store(true, Ordering::Relaxed);
            occupy();
        }
    }
}

/// Returns the arguments of this process, with argv\[0\].
///
/// In a static program, those of the standard library are known to Rust's own `main` only.
pub fn arguments() -> Vec<OsString> {
    let first = ARGUMENTS.load(Ordering::Relaxed).cast_const();
    if first.is_null() {
        return env::args_os().collect();
    }
    let strings = (0..).map_while(|index| {
        // SAFETY: the array has a null pointer at its end, and nothing is read behind it.
        let string = unsafe { *first.add(index) };
        // SAFETY: it is a C string that stays as long as the process.
        (!string.is_null()).then(|| unsafe { CStr::from_ptr(string) })
    });
    strings
        .map(|string| OsStr::from_bytes(string.to_bytes()).to_owned())
        .collect()
}

/// Opens a socket as the lowest free descriptor, so that no file is opened there. A socket cannot be opened by a path such
/// as `/dev/stdin`, so a copy of that fails.
fn occupy() {
    // SAFETY: it takes no pointers.
    unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM, 0) };
}

fn is_closed(stream: c_int) -> bool {
    // SAFETY: the command takes no further argument and changes nothing. It
    // returns an error for a descriptor that is not open.
    let failed = unsafe { libc::fcntl(stream, libc::F_GETFD) == -1 };
    // A filter of system calls may refuse this one.
    failed && io::Error::last_os_error().raw_os_error() == Some(libc::EBADF)
}

/// Executes `program` in place of this process, without the sockets that were opened in place of closed streams. Returns
/// the reason if that is not possible.
pub(crate) fn execute(program: &CStr, arguments: &[CString], environment: &[CString]) -> Errno {
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
