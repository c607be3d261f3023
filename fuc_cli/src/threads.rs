//! How many threads a person asked for: by flag, by environment, or not at all.

use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;

use crate::flags::UsageError;
use crate::locale::Charset;
use crate::quote;

/// Reads the value of `--threads`.
///
/// # Errors
/// Anything but a positive decimal number is a error.
pub fn parse(value: &OsStr, charset: Charset) -> Result<NonZeroUsize, UsageError> {
    number(value).ok_or_else(|| {
        let quoted = quote::locale(value.as_bytes(), charset);
        UsageError::plain([b"invalid number of threads: ", &quoted[..]].concat())
    })
}

/// Reads the environment variable `name`; what is no positive decimal number is ignored.
///
/// The variable tunes, it does not command: a stale one must not break scripts.
#[must_use]
pub fn from_environment(name: &str) -> Option<NonZeroUsize> {
    number(&std::env::var_os(name)?)
}

fn number(value: &OsStr) -> Option<NonZeroUsize> {
    let digits = value.to_str()?;
    // `parse` takes a leading plus; nobody means it.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_positive_numbers() {
        let parsed = parse(OsStr::new("16"), Charset::Utf8).unwrap();
        assert_eq!(parsed.get(), 16);
    }

    #[test]
    fn names_what_is_no_number_of_threads() {
        for value in ["", "0", "-1", "+1", "1.5", "x", "99999999999999999999999"] {
            let error = parse(OsStr::new(value), Charset::Ascii).unwrap_err();
            let expected = format!("invalid number of threads: '{value}'");
            assert_eq!(error, UsageError::plain(expected));
        }
    }
}
