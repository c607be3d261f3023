//! Two names of one inode among the sources become two names of one copy.
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
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;

use super::Dereference;
use super::item::Item;
use super::node::CopyNode;
use super::settle::Ground;
use super::special::Way;
use super::tree::{CopyTask, Copying};
use crate::descriptors::Visited;
use crate::error::{Error, Operation as Doing};
use crate::node::Side;
use crate::sys::{self, CWD, Identity, Stat, Symlinks};
use crate::walk::{self, Task, Walker};

/// A name of a source, and so of its dest.
///
/// It keeps the memory of its node, but does not keep the node from being finished.
#[derive(Clone)]
pub(super) struct Name {
    /// `None`: an operand.
    node: Option<CopyNode>,
    name: Box<CStr>,
    operand: u32,
}

impl Name {
    fn of(item: &Item<'_>) -> Self {
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
pub(super) struct Waiter {
    name: Name,
    symlinks: Symlinks,
    ground: Ground<'static>,
    backup: Option<Box<CStr>>,
}

impl Waiter {
    fn of(item: &Item<'_>) -> Self {
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
    fn resume<'a>(&'a self, item: Item<'a>) -> Item<'a> {
        Item {
            symlinks: self.symlinks,
            ground: self.ground.with_backup(self.backup.as_deref()),
            ..item
        }
    }
}

/// The finished directory that a worker has made a link to last: the next
/// link is likely to lead there as well.
pub(super) struct LinkedTo {
    node: CopyNode,
    dir: OwnedFd,
}

/// What is known of an inode with several names.
struct Copy {
    stage: Stage,
    /// How many names of the source are still to come; `None`: nobody knows.
    to_come: Option<u64>,
}

enum Stage {
    UnderWay(Vec<Waiter>),
    At(Name, Identity),
}

impl Copy {
    fn under_way(to_come: Option<u64>) -> Self {
        Self {
            stage: Stage::UnderWay(Vec::new()),
            to_come,
        }
    }

    fn is_at(&self, there: Identity) -> bool {
        matches!(&self.stage, Stage::At(_, identity) if *identity == there)
    }
}

/// The inodes with several names that a run has met.
#[derive(Default)]
pub(super) struct Links(Mutex<HashMap<(u64, u64), Copy>>);

enum Claim {
    First,
    Waits,
    At(Name, Identity),
}

enum Link {
    Made,
    /// The first copy is not there any more, or has as many names as it can.
    NotPossible,
}

impl Links {
    fn map(&self) -> std::sync::MutexGuard<'_, HashMap<(u64, u64), Copy>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `others` is how many names the source has beside this one, if each is met once.
    ///
    /// The last of them is the last to be told where the copy is: it is forgotten then.
    fn claim(&self, key: (u64, u64), item: &Item<'_>, others: Option<u64>) -> Claim {
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
            Stage::At(name, identity) => Claim::At(name.clone(), *identity),
        };
        *to_come = to_come.map(|names| names.saturating_sub(1));
        if *to_come == Some(0) {
            known.remove();
        }
        at
    }

    /// Whether the caller makes the first copy, or has found one.
    fn is_first(&self, key: (u64, u64), others: Option<u64>) -> bool {
        match self.map().entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(Copy::under_way(others));
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    /// Records what came of the first copy; returns who waited for it.
    fn settle(&self, key: (u64, u64), made: Option<(Name, Identity)>) -> Vec<Waiter> {
        let mut map = self.map();
        let Entry::Occupied(mut known) = map.entry(key) else {
            return Vec::new();
        };
        let before = match made {
            Some((name, identity)) => {
                std::mem::replace(&mut known.get_mut().stage, Stage::At(name, identity))
            }
            None => known.remove().stage,
        };
        match before {
            Stage::UnderWay(waiting) => waiting,
            Stage::At(..) => Vec::new(),
        }
    }

    /// The copy that was at that place is not there any more. Whether the caller is to make another.
    fn replace(&self, key: (u64, u64), gone: Identity) -> bool {
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

impl Copying<'_> {
    /// Whether this source may be met again under another name, which is then to be a link.
    ///
    /// Where links are followed, each of them is another name.
    pub(super) fn has_other_names(&self, item: &Item<'_>, source: &Stat) -> bool {
        self.options().preserve.links && (source.st_nlink > 1 || item.symlinks == Symlinks::Follow)
    }

    /// How many other names of this source will be met at most; `None`: operands may lie in
    /// each other, and links are names that nobody has counted.
    fn others(&self, source: &Stat) -> Option<u64> {
        let once = self.operands.len() == 1 && self.options().dereference == Dereference::Never;
        // Its type is not the same everywhere.
        #[allow(clippy::unnecessary_cast)]
        once.then(|| (source.st_nlink as u64).saturating_sub(1))
    }

    /// Makes a dest by `copy`, or as a link if its source was met before.
    pub(super) fn copy_or_link<'s, 'e>(
        &self,
        item: &Item<'_>,
        source: &Stat,
        worker: &mut Walker<'s, 'e, Self>,
        copy: impl FnOnce(&mut Walker<'s, 'e, Self>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if !self.has_other_names(item, source) {
            return copy(worker);
        }
        let key = (source.st_dev, source.st_ino);
        loop {
            match self.links.claim(key, item, self.others(source)) {
                Claim::First => break,
                Claim::Waits => return Ok(()),
                Claim::At(first, identity) => {
                    match self.link_to_first(item, (&first, identity), worker)? {
                        Link::Made => {
                            self.copied(item, 0, worker);
                            return Ok(());
                        }
                        Link::NotPossible if self.links.replace(key, identity) => break,
                        // Somebody else is making another.
                        Link::NotPossible => {}
                    }
                }
            }
        }
        let copied = copy(worker);
        self.serve(key, item, copied.is_ok(), worker);
        copied
    }

    /// What is at the dest is as new as its source: other names of the source become links to it.
    pub(super) fn stands_for_copy(
        &self,
        item: &Item<'_>,
        source: &Stat,
        worker: &mut Walker<'_, '_, Self>,
    ) {
        let key = (source.st_dev, source.st_ino);
        if self.has_other_names(item, source) && self.links.is_first(key, self.others(source)) {
            self.serve(key, item, true, worker);
        }
    }

    fn serve(
        &self,
        key: (u64, u64),
        item: &Item<'_>,
        is_there: bool,
        worker: &mut Walker<'_, '_, Self>,
    ) {
        let made = is_there
            .then(|| item.stat_dest(Symlinks::NoFollow).ok())
            .flatten();
        let made = made.map(|stat| (Name::of(item), sys::identity(&stat)));
        let is_there = made.is_some();
        for waiter in self.links.settle(key, made) {
            if is_there {
                self.copy_waiter(waiter, worker);
            } else {
                worker.push(Task::Own(CopyTask::Waiter(waiter)));
            }
        }
    }

    /// Copies or links a name that has waited.
    pub(super) fn copy_waiter(&self, waiter: Waiter, worker: &mut Walker<'_, '_, Self>) {
        let name = &waiter.name;
        match &name.node {
            None => self.copy_resumed(&waiter.resume(self.item(name.operand)), worker),
            Some(node) => match walk::hold(self, node) {
                Ok(held) => {
                    let item = waiter.resume(Item::entry(node, &held, &name.name));
                    self.copy_resumed(&item, worker);
                }
                Err(errno) => self.lose(node, &waiter, errno),
            },
        }
        walk::leave(self, waiter.name.node, worker);
    }

    fn copy_resumed(&self, item: &Item<'_>, worker: &mut Walker<'_, '_, Self>) {
        if let Err(error) = self.copy_whatever(item, worker) {
            self.report_item(item, error);
            self.restore_backup(item);
        }
    }

    /// The directories of what waited cannot be opened any more.
    fn lose(&self, node: &CopyNode, waiter: &Waiter, errno: Errno) {
        self.report
            .failed(self.place_error(&node.place, Side::Dest, Doing::Stat, errno));
        let item = waiter.resume(Item {
            // Only its paths are needed.
            source_dir: CWD,
            dest_dir: CWD,
            source_name: &waiter.name.name,
            dest_name: &waiter.name.name,
            symlinks: waiter.symlinks,
            ground: Ground::Unknown,
            node: Some(node),
            operand: waiter.name.operand,
        });
        if item.ground.backup().is_some() {
            self.restore_backup_in(node, &item);
        }
    }

    /// Links the dest to the copy at `first`, if that still is the inode it was.
    fn link_to_first(
        &self,
        item: &Item<'_>,
        (first, identity): (&Name, Identity),
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Link, Error> {
        let mut linked = self.try_link(item, first, worker);
        if linked == Err(Errno::EXIST) {
            let there = item.stat_dest(Symlinks::NoFollow);
            if there.is_ok_and(|there| sys::identity(&there) == identity) {
                return Ok(Link::Made);
            }
            match self.make_way(item, Doing::CreateHardLink)? {
                Way::AlreadyThere => return Ok(Link::Made),
                Way::Free => linked = self.try_link(item, first, worker),
                Way::Blocked => {
                    self.unlink_dest(item)?;
                    linked = self.try_link(item, first, worker);
                }
            }
        }
        match linked {
            Ok(()) => {}
            Err(Errno::NOENT | Errno::STALE | Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => {
                return Ok(Link::NotPossible);
            }
            Err(errno) => return Err(self.first_error(item, first, errno)),
        }
        let made = item
            .stat_dest(Symlinks::NoFollow)
            .map_err(|errno| self.dest_error(item, Doing::Stat, errno))?;
        if sys::identity(&made) == identity {
            return Ok(Link::Made);
        }
        // Somebody has put something else in the place of the first copy.
        sys::unlink(item.dest_dir, item.dest_name)
            .map_err(|errno| self.dest_error(item, Doing::Remove, errno))?;
        Ok(Link::NotPossible)
    }

    fn try_link(
        &self,
        item: &Item<'_>,
        first: &Name,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<(), Errno> {
        let link = |dir| {
            let first = (dir, &*first.name, Symlinks::NoFollow);
            sys::create_hard_link(first, item.dest_dir, item.dest_name)
        };
        let Some(node) = &first.node else {
            return link(self.target());
        };
        let last = &worker.scratch.own.linked_to;
        if let Some(last) = last.as_ref().filter(|last| Arc::ptr_eq(&last.node, node)) {
            return link(last.dir.as_fd());
        }
        // It may be finished and closed: it is found again from the operand.
        match self.descriptors.visit(node, Side::Dest, self)? {
            Visited::Open(dir) => link(dir.as_fd()),
            Visited::Reopened(dir) => {
                let linked = link(dir.as_fd());
                self.keep_linked_to(node, dir, worker);
                linked
            }
        }
    }

    /// Keeps a directory in place of the one before, if a descriptor can be lent for that.
    fn keep_linked_to(&self, node: &CopyNode, dir: OwnedFd, worker: &mut Walker<'_, '_, Self>) {
        let last = &mut worker.scratch.own.linked_to;
        if last.is_some() || self.descriptors.lend(1) {
            let node = Arc::clone(node);
            *last = Some(LinkedTo { node, dir });
        }
    }

    fn first_error(&self, item: &Item<'_>, first: &Name, errno: Errno) -> Error {
        let operand = self.operand_path(first.operand, Side::Dest);
        let there = match &first.node {
            Some(node) => node.place.path_of(operand, &first.name),
            None => operand.to_path_buf(),
        };
        self.dest_error(item, Doing::CreateHardLink, errno)
            .with_other(there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn copied(others: Option<u64>) -> Links {
        let links = Links::default();
        assert!(matches!(links.claim(KEY, &item(), others), Claim::First));
        let identity = Identity::new(0, 7, None);
        links.settle(KEY, Some((Name::of(&item()), identity)));
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
        let identity = Identity::new(0, 7, None);
        let waiters = links.settle(KEY, Some((Name::of(&item()), identity)));
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
