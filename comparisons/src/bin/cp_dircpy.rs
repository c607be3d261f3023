//! `cp -r` by the crate `dircpy`, with its four threads.

use std::process::ExitCode;

use comparisons::copy_main;
use dircpy::CopyBuilder;

fn main() -> ExitCode {
    copy_main(|src, dst| CopyBuilder::new(src, dst).run_par())
}
