//! The flags of cpz: one row each, in the order in which cp lists possibilities.

use fuc_cli::flags::{Flag, Table};

/// Flags that mean something to [`options`](crate::options).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Id {
    Backup,
    BackupSimply,
    Archive,
    AttributesOnly,
    Context,
    CopyContents,
    Debug,
    Dereference,
    DereferenceOperands,
    Force,
    HardLink,
    Interactive,
    KeepDirectorySymlink,
    NoClobber,
    KeepLinks,
    KeepTheUsual,
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
    RemoveDestination,
    StripTrailingSlashes,
    Suffix,
    TargetDirectory,
    Progress,
    Threads,
    Update,
    Verbose,
}

pub(crate) const TABLE: Table<Id> = Table {
    usage: &[
        "[OPTION]... [-T] SOURCE DEST",
        "[OPTION]... SOURCE... DIRECTORY",
        "[OPTION]... -t DIRECTORY SOURCE...",
    ],
    about: "Copies SOURCE to DEST, or each SOURCE into DIRECTORY.\n\n",
    flags: &[
        Flag::gnu(Id::Archive, "a", "archive", "the same as -dR --preserve=all"),
        Flag::gnu(Id::AttributesOnly, "", "attributes-only", "copy attributes, not content"),
        Flag::gnu(Id::Backup, "", "backup", "back up each dest that exists").optional("CONTROL"),
        Flag::gnu(Id::BackupSimply, "b", "", "the same as --backup, without a value"),
        Flag::gnu(
            Id::CopyContents,
            "",
            "copy-contents",
            "copy the content of special files",
        ),
        Flag::gnu(Id::KeepLinks, "d", "", "the same as -P --preserve=links"),
        Flag::gnu(
            Id::Debug,
            "",
            "debug",
            "tell how each file is copied; implies -v",
        ),
        Flag::gnu(
            Id::Dereference,
            "L",
            "dereference",
            "follow all symbolic links in SOURCE",
        ),
        Flag::gnu(
            Id::Force,
            "f",
            "force",
            "remove a dest file that cannot be opened,\nand try again",
        ),
        Flag::gnu(
            Id::DereferenceOperands,
            "H",
            "",
            "follow symbolic links that are a SOURCE",
        ),
        Flag::gnu(Id::Interactive, "i", "interactive", "ask before overwriting"),
        Flag::gnu(
            Id::KeepDirectorySymlink,
            "",
            "keep-directory-symlink",
            "follow dest symbolic links to directories",
        ),
        Flag::gnu(
            Id::HardLink,
            "l",
            "link",
            "make hard links instead of copies",
        ),
        Flag::gnu(Id::NoClobber, "n", "no-clobber", "skip dest files that exist"),
        Flag::gnu(
            Id::NoDereference,
            "P",
            "no-dereference",
            "follow no symbolic links in SOURCE",
        ),
        Flag::gnu(Id::KeepTheUsual, "p", "", "the same as --preserve=mode,ownership,timestamps"),
        Flag::gnu(Id::NoPreserve, "", "no-preserve", "don't preserve these attributes").required("ATTR_LIST"),
        Flag::gnu(
            Id::NoTargetDirectory,
            "T",
            "no-target-directory",
            "take DEST for a file, even if it is a directory",
        ),
        Flag::gnu(
            Id::OneFileSystem,
            "x",
            "one-file-system",
            "stay on the file system of each SOURCE",
        ),
        Flag::gnu(Id::Parents, "", "parents", "append SOURCE's whole path to DIRECTORY"),
        Flag::gnu(Id::Parents, "", "path", "").spelling_of("parents").hidden(),
        Flag::gnu(
            Id::Preserve,
            "",
            "preserve",
            "preserve mode, ownership, timestamps, links,\ncontext, xattr or all (default: the first three)",
        )
        .optional("ATTR_LIST"),
        Flag::gnu(
            Id::Recursive,
            "rR",
            "recursive",
            "copy directories and all that is in them",
        ),
        Flag::gnu(Id::RemoveDestination, "", "remove-destination", "remove each dest file before copying"),
        Flag::gnu(
            Id::Sparse,
            "",
            "sparse",
            "auto, always or never make holes",
        )
        .required("WHEN"),
        Flag::gnu(
            Id::Reflink,
            "",
            "reflink",
            "always, auto or never share blocks",
        )
        .optional("WHEN"),
        Flag::gnu(
            Id::StripTrailingSlashes,
            "",
            "strip-trailing-slashes",
            "remove slashes from the end of each SOURCE",
        ),
        Flag::gnu(Id::Suffix, "S", "suffix", "end the names of backups so").required("SUFFIX"),
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
            "copy each SOURCE into DIRECTORY",
        )
        .required("DIRECTORY"),
        Flag::gnu(
            Id::Update,
            "u",
            "update",
            "overwrite all, none, none-fail or older dest files\n(-u, no WHEN: older)",
        )
        .optional("WHEN"),
        Flag::gnu(Id::Verbose, "v", "verbose", "name each thing copied"),
        Flag::gnu(Id::Context, "Z", "", "give each dest the default security context"),
        Flag::gnu(Id::Context, "", "context", "the same as -Z; with CTX, that context").optional("CTX"),
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
            "use at most N threads (else CPZ_THREADS,\nelse as many as pay)",
        )
        .required("N"),
    ],
    notes: "
Called as 'cp', directories need -r; called by any other name, -r is implied.
",
};

#[cfg(test)]
mod tests;
