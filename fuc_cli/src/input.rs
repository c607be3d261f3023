//! Files that the user names as input: a path, or `-` for stdin.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};

use crate::console::Console;
use crate::flags::UsageError;
use crate::locale::Charset;
use crate::quote;
use crate::streams::stdin;
use crate::wording::errno_text;

/// Opens a file for reading, or stdin.
///
/// # Errors
/// If the file cannot be opened. A stdin that is closed fails when it is read.
pub(crate) fn open(name: &OsStr, console: &Console) -> Result<Box<dyn Read>, UsageError> {
    if name == "-" {
        return Ok(Box::new(stdin()));
    }
    match File::open(name) {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => {
            let message = not_opened(name, &error, console.charset());
            Err(UsageError::plain(message))
        }
    }
}

/// Returns the message about a file that cannot be opened.
pub(crate) fn not_opened(name: impl AsRef<OsStr>, error: &io::Error, charset: Charset) -> String {
    let name = quote::always(name, charset);
    format!("cannot open {name} for reading: {}", errno_text(error))
}
