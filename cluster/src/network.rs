//! The ranks of an MPI job.

use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, MatchedReceiveVec, Root, Source};

use crate::message::Rank;
use crate::sys::Outbox;
use crate::transport::Transport;

/// The processes of the job that this one belongs to.
pub struct World {
    world: SimpleCommunicator,
    outbox: Outbox,
}

impl World {
    /// Returns the connection to all processes. MPI must be initialized, and this must be the thread that did it.
    #[must_use]
    pub fn of_this_job() -> Self {
        Self {
            world: SimpleCommunicator::world(),
            outbox: Outbox::default(),
        }
    }

    /// Returns the number of this rank.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.world.rank() as Rank
    }

    /// Returns the number of ranks.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.world.size() as u32
    }

    /// Sends `bytes` from rank 0 to all others, and returns them. All ranks must call it. Other ranks pass nothing.
    #[must_use]
    pub fn broadcast(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let root = self.world.process_at_rank(0);
        let mut length = bytes.len() as u64;
        root.broadcast_into(&mut length);
        bytes.resize(length as usize, 0);
        root.broadcast_into(&mut bytes[..]);
        bytes
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
