//! What is known of the sources that have several names.
//!
//! ```text
//!            claim                      copied
//!   unknown -------> under way, waiters --------> at a place
//!      ^                  |                          |  ^
//!      |      failed      |                          |  | link, compare
//!      +------------------+                          |  +---
//!      +---------------------------------------------+
//!             not there any more, or no name is to come
//! ```
//!
//! Nobody blocks: who meets an inode whose first copy is under way leaves its
//! node and name with it, and whoever finishes that copy makes the links; if
//! it fails, all who waited are tasks again, and one of them copies. Only
//! inodes with more than one name are ever looked up, or all where symbolic
//! links are followed, which are names as well.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::copy::item::Item;
use crate::copy::node::CopyNode;
use crate::copy::settle::Ground;
use crate::sys::{Identity, Symlinks};

/// A name of a source, and so of its dest.
///
/// It keeps the memory of its node, but does not keep the node from being finished.
#[derive(Clone)]
pub(in crate::copy) struct Name {
    /// `None`: an operand.
    pub(super) node: Option<CopyNode>,
    pub(super) name: Box<CStr>,
    pub(super) operand: u32,
}

impl Name {
    pub(super) fn of(item: &Item<'_>) -> Self {
        Self {
            node: item.node.map(Arc::clone),
            name: item.dest_name.into(),
            operand: item.operand,
        }
    }
}

/// A name that waits for another one to be copied, with what was found out about it.
///
/// It keeps its node from being finished.
pub(in crate::copy) struct Waiter {
    pub(super) name: Name,
    pub(super) symlinks: Symlinks,
    pub(super) ground: Ground<'static>,
    pub(super) backup: Option<Box<CStr>>,
}

impl Waiter {
    pub(super) fn of(item: &Item<'_>) -> Self {
        if let Some(node) = item.node {
            node.retain();
        }
        Self {
            name: Name::of(item),
            symlinks: item.symlinks,
            ground: item.ground.without_backup(),
            backup: item.ground.backup().map(Into::into),
        }
    }

    /// What waited, found again at `item`.
    pub(super) fn resume<'a>(&'a self, item: Item<'a>) -> Item<'a> {
        Item {
            symlinks: self.symlinks,
            ground: self.ground.with_backup(self.backup.as_deref()),
            ..item
        }
    }
}

/// The first copy of an inode.
#[derive(Clone)]
pub(super) struct First {
    pub(super) name: Name,
    /// What has the name.
    pub(super) itself: Identity,
    /// What was written, if that has the name of a link to it.
    pub(super) behind_link: Option<Identity>,
}

impl First {
    /// How another name of it is made for a source that is looked at like this, and what of:
    /// as in cp, of the link itself where links are copied as links.
    pub(super) fn way(&self, symlinks: Symlinks) -> (Symlinks, Identity) {
        match (symlinks, self.behind_link) {
            (Symlinks::Follow, Some(written)) => (Symlinks::Follow, written),
            _ => (Symlinks::NoFollow, self.itself),
        }
    }
}

/// What is known of an inode with several names.
struct Copy {
    stage: Stage,
    /// How many names of the source are still to come; `None`: nobody knows.
    to_come: Option<u64>,
}

enum Stage {
    UnderWay(Vec<Waiter>),
    At(First),
}

impl Copy {
    fn under_way(to_come: Option<u64>) -> Self {
        Self {
            stage: Stage::UnderWay(Vec::new()),
            to_come,
        }
    }

    fn is_at(&self, there: Identity) -> bool {
        matches!(&self.stage, Stage::At(first) if first.itself == there)
    }
}

/// The inodes with several names that a run has met.
#[derive(Default)]
pub(in crate::copy) struct Links(Mutex<HashMap<(u64, u64), Copy>>);

pub(super) enum Claim {
    First,
    Waits,
    At(First),
}

