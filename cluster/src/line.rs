//! The engine's connection to the main thread of its rank.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender};
use fuc_cli::console::Console;
use fuc_cli::rate::MaxRate;
use fuc_engine::Cancel;
use fuc_engine::distribute::{Exchange, Given, Incoming, LargeCopy, Stolen, Ticket};

use crate::homes::Homes;
use crate::message::{Outgoing, Rank};
use crate::order::Surroundings;
use crate::pace::Pace;

/// The end of the connection at the engine.
#[derive(Debug)]
pub(crate) struct Line {
    rank: Rank,
    homes: Homes,
    /// The size from which the ranks copy a file together, if they do.
    divided_from: Option<u64>,
    /// The files that they copy together after the run.
    large: Mutex<Vec<LargeCopy>>,
    outgoing: Sender<Outgoing>,
    incoming: Receiver<Incoming>,
}

/// The end of the connection at the main thread.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) outgoing: Receiver<Outgoing>,
    pub(crate) incoming: Sender<Incoming>,
}

/// Connects the engine of `rank` with its main thread. The ranks copy files from a size together, if there is one.
pub(crate) fn connect(rank: Rank, homes: Homes, divided_from: Option<u64>) -> (Line, Socket) {
    let (send_out, outgoing) = crossbeam_channel::unbounded();
    let (send_in, incoming) = crossbeam_channel::unbounded();
    let line = Line {
        rank,
        homes,
        divided_from,
        large: Mutex::default(),
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
    fn large(&self) -> MutexGuard<'_, Vec<LargeCopy>> {
        // No change is left half done by a panic.
        self.large.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the way for messages of other threads to the main thread.
    pub(crate) fn outgoing(&self) -> Sender<Outgoing> {
        self.outgoing.clone()
    }

    pub(crate) fn send(&self, message: Outgoing) {
        // The main thread listens until the engine has ended.
        let _ = self.outgoing.send(message);
    }

    /// Returns a console whose output rank 0 prints.
    ///
    /// Launchers pass on the output of each rank in pieces that may end anywhere. So lines of several ranks would
    /// mix: with Open MPI, 249 of 31,801 lines of `-v` on two ranks. Only the output of rank 0 stays whole.
    pub(crate) fn console(&self, surroundings: &Surroundings) -> Console {
        let program = surroundings.program.clone();
        let outgoing = self.outgoing.clone();
        // The main thread listens until the engine has ended.
        let relay = move |output| drop(outgoing.send(Outgoing::Text(output)));
        Console::relayed(program, surroundings.charset, Box::new(relay))
    }

    /// Returns the permits of this rank, which the main thread asks for.
    pub(crate) fn pace(&self, rate: MaxRate, cancel: &Cancel) -> Pace {
        Pace::new(rate, cancel, self.outgoing.clone())
    }

    /// Waits until the job ends, in place of an engine. Gives back everything that this rank is given.
    pub(crate) fn wait_for_end(&self) {
        loop {
            match self.receive() {
                Incoming::Stolen(stolen) => {
                    let tickets = stolen.iter().map(Stolen::ticket);
                    tickets.for_each(|ticket| self.give_back(ticket, Given::NotReached));
                }
                Incoming::Request | Incoming::Returned(..) => {}
                Incoming::End => break,
            }
        }
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

    fn home(&self, inode: u64) -> u32 {
        self.homes.of(inode)
    }

    fn entrust(&self, engine: u32, stolen: Vec<Stolen>) {
        self.send(Outgoing::Entrust(engine, stolen));
    }

    fn give_back(&self, ticket: Ticket, given: Given) {
        self.send(Outgoing::GiveBack(ticket, given));
    }

    fn divide(&self, file: LargeCopy) -> bool {
        let is_divided = self.divided_from.is_some_and(|from| file.bytes >= from);
        if is_divided {
            self.large().push(file);
        }
        is_divided
    }

    fn end(&self) {
        let large = std::mem::take(&mut *self.large());
        self.send(Outgoing::End(large));
    }
}
