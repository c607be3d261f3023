//! The flags of a command for several ranks: those of the command for one process, and its own.

use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;

use fuc_cli::command::Context;
use fuc_cli::flags::{Accepts, Flag, Occurrence, Table, UsageError};
use fuc_cli::locale::Charset;
use fuc_cli::quote;

/// A flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Id<I> {
    /// The flag is one of the command for one process.
    Tool(I),
    /// `--max-rate` limits the entries per second of all ranks together.
    MaxRate,
    /// `--divide-from` says how large the files are that several ranks copy together.
    DivideFrom,
}

/// The options that flags resolve to.
#[derive(Clone, Debug)]
pub struct Options<O> {
    /// The options of the command for one process.
    pub tool: O,
    /// The most entries per second of all ranks together, if there is a limit.
    pub max_rate: Option<NonZeroUsize>,
    /// The bytes of the smallest file that several ranks copy together, if the user has chosen them.
    pub divide_from: Option<NonZeroUsize>,
}

/// Returns the table for several ranks. It is never freed.
#[must_use]
pub fn table<I: Copy>(tool: &Table<I>) -> Table<Id<I>> {
    let max_rate = Flag::extension(
        Id::MaxRate,
        "max-rate",
        "process at most N entries per second, all ranks\n\
         together",
    );
    let max_rate = max_rate.required("N", Accepts::Text).not_in_config();
    with_flag(
        tool.flags.iter().map(|row| row.with_id(Id::Tool)),
        max_rate,
        tool,
    )
}

/// Returns the table of a copy for several ranks. It is never freed.
#[must_use]
pub fn copy_table<I: Copy>(tool: &Table<I>) -> Table<Id<I>> {
    let divide_from = Flag::extension(
        Id::DivideFrom,
        "divide-from",
        "let several ranks copy each new file of at least\n\
         SIZE bytes together, on any filesystem (default: 1G,\n\
         on filesystems of servers)",
    );
    let divide_from = divide_from.required("SIZE", Accepts::Text).not_in_config();
    let table = table(tool);
    with_flag(table.flags.iter().copied(), divide_from, tool)
}

/// Returns a table of these flags and another one.
fn with_flag<I: Copy>(
    flags: impl Iterator<Item = Flag<Id<I>>>,
    more: Flag<Id<I>>,
    tool: &Table<I>,
) -> Table<Id<I>> {
    Table {
        flags: flags.chain([more]).collect::<Vec<_>>().leak(),
        about: tool.about,
        usage: tool.usage,
        operands: tool.operands,
        notes: tool.notes,
    }
}

/// Resolves the flags, later over earlier. `tool` resolves those of the command for one process.
///
/// # Errors
/// If a value is invalid, or if flags exclude each other.
pub fn resolve<I: Copy, O>(
    matched: &[Occurrence<Id<I>>],
    context: Context<'_>,
    tool: impl FnOnce(&[Occurrence<I>], Context<'_>) -> Result<O, UsageError>,
) -> Result<Options<O>, UsageError> {
    let (mut max_rate, mut divide_from) = (None, None);
    let charset = context.console.charset();
    let mut of_tool = Vec::new();
    for flag in matched {
        let value = || {
            let value = flag.value.as_deref();
            value.expect("BUG: a required value is missing")
        };
        match flag.id {
            Id::Tool(id) => of_tool.push(Occurrence {
                id,
                value: flag.value.clone(),
            }),
            Id::MaxRate => max_rate = Some(parse_rate(value(), charset)?),
            Id::DivideFrom => divide_from = Some(parse_size(value(), charset)?),
        }
    }
    Ok(Options {
        tool: tool(&of_tool, context)?,
        max_rate,
        divide_from,
    })
}

fn parse_rate(value: &OsStr, charset: Charset) -> Result<NonZeroUsize, UsageError> {
    let rate = value.to_str().and_then(parse_positive);
    rate.ok_or_else(|| invalid(b"invalid rate: ", value, charset))
}

/// Parses a number of bytes, which may end with K, M, G or T for powers of 1024.
fn parse_size(value: &OsStr, charset: Charset) -> Result<NonZeroUsize, UsageError> {
    let parse = |text: &str| {
        let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
        let stripped = units.map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)));
        let (digits, shift) = stripped.into_iter().flatten().next().unwrap_or((text, 0));
        parse_positive(digits)?.checked_mul(NonZeroUsize::MIN.saturating_add((1 << shift) - 1))
    };
    let size = value.to_str().and_then(parse);
    size.ok_or_else(|| invalid(b"invalid size: ", value, charset))
}

fn parse_positive(digits: &str) -> Option<NonZeroUsize> {
    // `parse` would accept a leading plus.
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

fn invalid(message: &[u8], value: &OsStr, charset: Charset) -> UsageError {
    let quoted = quote::locale(value.as_bytes(), charset);
    UsageError::plain([message, &quoted[..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_positive_decimal_number() {
        let parsed = |value: &str| parse_rate(value.as_ref(), Charset::Ascii);
        assert_eq!(parsed("250").unwrap().get(), 250);
        for value in ["", "0", "-1", "+1", "1.5", "x", "99999999999999999999999"] {
            let error = parsed(value).unwrap_err();
            assert_eq!(error, UsageError::plain(format!("invalid rate: '{value}'")));
        }
    }

    #[test]
    fn a_size_is_a_positive_number_with_a_unit() {
        let parsed = |value: &str| parse_size(value.as_ref(), Charset::Ascii);
        for (value, bytes) in [
            ("7", 7),
            ("3K", 3 << 10),
            ("64M", 64 << 20),
            ("1G", 1 << 30),
        ] {
            assert_eq!(parsed(value).unwrap().get(), bytes);
        }
        for value in ["", "0", "0M", "-1", "+1", "M", "1KB", "1k", "17000000T"] {
            let error = parsed(value).unwrap_err();
            assert_eq!(error, UsageError::plain(format!("invalid size: '{value}'")));
        }
    }
}
