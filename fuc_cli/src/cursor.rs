//! The place of the terminal's cursor.
//!
//! The console and the status line keep it up to date under the console's lock. Signal handlers, which cannot wait for
//! the lock, read it.

use std::sync::atomic::{AtomicU8, Ordering};

/// Returns the cursor to the start of its line, and clears that line.
pub(crate) const CLEAR_LINE: &str = "\r\x1b[2K";

/// The text on the line of the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Cursor {
    /// Nothing, or text that this process does not know.
    Elsewhere = 0,
    /// A line that may be cleared.
    StatusLine = 1,
    /// A prompt whose answer was not shown, because the user has not typed it yet or it came from elsewhere.
    Prompt = 2,
}

// Relaxed: the value stands for itself.
static CURSOR: AtomicU8 = AtomicU8::new(Cursor::Elsewhere as u8);

impl Cursor {
    /// Records that this is where the cursor is.
    pub(crate) fn record(self) {
        CURSOR.store(self as u8, Ordering::Relaxed);
    }

    /// Returns where the cursor is. A signal handler may call it.
    pub(crate) fn now() -> Self {
        match CURSOR.load(Ordering::Relaxed) {
            1 => Self::StatusLine,
            2 => Self::Prompt,
            _ => Self::Elsewhere,
        }
    }
}
