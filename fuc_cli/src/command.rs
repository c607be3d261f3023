//! A run of a command, from argv to the exit status.
//!
//! ```text
//! argv ─▶ scan ─▶ add the user's own ─▶ resolve the options ─▶ a stop? ─▶ execute ─▶ flush stdout ─▶ status
//!                        │ bad file             │ usage error       │ --help, --version, usage error
//!                        ▼                      ▼                   ▼
//!                     status 1               status 1           status 0 or 1
//! ```
//!
//! SIGINT, SIGTERM and SIGHUP cancel the execution. The command then ends by the same signal.
//!
//! Options are resolved before the scan's stop is handled: `--threads=x --help` reports the x. The user's own
//! options are added only if there is no stop, so that a bad file does not prevent `--help`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use fuc_engine::{Execution, Summary};

use crate::config::Config;
use crate::console::{Console, Written};
use crate::flags::{Advice, Occurrence, Order, Scan, Stop, Table, UsageError};
use crate::invocation::{Invocation, Personality};
use crate::preload;
use crate::quote;
use crate::repeats::FEW_FAILURES;
use crate::sys;
use crate::wording::{self, Tool};

/// A command, the same for each of its runs.
///
/// `I` is its enum of flags, and `O` the options that the flags resolve to.
#[derive(Debug)]
pub struct Command<I: 'static, O> {
    /// The command's own name.
    pub name: &'static str,
    /// The name under which the command behaves strictly as GNU's tool.
    pub strict_name: &'static str,
    /// The version that `--version` prints.
    pub version: &'static str,
    /// The command's flags.
    pub table: Table<I>,
    /// The file of the user's own default options.
    pub config: Config<I>,
    /// The hint of usage errors about an option that is also the name of a file.
    pub file_hint: FileHint,
    /// Turns the flags, in order, into options. It makes no system call; `execute` does.
    pub resolve: fn(&[Occurrence<I>], Context<'_>) -> Result<O, UsageError>,
    /// Checks the values that only `execute` looks into, such as patterns. It is called for each line of the user's
    /// file, so that an error can name the line.
    pub check: fn(&O, &Console) -> Result<(), UsageError>,
    /// Does the work on the operands.
    pub execute: fn(O, Vec<OsString>, &Console) -> Result<Outcome, UsageError>,
}

/// The hint of the usage error for `rm -foo` if there is a file `-foo`: to try `rm ./-foo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileHint {
    /// The hint is shown.
    Shown,
    /// The hint is omitted.
    Omitted,
}

/// The circumstances that options depend on besides the flags.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The personality by which defaults differ.
    pub personality: Personality,
    /// The console, for warnings and for the quotes in usage errors.
    pub console: &'a Console,
}

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
}

impl<I: Copy + PartialEq, O> Command<I, O> {
    /// Runs the command in this process; returns its exit status, 0 or 1.
    ///
    /// Does not return under its strict name if a preloaded library intercepts file calls. Then another program of
    /// that name is executed.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        let invocation = Invocation::of_this_process(self.name, self.strict_name);
        if invocation.personality == Personality::Strict {
            preload::give_way(self.strict_name);
        }
        self.run_here(&invocation)
    }

    /// Runs the command in this process in any case.
    #[must_use]
    pub fn run_here(&self, invocation: &Invocation) -> ExitCode {
        sys::restore_sigpipe();
        let console = Console::new(invocation.program.clone(), invocation.charset);
        if let Some(line) = preload::warning(self.name) {
            console.error(line);
        }
        let outcome = self
            .run_stages(invocation, &console)
            .unwrap_or_else(|error| {
                let advice = self.advice(&error, invocation);
                console.usage_error(&error, &advice);
                Outcome::Incomplete
            });
        if invocation.personality == Personality::Extended
            && let Some(line) = last_line(outcome, &console)
        {
            console.error(line);
        }
        console.write_advice();
        let written = console.finish();
        if let Some(signal) = sys::received_signal() {
            sys::end_by(signal);
        }
        match (outcome, written) {
            (Outcome::Complete, Written::All) => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        }
    }

    fn run_stages(
        &self,
        invocation: &Invocation,
        console: &Console,
    ) -> Result<Outcome, UsageError> {
        let personality = invocation.personality;
        let order = Order::from_environment();
        let mut scan = Scan::of(&self.table, &invocation.arguments, personality, order);
        let context = Context {
            personality,
            console,
        };
        let mut own_options = 0;
        if scan.stop.is_none() && personality == Personality::Extended {
            let check = |flag: &Occurrence<I>| {
                let options = (self.resolve)(std::slice::from_ref(flag), context)?;
                (self.check)(&options, console)
            };
            let own = self
                .config
                .read(&self.table, &scan.matched, console, check)?;
            own_options = own.len();
            // Later flags win, and those of the command line come later.
            scan.matched.splice(..0, own);
        }
        let options = (self.resolve)(&scan.matched, context).map_err(|error| {
            let is_of_file =
                own_options > 0 && (self.resolve)(&scan.matched[own_options..], context).is_ok();
            match is_of_file {
                true => self.config.blame(error),
                false => error,
            }
        })?;
        match scan.stop {
            None => {
                prepare_work();
                (self.execute)(options, scan.operands, console)
            }
            Some(Stop::Help) => {
                console.print(&[&self.table.help(console.program(), personality)]);
                Ok(Outcome::Complete)
            }
            Some(Stop::Version) => {
                let line = format!("{} {}\n", self.name, self.version);
                console.print(&[line.as_bytes()]);
                Ok(Outcome::Complete)
            }
            Some(Stop::Error(error)) => Err(error),
        }
    }

    /// Returns the lines below a usage error.
    fn advice(&self, error: &UsageError, invocation: &Invocation) -> Vec<u8> {
        let hint = match (error.advice, self.file_hint) {
            (Advice::None, _) => return Vec::new(),
            (Advice::FileOrHelp, FileHint::Shown) => file_hint(invocation),
            (Advice::Help, _) | (Advice::FileOrHelp, FileHint::Omitted) => None,
        };
        let hint = hint.unwrap_or_default();
        let help = b" --help' for more information.\n";
        [&*hint, b"Try '", &invocation.program, help].concat()
    }
}

/// Raises the limit on open files as far as the process may. [`Command::run`] does so before it executes.
pub fn prepare_work() {
    sys::raise_descriptor_limit();
}

/// Returns the line that ends an interrupted run, or at a terminal one with many failures.
fn last_line(outcome: Outcome, console: &Console) -> Option<String> {
    match outcome {
        Outcome::Interrupted(tool, summary) => Some(wording::interrupted(tool, &summary)),
        Outcome::Failed(tool, summary) => (summary.failures > FEW_FAILURES
            && console.stderr_is_terminal())
        .then(|| wording::failed(tool, &summary)),
        Outcome::Complete | Outcome::Incomplete => None,
    }
}

/// Returns a hint about the first argument that looks like an option but names a file, if there is one.
fn file_hint(invocation: &Invocation) -> Option<Vec<u8>> {
    let looks_like_option = |name: &&OsString| name.len() > 1 && name.as_bytes()[0] == b'-';
    let exists = |name: &&OsString| Path::new(name).symlink_metadata().is_ok();
    let mut names = invocation.arguments.iter().filter(looks_like_option);
    let name = names.find(exists)?;
    let argument = quote::if_needed(name, invocation.charset);
    let quoted = quote::always(name, invocation.charset);
    let after = format!(" ./{argument}' to remove the file {quoted}.\n");
    Some([b"Try '", &*invocation.program, after.as_bytes()].concat())
}
