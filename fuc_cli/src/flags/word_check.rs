//! Help for tests of a flag table.

use super::{Accepts, ArgOrder, Meaning, Occurrence, Scan, Stop, Table};
use crate::invocation::Personality;
use std::ffi::OsString;

/// Returns the error that GNU's command would find in these arguments. Returns an empty string if there is none.
pub fn error_in<I: Copy>(table: &Table<I>, arguments: &[OsString]) -> String {
    match Scan::of(table, arguments, Personality::Strict, ArgOrder::Any).stop {
        Some(Stop::Error(error)) => String::from_utf8_lossy(&error.message).into_owned(),
        Some(Stop::Help | Stop::Version) | None => String::new(),
    }
}

/// Asserts that the command accepts each word that the table has for a flag's value, and no
/// other word. `resolves` returns `true` if a flag with a value is not a usage error.
///
/// # Panics
/// If the command and the table differ.
pub fn assert_words_are_accepted<I: Copy>(
    table: &Table<I>,
    resolves: impl Fn(Occurrence<I>) -> bool,
) {
    for flag in table.flags {
        let (words, list) = match flag.accepts {
            Accepts::Text | Accepts::Directory | Accepts::File => continue,
            Accepts::OneOf(words) => (words, None),
            Accepts::ListOf(words) => (words, Some(words.join(","))),
        };
        let Meaning::Sets(id) = flag.meaning else {
            panic!("--{} takes a value", flag.long);
        };
        let accepts = |value: &str| {
            resolves(Occurrence {
                id,
                value: Some(value.into()),
            })
        };
        for word in words.iter().copied().chain(list.as_deref()) {
            assert!(accepts(word), "--{}={word} is refused", flag.long);
            let other = format!("{word}?");
            assert!(!accepts(&other), "--{}={other} is accepted", flag.long);
        }
    }
}
