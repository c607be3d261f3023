//! What becomes of an item whose dest may exist, where there are rules about that.
//!
//! ```text
//!                      the dest as it will be met
//!   nothing there ────────────────────────────────────────────▶ Free
//!   there: is it replaced at all? ──no──▶ left, or a failure
//!          would that destroy the source? ──yes──▶ a failure
//!          is it older? (if that matters) ──no──▶ left
//!          does somebody agree? (if asked) ──no──▶ left, and counted
//!          is it a directory, or just made? ──yes──▶ a failure
//!          renamed or unlinked, if that is wanted ────────────▶ Free
//!          else ──────────────────────────────────────────────▶ Taken
//! ```
//!
//! That is the order in which cp decides. Where no rule was given, none of this
//! costs a call: a new name is tried at once.

use std::ffi::CStr;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::LinkKind;
use super::existing::is_same;
use super::item::Item;
use super::rules::Replace;
use super::same_file::{Fate, Named, Sameness, judge};
use super::tree::Copying;
use super::update::{self, Timestamps};
use crate::error::{Error, Operation, Refusal};
use crate::observer::{Answer, OverwriteTarget, Protection, Question};
use crate::sys::{self, Stat, Symlinks};
use crate::walk::Walker;

/// What a copy will meet at its dest.
#[derive(Clone, Copy)]
pub(super) enum Ground<'a> {
    /// There are no rules: a new name is tried first, and what exists is written to.
    Unknown,
    /// Something that may be written to.
    Taken,
    /// Nothing, or nothing any more: who gets there first since is not written to.
    Free {
        /// What has been renamed, relative to the directory of the dest.
        backup: Option<&'a CStr>,
    },
}

impl<'a> Ground<'a> {
    pub(super) fn backup(self) -> Option<&'a CStr> {
        match self {
            Self::Free { backup } => backup,
            Self::Unknown | Self::Taken => None,
        }
    }

    /// The same, for as long as anybody likes, when the backup's name is kept elsewhere.
    pub(super) fn without_backup(self) -> Ground<'static> {
        match self {
            Self::Unknown => Ground::Unknown,
            Self::Taken => Ground::Taken,
            Self::Free { .. } => Ground::Free { backup: None },
        }
    }

    pub(super) fn with_backup(self, backup: Option<&'a CStr>) -> Self {
        match self {
            Self::Free { .. } => Self::Free { backup },
            Self::Unknown | Self::Taken => self,
        }
    }
}

/// Whether a copy was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    Yes,
    /// It need not be, or it failed and that has been told.
    No,
}

/// What the rules came to.
enum Settled {
    /// Nothing is to be done.
    Left,
    Taken,
    Free {
        backup: Option<Box<CStr>>,
    },
}

