//! Values of options: numbers, and words or unambiguous prefixes of them, as GNU's tools accept them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::str::FromStr;

use super::UsageError;
use crate::locale::Charset;
use crate::quote;

/// Returns the meaning of `value`, which is a word of `words` or a prefix of words with one meaning.
///
/// Words with the same meaning must be neighbours in `words`.
///
/// # Errors
/// If `value` is a prefix of no word, or of words with different meanings. The message names `flag`
/// and lists the words.
pub fn choose<T: Copy + PartialEq>(
    flag: &str,
    value: &OsStr,
    words: &[(&str, T)],
    charset: Charset,
) -> Result<T, UsageError> {
    let begins = |(word, _): &&(&str, T)| word.as_bytes().starts_with(value.as_bytes());
    if let Some((_, meaning)) = words.iter().find(|(word, _)| value == *word) {
        return Ok(*meaning);
    }
    let mut candidates = words.iter().filter(begins).map(|(_, meaning)| *meaning);
    let problem = match candidates.next() {
        Some(first) if candidates.all(|other| other == first) => return Ok(first),
        Some(_) => "ambiguous",
        None => "invalid",
    };
    let [given, flag] = [value, OsStr::new(flag)].map(|text| quote::locale(text, charset));
    let mut message = format!("{problem} argument {given} for {flag}\nValid arguments are:");
    let mut last = None;
    for (word, meaning) in words {
        message += if last == Some(*meaning) {
            ", "
        } else {
            "\n  - "
        };
        message += &quote::locale(word, charset);
        last = Some(*meaning);
    }
    Err(UsageError::with_help(message))
}

/// Returns `default` without a value, and the meaning of a value otherwise, as [`choose`] does.
///
/// # Errors
/// As [`choose`].
pub fn choose_or<T: Copy + PartialEq>(
    default: T,
    flag: &str,
    value: Option<&OsStr>,
    words: &[(&str, T)],
    charset: Charset,
) -> Result<T, UsageError> {
    value.map_or(Ok(default), |value| choose(flag, value, words, charset))
}

/// Returns the words of such a list without their meanings, for [`Accepts`](super::Accepts).
#[must_use]
pub const fn words<T, const N: usize>(list: &[(&'static str, T); N]) -> [&'static str; N] {
    let mut words = [""; N];
    let mut index = 0;
    while index < N {
        words[index] = list[index].0;
        index += 1;
    }
    words
}

/// Returns the number that decimal digits stand for, if it fits the type.
#[must_use]
pub fn number<T: FromStr>(value: &OsStr) -> Option<T> {
    let digits = value.to_str()?;
    // `parse` would accept a leading plus.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}
