//! The flags of cpz, one row each, in the order in which cp lists them for an ambiguous prefix.

use fuc_cli::common::{self, CommonFlag};
use fuc_cli::flags::{Accepts, Flag, OperandHelp, Table, words};

use crate::words::{ATTRIBUTES, CONTROL, REFLINK, SPARSE, UPDATE};

/// The flags that [`options`](crate::options) resolves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the help of each flag in the table describes it"
)]
pub enum Id {
    Common(CommonFlag),
    Backup,
    BackupSimply,
    Archive,
    AttributesOnly,
    Context,
    CopyContents,
    Debug,
    Delete,
    DeleteExcluded,
    Dereference,
    DereferenceOperands,
    Force,
    Fsync,
    HardLink,
    Interactive,
    KeepDirectorySymlink,
    NoClobber,
    KeepLinks,
    PreserveDefault,
    NoDereference,
    NoPreserve,
    OneFileSystem,
    Reflink,
    Sparse,
    SymbolicLink,
    NoTargetDirectory,
    Parents,
    Preserve,
    Recursive,
    NoRecursive,
    RemoveDestination,
    Resume,
    LinkDest,
    Itemize,
    Atomic,
    NoCache,
    StripTrailingSlashes,
    Suffix,
    TargetDirectory,
    Threads,
    MaxDelete,
    Update,
    Verbose,
    Verify,
    Gitignore,
    DryRun,
}

