//! The flag table: each flag of a command is one row, and everything else is derived from the rows.
//!
//! ```text
//!           ┌▶ scan ──────▶ matched flags in the order of argv, operands, usage errors
//!   table ──┼▶ help ──────▶ the text of --help
//!           └▶ generate ──▶ completions and the manual page
//! ```
//!
//! clap does not parse the command line of a run. It does not have GNU's rules for argv: any unambiguous
//! prefix of a long option counts, and GNU words and orders the usage errors.
//!
//! **To add a flag, add a row** and give it an id.

pub use choice::{choose, choose_or, number, words};
pub(crate) use scan::read_config_line;
pub use scan::{ArgOrder, Occurrence, Scan, Stop};
pub use usage_error::{Advice, UsageError};
#[cfg(feature = "test-support")]
pub use word_check::{assert_words_are_accepted, error_in};

mod choice;
mod help;
mod scan;
mod suggestion;
mod usage_error;
#[cfg(feature = "test-support")]
mod word_check;

use crate::invocation::Personality;

/// The value of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The flag never takes a value.
    None,
    /// The flag takes a value as `--name=VALUE`, but not as the next argument. Holds the word that help shows.
    Optional(&'static str),
    /// The flag always takes a value, attached or as the next argument. Holds the word that help shows.
    Required(&'static str),
}

impl Value {
    /// Returns the text of help: what precedes the word, the word, and what follows it.
    pub(crate) fn parts(self) -> [&'static str; 3] {
        match self {
            Self::None => [""; 3],
            Self::Optional(word) => ["[=", word, "]"],
            Self::Required(word) => ["=", word, ""],
        }
    }
}

/// The values that a flag accepts, for completions and manual pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// Text that no list describes, such as a number or a suffix.
    Text,
    /// The path of a directory.
    Directory,
    /// The path of a file.
    File,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Some of these words, separated by commas.
    ListOf(&'static [&'static str]),
}

/// The heading of the extensions.
pub(crate) const EXTENSIONS: &str = "Extensions, which cannot be abbreviated";

/// The action of the scan when it finds a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning<I> {
    /// Records the flag for the code that resolves the options.
    Sets(I),
    /// Prints the help and ends.
    Help,
    /// Prints the version and ends.
    Version,
}

/// One row of the table: a flag, all its names, and the value that it takes.
///
/// `I` is the command's own enum of flags.
#[derive(Clone, Copy, Debug)]
pub struct Flag<I> {
    pub(crate) meaning: Meaning<I>,
    /// Each letter is a short form. Empty if the flag has a long name only.
    pub(crate) shorts: &'static str,
    /// The long name without the two dashes. Empty if the flag has short forms only.
    pub(crate) long: &'static str,
    /// The long name of which this one is another spelling; two spellings are not ambiguous.
    pub(crate) spelling_of: &'static str,
    pub(crate) value: Value,
    pub(crate) accepts: Accepts,
    /// The flag is ours, not GNU's: the strict personality does not know it, and it is never abbreviated.
    pub(crate) is_extension: bool,
    /// A prefix of the long name is refused.
    is_in_full: bool,
    /// `--help` leaves the flag out.
    pub(crate) is_hidden: bool,
    /// The flag concerns a single command line, so a file of options cannot set it.
    is_not_in_config: bool,
    pub(crate) help: &'static str,
}

impl<I: Copy> Flag<I> {
    /// Makes a row for a flag of GNU's: its short letters, its long name (either may be empty), its help.
    #[must_use]
    pub const fn gnu(id: I, shorts: &'static str, long: &'static str, help: &'static str) -> Self {
        Self::row(Meaning::Sets(id), shorts, long, help)
    }

    /// Makes a row for a flag of our own. It has a long name only, so that it cannot clash.
    #[must_use]
    pub const fn extension(id: I, long: &'static str, help: &'static str) -> Self {
        let row = Self::row(Meaning::Sets(id), "", long, help);
        Self {
            is_extension: true,
            ..row
        }
    }

    /// Makes the row of `--help`. Its short form is ours.
    #[must_use]
    pub const fn help() -> Self {
        Self::row(Meaning::Help, "h", "help", "display this help and exit")
    }

