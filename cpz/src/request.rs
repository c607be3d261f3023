//! Completes what the user asks for, before the engine runs: the options, the sources and the dest.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use fuc_cli::console::Console;
use fuc_cli::exclude::{ExcludeFilter, check_patterns, taken_operands};
use fuc_cli::flags::UsageError;
use fuc_cli::name_list::PackedNames;
use fuc_cli::progress::Watch;
use fuc_cli::tool::Tool;
use fuc_engine::Dest;

use crate::options::Options;
use crate::target;

/// A copy that the user asks for.
#[derive(Debug)]
pub struct Request {
    /// The options. Those of the engine are complete, and no list of names is left to read.
    pub options: Options,
    /// The entries that are left alone, if there are any.
    pub filter: Option<ExcludeFilter>,
    /// The paths to copy.
    pub sources: PackedNames,
    /// The number of names in a list that could not be read. Each has been reported.
    pub unread_names: u64,
    /// The place that the copies go to.
    pub dest: Dest,
    /// The means by which the user can watch the copy, if the command is not strictly GNU's.
    pub watch: Option<Watch>,
    /// The time before the first name was read.
    pub began: Instant,
}

impl Request {
    /// Checks the options, and reads the files that they name: lists of names and of patterns.
    ///
    /// # Errors
    /// If options exclude each other, if a file cannot be read, or if the operands do not fit the options.
    pub fn new(
        mut options: Options,
        mut operands: Vec<OsString>,
        console: &Console,
    ) -> Result<Self, UsageError> {
        options.finish(console.charset())?;
        options.preserve.check_context()?;
        let began = Instant::now();
        let prompts = options.engine.rules.ask.then_some("-i");
        let watch = options.common.begin(Tool::Copy, prompts, console)?;
        let list = options.common.list.take();
        let dest = match &list {
            Some(_) => target::dest_of_list(&options, &mut operands, console)?,
            None => target::take_dest(&options, &mut operands, console)?,
        };
        let filter = options.common.exclusions.filter(console)?;
        let mut listed = list.map(|list| list.open(console)).transpose()?;
        // As in cp, trailing slashes stay if the dest is an exact path.
        let strips_slashes = options.strips_slashes && matches!(dest, Dest::Into(_));
        let names = operands.into_iter().chain(listed.iter_mut().flatten());
        let names = names.map(|name| match strips_slashes {
            true => without_slashes(name),
            false => name,
        });
        let sources: PackedNames = taken_operands(filter.as_ref(), names, console)?;
        if let Some(filter) = filter.as_ref().filter(|_| options.engine.delete.is_some()) {
            // Patterns say what is kept in the dests, too.
            for source in sources.iter() {
                check_patterns(filter, &dest_of(&dest, &source), console)?;
            }
        }
        Ok(Self {
            sources,
            options,
            filter,
            unread_names: listed.map_or(0, |list| list.failures()),
            dest,
            watch,
            began,
        })
    }

    /// Returns the path of a new mirror in an existing directory that the user may have meant to be the mirror itself.
    #[must_use]
    pub fn misplaced_mirror(&self) -> Option<PathBuf> {
        let engine = &self.options.engine;
        let is_chosen = self.options.target_directory.is_some() || engine.parents;
        let (Dest::Into(directory), false) = (&self.dest, is_chosen) else {
            return None;
        };
        let mut sources = self.sources.iter();
        let copy = directory.join(sources.next()?.file_name()?);
        let is_new = || copy.symlink_metadata().is_err();
        (engine.delete.is_some() && sources.next().is_none() && is_new()).then_some(copy)
    }
}

/// Returns the dest of a source, without the directories that `--parents` adds.
fn dest_of(dest: &Dest, source: &Path) -> OsString {
    match (dest, source.file_name()) {
        (Dest::Into(target), Some(name)) => target.join(name).into(),
        (Dest::Into(dest) | Dest::Exactly(dest), _) => dest.into(),
    }
}

/// Removes trailing slashes, but keeps one if there is nothing else.
fn without_slashes(operand: OsString) -> OsString {
    let mut bytes = operand.into_vec();
    while bytes.len() > 1 && bytes.ends_with(b"/") {
        bytes.pop();
    }
    OsString::from_vec(bytes)
}
