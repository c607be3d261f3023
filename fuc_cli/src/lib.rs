//! The user interface that the commands `rmz` and `cpz` share.
//!
//! | module | content |
//! |---|---|
//! | [`command`] | a run of a command, from argv to the exit status |
//! | [`common`] | the options that both commands have |
//! | [`tool`] | GNU's tool that a command replaces |
//! | [`outcome`] | how a run ended |
//! | `config` | the file that holds a user's own default options |
//! | [`invocation`] | the name by which the command was called, and what follows from it |
//! | `preload` | libraries such as that of `fakeroot`, which do not see this process |
//! | [`flags`] | the table of flags, from which argv is read and `--help` is printed |
//! | [`name_list`] | operands from a file or stdin |
//! | `input` | files that the user names as input, and stdin |
//! | `generate` | manual pages and completions, for the commands' tests |
//! | [`threads`] | the number of threads that the user asks for |
//! | [`console`] | whole lines on stdout and stderr, and prompts; lost output is an error |
//! | `stdout_buffer`, `prompt`, `streams` | the console's parts: lines for stdout, answers on stdin, unbuffered streams |
//! | [`rate`] | the limit of the entries or bytes per second |
//! | [`reporter`] | the engine's failures, events and questions, as lines |
//! | `itemize` | lines about what happened to each dest, and why |
//! | `repeats` | failures that a terminal shows only as a count |
//! | [`exclude`] | the entries that the user excludes, by patterns and `.gitignore` files |
//! | [`stats`] | the totals of a run, at its end |
//! | [`progress`] | the line that shows how far a run has come, and the answer to SIGUSR1 |
//! | `cursor` | what signal handlers know about the terminal |
//! | `amounts` | numbers, sizes and times for people |
//! | [`wording`] | diagnostics and questions in GNU's words |
//! | [`locale`], [`quote`] | how file names look in a message |
//! | [`sys`] | process-wide state, such as signals and the allocator, and all `unsafe` code |
//!
//! The invariant: **a script observes the behaviour of GNU's tools**, byte for byte, or else
//! `docs/differences.md` describes the difference. A command's own crate holds its flag table, the options that its
//! flags resolve to, and the checks before its run.

mod amounts;
pub mod command;
pub mod common;
mod config;
pub mod console;
mod cursor;
pub mod exclude;
pub mod flags;
#[cfg(feature = "test-support")]
pub mod generate;
mod input;
pub mod invocation;
mod itemize;
pub mod locale;
pub mod name_list;
pub mod outcome;
mod preload;
pub mod progress;
mod prompt;
pub mod quote;
pub mod rate;
mod repeats;
pub mod reporter;
pub mod stats;
mod stdout_buffer;
mod streams;
mod sync;
pub mod sys;
pub mod threads;
pub mod tool;
pub mod wording;
