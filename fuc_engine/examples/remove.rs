//! Removes the trees that are named, and prints each failure: `remove PATH...`

use std::path::PathBuf;
use std::process::ExitCode;

use fuc_engine::{Error, Observer, RemoveOp};

struct ToStderr;

impl Observer for ToStderr {
    fn failed(&self, error: Error) {
        eprintln!("{error}");
    }
}

fn main() -> ExitCode {
    let operands = std::env::args_os().skip(1).map(PathBuf::from);
    let summary = RemoveOp::new().run(operands, &ToStderr);
    println!(
        "removed {} entries, {} failed",
        summary.entries, summary.failures
    );
    if summary.is_complete() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
