//! The flags of a command for several ranks: those of the command for one process, and its own.

use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;

use fuc_cli::command::Context;
use fuc_cli::flags::{Accepts, Flag, Occurrence, Table, UsageError};
use fuc_cli::locale::Charset;
use fuc_cli::quote;

/// The message about flags that ask.
pub const CANNOT_PROMPT: &str = "cannot prompt: other ranks have no terminal";

/// A flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Id<I> {
    /// The flag is one of the command for one process.
    Tool(I),
    /// `--max-rate` limits the entries per second of all ranks together.
    MaxRate,
    /// `--all-failures` writes each failure, even if many are equal.
    AllFailures,
}

/// The values of the flags that only commands for several ranks have.
#[derive(Clone, Copy, Debug, Default)]
pub struct JobFlags {
    /// Write each failure.
    pub all_failures: bool,
    /// The most entries per second of all ranks together, if there is a limit.
    pub max_rate: Option<NonZeroUsize>,
}

/// The options that flags resolve to.
#[derive(Clone, Debug)]
pub struct Options<O> {
    /// The options of the command for one process.
    pub tool: O,
    /// The rest.
    pub job: JobFlags,
}

/// Returns the table for several ranks, without help on flags that the command refuses. It is never freed.
#[must_use]
pub fn table<I: Copy + PartialEq>(tool: &Table<I>, refused: &[I]) -> Table<Id<I>> {
    let max_rate = Flag::extension(
        Id::MaxRate,
        "max-rate",
        "process at most N entries per second, all ranks\n\
         together",
    );
    let max_rate = max_rate.required("N", Accepts::Text).not_in_config();
    let all_failures = Flag::extension(
        Id::AllFailures,
        "all-failures",
        "write each failure, not only the first 100 of each\n\
         rank with one reason",
    );
    let flags = tool.flags.iter().map(|row| {
        let is_refused = row.id().is_some_and(|id| refused.contains(&id));
        let row = row.with_id(Id::Tool);
        if is_refused { row.hidden() } else { row }
    });
    Table {
        flags: flags
            .chain([all_failures, max_rate])
            .collect::<Vec<_>>()
            .leak(),
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
    let mut job = JobFlags::default();
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
            Id::MaxRate => job.max_rate = Some(parse_rate(value(), charset)?),
            Id::AllFailures => job.all_failures = true,
        }
    }
    Ok(Options {
        tool: tool(&of_tool, context)?,
        job,
    })
}

fn parse_rate(value: &OsStr, charset: Charset) -> Result<NonZeroUsize, UsageError> {
    // `parse` would accept a leading plus.
    let is_number = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    let digits = value.to_str().filter(is_number);
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| {
            let quoted = quote::locale(value.as_bytes(), charset);
            UsageError::plain([b"invalid rate: ", &quoted[..]].concat())
        })
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
}
