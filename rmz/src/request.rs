//! Completes what the user asks for, before the engine runs: the options and the operands.

use std::ffi::OsString;

use fuc_cli::console::Console;
use fuc_cli::exclude::{ExcludeFilter, taken_operands};
use fuc_cli::flags::UsageError;
use fuc_cli::name_list::{self, NameList};
use fuc_cli::progress::Watch;
use fuc_cli::tool::Tool;

use crate::options::{Options, Prompts};

/// A removal that the user asks for.
pub struct Request<'a> {
    /// The options. No list of names is left to open.
    pub options: Options,
    /// The entries that stay, if there are any.
    pub filter: Option<ExcludeFilter>,
    /// The names to remove.
    pub operands: OperandSource<'a>,
    /// The means by which the user can watch the removal, if the command is not strictly GNU's.
    pub watch: Option<Watch>,
}

/// The source of the names to remove.
pub enum OperandSource<'a> {
    /// The operands of the command line that are not excluded themselves.
    Named(Vec<OsString>),
    /// The names in a list, none of which was read yet. The filter has not decided about them.
    Listed(NameList<'a>),
}

impl<'a> Request<'a> {
    /// Checks the options, and opens the files that they name: a list of names, and those of patterns. Returns `None` if no
    /// operand is given, and none is required.
    ///
    /// # Errors
    /// If options exclude each other, if a file cannot be read, or if the operands do not fit the options.
    pub fn new(
        mut options: Options,
        operands: Vec<OsString>,
        console: &'a Console,
    ) -> Result<Option<Self>, UsageError> {
        let prompts = (options.prompts != Prompts::Never).then_some("-i or -I");
        let watch = options.common.begin(Tool::Remove, prompts, console)?;
        let list = options.common.list.take();
        match (&list, operands.first()) {
            (Some(_), Some(extra)) => return Err(name_list::extra_operand(extra, console)),
            (None, None) if options.engine.ignore_missing => return Ok(None),
            (None, None) => return Err(UsageError::with_help("missing operand")),
            _ => {}
        }
        let filter = options.common.exclusions.filter(console)?;
        let operands = match list {
            Some(list) => OperandSource::Listed(list.open(console)?),
            None => OperandSource::Named(taken_operands(filter.as_ref(), operands, console)?),
        };
        Ok(Some(Self {
            options,
            filter,
            operands,
            watch,
        }))
    }
}
