//! Lines for stdout, collected and written in large pieces.

use std::fmt;
use std::io::{self, Write};

use crate::streams::Stdout;

/// The buffer is flushed when it holds this many bytes.
const PIECE_BYTES: usize = 32 * 1024;

/// Collects whole lines, and remembers the first failed write.
#[derive(Default)]
pub(crate) struct StdoutBuffer {
    pending: Vec<u8>,
    failure: Option<io::Error>,
    /// `Some(true)` if stdout is a terminal. Set when the first line is written.
    is_terminal: Option<bool>,
}

impl StdoutBuffer {
    /// Returns `true` if nothing is pending.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Adds the parts of whole lines.
    pub(crate) fn push(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.pending.extend_from_slice(part);
        }
    }

    /// Returns `true` if the buffer should be flushed now; on a terminal, after each line.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_terminal = *self.is_terminal.get_or_insert_with(|| Stdout.is_terminal());
        is_terminal || self.pending.len() >= PIECE_BYTES
    }

    /// Writes out everything that is pending.
    pub(crate) fn flush(&mut self) {
        self.flush_to(&mut Stdout);
    }

    /// Returns the first failure of a write, once.
    pub(crate) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    fn flush_to(&mut self, stdout: &mut impl Write) {
        let written = stdout.write_all(&self.pending);
        self.pending.clear();
        if let Err(error) = written {
            self.failure.get_or_insert(error);
        }
    }
}

impl fmt::Debug for StdoutBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdoutBuffer")
            .field("pending_bytes", &self.pending.len())
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wording::errno_text;
    use std::fs::File;

    #[test]
    fn remembers_the_first_failure_and_goes_on() {
        let mut full = File::options().write(true).open("/dev/full").unwrap();
        let mut buffer = StdoutBuffer::default();
        for _ in 0..2 {
            buffer.push(&[b"more\n"]);
            buffer.flush_to(&mut full);
        }
        assert!(buffer.is_empty());
        let failure = buffer.take_failure().unwrap();
        assert_eq!(errno_text(&failure), "No space left on device");
    }
}
