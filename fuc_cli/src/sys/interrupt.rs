//! Signals that interrupt a command, SIGINT, SIGTERM and SIGHUP, and SIGUSR1, which asks for its status.
//!
//! ```text
//!   first signal ──▶ cancel the run, and set an alarm ──▶ the run ends ──▶ end by the signal
//!                        │                │
//!         another signal │                │ the run hangs in a system call
//!         after 0.5 s    │                │
//!                        ▼                ▼
//!                   end by that      end by the first
//! ```
//!
//! A handler only stores to atomics, and calls functions that POSIX permits in a handler.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use fuc_engine::Cancel;

use crate::cursor::{CLEAR_LINE, Cursor};

const SIGNALS: [c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// Time in seconds that a cancelled run gets to clean up, before the process ends anyway.
const GRACE_SECONDS: u32 = 2;
/// Signals within this time of the first one mean the same: `timeout` signals its child and then its process group,
/// and a supervisor may send SIGHUP after SIGTERM.
const SAME_REQUEST: Duration = Duration::from_millis(500);

static TOKEN: OnceLock<Cancel> = OnceLock::new();
/// The last line of a run that does not end in order.
static LAST_LINE: OnceLock<Vec<u8>> = OnceLock::new();
/// The function that answers SIGUSR1.
static ANSWER: OnceLock<fn()> = OnceLock::new();
/// The first signal, or 0.
static RECEIVED: AtomicI32 = AtomicI32::new(0);
/// The time of the first signal, in milliseconds of the monotonic clock; 0 until it is known.
static RECEIVED_AT: AtomicU64 = AtomicU64::new(0);

/// Returns the token for the engine. From now on, the first of these signals cancels it instead
/// of ending the process. Another signal ends the process at once, unless it comes within half a second.
///
/// If the run does not end within two seconds, because a system call hangs, the process ends
/// by the signal. Signals that were ignored when the process began stay ignored.
#[must_use]
pub fn cancel_on_signals() -> Cancel {
    let token = TOKEN.get_or_init(Cancel::new).clone();
    for signal in SIGNALS {
        handle_unless_ignored(signal, on_signal, FAIL);
    }
    token
}

/// Sets the line that is written if a signal ends the process before the run has ended.
pub(crate) fn set_last_line(line: Vec<u8>) {
    let _ = LAST_LINE.set(line);
}

/// Calls `answer` at each SIGUSR1 from now on, unless it was ignored when the process began.
///
/// `answer` runs in a signal handler. So it must not allocate, lock, or change `errno`.
pub(crate) fn on_status_request(answer: fn()) {
    if ANSWER.set(answer).is_ok() {
        handle_unless_ignored(libc::SIGUSR1, on_sigusr1, libc::SA_RESTART);
    }
}

extern "C" fn on_sigusr1(_: c_int) {
    if let Some(answer) = ANSWER.get() {
        answer();
    }
}

/// Returns the signal that was received first.
pub(crate) fn received_signal() -> Option<c_int> {
    match RECEIVED.load(Ordering::Relaxed) {
        0 => None,
        signal => Some(signal),
    }
}

/// Ends the process by `signal`, so that its parent sees that. No status line stays: it would look like the result.
pub(crate) fn end_by(signal: c_int) {
    if Cursor::now() == Cursor::StatusLine {
        write(CLEAR_LINE.as_bytes());
    }
    // SAFETY: both are calls that a handler may make, with a valid signal number.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Ends the process by `signal` in the middle of a run, in a handler. Says so, unless that would wait for a reader.
fn end_in_the_middle(signal: c_int) {
    let mut stderr = libc::pollfd {
        fd: libc::STDERR_FILENO,
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: a handler may call it, with a pointer to one structure.
    let is_ready = unsafe { libc::poll(&raw mut stderr, 1, 0) } == 1;
    if !is_ready {
        Cursor::Elsewhere.record();
    } else if let Some(line) = LAST_LINE.get() {
        if Cursor::now() == Cursor::StatusLine {
            write(CLEAR_LINE.as_bytes());
            Cursor::Elsewhere.record();
        }
        write(line);
    }
    end_by(signal);
}

/// Writes to stderr, as a handler may do. An error cannot be reported.
fn write(text: &[u8]) {
    // SAFETY: pointer and length are those of one slice.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

/// Makes a system call fail with `EINTR` if a handler runs during it.
const FAIL: c_int = 0;

/// Installs a handler, unless the signal is ignored.
fn handle_unless_ignored(signal: c_int, handler: extern "C" fn(c_int), flags: c_int) {
    if handle(signal, handler, flags) == Some(libc::SIG_IGN) {
        // SAFETY: a valid signal number and the constant that ignores it.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Installs a handler. Returns the action before.
fn handle(
    signal: c_int,
    handler: extern "C" fn(c_int),
    flags: c_int,
) -> Option<libc::sighandler_t> {
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: all bytes zero are a valid `sigaction`, with an empty mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    action.sa_flags = flags;
    // SAFETY: both pointers are to memory of the right type, and the handler calls only
    // functions that a handler may call.
    let failed = unsafe { libc::sigaction(signal, &action, before.as_mut_ptr()) };
    // SAFETY: read only after a success, which has filled it in.
    (failed == 0).then(|| unsafe { before.assume_init() }.sa_sigaction)
}

extern "C" fn on_signal(signal: c_int) {
    let first = RECEIVED.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
    if first.is_err() {
        // Relaxed: without the time of the first signal, this one comes directly after it.
        let first_at = RECEIVED_AT.load(Ordering::Relaxed);
        if first_at > 0 && milliseconds().saturating_sub(first_at) > SAME_REQUEST.as_millis() as u64
        {
            // The signal is blocked in its own handler, so the process ends on the return.
            end_in_the_middle(signal);
        }
        return;
    }
    RECEIVED_AT.store(milliseconds(), Ordering::Relaxed);
    if let Some(token) = TOKEN.get() {
        token.cancel();
    }
    handle(libc::SIGALRM, on_alarm, FAIL);
    // SAFETY: a handler may call it, and it takes any number of seconds.
    unsafe { libc::alarm(GRACE_SECONDS) };
}

/// Returns the time of the monotonic clock.
fn milliseconds() -> u64 {
    // The standard library's clock does not promise to work in a handler.
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

extern "C" fn on_alarm(_: c_int) {
    if let Some(signal) = received_signal() {
        end_in_the_middle(signal);
    }
}
