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

use crate::common::CommonOptions;
use crate::config::Config;
use crate::console::Console;
use crate::flags::{Advice, ArgOrder, Occurrence, Scan, Stop, Table, UsageError};
use crate::invocation::{Invocation, Personality};
use crate::outcome::Outcome;
use crate::preload;
use crate::quote;
use crate::sys;
use crate::tool::Tool;

/// A command, the same for each of its runs.
///
/// `I` is its enum of flags, and `O` the options that the flags resolve to.
#[derive(Debug)]
pub struct Command<I: 'static, O> {
    /// The command's own name.
    pub name: &'static str,
    /// The tool that the command replaces. Under its name, the command behaves strictly as it does.
    pub tool: Tool,
    /// The version that `--version` prints.
    pub version: &'static str,
    /// The command's flags.
    pub table: Table<I>,
    /// The flag that leaves out the file of the user's own default options.
    pub no_config: I,
    /// Turns the flags, in order, into options. It makes no system call; `execute` does.
    pub resolve: Resolve<I, O>,
    /// Returns the options that all commands have.
    pub common: fn(&O) -> &CommonOptions,
    /// Does the work on the operands.
    pub execute: fn(O, Vec<OsString>, &Console) -> Result<Outcome, UsageError>,
}

/// Resolves flags. Defaults differ by the personality. The console is for warnings, and for the quotes in usage errors.
pub type Resolve<I, O> = fn(&[Occurrence<I>], Personality, &Console) -> Result<O, UsageError>;

impl<I: Copy + PartialEq, O> Command<I, O> {
    /// Runs the command in this process; returns its exit status, 0 or 1.
    ///
    /// Does not return under its strict name if a preloaded library intercepts file calls. Then another program of
    /// that name is executed.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        let invocation = Invocation::of_this_process(self.name, self.tool);
        if invocation.personality == Personality::Strict {
            preload::give_way(self.tool.name());
        }
        self.run_here(&invocation)
    }

    /// Runs the command in this process in any case.
    #[must_use]
    pub fn run_here(&self, invocation: &Invocation) -> ExitCode {
        let console = Console::new(invocation.program.clone(), invocation.charset);
        if let Some(line) = preload::warning(self.name) {
            console.error(line);
        }
        if invocation.personality == Personality::Extended {
            sys::set_last_line(console.line_of("interrupted"));
        }
        let outcome = self
            .run_stages(invocation, &console)
            .unwrap_or_else(|mut error| {
                if invocation.personality == Personality::Strict && !console.stderr_is_terminal() {
                    // Programs that read stderr know GNU's lines.
                    error.suggestion = None;
                }
                let advice = self.advice(&error, invocation);
                console.usage_error(&error, &advice);
                Outcome::Incomplete
            });
        if invocation.personality == Personality::Extended
            && let Some(line) = outcome.last_line(self.tool, &console)
        {
            console.error(line);
        }
        console.write_advice();
        let is_written = console.finish();
        if let Some(signal) = sys::received_signal() {
            sys::end_by(signal);
        }
        match (outcome, is_written) {
            (Outcome::Complete, true) => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        }
    }

    fn run_stages(
        &self,
        invocation: &Invocation,
        console: &Console,
    ) -> Result<Outcome, UsageError> {
        let personality = invocation.personality;
        let order = ArgOrder::from_environment();
        let mut scan = Scan::of(&self.table, &invocation.arguments, personality, order);
        let resolve = |flags: &[_]| (self.resolve)(flags, personality, console);
        let mut own_options = 0;
        let config = Config(self.tool.choose("RMZ_CONFIG", "CPZ_CONFIG"));
        let skips_config = scan.matched.iter().any(|flag| flag.id == self.no_config);
        if scan.stop.is_none() && personality == Personality::Extended && !skips_config {
            // Reads the files of patterns, too, so that an error can name the line.
            let check = |flag: &Occurrence<I>| {
                let options = resolve(std::slice::from_ref(flag))?;
                (self.common)(&options).exclusions.filter(console).map(drop)
            };
            let own = config.read(&self.table, console, check)?;
            own_options = own.len();
            // Later flags win, and those of the command line come later.
            scan.matched.splice(..0, own);
        }
        let options = resolve(&scan.matched).map_err(|error| {
            let is_of_file = own_options > 0 && resolve(&scan.matched[own_options..]).is_ok();
            match is_of_file {
                true => config.blame(error),
                false => error,
            }
        })?;
        match scan.stop {
            None => {
                sys::raise_descriptor_limit();
                (self.execute)(options, scan.operands, console)
            }
            Some(Stop::Help) => {
                console.print(&[&self.table.help(console.program(), personality)]);
                Ok(Outcome::Complete)
            }
            Some(Stop::Version) => {
                // The home page, if a packager has named one.
                let url = option_env!("RELEASE_URL").filter(|url| !url.is_empty());
                let url = url.map(|url| format!("{url}\n")).unwrap_or_default();
                let line = format!("{} {}\n{url}", self.name, self.version);
                console.print(&[line.as_bytes()]);
                Ok(Outcome::Complete)
            }
            Some(Stop::Error(error)) => Err(error),
        }
    }

    /// Returns the lines below a usage error.
    fn advice(&self, error: &UsageError, invocation: &Invocation) -> Vec<u8> {
        let hint = match (error.advice, self.tool) {
            (Advice::None, _) => return Vec::new(),
            (Advice::FileOrHelp, Tool::Remove) => file_hint(invocation),
            (Advice::Help, _) | (Advice::FileOrHelp, Tool::Copy) => None,
        };
        let hint = hint.unwrap_or_default();
        let help = b" --help' for more information.\n";
        [&*hint, b"Try '", &invocation.program, help].concat()
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
