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
    /// It stays, or a symbolic link takes its name.
    LinkedOver,
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
        Fate::LinkedOver if dest.is_link() => Sameness::Harmless,
        Fate::Unlinked if are_one => only_if(dest.itself.st_nlink > 1 && !is_one_name()),
        _ if symlinks == Symlinks::Follow => Sameness::SameFile,
        Fate::Unlinked | Fate::LinkedOver | Fate::WrittenTo => {
            match (source.target(), dest.target()) {
                (Some(source), Some(dest)) => only_if(!is_same(source, dest)),
                _ => Sameness::Harmless,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::CWD;

    const MODES: [(Symlinks, Fate); 4] = [
        (Symlinks::Follow, Fate::Renamed),
        (Symlinks::NoFollow, Fate::Renamed),
        (Symlinks::NoFollow, Fate::Unlinked),
        (Symlinks::NoFollow, Fate::WrittenTo),
    ];

    /// A name of one of two files, which differ in their inode numbers.
    fn file(number: u64, links: u32) -> Stat {
        let mut stat = sys::stat(CWD, c"/", Symlinks::Follow).expect("there is a root");
        stat.st_mode = FileType::RegularFile.as_raw_mode() | 0o644;
        stat.st_ino = number as _;
        stat.st_nlink = links as _;
        stat
    }

    fn plain(itself: Stat) -> Named {
        Named {
            itself,
            target: Some(itself),
        }
    }

    fn link(number: u64, target: Stat) -> Named {
        let mut itself = file(number, 1);
        itself.st_mode = FileType::Symlink.as_raw_mode() | 0o777;
        Named {
            itself,
            target: Some(target),
        }
    }

    /// What is judged of two different names in each of the modes.
    fn judged(source: &Named, dest: &Named) -> [Sameness; 4] {
        MODES.map(|mode| judge(source, dest, mode, || false))
    }

    use Sameness::{AlreadyThere, Harmless, SameFile};

    #[test]
    fn a_hard_link_may_go_but_not_be_written_to() {
        let (source, dest) = (plain(file(1, 2)), plain(file(1, 2)));
        assert_eq!(
            judged(&source, &dest),
            [Harmless, Harmless, Harmless, SameFile]
        );
    }

    #[test]
    fn a_name_is_never_its_own_copy() {
        let name = plain(file(1, 2));
        let judged = MODES.map(|mode| judge(&name, &plain(file(1, 2)), mode, || true));
        assert_eq!(judged, [SameFile; 4]);
    }

    #[test]
    fn a_link_to_the_source_may_go_but_not_be_written_through() {
        let (source, dest) = (plain(file(1, 1)), link(2, file(1, 1)));
        assert_eq!(
            judged(&source, &dest),
            [Harmless, Harmless, Harmless, SameFile]
        );
    }

    #[test]
    fn what_a_link_leads_to_stays_unless_the_link_itself_is_copied_and_it_is_kept() {
        let (source, dest) = (link(2, file(1, 1)), plain(file(1, 1)));
        assert_eq!(
            judged(&source, &dest),
            [SameFile, Harmless, SameFile, SameFile]
        );
    }

    #[test]
    fn two_links_are_two_files_wherever_they_lead() {
        let (source, dest) = (link(2, file(1, 1)), link(3, file(1, 1)));
        assert_eq!(judged(&source, &dest)[1..], [Harmless; 3]);
    }

    #[test]
    fn two_names_of_one_link_need_no_copy() {
        let (source, dest) = (link(2, file(1, 1)), link(2, file(1, 1)));
        assert_eq!(
            judged(&source, &dest)[1..],
            [Harmless, AlreadyThere, AlreadyThere]
        );
    }
}
