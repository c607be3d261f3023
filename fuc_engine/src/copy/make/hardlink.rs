//! The sources with several names that a run has met, and the links to the first copy of each.
//!
//! ```text
//!            claim                        complete
//!   unknown -------> in progress, waiters ---------> copied
//!      ^                  |                          |  ^
//!      |      failed      |                          |  | claim, link
//!      +------------------+                          |  +---
//!      +---------------------------------------------+
//!                      this was the last name
//! ```
//!
//! No worker blocks: if the first copy of a source is in progress, another name of it becomes a
//! waiter in this table. [`end_first`](LinkTable::end_first) returns the waiters, which the caller
//! queues. Only sources with several names are looked up, or all sources if links are followed, because each link is another
//! name.
//!
//! Some filesystems give several files one inode number. So a name is linked only if its file looks as the file of the first
//! name did when it was copied. If it does not, the first name is looked at again: another process may have changed the file.

use std::collections::hash_map::Entry as Slot;
use std::ffi::CStr;
use std::hash::BuildHasher;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};

use rustix::io::Errno;

use super::{CopyScratch, LinkedTo, create_in_way};
use crate::copy::context::{Context, Failure};
use crate::copy::decide::settle::Way;
use crate::copy::entry::{Entry, StoredEntry};
use crate::copy::facts::{CopyNode, FileId, Fingerprint, Symlinks};
use crate::error::Operation;
use crate::hashing::{HashMap, Seeded};
use crate::node::{Dir, Side};
use crate::sync::lock;
use crate::sys::{self, At, Stat};

/// The first copy of a source. It holds an `Arc` of its node, but is not counted as a use of the node, so
/// it does not delay the node's finish.
#[derive(Clone)]
pub(crate) struct FirstCopy {
    /// `None` for an operand.
    node: Option<CopyNode>,
    name: Box<CStr>,
    operand: u32,
    /// The file that has the name.
    pub(crate) itself: SeenFile,
    /// The file that was written, if the name is a symbolic link to it.
    behind_link: Option<Box<SeenFile>>,
}

impl FirstCopy {
    /// Returns the file to link to, and whether a link is followed to it: the written file if
    /// links are followed, otherwise the one that has the name.
    fn link_target(&self, symlinks: Symlinks) -> (Symlinks, SeenFile) {
        match (symlinks, &self.behind_link) {
            (Symlinks::Follow, Some(written)) => (Symlinks::Follow, **written),
            _ => (Symlinks::NoFollow, self.itself),
        }
    }
}

/// A file as it was seen when it was complete.
#[derive(Clone, Copy, Default)]
pub(crate) struct SeenFile {
    pub(crate) id: FileId,
    /// `None` if the file was not seen under its name.
    fingerprint: Option<Fingerprint>,
}

impl SeenFile {
    fn of(stat: &Stat) -> Self {
        Self {
            id: FileId::of(stat),
            fingerprint: Some(Fingerprint::of(stat)),
        }
    }

    /// Returns `true` if `stat` is of this file, given that its inode number may have changed.
    fn resembles(&self, stat: &Stat) -> bool {
        self.fingerprint == Some(Fingerprint::of(stat))
    }
}

/// Facts about a source that all of its names share, and other files with its inode number hardly do.
#[derive(Clone, Copy)]
struct Traits {
    fingerprint: Fingerprint,
    /// A hash of the time of status change.
    change: u32,
    links: u64,
}

impl Traits {
    fn of(source: &Stat) -> Self {
        let [_, _, changed] = sys::times(source);
        Self {
            fingerprint: Fingerprint::of(source),
            change: Seeded::default().hash_one((changed.seconds, changed.nanoseconds)) as u32,
            links: sys::links(source),
        }
    }

    /// Returns `true` if these are facts about one file. A link that was made or removed in the meantime, perhaps
    /// by this run, has also changed the time.
    fn are_of_one_file(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
            && (self.change == other.change || self.links != other.links)
    }
}

/// The knowledge about one source.
struct Known {
    traits: Traits,
    state: State,
    /// Number of names still to be met; `None` if it is unknown.
    names_left: Option<u64>,
}

