//! `rm -r` by the crate `fs_extra`.

use std::process::ExitCode;

use comparisons::remove_main;

fn main() -> ExitCode {
    remove_main(|path| fs_extra::remove_items(&[path]).map_err(std::io::Error::other))
}
