//! Reads argv as `getopt_long` does, by the table.
//!
//! ```text
//!            ┌───────────────┬──────────────┬───────────────┐
//!  argument ─┤ --            │ --name[=x]   │ -abc          │ anything else, and "-"
//!            └──────┬────────┴──────┬───────┴───────┬───────┴──────┬────────────
//!                   ▼               ▼               ▼              ▼
//!            the rest are     exact name, else   each letter;   operand; under
//!            operands         unambiguous GNU    the first that POSIXLY_CORRECT
//!                             prefix             takes a value  the rest too
//!                                                takes the rest
//! ```
//!
//! The invariant: flags are found **in the order of argv, and the first error stops the scan**. The
//! flags before it still count, because the bad value of an earlier flag is reported before the bad
//! name of a later one.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::suggestion::suggest;
use super::{Accepts, Flag, Meaning, Table, UsageError, Value};
use crate::invocation::Personality;
use crate::streams::is_stdin;

/// The places among the operands at which options may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgOrder {
    /// Options may stand anywhere.
    Any,
    /// Options stand before the first operand, because `POSIXLY_CORRECT` is set.
    OptionsFirst,
}

impl ArgOrder {
    /// Returns the order that the environment asks for.
    #[must_use]
    pub fn from_environment() -> Self {
        if std::env::var_os("POSIXLY_CORRECT").is_some() {
            Self::OptionsFirst
        } else {
            Self::Any
        }
    }
}

/// The reason why a scan ended before the end of argv.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The user asks for the help.
    Help,
    /// The user asks for the version.
    Version,
    /// The command line has an error.
    Error(UsageError),
}

/// A flag that argv holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence<I> {
    /// The flag.
    pub id: I,
    /// The value, if the flag takes one and argv holds it.
    pub value: Option<OsString>,
}

/// The content of argv.
#[derive(Debug)]
pub struct Scan<I> {
    /// The flags, in the order of argv. Code that resolves them in this order lets the last of conflicting flags win.
    pub matched: Vec<Occurrence<I>>,
    /// The operands, in order.
    pub operands: Vec<OsString>,
    /// The reason why the scan ended early, if it did.
    pub stop: Option<Stop>,
}

impl<I: Copy> Scan<I> {
    /// Reads `arguments`, argv without the command's name.
    #[must_use]
    pub fn of(
        table: &Table<I>,
        arguments: &[OsString],
        personality: Personality,
        order: ArgOrder,
    ) -> Self {
        let mut scanner = Scanner {
            table,
            personality,
            rest: arguments.iter(),
            scan: Self {
                matched: Vec::new(),
                operands: Vec::new(),
                stop: None,
            },
        };
        scanner.scan.stop = scanner.run(order).err();
        scanner.scan
    }
}

/// Reads a line of a [file of options](crate::config): an extension in full, with its value after a `=`.
/// Returns `None` if it is anything else, if the flag is refused there, or if it would make each run read stdin.
pub(crate) fn read_config_line<I: Copy>(
    table: &Table<I>,
    line: &OsString,
) -> Option<Result<Occurrence<I>, UsageError>> {
    let body = line.as_bytes().strip_prefix(b"--")?;
    let mut parts = body.splitn(2, |&byte| byte == b'=');
    let (name, value) = (parts.next()?, parts.next());
    let mut flags = table.flags.iter();
    flags.find(|flag| {
        let reads_stdin = matches!(flag.accepts, Accepts::File)
            && value.is_some_and(|value| is_stdin(OsStr::from_bytes(value)));
        flag.long.as_bytes() == name && flag.is_extension && !flag.is_not_in_config && !reads_stdin
    })?;
    let line = std::slice::from_ref(line);
    let mut scan = Scan::of(table, line, Personality::Extended, ArgOrder::Any);
    match scan.stop {
        Some(Stop::Error(error)) => Some(Err(error)),
        Some(Stop::Help | Stop::Version) | None => scan.matched.pop().map(Ok),
    }
}

struct Scanner<'a, I: 'static> {
    table: &'a Table<I>,
    personality: Personality,
    rest: std::slice::Iter<'a, OsString>,
    scan: Scan<I>,
}

