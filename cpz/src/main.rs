//! `cpz`: cp, recursive by default. Called as `cp` it is GNU's cp.
//!
//! `flags` holds the table of flags, `words` the words of their values. `options` resolves the flags,
//! with `preserve` for attributes and `rules` for existing dests. `target` separates the dest from the
//! sources, and `copying` runs the engine.

use std::process::ExitCode;

use fuc_cli::command::{Command, FileHint};
use fuc_cli::config::Config;
use fuc_cli::memory::Allocator;

mod copying;
mod flags;
#[cfg(test)]
mod manual;
mod options;
mod preserve;
mod rules;
mod target;
mod words;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    let command = Command {
        name: "cpz",
        strict_name: "cp",
        version: env!("CARGO_PKG_VERSION"),
        table: flags::TABLE,
        config: Config {
            variable: "CPZ_CONFIG",
            skipped_by: flags::Id::NoConfig,
        },
        file_hint: FileHint::Omitted,
        resolve: options::resolve,
        execute: copying::execute,
    };
    command.run()
}
