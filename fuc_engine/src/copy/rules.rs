//! What the caller wants done where something is at the dest already.

use std::ffi::OsString;

/// What becomes of a dest that exists. [`Default`] overwrites it, unasked and without a backup.
///
/// None of it concerns directories, which are merged into directories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DestRules {
    /// Whether it is replaced at all.
    pub replace: Replace,
    /// Ask [`Question::Overwrite`](crate::Question::Overwrite) before each that
    /// is to be replaced. The copy is done by one thread then, in listing order.
    pub ask: bool,
    /// Unlink it instead of writing into it.
    pub remove_first: bool,
    /// Rename it instead of writing into it. If the copy fails then, it gets its name back.
    pub backup: Option<Backup>,
    /// A symbolic link to a directory is as good as a directory to copy one into.
    pub follow_links_to_directories: bool,
    /// The dest of a source itself is created where a symbolic link leads that leads to nothing;
    /// otherwise, and below sources always, such a link is
    /// [refused](crate::Refusal::DanglingDest).
    pub create_through_links: bool,
}

/// Which dests are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replace {
    /// All.
    #[default]
    All,
    /// Those that were modified before their source was. Where copies get the
    /// [timestamps](crate::Preserve::timestamps) of their sources, these are
    /// compared as far as the dest's filesystem can store them.
    Older,
    /// None; they are passed over in silence.
    None,
    /// None; each is a [failure](crate::Refusal::NotReplacing).
    NoneAndFail,
}

/// How a backup is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// With a number or with a suffix.
    pub naming: BackupNaming,
    /// What is appended to the name of a simple backup. There is no slash in it.
    pub suffix: OsString,
}

/// With what a backup's name ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupNaming {
    /// The suffix; an earlier backup of that name is lost.
    Simple,
    /// `.~N~`, with a number above those that are there.
    Numbered,
    /// A number if there is a numbered backup already, else the suffix.
    NumberedIfAny,
}

impl DestRules {
    /// Whether nothing has to be known of a dest before it is written to.
    pub(super) fn are_plain(&self) -> bool {
        self.replace == Replace::All && !self.ask && !self.moves_dest()
    }

    /// Whether the dest's name is free when its copy is made, whatever had it.
    pub(super) fn moves_dest(&self) -> bool {
        self.remove_first || self.backup.is_some()
    }

    pub(super) fn numbers_backups(&self) -> bool {
        self.backup
            .as_ref()
            .is_some_and(|backup| backup.naming == BackupNaming::Numbered)
    }
}