impl<I: Copy> Scanner<'_, I> {
    fn run(&mut self, order: ArgOrder) -> Result<(), Stop> {
        while let Some(argument) = self.rest.next() {
            match argument.as_bytes() {
                b"--" => break,
                [b'-', b'-', body @ ..] => self.read_long(argument, body)?,
                [b'-', letters @ ..] if !letters.is_empty() => self.read_bundle(letters)?,
                _ => {
                    self.scan.operands.push(argument.clone());
                    if order == ArgOrder::OptionsFirst {
                        break;
                    }
                }
            }
        }
        self.scan.operands.extend(self.rest.by_ref().cloned());
        Ok(())
    }

    fn read_long(&mut self, argument: &OsStr, body: &[u8]) -> Result<(), Stop> {
        let equals = body.iter().position(|&byte| byte == b'=');
        let (name, attached) = match equals {
            Some(at) => (&body[..at], Some(owned(&body[at + 1..]))),
            None => (body, None),
        };
        let flag = self.find_long(argument, name)?;
        let value = match (flag.value, attached) {
            (Value::None, Some(_)) => return Err(UsageError::unwanted_value(flag.long).into()),
            (Value::Required(_), None) => match self.rest.next() {
                Some(next) => Some(next.clone()),
                None => return Err(UsageError::missing_value(flag.long).into()),
            },
            (Value::Optional(_), None) => match (self.rest.as_slice().first(), flag.accepts) {
                // Otherwise a file with the name of a value would be an operand.
                (Some(next), Accepts::OneOf(words))
                    if flag.is_extension && words.iter().any(|word| next == word) =>
                {
                    return Err(UsageError::detached_value(flag.long, next).into());
                }
                _ => None,
            },
            (Value::None, None) => None,
            (Value::Optional(_) | Value::Required(_), attached) => attached,
        };
        if flag.is_in_full && name != flag.long.as_bytes() {
            return Err(UsageError::abbreviated(flag.long).into());
        }
        self.record(flag, value)
    }

    /// Returns the row with this long name, or the only row of GNU's whose long name begins with it.
    fn find_long(&self, argument: &OsStr, name: &[u8]) -> Result<&'static Flag<I>, Stop> {
        let known = self.table.flags.iter().filter(|flag| !flag.long.is_empty());
        let exact = known.clone().find(|flag| flag.long.as_bytes() == name);
        if let Some(flag) = exact.filter(|flag| flag.is_known_to(self.personality)) {
            return Ok(flag);
        }
        let candidates = || {
            known
                .clone()
                .filter(|flag| !flag.is_extension && flag.long.as_bytes().starts_with(name))
        };
        let Some(first) = candidates().next() else {
            let suggestion = match self.personality {
                Personality::Strict => exact
                    .map(|flag| format!("'--{}' is an option of {}", flag.long, self.table.name)),
                Personality::Extended => suggest(self.table.flags, name, self.personality),
            };
            return Err(UsageError::unknown_long(argument, suggestion).into());
        };
        let others = || candidates().filter(|flag| flag.spelling_of != first.spelling_of);
        if others().next().is_none() {
            return Ok(first);
        }
        let possibilities = std::iter::once(first).chain(others());
        Err(UsageError::ambiguous(argument, possibilities.map(|flag| flag.long)).into())
    }

    fn read_bundle(&mut self, letters: &[u8]) -> Result<(), Stop> {
        for (index, &letter) in letters.iter().enumerate() {
            let shorts = |flag: &&Flag<I>| flag.shorts_of(self.personality).as_bytes();
            let mut flags = self.table.flags.iter();
            let Some(flag) = flags.find(|flag| shorts(flag).contains(&letter)) else {
                return Err(UsageError::unknown_short(letter).into());
            };
            match flag.value {
                Value::None | Value::Optional(_) => self.record(flag, None)?,
                Value::Required(_) => {
                    let attached = &letters[index + 1..];
                    let value = if attached.is_empty() {
                        self.rest.next().cloned()
                    } else {
                        Some(owned(attached))
                    };
                    if value.is_none() {
                        return Err(UsageError::missing_short_value(letter).into());
                    }
                    return self.record(flag, value);
                }
            }
        }
        Ok(())
    }

    fn record(&mut self, flag: &Flag<I>, value: Option<OsString>) -> Result<(), Stop> {
        match flag.meaning {
            Meaning::Sets(id) => {
                self.scan.matched.push(Occurrence { id, value });
                Ok(())
            }
            Meaning::Help => Err(Stop::Help),
            Meaning::Version => Err(Stop::Version),
        }
    }
}

impl From<UsageError> for Stop {
    fn from(error: UsageError) -> Self {
        Self::Error(error)
    }
}

fn owned(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}
