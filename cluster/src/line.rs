//! The engine's connection to the main thread of its rank.

use crossbeam_channel::{Receiver, Sender};
use fuc_cli::locale::Charset;
use fuc_cli::reporter::Verbosity;
use fuc_engine::distribute::{Exchange, Given, Incoming, Stolen, Ticket};

use crate::message::{Outgoing, Rank};
use crate::relay::Relay;

/// The end of the connection at the engine.
#[derive(Debug)]
pub struct Line {
    rank: Rank,
    outgoing: Sender<Outgoing>,
    incoming: Receiver<Incoming>,
}

/// The end of the connection at the main thread.
#[derive(Debug)]
pub struct Socket {
    pub(crate) outgoing: Receiver<Outgoing>,
    pub(crate) incoming: Sender<Incoming>,
}

/// Connects the engine of `rank` with its main thread.
#[must_use]
pub fn connect(rank: Rank) -> (Line, Socket) {
    let (send_out, outgoing) = crossbeam_channel::unbounded();
    let (send_in, incoming) = crossbeam_channel::unbounded();
    let line = Line {
        rank,
        outgoing: send_out,
        incoming,
    };
    let socket = Socket {
        outgoing,
        incoming: send_in,
    };
    (line, socket)
}

impl Line {
    fn send(&self, message: Outgoing) {
        // The main thread listens until the engine has ended.
        let _ = self.outgoing.send(message);
    }

    /// Returns an observer whose output goes to rank 0.
    #[must_use]
    pub fn relay(&self, charset: Charset, verbosity: Verbosity) -> Relay {
        Relay::new(self.outgoing.clone(), charset, verbosity)
    }

    /// Waits until the job ends, without an engine.
    pub fn wait_for_end(&self) {
        while !matches!(self.receive(), Incoming::End) {}
        self.end();
    }
}

impl Exchange for Line {
    fn engine(&self) -> u32 {
        self.rank
    }

    fn receive(&self) -> Incoming {
        self.incoming.recv().unwrap_or(Incoming::End)
    }

    fn steal(&self) {
        self.send(Outgoing::Steal);
    }

    fn give(&self, stolen: Vec<Stolen>) {
        self.send(Outgoing::Give(stolen));
    }

    fn give_back(&self, ticket: Ticket, given: Given) {
        self.send(Outgoing::GiveBack(ticket, given));
    }

    fn end(&self) {
        self.send(Outgoing::End);
    }
}
