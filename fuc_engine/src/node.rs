//! A directory in flight, and the climb that finishes it.
//!
//! Children finish their parents. A node counts its users in `pending`: the task that
//! lists it, each queued or running child, and each part of its listing that is a task of
//! its own. The worker that takes the count to zero is the last one that can
//! reach the directory. So this worker finishes the directory and climbs: it gives up
//! the use that the directory had of *its* parent.
//!
//! ```text
//!   one more child      node.retain()   before the child's task is queued
//!   child is finished   climb(parent)   the last user: finish(parent), then one level up
//! ```
//!
//! The count of the `Arc` is a different one and only keeps the memory. The list of
//! evictable descriptors, for example, holds an `Arc` and does not delay a climb.

use std::ffi::{CStr, OsString};
use std::ops::ControlFlow;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use crate::paths;
use crate::sync::AtomicU32;
use crate::sys::{DirName, DirSlot};

/// One of the directories of a node. A removal has only sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Source,
    Dest,
}

/// The part of a node that a removal or a copy defines.
pub(crate) trait Dir: Send + Sync {
    /// At most four bytes of state, which fill a gap in the node.
    type State: Send + Sync;

    /// The sides that have directories of their own.
    const SIDES: &'static [Side] = &[Side::Source];

    fn slot(&self, side: Side) -> &DirSlot;
}

/// The place of a directory: a name in a node, or an operand.
pub(crate) struct Place<D: Dir> {
    pub(crate) parent: Option<Arc<Node<D>>>,
    /// One component, or the whole path of an operand.
    pub(crate) name: DirName,
    /// The index of the operand that the directory is or lies below.
    pub(crate) operand: u32,
}

/// A directory in flight.
pub(crate) struct Node<D: Dir> {
    pub(crate) place: Place<D>,
    pending: AtomicU32,
    pub(crate) state: D::State,
    pub(crate) dir: D,
}

/// Marks on a directory in flight, which its users set.
// Relaxed: the decrement in `climb` publishes them to the worker that finishes the directory.
pub(crate) struct Marks(AtomicU16);

impl Marks {
    pub(crate) fn new(marks: u16) -> Self {
        Self(marks.into())
    }

    /// Returns `mark` if the fact that it stands for is true, and no mark otherwise.
    pub(crate) fn when(is_true: bool, mark: u16) -> u16 {
        u16::from(is_true) * mark
    }

    /// Returns all marks.
    pub(crate) fn all(&self) -> u16 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns `true` if the directory has one of these marks.
    pub(crate) fn has(&self, marks: u16) -> bool {
        self.all() & marks != 0
    }

    pub(crate) fn set(&self, marks: u16) {
        // They are usually set already. Without a store, other workers keep their copy of the cache line.
        if self.all() & marks != marks {
            self.0.fetch_or(marks, Ordering::Relaxed);
        }
    }

    pub(crate) fn clear(&self, marks: u16) {
        self.0.fetch_and(!marks, Ordering::Relaxed);
    }
}

impl<D: Dir> Node<D> {
    /// Creates a node with one user, the task that lists it. It takes the memory of `finished` if nothing else
    /// refers to that node.
    pub(crate) fn new(
        place: Place<D>,
        state: D::State,
        dir: D,
        finished: Option<Arc<Self>>,
    ) -> Arc<Self> {
        let node = Self {
            place,
            pending: AtomicU32::new(1),
            state,
            dir,
        };
        if let Some(mut reused) = finished
            && let Some(room) = Arc::get_mut(&mut reused)
        {
            *room = node;
            return reused;
        }
        Arc::new(node)
    }

    /// Returns a number that no other node has while this one is in flight.
    pub(crate) fn address(self: &Arc<Self>) -> usize {
        Arc::as_ptr(self).addr()
    }

    /// Counts one more user, which must [`climb`] from here later.
    pub(crate) fn retain(&self) {
        // Relaxed: the caller is a user too, so the node is not finished before.
        self.pending.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns `true` if the node has users beside the caller, and perhaps if the last of
    /// them has just gone.
    pub(crate) fn is_shared(&self) -> bool {
        self.pending.load(Ordering::Relaxed) > 1
    }

    /// Returns the place of `name` in this directory, which counts as a user of it.
    pub(crate) fn child(self: &Arc<Self>, name: &CStr) -> Place<D> {
        self.retain();
        Place {
            parent: Some(Arc::clone(self)),
            name: name.into(),
            operand: self.place.operand,
        }
    }
}

impl<D: Dir> Place<D> {
    /// Returns the names on the way from this place up to the operand, without that of the operand.
    pub(crate) fn names_up(&self) -> impl Iterator<Item = &CStr> {
        let places = std::iter::successors(Some(self), |place| {
            place.parent.as_ref().map(|parent| &parent.place)
        });
        let below = places.take_while(|place| place.parent.is_some());
        below.map(|place| &*place.name)
    }