impl Copying<'_> {
    /// Copies an entry or an operand that is no directory, as the rules say.
    pub(super) fn copy_by_rules(
        &self,
        item: &Item<'_>,
        source: &Stat,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Made, Error> {
        let settled = self.settle(item, source, worker)?;
        let ground = match &settled {
            Settled::Left => return Ok(Made::No),
            Settled::Taken => Ground::Taken,
            Settled::Free { backup } => Ground::Free {
                backup: backup.as_deref(),
            },
        };
        let item = &Item { ground, ..*item };
        match self.copy_seen(item, source, worker) {
            Ok(()) => Ok(Made::Yes),
            Err(error) => {
                self.report_item(item, error);
                self.restore_backup(item);
                Ok(Made::No)
            }
        }
    }

    fn settle(
        &self,
        item: &Item<'_>,
        source: &Stat,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Settled, Error> {
        let there = match item.stat_dest(self.follows_dest(source)) {
            Ok(there) => Some(there),
            Err(Errno::NOENT) => None,
            // Opening it will fail as well, and then it is unlinked.
            Err(Errno::LOOP) if self.options().force => return Ok(Settled::Taken),
            Err(errno) => return Err(self.dest_error(item, Operation::Stat, errno)),
        };
        if let Some(there) = &there {
            if !self.is_to_be_replaced(item, (source, there), worker)? {
                return Ok(Settled::Left);
            }
            if sys::file_type(there) == FileType::Directory {
                return Err(self.refusal(item, Refusal::DirectoryByNonDirectory));
            }
        }
        if item.node.is_none() {
            self.check_just_created(item, source)?;
        }
        match there {
            None => Ok(Settled::Free { backup: None }),
            Some(there) if self.rules.backup.is_some() => {
                let backup = self.set_aside(item, source, &there, worker)?;
                Ok(Settled::Free { backup })
            }
            Some(_) if self.rules.remove_first => {
                self.unlink_dest(item)?;
                Ok(Settled::Free { backup: None })
            }
            Some(_) => Ok(Settled::Taken),
        }
    }

    /// A dest that is a link is written through; one that is renamed, unlinked,
    /// or replaced by something without content is meant itself.
    pub(super) fn follows_dest(&self, source: &Stat) -> Symlinks {
        let has_content = match sys::file_type(source) {
            FileType::RegularFile => true,
            FileType::Symlink | FileType::Directory => false,
            _ => self.reads_special_content(),
        };
        let is_copied = has_content && self.options().as_links.is_none();
        if is_copied && !self.rules.moves_dest() {
            Symlinks::Follow
        } else {
            Symlinks::NoFollow
        }
    }

    fn is_to_be_replaced(
        &self,
        item: &Item<'_>,
        (source, there): (&Stat, &Stat),
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<bool, Error> {
        match self.rules.replace {
            Replace::None => return Ok(false),
            Replace::NoneAndFail => return Err(self.refusal(item, Refusal::NotReplacing)),
            Replace::All | Replace::Older => {}
        }
        let sameness = self.sameness(item, source, there);
        if sameness == Sameness::SameFile {
            return Err(self.same_file(item));
        }
        let timestamps = if self.options().preserve.timestamps {
            Timestamps::Copied
        } else {
            Timestamps::Fresh
        };
        if self.rules.replace == Replace::Older && !update::is_older(there, source, timestamps) {
            self.stands_for_copy(item, (source, there), worker);
            return Ok(false);
        }
        if self.rules.ask && self.agrees_to_overwrite(item, there) == Answer::No {
            self.report.declined();
            return Ok(false);
        }
        Ok(sameness == Sameness::Harmless)
    }

    /// The same as it is judged where there are rules, for a dest that may be there.
    pub(super) fn sameness_of(&self, item: &Item<'_>, source: &Stat) -> Sameness {
        match item.stat_dest(self.follows_dest(source)) {
            Ok(there) => self.sameness(item, source, &there),
            Err(_) => Sameness::Harmless,
        }
    }

    fn sameness(&self, item: &Item<'_>, source: &Stat, there: &Stat) -> Sameness {
        let is_one = is_same(source, there);
        if is_one && self.options().as_links == Some(LinkKind::Hard) {
            return Sameness::AlreadyThere;
        }
        let is_link = |stat: &Stat| sys::file_type(stat) == FileType::Symlink;
        let may_lead_there =
            item.symlinks == Symlinks::NoFollow && (is_link(source) || is_link(there));
        if !is_one && !may_lead_there {
            return Sameness::Harmless;
        }
        let stat = |symlinks| sys::stat(item.source_dir, item.source_name, symlinks);
        let named =
            |itself: Result<Stat, Errno>, target: Result<Stat, Errno>, known: &Stat| Named {
                itself: itself.unwrap_or(*known),
                target: target.ok(),
            };
        let source = named(stat(Symlinks::NoFollow), stat(Symlinks::Follow), source);
        let dest = named(
            item.stat_dest(Symlinks::NoFollow),
            item.stat_dest(Symlinks::Follow),
            there,
        );
        let fate = if self.rules.backup.is_some() {
            Fate::Renamed
        } else if self.rules.remove_first {
            Fate::Unlinked
        } else if self.options().as_links == Some(LinkKind::Symbolic) {
            Fate::LinkedOver
        } else {
            Fate::WrittenTo
        };
        judge(&source, &dest, (item.symlinks, fate), || {
            item.is_one_entry()
        })
    }

    fn agrees_to_overwrite(&self, item: &Item<'_>, there: &Stat) -> Answer {
        let path = &self.item_path(item, crate::node::Side::Dest);
        let is_writable = sys::file_type(there) == FileType::Symlink
            || self.user == 0
            || sys::may_write(item.dest_dir, item.dest_name, Symlinks::Follow) == Ok(true);
        let protection = match (is_writable, self.rules.remove_first || self.options().force) {
            (true, _) => Protection::None,
            (false, true) => Protection::Overridden,
            (false, false) => Protection::Unwritable,
        };
        self.report.confirm(Question::Overwrite(OverwriteTarget {
            path,
            mode: there.st_mode & 0o7777,
            protection,
        }))
    }
}
