//! The measurement: the order and number of runs, the trees, and the clock.

mod busy;
mod calls;
mod contention;
pub(crate) mod execute;
pub(crate) mod place;
pub(crate) mod programs;
mod rounds;
pub(crate) mod schedule;
mod session;
mod steady;
mod timing;
pub(crate) mod tracer;
mod trees;
