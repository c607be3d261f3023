//! What the process inherited and Rust's runtime changes before `main`: SIGPIPE,
//! which it ignores, and closed standard streams, which it opens.
//!
//! The only moment to look is while the loader runs the initialisers.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

const STDIN: c_int = 0;
const STDOUT: c_int = 1;
const STDERR: c_int = 2;
const F_GETFD: c_int = 1;
const SIGPIPE: c_int = 13;
const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;

/// The C library's `struct sigaction`, which begins with the handler on every
/// architecture but MIPS and is nowhere larger than this.
#[repr(C)]
struct Action {
    handler: usize,
    _rest: [usize; 31],
}

// The C library's; `usize` stands for its pointer to a handler.
unsafe extern "C" {
    fn sigaction(number: c_int, new: *const Action, old: *mut Action) -> c_int;
    fn signal(number: c_int, handler: usize) -> usize;
    fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
}

static IGNORED_AT_START: AtomicBool = AtomicBool::new(false);
static STDIN_CLOSED_AT_START: AtomicBool = AtomicBool::new(false);
static STDOUT_CLOSED_AT_START: AtomicBool = AtomicBool::new(false);
static STDERR_CLOSED_AT_START: AtomicBool = AtomicBool::new(false);

// SAFETY: the loader calls each entry of this section once, before main, with
// arguments that an `extern "C"` function without parameters may ignore.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    for (stream, closed) in [
        (STDIN, &STDIN_CLOSED_AT_START),
        (STDOUT, &STDOUT_CLOSED_AT_START),
        (STDERR, &STDERR_CLOSED_AT_START),
    ] {
        // SAFETY: the command takes no further argument and changes nothing; a
        // descriptor that is not open is an error that it returns.
        closed.store(unsafe { fcntl(stream, F_GETFD) } == -1, Ordering::Relaxed);
    }
    let mut action = Action {
        handler: SIG_DFL,
        _rest: [0; 31],
    };
    // SAFETY: the signal is valid, nothing is changed (no new action is given),
    // and `Action` is larger than any `struct sigaction`, and aligned as one.
    let failed = unsafe { sigaction(SIGPIPE, std::ptr::null(), &mut action) };
    IGNORED_AT_START.store(failed == 0 && action.handler == SIG_IGN, Ordering::Relaxed);
}

/// Whether SIGPIPE was ignored when the process began.
#[must_use]
pub fn sigpipe_was_ignored() -> bool {
    IGNORED_AT_START.load(Ordering::Relaxed)
}

/// Gives SIGPIPE its default action back, unless it was ignored when the process began.
///
/// For a command's `main`: a closed pipe then ends it, as it ends any C program.
pub fn restore_sigpipe() {
    if !sigpipe_was_ignored() {
        // SAFETY: a valid signal number and the constant for its default action.
        unsafe { signal(SIGPIPE, SIG_DFL) };
    }
}

/// Whether standard output was closed when the process began: what is written
/// to it then is lost, though the runtime has put `/dev/null` in its place.
#[must_use]
pub fn stdout_was_closed() -> bool {
    STDOUT_CLOSED_AT_START.load(Ordering::Relaxed)
}

/// Whether standard input was closed when the process began: whoever reads it
/// then meets the `/dev/null` that the runtime has put in its place.
#[must_use]
pub fn stdin_was_closed() -> bool {
    STDIN_CLOSED_AT_START.load(Ordering::Relaxed)
}

/// Whether standard error was closed when the process began.
#[must_use]
pub fn stderr_was_closed() -> bool {
    STDERR_CLOSED_AT_START.load(Ordering::Relaxed)
}
