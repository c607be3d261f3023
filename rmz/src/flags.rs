//! The flags of rmz, one row each, in the order in which rm lists them for an ambiguous prefix.

use fuc_cli::common::{self, CommonFlag};
use fuc_cli::flags::{Accepts, Flag, OperandHelp, Table, words};

use crate::words::{ALL, WHEN};

/// The flags that [`options`](crate::options) resolves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the help of each flag in the table describes it"
)]
pub enum Id {
    Common(CommonFlag),
    Directories,
    Force,
    Interactive,
    NoPreserveRoot,
    OneFileSystem,
    PreserveRoot,
    /// The flag makes rm prompt as if stdin were a terminal. GNU's own test suite uses it.
    PresumeInputTty,
    PromptAlways,
    PromptOnce,
    Recursive,
    NoRecursive,
    Threads,
    Unlock,
    Verbose,
    DryRun,
    Detach,
    Reap,
    Wait,
}

/// The table of all flags.
pub const TABLE: Table<Id> = Table {
    name: "rmz",
    usage: &["[OPTION]... [FILE]..."],
    about: "Remove each FILE.\n",
    own_about: "\
Directories are removed with all that is in them, as by rm -r, and files that
are write-protected without a prompt. -i and -I prompt.
",
    operands: OperandHelp {
        name: "FILE",
        help: "files and directories to remove",
    },
    flags: &[
        Flag::gnu(
            Id::Force,
            "f",
            "force",
            "ignore missing files and operands, never prompt",
        ),
        Flag::gnu(Id::PromptAlways, "i", "", "prompt before every removal"),
        Flag::gnu(
            Id::PromptOnce,
            "I",
            "",
            "prompt once before removing more than three\n\
             files, or before removing recursively",
        ),
        Flag::gnu(
            Id::Interactive,
            "",
            "interactive",
            "prompt never, once (-I) or always (-i);\n\
             without WHEN, prompt always",
        )
        .optional("WHEN", Accepts::OneOf(&words(&WHEN))),
        Flag::gnu(
            Id::OneFileSystem,
            "",
            "one-file-system",
            "when removing recursively, skip directories on\n\
             other file systems than that of their operand",
        ),
        Flag::gnu(
            Id::NoPreserveRoot,
            "",
            "no-preserve-root",
            "do not treat '/' specially",
        )
        .in_full(),
        Flag::gnu(
            Id::PreserveRoot,
            "",
            "preserve-root",
            "do not remove '/' (default); with 'all', also\n\
             refuse operands that are mount points",
        )
        .optional("all", Accepts::OneOf(&[ALL])),
        Flag::gnu(Id::PresumeInputTty, "", "-presume-input-tty", "").hidden(),
        Flag::gnu(
            Id::Recursive,
            "rR",
            "recursive",
            "remove directories and their contents (default,\n\
             but not for rm)",
        ),
        Flag::gnu(
            Id::Directories,
            "d",
            "dir",
            "remove empty directories, even without -r; rmz\n\
             removes the others, too",
        ),
        Flag::gnu(
            Id::Verbose,
            "v",
            "verbose",
            "print a line for each file removed",
        ),
        Flag::help(),
        Flag::version(),
        Flag::extension(
            Id::Common(CommonFlag::Exclude),
            "exclude",
            "leave alone what GLOB matches, in gitignore's\n\
             syntax: names anywhere, paths relative to a FILE",
        )
        .required("GLOB", Accepts::Text),
        common::exclude_from_flag(Id::Common(CommonFlag::ExcludeFrom)),
        common::dry_run_flag(
            Id::DryRun,
            "remove nothing; print what would be removed and\n\
             how much, or with 'total' only how much",
        ),
        common::progress_flag(Id::Common(CommonFlag::Progress)),
        Flag::extension(
            Id::Unlock,
            "unlock",
            "remove what is in directories of yours that are\n\
             read-only, by 'chmod u+rwx' of these",
        ),
        Flag::extension(
            Id::Detach,
            "detach",
            "hide directories at once, and remove them in the\n\
             background; failures go to the log RMZ_LOG",
        )
        .not_in_config(),
        Flag::extension(
            Id::Reap,
            "reap",
            "remove what --detach has hidden directly in each\n\
             FILE and no process is removing any more",
        )
        .not_in_config(),
        Flag::extension(
            Id::Wait,
            "wait",
            "with --detach or --reap, return when the removal\n\
             in the background is done, with its status",
        )
        .not_in_config(),
        Flag::extension(
            Id::Common(CommonFlag::MaxRate),
            "max-rate",
            "remove at most so many entries per second, as in\n\
             500/s",
        )
        .required("RATE", Accepts::Text),
        common::threads_flag(Id::Threads),
        Flag::extension(
            Id::Common(CommonFlag::Files0From),
            "files0-from",
            "remove the files whose names are in the file F,\n\
             with a NUL after each; with F -, in stdin",
        )
        .required("F", Accepts::File)
        .not_in_config(),
        common::stats_flag(Id::Common(CommonFlag::Stats)),
        Flag::extension(
            Id::NoRecursive,
            "no-recursive",
            "do not remove directories, as rm without -r",
        ),
        Flag::extension(
            Id::Common(CommonFlag::NoConfig),
            "no-config",
            "do not read the options in the file that\n\
             RMZ_CONFIG names",
        )
        .not_in_config(),
    ],
    notes: "
Called as 'rm', it needs -r to remove directories; called by any other name,
it implies -r.

To remove a file whose name begins with '-', write './-name', or put '--'
before the name.
",
    own_notes: "
Example: see what would be removed, apart from all names '*.log':
  rmz --dry-run --exclude='*.log' FILE

The manual, with more examples: man rmz
",
};

#[cfg(test)]
mod tests;
