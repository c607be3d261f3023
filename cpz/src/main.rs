//! `cpz`: cp, recursive by default. Called as `cp` it is GNU's cp.
//!
//! The library beside it turns the flags and operands into a request. `copying` runs the engine.
#![cfg_attr(not(test), no_main)]

use std::process::ExitCode;

use fuc_cli::command::Command;
use fuc_cli::common::CommonFlag;
use fuc_cli::sys::Allocator;
use fuc_cli::tool::Tool;

use cpz::{flags, options};

mod copying;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fuc_cli::program!(run);

fn run() -> ExitCode {
    let command = Command {
        name: "cpz",
        tool: Tool::Copy,
        version: env!("CARGO_PKG_VERSION"),
        table: flags::TABLE,
        no_config: flags::Id::Common(CommonFlag::NoConfig),
        resolve: options::resolve,
        common: |options| &options.common,
        execute: copying::execute,
    };
    command.run()
}
