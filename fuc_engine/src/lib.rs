//! The engine under `rmz` and `cpz`: removes and copies trees.
mod copy;
mod descriptors;
mod error;
mod node;
mod observer;
mod operand;
pub mod process;
mod remove;
mod report;
mod sched;
mod sys;
mod walk;

pub use copy::{CopyOp, CopyOptions, Dest, copy_tree};
pub use error::{Cause, Error, Operation, Refusal};
pub use observer::{Done, Observer, Summary};
pub use remove::{RemoveOp, RemoveOptions, remove_tree};
pub use rustix::io::Errno;
