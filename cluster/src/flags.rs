//! The flags of a command for several ranks: those of the command for one process, and its own.

use fuc_cli::command::Context;
use fuc_cli::flags::{Flag, Occurrence, Table, UsageError};

/// The message about flags that ask.
pub const CANNOT_PROMPT: &str = "cannot prompt: other ranks have no terminal";

/// A flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Id<I> {
    /// The flag is one of the command for one process.
    Tool(I),
    /// `--all-failures` writes each failure, even if many are equal.
    AllFailures,
}

/// The options that flags resolve to.
#[derive(Clone, Debug)]
pub struct Options<O> {
    /// The options of the command for one process.
    pub tool: O,
    /// Each failure is written, even if many are equal.
    pub all_failures: bool,
}

/// Returns the table for several ranks, without help on flags that the command refuses. It is never freed.
#[must_use]
pub fn table<I: Copy + PartialEq>(tool: &Table<I>, refused: &[I]) -> Table<Id<I>> {
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
        name: tool.name,
        flags: flags.chain([all_failures]).collect::<Vec<_>>().leak(),
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
    let mut all_failures = false;
    let mut of_tool = Vec::new();
    for flag in matched {
        match flag.id {
            Id::Tool(id) => of_tool.push(Occurrence {
                id,
                value: flag.value.clone(),
            }),
            Id::AllFailures => all_failures = true,
        }
    }
    Ok(Options {
        tool: tool(&of_tool, context)?,
        all_failures,
    })
}
