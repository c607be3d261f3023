//! Whether the copy of a file would destroy it, because its dest leads to it too.
//!
//! Only asked where the rules about dests have a say in it: what they do to the
//! dest decides which of its names lead to the file afterwards.

use rustix::fs::FileType;

use super::existing::is_same;
use crate::sys::{self, Stat, Symlinks};

/// What becomes of the dest before the copy is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    WrittenTo,
    Unlinked,
    Renamed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sameness {
    /// The copy does the source no harm.
    Harmless,
    /// The dest is another name of the very link that is copied.
    AlreadyThere,
    SameFile,
}

/// A name: the file of that name, and what that leads to if it is a symbolic link to something.
pub(super) struct Named {
    pub(super) itself: Stat,
    pub(super) target: Option<Stat>,
}

impl Named {
    fn is_link(&self) -> bool {
        sys::file_type(&self.itself) == FileType::Symlink
    }

    fn target(&self) -> Option<&Stat> {
        if self.is_link() {
            self.target.as_ref()
        } else {
            Some(&self.itself)
        }
    }
}

/// Judges two names of which at least one is a symbolic link or both are one
/// file; `is_one_name`: they are also one entry of one directory.
///
/// `symlinks` says whether a source that is a link stands for its target.
pub(super) fn judge(
    source: &Named,
    dest: &Named,
    (symlinks, fate): (Symlinks, Fate),
    is_one_name: impl FnOnce() -> bool,
) -> Sameness {
    let are_one = is_same(&source.itself, &dest.itself);
    let only_if = |harmless| {
        if harmless {
            Sameness::Harmless
        } else {
            Sameness::SameFile
        }
    };
    if symlinks == Symlinks::NoFollow && source.is_link() && dest.is_link() {
        return match (are_one, fate) {
            (false, _) => Sameness::Harmless,
            (true, _) if is_one_name() => Sameness::SameFile,
            (true, Fate::Renamed) => Sameness::Harmless,
            (true, _) => Sameness::AlreadyThere,
        };
    }
    match fate {
        Fate::Renamed if are_one => only_if(!is_one_name()),
        // The link that is to be read through would dangle.
        Fate::Renamed => {
            only_if(symlinks == Symlinks::NoFollow || !source.is_link() || dest.is_link())
        }
        Fate::Unlinked if dest.is_link() => Sameness::Harmless,
        Fate::Unlinked if are_one => only_if(dest.itself.st_nlink > 1 && !is_one_name()),
        Fate::Unlinked | Fate::WrittenTo if symlinks == Symlinks::Follow => Sameness::SameFile,
        Fate::Unlinked | Fate::WrittenTo => match (source.target(), dest.target()) {
            (Some(source), Some(dest)) => only_if(!is_same(source, dest)),
            _ => Sameness::Harmless,
        },
    }
}
