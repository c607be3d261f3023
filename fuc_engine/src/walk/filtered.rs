//! Asks the caller's filter about the entries of a buffer before anything else sees them.
//!
//! The entries that are not taken leave the buffer, and the others get the type that the filter was told. So
//! the rest of the walk, and the visitor, work as without a filter, however the buffer is divided later.
//!
//! A verdict holds for one type. A visitor that finds an entry to be of another type calls [`reconsider`].

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::{NodeOf, Unvisited, Visit, Visitor, Walker, queue};
use crate::filter::{Candidate, EnteredDirectory, Filter, Verdict};
use crate::hashing::HashMap;
use crate::node::{Dir, Node, Side};
use crate::sync::lock;
use crate::sys::{self, At, Blocking, Listed, Listing, Symlinks};

/// Entries that the filter is asked about between two looks at whether the run was cancelled.
const CANCEL_INTERVAL: usize = 32;

/// The filters of a run.
pub(crate) struct Filters {
    of_operands: Arc<dyn Filter>,
    /// The filters of directories in flight, by the addresses of their nodes. A directory that is
    /// missing has the filter of the operands.
    of_directories: Mutex<HashMap<usize, Arc<dyn Filter>>>,
}

impl Filters {
    pub(crate) fn new(of_operands: Arc<dyn Filter>) -> Self {
        Self {
            of_operands,
            of_directories: Mutex::default(),
        }
    }

    /// Returns the filter for the entries of `node`.
    pub(super) fn of<D: Dir>(&self, node: &Arc<Node<D>>) -> Arc<dyn Filter> {
        self.own(node)
            .unwrap_or_else(|| Arc::clone(&self.of_operands))
    }

    fn own<D: Dir>(&self, node: &Arc<Node<D>>) -> Option<Arc<dyn Filter>> {
        lock(&self.of_directories).get(&node.address()).cloned()
    }

    /// Finds the filter for the entries of a directory that was just entered.
    fn choose<D: Dir>(&self, node: &Arc<Node<D>>, directory: &EnteredDirectory<'_>) {
        let inherited = node.place.parent.as_ref().and_then(|node| self.own(node));
        let filter = inherited.as_ref().unwrap_or(&self.of_operands);
        if let Some(filter) = filter.for_directory(directory).or(inherited) {
            lock(&self.of_directories).insert(node.address(), filter);
        }
    }
}

/// Finds the filter for the entries of `node`, which was just entered. If this fails, the directory must not be
/// listed, because another filter would decide about its entries.
#[inline]
pub(super) fn choose_filter<V: Visitor>(visitor: &V, node: &NodeOf<V>) -> Result<(), Errno> {
    if visitor.settings().filters.is_some() {
        let descriptors = visitor.descriptors();
        let dir = descriptors.pin(node, Side::Source, visitor.roots())?;
        choose_filter_of_open(visitor, node, dir.as_fd());
    }
    Ok(())
}

/// Finds the filter for the entries of `node`, whose directory is open as `dir`.
pub(super) fn choose_filter_of_open<V: Visitor>(
    visitor: &V,
    node: &NodeOf<V>,
    dir: BorrowedFd<'_>,
) {
    let Some(filters) = &visitor.settings().filters else {
        return;
    };
    let descriptors = visitor.descriptors();
    let open = |name: &CStr| {
        let symlinks = Symlinks::NoFollow;
        let at = At {
            dir,
            name,
            symlinks,
        };
        descriptors.making_room(|| sys::open_source(at, Blocking::OnlyForLease))
    };
    let directory = EnteredDirectory {
        open: &open,
        operand: visitor.operand_path(node.place.operand),
        build_path: &|operand, name| node.place.path(operand, name),
    };
    filters.choose(node, &directory);
}

/// Forgets the filter of a directory that is finished.
#[inline]
pub(super) fn forget_filter<V: Visitor>(visitor: &V, node: &NodeOf<V>) {
    if let Some(filters) = &visitor.settings().filters {
        // The last user of a filter runs its destructor, which must not happen under the lock.
        let _filter = lock(&filters.of_directories).remove(&node.address());
    }
}

/// Removes the entries from `listing` that the filter leaves alone. Marks directories that it skips.
pub(super) fn retain_taken<V: Visitor>(
    visitor: &V,
    listing: &mut Listing,
    node: &NodeOf<V>,
    dir: BorrowedFd<'_>,
) {
    let Some(filter) = visitor.settings().filter_of(node) else {
        return;
    };
    let mut asked = 0;
    listing.retain(|entry| {
        // The entries that are left in a cancelled run are not processed.
        if asked % CANCEL_INTERVAL == 0 && visitor.report().must_stop() {
            return Some(entry);
        }
        asked += 1;
        let kind = kind_of(dir, entry, visitor.settings().symlinks);
        ask_filter(visitor, &*filter, node, dir, Listed::new(entry.name, kind))
    });
}

/// Asks the filter about an entry. Returns `None` if it must be left alone.
fn ask_filter<'e, V: Visitor>(
    visitor: &V,
    filter: &dyn Filter,
    node: &NodeOf<V>,
    dir: BorrowedFd<'_>,
    entry: Listed<'e>,
) -> Option<Listed<'e>> {
    let open = |symlinks| {
        let name = entry.name;
        let at = At {
            dir,
            name,
            symlinks,
        };
        visitor.descriptors().making_room(|| sys::open_path(at))
    };
    let verdict = filter.verdict(&Candidate {
        dir,
        name: entry.name,
        kind: entry.kind(),
        operand: visitor.operand_path(node.place.operand),
        build_path: &|operand, name| node.place.path(operand, name),
        // A link may lead nowhere.
        open: &|| open(visitor.settings().symlinks).or_else(|_| open(Symlinks::NoFollow)),
    });
    if verdict != Verdict::Take {
        visitor.note_unvisited(node, Unvisited::LeftAlone);
    }
    match verdict {
        Verdict::Take => Some(entry),
        Verdict::Skip if entry.kind() == FileType::Directory => Some(entry.as_skipped()),
        Verdict::Skip | Verdict::Prune => None,
    }
}

/// Handles an entry of `node` that was not visited as a `kind`, but proves to be one: asks the filter again,
/// because its verdict was about another type, and queues a directory. Returns `None` if the entry must be processed by its
/// present type.
#[cold]
pub(crate) fn reconsider<V: Visitor>(
    node: &NodeOf<V>,
    dir: BorrowedFd<'_>,
    name: &CStr,
    kind: FileType,
    worker: &mut Walker<'_, '_, V>,
) -> Option<Visit> {
    let entry = Listed::new(name, kind);
    let taken = match worker.job.settings().filter_of(node) {
        Some(filter) => ask_filter(worker.job, &*filter, node, dir, entry),
        None => Some(entry),
    };
    match taken {
        None => Some(Visit::Done),
        Some(entry) if kind == FileType::Directory => Some(queue(node, entry, worker)),
        Some(_) => None,
    }
}

/// Returns the type of an entry, or of the file that a link leads to if `symlinks` are followed.
pub(crate) fn kind_of(dir: BorrowedFd<'_>, entry: Listed<'_>, symlinks: Symlinks) -> FileType {
    let is_followed = entry.kind() == FileType::Symlink && symlinks == Symlinks::Follow;
    if entry.kind() != FileType::Unknown && !is_followed {
        return entry.kind();
    }
    let looked_at = sys::stat(dir, entry.name, symlinks)
        // A link may lead nowhere.
        .or_else(|_| sys::stat(dir, entry.name, Symlinks::NoFollow));
    looked_at.map_or(entry.kind(), |stat| sys::file_type(&stat))
}
