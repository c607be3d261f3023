//! Chooses the rank that keeps the hard links of a file.
//!
//! If links are preserved, all names of an inode must become names of one copy. So one rank, the inode's *home*,
//! copies all of them, and ranks that find such names give them to it. Each rank computes the home by itself, from
//! what all ranks know.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fuc_engine::{CopyOp, Dereference, Dest};
use serde::{Deserialize, Serialize};

use crate::message::Rank;

/// The decisions of rank 0 about hard links.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Links {
    /// Rank 0 is the home of all files. It alone copies operands, and one of them may have names in directories, too.
    rank_zero_keeps_all: bool,
    /// Directories and their inode numbers: the dest, and an operand of each filesystem. Ranks on which they are other
    /// directories cannot be homes, because they do not find the entries that they are given.
    landmarks: Vec<(OsString, u64)>,
}

impl Links {
    /// Decides for a copy of these operands.
    pub(crate) fn of_copy(options: &CopyOp<'_>, dest: &Dest, operands: &[OsString]) -> Self {
        let mut links = Self::default();
        if !options.preserve.links {
            return links;
        }
        // If all links are followed, links in a directory are names of what they lead to.
        let follows_all = options.dereference == Dereference::Always;
        let mut devices = BTreeSet::new();
        for operand in operands {
            let operand = Path::new(operand);
            let found = match options.dereference {
                Dereference::Never => fs::symlink_metadata(operand),
                _ => fs::metadata(operand),
            };
            // Operands that do not exist are reported later.
            let Ok(found) = found else {
                continue;
            };
            if found.is_dir() {
                if devices.insert(found.dev()) {
                    links.landmarks.push((operand.into(), found.ino()));
                }
            } else {
                links.rank_zero_keeps_all |= follows_all || found.nlink() > 1;
            }
        }
        let landmark = dest_landmark(dest);
        links
            .landmarks
            .extend(landmark.map(|(path, found)| (path.into(), found.ino())));
        links
    }

    /// Returns `true` if this rank sees the directories that rank 0 sees.
    pub(crate) fn can_be_kept_here(&self) -> bool {
        let mut landmarks = self.landmarks.iter();
        landmarks.all(|(path, inode)| fs::metadata(path).is_ok_and(|found| found.ino() == *inode))
    }
}

/// Returns the directory that the copies go to, or, if it does not exist yet, the one that it will be in.
fn dest_landmark(dest: &Dest) -> io::Result<(PathBuf, Metadata)> {
    let (Dest::Into(path) | Dest::Exactly(path)) = dest;
    let found = fs::metadata(path).map(|found| (path.clone(), found));
    found.or_else(|_| {
        let parent = path.parent().unwrap_or(path);
        let parent = match parent.as_os_str().is_empty() {
            true => Path::new("."),
            false => parent,
        };
        Ok((parent.to_owned(), fs::metadata(parent)?))
    })
}

/// The ranks that are homes. There is at least one.
#[derive(Clone, Debug)]
pub(crate) struct Homes(Vec<Rank>);

impl Homes {
    /// Returns the homes of a job. `can_keep` says of each rank whether it can be one; rank 0 always can.
    pub(crate) fn of_job(links: &Links, can_keep: &[bool]) -> Self {
        if links.rank_zero_keeps_all {
            return Self(vec![0]);
        }
        let ranks = (0..).zip(can_keep);
        let homes = ranks.filter(|&(rank, &can_keep)| can_keep || rank == 0);
        Self(homes.map(|(rank, _)| rank).collect())
    }

    /// Returns the home of an inode.
    pub(crate) fn of(&self, inode: u64) -> Rank {
        self.0[(mix(inode) % self.0.len() as u64) as usize]
    }
}

/// Spreads numbers over all 64 bits, because filesystems give out inode numbers in patterns. These are the steps
/// of SplitMix64, which are the same for all builds.
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fuc_engine::{CopyOp, Preserve};
    use testkit::tree::{Scratch, Tree};

    fn of_job(can_keep: &[bool]) -> Homes {
        Homes::of_job(&Links::default(), can_keep)
    }

    #[test]
    fn only_ranks_that_can_keep_links_are_homes() {
        let homes = of_job(&[true, false, true, true]);
        let found: BTreeSet<_> = (0..1000).map(|inode| homes.of(inode)).collect();
        assert_eq!(found, [0, 2, 3].into());
    }

    #[test]
    fn inodes_are_spread_evenly_whatever_their_pattern() {
        let homes = of_job(&[true; 8]);
        for step in [1, 2, 32, 128, 1 << 20, 1 << 40] {
            let mut counts = [0; 8];
            for inode in 1..=8000 {
                counts[homes.of(inode * step) as usize] += 1;
            }
            let range = 800..1200;
            assert!(
                counts.iter().all(|count| range.contains(count)),
                "{step}: {counts:?}"
            );
        }
    }

    /// Returns the decisions about a copy of operands below `scratch`.
    fn links(scratch: &Scratch, dereference: Dereference, operands: &[&str], dest: &str) -> Links {
        let mut options = CopyOp::new();
        options.preserve = Preserve::all();
        options.dereference = dereference;
        let at = |name: &str| scratch.path().join(name);
        let dest = Dest::Exactly(at(dest));
        let operands = operands.iter().map(|name| at(name).into_os_string());
        Links::of_copy(&options, &dest, &operands.collect::<Vec<_>>())
    }

    #[test]
    fn rank_0_keeps_all_links_if_an_operand_may_have_names_in_a_directory() {
        let scratch = Scratch::new();
        let tree = Tree::at(scratch.path());
        tree.file("dir/a", "").hardlink("dir/a", "linked");
        tree.file("alone", "").symlink("link", "linked");
        for (dereference, operands, is_kept) in [
            (Dereference::Never, &["dir", "alone", "link"][..], false),
            (Dereference::Never, &["dir", "linked"], true),
            (Dereference::Operands, &["link"], true),
            (Dereference::Operands, &["alone", "missing"], false),
            (Dereference::Always, &["dir"], false),
            (Dereference::Always, &["dir", "alone"], true),
        ] {
            let links = links(&scratch, dereference, operands, "new");
            assert_eq!(links.rank_zero_keeps_all, is_kept, "{operands:?}");
        }
    }

    #[test]
    fn a_rank_that_sees_other_directories_cannot_keep_links() {
        let scratch = Scratch::new();
        let tree = Tree::at(scratch.path());
        tree.dir("dir").dir("dest");
        let links = ["dest", "new"].map(|dest| links(&scratch, Dereference::Never, &["dir"], dest));
        assert!(links.iter().all(Links::can_be_kept_here));
        let [dir, aside] = ["dir", "aside"].map(|name| scratch.path().join(name));
        fs::rename(&dir, &aside).unwrap();
        tree.dir("dir");
        assert!(!links.iter().any(Links::can_be_kept_here));
    }
}
