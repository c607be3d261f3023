//! What the flags of rmz come to.

use std::num::NonZeroUsize;

use fuc_cli::command::Context;
use fuc_cli::flags::{Given, Misuse};
use fuc_cli::reporter::Verbosity;
use fuc_cli::threads;

use crate::flags::Id;

/// Which operands are too dangerous to remove whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PreserveRoot {
    /// None (`--no-preserve-root`).
    No,
    /// `/`.
    Root,
    /// `/` and every mount point (`--preserve-root=all`).
    AllRoots,
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
    pub(crate) missing: Missing,
    pub(crate) preserve_root: PreserveRoot,
    pub(crate) verbosity: Verbosity,
    /// `None`: nothing was asked for on the command line.
    pub(crate) threads: Option<NonZeroUsize>,
}

/// Folds the flags, later over earlier.
pub(crate) fn resolve(given: &[Given<Id>], context: Context<'_>) -> Result<Options, Misuse> {
    let mut options = Options {
        recursive: context.personality.is_recursive_by_default(),
        missing: Missing::IsAnError,
        preserve_root: PreserveRoot::Root,
        verbosity: Verbosity::Quiet,
        threads: None,
    };
    for flag in given {
        let value = flag.value.as_deref();
        match flag.id {
            Id::Force => options.missing = Missing::IsFine,
            Id::Recursive => options.recursive = true,
            Id::Verbose => options.verbosity = Verbosity::Verbose,
            Id::NoPreserveRoot => options.preserve_root = PreserveRoot::No,
            Id::PreserveRoot => match value {
                None => options.preserve_root = PreserveRoot::Root,
                Some(all) if all == "all" => options.preserve_root = PreserveRoot::AllRoots,
                Some(other) => {
                    let quoted = context.console.quoted(other.as_encoded_bytes());
                    let message = [b"unrecognized --preserve-root argument: ", &quoted[..]];
                    return Err(Misuse::plain(message.concat()));
                }
            },
            Id::PresumeInputTty => {}
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
    use fuc_cli::flags::Order;
    use fuc_cli::invocation::Personality;
    use fuc_cli::locale::Charset;
    use std::ffi::OsString;

    fn resolved(arguments: &[&str], personality: Personality) -> Result<Options, Misuse> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let mut scan = crate::flags::TABLE.scan(&arguments, personality, Order::Any);
        assert_eq!(scan.stop, None);
        let console = &Console::new(b"rmz".to_vec(), Charset::Utf8);
        let context = Context {
            personality,
            console,
        };
        resolve(&scan.given(), context)
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
    fn obeys_the_last_word_on_the_root() {
        let root = |arguments| extended(arguments).preserve_root;
        assert_eq!(root(&[]), PreserveRoot::Root);
        assert_eq!(root(&["--no-preserve-root", "--pres"]), PreserveRoot::Root);
        assert_eq!(
            root(&["--no-preserve-root", "--preserve-root=all"]),
            PreserveRoot::AllRoots
        );
        assert_eq!(
            root(&["--preserve-root=all", "--no-preserve-root"]),
            PreserveRoot::No
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
            let misuse = resolved(&[argument], Personality::Extended).unwrap_err();
            assert_eq!(misuse, Misuse::plain(message));
        }
    }
}
