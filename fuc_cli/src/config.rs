//! Options of a user's own for every run: the environment variable names a file with one option on each line.
//!
//! Such a file must not change the meaning of a script. Hence it holds only extensions, and the strict personality
//! does not read it. Anything else in the file is an error before any work.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::console::Console;
use crate::flags::{Occurrence, Table, UsageError};
use crate::quote;
use crate::wording::errno_text;

/// The way in which a command finds its file of options.
#[derive(Clone, Copy, Debug)]
pub struct Config<I> {
    /// The environment variable that names the file.
    pub variable: &'static str,
    /// The flag that leaves the file out.
    pub skipped_by: I,
}

impl<I: Copy + PartialEq> Config<I> {
    /// Returns the flags in the user's file, in order. There are none without a file, or if `given` leaves it
    /// out. Without the environment variable, this makes no system call.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is not an extension, or `check` returns an error for its value.
    /// The error names the file and the line.
    pub(crate) fn read(
        &self,
        table: &Table<I>,
        given: &[Occurrence<I>],
        console: &Console,
        check: impl Fn(&Occurrence<I>) -> Result<(), UsageError>,
    ) -> Result<Vec<Occurrence<I>>, UsageError> {
        let Some(file) = std::env::var_os(self.variable).filter(|file| !file.is_empty()) else {
            return Ok(Vec::new());
        };
        if given.iter().any(|flag| flag.id == self.skipped_by) {
            return Ok(Vec::new());
        }
        let content = std::fs::read(&file).map_err(|error| {
            let quoted = console.quoted(file.as_bytes());
            let rest = format!(", which {} names: {}", self.variable, errno_text(&error));
            UsageError::plain([b"cannot read ", &*quoted, rest.as_bytes()].concat())
        })?;
        let mut flags = Vec::new();
        for (index, line) in content.split(|&byte| byte == b'\n').enumerate() {
            if line.trim_ascii().is_empty() || line.starts_with(b"#") {
                continue;
            }
            let flag = read_line(table, line, console).and_then(|flag| {
                check(&flag)?;
                Ok(flag)
            });
            flags.push(flag.map_err(|error| located(error, &file, index + 1, console))?);
        }
        Ok(flags)
    }
}

fn read_line<I: Copy>(
    table: &Table<I>,
    line: &[u8],
    console: &Console,
) -> Result<Occurrence<I>, UsageError> {
    if line.contains(&0) {
        return Err(UsageError::plain("the line contains a NUL byte"));
    }
    match table.read_config_line(&OsString::from_vec(line.to_vec())) {
        Some(read) => read,
        None => {
            let quoted = console.quoted(line);
            let reason = b" is not an extension that can be set here";
            Err(UsageError::plain([&*quoted, reason].concat()))
        }
    }
}

/// Puts the file and the line before an error, as `du` does for a list of names.
fn located(error: UsageError, file: &OsStr, line: usize, console: &Console) -> UsageError {
    let file = quote::if_needed(file.as_bytes(), console.charset());
    let line = format!(":{line}: ");
    UsageError::plain([&*file, line.as_bytes(), &error.message].concat())
}
