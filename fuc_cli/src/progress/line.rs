//! The line that shows progress: when it is written, and to what.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fuc_engine::Counts;

use super::text::{Ahead, View};
use super::{DELAY, LineState, Watch};
use crate::cursor::Cursor;
use crate::locale::Charset;
use crate::streams::stderr;
use crate::tool::Tool;

/// The width of the line if that of the terminal is unknown.
const DEFAULT_COLUMNS: u16 = 80;

/// A longer time is not shown. It probably means that the run waits for something.
const LONGEST_ETA: Duration = Duration::from_secs(100 * 3600);

/// If two drawings are further apart, the process was stopped in between: they are due every tenth of a second.
const STOPPED_FROM: Duration = Duration::from_secs(2);

/// The time from one line of a log to the next.
const LOG_PERIOD: Duration = Duration::from_secs(5);

/// The kind of stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Medium {
    /// A terminal, on which the line is drawn again and again.
    Screen,
    /// A file, a pipe, or a terminal that has no cursor: each drawing is a line of its own.
    Log {
        /// The time of the run at which the next line is due.
        due: Duration,
    },
}

impl Medium {
    fn of_stderr() -> Self {
        let term = std::env::var_os("TERM").unwrap_or_default();
        match stderr().is_terminal() && !term.is_empty() && term != "dumb" {
            true => Self::Screen,
            false => Self::Log { due: DELAY },
        }
    }
}

/// Shows the counts of a run.
#[derive(Debug)]
pub(super) struct ProgressLine {
    tool: Tool,
    charset: Charset,
    counts: Arc<Counts>,
    start: Instant,
    shared: Arc<LineState>,
    medium: Medium,
    /// The speed that is shown: bytes of a copy, entries of a removal.
    speed: Speed,
    work_speed: Speed,
    activity: Activity,
}

impl ProgressLine {
    pub(super) fn new(
        watch: &Watch,
        charset: Charset,
        start: Instant,
        shared: Arc<LineState>,
    ) -> Self {
        Self {
            tool: watch.tool,
            charset,
            counts: Arc::clone(&watch.counts),
            start,
            shared,
            medium: Medium::of_stderr(),
            speed: Speed::default(),
            work_speed: Speed::default(),
            activity: Activity::default(),
        }
    }

    /// Returns the text after `elapsed` time of the run, at most so many columns wide.
    fn text(&mut self, elapsed: Duration, columns: usize) -> String {
        let (entries, bytes) = (self.counts.entries(), self.counts.bytes());
        let amount = match self.tool {
            Tool::Copy => bytes,
            Tool::Remove => entries,
        };
        let work = self.counts.work();
        let active = self.activity.time(elapsed);
        let per_second = self.speed.update(amount, active);
        let work_per_second = self.work_speed.update(work, active);
        let found = self.shared.scan.counts();
        let missed = self.shared.missed.get();
        let all = missed.map(|missed| (found.work() + missed) as f64);
        let all = all.or_else(|| self.shared.estimate(self.tool, entries));
        let work = work as f64;
        let all = all.map(|all| all.max(work).max(1.0));
        let left = all.and_then(|all| {
            let left = Duration::try_from_secs_f64((all - work) / work_per_second);
            left.ok().filter(|&left| left < LONGEST_ETA)
        });
        let view = View {
            tool: self.tool,
            entries,
            bytes,
            per_second: per_second as u64,
            elapsed,
            portion: all.map(|all| work / all),
            left,
            ahead: missed.map(|missed| Ahead {
                entries: entries.max(found.entries() + missed),
                bytes: bytes.max(found.bytes()),
            }),
            directory: self.counts.directory(),
        };
        view.line(columns, self.charset)
    }

    /// Draws the line. One that cannot be drawn does not count as lost output.
    pub(super) fn redraw(&mut self) {
        let elapsed = self.start.elapsed();
        self.activity.note(elapsed);
        if elapsed < DELAY {
            return;
        }
        if self.medium == Medium::Screen && !stderr().is_in_foreground() {
            // The user types there, so neither is the line drawn again nor cleared.
            Cursor::Elsewhere.record();
            return;
        }
        // A character in the last column could make the terminal begin a new line.
        let columns = usize::from(stderr().columns().unwrap_or(DEFAULT_COLUMNS)) - 1;
        let text = match &mut self.medium {
            Medium::Screen => format!("\r{}\x1b[K", self.text(elapsed, columns)),
            Medium::Log { due } if *due <= elapsed => {
                *due = elapsed + LOG_PERIOD;
                self.text(elapsed, usize::MAX) + "\n"
            }
            Medium::Log { .. } => return,
        };
        let newline = match Cursor::now() {
            Cursor::Prompt => "\n",
            Cursor::StatusLine | Cursor::Elsewhere => "",
        };
        match self.medium {
            Medium::Screen => Cursor::StatusLine.record(),
            Medium::Log { .. } => Cursor::Elsewhere.record(),
        }
        let _ = stderr().write_all([newline, &text].concat().as_bytes());
        self.shared.is_shown.store(true, Ordering::Relaxed);
    }
}

/// The time of the run in which the process was not stopped.
#[derive(Debug, Default)]
struct Activity {
    /// The time of the run at the last call.
    last: Duration,
    stopped: Duration,
}

impl Activity {
    /// Notes that the process is active at this time of the run.
    fn note(&mut self, elapsed: Duration) {
        let pause = elapsed.saturating_sub(std::mem::replace(&mut self.last, elapsed));
        if pause >= STOPPED_FROM {
            self.stopped += pause;
        }
    }

    /// Returns the part of this time of the run in which the process was active.
    fn time(&self, elapsed: Duration) -> Duration {
        elapsed.saturating_sub(self.stopped)
    }
}

/// An amount per second, of which old parts fade.
#[derive(Debug, Default)]
struct Speed {
    per_second: f64,
    amount: u64,
    time: Duration,
}

impl Speed {
    /// Takes the amount at `time` into account, and returns the speed.
    fn update(&mut self, amount: u64, time: Duration) -> f64 {
        /// A part of this length weighs as much as all parts before it.
        const FADING_SECONDS: f64 = 10.0;
        let seconds = time.saturating_sub(self.time).as_secs_f64();
        if seconds > 0.0 {
            let last = amount.saturating_sub(self.amount) as f64 / seconds;
            // In the first seconds this is the plain average.
            let fading = seconds / (seconds + FADING_SECONDS);
            let weight = fading.max(seconds / time.as_secs_f64());
            self.per_second += (last - self.per_second) * weight;
            (self.amount, self.time) = (amount, time);
        }
        self.per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_while_the_process_was_stopped_does_not_count() {
        let mut activity = Activity::default();
        let at = Duration::from_millis;
        for time in [100, 200, 1_900, 15_000, 15_100] {
            activity.note(at(time));
        }
        assert_eq!(activity.time(at(15_100)), at(2_000));
    }

    #[test]
    fn a_speed_is_an_average_in_which_old_parts_fade() {
        let mut speed = Speed::default();
        let at = Duration::from_secs;
        assert_eq!(speed.update(100, at(1)), 100.0);
        assert_eq!(speed.update(400, at(2)), 200.0);
        for time in 3..100 {
            speed.update(400, at(time));
        }
        assert!(speed.update(400, at(100)) < 1.0);
    }
}
