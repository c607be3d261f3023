//! Lines for people: whole, in one piece each, and never lost without a word.
//!
//! | stream | promise |
//! |---|---|
//! | stderr | one write per diagnostic, so lines of several threads or processes do not mix; failures are ignored, there is nobody to tell |
//! | stdin | one line for each question; while it is awaited, nobody prints |
//! | stdout | lines are collected and written in big pieces (each at once on a terminal); the first failed write is remembered and makes the exit status 1 |
//!
//! stdout is flushed before each diagnostic, as the C library's `error` does: where both go to one
//! place, a failure follows the lines of what was done before it.

use std::ffi::CString;
use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fuc_engine::process::{is_affirmative, stdin_was_closed, stdout_was_closed};
use fuc_engine::{Answer, Errno};

use crate::flags::Misuse;
use crate::locale::Charset;
use crate::quote;
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
        self.output().push(lines, &mut io::stdout());
    }

    /// Writes a diagnostic to stderr, the command's name in front of each line.
    pub fn complain(&self, diagnostic: &Diagnostic) {
        let mut text = Vec::with_capacity(self.program.len() + diagnostic.line.len() + 4);
        self.push_line(&mut text, &diagnostic.line);
        if let Some(advice) = diagnostic.advice {
            self.push_line(&mut text, advice.as_bytes());
        }
        self.write_stderr(&text);
    }

    /// Writes a usage error to stderr. `advice` is a line of its own below it; see [`Advice`](crate::flags::Advice).
    pub fn complain_of_misuse(&self, misuse: &Misuse, advice: &[u8]) {
        let mut text = Vec::new();
        self.push_line(&mut text, &misuse.message);
        text.extend_from_slice(advice);
        self.write_stderr(&text);
    }

    /// Asks on stderr, the command's name in front, and reads a line of stdin. Nothing else is
    /// printed until it is answered; no answer is no.
    pub fn ask(&self, question: &[u8]) -> Answer {
        let mut output = self.output();
        output.flush(&mut io::stdout());
        let text = [&self.program, &b": "[..], question, b"? "].concat();
        let _ = io::stderr().write_all(&text);
        match read_line() {
            Ok(line) if is_affirmative(&line) => Answer::Yes,
            Ok(_) => Answer::No,
            Err(error) => {
                output.read_failure.get_or_insert(error);
                Answer::No
            }
        }
    }

    /// Writes out what stdout still holds, and complains if anything printed was lost.
    pub fn finish(&self) -> Written {
        let failures = {
            let mut output = self.output();
            output.flush(&mut io::stdout());
            [
                ("error closing file", output.read_failure.take()),
                ("write error", output.failure.take()),
            ]
        };
        let mut written = Written::All;
        for (what, error) in failures {
            if let Some(error) = error {
                let line = format!("{what}: {}", errno_text(&error));
                self.complain(&line.into_bytes().into());
                written = Written::NotAll;
            }
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
        output.flush(&mut io::stdout());
        let _ = io::stderr().write_all(text);
    }

    fn output(&self) -> MutexGuard<'_, Output> {
        // A panic elsewhere leaves whole lines behind.
        self.stdout.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What stdout holds.
#[derive(Default)]
struct Output {
    pending: Vec<u8>,
    failure: Option<io::Error>,
    /// Why an answer could not be read.
    read_failure: Option<io::Error>,
    /// Whether each line goes out at once; found out with the first.
    is_terminal: Option<bool>,
}

impl Output {
    fn push(&mut self, lines: &[&[u8]], stdout: &mut (impl Write + IsTerminal)) {
        for part in lines {
            self.pending.extend_from_slice(part);
        }
        let at_once = *self.is_terminal.get_or_insert_with(|| stdout.is_terminal());
        if at_once || self.pending.len() >= PIECE_BYTES {
            self.flush(stdout);
        }
    }

    fn flush(&mut self, stdout: &mut impl Write) {
        if self.pending.is_empty() {
            return;
        }
        let written = if stdout_was_closed() {
            Err(Errno::BADF.into())
        } else {
            stdout
                .write_all(&self.pending)
                .and_then(|()| stdout.flush())
        };
        self.pending.clear();
        if let Err(error) = written {
            self.failure.get_or_insert(error);
        }
    }
}

/// A line of stdin, as far as its first NUL. Byte by byte: what follows belongs to
/// whoever reads stdin next, the next command of a script for one.
fn read_line() -> io::Result<CString> {
    if stdin_was_closed() {
        return Err(Errno::BADF.into());
    }
    let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut line = Vec::new();
    let mut byte = [0];
    while stdin.read(&mut byte)? == 1 && byte != *b"\n" {
        line.extend(byte);
    }
    let end = line.iter().position(|&byte| byte == 0);
    line.truncate(end.unwrap_or(line.len()));
    Ok(CString::new(line).expect("BUG: a NUL before the first NUL"))
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
    fn holds_lines_back_until_there_are_many() {
        let mut sink = File::open("/dev/null").unwrap();
        let mut output = Output::default();
        output.push(&[b"removed ", b"'x'", b"\n"], &mut sink);
        assert_eq!(output.pending, b"removed 'x'\n");
        assert!(output.failure.is_none());
    }

    #[test]
    fn remembers_the_first_failure_and_goes_on() {
        let mut full = File::options().write(true).open("/dev/full").unwrap();
        let mut output = Output::default();
        output.push(&[&[b'x'; PIECE_BYTES]], &mut full);
        output.push(&[b"more\n"], &mut full);
        output.flush(&mut full);
        assert!(output.pending.is_empty());
        let failure = output.failure.unwrap();
        assert_eq!(errno_text(&failure), "No space left on device");
    }
}
