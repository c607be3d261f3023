//! How a run ended.

use fuc_engine::{Execution, Summary};

use crate::console::Console;
use crate::repeats::FEW_FAILURES;
use crate::tool::Tool;
use crate::wording;

/// How the work ended. Each failure has been reported already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// Everything that the user asked for was done.
    Complete,
    /// A part of the work was not done.
    Incomplete,
    /// The engine reported failures.
    Failed(Tool, Summary),
    /// The run was cancelled by a signal.
    Interrupted(Tool, Summary),
}

impl Outcome {
    /// Returns the outcome of a run of the engine. A dry run did nothing, whatever its summary counts.
    pub fn of(mut summary: Summary, tool: Tool, execution: Execution) -> Self {
        if execution == Execution::DryRun {
            summary.entries = 0;
        }
        match summary.cancelled {
            true => Self::Interrupted(tool, summary),
            false if summary.is_complete() => Self::Complete,
            false => Self::Failed(tool, summary),
        }
    }

    /// Returns the line that ends an interrupted run, or at a terminal one with many failures.
    pub(crate) fn last_line(self, console: &Console) -> Option<String> {
        match self {
            Self::Interrupted(tool, summary) => Some(wording::interrupted(tool, &summary)),
            Self::Failed(tool, summary) => (summary.failures > FEW_FAILURES
                && console.stderr_is_terminal())
            .then(|| wording::failed(tool, &summary)),
            Self::Complete | Self::Incomplete => None,
        }
    }
}
