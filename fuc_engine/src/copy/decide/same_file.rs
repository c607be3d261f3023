//! Decides whether a copy would destroy its source, because the dest leads to the same file.
//!
//! The treatment of the dest decides which names still lead to the file afterwards.

use rustix::fs::FileType;

use super::treatment::DestTreatment;
use crate::copy::facts::{Facts, Symlinks};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::copy) enum Sameness {
    /// The copy does not harm the source.
    Distinct,
    /// The dest is another name of the link that is copied, so nothing needs to be done.
    AlreadyThere,
    /// The copy would destroy the source.
    SameFile,
}

/// The facts about a name: about the file itself, and about its target if it is a symbolic link.
#[derive(Clone, Copy)]
pub(in crate::copy) struct Name {
    pub(in crate::copy) itself: Facts,
    /// `None` if the link dangles.
    pub(in crate::copy) target: Option<Facts>,
}

impl Name {
    fn is_link(&self) -> bool {
        self.itself.kind == FileType::Symlink
    }

    fn target(&self) -> Option<&Facts> {
        if self.is_link() {
            self.target.as_ref()
        } else {
            Some(&self.itself)
        }
    }
}

/// Two names that may lead to one file: at least one is a symbolic link, or both are the same file.
pub(in crate::copy) struct Names {
    pub(in crate::copy) source: Name,
    pub(in crate::copy) dest: Name,
    /// Says whether a source that is a symbolic link is followed.
    pub(in crate::copy) symlinks: Symlinks,
    pub(in crate::copy) treatment: DestTreatment,
}

impl Names {
    /// Decides in the order of cp. `is_one_entry` returns `true` if both names are the same
    /// entry of the same directory.
    pub(in crate::copy) fn sameness(&self, is_one_entry: impl FnOnce() -> bool) -> Sameness {
        let Self { source, dest, .. } = self;
        let are_one_file = source.itself.is_same_file(&dest.itself);
        let distinct_if = |distinct| {
            if distinct {
                Sameness::Distinct
            } else {
                Sameness::SameFile
            }
        };
        let copies_link = self.symlinks == Symlinks::NoFollow;
        if copies_link && source.is_link() && dest.is_link() {
            return match (are_one_file, self.treatment) {
                (false, _) => Sameness::Distinct,
                (true, _) if is_one_entry() => Sameness::SameFile,
                (true, DestTreatment::Renamed) => Sameness::Distinct,
                (true, _) => Sameness::AlreadyThere,
            };
        }
        match self.treatment {
            DestTreatment::Renamed if are_one_file => distinct_if(!is_one_entry()),
            // The source is a link that is followed. Renaming its target would leave it dangling.
            DestTreatment::Renamed => {
                distinct_if(copies_link || !source.is_link() || dest.is_link())
            }
            DestTreatment::Unlinked | DestTreatment::LinkedOver if dest.is_link() => {
                Sameness::Distinct
            }
            DestTreatment::Unlinked if are_one_file => {
                distinct_if(dest.itself.links > 1 && !is_one_entry())
            }
            _ if !copies_link => Sameness::SameFile,
            DestTreatment::Unlinked | DestTreatment::LinkedOver | DestTreatment::WrittenTo => {
                match (source.target(), dest.target()) {
                    (Some(source), Some(dest)) => distinct_if(!source.is_same_file(dest)),
                    _ => Sameness::Distinct,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Sameness::{AlreadyThere, Distinct, SameFile};
    use super::*;

    const CASES: [(Symlinks, DestTreatment); 4] = [
        (Symlinks::Follow, DestTreatment::Renamed),
        (Symlinks::NoFollow, DestTreatment::Renamed),
        (Symlinks::NoFollow, DestTreatment::Unlinked),
        (Symlinks::NoFollow, DestTreatment::WrittenTo),
    ];

    fn file(inode: u64, links: u64) -> Facts {
        Facts {
            links,
            ..Facts::example(FileType::RegularFile, inode)
        }
    }

    fn plain(itself: Facts) -> Name {
        Name {
            itself,
            target: Some(itself),
        }
    }

    fn link(inode: u64, target: Facts) -> Name {
        Name {
            itself: Facts::example(FileType::Symlink, inode),
            target: Some(target),
        }
    }

    /// Decides about two different entries in each of the cases.
    fn decided(source: Name, dest: Name) -> [Sameness; 4] {
        decided_if_one_entry(false, source, dest)
    }

    fn decided_if_one_entry(is_one_entry: bool, source: Name, dest: Name) -> [Sameness; 4] {
        CASES.map(|(symlinks, treatment)| {
            let names = Names {
                source,
                dest,
                symlinks,
                treatment,
            };
            names.sameness(|| is_one_entry)
        })
    }

    #[test]
    fn a_hard_link_may_be_removed_but_not_written_to() {
        assert_eq!(
            decided(plain(file(1, 2)), plain(file(1, 2))),
            [Distinct, Distinct, Distinct, SameFile]
        );
    }

    #[test]
    fn an_entry_is_never_its_own_copy() {
        let name = plain(file(1, 2));
        assert_eq!(decided_if_one_entry(true, name, name), [SameFile; 4]);
    }

    #[test]
    fn a_link_to_the_source_may_be_removed_but_not_written_through() {
        assert_eq!(
            decided(plain(file(1, 1)), link(2, file(1, 1))),
            [Distinct, Distinct, Distinct, SameFile]
        );
    }

    #[test]
    fn the_target_of_a_source_link_stays_unless_the_link_is_copied_and_the_target_renamed() {
        assert_eq!(
            decided(link(2, file(1, 1)), plain(file(1, 1))),
            [SameFile, Distinct, SameFile, SameFile]
        );
    }

    #[test]
    fn two_links_are_distinct_wherever_they_lead() {
        let (source, dest) = (link(2, file(1, 1)), link(3, file(1, 1)));
        assert_eq!(decided(source, dest)[1..], [Distinct; 3]);
    }

    #[test]
    fn two_names_of_one_link_need_no_copy() {
        let (source, dest) = (link(2, file(1, 1)), link(2, file(1, 1)));
        assert_eq!(
            decided(source, dest)[1..],
            [Distinct, AlreadyThere, AlreadyThere]
        );
    }
}
