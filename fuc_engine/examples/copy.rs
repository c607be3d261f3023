//! Copies a tree, and prints each failure: `copy SOURCE DEST`

use std::process::ExitCode;

use fuc_engine::{CopyOp, Dest, Error, Observer};

struct ToStderr;

impl Observer for ToStderr {
    fn failed(&self, error: Error) {
        eprintln!("{error}");
    }
}

fn main() -> ExitCode {
    let operands: Vec<_> = std::env::args_os().skip(1).collect();
    let [source, dest] = &operands[..] else {
        eprintln!("usage: copy SOURCE DEST");
        return ExitCode::from(2);
    };
    // `Dest::Into` would put the copy into an existing directory, under its own name.
    let dest = Dest::Exactly(dest.into());
    let summary = CopyOp::new().run([source.into()], &dest, &ToStderr);
    println!(
        "copied {} entries of {} bytes, {} failed",
        summary.entries, summary.bytes, summary.failures
    );
    if summary.is_complete() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
