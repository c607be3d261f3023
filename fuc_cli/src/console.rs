//! The three standard streams of a command: whole lines, none of them lost unnoticed.
//!
//! | stream | promise |
//! |---|---|
//! | stderr | Each diagnostic is one write, so lines of several threads or processes do not mix. A failed write cannot be reported, but makes the exit status 1. |
//! | stdin | Each prompt reads one line. No thread prints while a prompt waits. |
//! | stdout | Lines are written in large pieces, or at once on a terminal. A failed write is reported at the end and makes the exit status 1. |
//!
//! stdout is flushed before each diagnostic, as the C library's `error` does. If both streams go to
//! one place, a failure therefore follows the lines of everything that was done before it. A prompt
//! does not flush stdout.
//!
//! Diagnostics begin with the last component of argv\[0\], as in GNU's tools. Prompts and errors about
//! an option begin with all of it.

use std::ffi::OsStr;
use std::fmt;
use std::io::Write;
use std::sync::{Mutex, MutexGuard};

use crate::cursor::{CLEAR_LINE, Cursor};
use crate::flags::UsageError;
use crate::locale::Charset;
use crate::prompt::Answers;
use crate::quote;
use crate::stdout_buffer::StdoutBuffer;
use crate::streams::stderr;
use crate::sync::lock;

/// Draws a line at the bottom of a terminal, such as one that shows progress, in place of an earlier drawing. Records where
/// the cursor is then.
///
/// The console calls it under its lock, so it never mixes with other output.
pub(crate) type StatusLine = Box<dyn FnMut() + Send>;

/// Whole lines for one of the streams.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "distribute", derive(serde::Serialize, serde::Deserialize))]
pub enum Output {
    /// Lines for stdout.
    Lines(Vec<u8>),
    /// Lines for stderr.
    Diagnostics(Vec<u8>),
}

/// Receives the output of a console in place of stdout and stderr: another process prints it.
///
/// The console calls it under its lock. So it receives everything in order.
pub type Relay = Box<dyn Fn(Output) + Send>;

/// stdin, stdout and stderr of a command.
pub struct Console {
    program: Vec<u8>,
    charset: Charset,
    streams: Mutex<Streams>,
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").finish_non_exhaustive()
    }
}

impl Console {
    /// Makes the console of a command whose argv\[0\] is `program`.
    #[must_use]
    pub fn new(program: Vec<u8>, charset: Charset) -> Self {
        Self {
            program,
            charset,
            streams: Mutex::default(),
        }
    }

    /// Makes a console that gives all output to `relay`. [`ask`](Self::ask) must not be called.
    #[must_use]
    pub fn relayed(program: Vec<u8>, charset: Charset, relay: Relay) -> Self {
        let streams = Streams {
            relay: Some(relay),
            ..Streams::default()
        };
        Self {
            program,
            charset,
            streams: Mutex::new(streams),
        }
    }

    /// Returns the charset in which names are shown.
    #[must_use]
    pub fn charset(&self) -> Charset {
        self.charset
    }

    /// Returns argv\[0\].
    #[must_use]
    pub fn program(&self) -> &[u8] {
        &self.program
    }

    /// Returns a file name as diagnostics show it.
    #[must_use]
    pub fn quoted(&self, name: impl AsRef<OsStr>) -> String {
        quote::always(name, self.charset)
    }

    /// Prints what another process has relayed.
    pub fn output(&self, output: &Output) {
        match output {
            Output::Lines(lines) => self.print(&[lines]),
            Output::Diagnostics(lines) => self.write_stderr(lines),
        }
    }

    /// Adds whole lines to stdout. Lines of other threads do not get between them.
    pub fn print(&self, lines: &[&[u8]]) {
        self.streams().print(lines);
    }

    /// Writes a diagnostic to stderr, with the command's name before each line.
    pub fn error(&self, diagnostic: impl AsRef<[u8]>) {
        let name = last_component(&self.program);
        let mut text = Vec::new();
        for line in diagnostic.as_ref().split(|&byte| byte == b'\n') {
            push_line(&mut text, name, line);
        }
        self.streams().write_stderr(&text);
    }

    /// Writes a usage error to stderr, and below it its suggestion and the lines of `advice`; see
    /// [`Advice`](crate::flags::Advice).
    pub fn usage_error(&self, error: &UsageError, advice: &[u8]) {
        let name = match error.is_about_an_option() {
            true => &self.program,
            false => last_component(&self.program),
        };
        let mut text = Vec::new();
        push_line(&mut text, name, &error.message);
        if let Some(suggestion) = &error.suggestion {
            push_line(&mut text, name, suggestion.as_bytes());
        }
        text.extend_from_slice(advice);
        self.streams().write_stderr(&text);
    }

    /// Returns a line with the command's name before `text`.
    pub(crate) fn line_of(&self, text: &str) -> Vec<u8> {
        let mut line = Vec::new();
        push_line(&mut line, last_component(&self.program), text.as_bytes());
        line
    }

    /// Writes whole lines to stderr.
    pub fn write_stderr(&self, lines: &[u8]) {
        self.streams().write_stderr(lines);
    }

    /// Returns `true` if stderr is a terminal.
    #[must_use]
    pub fn stderr_is_terminal(&self) -> bool {
        stderr().is_terminal()
    }

