//! The plumbing that the comparisons share: operands, all entries but directories, error messages and the exit status.
//!
//! Nothing here touches a directory, so that each binary shows the cost of its own approach.

use std::{
    env,
    fs::{self, FileType},
    io::{self, Write as _},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Removes every operand, directories by `remove_dir`. A failure is printed, and the other operands are still tried.
pub fn remove_main(remove_dir: impl Fn(&Path) -> io::Result<()>) -> ExitCode {
    let operands: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    if operands.is_empty() {
        return complain("usage: COMMAND PATH...");
    }
    let mut status = ExitCode::SUCCESS;
    for operand in operands {
        let kind = fs::symlink_metadata(&operand).map(|found| found.file_type());
        let removed = kind.and_then(|kind| match kind.is_dir() {
            true => remove_dir(&operand),
            false => fs::remove_file(&operand),
        });
        if let Err(e) = removed {
            status = complain(at(&operand)(e));
        }
    }
    status
}

/// Copies SRC to DST, a directory by `copy_dir`. An existing DST is refused.
pub fn copy_main(copy_dir: impl Fn(&Path, &Path) -> io::Result<()>) -> ExitCode {
    let operands: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [src, dst] = operands.as_slice() else {
        return complain("usage: COMMAND SRC DST");
    };
    if fs::symlink_metadata(dst).is_ok() {
        return complain(format_args!("{}: already exists", dst.display()));
    }
    let kind = fs::symlink_metadata(src).map(|found| found.file_type());
    let copied = kind.and_then(|kind| match kind.is_dir() {
        true => copy_dir(src, dst),
        false => copy_file(kind, src, dst),
    });
    match copied {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => complain(at(src)(e)),
    }
}

/// Copies a file or a symlink by the standard library.
pub fn copy_file(kind: FileType, src: &Path, dst: &Path) -> io::Result<()> {
    if kind.is_symlink() {
        let target = fs::read_link(src).map_err(at(src))?;
        symlink(target, dst).map_err(at(dst))
    } else if kind.is_file() {
        fs::copy(src, dst).map(drop).map_err(at(src))
    } else {
        // `fs::copy` would wait for another process to write into a FIFO.
        Err(at(src)(io::ErrorKind::Unsupported.into()))
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
