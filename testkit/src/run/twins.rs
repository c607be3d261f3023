//! The same tree twice, for two commands whose results are compared. Timestamps that depend on the moment of
//! building are made equal.

use std::{io, ops::RangeInclusive, path::PathBuf};

use rustix::{
    fs::{AtFlags, Gid, Timespec, Timestamps, Uid, chownat, utimensat},
    process::geteuid,
    time::{ClockId, clock_gettime},
};

use crate::{
    tree::{Scratch, Tree, place},
    walk::{Found, Visitor, walk},
};

/// The time that entries of twins get, unless their builder set one: 2001-09-09.
const TWIN_TIME: Timespec = Timespec {
    tv_sec: 1_000_000_000,
    tv_nsec: 0,
};
/// Allowance for the clock of file timestamps, which is coarser than [`now`].
const CLOCK_SLACK_SECONDS: i64 = 1;

/// Builds the same tree twice. Entries whose times the builder did not set get one time in the past.
///
/// # Panics
/// Panics if a tree can't be built.
#[must_use]
#[track_caller]
pub fn twin(build: impl Fn(&Tree)) -> (Scratch, Scratch) {
    let [ours, gnu] = Twins::default().make(build);
    (ours, gnu)
}

/// Options for building twins.
#[derive(Clone, Debug, Default)]
pub(super) struct Twins {
    pub(super) parent: Option<PathBuf>,
    /// User and group that get all entries of the current user.
    pub(super) owner: Option<u32>,
}

impl Twins {
    #[track_caller]
    pub(super) fn make<const N: usize>(&self, build: impl Fn(&Tree)) -> [Scratch; N] {
        let begin = now();
        let parent = self.parent.clone().unwrap_or_else(place);
        let twins = [(); N].map(|()| Scratch::new_in(&parent));
        for twin in &twins {
            build(&Tree::at(twin.path()));
        }
        let mut settling = Settling {
            fresh: since(begin),
            owner: self.owner,
        };
        for twin in &twins {
            if let Err(e) = walk(twin.path(), &mut settling) {
                panic!("can't make twins: {e}");
            }
        }
        twins
    }
}

/// Returns the time in seconds since 1970.
pub(super) fn now() -> i64 {
    clock_gettime(ClockId::Realtime).tv_sec
}

/// Returns the period from `begin` until now in seconds since 1970, with an allowance for the clock of timestamps.
pub(super) fn since(begin: i64) -> RangeInclusive<i64> {
    begin - CLOCK_SLACK_SECONDS..=now() + CLOCK_SLACK_SECONDS
}

/// Replaces recent times, and the owner if another user is wanted.
struct Settling {
    fresh: RangeInclusive<i64>,
    owner: Option<u32>,
}

impl Visitor for Settling {
    fn visit(&mut self, entry: &Found<'_>, _parent: usize) -> io::Result<usize> {
        if let Some(owner) = self.owner
            && entry.stat.st_uid == geteuid().as_raw()
        {
            let (uid, gid) = (Uid::from_raw(owner), Gid::from_raw(owner));
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            chownat(entry.dir, entry.name, Some(uid), Some(gid), flags)?;
        }
        let settled = |time: Timespec| match self.fresh.contains(&time.tv_sec) {
            true => TWIN_TIME,
            false => time,
        };
        // Both are set, because some filesystems take the current time for one that is omitted.
        let read = entry.times();
        let times = Timestamps {
            last_access: settled(read.last_access),
            last_modification: settled(read.last_modification),
        };
        utimensat(entry.dir, entry.name, &times, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{Attributes, Snapshot};

    #[test]
    fn twins_are_equal_in_everything() {
        let (a, b) = twin(|tree| {
            let tree = tree.plant("a/b=content l->a");
            tree.plant("dated= @77");
        });
        let a = Snapshot::of(&a, Attributes::ALL);
        assert_eq!(a.diff(&Snapshot::of(&b, Attributes::ALL)), "");
        assert!(format!("{a:?}").contains("mtime 77."));
    }
}
