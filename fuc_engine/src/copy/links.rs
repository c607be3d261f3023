//! Two names of one inode among the sources become two names of one copy.
//!
//! Who copies, who links and who waits is decided by what is [known] of them.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;

use super::Dereference;
use super::item::Item;
use super::node::CopyNode;
use super::settle::Ground;
use super::special::Way;
use super::tree::{CopyTask, Copying};
use crate::descriptors::Visited;
use crate::error::{Error, Operation};
use crate::node::Side;
use crate::sys::{self, CWD, Identity, Stat, Symlinks};
use crate::walk::{self, Task, Walker};

use known::{Claim, First, Name};
pub(super) use known::{Links, Waiter};

mod known;

/// The finished directory that a worker has made a link to last: the next
/// link is likely to lead there as well.
pub(super) struct LinkedTo {
    node: CopyNode,
    dir: OwnedFd,
}

enum Link {
    Made,
    /// The first copy is not there any more, or has as many names as it can.
    NotPossible,
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

    /// Makes a dest by `copy`, or as a link if its source was met before. `copy` returns what it
    /// wrote to, if that was open.
    pub(super) fn copy_or_link<'s, 'e>(
        &self,
        item: &Item<'_>,
        source: &Stat,
        worker: &mut Walker<'s, 'e, Self>,
        copy: impl FnOnce(&mut Walker<'s, 'e, Self>) -> Result<Option<Identity>, Error>,
    ) -> Result<(), Error> {
        if !self.has_other_names(item, source) {
            return copy(worker).map(drop);
        }
        let key = (source.st_dev, source.st_ino);
        loop {
            match self.links.claim(key, item, self.others(source)) {
                Claim::First => break,
                Claim::Waits => return Ok(()),
                Claim::At(first) => {
                    match self.link_to_first(item, &first, worker)? {
                        Link::Made => {
                            self.copied(item, 0, worker);
                            return Ok(());
                        }
                        Link::NotPossible if self.links.replace(key, first.itself) => break,
                        // Somebody else is making another.
                        Link::NotPossible => {}
                    }
                }
            }
        }
        let copied = copy(worker);
        let first = copied.as_ref().ok();
        let first = first.and_then(|&written| self.find_copy(item, written));
        self.serve(key, first, worker);
        copied.map(drop)
    }

    /// What is at the dest is as new as its source: other names of the source become links to it.
    pub(super) fn stands_for_copy(
        &self,
        item: &Item<'_>,
        (source, there): (&Stat, &Stat),
        worker: &mut Walker<'_, '_, Self>,
    ) {
        let key = (source.st_dev, source.st_ino);
        if self.has_other_names(item, source) && self.links.is_first(key, self.others(source)) {
            let first = self.find_copy(item, Some(sys::identity(there)));
            self.serve(key, first, worker);
        }
    }

    /// The copy, if its name still leads to what was `written`; without that, what has the name.
    fn find_copy(&self, item: &Item<'_>, written: Option<Identity>) -> Option<First> {
        let at = |symlinks| item.stat_dest(symlinks).map(|stat| sys::identity(&stat));
        let itself = at(Symlinks::NoFollow).ok()?;
        let behind_link = match written {
            None => None,
            Some(written) if written == itself => None,
            Some(written) if at(Symlinks::Follow) == Ok(written) => Some(written),
            // Somebody has put something else there.
            Some(_) => return None,
        };
        let name = Name::of(item);
        Some(First {
            name,
            itself,
            behind_link,
        })
    }

    /// Tells those who have waited for the first copy, if there is one, what came of it.
    fn serve(&self, key: (u64, u64), first: Option<First>, worker: &mut Walker<'_, '_, Self>) {
        let is_there = first.is_some();
        for waiter in self.links.settle(key, first) {
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
            Some(node) => match walk::open_dirs(self, node) {
                Ok(dirs) => {
                    let item = waiter.resume(Item::entry(node, &dirs, &name.name));
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
            .failed(self.place_error(&node.place, Side::Dest, Operation::Stat, errno));
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
        first: &First,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Link, Error> {
        let (_, identity) = first.way(item.symlinks);
        let mut linked = self.try_link(item, first, worker);
        if linked == Err(Errno::EXIST) {
            let there = item.stat_dest(Symlinks::NoFollow);
            if there.is_ok_and(|there| sys::identity(&there) == identity) {
                return Ok(Link::Made);
            }
            match self.make_way(item, Operation::CreateHardLink)? {
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
            Err(errno) => return Err(self.first_error(item, &first.name, errno)),
        }
        let made = item
            .stat_dest(Symlinks::NoFollow)
            .map_err(|errno| self.dest_error(item, Operation::Stat, errno))?;
        if sys::identity(&made) == identity {
            return Ok(Link::Made);
        }
        // Somebody has put something else in the place of the first copy.
        sys::unlink(item.dest_dir, item.dest_name)
            .map_err(|errno| self.dest_error(item, Operation::Remove, errno))?;
        Ok(Link::NotPossible)
    }

    fn try_link(
        &self,
        item: &Item<'_>,
        first: &First,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<(), Errno> {
        let (symlinks, _) = first.way(item.symlinks);
        let link = |dir| {
            let first = (dir, &*first.name.name, symlinks);
            sys::create_hard_link(first, item.dest_dir, item.dest_name)
        };
        let Some(node) = &first.name.node else {
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
        self.dest_error(item, Operation::CreateHardLink, errno)
            .with_other(there)
    }
}
