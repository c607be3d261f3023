//! The answer to SIGUSR1: one line on stderr that says what was done so far.
//!
//! The signal's handler writes the line itself. So it comes at once, even if each worker waits in a system
//! call. Nothing here allocates, locks, or changes `errno`.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use fuc_engine::Counts;

use super::text::{Moment, Totals};
use crate::cursor::{CLEAR_LINE, Cursor};
use crate::streams::stderr;
use crate::sys;
use crate::tool::Tool;

struct Run {
    tool: Tool,
    counts: Arc<Counts>,
    start: Instant,
}

/// The run of this process.
static RUN: OnceLock<Run> = OnceLock::new();

/// Answers SIGUSR1 from now on, unless it was ignored when the process began.
pub(super) fn answer_requests(tool: Tool, counts: &Arc<Counts>) {
    let counts = Arc::clone(counts);
    let run = Run {
        tool,
        counts,
        start: Instant::now(),
    };
    if RUN.set(run).is_ok() {
        sys::on_status_request(write_status);
    }
}

/// Writes the line. It is called in a signal handler.
fn write_status() {
    let Some(run) = RUN.get() else {
        return;
    };
    let totals = Totals {
        tool: run.tool,
        entries: run.counts.entries(),
        bytes: run.counts.bytes(),
        elapsed: run.start.elapsed(),
        moment: Moment::SoFar,
    };
    let mut line = ShortText::new();
    let empty_line = match Cursor::now() {
        Cursor::StatusLine => CLEAR_LINE,
        Cursor::Prompt => "\n",
        Cursor::Elsewhere => "",
    };
    // A text that is too long is cut, and a write that fails cannot be reported.
    let _ = writeln!(line, "{empty_line}{totals}");
    let _ = stderr().write_all(&line.bytes[..line.length]);
}

/// A text on the stack.
struct ShortText {
    bytes: [u8; 256],
    length: usize,
}

impl ShortText {
    fn new() -> Self {
        Self {
            bytes: [0; 256],
            length: 0,
        }
    }
}

impl fmt::Write for ShortText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let room = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}
