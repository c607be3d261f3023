//! `cp -r` by the engine of cpz, as a library.

use std::process::ExitCode;

use comparisons::copy_main;

fn main() -> ExitCode {
    copy_main(|src, dst| Ok(fuc_engine::copy_tree(src, dst).map(drop)?))
}
