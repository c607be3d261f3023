//! Tools for the tests of the engine and of both commands. Nothing here uses the engine, so that a bug in
//! it can't hide itself: this crate has its own code to build and walk trees, and removes them by GNU rm.
//!
//! - [`tree`] builds trees, and deletes them even if they are deep or have no permissions.
//! - [`snapshot`] records trees and describes how two of them differ.
//! - [`run`] runs a command, or a command and its GNU twin side by side.
//! - [`command_line`] compares the errors that a command and its GNU twin find in their arguments.
//! - [`installed`] checks the manual page of a command, and its completions in real shells.
//! - [`probe`] finds out what the machine can do, so that a test is skipped if it cannot run.
//!
//! The smallest test of a command:
//!
//! ```no_run
//! # const RMZ: &str = "rmz"; // env!("CARGO_BIN_EXE_rmz")
//! const RM: testkit::run::Pair = testkit::run::Pair::new(RMZ, "rm");
//!
//! RM.check(["-v", "a"], |tree| {
//!     tree.file("a/b", b"content").dir("a/c");
//! });
//! ```
//!
//! Functions panic instead of returning errors: if a tree can't be built, its test has failed.

pub mod command_line;
mod completion;
pub mod installed;
pub mod probe;
pub mod run;
pub mod snapshot;
mod sys;
pub mod tree;
mod util;
mod walk;
