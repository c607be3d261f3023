//! Sends the output of a rank to rank 0, which prints it.
//!
//! Launchers pass on the output of each rank in pieces that may end anywhere. So lines of several ranks would
//! mix: with Open MPI, 249 of 31,801 lines of `-v` on two ranks. Only the output of rank 0 stays whole.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_channel::Sender;
use fuc_cli::locale::Charset;
use fuc_cli::quote;
use fuc_cli::reporter::Verbosity;
use fuc_cli::wording::{self, Tool};
use fuc_engine::{Error, Event, Observer};

use crate::message::{Outgoing, Text};

/// Lines are sent when there are this many bytes of them.
const PIECE_BYTES: usize = 32 << 10;

/// The observer of a rank that assists. It words failures and lines as [`Reporter`](fuc_cli::reporter::Reporter)
/// does.
#[derive(Debug)]
pub struct Relay {
    outgoing: Sender<Outgoing>,
    charset: Charset,
    verbosity: Verbosity,
    lines: Mutex<Vec<u8>>,
}

impl Relay {
    pub(crate) fn new(outgoing: Sender<Outgoing>, charset: Charset, verbosity: Verbosity) -> Self {
        Self {
            outgoing,
            charset,
            verbosity,
            lines: Mutex::default(),
        }
    }

    /// Sends the lines that are left.
    pub fn flush(&self) {
        self.send_lines(&mut self.lines());
    }

    /// Sends a failure, after the lines before it.
    pub fn fail(&self, line: Vec<u8>) {
        let mut lines = self.lines();
        self.send_lines(&mut lines);
        self.send(Text::Failure(line));
    }

    fn removed(&self, action: &[u8], path: &Path) {
        let quoted = quote::always(path.as_os_str().as_encoded_bytes(), self.charset);
        let mut lines = self.lines();
        for part in [action, &quoted, b"\n"] {
            lines.extend_from_slice(part);
        }
        if lines.len() >= PIECE_BYTES {
            self.send_lines(&mut lines);
        }
    }

    fn send_lines(&self, lines: &mut Vec<u8>) {
        if !lines.is_empty() {
            self.send(Text::Lines(std::mem::take(lines)));
        }
    }

    fn send(&self, text: Text) {
        // The main thread listens until the engine has ended.
        let _ = self.outgoing.send(Outgoing::Text(text));
    }

    fn lines(&self) -> MutexGuard<'_, Vec<u8>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Relay {
    fn failed(&self, error: Error) {
        // Only failures of operands have advice, and those are rank 0's.
        self.fail(wording::describe(&error, Tool::Remove, self.charset).line);
    }

    fn wants_events(&self) -> bool {
        self.verbosity != Verbosity::Quiet
    }

    fn on_event(&self, event: Event<'_>) {
        match event {
            Event::Removed(path) => self.removed(b"removed ", path),
            Event::RemovedDirectory(path) => self.removed(b"removed directory ", path),
            _ => {}
        }
    }
}
