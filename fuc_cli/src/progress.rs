//! `--progress`: one line on stderr that shows how far a run has come.
//!
//! ```text
//!   thread of the run       begin ──────────── run ──────────── clear, wake, join
//!   thread that draws         wait 100 ms, draw, wait, draw ... ─────┘
//!   thread with a message                clear, message
//! ```
//!
//! A thread draws and clears the line only while it holds the console's lock. The line therefore never
//! mixes with a message, and is not drawn while a prompt waits for its answer. Without `--progress`
//! none of this exists: no thread, no line, no counts.

use std::ffi::OsStr;
use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::Duration;

use fuc_engine::Counts;

use crate::console::Console;
use crate::flags::{UsageError, choose};
use crate::locale::Charset;
use crate::streams::Stderr;
use crate::wording::Tool;
use line::ProgressLine;

mod line;

/// When progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Progress is not shown.
    Never,
    /// Progress is shown if stderr is a terminal.
    Auto,
    /// Progress is shown in any case.
    Always,
}

/// The values of `--progress`.
pub const WHEN: [(&str, Progress); 3] = [
    ("auto", Progress::Auto),
    ("always", Progress::Always),
    ("never", Progress::Never),
];

/// The time from one drawing to the next. It seems continuous to the user.
const PERIOD: Duration = Duration::from_millis(100);

impl Progress {
    /// Parses the value of `--progress`. Without a value it means [`Auto`](Self::Auto).
    ///
    /// # Errors
    /// If the value is not one of [`WHEN`].
    pub fn parse(when: Option<&OsStr>, charset: Charset) -> Result<Self, UsageError> {
        match when {
            None => Ok(Self::Auto),
            Some(when) => choose("--progress", when, &WHEN, charset),
        }
    }

    /// Returns `true` if progress should be shown on this stderr.
    pub(crate) fn is_wanted(self) -> bool {
        match self {
            Self::Never => false,
            Self::Auto => Stderr.is_terminal(),
            Self::Always => true,
        }
    }
}

/// Shows the progress of one run.
pub(crate) struct Display<'a> {
    pub(crate) console: &'a Console,
    pub(crate) tool: Tool,
    pub(crate) progress: Progress,
    pub(crate) counts: &'a Arc<Counts>,
}

impl Display<'_> {
    /// Calls `run`, and shows progress until it returns.
    pub(crate) fn during<R>(&self, run: impl FnOnce() -> R) -> R {
        let line = ProgressLine::new(self.tool, Arc::clone(self.counts));
        self.console.set_status_line(Some(Box::new(line)));
        if self.progress == Progress::Always {
            self.console.redraw_status_line();
        }
        thread::scope(|scope| {
            // Wait before the first drawing, because the line of a shorter run would only flicker.
            let draw = || {
                loop {
                    thread::park_timeout(PERIOD);
                    if !self.console.redraw_status_line() {
                        break;
                    }
                }
            };
            // If the thread cannot be started, the run goes on without drawing.
            let drawing = thread::Builder::new().spawn_scoped(scope, draw);
            let _end = End {
                console: self.console,
                drawing: drawing.ok().map(|drawing| drawing.thread().clone()),
            };
            run()
        })
    }
}

/// Ends the drawing, even if the run panics.
struct End<'a> {
    console: &'a Console,
    drawing: Option<Thread>,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.console.set_status_line(None);
        if let Some(drawing) = &self.drawing {
            drawing.unpark();
        }
    }
}
