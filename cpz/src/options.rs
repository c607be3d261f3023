//! The options that the flags of cpz resolve to.

use std::ffi::OsString;
use std::path::PathBuf;

use fuc_cli::common::CommonOptions;
use fuc_cli::console::Console;
use fuc_cli::flags::{Occurrence, UsageError, choose, choose_or, number};
use fuc_cli::invocation::Personality;
use fuc_cli::locale::Charset;
use fuc_cli::quote;
use fuc_cli::reporter::Verbosity;
use fuc_cli::sys::arguments;
use fuc_cli::threads;
use fuc_cli::tool::Tool;
use fuc_engine::{CopyOp, Dereference, Dest, Execution, LinkKind, ModePolicy, Reflink, Sparse};

use crate::flags::Id;
use crate::preserve::PreserveFlags;
use crate::rules::{Clobber, RuleFlags};
use crate::words::{REFLINK, SPARSE};

/// The role of the last operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastOperand {
    /// If the last operand is an existing directory, it is the directory to copy into.
    MayBeDirectory,
    /// The last operand is always the dest itself (`-T`).
    IsTheDest,
}

/// The engine's options, and those of the command itself.
#[derive(Clone, Debug)]
pub struct Options {
    /// The engine's options. [`Request::new`](crate::request::Request::new) completes them.
    pub engine: CopyOp<'static>,
    /// The flags behind the engine's attributes, for [`check_context`](PreserveFlags::check_context).
    pub(crate) preserve: PreserveFlags,
    /// The flags behind the engine's rules, which [`finish`](Self::finish) resolves.
    pub(crate) rules: RuleFlags,
    /// Set by `-l`, which excludes `-s`.
    pub(crate) hard_links: bool,
    /// Set by `-s`.
    pub(crate) symbolic_links: bool,
    pub(crate) strips_slashes: bool,
    /// The directory of `-t`; with it, all operands are sources.
    pub(crate) target_directory: Option<PathBuf>,
    pub(crate) last_operand: LastOperand,
    /// The value of `--max-delete`.
    pub(crate) max_delete: Option<u64>,
    /// The options that both commands have.
    pub common: CommonOptions,
}

impl Options {
    fn new(personality: Personality) -> Self {
        let mut engine = CopyOp::new();
        engine.recursive = personality.is_recursive_by_default();
        engine.threads = threads::from_environment(Tool::Copy);
        engine.closes_empty_files = personality == Personality::Strict;
        Self {
            engine,
            preserve: PreserveFlags::default(),
            rules: RuleFlags::default(),
            hard_links: false,
            symbolic_links: false,
            strips_slashes: false,
            target_directory: None,
            last_operand: LastOperand::MayBeDirectory,
            max_delete: None,
            common: CommonOptions::new(personality),
        }
    }

    /// Checks the options against each other, and completes the engine's options. As in cp, `--help` and wrong
    /// options come first, and the order of these checks does not depend on that of the flags.
    ///
    /// # Errors
    /// If two options exclude each other, or if a word for the naming of backups is unknown.
    pub(crate) fn finish(&mut self, charset: Charset) -> Result<(), UsageError> {
        let both_links = self.hard_links && self.symbolic_links;
        UsageError::of_first(&[(both_links, "cannot make both hard and symbolic links")])?;
        self.rules.check()?;
        let (engine, rules) = (&self.engine, &self.rules);
        let makes_no_copies = engine.as_links.is_some() || engine.attributes_only;
        UsageError::of_first(&[
            (
                engine.reflink == Reflink::Always && engine.sparse != Sparse::Auto,
                "--reflink can be used only with --sparse=auto",
            ),
            (
                rules.resume && !engine.preserve.timestamps,
                "--resume needs -a, -p or --preserve=timestamps",
            ),
            (
                rules.resume && engine.as_links.is_some(),
                "--resume is mutually exclusive with -l and -s",
            ),
            (
                engine.link_dest.is_some()
                    && !(engine.preserve.timestamps
                        && engine.preserve.ownership
                        && engine.preserve.mode == ModePolicy::Preserve),
                "--link-dest needs -a or -p",
            ),
            (
                engine.link_dest.is_some() && makes_no_copies,
                "--link-dest is mutually exclusive with -l, -s and --attributes-only",
            ),
            (
                rules.dest.atomic && makes_no_copies,
                "--atomic is mutually exclusive with -l, -s and --attributes-only",
            ),
        ])?;
        self.engine.rules = self.rules.clone().resolve(charset)?;
        self.finish_deletion()
    }