/// The table of all flags.
pub const TABLE: Table<Id> = Table {
    name: "cpz",
    usage: &[
        "[OPTION]... [-T] SOURCE DEST",
        "[OPTION]... SOURCE... DIRECTORY",
        "[OPTION]... -t DIRECTORY SOURCE...",
    ],
    about: "Copy SOURCE to DEST, or each SOURCE into DIRECTORY.\n",
    own_about: "\
Directories are copied with all that is in them, as by cp -r. If DEST is a
directory, the copy goes into it, unless -T is given.
",
    operands: OperandHelp {
        name: "PATH",
        help: "each SOURCE, then DEST or DIRECTORY, unless -t names the DIRECTORY",
    },
    flags: &[
        Flag::gnu(Id::Archive, "a", "archive", "same as -dR --preserve=all"),
        Flag::gnu(
            Id::AttributesOnly,
            "",
            "attributes-only",
            "copy only the attributes, not the content",
        ),
        Flag::gnu(
            Id::Backup,
            "",
            "backup",
            "make a backup of each existing dest file:\n\
             none, simple, existing or numbered",
        )
        .optional("CONTROL", Accepts::OneOf(&words(&CONTROL))),
        Flag::gnu(
            Id::BackupSimply,
            "b",
            "",
            "same as --backup, but takes no argument",
        ),
        Flag::gnu(
            Id::CopyContents,
            "",
            "copy-contents",
            "copy the contents of special files when recursive",
        ),
        Flag::gnu(Id::KeepLinks, "d", "", "same as -P --preserve=links"),
        Flag::gnu(
            Id::Debug,
            "",
            "debug",
            "explain how each file is copied; implies -v",
        ),
        Flag::gnu(
            Id::Dereference,
            "L",
            "dereference",
            "always follow symbolic links in SOURCE",
        ),
        Flag::gnu(
            Id::Force,
            "f",
            "force",
            "if an existing dest file cannot be opened,\n\
             remove it and try again",
        ),
        Flag::gnu(
            Id::DereferenceOperands,
            "H",
            "",
            "follow symbolic links that are operands",
        ),
        Flag::gnu(
            Id::Interactive,
            "i",
            "interactive",
            "prompt before overwriting",
        ),
        Flag::gnu(
            Id::HardLink,
            "l",
            "link",
            "make hard links instead of copies",
        ),
        Flag::gnu(
            Id::NoClobber,
            "n",
            "no-clobber",
            "silently skip existing dest files",
        ),
        Flag::gnu(
            Id::NoDereference,
            "P",
            "no-dereference",
            "never follow symbolic links in SOURCE",
        ),
        Flag::gnu(
            Id::PreserveDefault,
            "p",
            "",
            "same as --preserve=mode,ownership,timestamps",
        ),
        Flag::gnu(
            Id::NoPreserve,
            "",
            "no-preserve",
            "do not preserve these attributes",
        )
        .required("ATTR_LIST", Accepts::ListOf(&words(&ATTRIBUTES))),
        Flag::gnu(
            Id::NoTargetDirectory,
            "T",
            "no-target-directory",
            "treat DEST as a normal file",
        ),
        Flag::gnu(
            Id::OneFileSystem,
            "x",
            "one-file-system",
            "stay on the file system of each SOURCE",
        ),
        Flag::gnu(
            Id::Parents,
            "",
            "parents",
            "append the full path of each SOURCE to DIRECTORY",
        ),
        Flag::gnu(Id::Parents, "", "path", "")
            .spelling_of("parents")
            .hidden(),
        Flag::gnu(
            Id::Preserve,
            "",
            "preserve",
            "preserve mode, ownership, timestamps, links,\n\
             context, xattr or all (default: the first three)",
        )
        .optional("ATTR_LIST", Accepts::ListOf(&words(&ATTRIBUTES))),
        Flag::gnu(
            Id::Recursive,
            "rR",
            "recursive",
            "copy directories and their contents (default,\n\
             but not for cp)",
        ),
        Flag::gnu(
            Id::RemoveDestination,
            "",
            "remove-destination",
            "remove each existing dest file before copying",
        ),
        Flag::gnu(
            Id::Sparse,
            "",
            "sparse",
            "make holes in copies: auto (those of SOURCE),\n\
             always (wherever there are only zeros) or never",
        )
        .required("WHEN", Accepts::OneOf(&words(&SPARSE))),
        Flag::gnu(
            Id::Reflink,
            "",
            "reflink",
            "share blocks with SOURCE: always (or fail),\n\
             auto (if possible) or never; default: auto,\n\
             without WHEN: always",
        )
        .optional("WHEN", Accepts::OneOf(&words(&REFLINK))),
        Flag::gnu(
            Id::StripTrailingSlashes,
            "",
            "strip-trailing-slashes",
            "remove trailing slashes from each SOURCE",
        ),
        Flag::gnu(
            Id::Suffix,
            "S",
            "suffix",
            "override the usual backup suffix '~'",
        )
        .required("SUFFIX", Accepts::Text),
        Flag::gnu(
            Id::SymbolicLink,
            "s",
            "symbolic-link",
            "make symbolic links instead of copies",
        ),
        Flag::gnu(
            Id::TargetDirectory,
            "t",
            "target-directory",
            "copy all SOURCEs into DIRECTORY",
        )
        .required("DIRECTORY", Accepts::Directory),
        Flag::gnu(
            Id::Update,
            "",
            "update",
            "replace all, none, none-fail (none, and fail) or\n\
             older dest files; without WHEN: older",
        )
        .optional("WHEN", Accepts::OneOf(&words(&UPDATE))),
        Flag::gnu(Id::Update, "u", "", "same as --update=older"),
        Flag::gnu(
            Id::Verbose,
            "v",
            "verbose",
            "print a line for each file copied",
        ),
        Flag::gnu(
            Id::KeepDirectorySymlink,
            "",
            "keep-directory-symlink",
            "follow existing symbolic links to directories\n\
             at the dest",
        ),
        Flag::gnu(
            Id::Context,
            "Z",
            "",
            "set the default security context on each dest file",
        ),
        Flag::gnu(
            Id::Context,
            "",
            "context",
            "same as -Z; with CTX, set that context",
        )
        .optional("CTX", Accepts::Text),
        Flag::help(),
        Flag::version(),
        Flag::extension(
            Id::Common(CommonFlag::Exclude),
            "exclude",
            "leave alone what GLOB matches, in gitignore's\n\
             syntax, relative to each SOURCE; '!' includes",
        )
        .required("GLOB", Accepts::Text),
        common::exclude_from_flag(Id::Common(CommonFlag::ExcludeFrom)),
        Flag::extension(
            Id::Gitignore,
            "gitignore",
            "leave alone what the .gitignore files in each\n\
             SOURCE exclude",
        ),
        common::dry_run_flag(
            Id::DryRun,
            "change nothing; print what would change and how\n\
             much, or with 'total' only how much",
        ),
        common::progress_flag(Id::Common(CommonFlag::Progress)),
        Flag::extension(
            Id::Resume,
            "resume",
            "continue an interrupted copy: keep dest files that\n\
             have the size and time of their SOURCE; needs\n\
             -a, -p or --preserve=timestamps",
        )
        .not_in_config(),
        Flag::extension(
            Id::LinkDest,
            "link-dest",
            "link to the unchanged files of the older copy DIR,\n\
             instead of copying them; needs -a or -p",
        )
        .required("DIR", Accepts::Directory)
        .not_in_config(),
        Flag::extension(
            Id::Itemize,
            "itemize",
            "print for each dest file whether it is new,\n\
             linked, updated, kept or deleted, and why",
        ),
        Flag::extension(
            Id::Verify,
            "verify",
            "read each copied file and its SOURCE again, and\n\
             report files that differ",
        ),
        Flag::extension(
            Id::Delete,
            "delete",
            "delete from the dest of each directory what the\n\
             SOURCE does not have; replace other types",
        )
        .not_in_config(),
        Flag::extension(
            Id::DeleteExcluded,
            "delete-excluded",
            "same, and delete what is excluded",
        )
        .not_in_config(),
        Flag::extension(Id::MaxDelete, "max-delete", "delete at most N entries")
            .required("N", Accepts::Text)
            .not_in_config(),
        Flag::extension(
            Id::Atomic,
            "atomic",
            "replace an existing file when its copy is\n\
             complete, by a rename",
        ),
        Flag::extension(
            Id::Fsync,
            "fsync",
            "write everything to the disk before cpz ends",
        ),
        Flag::extension(
            Id::NoCache,
            "no-cache",
            "drop what was copied from the page cache, and\n\
             wait for the disk",
        ),
        Flag::extension(
            Id::Common(CommonFlag::MaxRate),
            "max-rate",
            "copy at most so many bytes per second, as in 200M,\n\
             or entries, as in 500/s",
        )
        .required("RATE", Accepts::Text),
        common::threads_flag(Id::Threads),
        Flag::extension(
            Id::Common(CommonFlag::Files0From),
            "files0-from",
            "copy the SOURCEs whose names are in the file F,\n\
             with a NUL after each; with F -, in stdin",
        )
        .required("F", Accepts::File)
        .not_in_config(),
        common::stats_flag(Id::Common(CommonFlag::Stats)),
        Flag::extension(
            Id::NoRecursive,
            "no-recursive",
            "do not copy directories, as cp without -r",
        ),
        Flag::extension(
            Id::Common(CommonFlag::NoConfig),
            "no-config",
            "do not read the options in the file that\n\
             CPZ_CONFIG names",
        )
        .not_in_config(),
    ],
    notes: "
Called as 'cp', it needs -r to copy directories; called by any other name,
it implies -r.
",
    own_notes: "
Example: copy a directory to DEST itself, with all attributes:
  cpz -aT --progress SOURCE DEST

The manual, with more examples: man cpz
",
};

#[cfg(test)]
mod tests;