impl Links {
    fn map(&self) -> std::sync::MutexGuard<'_, HashMap<(u64, u64), Copy>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `others` is how many names the source has beside this one, if each is met once.
    ///
    /// The last of them is the last to be told where the copy is: it is forgotten then.
    pub(super) fn claim(&self, key: (u64, u64), item: &Item<'_>, others: Option<u64>) -> Claim {
        let mut map = self.map();
        let mut known = match map.entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(Copy::under_way(others));
                return Claim::First;
            }
            Entry::Occupied(known) => known,
        };
        let Copy { stage, to_come } = known.get_mut();
        let at = match stage {
            Stage::UnderWay(waiting) => {
                waiting.push(Waiter::of(item));
                return Claim::Waits;
            }
            Stage::At(first) => Claim::At(first.clone()),
        };
        *to_come = to_come.map(|names| names.saturating_sub(1));
        if *to_come == Some(0) {
            known.remove();
        }
        at
    }

    /// Whether the caller makes the first copy, or has found one.
    pub(super) fn is_first(&self, key: (u64, u64), others: Option<u64>) -> bool {
        match self.map().entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(Copy::under_way(others));
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    /// Records what came of the first copy; returns who waited for it.
    pub(super) fn settle(&self, key: (u64, u64), made: Option<First>) -> Vec<Waiter> {
        let mut map = self.map();
        let Entry::Occupied(mut known) = map.entry(key) else {
            return Vec::new();
        };
        let before = match made {
            Some(first) => std::mem::replace(&mut known.get_mut().stage, Stage::At(first)),
            None => known.remove().stage,
        };
        match before {
            Stage::UnderWay(waiting) => waiting,
            Stage::At(..) => Vec::new(),
        }
    }

    /// The copy that was at that place is not there any more. Whether the caller is to make another.
    pub(super) fn replace(&self, key: (u64, u64), gone: Identity) -> bool {
        match self.map().get_mut(&key) {
            Some(copy) if copy.is_at(gone) => {
                // Some have been told of the one that is gone.
                *copy = Copy::under_way(None);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{CWD, FileId};

    const KEY: (u64, u64) = (1, 2);

    fn item() -> Item<'static> {
        Item {
            source_dir: CWD,
            dest_dir: CWD,
            source_name: c"source",
            dest_name: c"dest",
            symlinks: Symlinks::NoFollow,
            ground: Ground::Unknown,
            node: None,
            operand: 0,
        }
    }

    fn first() -> First {
        First {
            name: Name::of(&item()),
            itself: Identity::new(
                FileId {
                    device: 0,
                    inode: 7,
                },
                None,
            ),
            behind_link: None,
        }
    }

    fn copied(others: Option<u64>) -> Links {
        let links = Links::default();
        assert!(matches!(links.claim(KEY, &item(), others), Claim::First));
        links.settle(KEY, Some(first()));
        links
    }

    #[test]
    fn a_copy_is_forgotten_with_the_last_name() {
        let links = copied(Some(2));
        assert!(matches!(links.claim(KEY, &item(), Some(2)), Claim::At(..)));
        assert_eq!(links.map().len(), 1);
        assert!(matches!(links.claim(KEY, &item(), Some(2)), Claim::At(..)));
        assert_eq!(links.map().len(), 0);
    }

    #[test]
    fn who_waited_counts_when_it_is_told() {
        let links = Links::default();
        assert!(matches!(links.claim(KEY, &item(), Some(1)), Claim::First));
        assert!(matches!(links.claim(KEY, &item(), Some(1)), Claim::Waits));
        let waiters = links.settle(KEY, Some(first()));
        assert_eq!((waiters.len(), links.map().len()), (1, 1));
        assert!(matches!(links.claim(KEY, &item(), Some(1)), Claim::At(..)));
        assert_eq!(links.map().len(), 0);
    }

    #[test]
    fn a_copy_is_kept_where_nobody_can_count() {
        let links = copied(None);
        for _ in 0..9 {
            assert!(matches!(links.claim(KEY, &item(), None), Claim::At(..)));
        }
        assert_eq!(links.map().len(), 1);
    }
}
