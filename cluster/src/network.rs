//! The ranks of an MPI job.

use mpi::Threading;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, MatchedReceiveVec, Root, Source};

use crate::message::Rank;
use crate::sys::Outbox;
use crate::transport::Transport;

/// The most bytes of a broadcast by one call, because MPI counts in 31 bits.
const PIECE_BYTES: usize = 1 << 30;

/// Joins the job that this process was started for. The thread that calls it must make all other calls, too. When the
/// result is dropped, it waits for the other ranks.
///
/// # Errors
/// If MPI cannot be used. The error is a text for the user.
pub(crate) fn join() -> Result<Universe, &'static str> {
    match mpi::initialize_with_threading(Threading::Funneled) {
        None => Err("MPI cannot be initialized"),
        Some((_, provided)) if provided < Threading::Funneled => {
            Err("this MPI does not support programs with threads")
        }
        Some((universe, _)) => Ok(universe),
    }
}

/// The processes of the job that this one belongs to.
pub(crate) struct World {
    world: SimpleCommunicator,
    outbox: Outbox,
}

impl World {
    /// Returns the connection to all processes. MPI must be initialized, and this must be the thread that did it.
    #[must_use]
    pub(crate) fn of_this_job() -> Self {
        Self {
            world: SimpleCommunicator::world(),
            outbox: Outbox::default(),
        }
    }

    /// Returns the number of this rank.
    #[must_use]
    pub(crate) fn rank(&self) -> Rank {
        self.world.rank() as Rank
    }

    /// Returns the number of ranks.
    #[must_use]
    pub(crate) fn ranks(&self) -> u32 {
        self.world.size() as u32
    }

    /// Sends `bytes` from rank 0 to all others, and returns them. All ranks must call it. Other ranks pass nothing.
    #[must_use]
    pub(crate) fn broadcast(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let root = self.world.process_at_rank(0);
        let mut length = bytes.len() as u64;
        root.broadcast_into(&mut length);
        bytes.resize(length as usize, 0);
        for piece in bytes.chunks_mut(PIECE_BYTES) {
            root.broadcast_into(piece);
        }
        bytes
    }

    /// Returns the answers of all ranks to one question, `answer` being that of this rank. All ranks must call it.
    #[must_use]
    pub(crate) fn gather(&self, answer: bool) -> Vec<bool> {
        let mut answers = vec![false; self.ranks() as usize];
        self.world.all_gather_into(&answer, &mut answers[..]);
        answers
    }
}

impl Transport for World {
    fn send(&mut self, to: Rank, message: Vec<u8>) {
        self.outbox.send(&self.world, to as i32, message);
    }

    fn receive(&mut self) -> Option<(Rank, Vec<u8>)> {
        let probed = self.world.any_process().immediate_matched_probe()?;
        let (bytes, status) = probed.matched_receive_vec();
        Some((status.source_rank() as Rank, bytes))
    }

    fn is_flushed(&mut self) -> bool {
        self.outbox.is_empty()
    }
}