    /// Checks the options about deletions, after the rules are complete.
    fn finish_deletion(&mut self) -> Result<(), UsageError> {
        let deletes = self.engine.delete.is_some();
        let rules = &self.engine.rules;
        let keeps_others = rules.ask
            || rules.backup.is_some()
            || rules.follow_links_to_directories
            || self.engine.attributes_only;
        let follows_links = self.engine.recursive && self.engine.dereference == Dereference::Always;
        UsageError::of_first(&[
            (
                self.max_delete.is_some() && !deletes,
                "--max-delete needs --delete",
            ),
            (
                deletes && keeps_others,
                "--delete is mutually exclusive with -i, --backup, --keep-directory-symlink and --attributes-only",
            ),
            (
                deletes && follows_links && self.hard_links,
                "--delete follows no links; -l does, without -P",
            ),
            (
                deletes && follows_links,
                "--delete is mutually exclusive with -L",
            ),
        ])?;
        if let Some(deletion) = &mut self.engine.delete {
            deletion.most = self.max_delete;
            self.common.exclusions.stops_at_unread = true;
        }
        Ok(())
    }

    /// Returns the command that goes on with a copy to `dest` that was interrupted, if `--resume` suits the options.
    pub fn command_to_resume(&self, dest: &Dest, console: &Console) -> Option<Vec<u8>> {
        let mut rules = self.rules.clone();
        rules.resume = true;
        let suits = self.common.personality == Personality::Extended
            && self.engine.execution == Execution::Real
            && self.engine.preserve.timestamps
            && self.engine.as_links.is_none()
            && rules.check().is_ok();
        let resume = (!self.rules.resume).then_some("--resume");
        // The dest exists by now, and is not the directory to copy into.
        let is_exact = matches!(dest, Dest::Exactly(_));
        let exactly = is_exact && self.last_operand == LastOperand::MayBeDirectory;
        let added = resume.into_iter().chain(exactly.then_some("-T"));
        let words = added
            .map(OsString::from)
            .chain(arguments().into_iter().skip(1));
        suits.then(|| {
            words.fold(console.program().to_vec(), |command, word| {
                let word = quote::if_needed(&word, console.charset());
                [&command[..], b" ", word.as_bytes()].concat()
            })
        })
    }

    fn as_links(&self) -> Option<LinkKind> {
        match (self.hard_links, self.symbolic_links) {
            (true, _) => Some(LinkKind::Hard),
            (false, true) => Some(LinkKind::Symbolic),
            (false, false) => None,
        }
    }

    /// Returns which links are followed without `-H`, `-L` and `-P`: none in a recursive copy, else all. `-l` makes
    /// hard links to files, as without `-r`.
    fn default_dereference(&self) -> Dereference {
        if self.engine.recursive && !self.hard_links {
            Dereference::Never
        } else {
            Dereference::Always
        }
    }
}

