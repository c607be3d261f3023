//! Shares a removal with other engines.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::Removal;
use crate::descriptors::Roots;
use crate::distribute::Finished;
use crate::node::{Node, Side};
use crate::remove::guards;
use crate::remove::node::{
    Consent, ENTRIES_ONLY, INCOMPLETE, KEPT, LEFT_ALONE, RemoveDir, RemoveNode, RemovePlace,
    SHRUNK, State,
};
use crate::sys::{DirSlot, Fd};
use crate::walk::{Shared, Sharer};

impl Sharer for Removal<'_> {
    fn shared(&self) -> Option<&Shared<'_, RemoveDir>> {
        self.shared.as_ref()
    }

    fn operands(&self) -> usize {
        self.context.operands.len()
    }

    fn borrow(&self, place: RemovePlace, _inheritance: u8) -> RemoveNode {
        let state = State::new(0, Consent::ToRemove, ENTRIES_ONLY);
        Node::new(place, state, RemoveDir(DirSlot::empty()), None)
    }

    fn reach_first(&self, operand: u32, side: Side) -> Result<Fd, Errno> {
        let dir = self.context.open_operand(operand, side)?;
        if self.context.options.one_file_system {
            // The first call notes the filesystem.
            guards::is_on_other_filesystem(&self.context, operand, dir.as_fd())?;
        }
        Ok(dir)
    }

    fn reach_below(&self, dir: BorrowedFd<'_>, name: &CStr, side: Side) -> Result<Fd, Errno> {
        self.context.open_below(dir, name, side)
    }

    fn end_borrowed(&self, node: &RemoveNode) -> Finished {
        let marks = &node.state.marks;
        Finished {
            kept: marks.has(INCOMPLETE),
            left_alone: marks.has(LEFT_ALONE),
            changed: marks.has(SHRUNK),
        }
    }

    fn note_finished(&self, node: &Node<RemoveDir>, finished: Finished) {
        let kept = u16::from(finished.kept) * KEPT;
        let left_alone = u16::from(finished.left_alone) * LEFT_ALONE;
        let shrunk = u16::from(finished.changed) * SHRUNK;
        node.state.marks.set(kept | left_alone | shrunk);
    }
}
