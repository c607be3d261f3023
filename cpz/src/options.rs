//! What the flags of cpz come to.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use fuc_cli::command::Context;
use fuc_cli::flags::{Occurrence, UsageError, choose};
use fuc_cli::progress::Progress;
use fuc_cli::reporter::Verbosity;
use fuc_cli::threads;
use fuc_engine::{Dereference, LinkKind, Reflink, Sparse};

use fuc_engine::DestRules;

use crate::flags::Id;
use crate::preserve::Kept;
use crate::rules::{Clobber, RuleFlags};
use crate::words::{REFLINK, SPARSE};

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
    pub(crate) rules: DestRules,
    /// Each source's whole path is appended to the target (`--parents`).
    pub(crate) parents: bool,
    pub(crate) strips_slashes: bool,
    /// `None`: as is usual without `-H`, `-L` and `-P`.
    pub(crate) dereference: Option<Dereference>,
    pub(crate) one_file_system: bool,
    pub(crate) copy_contents: bool,
    /// `-l` was given, and `-s`.
    pub(crate) hard_links: bool,
    pub(crate) symbolic_links: bool,
    pub(crate) reflink: Reflink,
    pub(crate) sparse: Sparse,
    pub(crate) kept: Kept,
    pub(crate) attributes_only: bool,
    /// The directory of `-t`; then no operand is one.
    pub(crate) target_directory: Option<PathBuf>,
    pub(crate) last_operand: LastOperand,
    pub(crate) verbosity: Verbosity,
    pub(crate) progress: Progress,
    /// `None`: nothing was asked for on the command line.
    pub(crate) threads: Option<NonZeroUsize>,
}

impl Options {
    /// # Errors
    /// Options that contradict each other, which is said only when all have been looked at.
    pub(crate) fn check(&self) -> Result<(), UsageError> {
        if self.hard_links && self.symbolic_links {
            return Err(UsageError::with_help(
                "cannot make both hard and symbolic links",
            ));
        }
        if self.reflink == Reflink::Always && self.sparse != Sparse::Auto {
            return Err(UsageError::with_help(
                "--reflink can be used only with --sparse=auto",
            ));
        }
        Ok(())
    }

    pub(crate) fn as_links(&self) -> Option<LinkKind> {
        match (self.hard_links, self.symbolic_links) {
            (true, _) => Some(LinkKind::Hard),
            (false, true) => Some(LinkKind::Symbolic),
            (false, false) => None,
        }
    }

    /// Which links are followed: as asked, else all, unless directories are copied.
    pub(crate) fn dereference(&self) -> Dereference {
        self.dereference.unwrap_or({
            // Hard links are made to files, as without -r.
            if self.recursive && !self.hard_links {
                Dereference::Never
            } else {
                Dereference::Always
            }
        })
    }
}

/// Folds the flags, later over earlier.
pub(crate) fn resolve(
    given: &[Occurrence<Id>],
    context: Context<'_>,
) -> Result<Options, UsageError> {
    let mut options = Options {
        recursive: context.personality.is_recursive_by_default(),
        force: false,
        rules: DestRules::default(),
        parents: false,
        strips_slashes: false,
        dereference: None,
        one_file_system: false,
        copy_contents: false,
        hard_links: false,
        symbolic_links: false,
        reflink: Reflink::Auto,
        sparse: Sparse::Auto,
        kept: Kept::default(),
        attributes_only: false,
        target_directory: None,
        last_operand: LastOperand::MayBeDirectory,
        verbosity: Verbosity::Quiet,
        progress: Progress::Never,
        threads: None,
    };
    let charset = context.console.charset();
    let mut rules = RuleFlags::new();
    for flag in given {
        let value = || {
            let value = flag.value.as_deref();
            value.expect("BUG: a required value is missing")
        };
        match flag.id {
            Id::Backup => rules.back_up(flag.value.clone()),
            Id::BackupSimply => rules.back_up(None),
            Id::Archive => {
                options.recursive = true;
                options.dereference = Some(Dereference::Never);
                options.kept.keep_all_quietly();
            }
            Id::AttributesOnly => options.attributes_only = true,
            Id::KeepLinks => {
                options.dereference = Some(Dereference::Never);
                options.kept.keep_links();
            }
            Id::PreserveDefault => options.kept.keep_the_usual(),
            Id::Preserve => {
                options.kept.keep_these(flag.value.as_deref(), charset)?;
            }
            Id::NoPreserve => options.kept.drop_these(value(), charset)?,
            Id::Context => options
                .kept
                .set_context(flag.value.as_ref(), context.console),
            Id::Force => options.force = true,
            Id::Interactive => rules.clobber = Clobber::Ask,
            Id::KeepDirectorySymlink => rules.keep_directory_symlink = true,
            Id::NoClobber => rules.clobber = Clobber::Never,
            Id::Parents => options.parents = true,
            Id::RemoveDestination => rules.remove_destination = true,
            Id::StripTrailingSlashes => options.strips_slashes = true,
            Id::Suffix => rules.suffix(value().into()),
            Id::Update => rules.update(flag.value.as_deref(), charset)?,
            Id::Dereference => options.dereference = Some(Dereference::Always),
            Id::DereferenceOperands => options.dereference = Some(Dereference::Operands),
            Id::NoDereference => options.dereference = Some(Dereference::Never),
            Id::OneFileSystem => options.one_file_system = true,
            Id::CopyContents => options.copy_contents = true,
            Id::HardLink => options.hard_links = true,
            Id::SymbolicLink => options.symbolic_links = true,
            Id::Reflink => {
                options.reflink = match flag.value.as_deref() {
                    None => Reflink::Always,
                    Some(when) => choose("--reflink", when, &REFLINK, charset)?,
                }
            }
            Id::Sparse => {
                options.sparse = choose("--sparse", value(), &SPARSE, charset)?;
            }
            Id::Recursive => options.recursive = true,
            Id::Verbose if options.verbosity == Verbosity::Debug => {}
            Id::Verbose => options.verbosity = Verbosity::Verbose,
            Id::Debug => options.verbosity = Verbosity::Debug,
            Id::NoTargetDirectory => options.last_operand = LastOperand::IsTheDest,
            Id::TargetDirectory => {
                let directory = Some(value().into());
                if options.target_directory.is_some() {
                    return Err(UsageError::plain("multiple target directories specified"));
                }
                options.target_directory = directory;
            }
            Id::Progress => {
                options.progress = Progress::parse(flag.value.as_deref(), charset)?;
            }
            Id::Threads => {
                options.threads = Some(threads::parse(value(), charset)?);
            }
        }
    }
    options.rules = rules.resolve(charset)?;
    Ok(options)
}
