//! The rules for dests that exist.

use std::ffi::OsString;

/// Rules for dests that exist. [`Default`] overwrites them, without a question or a backup.
///
/// The rules do not concern directories, which are merged into existing directories.
///
/// ```
/// use fuc_engine::{CopyOp, Replace};
///
/// let update = CopyOp::new().with(|copy| copy.rules.replace = Replace::Older);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DestRules {
    /// Selects the dests that are replaced at all.
    pub replace: Replace,
    /// Ask [`Question::Overwrite`](crate::Question::Overwrite) before each dest is
    /// replaced. The copy then runs on one thread, in listing order.
    pub ask: bool,
    /// Unlink the dest instead of writing to it.
    pub remove_first: bool,
    /// Rename the dest instead of writing to it. If the copy then fails, the dest gets
    /// its name back.
    pub backup: Option<Backup>,
    /// The end of the name of a backup without a number: `~` by default. It does not contain a slash.
    pub backup_suffix: OsString,
    /// Copy a directory into the target of an existing symbolic link to a directory. Do the same
    /// on the way to a dest, for [`parents`](super::CopyOp::parents).
    pub follow_links_to_directories: bool,
    /// Create the target of a dangling symbolic link that is the dest of a source itself.
    /// Otherwise, and always below sources, such a link is
    /// [refused](crate::Refusal::DanglingDest).
    pub create_through_links: bool,
}

/// Selects the existing dests that are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replace {
    /// Replace all dests.
    #[default]
    All,
    /// Replace dests that were modified before their source. If copies get the
    /// [timestamps](crate::Preserve::timestamps) of their sources, timestamps are compared
    /// with the precision of the dest's filesystem.
    Older,
    /// Replace dests that differ from their source in type, size or time of modification. This
    /// continues a run that was interrupted: a copy gets the time of its source when it is complete. So
    /// it needs [timestamps](crate::Preserve::timestamps); without them, nearly all dests differ.
    /// Timestamps are compared with the precision of the dest's filesystem.
    Changed,
    /// Replace no dest, silently.
    None,
    /// Replace no dest, and report each as a [failure](crate::Refusal::NotReplacing).
    NoneAndFail,
}

/// Selects the names of backups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backup {
    /// The dest's name and the suffix. An earlier backup with that name is lost.
    Simple,
    /// The dest's name and `.~N~`, where N is above the numbers in use.
    Numbered,
    /// A number if the dest has a numbered backup already, else the suffix.
    NumberedIfAny,
}

impl Default for DestRules {
    fn default() -> Self {
        Self {
            replace: Replace::All,
            ask: false,
            remove_first: false,
            backup: None,
            backup_suffix: "~".into(),
            follow_links_to_directories: false,
            create_through_links: false,
        }
    }
}

impl DestRules {
    /// Returns `true` if a dest may be written to without looking at it first.
    pub(in crate::copy) fn are_plain(&self) -> bool {
        self.are_plain_with(self.backup)
    }

    /// Returns the same for an entry with its own rule about backups, which is `backup`.
    pub(in crate::copy) fn are_plain_with(&self, backup: Option<Backup>) -> bool {
        // Each field is named, so that a new rule cannot be forgotten here.
        let Self {
            replace,
            ask,
            remove_first,
            backup: _,
            backup_suffix: _,
            // These two are read only if creating the dest fails.
            follow_links_to_directories: _,
            create_through_links: _,
        } = self;
        *replace == Replace::All && !ask && !remove_first && backup.is_none()
    }
}
