//! Shares a copy with other engines: reaches their directories, and gives entries to their homes.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::{CopyRun, EntryCopy, Processed};
use crate::copy::collisions;
use crate::copy::context::Failure;
use crate::copy::decide::mode::Origin;
use crate::copy::entry::Entry;
use crate::copy::facts::{CopyDir, CopyNode, Mark};
use crate::copy::make::directory;
use crate::copy::operand::{DestParent, open_parent};
use crate::descriptors::Roots;
use crate::distribute::Finished;
use crate::error::Refusal;
use crate::node::{Dir, Node, Place, Side};
use crate::sys::{self, CWD, Fd, Listing, Stat};
use crate::walk::{self, Shared, Sharer};

/// The facts about a directory that matter to its entries. They fit into a byte.
const OF_ENTRIES: u16 = Mark::BEHIND_LINK | Mark::CREATED | Mark::GIVES_ACL | Mark::KEEPS_ENTRIES;

/// Gives an entry that may have other names to the home of its source, before anything is done about its dest. Returns
/// `None` if this engine is the home.
///
/// It is a failure if the entry is an operand, or if another process has replaced the source since another engine has found
/// this one to be the home.
#[inline]
pub(super) fn give_to_home(
    copy: &mut EntryCopy<'_, '_, '_, '_>,
    source: &Stat,
) -> Option<Result<Processed, Failure>> {
    let EntryCopy { run, entry, .. } = *copy;
    let shared = run.shared.as_ref()?;
    let home = shared.other_home(source.st_ino)?;
    let Some(node) = entry.node else {
        return Some(Err(entry.refused(Refusal::HomeNotReached)));
    };
    if shared.is_home_of(node) {
        return Some(Err(entry.source_refused(Refusal::SourceReplaced)));
    }
    let listed = sys::Listed::new(entry.source.name, entry.kind);
    walk::entrust(node, listed, home, copy.worker);
    Some(Ok(Processed::Handled))
}

impl Sharer for CopyRun<'_> {
    fn shared(&self) -> Option<&Shared<'_, CopyDir>> {
        self.shared.as_ref()
    }

    fn operands(&self) -> usize {
        self.ctx.operands.len()
    }

    fn inheritance(mark: &Mark) -> u8 {
        ((mark.marks.all() & OF_ENTRIES) >> 8) as u8
    }

    fn borrow(&self, place: Place<CopyDir>, inheritance: u8) -> CopyNode {
        let marks = u16::from(inheritance) << 8 & OF_ENTRIES;
        let mark = Mark::new(None, None, marks);
        Node::new(place, mark, CopyDir::unknown(), None)
    }

    fn reach_first(&self, operand: u32, side: Side) -> Result<Fd, Errno> {
        if side == Side::Dest && self.ctx.policy.options.parents {
            find_dest_parent(self, operand)?;
        }
        let ctx = &self.ctx;
        open_cached(
            side,
            || ctx.open_operand(operand, side),
            || {
                let parent = ctx.open_dest_parent(operand)?;
                look_up_again(parent.as_fd(), ctx.operands.name_in_parent(operand))
            },
        )
    }

    fn reach_below(&self, dir: BorrowedFd<'_>, name: &CStr, side: Side) -> Result<Fd, Errno> {
        let open = || self.ctx.open_below(dir, name, side);
        open_cached(side, open, || look_up_again(dir, name))
    }

    fn reached(&self, top: &Node<CopyDir>) {
        if let Some(dest) = top.dir.slot(Side::Dest).identity() {
            // It was set if the operand was reached before.
            let _ = self.ctx.operands.state(top.place.operand).root.set(dest);
        }
    }

    fn home_not_reached(&self, node: &CopyNode, names: &Listing) {
        for listed in names.entries() {
            // Only its paths are needed.
            let entry = Entry::listed(&self.ctx, node, [CWD; 2], listed);
            let failure = entry.refused(Refusal::HomeNotReached);
            entry.report_failure(failure);
        }
    }

    /// If the copy must be durable, writes the names of the entries to the disk, because the other engine knows only what it
    /// has made itself.
    fn end_borrowed(&self, node: &CopyNode) -> Finished {
        collisions::forget_dests_in(&self.ctx, node);
        if let Err(error) = directory::sync(&self.ctx, node) {
            self.ctx.fail(node.place.operand, error);
        }
        Finished::default()
    }
}

/// Opens a directory that another engine has entered or made. If this machine finds no dest, lets it look again.
fn open_cached(
    side: Side,
    open: impl Fn() -> Result<Fd, Errno>,
    look_again: impl FnOnce() -> Result<(), Errno>,
) -> Result<Fd, Errno> {
    match open() {
        Err(Errno::NOENT) if side == Side::Dest => look_again().and_then(|()| open()),
        opened => opened,
    }
}

/// Lets the client of a server ask again for a directory of the dest. The client may have cached that the name does not
/// exist. So it sends a request to create the directory, learns that there is one, and forgets what it has cached.
fn look_up_again(dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    match sys::create_directory(dir, name, 0o700) {
        Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno),
        Ok(()) => {
            // Another process has removed or renamed it.
            sys::remove_directory(dir, name)?;
            Err(Errno::NOENT)
        }
    }
}

/// Finds the directory that the dest of an operand is in, after the leader has made it.
fn find_dest_parent(run: &CopyRun<'_>, operand: u32) -> Result<(), Errno> {
    let ctx = &run.ctx;
    if ctx.operands.parent(operand).is_some() {
        return Ok(());
    }
    let name = ctx.operands.dest_name(operand);
    let open = || open_parent(&ctx.policy, ctx.target(), name, |_| Ok(()));
    let dir = ctx.descriptors.making_room(open)?;
    let identity = sys::stat_directory(dir.as_fd())?.identity;
    // Only the leader copies entries to this directory itself, and must know whether this run has made it.
    let origin = Origin::Existing;
    let _ = ctx
        .operands
        .state(operand)
        .parent
        .set(DestParent { identity, origin });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::options::{CopyOp, Dest};

    #[test]
    fn a_borrowed_mark_has_what_its_entries_need_and_no_more() {
        let inheritance = CopyRun::inheritance(&Mark::new(None, Some(0o755), u16::MAX));
        let options = CopyOp::default();
        let dest = Dest::Exactly("d".into());
        let failures = std::sync::Mutex::new(Vec::new());
        let run = CopyRun::new(&options, &dest, &failures);
        let place = Place {
            parent: None,
            name: c"s".into(),
            operand: 0,
        };
        let borrowed = &run.borrow(place, inheritance).state;
        assert_eq!((borrowed.marks.all(), borrowed.mode()), (OF_ENTRIES, None));
    }
}