    /// Returns the path of `name` in this directory, or of the directory itself: the operand's path, and the names below it.
    ///
    /// Builds it in one allocation, from its end, because `-v` needs one for every name.
    pub(crate) fn path(&self, operand: &Path, name: Option<&CStr>) -> PathBuf {
        let operand = operand.as_os_str().as_bytes();
        let below = || name.into_iter().chain(self.names_up()).map(CStr::to_bytes);
        let below_bytes: usize = below().map(|name| 1 + name.len()).sum();
        // Below an empty operand, paths have no slash before them.
        let start = usize::from(operand.is_empty() && below_bytes > 0);
        let operand = match below_bytes {
            0 => operand,
            // An operand with slashes at its end is followed by a single one, too.
            _ => paths::trim_slashes(operand),
        };
        let mut path = vec![0; operand.len() + below_bytes];
        let mut end = path.len();
        for name in below() {
            let start = end - name.len();
            path[start..end].copy_from_slice(name);
            end = start - 1;
            path[end] = b'/';
        }
        path[..end].copy_from_slice(operand);
        path.drain(..start);
        PathBuf::from(OsString::from_vec(path))
    }
}

/// Returns `path/name`, with one slash between them even if `path` ends in slashes.
pub(crate) fn join(path: &Path, name: &CStr) -> PathBuf {
    let path = paths::trim_slashes(path.as_os_str().as_bytes());
    PathBuf::from(OsString::from_vec([path, b"/", name.to_bytes()].concat()))
}

/// Gives up one use of `node`. The last user finishes it and goes on with its parent.
///
/// `finish` returns `Continue` if the directory is done. It returns `Break` if the
/// directory was queued once more and remains a user of its parent.
///
/// Returns the last node that is done, if there is one.
pub(crate) fn climb<D: Dir>(
    node: Arc<Node<D>>,
    mut finish: impl FnMut(&Arc<Node<D>>) -> ControlFlow<()>,
) -> Option<Arc<Node<D>>> {
    let mut finished = None;
    let mut next = Some(node);
    while let Some(node) = next {
        // Release publishes this user's changes to the state of the node. Acquire, in the
        // last user, makes those of all others visible to `finish`.
        if node.pending.fetch_sub(1, Ordering::AcqRel) != 1 || finish(&node).is_break() {
            break;
        }
        next = node.place.parent.clone();
        finished = Some(node);
    }
    finished
}

/// Drops a chain of parents in a loop. The derived drop would recurse once per level.
impl<D: Dir> Drop for Node<D> {
    fn drop(&mut self) {
        let mut next = self.place.parent.take();
        while let Some(parent) = next {
            next = Arc::into_inner(parent).and_then(|mut node| node.place.parent.take());
        }
    }
}

#[cfg(all(test, fuc_loom))]
mod models;

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing(DirSlot);

    impl Dir for Nothing {
        // The largest state that is allowed.
        type State = [u8; 4];

        fn slot(&self, _: Side) -> &DirSlot {
            &self.0
        }
    }

    fn node(parent: Option<&Arc<Node<Nothing>>>, name: &CStr) -> Arc<Node<Nothing>> {
        let place = match parent {
            Some(parent) => parent.child(name),
            None => Place {
                parent: None,
                name: name.into(),
                operand: 0,
            },
        };
        Node::new(place, [0; 4], Nothing(DirSlot::empty()), None)
    }

    #[test]
    fn dropping_a_chain_does_not_recurse() {
        let mut last = node(None, c"0");
        for _ in 0..300_000 {
            last = node(Some(&last), c"d");
        }
        drop(last);
    }

    #[test]
    fn a_path_is_the_operand_and_the_names_below() {
        let top = node(None, c"ignored");
        let sub = node(Some(&top), c"sub");
        let leaf = node(Some(&sub), c"leaf");
        assert_eq!(
            leaf.place.path(Path::new("an/operand//"), None),
            Path::new("an/operand/sub/leaf")
        );
        assert_eq!(
            sub.place.path(Path::new("/"), Some(c"file")),
            Path::new("/sub/file")
        );
        assert_eq!(top.place.path(Path::new("a//"), None), Path::new("a//"));
        assert_eq!(
            top.place.path(Path::new("a//"), Some(c"f")),
            Path::new("a/f")
        );
    }

    /// A level takes at most 128 bytes: a node, which holds a name of up to 21 bytes. The counts of the `Arc` take 16
    /// bytes. The allocator adds 8 and rounds up to a multiple of 16.
    #[test]
    fn a_level_of_a_removal_stays_small() {
        assert!(size_of::<Node<Nothing>>() + 16 <= 128 - 8);
    }
}
