//! The flags of a command for several ranks: those of the command for one process, and its own.

use fuc_cli::flags::{Flag, Table};

/// The message about flags that ask.
pub const CANNOT_PROMPT: &str = "cannot prompt: other ranks have no terminal";

/// Returns the table for several ranks, with the flag `all_failures` and without help on flags that the command refuses. It
/// is never freed.
#[must_use]
pub fn table<I: Copy + PartialEq>(tool: &Table<I>, all_failures: I, refused: &[I]) -> Table<I> {
    let all_failures = Flag::extension(
        all_failures,
        "all-failures",
        "write each failure, not only the first 100 of each\n\
         rank with one reason",
    );
    let flags = tool.flags.iter().map(|row| {
        let is_refused = row.id().is_some_and(|id| refused.contains(&id));
        if is_refused { row.hidden() } else { *row }
    });
    Table {
        flags: flags.chain([all_failures]).collect::<Vec<_>>().leak(),
        ..*tool
    }
}
