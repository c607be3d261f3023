//! The options that both commands have, and the steps before a run that follow from them.

use std::ffi::OsStr;

use crate::console::Console;
use crate::exclude::Exclusions;
use crate::flags::{Accepts, Flag, UsageError, choose_or, words};
use crate::invocation::Personality;
use crate::locale::Charset;
use crate::name_list::ListFile;
use crate::progress::{self, Progress, Watch};
use crate::rate::MaxRate;
use crate::reporter::{PLAN, Verbosity};
use crate::stats::{self, Stats};
use crate::tool::Tool;

/// The flags of these options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the help of each flag in the tables describes it"
)]
pub enum CommonFlag {
    /// Only the tables of commands for several processes have it.
    AllFailures,
    Exclude,
    ExcludeFrom,
    Files0From,
    MaxRate,
    NoConfig,
    Progress,
    Stats,
}

/// The options of both commands.
#[derive(Clone, Debug)]
pub struct CommonOptions {
    /// The personality of the command.
    pub personality: Personality,
    /// The amount of detail in the report.
    pub verbosity: Verbosity,
    /// The file of `--files0-from`, which holds the names of the operands.
    pub list: Option<ListFile>,
    /// The entries that are left alone.
    pub exclusions: Exclusions,
    /// The form of the totals at the end.
    pub stats: Stats,
    /// The most entries or bytes per second, if there is a limit.
    pub max_rate: Option<MaxRate>,
    /// The value of `--progress`, if it was given.
    pub progress: Option<Progress>,
    /// Each failure is written, even if many are equal.
    pub all_failures: bool,
}

impl CommonOptions {
    /// Returns the options of a command line without flags.
    #[must_use]
    pub fn new(personality: Personality) -> Self {
        Self {
            personality,
            verbosity: Verbosity::Quiet,
            list: None,
            exclusions: Exclusions::default(),
            stats: Stats::Hidden,
            max_rate: None,
            progress: None,
            all_failures: false,
        }
    }

    /// Applies a flag and its value.
    ///
    /// # Errors
    /// If the value is invalid.
    pub fn apply(
        &mut self,
        flag: CommonFlag,
        value: Option<&OsStr>,
        charset: Charset,
    ) -> Result<(), UsageError> {
        let required = || value.expect("BUG: a required value is missing");
        match flag {
            CommonFlag::AllFailures => self.all_failures = true,
            CommonFlag::Exclude => self.exclusions.add_pattern(required()),
            CommonFlag::ExcludeFrom => self.exclusions.add_file(required()),
            CommonFlag::Files0From => self.list = Some(ListFile::new(required())),
            CommonFlag::MaxRate => self.max_rate = Some(MaxRate::parse(required(), charset)?),
            // This flag only leaves a file out, which comes before the flags are resolved.
            CommonFlag::NoConfig => {}
            CommonFlag::Progress => {
                let when = choose_or(
                    Progress::Auto,
                    "--progress",
                    value,
                    &progress::WHEN,
                    charset,
                )?;
                self.progress = Some(when);
            }
            CommonFlag::Stats => {
                self.stats = choose_or(Stats::Text, "--stats", value, &stats::FORMAT, charset)?;
            }
        }
        Ok(())
    }

    /// Applies `--dry-run`: each action is reported, unless the value says that the total is enough.
    ///
    /// # Errors
    /// If the value is invalid.
    pub fn show_plan(&mut self, value: Option<&OsStr>, charset: Charset) -> Result<(), UsageError> {
        let least = choose_or(Verbosity::Verbose, "--dry-run", value, &PLAN, charset)?;
        self.verbosity = self.verbosity.max(least);
        Ok(())
    }

    /// Begins to let the user watch a run, unless the command is strictly GNU's. `prompts` names the options for prompts, if
    /// they were given.
    ///
    /// # Errors
    /// If a variable of the environment has an invalid value, or if several options read stdin: a list of operands, a
    /// list of patterns, or prompts.
    pub fn begin(
        &self,
        tool: Tool,
        prompts: Option<&str>,
        console: &Console,
    ) -> Result<Option<Watch>, UsageError> {
        let watch = match self.personality {
            Personality::Strict => None,
            Personality::Extended => Some(Watch::begin(self.progress, tool, console.charset())?),
        };
        let list = self.list.as_ref().is_some_and(ListFile::is_stdin);
        let (first, second, reason) = match (list, self.exclusions.reads_stdin(), prompts) {
            (true, true, _) => ("--files0-from=-", "--exclude-from=-", "both read stdin"),
            (true, _, Some(prompts)) => ("--files0-from=-", prompts, "stdin holds no answers"),
            (_, true, Some(prompts)) => ("--exclude-from=-", prompts, "stdin holds no answers"),
            _ => return Ok(watch),
        };
        let message = format!("{first} cannot be combined with {second}: {reason}");
        Err(UsageError::with_help(message))
    }
}

/// Returns the row of `--progress`.
#[must_use]
pub const fn progress_flag<I: Copy>(id: I) -> Flag<I> {
    const WORDS: [&str; 3] = words(&progress::WHEN);
    Flag::extension(
        id,
        "progress",
        "show progress on stderr: always, never, or auto\n\
         (the default: only at a terminal)",
    )
    .optional("WHEN", Accepts::OneOf(&WORDS))
}

/// Returns the row of `--stats`.
#[must_use]
pub const fn stats_flag<I: Copy>(id: I) -> Flag<I> {
    const WORDS: [&str; 2] = words(&stats::FORMAT);
    Flag::extension(
        id,
        "stats",
        "show totals at the end: text (on stderr; the\n\
         default) or json (a line on stdout)",
    )
    .optional("FORMAT", Accepts::OneOf(&WORDS))
}

/// Returns the row of `--dry-run`.
#[must_use]
pub const fn dry_run_flag<I: Copy>(id: I, help: &'static str) -> Flag<I> {
    const WORDS: [&str; 1] = words(&PLAN);
    Flag::extension(id, "dry-run", help)
        .optional("total", Accepts::OneOf(&WORDS))
        .not_in_config()
}

/// Returns the row of `--threads`.
#[must_use]
pub const fn threads_flag<I: Copy>(id: I) -> Flag<I> {
    Flag::extension(
        id,
        "threads",
        "use at most N threads (default: chosen\n\
         automatically)",
    )
    .required("N", Accepts::Text)
}

/// Returns the row of `--exclude-from`.
#[must_use]
pub const fn exclude_from_flag<I: Copy>(id: I) -> Flag<I> {
    Flag::extension(
        id,
        "exclude-from",
        "read such patterns from FILE, or from stdin if it\n\
         is '-', one per line",
    )
    .required("FILE", Accepts::File)
}
