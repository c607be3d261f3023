//! The engine's connection to the main thread of its rank.

use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use fuc_cli::console::Console;
use fuc_cli::rate::MaxRate;
use fuc_engine::Cancel;
use fuc_engine::distribute::{Exchange, Incoming, LargeCopy, Reply, Stolen, Ticket};

use crate::division::{Division, Divisions};
use crate::homes::Homes;
use crate::large;
use crate::message::{Outgoing, Part, Rank};
use crate::order::Surroundings;
use crate::pace::Pace;

/// The size from which the ranks copy a file together.
const DIVIDED_FROM: u64 = 32 << 20;
/// The same on MooseFS 3.0.117, where that takes longer by [`LATE`].
const DIVIDED_ON_MOOSEFS_FROM: u64 = 256 << 20;
/// The time after which MooseFS has replaced the time of modification of a file that two clients have written to. A time that
/// was set 1.2 s after both had closed the file did not stay, and one after 1.6 s did.
const LATE: Duration = Duration::from_secs(3);
/// The longest time for which a worker waits for parts before it looks at other things.
const LOOK: Duration = Duration::from_millis(100);

/// The end of the connection at the engine.
#[derive(Debug)]
pub(crate) struct Line {
    rank: Rank,
    ranks: u32,
    homes: Homes,
    divisions: Arc<Divisions>,
    outgoing: Sender<Outgoing>,
    incoming: Receiver<Incoming>,
}

/// The end of the connection at the main thread.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) outgoing: Receiver<Outgoing>,
    pub(crate) incoming: Sender<Incoming>,
    pub(crate) divisions: Arc<Divisions>,
    /// The parts that this rank must copy. A `None` ends the thread that gets it.
    pub(crate) parts: (Sender<Option<Part>>, Receiver<Option<Part>>),
}

/// Connects the engine of `rank`, of as many as `ranks`, with its main thread.
pub(crate) fn connect(rank: Rank, ranks: u32, homes: Homes) -> (Line, Socket) {
    let (send_out, outgoing) = crossbeam_channel::unbounded();
    let (send_in, incoming) = crossbeam_channel::unbounded();
    let divisions = Arc::<Divisions>::default();
    let line = Line {
        rank,
        ranks,
        homes,
        divisions: Arc::clone(&divisions),
        outgoing: send_out,
        incoming,
    };
    let socket = Socket {
        outgoing,
        incoming: send_in,
        divisions,
        parts: crossbeam_channel::unbounded(),
    };
    (line, socket)
}

impl Line {
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
                    tickets.for_each(|ticket| self.give_back(ticket, Reply::NotReached));
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

    fn give_back(&self, ticket: Ticket, reply: Reply) {
        self.send(Outgoing::GiveBack(ticket, reply));
    }

    fn divides(&self, bytes: u64) -> bool {
        self.ranks > 1 && bytes >= DIVIDED_FROM
    }

    fn divide(
        &self,
        copy: &LargeCopy,
        range: Range<u64>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> bool {
        let is_late = large::is_on_moosefs(&copy.dest);
        if is_late && copy.bytes < DIVIDED_ON_MOOSEFS_FROM {
            return false;
        }
        let mut division = Division::new(self.rank, self.ranks, range);
        let (file, answers) = self.divisions.begin();
        let mut is_wanted = true;
        // The file stays until no rank writes to it any more.
        loop {
            while is_wanted && let Some((rank, range)) = division.next() {
                let part = Part {
                    owner: self.rank,
                    file,
                    copy: copy.clone(),
                    range,
                };
                self.send(Outgoing::Divide(rank, part.into()));
            }
            if !division.is_under_way() {
                break;
            }
            if let Ok((rank, answer)) = answers.recv_timeout(LOOK) {
                division.note(rank, answer);
            }
            is_wanted = is_wanted && goes_on();
        }
        self.divisions.end(file);
        if is_late {
            thread::sleep(LATE);
        }
        is_wanted && division.is_complete()
    }

    fn end(&self) {
        self.send(Outgoing::End);
    }
}
