//! Starts, feeds and stops workers; knows nothing about files.
//!
//! A worker runs depth-first on its own stack of tasks and, when the [`gate`]
//! says that another one should be fed, gives away its *oldest* tasks: the
//! nearest to the root, so the biggest. No thread is started until the
//! [`governor`] has seen a backlog that is worth it. Idle workers block.
//!
//! ```text
//!             fed                    own stack empty
//!   (thread) -----> running (active) -----------------> idle: waits on the channel
//!                     |        ^                          |
//!     more active than|        | an active worker         | fed: the feeder counts it
//!     the governor    v        | goes idle, or the        | as active *before* it sends
//!     wants         parked ----+ governor wants more      +--> running
//! ```
//!
//! While a worker is long at one thing it can feed nobody: so where things have
//! been long it lays a *spare* task out in the channel, which the first worker that
//! runs out of tasks takes instead of going idle.
//!
//! **Why a run ends.** `active` counts the running workers and the messages in
//! the channel but for the spare one, which nobody goes idle before. Only a running worker makes tasks, and a worker is parked
//! only while another one is active, so when `active` falls to zero there
//! is no task anywhere, and whoever took it there tells the main thread.

mod gate;
mod governor;
mod worker;

pub(crate) use governor::Limits;
pub(crate) use worker::{Job, SLOW_OPERATION, Worker, scope};
