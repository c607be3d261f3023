//! Lines for stdout, collected and written in large pieces.

use std::io::{self, Write};

use crate::streams::stdout;
use crate::wording::errno_text;

/// The buffer is flushed when it holds this many bytes.
const PIECE_BYTES: usize = 32 * 1024;

/// Collects whole lines, and remembers that a write failed.
#[derive(Default)]
pub(crate) struct StdoutBuffer {
    pending: Vec<u8>,
    has_failed: bool,
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

    /// Returns `true` if there is enough for a large piece.
    pub(crate) fn is_full(&self) -> bool {
        self.pending.len() >= PIECE_BYTES
    }

    /// Returns `true` if the buffer should be flushed now; on a terminal, after each line.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_terminal = *self
            .is_terminal
            .get_or_insert_with(|| stdout().is_terminal());
        is_terminal || self.is_full()
    }

    /// Removes everything that is pending, and returns it.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }

    /// Writes out everything that is pending.
    pub(crate) fn flush(&mut self) {
        // As in GNU's tools, the reason is not kept.
        let _ = self.flush_to(&mut stdout());
    }

    /// Writes out the rest. Returns a diagnostic if output did not reach its destination, with the reason if the last
    /// write has failed.
    pub(crate) fn finish(&mut self) -> Option<String> {
        let written = match self.flush_to(&mut stdout()) {
            // A closed stdout cannot be closed again, which fails in GNU's tools.
            Ok(()) if self.has_failed => stdout().descriptor().map(drop),
            written => written,
        };
        self.has_failed.then(|| match written {
            Ok(()) => "write error".to_owned(),
            Err(reason) => format!("write error: {}", errno_text(&reason)),
        })
    }

    fn flush_to(&mut self, stdout: &mut impl Write) -> io::Result<()> {
        let written = stdout.write_all(&self.pending);
        self.pending.clear();
        self.has_failed |= written.is_err();
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn remembers_a_failure_and_goes_on() {
        let mut full = File::options().write(true).open("/dev/full").unwrap();
        let mut buffer = StdoutBuffer::default();
        for _ in 0..2 {
            buffer.push(&[b"more\n"]);
            let failure = buffer.flush_to(&mut full).unwrap_err();
            assert_eq!(errno_text(&failure), "No space left on device");
        }
        assert!(buffer.is_empty());
        assert_eq!(buffer.finish().as_deref(), Some("write error"));
    }
}
