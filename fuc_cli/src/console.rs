//! Lines for people: whole, in one piece each, and never lost without a word.
//!
//! | stream | promise |
//! |---|---|
//! | stderr | one write per diagnostic, so lines of several threads or processes do not mix; a failure is told to nobody, but makes the exit status 1 |
//! | stdin | one line for each question, and nothing after its end; while a line is awaited, nobody prints; if none can be read, the exit status is 1 |
//! | stdout | lines are collected and written in big pieces (each at once on a terminal); the first failed write is remembered and makes the exit status 1 |
//!
//! stdout is flushed before each diagnostic, as the C library's `error` does: where both go to one
//! place, a failure follows the lines of what was done before it.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fuc_engine::{Answer, Counts, Errno};

use crate::flags::UsageError;
use crate::locale::Charset;
use crate::progress::Bar;
use crate::quote;
use crate::streams::{Line, Stderr, Stdout, read_line, stdin_is_terminal};
use crate::sys::is_affirmative;
use crate::wording::{Diagnostic, errno_text};

/// Lines are written out when so much has gathered.
const PIECE_BYTES: usize = 32 * 1024;

/// Whether all that was printed reached its destination, and all answers could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "what is lost makes the exit status 1"]
pub enum Written {
    /// It did.
    All,
    /// Something was not; the console has said so.
    NotAll,
}

/// stdin, stdout and stderr of a command.
#[derive(Debug)]
pub struct Console {
    program: Vec<u8>,
    charset: Charset,
    stdout: Mutex<Output>,
}

impl Console {
    /// The console of a command that is called `program`.
    #[must_use]
    pub fn new(program: Vec<u8>, charset: Charset) -> Self {
        Self {
            program,
            charset,
            stdout: Mutex::default(),
        }
    }

    /// What names may look like here.
    #[must_use]
    pub fn charset(&self) -> Charset {
        self.charset
    }

    /// The name that is in front of each diagnostic.
    #[must_use]
    pub fn program(&self) -> &[u8] {
        &self.program
    }

    /// A file name as diagnostics show it.
    #[must_use]
    pub fn quoted(&self, name: &[u8]) -> Vec<u8> {
        quote::always(name, self.charset)
    }

    /// Adds to stdout: whole lines, never parted by those of other threads.
    pub fn print(&self, lines: &[&[u8]]) {
        self.output().push(lines);
    }

    /// Writes a diagnostic to stderr, the command's name in front of each line.
    pub fn error(&self, diagnostic: &Diagnostic) {
        let mut text = Vec::with_capacity(self.program.len() + diagnostic.line.len() + 4);
        self.push_line(&mut text, &diagnostic.line);
        if let Some(advice) = diagnostic.advice {
            self.push_line(&mut text, advice.as_bytes());
        }
        self.write_stderr(&text);
    }

    /// Writes a usage error to stderr. `advice` is a line of its own below it; see [`Advice`](crate::flags::Advice).
    pub fn usage_error(&self, error: &UsageError, advice: &[u8]) {
        let mut text = Vec::new();
        self.push_line(&mut text, &error.message);
        text.extend_from_slice(advice);
        self.write_stderr(&text);
    }

    /// Asks on stderr, the command's name in front, and reads a line of stdin. Nothing else is
    /// printed until it is answered; no answer is no.
    pub fn ask(&self, question: &[u8]) -> Answer {
        let mut output = self.output();
        output.flush();
        output.write_stderr(&[&self.program, &b": "[..], question, b"? "].concat());
        let line = if output.input_has_ended {
            Line::End
        } else {
            read_line()
        };
        if let Some(bar) = &mut output.bar {
            // Only a whole line that is typed takes the cursor below the question.
            if !matches!(line, Line::Read(_)) || !stdin_is_terminal() {
                bar.follow_question();
            }
        }
        match line {
            Line::Read(line) | Line::Unended(line) if is_affirmative(&line) => return Answer::Yes,
            Line::Read(_) | Line::Unended(_) => {}
            Line::End => output.input_has_ended = true,
            Line::Unreadable(reason) => {
                output.input_has_ended = true;
                output.input_failure = Some(reason);
            }
        }
        Answer::No
    }

