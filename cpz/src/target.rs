//! Separates the dest from the sources.
//!
//! | given | sources | dest |
//! |---|---|---|
//! | `-t DIR` | all operands | into DIR, which must be a directory |
//! | `-T` | the first of two | exactly the second |
//! | two operands | the first | into the second if that is a directory (through symlinks too), else exactly it |
//! | more | all but the last | into the last, which must be a directory |
//! | `--files0-from` and one operand | those in the list | into the operand, which must be a directory |

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fuc_cli::console::Console;
use fuc_cli::flags::UsageError;
use fuc_cli::name_list;
use fuc_cli::wording::errno_text;
use fuc_engine::Dest;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::options::{LastOperand, Options};

/// Takes the dest out of `operands` and leaves the sources there.
///
/// # Errors
/// If there are too few or too many operands, or if the target is not a directory.
pub(crate) fn take_dest(
    options: &Options,
    operands: &mut Vec<OsString>,
    console: &Console,
) -> Result<Dest, UsageError> {
    check_number(options, operands, console)?;
    if let Some(directory) = &options.target_directory {
        return target_directory(options, directory, console);
    }
    let last = PathBuf::from(operands.pop().expect("BUG: no operands"));
    let not_into = || UsageError::with_help("with --parents, the destination must be a directory");
    match options.last_operand {
        LastOperand::IsTheDest if operands.len() > 1 => {
            let extra = operands
                .get(2)
                .map_or(last.as_os_str(), OsString::as_os_str);
            let extra = console.quoted(extra);
            Err(UsageError::with_help(format!("extra operand {extra}")))
        }
        LastOperand::IsTheDest if options.engine.parents => Err(not_into()),
        LastOperand::IsTheDest => Ok(Dest::Exactly(last)),
        LastOperand::MayBeDirectory => match into("target ", &last, console) {
            Err(_) if operands.len() == 1 && options.engine.parents => Err(not_into()),
            Err(_) if operands.len() == 1 => Ok(Dest::Exactly(last)),
            found => found,
        },
    }
}

/// Takes the directory out of `operands` into which the sources in a list are copied.
///
/// # Errors
/// If there are too few or too many operands, or if the target is not a directory.
pub(crate) fn dest_of_list(
    options: &Options,
    operands: &mut Vec<OsString>,
    console: &Console,
) -> Result<Dest, UsageError> {
    let operands = std::mem::take(operands);
    match (&options.target_directory, &*operands) {
        (Some(directory), []) => target_directory(options, directory, console),
        (None, []) => Err(UsageError::with_help("missing destination file operand")),
        (None, [_]) if options.last_operand == LastOperand::IsTheDest => Err(UsageError::plain(
            "cannot combine --files0-from and --no-target-directory (-T)",
        )),
        (None, [directory]) => into("target ", Path::new(directory), console),
        (_, [extra, ..]) => Err(name_list::extra_operand(extra, console)),
    }
}

/// Returns the dest for the directory of `-t`.
fn target_directory(
    options: &Options,
    directory: &Path,
    console: &Console,
) -> Result<Dest, UsageError> {
    if options.last_operand == LastOperand::IsTheDest {
        return Err(UsageError::plain(
            "cannot combine --target-directory (-t) and --no-target-directory (-T)",
        ));
    }
    into("target directory ", directory, console)
}

fn check_number(
    options: &Options,
    operands: &[OsString],
    console: &Console,
) -> Result<(), UsageError> {
    match operands {
        [] => Err(UsageError::with_help("missing file operand")),
        [only] if options.target_directory.is_none() => {
            let only = console.quoted(only);
            let message = format!("missing destination file operand after {only}");
            Err(UsageError::with_help(message))
        }
        _ => Ok(()),
    }
}

/// Returns the dest for a directory to copy into.
///
/// # Errors
/// If the path does not lead to a directory, through any links. The message calls it `what`.
fn into(what: &str, path: &Path, console: &Console) -> Result<Dest, UsageError> {
    // The standard library also asks for the time of birth, because of which some FUSE servers fail.
    let errno = match rustix::fs::stat(path) {
        Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Directory => {
            return Ok(Dest::Into(path.into()));
        }
        Ok(_) => Errno::NOTDIR,
        Err(errno) => errno,
    };
    let (path, reason) = (console.quoted(path), errno_text(&errno.into()));
    Err(UsageError::plain(format!("{what}{path}: {reason}")))
}
