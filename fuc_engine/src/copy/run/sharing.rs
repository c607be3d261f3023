//! The part of an engine in a copy that several engines share.

use std::ops::ControlFlow;
use std::os::fd::AsFd;

use rustix::io::Errno;

use super::making::links_lost;
use super::tasks::CopyTask;
use super::{CopyRun, large};
use crate::copy::decide::mode::Origin;
use crate::copy::facts::{CopyDir, CopyNode, Mark, Symlinks};
use crate::copy::make::directory;
use crate::copy::operand::{DestParent, open_parent};
use crate::descriptors::Roots;
use crate::distribute::{Finished, Given, Stolen};
use crate::node::{Dir, Node, Place, Side};
use crate::sched::When;
use crate::sys::{self, Fd, Listing};
use crate::walk::{self, Sharer, Stealing, Task, Walker};

impl<'a> Sharer<CopyRun<'a>> for CopyRun<'a> {
    fn stealing(&self) -> &Stealing<'_, CopyDir, CopyTask> {
        self.stealing.as_ref().expect("BUG: nothing is shared")
    }

    fn operands(&self) -> usize {
        self.ctx.operands.len()
    }

    fn open_operand(&self, operand: u32, side: Side) -> Result<Fd, Errno> {
        if side == Side::Dest && self.ctx.policy.options.parents {
            find_dest_parent(self, operand)?;
        }
        self.ctx.open_operand(operand, side)
    }

    fn borrow(&self, place: Place<CopyDir>, inheritance: u8) -> CopyNode {
        Node::new(place, Mark::borrowed(inheritance), CopyDir::unknown(), None)
    }

    /// Each directory is compared with the dest of its operand. If links are followed, some are compared with all
    /// directories above them; see [`diagnose::cycle`](crate::copy::diagnose::cycle).
    fn needs_identity(&self, above: &CopyNode) -> bool {
        let policy = &self.ctx.policy;
        above.place.parent.is_none()
            || above.state.is_behind_link()
            || policy.symlinks_of_entries == Symlinks::Follow
            || policy.options.rules.follow_links_to_directories
    }

    fn reached(&self, top: &CopyNode) {
        if let Some(dest) = top.dir.slot(Side::Dest).identity() {
            // It was set if the operand was reached before.
            let _ = self.ctx.operands[top.place.operand as usize].root.set(dest);
        }
    }

    /// Does nothing: a directory of which entries are not copied is finished like any other.
    fn note(&self, _node: &CopyNode, _finished: Finished) {}

    fn own_returned(&self, task: CopyTask, given: Given, worker: &mut Walker<'_, '_, CopyRun<'a>>) {
        match task {
            CopyTask::Part(part) => large::take_back(self, part, given, worker),
            task => worker.push(Task::Own(task), When::Next),
        }
    }

    fn copy_range(
        &self,
        parent: &CopyNode,
        stolen: &mut Stolen,
        worker: &mut Walker<'_, '_, CopyRun<'a>>,
    ) -> Given {
        large::copy_stolen(self, parent, stolen, worker)
    }

    fn home_not_reached(&self, node: &CopyNode, names: &Listing) {
        for sys::Entry { name, .. } in names.entries() {
            let path = |side| {
                let operand = self.ctx.operand_path(node.place.operand, side);
                node.place.path_of(operand, name)
            };
            let error = links_lost(path(Side::Source), path(Side::Dest));
            self.ctx.fail(node.place.operand, error);
        }
    }
}

/// Gives the entries of a borrowed directory back to their engine. If the copy must be durable, writes their names to
/// the disk before, because the other engine knows only what it has made itself.
pub(super) fn give_back(run: &CopyRun<'_>, node: &CopyNode) -> ControlFlow<()> {
    if let Err(error) = directory::sync(&run.ctx, node) {
        run.ctx.fail(node.place.operand, error);
    }
    walk::give_back(run, run, node, Finished::DONE)
}

/// Finds the directory that the dest of an operand is in, after the leader has made it.
fn find_dest_parent(run: &CopyRun<'_>, operand: u32) -> Result<(), Errno> {
    let ctx = &run.ctx;
    let operand = &ctx.operands[operand as usize];
    if operand.parent.get().is_some() {
        return Ok(());
    }
    let dir = ctx
        .descriptors
        .making_room(|| open_parent(&ctx.policy, ctx.target(), &operand.dest_name))?;
    let identity = sys::stat_directory(dir.as_fd())?.identity;
    // Only the leader copies entries to this directory itself, and must know whether this run has made it.
    let origin = Origin::Existing;
    let _ = operand.parent.set(DestParent { identity, origin });
    Ok(())
}