/// Resolves the flags, later over earlier. [`Request::new`](crate::request::Request::new) does the rest.
///
/// # Errors
/// If a value is invalid, or if several target directories are given.
pub fn resolve(
    matched: &[Occurrence<Id>],
    personality: Personality,
    console: &Console,
) -> Result<Options, UsageError> {
    let mut options = Options::new(personality);
    let mut dereference = None;
    let charset = console.charset();
    for flag in matched {
        let value = || {
            let value = flag.value.as_deref();
            value.expect("BUG: a required value is missing")
        };
        match flag.id {
            Id::Backup => options.rules.back_up(flag.value.clone()),
            Id::BackupSimply => options.rules.back_up(None),
            Id::Archive => {
                options.engine.recursive = true;
                dereference = Some(Dereference::Never);
                options.preserve.preserve_archive();
            }
            Id::AttributesOnly => options.engine.attributes_only = true,
            Id::KeepLinks => {
                dereference = Some(Dereference::Never);
                options.preserve.preserve_links();
            }
            Id::PreserveDefault => options.preserve.preserve_default(),
            Id::Preserve => options.preserve.preserve(flag.value.as_deref(), charset)?,
            Id::NoPreserve => options.preserve.discard(value(), charset)?,
            Id::Context => options.preserve.set_context(flag.value.as_ref(), console),
            Id::Force => options.engine.force = true,
            Id::Fsync => options.engine.durable = true,
            Id::Interactive => options.rules.clobber = Clobber::Ask,
            Id::KeepDirectorySymlink => options.rules.dest.follow_links_to_directories = true,
            Id::NoClobber => options.rules.clobber = Clobber::Never,
            Id::Parents => options.engine.parents = true,
            Id::RemoveDestination => options.rules.dest.remove_first = true,
            Id::Resume => options.rules.resume = true,
            Id::LinkDest => options.engine.link_dest = Some(value().into()),
            Id::Itemize => options.common.verbosity = Verbosity::Itemized,
            Id::NoCache => options.engine.drops_cache = true,
            Id::Atomic => options.rules.dest.atomic = true,
            Id::Delete => {
                options.engine.delete.get_or_insert_default();
            }
            Id::DeleteExcluded => options.engine.delete.get_or_insert_default().excluded = true,
            Id::MaxDelete => {
                let invalid = || UsageError::invalid("number of deletions", value(), charset);
                options.max_delete = Some(number(value()).ok_or_else(invalid)?);
            }
            Id::StripTrailingSlashes => options.strips_slashes = true,
            Id::Suffix => options.rules.suffix(value().into()),
            Id::Update => options.rules.update(flag.value.as_deref(), charset)?,
            Id::Dereference => dereference = Some(Dereference::Always),
            Id::DereferenceOperands => dereference = Some(Dereference::Operands),
            Id::NoDereference => dereference = Some(Dereference::Never),
            Id::OneFileSystem => options.engine.one_file_system = true,
            Id::CopyContents => options.engine.copy_contents = true,
            Id::HardLink => options.hard_links = true,
            Id::SymbolicLink => options.symbolic_links = true,
            Id::Reflink => {
                let value = flag.value.as_deref();
                options.engine.reflink =
                    choose_or(Reflink::Always, "--reflink", value, &REFLINK, charset)?;
            }
            Id::Sparse => {
                options.engine.sparse = choose("--sparse", value(), &SPARSE, charset)?;
            }
            Id::Recursive => options.engine.recursive = true,
            Id::NoRecursive => options.engine.recursive = false,
            Id::Verbose => {
                options.common.verbosity = options.common.verbosity.max(Verbosity::Verbose);
            }
            Id::DryRun => {
                options.engine.execution = Execution::DryRun;
                options.common.show_plan(flag.value.as_deref(), charset)?;
            }
            Id::Verify => options.engine.verify = true,
            Id::Debug => {
                options.common.verbosity = options.common.verbosity.max(Verbosity::Debug);
                options.engine.reports_methods = true;
            }
            Id::NoTargetDirectory => options.last_operand = LastOperand::IsTheDest,
            Id::TargetDirectory => {
                let directory = Some(value().into());
                if options.target_directory.is_some() {
                    return Err(UsageError::plain("multiple target directories specified"));
                }
                options.target_directory = directory;
            }
            Id::Common(common) => {
                let value = flag.value.as_deref();
                options.common.apply(common, value, charset)?;
            }
            Id::Threads => {
                options.engine.threads = Some(threads::parse(value(), charset)?);
            }
            Id::Gitignore => options.common.exclusions.reads_gitignore = true,
        }
    }
    options.engine.dereference = dereference.unwrap_or_else(|| options.default_dereference());
    options.engine.as_links = options.as_links();
    options.engine.preserve = options.preserve.attributes();
    options.engine.context = options.preserve.given_context();
    Ok(options)
}
