//! `--progress`: one line on stderr that tells how far a run has come.
//!
//! ```text
//!   the run's thread      begin ───────────── run ─────────────── clear, wake, join
//!   a thread of its own     wait 100 ms, draw, wait, draw ... ──────┘
//!   who has a message                    clear, message
//! ```
//!
//! The line is drawn and cleared by whoever holds the console's lock, so it never gets into
//! a message, and none is drawn while a question waits for its answer. Without `--progress` nothing of
//! this exists: no thread, no line, no counts.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use fuc_engine::Counts;
use indicatif::{
    HumanCount, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle,
    TermLike,
};

use crate::console::Console;
use crate::flags::{UsageError, choose};
use crate::locale::Charset;
use crate::streams::Stderr;
use crate::wording::Tool;

/// When the line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Not at all.
    Never,
    /// If stderr is a terminal.
    Auto,
    /// In any case.
    Always,
}

/// The values of `--progress`.
pub const WHEN: [(&str, Progress); 3] = [
    ("auto", Progress::Auto),
    ("always", Progress::Always),
    ("never", Progress::Never),
];

/// The time from one drawing to the next.
const PERIOD: Duration = Duration::from_millis(100);
/// Where stderr cannot tell.
const USUAL_WIDTH: u16 = 80;

impl Progress {
    /// Reads the value of `--progress`; none is [`Auto`](Self::Auto).
    ///
    /// # Errors
    /// Words that are none of its values.
    pub fn parse(when: Option<&OsStr>, charset: Charset) -> Result<Self, UsageError> {
        match when {
            None => Ok(Self::Auto),
            Some(when) => choose("--progress", when, &WHEN, charset),
        }
    }

    pub(crate) fn is_wanted(self) -> bool {
        match self {
            Self::Never => false,
            Self::Auto => Stderr.is_terminal(),
            Self::Always => true,
        }
    }
}

/// What is drawn, and where.
pub(crate) struct Display<'a> {
    pub(crate) console: &'a Console,
    pub(crate) tool: Tool,
    pub(crate) progress: Progress,
    pub(crate) counts: &'a Counts,
}

impl Display<'_> {
    /// Calls `run`, and draws meanwhile.
    pub(crate) fn during<R>(&self, run: impl FnOnce() -> R) -> R {
        self.console.show(Some(Bar::new(self.tool)));
        if self.progress == Progress::Always {
            self.console.draw(self.counts);
        }
        thread::scope(|scope| {
            // Not at once: a person sees no more than a flicker of what takes less.
            let draw = || {
                loop {
                    thread::park_timeout(PERIOD);
                    if !self.console.draw(self.counts) {
                        break;
                    }
                }
            };
            // Where no thread is to be had, no more is drawn.
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
        self.console.show(None);
        if let Some(drawing) = &self.drawing {
            drawing.unpark();
        }
    }
}

/// The line.
pub(crate) struct Bar {
    bars: MultiProgress,
    bar: ProgressBar,
    /// For the key of that name in the template.
    entries: Arc<AtomicU64>,
    tool: Tool,
    is_drawn: bool,
    /// What stands there is a question, with no end of line behind it.
    follows_question: bool,
}

impl Bar {
    fn new(tool: Tool) -> Self {
        let target = ProgressDrawTarget::term_like(Box::new(Screen::default()));
        let bars = MultiProgress::with_draw_target(target);
        let bar = bars.add(ProgressBar::no_length());
        let template = match tool {
            Tool::Copy => "{entries} copied, {bytes}, {bytes_per_sec}, {elapsed}",
            Tool::Remove => "{entries} removed, {rate}, {elapsed}",
        };
        let entries = Arc::new(AtomicU64::new(0));
        let shown = Arc::clone(&entries);
        // Not as a message: setting one would draw once more.
        let write_entries = move |_: &ProgressState, line: &mut dyn fmt::Write| {
            let _ = write!(line, "{}", HumanCount(shown.load(Ordering::Relaxed)));
        };
        // indicatif's own `per_sec` has four decimals.
        let write_rate = |state: &ProgressState, line: &mut dyn fmt::Write| {
            let _ = write!(line, "{}/s", HumanCount(state.per_sec() as u64));
        };
        let style = ProgressStyle::with_template(template).expect("BUG: a template that is none");
        bar.set_style(
            style
                .with_key("entries", write_entries)
                .with_key("rate", write_rate),
        );
        Self {
            bars,
            bar,
            entries,
            tool,
            is_drawn: false,
            follows_question: false,
        }
    }

    pub(crate) fn draw(&mut self, counts: &Counts) {
        if std::mem::take(&mut self.follows_question) {
            let _ = Stderr.write_all(b"\n");
        }
        self.entries.store(counts.entries(), Ordering::Relaxed);
        let position = match self.tool {
            Tool::Copy => counts.bytes(),
            Tool::Remove => counts.entries(),
        };
        self.bar.update(|state| state.set_pos(position));
        self.is_drawn = true;
    }

    /// Makes room for a message. A line that can't be drawn or cleared is no loss of output.
    pub(crate) fn clear(&mut self) {
        self.follows_question = false;
        if std::mem::take(&mut self.is_drawn) {
            let _ = self.bars.clear();
        }
    }

    /// A question was asked, and nobody typed a whole line below which to draw.
    pub(crate) fn follow_question(&mut self) {
        self.follows_question = true;
    }
}

impl fmt::Debug for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bar")
            .field("is_drawn", &self.is_drawn)
            .finish_non_exhaustive()
    }
}

/// stderr, as a terminal whose lines are as wide as they are; each drawing is one write.
#[derive(Debug, Default)]
struct Screen(Mutex<Vec<u8>>);

impl Screen {
    fn push(&self, bytes: &[u8]) -> io::Result<()> {
        self.pending().extend_from_slice(bytes);
        Ok(())
    }

    fn push_move(&self, steps: usize, direction: char) -> io::Result<()> {
        match steps {
            0 => Ok(()),
            steps => self.push(format!("\x1b[{steps}{direction}").as_bytes()),
        }
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        Stderr.columns().unwrap_or(USUAL_WIDTH)
    }

    fn move_cursor_up(&self, lines: usize) -> io::Result<()> {
        self.push_move(lines, 'A')
    }

    fn move_cursor_down(&self, lines: usize) -> io::Result<()> {
        self.push_move(lines, 'B')
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.push_move(columns, 'C')
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.push_move(columns, 'D')
    }

    fn write_line(&self, line: &str) -> io::Result<()> {
        self.push(line.as_bytes())?;
        self.push(b"\n")
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.push(text.as_bytes())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.push(b"\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        let pending = std::mem::take(&mut *self.pending());
        Stderr.write_all(&pending)
    }
}
