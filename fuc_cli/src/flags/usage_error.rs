//! Usage errors, in GNU's words.
//!
//! `getopt_long` prints the user's words as raw bytes, and GNU's tools quote them in their own messages.
//! So do these errors.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::locale::Charset;
use crate::quote;

/// The lines that follow the error itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// No lines.
    None,
    /// The line `Try 'rmz --help' for more information.`
    Help,
    /// The line about `--help`, after a hint if the option is also the name of a file. Only the errors that
    /// `getopt_long` reports have it.
    FileOrHelp,
}

/// An error in the command line, which makes the exit status 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageError {
    /// The message, without the command's name before it or a newline after it. Most are one line.
    pub message: Vec<u8>,
    /// The lines that follow the message.
    pub advice: Advice,
    /// A line below the message that suggests another option.
    pub suggestion: Option<String>,
}

impl UsageError {
    fn new(message: Vec<u8>, advice: Advice) -> Self {
        Self {
            message,
            advice,
            suggestion: None,
        }
    }

    /// Makes an error without advice.
    #[must_use]
    pub fn plain(message: impl Into<Vec<u8>>) -> Self {
        Self::new(message.into(), Advice::None)
    }

    /// Makes an error that ends with a pointer to `--help`.
    #[must_use]
    pub fn with_help(message: impl Into<Vec<u8>>) -> Self {
        Self::new(message.into(), Advice::Help)
    }

    /// Makes the error about a value that is not of the kind `what`.
    #[must_use]
    pub fn invalid(what: &str, value: &OsStr, charset: Charset) -> Self {
        Self::plain(format!("invalid {what}: {}", quote::locale(value, charset)))
    }

    /// Looks for options that exclude each other, or do not suffice.
    ///
    /// # Errors
    /// Returns the error with the message of the first condition that is true.
    pub fn of_first(conditions: &[(bool, &str)]) -> Result<(), Self> {
        match conditions.iter().find(|(is_true, _)| *is_true) {
            Some((_, message)) => Err(Self::with_help(*message)),
            None => Ok(()),
        }
    }

    /// Returns `true` if `getopt_long` reports the error. It names the command by all of argv\[0\].
    pub(crate) fn is_about_an_option(&self) -> bool {
        self.advice == Advice::FileOrHelp
    }

    fn option(message: impl Into<Vec<u8>>) -> Self {
        Self::new(message.into(), Advice::FileOrHelp)
    }

    pub(super) fn unknown_long(argument: &OsStr, suggestion: Option<String>) -> Self {
        let message = [b"unrecognized option '", argument.as_bytes(), b"'"].concat();
        Self {
            suggestion,
            ..Self::option(message)
        }
    }

    pub(super) fn unknown_short(letter: u8) -> Self {
        Self::option([b"invalid option -- '", &[letter][..], b"'"].concat())
    }

    pub(super) fn ambiguous<'a>(
        argument: &OsStr,
        possibilities: impl Iterator<Item = &'a str>,
    ) -> Self {
        let possibilities: String = possibilities.map(|name| format!(" '--{name}'")).collect();
        let ending = format!("' is ambiguous; possibilities:{possibilities}");
        Self::option([b"option '", argument.as_bytes(), ending.as_bytes()].concat())
    }

    pub(super) fn unwanted_value(long: &str) -> Self {
        Self::option(format!("option '--{long}' doesn't allow an argument"))
    }

    pub(super) fn detached_value(long: &str, value: &OsStr) -> Self {
        let value = value.display();
        let message = format!("write '--{long}={value}', or './{value}' for a file of that name");
        Self::with_help(message)
    }

    pub(super) fn missing_value(long: &str) -> Self {
        Self::option(format!("option '--{long}' requires an argument"))
    }

    pub(super) fn missing_short_value(letter: u8) -> Self {
        Self::option([b"option requires an argument -- '", &[letter][..], b"'"].concat())
    }

    pub(super) fn abbreviated(long: &str) -> Self {
        Self::plain(format!("you may not abbreviate the --{long} option"))
    }
}