impl Known {
    /// Counts a name that is linked, of a source with these traits. Returns `true` if it was the last one.
    fn count_name(&mut self, traits: Traits) -> bool {
        // Another process may have made links.
        let made = traits.links.saturating_sub(self.traits.links);
        self.traits = traits;
        self.names_left = self
            .names_left
            .map(|names| (names + made).saturating_sub(1));
        self.names_left == Some(0)
    }
}

enum State {
    InProgress(Vec<StoredEntry>),
    Copied(FirstCopy),
}

/// The next step for an entry, as [`LinkTable::claim`] decides.
pub(crate) enum Claim {
    /// Make the first copy, and call [`end_first`](LinkTable::end_first).
    First,
    /// Nothing: the entry waits.
    Waiting,
    /// Link to this copy.
    LinkTo(FirstCopy),
    /// Make a copy: the source looks otherwise than the known one with its inode number. But if
    /// [`is_still_the_source`] of this copy, call [`note_changed`](LinkTable::note_changed), and link to it.
    OtherFile(FirstCopy),
}

#[derive(Default)]
pub(crate) struct LinkTable(Mutex<HashMap<FileId, Known>>);

impl LinkTable {
    /// Looks up a source. `other_names` is the number of its names besides this one, if each is
    /// met once. If it is known, the source is forgotten once that many further names were
    /// linked.
    pub(crate) fn claim(
        &self,
        source: &Stat,
        store: impl FnOnce() -> StoredEntry,
        other_names: Option<u64>,
    ) -> Claim {
        let mut map = lock(&self.0);
        let mut slot = match map.entry(FileId::of(source)) {
            Slot::Vacant(vacant) => {
                vacant.insert(Known {
                    traits: Traits::of(source),
                    state: State::InProgress(Vec::new()),
                    names_left: other_names,
                });
                return Claim::First;
            }
            Slot::Occupied(slot) => slot,
        };
        let first = match &mut slot.get_mut().state {
            State::InProgress(waiters) => {
                waiters.push(store());
                return Claim::Waiting;
            }
            State::Copied(first) => first.clone(),
        };
        let traits = Traits::of(source);
        if !slot.get().traits.are_of_one_file(&traits) {
            return Claim::OtherFile(first);
        }
        if slot.get_mut().count_name(traits) {
            slot.remove();
        }
        Claim::LinkTo(first)
    }

    /// Notes that a name of a source that has changed is linked all the same.
    pub(crate) fn note_changed(&self, source: &Stat) {
        if let Slot::Occupied(mut slot) = lock(&self.0).entry(FileId::of(source))
            && slot.get_mut().count_name(Traits::of(source))
        {
            slot.remove();
        }
    }

    /// Records the first copy, or forgets the source if there is none. Returns the entries that
    /// waited for it, which must claim again.
    pub(crate) fn end_first(&self, source: FileId, first: Option<FirstCopy>) -> Vec<StoredEntry> {
        let mut map = lock(&self.0);
        let Slot::Occupied(mut slot) = map.entry(source) else {
            return Vec::new();
        };
        let before = match first {
            Some(first) => std::mem::replace(&mut slot.get_mut().state, State::Copied(first)),
            None => slot.remove().state,
        };
        match before {
            State::InProgress(waiters) => waiters,
            State::Copied(..) => Vec::new(),
        }
    }
}

/// Describes the copy of `source` that was made at the dest of `entry`: the file that was `written`, or the
/// file that has the name if the copy was not written through a descriptor.
///
/// If the name does not lead to the file that was written, [`link`] reports that. Where files do not keep their inode
/// numbers, type and size decide.
pub(crate) fn find_copy(
    entry: &Entry<'_>,
    source: &Stat,
    written: Option<FileId>,
) -> Result<FirstCopy, Errno> {
    let named = entry.stat_dest(Symlinks::NoFollow);
    // The file that was written may not be at its name any more.
    let unseen = |id| SeenFile {
        id,
        fingerprint: None,
    };
    let (itself, behind_link) = match (named, written) {
        (Err(errno), None) => (entry.ctx.changes.really(|| Err(errno))?, None),
        (Err(_), Some(written)) => (unseen(written), None),
        (Ok(named), Some(written)) if FileId::of(&named) != written => {
            match entry.stat_dest(Symlinks::Follow) {
                Ok(target) if FileId::of(&target) == written => {
                    (SeenFile::of(&named), Some(Box::new(SeenFile::of(&target))))
                }
                _ if sys::is_regular(&named)
                    && named.st_size == source.st_size
                    && !entry.has_native_dest() =>
                {
                    (SeenFile::of(&named), None)
                }
                _ => (unseen(written), None),
            }
        }
        (Ok(named), _) => (SeenFile::of(&named), None),
    };
    Ok(FirstCopy {
        node: entry.node.map(Arc::clone),
        name: entry.dest.name.into(),
        operand: entry.operand,
        itself,
        behind_link,
    })
}

