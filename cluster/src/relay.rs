//! Sends the output of a rank to rank 0, which prints it.
//!
//! Launchers pass on the output of each rank in pieces that may end anywhere. So lines of several ranks would
//! mix: with Open MPI, 249 of 31,801 lines of `-v` on two ranks. Only the output of rank 0 stays whole.

use crossbeam_channel::Sender;
use fuc_cli::console;

use crate::message::{Outgoing, Text};

/// Passes the output of a rank that assists to its main thread.
#[derive(Debug)]
pub(crate) struct Relay(pub(crate) Sender<Outgoing>);

impl Relay {
    fn send(&self, text: Text) {
        // The main thread listens until the engine has ended.
        let _ = self.0.send(Outgoing::Text(text));
    }
}

impl console::Relay for Relay {
    fn print(&self, lines: Vec<u8>) {
        self.send(Text::Lines(lines));
    }

    fn report(&self, lines: Vec<u8>) {
        self.send(Text::Diagnostics(lines));
    }
}
