//! Options of a user's own for every run: the environment variable names a file with one option on each line.
//!
//! Such a file must not change the meaning of a script. Hence it holds only extensions, and the strict personality
//! does not read it. Anything else in the file is an error before any work.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::console::Console;
use crate::flags::{self, Occurrence, Table, UsageError};
use crate::quote;
use crate::wording::errno_text;

/// The environment variable that names the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config(pub(crate) &'static str);

impl Config {
    /// Returns the flags in the user's file, in order. There are none without a file. Without the environment variable, this
    /// makes no system call.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is not an extension, or `check` returns an error for its value.
    /// The error names the file and the line.
    pub(crate) fn read<I: Copy>(
        &self,
        table: &Table<I>,
        console: &Console,
        check: impl Fn(&Occurrence<I>) -> Result<(), UsageError>,
    ) -> Result<Vec<Occurrence<I>>, UsageError> {
        let Some(file) = std::env::var_os(self.0).filter(|file| !file.is_empty()) else {
            return Ok(Vec::new());
        };
        let content = std::fs::read(&file).map_err(|error| {
            let (variable, file) = (&self.0, console.quoted(&file));
            let reason = errno_text(&error);
            UsageError::plain(format!(
                "cannot read {file}, which {variable} names: {reason}"
            ))
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

    /// Adds to an error that it would not occur without the user's file.
    pub(crate) fn blame(&self, mut error: UsageError) -> UsageError {
        let reason = format!(
            "; the file that {} names sets an option, and --no-config leaves it out",
            self.0
        );
        error.message.extend_from_slice(reason.as_bytes());
        error
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
    let quoted = console.quoted(OsStr::from_bytes(line));
    let value = line.iter().position(|&byte| byte == b'=');
    let value = value.map_or(&b""[..], |equals| line[equals + 1..].trim_ascii());
    if let [first @ (b'"' | b'\''), .., last] = value
        && first == last
    {
        return Err(UsageError::plain(format!(
            "{quoted}: no shell removes the quotes, so leave them out"
        )));
    }
    flags::read_config_line(table, &OsString::from_vec(line.to_vec())).unwrap_or_else(|| {
        let corrected = with_equals_sign(table, line).map(|line| console.quoted(line));
        let advice = corrected.map(|line| format!("; write {line}"));
        Err(UsageError::plain(format!(
            "{quoted} is not an extension that can be set here{}",
            advice.unwrap_or_default()
        )))
    })
}

/// Returns the line with only `=` between name and value, if that makes an extension of it. On a command line, a space
/// may stand there.
fn with_equals_sign<I: Copy>(table: &Table<I>, line: &[u8]) -> Option<OsString> {
    let space = line.iter().position(u8::is_ascii_whitespace)?;
    let (name, value) = (&line[..space], line[space..].trim_ascii());
    let value = value.strip_prefix(b"=").unwrap_or(value).trim_ascii();
    let corrected = OsString::from_vec([name, b"=", value].concat());
    let is_extension = flags::read_config_line(table, &corrected).is_some();
    (is_extension && !value.starts_with(b"-")).then_some(corrected)
}

/// Puts the file and the line before an error, as `du` does for a list of names.
fn located(error: UsageError, file: &OsStr, line: usize, console: &Console) -> UsageError {
    let file = quote::if_needed(file, console.charset());
    let place = format!("{file}:{line}: ");
    UsageError::plain([place.as_bytes(), &error.message].concat())
}
