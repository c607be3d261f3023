//! Removing trees.
//!
//! One `unlinkat` a file, and for each directory what it takes to list it,
//! then one `unlinkat` by whoever finishes the last entry under it.

mod options;
mod tree;

pub use options::{RemoveOp, RemoveOptions, remove_tree};
