//! The line that shows progress, drawn by indicatif on stderr.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fuc_engine::Counts;
use indicatif::{
    HumanCount, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle,
    TermLike,
};

use crate::console::StatusLine;
use crate::streams::Stderr;
use crate::wording::Tool;

/// The width of the line if that of the terminal is unknown.
const DEFAULT_WIDTH: u16 = 80;

/// Shows the counts of a run.
pub(super) struct ProgressLine {
    counts: Arc<Counts>,
    tool: Tool,
    /// The container of the bar. Without it, a bar cannot be cleared and drawn again.
    bars: MultiProgress,
    bar: ProgressBar,
    is_drawn: bool,
    is_behind_prompt: bool,
}

impl ProgressLine {
    pub(super) fn new(tool: Tool, counts: Arc<Counts>) -> Self {
        let target = ProgressDrawTarget::term_like(Box::new(Screen::default()));
        let bars = MultiProgress::with_draw_target(target);
        let bar = bars.add(ProgressBar::no_length());
        bar.set_style(style(tool, Arc::clone(&counts)));
        Self {
            counts,
            tool,
            bars,
            bar,
            is_drawn: false,
            is_behind_prompt: false,
        }
    }
}

fn style(tool: Tool, counts: Arc<Counts>) -> ProgressStyle {
    let template = match tool {
        Tool::Copy => "{entries} copied, {bytes}, {bytes_per_sec}, {elapsed}",
        Tool::Remove => "{entries} removed, {rate}, {elapsed}",
    };
    // Use a key for the entries: in a copy the bar's position counts bytes, and setting a message
    // would draw once more.
    let write_entries = move |_: &ProgressState, line: &mut dyn fmt::Write| {
        let _ = write!(line, "{}", HumanCount(counts.entries()));
    };
    // indicatif's own `per_sec` has four decimals.
    let write_rate = |state: &ProgressState, line: &mut dyn fmt::Write| {
        let _ = write!(line, "{}/s", HumanCount(state.per_sec() as u64));
    };
    ProgressStyle::with_template(template)
        .expect("BUG: an invalid template")
        .with_key("entries", write_entries)
        .with_key("rate", write_rate)
}

// A line that cannot be drawn or cleared does not count as lost output.
impl StatusLine for ProgressLine {
    fn redraw(&mut self) {
        if std::mem::take(&mut self.is_behind_prompt) {
            let _ = Stderr.write_all(b"\n");
        }
        let position = match self.tool {
            Tool::Copy => self.counts.bytes(),
            Tool::Remove => self.counts.entries(),
        };
        self.bar.update(|state| state.set_pos(position));
        self.is_drawn = true;
    }

    fn clear(&mut self) {
        self.is_behind_prompt = false;
        if std::mem::take(&mut self.is_drawn) {
            let _ = self.bars.clear();
        }
    }

    fn keep_prompt(&mut self) {
        self.is_behind_prompt = true;
    }
}

impl fmt::Debug for ProgressLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgressLine")
            .field("is_drawn", &self.is_drawn)
            .finish_non_exhaustive()
    }
}

/// stderr as a terminal for indicatif; each drawing is one write.
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

    fn pending(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        Stderr.columns().unwrap_or(DEFAULT_WIDTH)
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