    /// Makes the row of `--version`.
    #[must_use]
    pub const fn version() -> Self {
        Self::row(
            Meaning::Version,
            "",
            "version",
            "display the version and exit",
        )
    }

    /// Gives the flag an optional value, which help shows as `word`.
    ///
    /// # Panics
    /// If the flag has short forms: these never take an optional value, so they need a row of their own.
    #[must_use]
    pub const fn optional(self, word: &'static str, accepts: Accepts) -> Self {
        assert!(
            self.shorts.is_empty(),
            "a short form with an optional value"
        );
        Self {
            value: Value::Optional(word),
            accepts,
            ..self
        }
    }

    /// Gives the flag a required value, which help shows as `word`.
    #[must_use]
    pub const fn required(self, word: &'static str, accepts: Accepts) -> Self {
        Self {
            value: Value::Required(word),
            accepts,
            ..self
        }
    }

    /// Refuses abbreviations of the long name.
    #[must_use]
    pub const fn in_full(self) -> Self {
        Self {
            is_in_full: true,
            ..self
        }
    }

    /// Leaves the flag out of `--help`.
    #[must_use]
    pub const fn hidden(self) -> Self {
        Self {
            is_hidden: true,
            ..self
        }
    }

    /// Returns the id that the flag sets.
    #[must_use]
    pub fn id(&self) -> Option<I> {
        match self.meaning {
            Meaning::Sets(id) => Some(id),
            Meaning::Help | Meaning::Version => None,
        }
    }

    /// Refuses the flag in a file of options.
    #[must_use]
    pub const fn not_in_config(self) -> Self {
        Self {
            is_not_in_config: true,
            ..self
        }
    }

    /// Makes the flag another spelling of the long option `long`.
    #[must_use]
    pub const fn spelling_of(self, long: &'static str) -> Self {
        Self {
            spelling_of: long,
            ..self
        }
    }

    const fn row(
        meaning: Meaning<I>,
        shorts: &'static str,
        long: &'static str,
        help: &'static str,
    ) -> Self {
        Self {
            meaning,
            shorts,
            long,
            spelling_of: long,
            value: Value::None,
            accepts: Accepts::Text,
            is_extension: false,
            is_in_full: false,
            is_hidden: false,
            is_not_in_config: false,
            help,
        }
    }

    /// Returns the letters by which a command of this personality knows the flag.
    fn shorts_of(&self, personality: Personality) -> &'static str {
        match (self.meaning, personality) {
            (Meaning::Help, Personality::Strict) => "",
            _ => self.shorts,
        }
    }

    /// Returns the spellings of the flag with their dashes. `shorts` are its letters.
    pub(crate) fn spellings(&self, shorts: &str) -> Vec<String> {
        let shorts = shorts.chars().map(|short| format!("-{short}"));
        let long = (!self.long.is_empty()).then(|| format!("--{}", self.long));
        shorts.chain(long).collect()
    }

    /// Returns `true` if a command of this personality has the flag.
    fn is_known_to(&self, personality: Personality) -> bool {
        !self.is_extension || personality == Personality::Extended
    }
}

/// All flags of a command.
///
/// Rows come in the order in which GNU's tool lists them as possibilities
/// when a prefix is ambiguous.
#[derive(Debug)]
pub struct Table<I: 'static> {
    /// The name under which the command has all of the flags.
    pub name: &'static str,
    /// The rows.
    pub flags: &'static [Flag<I>],
    /// Lines of help above the flags, after the lines of usage.
    pub about: &'static str,
    /// More of them, unless the command is strictly GNU's.
    pub own_about: &'static str,
    /// The text after the command's name in each line of usage.
    pub usage: &'static [&'static str],
    /// The operands, for completions and manual pages.
    pub operands: OperandHelp,
    /// Lines of help below the flags.
    pub notes: &'static str,
    /// More of them, unless the command is strictly GNU's.
    pub own_notes: &'static str,
}

/// Describes the operands of a command, all of which are paths.
#[derive(Clone, Copy, Debug)]
pub struct OperandHelp {
    /// The word that stands for an operand.
    pub name: &'static str,
    /// The purpose of the operands.
    pub help: &'static str,
}

#[cfg(test)]
mod tests;
