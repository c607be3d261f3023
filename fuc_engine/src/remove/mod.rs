//! Removing trees.
//!
//! One `unlinkat` a file, and for each directory what it takes to list it,
//! then one `unlinkat` by whoever finishes the last entry under it.

mod asking;
mod news;
mod node;
mod operand;
mod options;
mod tree;

pub use options::{Ask, RemoveOp, RemoveOptions, remove_tree};
