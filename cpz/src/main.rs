//! `cpz`: cp, recursive by default. Called as `cp` it is GNU's cp.
//!
//! flags → options → sources and dest → run → exit status; each arrow is one module or one call.

use std::process::ExitCode;

use fuc_cli::command::{Command, FileHint};

mod copying;
mod flags;
mod options;
mod preserve;
mod rules;
mod target;
mod words;

fn main() -> ExitCode {
    let command = Command {
        name: "cpz",
        strict_name: "cp",
        version: env!("CARGO_PKG_VERSION"),
        table: flags::TABLE,
        file_hint: FileHint::None,
        resolve: options::resolve,
        execute: copying::execute,
    };
    command.run()
}
