//! What the tests of the engine and of both commands stand on. Nothing here uses the engine, so that a
//! bug in it can't hide itself: trees are built, walked and cleaned up by code of this crate's own.
//!
//! - [`tree`] builds trees and deletes them for sure, however deep they are.
//! - [`random`] generates random trees and operands for property tests.
//! - [`snapshot`] records what a tree is, and says how two trees differ.
//! - [`run`] runs a command, or a command and its GNU twin side by side.
//! - [`probe`] tells what this machine can do, so that a test is skipped and not failed.
//!
//! The smallest test of a command:
//!
//! ```no_run
//! use std::path::Path;
//! # const RMZ: &str = "rmz"; // env!("CARGO_BIN_EXE_rmz")
//!
//! testkit::run::parity(Path::new(RMZ), "rm", ["-rv", "a"], |tree| {
//!     tree.file("a/b", b"content").dir("a/c");
//! });
//! ```
//!
//! A kit for tests panics where a library would return an error: a tree that can't be built is no test.

pub mod probe;
pub mod random;
pub mod run;
pub mod snapshot;
pub mod tree;
mod util;
mod walk;
