//! `rmz`: rm, recursive by default. Called as `rm` it is GNU's rm.
//!
//! The library beside it holds the table of flags, and resolves them to options. `removal` runs the engine with the
//! result. `detach` removes in the background.

use std::process::ExitCode;

use fuc_cli::command::{Command, FileHint};
use fuc_cli::config::Config;
use fuc_cli::memory::Allocator;

use rmz::{flags, options};

mod detach;
mod removal;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    let command = Command {
        name: "rmz",
        strict_name: "rm",
        version: env!("CARGO_PKG_VERSION"),
        table: flags::TABLE,
        config: Config {
            variable: "RMZ_CONFIG",
            skipped_by: flags::Id::NoConfig,
        },
        file_hint: FileHint::Shown,
        resolve: options::resolve,
        check: options::check,
        execute: removal::execute,
    };
    command.run()
}
