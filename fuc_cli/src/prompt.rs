//! Answers that the user types on stdin, one line for each prompt.
//!
//! Nothing is read after the end of stdin. If stdin cannot be read, the exit status is 1.

use std::ffi::CString;
use std::io::{self, ErrorKind, Read};

use crate::streams::stdin;
use crate::sys::{is_affirmative, received_signal};
use crate::wording::errno_text;

/// Reads the answers, and remembers that no more can be read.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// `true` after the end of stdin, even on a terminal, on which the user could type more.
    has_ended: bool,
    /// `true` if stdin could not be read.
    has_failed: bool,
}

/// An answer, and how it was typed.
pub(crate) struct Reply {
    pub(crate) is_yes: bool,
    has_newline: bool,
}

impl Reply {
    /// Returns `true` if the cursor is still behind the prompt: no terminal has shown a typed newline.
    pub(crate) fn leaves_cursor_behind_prompt(&self) -> bool {
        !self.has_newline || !stdin().is_terminal()
    }
}

impl Answers {
    /// Reads the answer to a prompt. The end of stdin means no.
    pub(crate) fn read(&mut self) -> Reply {
        let line = match self.has_ended {
            true => Ok(Vec::new()),
            false => read_line(),
        };
        self.has_failed |= line.is_err();
        let line = line.unwrap_or_default();
        self.has_ended |= line.is_empty();
        let text = line.split(|byte| matches!(byte, 0 | b'\n')).next();
        let text = CString::new(text.unwrap_or_default()).expect("BUG: a NUL before the first NUL");
        Reply {
            is_yes: !line.is_empty() && is_affirmative(&text),
            has_newline: line.ends_with(b"\n"),
        }
    }

    /// Returns the diagnostic for a stdin that could not be read. The second call returns `None`.
    pub(crate) fn take_failure(&mut self) -> Option<String> {
        // GNU's tools report a failed read when they close stdin, and then without a reason.
        std::mem::take(&mut self.has_failed).then(|| match stdin().descriptor() {
            Ok(_) => "error closing file".to_owned(),
            Err(reason) => format!("error closing file: {}", errno_text(&reason)),
        })
    }
}

/// Returns the next line with its newline, and nothing at the end of stdin.
///
/// Reads byte by byte: the input after the newline belongs to the next reader of stdin, such as
/// the next command of a script.
fn read_line() -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\n") {
        match stdin().read(&mut byte) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {
                // After an interrupt no more answers are read.
                if received_signal().is_some() {
                    return Ok(Vec::new());
                }
            }
            Ok(0) => break,
            read => line.extend(&byte[..read?]),
        }
    }
    Ok(line)
}
