//! `rmz`: rm, recursive by default. Called as `rm` it is GNU's rm.
//!
//! The library beside it holds the table of flags, and resolves them to options. `removal` runs the engine with the
//! result. `detach` removes in the background.
#![cfg_attr(not(test), no_main)]

use std::process::ExitCode;

use fuc_cli::command::Command;
use fuc_cli::common::CommonFlag;
use fuc_cli::sys::Allocator;
use fuc_cli::tool::Tool;

use rmz::{flags, options};

mod detach;
mod removal;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fuc_cli::program!(run);

fn run() -> ExitCode {
    let command = Command {
        name: "rmz",
        tool: Tool::Remove,
        version: env!("CARGO_PKG_VERSION"),
        table: flags::TABLE,
        no_config: flags::Id::Common(CommonFlag::NoConfig),
        resolve: options::resolve,
        common: |options| &options.common,
        execute: removal::execute,
    };
    command.run()
}
