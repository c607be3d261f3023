//! `cpz`: cp, recursive by default. Called as `cp` it is GNU's cp.
//!
//! The library beside it turns the flags and operands into a request. `copying` runs the engine.

use std::process::ExitCode;

use fuc_cli::command::{Command, FileHint};
use fuc_cli::config::Config;
use fuc_cli::memory::Allocator;

use cpz::{flags, options};

mod copying;

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
        check: options::check,
        execute: copying::execute,
    };
    command.run()
}