    /// Shows a line of progress from now on, or shows it no longer.
    pub(crate) fn show(&self, bar: Option<Bar>) {
        let mut output = self.output();
        output.clear_bar();
        output.bar = bar;
    }

    /// Draws the line of progress; `false` if there is none.
    pub(crate) fn draw(&self, counts: &Counts) -> bool {
        let mut output = self.output();
        let Some(bar) = &mut output.bar else {
            return false;
        };
        bar.draw(counts);
        true
    }

    /// Writes out what stdout still holds, and complains if anything printed was lost.
    pub fn finish(&self) -> Written {
        let (input_failure, failure) = {
            let mut output = self.output();
            output.flush();
            (output.input_failure.take(), output.failure.take())
        };
        let mut lines = Vec::new();
        match input_failure {
            Some(Some(reason)) => {
                let reason = errno_text(&reason.into());
                lines.push(format!("error closing file: {reason}"));
            }
            Some(None) => lines.push("error closing file".to_owned()),
            None => {}
        }
        if let Some(error) = failure {
            lines.push(format!("write error: {}", errno_text(&error)));
        }
        let mut written = Written::All;
        for line in lines {
            self.error(&line.into_bytes().into());
            written = Written::NotAll;
        }
        if self.output().lost_stderr {
            written = Written::NotAll;
        }
        written
    }

    fn push_line(&self, text: &mut Vec<u8>, line: &[u8]) {
        text.extend_from_slice(&self.program);
        text.extend_from_slice(b": ");
        text.extend_from_slice(line);
        text.push(b'\n');
    }

    fn write_stderr(&self, text: &[u8]) {
        // The lock is kept, so that no line of stdout that belongs after the diagnostic gets before it.
        let mut output = self.output();
        output.flush();
        output.write_stderr(text);
    }

    fn output(&self) -> MutexGuard<'_, Output> {
        // A panic elsewhere leaves whole lines behind.
        self.stdout.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What stdout holds, and what became of the streams.
#[derive(Default)]
struct Output {
    pending: Vec<u8>,
    failure: Option<io::Error>,
    /// Whether each line goes out at once; found out with the first.
    is_terminal: Option<bool>,
    lost_stderr: bool,
    /// Even on a terminal, where more could be typed.
    input_has_ended: bool,
    /// No answer could be read, for this reason if one is told.
    input_failure: Option<Option<Errno>>,
    /// The line of progress, below all others.
    bar: Option<Bar>,
}

impl Output {
    fn push(&mut self, lines: &[&[u8]]) {
        for part in lines {
            self.pending.extend_from_slice(part);
        }
        let at_once = *self.is_terminal.get_or_insert_with(|| Stdout.is_terminal());
        if at_once || self.pending.len() >= PIECE_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.flush_to(&mut Stdout);
    }

    fn flush_to(&mut self, stdout: &mut impl Write) {
        if self.pending.is_empty() {
            return;
        }
        self.clear_bar();
        let written = stdout.write_all(&self.pending);
        self.pending.clear();
        if let Err(error) = written {
            self.failure.get_or_insert(error);
        }
    }

    fn clear_bar(&mut self) {
        if let Some(bar) = &mut self.bar {
            bar.clear();
        }
    }

    fn write_stderr(&mut self, text: &[u8]) {
        self.clear_bar();
        self.lost_stderr |= Stderr.write_all(text).is_err();
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("pending_bytes", &self.pending.len())
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn remembers_the_first_failure_and_goes_on() {
        let mut full = File::options().write(true).open("/dev/full").unwrap();
        let mut output = Output::default();
        for _ in 0..2 {
            output.pending.extend_from_slice(b"more\n");
            output.flush_to(&mut full);
        }
        assert!(output.pending.is_empty());
        let failure = output.failure.unwrap();
        assert_eq!(errno_text(&failure), "No space left on device");
    }
}
