//! Copying trees.
//!
//! A directory's copy is made when the directory is opened and gets its final
//! mode when the last entry under it is finished, by the same climb that
//! removes a directory in a removal.

mod attributes;
mod backup;
mod data;
mod directory;
mod existing;
mod file;
mod holes;
mod item;
mod linking;
mod links;
mod node;
mod operand;
mod options;
mod parents;
mod preserve;
mod rules;
mod same_file;
mod settle;
mod sparse;
mod special;
mod tree;
mod unopened;
mod update;
mod xattrs;

pub use options::{CopyOp, CopyOptions, Dereference, Dest, LinkKind, Reflink, Sparse, copy_tree};
pub use preserve::{ModePolicy, Preserve, Xattrs};
pub use rules::{Backup, BackupNaming, DestRules, Replace};
