//! The engine's observer: failures and questions go to stderr, `-v` lines to stdout.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use fuc_engine::gnu::CopyMethod;
use fuc_engine::{Cause, Counts, Error, Event, Execution, Observer, Question, Refusal, Summary};

use crate::console::Console;
use crate::itemize;
use crate::progress::{LookAhead, Watch};
use crate::repeats::Repeats;
use crate::tool::Tool;
use crate::wording;

/// The amount of detail in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "distribute", derive(serde::Serialize, serde::Deserialize))]
pub enum Verbosity {
    /// Failures are reported.
    Quiet,
    /// Each action is reported too, on a line of its own (`-v`).
    Verbose,
    /// How each file was copied is reported too (`--debug`).
    Debug,
    /// A line for each dest says what happened to it and why (`--itemize`).
    Itemized,
}

/// The words of `--dry-run`.
pub const PLAN: [(&str, Verbosity); 1] = [("total", Verbosity::Quiet)];

/// Shows the user what the engine reports.
pub struct Reporter<'a> {
    console: &'a Console,
    tool: Tool,
    verbosity: Verbosity,
    execution: Execution,
    /// The command is strictly GNU's.
    is_strict: bool,
    /// Failures that may be counted instead of written. Without it, each one is written.
    repeats: Option<Repeats>,
    /// Is called after each failure was reported.
    after_failure: &'a (dyn Fn(Cause) + Sync),
    /// The counts of the run, if the user can see them.
    counts: Option<Arc<Counts>>,
}

impl<'a> Reporter<'a> {
    /// Makes a reporter that writes to `console` in the words of `tool`.
    #[must_use]
    pub fn new(console: &'a Console, tool: Tool, verbosity: Verbosity) -> Self {
        Self {
            console,
            tool,
            verbosity,
            execution: Execution::Real,
            is_strict: false,
            repeats: None,
            after_failure: &|_| {},
            counts: None,
        }
    }

    /// Sets whether the run is a dry run. It prints how much would be done at the end, and shows no progress.
    #[must_use]
    pub fn in_execution(self, execution: Execution) -> Self {
        Self { execution, ..self }
    }

    /// Calls `after_failure` with the cause of each failure, after it was reported.
    #[must_use]
    pub fn passing_failures_to(self, after_failure: &'a (dyn Fn(Cause) + Sync)) -> Self {
        Self {
            after_failure,
            ..self
        }
    }

    /// Lets the run keep these counts up to date, without showing them.
    #[must_use]
    pub fn counting(mut self, counts: &Arc<Counts>) -> Self {
        self.counts = Some(Arc::clone(counts));
        self
    }

    /// Lets the reporter write at most so many failures with the same reason. [`surplus`](Self::surplus) has the others.
    #[must_use]
    pub fn writing_equal_failures(mut self, written: u64) -> Self {
        self.repeats = Some(Repeats::above(written));
        self
    }

    /// Returns the number of failures that were not written, by their reasons.
    #[must_use]
    pub fn surplus(&self) -> BTreeMap<String, u64> {
        self.repeats
            .as_ref()
            .map(Repeats::surplus)
            .unwrap_or_default()
    }

    /// Calls `run` with this reporter, and shows the progress if the user wants that. A dry run shows none.
    ///
    /// If progress is shown, `look_ahead` is called on a thread of its own. Unless the command is strictly GNU's,
    /// failures that repeat at a terminal are only counted, and the counts follow the run.
    pub fn run(
        mut self,
        watch: Option<Watch>,
        run: impl FnOnce(&Self) -> Summary,
        look_ahead: Option<LookAhead<'_>>,
    ) -> Summary {
        self.is_strict = watch.is_none();
        // Otherwise the caller shows the surplus of all processes.
        let shows_surplus = self.repeats.is_none();
        if shows_surplus {
            self.repeats = watch.is_some().then(Repeats::at_terminal);
        }
        let run = |reporter: &Self| {
            let summary = run(reporter);
            if shows_surplus {
                report_surplus(&reporter.surplus(), reporter.console);
            }
            summary
        };
        if self.execution == Execution::DryRun {
            let summary = run(&self);
            let line = wording::planned(self.tool, &summary);
            self.console.print(&[line.as_bytes(), b"\n"]);
            return summary;
        }
        let Some(watch) = watch else {
            return run(&self);
        };
        self.counts = Some(Arc::clone(watch.counts()));
        watch.run(self.console, || run(&self), look_ahead)
    }

