//! `rmz-mpi`: one removal by many machines, connected by MPI.
//!
//! Each rank runs the engine of `rmz` on its own threads. Rank 0 [leads](fuc_engine::RemoveOp::lead), the others
//! [assist](fuc_engine::RemoveOp::assist); [`fuc_engine::distribute`] shows how directories change hands. Only the
//! main thread of a rank speaks MPI.
//!
//! ```text
//!   engine's threads                main thread                       other ranks
//!   ----------------                -----------                       -----------
//!   steal, give, give_back ──────▶  line ──▶ peer ──▶ transport ────▶ MPI
//!   receive                ◀──────  line ◀── peer ◀── transport ◀────
//! ```
//!
//! | module | content |
//! |---|---|
//! | [`peer`] | the protocol of one rank: which others it asks for work, and when the job ends; no I/O, no clock |
//! | [`message`] | what an engine sends to its rank, and what ranks send each other, as bytes |
//! | [`order`] | what rank 0 resolves for all ranks: operands, options, working directory |
//! | [`mod@line`] | the engine's connection to the main thread |
//! | [`relay`] | the output of a rank, which rank 0 prints |
//! | [`transport`] | the loop of the main thread, and what it needs of a network |
//! | [`network`] | the same by MPI |
//! | `sys` | the calls of MPI that its crate has no safe form of |

mod bytes;
pub mod line;
pub mod message;
pub mod network;
pub mod order;
pub mod peer;
pub mod relay;
mod sys;
pub mod transport;
