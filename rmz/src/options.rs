//! The options that the flags of rmz resolve to.

use fuc_cli::common::CommonOptions;
use fuc_cli::console::Console;
use fuc_cli::exclude::Exclusions;
use fuc_cli::flags::{Occurrence, UsageError, choose_or};
use fuc_cli::invocation::Personality;
use fuc_cli::rate::MaxRate;
use fuc_cli::reporter::Verbosity;
use fuc_cli::stats::Stats;
use fuc_cli::threads;
use fuc_cli::tool::Tool;
use fuc_engine::{Execution, RemoveOp};

use crate::flags::Id;
use crate::words::{ALL, WHEN};

pub use crate::words::Prompts;

/// The time and the place of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The operands are removed before the command ends.
    Foreground,
    /// Operands that are directories are hidden, and removed in the background.
    Detached,
    /// Hidden directories that other runs left over in the operands are removed.
    Reaping,
}

/// The engine's options, and those of the command itself.
#[derive(Clone, Debug)]
pub struct Options {
    /// The engine's options, complete except for [`ask`](RemoveOp::ask), which depends on
    /// stdin.
    pub engine: RemoveOp<'static>,
    /// The removals that the user is asked about.
    pub prompts: Prompts,
    /// Treat stdin as a terminal.
    pub presumes_terminal: bool,
    /// The time and the place of the removal.
    pub mode: Mode,
    /// Return when the removal in the background is done (`--wait`).
    pub waits: bool,
    /// The options that both commands have. The rate is one of entries.
    pub common: CommonOptions,
}

impl Options {
    fn new(personality: Personality) -> Self {
        let mut engine = RemoveOp::new();
        engine.recursive = personality.is_recursive_by_default();
        engine.threads = threads::from_environment(Tool::Remove);
        Self {
            engine,
            prompts: match personality {
                Personality::Strict => Prompts::WriteProtected,
                Personality::Extended => Prompts::Never,
            },
            presumes_terminal: false,
            mode: Mode::Foreground,
            waits: false,
            common: CommonOptions::new(personality),
        }
    }

    /// Sets which questions are asked. With questions, missing files are failures even after `-f`.
    fn prompt(&mut self, prompts: Prompts) {
        self.prompts = prompts;
        if prompts != Prompts::Never {
            self.engine.ignore_missing = false;
        }
    }

    /// Enters a mode other than the usual one, which excludes all others.
    fn enter(&mut self, mode: Mode) -> Result<(), UsageError> {
        if self.mode != Mode::Foreground && self.mode != mode {
            return Err(UsageError::with_help("cannot combine --detach and --reap"));
        }
        self.mode = mode;
        Ok(())
    }

    /// Refuses options that `--detach` and `--reap` do not honour.
    fn check_mode(&self) -> Result<(), UsageError> {
        let common = &self.common;
        let excluded = match self {
            _ if common.list.is_some() => "--files0-from",
            _ if !self.engine.recursive => "--no-recursive",
            _ if self.engine.execution == Execution::DryRun => "--dry-run",
            _ if common.exclusions != Exclusions::default() => "--exclude or --exclude-from",
            _ if common.stats != Stats::Hidden => "--stats",
            _ if common.max_rate.is_some() => "--max-rate",
            // A later `--reap` would not know that the other filesystem was excluded.
            _ if self.mode == Mode::Detached && self.engine.one_file_system => {
                let message = "cannot combine --one-file-system with --detach";
                return Err(UsageError::with_help(message));
            }
            _ if self.prompts == Prompts::Always => {
                let message = "cannot prompt before every removal with --detach or --reap";
                return Err(UsageError::with_help(message));
            }
            _ => return Ok(()),
        };
        let message = format!("cannot combine {excluded} with --detach or --reap");
        Err(UsageError::with_help(message))
    }
}

/// Resolves the flags, later over earlier.
///
/// # Errors
/// If a value is invalid, or flags exclude each other.
pub fn resolve(
    matched: &[Occurrence<Id>],
    personality: Personality,
    console: &Console,
) -> Result<Options, UsageError> {
    let charset = console.charset();
    let mut options = Options::new(personality);
    for flag in matched {
        let value = flag.value.as_deref();
        match flag.id {
            Id::Force => {
                options.prompt(Prompts::Never);
                options.engine.ignore_missing = true;
            }
            Id::PromptAlways => options.prompt(Prompts::Always),
            Id::PromptOnce => options.prompt(Prompts::Once),
            Id::Interactive => {
                let always = Prompts::Always;
                options.prompt(choose_or(always, "--interactive", value, &WHEN, charset)?);
            }
            Id::Directories => options.engine.empty_directories = true,
            Id::OneFileSystem => options.engine.one_file_system = true,
            Id::Recursive => options.engine.recursive = true,
            Id::NoRecursive => options.engine.recursive = false,
            Id::Verbose => options.common.verbosity = Verbosity::Verbose,
            Id::NoPreserveRoot => options.engine.preserve_root = false,
            Id::PreserveRoot => match value {
                None => options.engine.preserve_root = true,
                // As in rm, no later flag reverts this.
                Some(all) if all == ALL => options.engine.preserve_mount_points = true,
                Some(other) => {
                    let other = console.quoted(other);
                    let message = format!("unrecognized --preserve-root argument: {other}");
                    return Err(UsageError::plain(message));
                }
            },
            Id::PresumeInputTty => options.presumes_terminal = true,
            Id::DryRun => {
                options.engine.execution = Execution::DryRun;
                options.common.show_plan(value, charset)?;
            }
            Id::Unlock => options.engine.unlock = true,
            Id::Threads => {
                let value = value.expect("BUG: a required value is missing");
                options.engine.threads = Some(threads::parse(value, charset)?);
            }
            Id::Common(flag) => {
                options.common.apply(flag, value, charset)?;
                if let Some(MaxRate::Bytes(_)) = options.common.max_rate {
                    let message = "the rate of a removal is in entries per second, as in '500/s'";
                    return Err(UsageError::with_help(message));
                }
            }
            Id::Detach => options.enter(Mode::Detached)?,
            Id::Reap => options.enter(Mode::Reaping)?,
            Id::Wait => options.waits = true,
        }
    }
    options.engine.count_bytes = options.common.stats != Stats::Hidden;
    if options.mode != Mode::Foreground {
        options.check_mode()?;
    } else if options.waits {
        return Err(UsageError::with_help("--wait needs --detach or --reap"));
    }
    Ok(options)
}