/// Returns `true` if the source of `first` and the source of `entry` are one file now. Looks at both, because another process
/// may go on to change the file. Returns `false` if the name of the first source is gone.
#[cold]
pub(crate) fn is_still_the_source(first: &FirstCopy, entry: &Entry<'_>) -> Result<bool, Errno> {
    let ctx = entry.ctx;
    let first = match &first.node {
        None => sys::stat(
            ctx.bases.source,
            ctx.operands.source(first.operand),
            ctx.policy.symlinks_of_operands(),
        )?,
        Some(node) => {
            let dir = ctx.descriptors.reopen(node, Side::Source, ctx)?;
            sys::stat(dir.as_fd(), &first.name, ctx.policy.symlinks_of_entries)?
        }
    };
    let held = ctx
        .descriptors
        .making_room(|| sys::open_path(entry.source))?;
    let this = sys::stat_open(&held)?;
    Ok(FileId::of(&first) == FileId::of(&this)
        && (Traits::of(&first).are_of_one_file(&Traits::of(&this))
            || sys::keeps_identities(held.as_fd())))
}

/// Links the dest to `first`. Fails if that is not the file any more that it was. Returns `None` if something is there.
///
/// The link is checked after it was made, and before it replaces a dest, because another process may have put another
/// file in the place of the first copy. On some filesystems each name has an inode number of its own. There, the link must
/// look as the first copy did.
pub(crate) fn link(
    entry: &Entry<'_>,
    first: &FirstCopy,
    way: Way,
    scratch: &mut CopyScratch,
) -> Result<Option<()>, Failure> {
    let ctx = entry.ctx;
    let (symlinks, file) = first.link_target(entry.source.symlinks);
    let made = create_in_way(entry, way, |link_name| {
        at_first(ctx, first, scratch, |dir| {
            let name = &first.name;
            let first = At {
                dir,
                name,
                symlinks,
            };
            sys::create_hard_link(first, entry.dest.dir, link_name)?;
            let made = sys::stat(entry.dest.dir, link_name, Symlinks::NoFollow);
            let is_file = |made: &Stat| {
                FileId::of(made) == file.id || file.resembles(made) && !sys::keeps_identities(dir)
            };
            if made.as_ref().is_ok_and(is_file) {
                return Ok(());
            }
            sys::unlink(entry.dest.dir, link_name)?;
            Err(made.err().unwrap_or(Errno::STALE))
        })
    });
    made.map_err(|errno| {
        let first = ctx.path_in(first.node.as_ref(), first.operand, &first.name, Side::Dest);
        let error = entry.dest_error(Operation::CreateHardLink, errno);
        Failure::making(error.with_other(Side::Dest, first))
    })
}

