//! `cp -r` by the crate `fs_extra`.

use std::process::ExitCode;

use comparisons::copy_main;
use fs_extra::dir::{self, CopyOptions};

fn main() -> ExitCode {
    // Without this, the crate copies to a directory inside the dest.
    let options = CopyOptions::new().copy_inside(true);
    copy_main(|src, dst| {
        let copied = dir::copy(src, dst, &options).map(drop);
        copied.map_err(std::io::Error::other)
    })
}
