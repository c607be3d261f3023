//! What the flags of rmz come to.

use std::num::NonZeroUsize;

use fuc_cli::command::Context;
use fuc_cli::flags::{Occurrence, UsageError, choose};
use fuc_cli::invocation::Personality;
use fuc_cli::progress::Progress;
use fuc_cli::reporter::Verbosity;
use fuc_cli::threads;

use crate::flags::Id;
use crate::words::{ALL, WHEN, When};

/// What a person is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prompts {
    /// Nothing.
    Never,
    /// Write-protected files, if there is somebody at a terminal.
    WriteProtected,
    /// Everything (`-i`).
    Always,
}

/// Whether missing files and missing operands are errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    IsAnError,
    IsFine,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) recursive: bool,
    pub(crate) empty_directories: bool,
    pub(crate) one_file_system: bool,
    pub(crate) prompts: Prompts,
    /// Ask once before removing many operands, or directories (`-I`).
    pub(crate) asks_once: bool,
    /// Take stdin for a terminal.
    pub(crate) presumes_terminal: bool,
    pub(crate) missing: Missing,
    pub(crate) preserve_root: bool,
    /// Refuse every operand that is a mount point (`--preserve-root=all`). Nothing takes that back.
    pub(crate) preserve_mount_points: bool,
    pub(crate) verbosity: Verbosity,
    pub(crate) progress: Progress,
    /// `None`: nothing was asked for on the command line.
    pub(crate) threads: Option<NonZeroUsize>,
}

impl Options {
    /// Who wants to be asked wants to hear of missing files too, even after `-f`.
    fn interact(&mut self, when: When) {
        self.asks_once = when == When::Once;
        self.prompts = match when {
            When::Never => Prompts::Never,
            When::Once => Prompts::WriteProtected,
            When::Always => Prompts::Always,
        };
        if when != When::Never {
            self.missing = Missing::IsAnError;
        }
    }
}

/// Folds the flags, later over earlier.
pub(crate) fn resolve(
    given: &[Occurrence<Id>],
    context: Context<'_>,
) -> Result<Options, UsageError> {
    let mut options = Options {
        recursive: context.personality.is_recursive_by_default(),
        empty_directories: false,
        one_file_system: false,
        prompts: match context.personality {
            Personality::Strict => Prompts::WriteProtected,
            Personality::Extended => Prompts::Never,
        },
        asks_once: false,
        presumes_terminal: false,
        missing: Missing::IsAnError,
        preserve_root: true,
        preserve_mount_points: false,
        verbosity: Verbosity::Quiet,
        progress: Progress::Never,
        threads: None,
    };
    for flag in given {
        let value = flag.value.as_deref();
        match flag.id {
            Id::Force => {
                options.interact(When::Never);
                options.missing = Missing::IsFine;
            }
            Id::PromptAlways => options.interact(When::Always),
            Id::PromptOnce => options.interact(When::Once),
            Id::Interactive => options.interact(match value {
                None => When::Always,
                Some(when) => choose("--interactive", when, &WHEN, context.console.charset())?,
            }),
            Id::Directories => options.empty_directories = true,
            Id::OneFileSystem => options.one_file_system = true,
            Id::Recursive => options.recursive = true,
            Id::Verbose => options.verbosity = Verbosity::Verbose,
            Id::NoPreserveRoot => options.preserve_root = false,
            Id::PreserveRoot => match value {
                None => options.preserve_root = true,
                Some(all) if all == ALL => options.preserve_mount_points = true,
                Some(other) => {
                    let quoted = context.console.quoted(other.as_encoded_bytes());
                    let message = [b"unrecognized --preserve-root argument: ", &quoted[..]];
                    return Err(UsageError::plain(message.concat()));
                }
            },
            Id::PresumeInputTty => options.presumes_terminal = true,
            Id::Progress => {
                options.progress = Progress::parse(value, context.console.charset())?;
            }
            Id::Threads => {
                let value = value.expect("BUG: a required value is missing");
                options.threads = Some(threads::parse(value, context.console.charset())?);
            }
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fuc_cli::console::Console;
    use fuc_cli::flags::{Order, Scan};
    use fuc_cli::invocation::Personality;
    use fuc_cli::locale::Charset;
    use std::ffi::OsString;

    fn resolved(arguments: &[&str], personality: Personality) -> Result<Options, UsageError> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let scan = Scan::of(&crate::flags::TABLE, &arguments, personality, Order::Any);
        assert_eq!(scan.stop, None);
        let console = &Console::new(b"rmz".to_vec(), Charset::Utf8);
        let context = Context {
            personality,
            console,
        };
        resolve(&scan.matched, context)
    }

    fn extended(arguments: &[&str]) -> Options {
        resolved(arguments, Personality::Extended).unwrap()
    }

    #[test]
    fn is_recursive_unless_called_rm() {
        let strict = |arguments| resolved(arguments, Personality::Strict).unwrap();
        assert!(extended(&[]).recursive);
        assert!(!strict(&["-f"]).recursive);
        assert!(strict(&["-fR"]).recursive);
    }

    #[test]
    fn asks_as_the_last_word_says() {
        let asks = |arguments| {
            let options = extended(arguments);
            (options.prompts, options.asks_once, options.missing)
        };
        let (error, fine) = (Missing::IsAnError, Missing::IsFine);
        assert_eq!(asks(&[]), (Prompts::Never, false, error));
        assert_eq!(asks(&["-f", "-i"]), (Prompts::Always, false, error));
        assert_eq!(asks(&["-i", "-f"]), (Prompts::Never, false, fine));
        assert_eq!(asks(&["-iI"]), (Prompts::WriteProtected, true, error));
        assert_eq!(asks(&["-Ii"]), (Prompts::Always, false, error));
        assert_eq!(
            asks(&["-f", "--interactive=no"]),
            (Prompts::Never, false, fine)
        );
        assert_eq!(asks(&["-I", "--inter"]), (Prompts::Always, false, error));
        assert_eq!(
            asks(&["--interactive=o"]),
            (Prompts::WriteProtected, true, error)
        );
    }

    #[test]
    fn only_rm_asks_about_write_protected_files_unasked() {
        let strict = resolved(&[], Personality::Strict).unwrap();
        assert_eq!(strict.prompts, Prompts::WriteProtected);
    }

    #[test]
    fn obeys_the_last_word_on_the_root_and_never_forgets_all_roots() {
        let preserved = |arguments| {
            let options = extended(arguments);
            (options.preserve_root, options.preserve_mount_points)
        };
        assert_eq!(preserved(&[]), (true, false));
        assert_eq!(preserved(&["--no-preserve-root", "--pres"]), (true, false));
        assert_eq!(
            preserved(&["--no-preserve-root", "--preserve-root=all"]),
            (false, true)
        );
        assert_eq!(
            preserved(&["--preserve-root=all", "--preserve-root"]),
            (true, true)
        );
    }

    #[test]
    fn names_values_that_mean_nothing() {
        for (argument, message) in [
            (
                "--preserve-root=al",
                "unrecognized --preserve-root argument: 'al'",
            ),
            ("--threads=0", "invalid number of threads: ‘0’"),
        ] {
            let error = resolved(&[argument], Personality::Extended).unwrap_err();
            assert_eq!(error, UsageError::plain(message));
        }
    }
}
