//! A command from its first line to its exit status.
//!
//! ```text
//! argv ─▶ scan ─▶ resolve the options ─▶ a stop? ─▶ execute ─▶ flush stdout ─▶ status
//!                        │ error            │ --help, --version, error
//!                        ▼                   ▼
//!                     status 1           status 0 or 1
//! ```
//!
//! Options are resolved before the scan's stop is looked at: `--threads=x --help` complains of the x.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use fuc_engine::Summary;

use crate::console::{Console, Written};
use crate::flags::{Advice, Occurrence, Order, Scan, Stop, Table, UsageError};
use crate::invocation::{Invocation, Personality};
use crate::quote;
use crate::sys;

/// What is the same in each run of a command.
///
/// `O` is what its flags resolve to.
#[derive(Debug)]
pub struct Command<I: 'static, O> {
    /// Its own name.
    pub name: &'static str,
    /// The name under which it is GNU's tool and nothing else.
    pub strict_name: &'static str,
    /// The version that `--version` prints.
    pub version: &'static str,
    /// Its flags.
    pub table: Table<I>,
    /// Whether an option that looks like an existing file earns a hint.
    pub file_hint: FileHint,
    /// Turns the flags, in order, into options. No system calls: what it cannot know it leaves open.
    pub resolve: fn(&[Occurrence<I>], Context<'_>) -> Result<O, UsageError>,
    /// Does the work.
    pub execute: fn(O, Vec<OsString>, &Console) -> Result<Outcome, UsageError>,
}

/// Whether `rm -foo` beside a file `-foo` hints at `rm ./-foo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileHint {
    /// It does.
    Given,
    /// It does not.
    None,
}

/// What resolving options may depend on besides the flags.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Strict or extended.
    pub personality: Personality,
    /// For the words of a error.
    pub console: &'a Console,
}

/// How the work ended. Its details have been told already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// All that was asked for is done.
    Complete,
    /// Something was not.
    Incomplete,
}

impl Outcome {
    /// Complete only if both are.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Complete, Self::Complete) => Self::Complete,
            (Self::Incomplete, _) | (_, Self::Incomplete) => Self::Incomplete,
        }
    }
}

impl From<Summary> for Outcome {
    fn from(summary: Summary) -> Self {
        if summary.is_complete() {
            Self::Complete
        } else {
            Self::Incomplete
        }
    }
}

impl<I: Copy, O> Command<I, O> {
    /// Runs the command in this process; returns its exit status, 0 or 1.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        sys::restore_sigpipe();
        let invocation = Invocation::of_this_process(self.name, self.strict_name);
        let console = Console::new(invocation.program.clone(), invocation.charset);
        let outcome = self.obey(&invocation, &console).unwrap_or_else(|error| {
            let advice = self.advice(&error, &invocation);
            console.usage_error(&error, &advice);
            Outcome::Incomplete
        });
        match (outcome, console.finish()) {
            (Outcome::Complete, Written::All) => ExitCode::SUCCESS,
            (Outcome::Incomplete, _) | (_, Written::NotAll) => ExitCode::FAILURE,
        }
    }

    fn obey(&self, invocation: &Invocation, console: &Console) -> Result<Outcome, UsageError> {
        let personality = invocation.personality;
        let order = Order::from_environment();
        let scan = Scan::of(&self.table, &invocation.arguments, personality, order);
        let context = Context {
            personality,
            console,
        };
        let options = (self.resolve)(&scan.matched, context)?;
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
                let line = format!("{} (fuc) {}\n", self.name, self.version);
                console.print(&[line.as_bytes()]);
                Ok(Outcome::Complete)
            }
            Some(Stop::Error(error)) => Err(error),
        }
    }

    /// The lines below a usage error.
    fn advice(&self, error: &UsageError, invocation: &Invocation) -> Vec<u8> {
        let mut lines = Vec::new();
        match (error.advice, self.file_hint) {
            (Advice::None, _) => return lines,
            (Advice::FileOrHelp, FileHint::Given) => push_file_hint(&mut lines, invocation),
            (Advice::Help, _) | (Advice::FileOrHelp, FileHint::None) => {}
        }
        let program = &invocation.program;
        lines.extend_from_slice(b"Try '");
        lines.extend_from_slice(program);
        lines.extend_from_slice(b" --help' for more information.\n");
        lines
    }
}

/// The first argument that looks like an option and is a file's name, if there is one.
fn push_file_hint(lines: &mut Vec<u8>, invocation: &Invocation) {
    let looks_like_option = |name: &&OsString| name.len() > 1 && name.as_bytes()[0] == b'-';
    let exists = |name: &&OsString| Path::new(name).symlink_metadata().is_ok();
    let mut names = invocation.arguments.iter().filter(looks_like_option);
    let Some(name) = names.find(exists).map(|name| name.as_bytes()) else {
        return;
    };
    lines.extend_from_slice(b"Try '");
    lines.extend_from_slice(&invocation.program);
    lines.extend_from_slice(b" ./");
    lines.extend_from_slice(&quote::if_needed(name, invocation.charset));
    lines.extend_from_slice(b"' to remove the file ");
    lines.extend_from_slice(&quote::always(name, invocation.charset));
    lines.extend_from_slice(b".\n");
}
