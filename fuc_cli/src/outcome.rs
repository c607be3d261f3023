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
    /// The engine reported failures, or a signal has cancelled the run.
    Failed(Summary),
}

impl Outcome {
    /// Returns the outcome of a run of the engine. A dry run did nothing, whatever its summary counts.
    pub fn of(mut summary: Summary, execution: Execution) -> Self {
        if execution == Execution::DryRun {
            summary.entries = 0;
        }
        match summary.is_complete() {
            true => Self::Complete,
            false => Self::Failed(summary),
        }
    }

    /// Returns the line that ends an interrupted run, or at a terminal one with many failures.
    pub(crate) fn last_line(self, tool: Tool, console: &Console) -> Option<String> {
        let Self::Failed(summary) = self else {
            return None;
        };
        if summary.cancelled {
            return Some(wording::interrupted(tool, &summary));
        }
        let are_many = summary.failures > FEW_FAILURES && console.stderr_is_terminal();
        are_many.then(|| wording::failed(tool, &summary))
    }
}