    /// Asks on stderr, with the command's name before the question, and reads a line of stdin.
    /// No thread prints until then. Returns `true` if the answer is yes. The end of stdin means no.
    pub fn ask(&self, question: &str) -> bool {
        let mut streams = self.streams();
        streams.clear_status_line();
        // Recorded first, so that the answer to a signal never follows the prompt on its line.
        Cursor::Prompt.record();
        streams.write(&[&self.program, &b": "[..], question.as_bytes(), b"? "].concat());
        let reply = streams.answers.read();
        if !reply.leaves_cursor_behind_prompt() {
            Cursor::Elsewhere.record();
        }
        reply.is_yes
    }

    /// Keeps a line until the end of the run, when a user at a terminal sees it once.
    pub fn advise(&self, line: Vec<u8>) {
        let advice = &mut self.streams().advice;
        if !advice.contains(&line) {
            advice.push(line);
        }
    }

    /// Writes the lines that were kept.
    pub(crate) fn write_advice(&self) {
        let advice = std::mem::take(&mut self.streams().advice);
        if !advice.is_empty() && self.stderr_is_terminal() {
            for line in advice {
                self.error(line);
            }
        }
    }

    /// Shows `line` below all other output, in place of an earlier status line.
    pub(crate) fn set_status_line(&self, line: Option<StatusLine>) {
        let mut streams = self.streams();
        streams.clear_status_line();
        streams.status_line = line;
    }

    /// Redraws the status line; returns `false` if there is none.
    pub(crate) fn redraw_status_line(&self) -> bool {
        let mut streams = self.streams();
        let Some(redraw) = &mut streams.status_line else {
            return false;
        };
        redraw();
        true
    }

    /// Flushes stdout, and reports output and answers that were lost. Returns `true` if all output reached its destination,
    /// and all answers could be read.
    #[must_use = "lost output makes the exit status 1"]
    pub fn finish(&self) -> bool {
        let (input_failure, output_failure) = {
            let mut streams = self.streams();
            streams.clear_status_line();
            if streams.relay.is_some() {
                streams.flush_stdout();
                return true;
            }
            (streams.answers.take_failure(), streams.stdout.finish())
        };
        let mut is_complete = true;
        for line in input_failure.into_iter().chain(output_failure) {
            self.error(line);
            is_complete = false;
        }
        is_complete && !self.streams().lost_stderr
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        // If another thread panicked, the streams hold whole lines, so go on.
        lock(&self.streams)
    }
}

fn last_component(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|&byte| byte == b'/');
    &path[slash.map_or(0, |slash| slash + 1)..]
}

fn push_line(text: &mut Vec<u8>, name: &[u8], line: &[u8]) {
    text.extend_from_slice(name);
    text.extend_from_slice(b": ");
    text.extend_from_slice(line);
    text.push(b'\n');
}

/// The state of the streams, which one thread uses at a time.
#[derive(Default)]
struct Streams {
    stdout: StdoutBuffer,
    lost_stderr: bool,
    answers: Answers,
    status_line: Option<StatusLine>,
    advice: Vec<Vec<u8>>,
    /// Receives the output instead of stdout and stderr.
    relay: Option<Relay>,
}

impl Streams {
    fn print(&mut self, lines: &[&[u8]]) {
        self.stdout.push(lines);
        let is_due = match self.relay {
            None => self.stdout.is_due(),
            Some(_) => self.stdout.is_full(),
        };
        if is_due {
            self.flush_stdout();
        }
    }

    fn flush_stdout(&mut self) {
        if self.stdout.is_empty() {
            return;
        }
        if let Some(relay) = &self.relay {
            relay(Output::Lines(self.stdout.take()));
            return;
        }
        self.clear_status_line();
        self.stdout.flush();
    }

    /// Flushes stdout first, under the same lock: lines that are printed later must not precede `text`.
    fn write_stderr(&mut self, text: &[u8]) {
        self.flush_stdout();
        match &self.relay {
            None => {
                self.clear_status_line();
                self.write(text);
            }
            Some(relay) => relay(Output::Diagnostics(text.to_vec())),
        }
    }

    fn write(&mut self, text: &[u8]) {
        self.lost_stderr |= stderr().write_all(text).is_err();
    }

    /// Makes room for other output, which may follow a prompt on its line.
    fn clear_status_line(&mut self) {
        if Cursor::now() == Cursor::StatusLine {
            // A line that cannot be cleared does not count as lost output.
            let _ = stderr().write_all(CLEAR_LINE.as_bytes());
        }
        Cursor::Elsewhere.record();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_relay_receives_all_output_in_order() {
        let record = Arc::<Mutex<Vec<Output>>>::default();
        let calls = Arc::clone(&record);
        let relay = Box::new(move |output| calls.lock().unwrap().push(output));
        let console = Console::relayed(b"/bin/rmz".to_vec(), Charset::Ascii, relay);
        console.print(&[b"a", b"\n"]);
        console.print(&[b"b\n"]);
        console.error("c");
        console.print(&[b"d\n"]);
        assert!(console.finish());
        let expected = [
            Output::Lines(b"a\nb\n".to_vec()),
            Output::Diagnostics(b"rmz: c\n".to_vec()),
            Output::Lines(b"d\n".to_vec()),
        ];
        assert_eq!(*record.lock().unwrap(), expected);
    }
}
