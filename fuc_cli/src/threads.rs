//! The number of threads that the user asks for, by a flag or in the environment.

use std::ffi::OsStr;
use std::num::NonZeroUsize;

use crate::flags::{UsageError, number};
use crate::locale::Charset;
use crate::tool::Tool;

/// Parses the value of `--threads`.
///
/// # Errors
/// If the value is not a positive decimal number.
pub fn parse(value: &OsStr, charset: Charset) -> Result<NonZeroUsize, UsageError> {
    number(value).ok_or_else(|| UsageError::invalid("number of threads", value, charset))
}

/// Returns the number in the command's environment variable, if it is a positive decimal number.
///
/// Other values are ignored, because the variable only tunes: a stale one must not break scripts.
#[must_use]
pub fn from_environment(tool: Tool) -> Option<NonZeroUsize> {
    number(&std::env::var_os(
        tool.choose("RMZ_THREADS", "CPZ_THREADS"),
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_positive_numbers() {
        let parsed = parse(OsStr::new("16"), Charset::Utf8).unwrap();
        assert_eq!(parsed.get(), 16);
    }

    #[test]
    fn rejects_values_that_are_not_positive_numbers() {
        for value in ["", "0", "-1", "+1", "1.5", "x", "99999999999999999999999"] {
            let error = parse(OsStr::new(value), Charset::Ascii).unwrap_err();
            let expected = format!("invalid number of threads: '{value}'");
            assert_eq!(error, UsageError::plain(expected));
        }
    }
}
