//! Stdin has one reader: a list of operands, a list of patterns, or prompts.

use crate::exclude::Exclusions;
use crate::flags::UsageError;
use crate::name_list::ListFile;

/// Checks that at most one option reads stdin. `prompts` names the options for prompts, if they were given.
///
/// # Errors
/// If two of them would read it.
pub fn check_readers(
    list: Option<&ListFile>,
    exclusions: &Exclusions,
    prompts: Option<&str>,
) -> Result<(), UsageError> {
    let list = list.is_some_and(ListFile::is_stdin);
    let (first, second, reason) = match (list, exclusions.reads_stdin(), prompts) {
        (true, true, _) => ("--files0-from=-", "--exclude-from=-", "both read stdin"),
        (true, _, Some(prompts)) => ("--files0-from=-", prompts, "stdin holds no answers"),
        (_, true, Some(prompts)) => ("--exclude-from=-", prompts, "stdin holds no answers"),
        _ => return Ok(()),
    };
    let message = format!("{first} cannot be combined with {second}: {reason}");
    Err(UsageError::with_help(message))
}
