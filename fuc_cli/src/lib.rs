//! What the commands `rmz` and `cpz` share: everything between a person and the engine.
//!
//! | module | what it settles |
//! |---|---|
//! | [`flags`] | one table of flags: argv is read as GNU's tools read it, help is printed from it |
//! | [`invocation`] | the name the command was called by, and what follows from it |
//! | [`locale`], [`quote`] | how file names look in a message |
//! | [`wording`] | what a failure is called, in GNU's words |
//! | [`console`] | whole lines on stdout and stderr; lost output is an error |
//! | [`reporter`] | the engine's news, as lines |
//! | [`progress`] | a line that tells how far the run has come |
//! | [`threads`] | how many threads a person asked for |
//! | [`command`] | a command from its first line to its exit status |
//!
//! The invariant: **what a script can observe is GNU's**, byte for byte, and
//! where it is not, the README says so. A command's own crate holds its flag
//! table, the options resolved from it, and what it looks at before it runs.

pub mod command;
pub mod console;
pub mod flags;
pub mod invocation;
pub mod locale;
pub mod progress;
mod prompt;
pub mod quote;
pub mod reporter;
mod stdout_buffer;
mod streams;
mod sys;
pub mod threads;
pub mod wording;
