//! `rm -r` by the engine of rmz, as a library.

use std::process::ExitCode;

use comparisons::remove_main;

fn main() -> ExitCode {
    remove_main(|path| Ok(fuc_engine::remove_tree(path).map(drop)?))
}
