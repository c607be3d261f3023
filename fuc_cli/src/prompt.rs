//! Answers that the user types on stdin, one line for each prompt.
//!
//! Nothing is read after the end of stdin. If stdin cannot be read, the exit status is 1.

use std::ffi::CString;
use std::io::IsTerminal;

use fuc_engine::Answer;
use rustix::io::Errno;
use rustix::stdio;

use crate::sys::{is_affirmative, received_signal, stdin_was_closed};
use crate::wording::errno_text;

/// Reads the answers, and remembers that no more can be read.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// `true` after the end of stdin, even on a terminal, on which the user could type more.
    has_ended: bool,
    failure: Option<Unreadable>,
}

/// An answer, and how it was typed.
pub(crate) struct Reply {
    pub(crate) answer: Answer,
    has_newline: bool,
}

impl Reply {
    /// Returns `true` if the cursor is still behind the prompt: no terminal has shown a typed newline.
    pub(crate) fn leaves_cursor_behind_prompt(&self) -> bool {
        !self.has_newline || !stdin_is_terminal()
    }
}

/// A line of stdin, up to its first NUL.
enum Line {
    /// With a newline at its end.
    Whole(CString),
    /// The end of stdin came instead of a newline.
    Unended(CString),
    End,
    Unreadable(Unreadable),
}

/// The reason why stdin cannot be read.
#[derive(Clone, Copy, Debug)]
enum Unreadable {
    WasClosed,
    ReadFailed,
}

impl Answers {
    /// Reads the answer to a prompt. The end of stdin means no.
    pub(crate) fn read(&mut self) -> Reply {
        let line = if self.has_ended {
            Line::End
        } else {
            read_line()
        };
        let has_newline = matches!(line, Line::Whole(_));
        let answer = match line {
            Line::Whole(line) | Line::Unended(line) if is_affirmative(&line) => Answer::Yes,
            Line::Whole(_) | Line::Unended(_) => Answer::No,
            Line::End => {
                self.has_ended = true;
                Answer::No
            }
            Line::Unreadable(failure) => {
                self.has_ended = true;
                self.failure = Some(failure);
                Answer::No
            }
        };
        Reply {
            answer,
            has_newline,
        }
    }

    /// Returns the diagnostic for a stdin that could not be read. The second call returns `None`.
    pub(crate) fn take_failure(&mut self) -> Option<String> {
        // GNU's tools report a failed read when they close stdin, and then without a reason.
        Some(match self.failure.take()? {
            Unreadable::WasClosed => {
                let reason = errno_text(&Errno::BADF.into());
                format!("error closing file: {reason}")
            }
            Unreadable::ReadFailed => "error closing file".to_owned(),
        })
    }
}

fn stdin_is_terminal() -> bool {
    !stdin_was_closed() && stdio::stdin().is_terminal()
}

/// Reads byte by byte: the input after the newline belongs to the next reader of stdin, such as
/// the next command of a script.
fn read_line() -> Line {
    if stdin_was_closed() {
        return Line::Unreadable(Unreadable::WasClosed);
    }
    let mut line = Vec::new();
    let mut byte = [0];
    let kind: fn(CString) -> Line = loop {
        match rustix::io::read(stdio::stdin(), &mut byte) {
            // After an interrupt no more answers are read.
            Err(Errno::INTR) if received_signal().is_some() => return Line::End,
            Err(Errno::INTR) => {}
            Ok(0) if line.is_empty() => return Line::End,
            Ok(0) => break Line::Unended,
            Ok(_) if byte == *b"\n" => break Line::Whole,
            Ok(_) => line.extend(byte),
            Err(_) => return Line::Unreadable(Unreadable::ReadFailed),
        }
    };
    let end = line.iter().position(|&byte| byte == 0);
    line.truncate(end.unwrap_or(line.len()));
    kind(CString::new(line).expect("BUG: a NUL before the first NUL"))
}