    fn report(&self, error: &Error) {
        let diagnostic = wording::describe(error, self.tool, self.console.charset());
        self.console.error(diagnostic);
    }

    /// Prints a line about two paths. The line of a dry run begins with `planned`.
    fn print_pair(&self, planned: &'static str, paths: [&Path; 2], end: &str) {
        let [from, to] = paths.map(|path| self.console.quoted(path));
        let planned = self.words(planned, "").as_bytes();
        self.console.print(&[
            planned,
            from.as_bytes(),
            b" -> ",
            to.as_bytes(),
            end.as_bytes(),
        ]);
    }

    /// Returns the end of the line about a copy, and the line about its method.
    fn end(&self, backup: Option<&Path>, method: Option<CopyMethod>) -> String {
        let backup = backup.map(|backup| format!(" (backup: {})", self.console.quoted(backup)));
        let method = method.map(wording::method);
        backup.unwrap_or_default() + "\n" + &method.unwrap_or_default()
    }

    /// Returns the words of a dry run, or those of a real one.
    fn words(&self, planned: &'static str, done: &'static str) -> &'static str {
        match self.execution {
            Execution::DryRun => planned,
            _ => done,
        }
    }

    fn print_action(&self, action: &str, path: &Path) {
        self.console.print(&[
            action.as_bytes(),
            self.console.quoted(path).as_bytes(),
            b"\n",
        ]);
    }
}

/// Writes how many failures were not written, by their reasons.
pub fn report_surplus(surplus: &BTreeMap<String, u64>, console: &Console) {
    for (reason, &failures) in surplus {
        let line = wording::repeated(failures, reason);
        console.error(line);
    }
}

impl Observer for Reporter<'_> {
    fn failed(&self, error: Error) {
        let is_counted = match error.cause() {
            // cp says nothing when a signal ends it. Under our name, each dest that it damages is named.
            Cause::Refused(Refusal::LeftIncomplete) => self.is_strict,
            cause => self
                .repeats
                .as_ref()
                .is_some_and(|repeats| repeats.is_surplus(cause)),
        };
        if !is_counted {
            self.report(&error);
        }
        (self.after_failure)(error.cause());
    }

    /// Shows a warning in the same way; its words say that it is one. Only a terminal shows which dest of a failed copy is
    /// incomplete, because cp does not name it.
    fn warned(&self, warning: Error) {
        let is_hint = warning.cause() == Cause::Refused(Refusal::LeftIncomplete);
        if !is_hint || !self.is_strict && self.console.stderr_is_terminal() {
            self.report(&warning);
        }
    }

    fn wants_events(&self) -> bool {
        self.verbosity != Verbosity::Quiet
    }

    fn on_event(&self, event: Event<'_>) {
        if self.verbosity == Verbosity::Itemized {
            if let Some(line) = itemize::line(event, self.console) {
                self.console.print(&[line.as_bytes()]);
            }
            return;
        }
        match event {
            Event::Removed(path) | Event::RemovedDest(path) => {
                self.print_action(self.words("would remove ", "removed "), path);
            }
            Event::RemovedDirectory(path) => {
                let words = self.words("would remove directory ", "removed directory ");
                self.print_action(words, path);
            }
            Event::Copied {
                source,
                dest,
                backup,
                method,
                ..
            } => {
                self.print_pair("would copy ", [source, dest], &self.end(backup, method));
            }
            Event::Attempted {
                source,
                dest,
                backup,
                method,
                ..
            } => {
                let end = self.end(backup, method);
                self.print_pair("would fail to copy ", [source, dest], &end);
            }
            Event::MadeParent { source, dest, .. } => {
                // cp does not quote these two.
                let [source, dest] = [source, dest].map(|path| path.as_os_str().as_bytes());
                let copy = self.words("would copy ", "").as_bytes();
                self.console.print(&[copy, source, b" -> ", dest, b"\n"]);
            }
            Event::RestoredBackup { backup, dest, .. } => {
                self.print_pair("would copy ", [backup, dest], " (unbackup)\n");
            }
            Event::SkippedDest { path, .. } if self.verbosity == Verbosity::Debug => {
                self.print_action(self.words("would skip ", "skipped "), path);
            }
            // GNU's tools have no line for other events.
            _ => {}
        }
    }

    fn counts(&self) -> Option<&Counts> {
        self.counts.as_deref()
    }

    fn confirm(&self, question: Question<'_>) -> bool {
        wording::question(&question, self.console.charset())
            .is_some_and(|words| self.console.ask(&words))
    }
}
