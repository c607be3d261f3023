//! The flags of rmz: one row each, in the order in which rm lists possibilities.

use fuc_cli::flags::{Flag, Table};

/// Flags that mean something to [`options`](crate::options).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Id {
    Directories,
    Force,
    Interactive,
    NoPreserveRoot,
    OneFileSystem,
    PreserveRoot,
    /// For GNU's own test suite: prompts as if stdin were a terminal.
    PresumeInputTty,
    PromptAlways,
    PromptOnce,
    Recursive,
    Progress,
    Threads,
    Verbose,
}

pub(crate) const TABLE: Table<Id> = Table {
    usage: &["[OPTION]... [FILE]..."],
    about: "Removes each FILE.\n\n",
    flags: &[
        Flag::gnu(
            Id::Force,
            "f",
            "force",
            "ignore missing files and arguments, never ask",
        ),
        Flag::gnu(Id::PromptAlways, "i", "", "ask before every removal"),
        Flag::gnu(
            Id::PromptOnce,
            "I",
            "",
            "ask once before removing more than three files\nor whole directories",
        ),
        Flag::gnu(
            Id::Interactive,
            "",
            "interactive",
            "ask never, once (-I) or always (-i);\nno WHEN: always",
        )
        .optional("WHEN"),
        Flag::gnu(
            Id::OneFileSystem,
            "",
            "one-file-system",
            "skip directories on another file system\nthan that of their operand",
        ),
        Flag::gnu(
            Id::NoPreserveRoot,
            "",
            "no-preserve-root",
            "treat '/' like any other directory",
        )
        .in_full(),
        Flag::gnu(
            Id::PreserveRoot,
            "",
            "preserve-root",
            "refuse '/' (the default); with 'all', refuse\nevery operand that is a mount point too",
        )
        .optional("all"),
        Flag::gnu(Id::PresumeInputTty, "", "-presume-input-tty", "").hidden(),
        Flag::gnu(
            Id::Recursive,
            "rR",
            "recursive",
            "remove directories and all that is in them",
        ),
        Flag::gnu(Id::Directories, "d", "dir", "remove empty directories"),
        Flag::gnu(Id::Verbose, "v", "verbose", "name each thing removed"),
        Flag::help(),
        Flag::version(),
        Flag::extension(
            Id::Progress,
            "progress",
            "show how far it has come: auto (at a terminal; the\ndefault of WHEN), always or never",
        )
        .optional("WHEN"),
        Flag::extension(
            Id::Threads,
            "threads",
            "use at most N threads (else RMZ_THREADS,\nelse as many as pay)",
        )
        .required("N"),
    ],
    notes: "
Called as 'rm', directories need -r; called by any other name, -r is implied.

A file whose name begins with '-' can be removed as './-name' or after '--'.
",
};

#[cfg(test)]
mod tests;
