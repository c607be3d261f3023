//! The flag table: each flag of a command is one row, and everything else is read from the rows.
//!
//! ```text
//!          argv ──scan──▶ flags in canonical form ──clap──▶ what was given ──fold──▶ options
//!                 │            operands                     (last one wins)
//! table ──────────┤
//!                 └▶ usage errors in GNU's words, --help, --version
//! ```
//!
//! The scan knows GNU's rules for argv, which clap does not have: any unambiguous
//! prefix of a long option, options after operands, bytes that are no UTF-8.
//! clap receives only flags that the scan has found to be right, so none
//! of its own errors can occur, and none can reach a user.
//!
//! **A flag is added by adding a row** and giving it an id.

pub use choice::choose;
pub use misuse::{Advice, Misuse};
pub use scan::{Order, Scan, Stop};

mod choice;
mod help;
mod matches;
mod misuse;
mod scan;

use std::ffi::OsString;

/// Whether a flag takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// It never does.
    None,
    /// `--name=VALUE` does, `--name` and the short form don't. Holds the word that help shows.
    Optional(&'static str),
    /// It always does, attached or as the next argument. Holds the word that help shows.
    Required(&'static str),
}

/// Who defined a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// GNU's tool has it.
    Gnu,
    /// Ours: unknown to the strict personality, never abbreviated.
    Extension,
}

/// What the scan does when it meets a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning<I> {
    /// Hands it on to whoever resolves the options.
    Sets(I),
    /// Prints the help and ends.
    Help,
    /// Prints the version and ends.
    Version,
}

/// Whether `--help` lists a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listing {
    Shown,
    Hidden,
}

/// Whether a long name may be shortened to an unambiguous prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Abbreviation {
    Allowed,
    Refused,
}

/// One row of the table: a flag, all its names, and what it takes.
///
/// `I` is the command's own enum of flags.
#[derive(Clone, Copy, Debug)]
pub struct Flag<I> {
    meaning: Meaning<I>,
    /// Each letter is a short form; empty: none.
    shorts: &'static str,
    /// Without the two dashes; empty: short forms only.
    long: &'static str,
    /// The long name of which this one is another spelling; two spellings are not ambiguous.
    spelling_of: &'static str,
    value: Value,
    origin: Origin,
    abbreviation: Abbreviation,
    listing: Listing,
    help: &'static str,
}

impl<I: Copy> Flag<I> {
    /// A flag of GNU's that this command has: its short letters, its long name (either may be empty), its help.
    #[must_use]
    pub const fn gnu(id: I, shorts: &'static str, long: &'static str, help: &'static str) -> Self {
        Self::row(Meaning::Sets(id), shorts, long, help)
    }

    /// A flag of our own; it has a long name only, so that it cannot clash.
    #[must_use]
    pub const fn extension(id: I, long: &'static str, help: &'static str) -> Self {
        let row = Self::row(Meaning::Sets(id), "", long, help);
        Self {
            origin: Origin::Extension,
            ..row
        }
    }

    /// The row of `--help`.
    #[must_use]
    pub const fn help() -> Self {
        Self::row(Meaning::Help, "", "help", "display this help and exit")
    }

    /// The row of `--version`.
    #[must_use]
    pub const fn version() -> Self {
        Self::row(
            Meaning::Version,
            "",
            "version",
            "display the version and exit",
        )
    }

    /// With an optional value, shown as `word`.
    #[must_use]
    pub const fn optional(self, word: &'static str) -> Self {
        Self {
            value: Value::Optional(word),
            ..self
        }
    }

    /// With a required value, shown as `word`.
    #[must_use]
    pub const fn required(self, word: &'static str) -> Self {
        Self {
            value: Value::Required(word),
            ..self
        }
    }

    /// To be spelled in full, or refused.
    #[must_use]
    pub const fn in_full(self) -> Self {
        Self {
            abbreviation: Abbreviation::Refused,
            ..self
        }
    }

    /// Not listed by `--help`.
    #[must_use]
    pub const fn hidden(self) -> Self {
        Self {
            listing: Listing::Hidden,
            ..self
        }
    }

    /// Another spelling of the long option `long`.
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
            origin: Origin::Gnu,
            abbreviation: Abbreviation::Allowed,
            listing: Listing::Shown,
            help,
        }
    }

    /// The one name by which clap knows it; clap has none with a dash in front, such as rm's `---presume-input-tty`.
    fn canonical(&self) -> &'static str {
        if self.long.is_empty() {
            &self.shorts[..1]
        } else {
            self.long.trim_start_matches('-')
        }
    }
}

/// All flags of a command.
///
/// Rows come in the order in which GNU's tool lists them as possibilities
/// when a prefix is ambiguous.
#[derive(Debug)]
pub struct Table<I: 'static> {
    /// The rows.
    pub flags: &'static [Flag<I>],
    /// Lines of help above the flags, after the lines of usage.
    pub about: &'static str,
    /// What follows the command's name in each line of usage.
    pub usage: &'static [&'static str],
    /// Lines of help below the flags.
    pub notes: &'static str,
}

/// A flag that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given<I> {
    /// Which.
    pub id: I,
    /// Its value, where one was given.
    pub value: Option<OsString>,
}

#[cfg(test)]
mod tests;
