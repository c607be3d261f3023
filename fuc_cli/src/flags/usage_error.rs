//! Usage errors, in GNU's words.
//!
//! Words that the user typed appear as raw bytes where `getopt_long` prints
//! them so, and quoted where the tools themselves do.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// What is said after the error itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Nothing.
    None,
    /// `Try 'rmz --help' for more information.`
    Help,
    /// The same, and before it a hint if the option looks like a file that exists.
    FileOrHelp,
}

/// A command line that cannot be obeyed; the exit status is 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageError {
    /// Without the command's name in front and without a newline at its end; most are one line.
    pub message: Vec<u8>,
    /// What follows it.
    pub advice: Advice,
}

impl UsageError {
    /// An error that is complete in itself.
    #[must_use]
    pub fn plain(message: impl Into<Vec<u8>>) -> Self {
        Self {
            message: message.into(),
            advice: Advice::None,
        }
    }

    /// An error that ends with a pointer to `--help`.
    #[must_use]
    pub fn with_help(message: impl Into<Vec<u8>>) -> Self {
        Self {
            message: message.into(),
            advice: Advice::Help,
        }
    }

    fn option(parts: &[&[u8]]) -> Self {
        Self {
            message: parts.concat(),
            advice: Advice::FileOrHelp,
        }
    }

    pub(super) fn unknown_long(argument: &OsStr) -> Self {
        Self::option(&[b"unrecognized option '", argument.as_bytes(), b"'"])
    }

    pub(super) fn unknown_short(letter: u8) -> Self {
        Self::option(&[b"invalid option -- '", &[letter], b"'"])
    }

    pub(super) fn ambiguous<'a>(
        argument: &OsStr,
        possibilities: impl Iterator<Item = &'a str>,
    ) -> Self {
        let mut error = Self::option(&[
            b"option '",
            argument.as_bytes(),
            b"' is ambiguous; possibilities:",
        ]);
        for name in possibilities {
            error.message.extend_from_slice(b" '--");
            error.message.extend_from_slice(name.as_bytes());
            error.message.push(b'\'');
        }
        error
    }

    pub(super) fn unwanted_value(long: &str) -> Self {
        Self::option(&[
            b"option '--",
            long.as_bytes(),
            b"' doesn't allow an argument",
        ])
    }

    pub(super) fn missing_value(long: &str) -> Self {
        Self::option(&[b"option '--", long.as_bytes(), b"' requires an argument"])
    }

    pub(super) fn missing_short_value(letter: u8) -> Self {
        Self::option(&[b"option requires an argument -- '", &[letter], b"'"])
    }

    pub(super) fn abbreviated(long: &str) -> Self {
        Self::plain(format!("you may not abbreviate the --{long} option"))
    }
}
