//! `rmz-mpi` and `cpz-mpi`: one removal or copy by many machines, connected by MPI.
//!
//! Each rank runs the engine of `rmz` and `cpz` on its own threads. Rank 0 leads, the
//! others assist; [`fuc_engine::distribute`] shows how directories change hands. Only
//! the main thread of a rank speaks MPI.
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
//! | [`job`] | the course of a job, from the command line of rank 0 to the status of all ranks |
//! | [`order`] | what rank 0 resolves for all ranks: operation, operands, options, working directory |
//! | `engine` | the engine of a rank, made as the order says |
//! | [`flags`] | the flags of a command for several ranks |
//! | `full` | the end of a job when the dest is full |
//! | `division` | divides a large file between the ranks; no I/O |
//! | `large` | copies parts of large files |
//! | `homes` | the rank that keeps the hard links of a file |
//! | `peer` | the protocol of one rank: which others it asks for work, and when the job ends; no I/O, no clock |
//! | `message` | what an engine sends to its rank, and what ranks send each other, as bytes |
//! | `pace` | the limit of the entries or bytes per second |
//! | `launch` | mistakes in the way in which a job is started |
//! | `line` | the engine's connection to the main thread |
//! | `transport` | the loop of the main thread, and what it needs of a network |
//! | `network` | the same by MPI |
//! | `sys` | the calls of MPI that its crate has no safe form of |

mod division;
mod engine;
pub mod flags;
mod full;
mod homes;
pub mod job;
mod large;
mod launch;
mod line;
mod message;
mod network;
pub mod order;
mod pace;
mod peer;
mod sys;
mod transport;
