//! What the flags of cpz come to.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use fuc_cli::command::Context;
use fuc_cli::flags::{Given, Misuse};
use fuc_cli::reporter::Verbosity;
use fuc_cli::threads;

use crate::flags::Id;

/// Whether the last operand may be a directory to copy into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastOperand {
    /// It is if it exists and is one.
    MayBeDirectory,
    /// It is the dest itself (`-T`).
    IsTheDest,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) recursive: bool,
    pub(crate) force: bool,
    /// The directory of `-t`; then no operand is one.
    pub(crate) target_directory: Option<PathBuf>,
    pub(crate) last_operand: LastOperand,
    pub(crate) verbosity: Verbosity,
    /// `None`: nothing was asked for on the command line.
    pub(crate) threads: Option<NonZeroUsize>,
}

/// Folds the flags, later over earlier.
pub(crate) fn resolve(given: &[Given<Id>], context: Context<'_>) -> Result<Options, Misuse> {
    let mut options = Options {
        recursive: context.personality.is_recursive_by_default(),
        force: false,
        target_directory: None,
        last_operand: LastOperand::MayBeDirectory,
        verbosity: Verbosity::Quiet,
        threads: None,
    };
    for flag in given {
        let value = || {
            let value = flag.value.as_deref();
            value.expect("BUG: a required value is missing")
        };
        match flag.id {
            Id::Force => options.force = true,
            Id::Recursive => options.recursive = true,
            Id::Verbose => options.verbosity = Verbosity::Verbose,
            Id::NoTargetDirectory => options.last_operand = LastOperand::IsTheDest,
            Id::TargetDirectory => {
                let directory = Some(value().into());
                if options.target_directory.is_some() {
                    return Err(Misuse::plain("multiple target directories specified"));
                }
                options.target_directory = directory;
            }
            Id::Threads => {
                options.threads = Some(threads::parse(value(), context.console.charset())?);
            }
        }
    }
    Ok(options)
}
