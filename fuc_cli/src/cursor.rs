//! The place of the terminal's cursor, for output that cannot wait for the console's lock: that of
//! signal handlers.

use std::sync::atomic::{AtomicU8, Ordering};

/// Returns the cursor to the start of its line, and clears that line.
pub(crate) const CLEAR_LINE: &str = "\r\x1b[2K";

/// The text on the line of the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Cursor {
    /// Nothing, or text that this process does not know.
    Elsewhere,
    /// A line that may be cleared.
    StatusLine,
    /// A prompt that waits for its answer.
    Prompt,
}

// Relaxed: the value stands for itself.
static CURSOR: AtomicU8 = AtomicU8::new(Cursor::Elsewhere as u8);

impl Cursor {
    /// Records that this is where the cursor is.
    pub(crate) fn record(self) {
        CURSOR.store(self as u8, Ordering::Relaxed);
    }

    /// Returns the characters that begin an empty line. A signal handler may call it.
    pub(crate) fn begin_line() -> &'static str {
        match CURSOR.load(Ordering::Relaxed) {
            value if value == Self::StatusLine as u8 => CLEAR_LINE,
            value if value == Self::Prompt as u8 => "\n",
            _ => "",
        }
    }

    /// Returns the characters that remove a status line. A signal handler may call it.
    pub(crate) fn end() -> &'static str {
        match CURSOR.load(Ordering::Relaxed) == Self::StatusLine as u8 {
            true => CLEAR_LINE,
            false => "",
        }
    }
}
