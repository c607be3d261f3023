//! A check for tests of a flag table: a command must accept the words of the table, and no others.

use super::{Accepts, Meaning, Occurrence, Table};

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