/// Runs `call` on the directory of the first copy.
fn at_first(
    ctx: &Context<'_>,
    first: &FirstCopy,
    scratch: &mut CopyScratch,
    call: impl FnOnce(BorrowedFd<'_>) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let Some(node) = &first.node else {
        return call(ctx.open_dest_parent(first.operand)?.as_fd());
    };
    let last = scratch.linked_to.as_ref();
    if let Some(last) = last.filter(|last| Arc::ptr_eq(&last.node, node)) {
        return call(last.dir.as_fd());
    }
    // The directory may be finished and closed, so it is reached again from its operand.
    if let Some(dir) = ctx.descriptors.try_pin(node.dir.slot(Side::Dest))? {
        return call(dir.as_fd());
    }
    let dir = ctx.descriptors.reopen(node, Side::Dest, ctx)?;
    let done = call(dir.as_fd());
    // Keep it open for the next link, in place of the last one, if a descriptor can be lent for it.
    let last = &mut scratch.linked_to;
    if last.is_some() || ctx.descriptors.lend() {
        let node = Arc::clone(node);
        *last = Some(LinkedTo { node, dir });
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Place;
    use crate::sys::CWD;
    use rustix::fs::FileType;

    impl LinkTable {
        /// Returns how many sources are known.
        pub(crate) fn len(&self) -> usize {
            lock(&self.0).len()
        }
    }

    fn source() -> Stat {
        sys::stat(CWD, c".", Symlinks::Follow).unwrap()
    }

    fn entry() -> StoredEntry {
        let place = Place {
            parent: None,
            name: c"source".into(),
            operand: 0,
        };
        StoredEntry {
            place,
            kind: FileType::RegularFile,
        }
    }

    fn first() -> FirstCopy {
        FirstCopy {
            node: None,
            name: c"dest".into(),
            operand: 0,
            itself: SeenFile {
                id: FileId {
                    device: 0,
                    inode: 7,
                },
                fingerprint: None,
            },
            behind_link: None,
        }
    }

    fn copied(other_names: Option<u64>) -> LinkTable {
        let table = LinkTable::default();
        assert!(matches!(
            table.claim(&source(), entry, other_names),
            Claim::First
        ));
        table.end_first(FileId::of(&source()), Some(first()));
        table
    }

    fn is_linked(table: &LinkTable, other_names: Option<u64>) -> bool {
        matches!(
            table.claim(&source(), entry, other_names),
            Claim::LinkTo(..)
        )
    }

    #[test]
    fn a_copy_is_forgotten_with_its_last_name() {
        let table = copied(Some(2));
        assert!(is_linked(&table, Some(2)));
        assert_eq!(lock(&table.0).len(), 1);
        assert!(is_linked(&table, Some(2)));
        assert_eq!(lock(&table.0).len(), 0);
    }

    #[test]
    fn a_copy_is_kept_for_a_name_that_another_process_makes() {
        let table = copied(Some(1));
        let mut stat = source();
        stat.st_nlink += 1;
        for names_left in [1, 0] {
            let claim = table.claim(&stat, entry, Some(2));
            assert!(matches!(claim, Claim::LinkTo(..)));
            assert_eq!(table.len(), names_left);
        }
    }

    #[test]
    fn a_waiter_is_counted_when_it_claims_again() {
        let table = LinkTable::default();
        let claim = || table.claim(&source(), entry, Some(1));
        assert!(matches!(claim(), Claim::First));
        assert!(matches!(claim(), Claim::Waiting));
        let waiters = table.end_first(FileId::of(&source()), Some(first()));
        assert_eq!((waiters.len(), lock(&table.0).len()), (1, 1));
        assert!(is_linked(&table, Some(1)));
        assert_eq!(lock(&table.0).len(), 0);
    }

    #[test]
    fn another_file_with_the_same_inode_number_is_not_linked() {
        let table = copied(None);
        let is_other = |change: &dyn Fn(&mut Stat)| {
            let mut stat = source();
            change(&mut stat);
            matches!(table.claim(&stat, entry, None), Claim::OtherFile(_))
        };
        assert!(is_other(&|stat| stat.st_size += 1));
        assert!(is_other(&|stat| stat.st_mtime += 1));
        assert!(is_other(&|stat| stat.st_mtime_nsec ^= 1));
        assert!(is_other(&|stat| stat.st_ctime += 1));
        assert!(is_other(&|stat| stat.st_ctime_nsec ^= 1));
        // Another process has made a link.
        assert!(!is_other(&|stat| {
            stat.st_nlink += 1;
            stat.st_ctime += 1;
        }));
        assert!(!is_other(&|stat| stat.st_atime += 1));
    }

    #[test]
    fn a_copy_is_kept_if_its_names_cannot_be_counted() {
        let table = copied(None);
        for _ in 0..9 {
            assert!(is_linked(&table, None));
        }
        assert_eq!(lock(&table.0).len(), 1);
    }
}
