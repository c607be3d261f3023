//! The plumbing that the comparisons share: operands, error messages and the exit status.
//!
//! Nothing here touches a tree, so that each binary shows the cost of its own approach.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Runs `remove` on every operand. A failure is printed, and the other operands are still tried.
pub fn remove_main(remove: impl Fn(&Path) -> io::Result<()>) -> ExitCode {
    let operands: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    if operands.is_empty() {
        return complain("usage: COMMAND PATH...");
    }
    let mut status = ExitCode::SUCCESS;
    for operand in operands {
        if let Err(e) = remove(&operand) {
            status = complain(e);
        }
    }
    status
}

/// Runs `copy` on SRC and DST. An existing DST is refused.
pub fn copy_main(copy: impl Fn(&Path, &Path) -> io::Result<()>) -> ExitCode {
    let operands: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [src, dst] = operands.as_slice() else {
        return complain("usage: COMMAND SRC DST");
    };
    if fs::symlink_metadata(dst).is_ok() {
        return complain(format_args!("{}: already exists", dst.display()));
    }
    match copy(src, dst) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => complain(e),
    }
}

/// Puts the path in front of an error, for `map_err`.
pub fn at(path: &Path) -> impl FnOnce(io::Error) -> io::Error + '_ {
    move |e| io::Error::new(e.kind(), format!("{}: {e}", path.display()))
}

fn complain(message: impl std::fmt::Display) -> ExitCode {
    // If stderr is closed, there is no place for the message.
    let _ = writeln!(io::stderr(), "{message}");
    ExitCode::FAILURE
}
