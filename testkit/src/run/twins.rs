//! The same tree twice, for two commands whose results are compared. Timestamps that depend on the moment of
//! building are made equal.

use std::{
    ffi::{CStr, CString},
    io,
    ops::RangeInclusive,
    os::fd::BorrowedFd,
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::{
    fs::{AtFlags, FileType, Gid, Stat, Timespec, Timestamps, Uid, chownat, statat, utimensat},
    io::Errno,
    process::geteuid,
};

use crate::{
    tree::{Scratch, Tree},
    walk::{Start, Visitor, file_type, names, times, walk},
};

/// The time that entries of twins get, unless their builder set one: 2001-09-09.
const TWIN_TIME_SECONDS: i64 = 1_000_000_000;
/// Allowance for the clock of file timestamps, which is coarser than `SystemTime`.
const CLOCK_SLACK: Duration = Duration::from_secs(1);

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
        let period = Period::begin();
        let twins = [(); N].map(|()| match &self.parent {
            Some(parent) => Scratch::new_in(parent),
            None => Scratch::new(),
        });
        for twin in &twins {
            build(&Tree::at(twin.path()));
        }
        let mut settling = Settling {
            fresh: period.end(),
            owner: self.owner,
        };
        for twin in &twins {
            let settled = Start::at(twin.path()).and_then(|start| walk(start, (), &mut settling));
            if let Err(e) = settled {
                panic!("can't make twins: {e}");
            }
        }
        twins
    }
}

/// A period measured by the clock of file timestamps.
pub(super) struct Period(Duration);

impl Period {
    /// Begins one now.
    pub(super) fn begin() -> Self {
        Self(since_epoch().saturating_sub(CLOCK_SLACK))
    }

    /// Ends it now. Returns its limits since 1970, with an allowance for the clock.
    pub(super) fn end(self) -> RangeInclusive<Duration> {
        self.0..=since_epoch() + CLOCK_SLACK
    }
}

fn since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock that is past 1970")
}

/// Replaces recent times, and the owner if another user is wanted.
struct Settling {
    fresh: RangeInclusive<Duration>,
    owner: Option<u32>,
}

impl Visitor for Settling {
    type Mark = ();

    fn arrive(&mut self, dir: BorrowedFd<'_>, (): ()) -> io::Result<Vec<(CString, ())>> {
        let mut below = Vec::new();
        for name in names(dir)? {
            match statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if file_type(&stat) == FileType::Directory => below.push((name, ())),
                Ok(stat) => self.settle(dir, &name, &stat)?,
                // The test itself has denied the permission.
                Err(Errno::ACCESS) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(below)
    }

    // Set the times of a directory after its entries, which change them.
    fn leave(&mut self, parent: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
        let stat = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        self.settle(parent, name, &stat)
    }

    fn locked_out(&mut self, (): (), error: Errno) -> io::Result<()> {
        match error {
            Errno::ACCESS => Ok(()),
            error => Err(error.into()),
        }
    }
}

impl Settling {
    fn settle(&self, dir: BorrowedFd<'_>, name: &CStr, stat: &Stat) -> io::Result<()> {
        if let Some(owner) = self.owner
            && stat.st_uid == geteuid().as_raw()
        {
            let (uid, gid) = (Uid::from_raw(owner), Gid::from_raw(owner));
            chownat(dir, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        let settled = |time: Timespec| {
            let fresh = u64::try_from(time.tv_sec).is_ok_and(|seconds| self.is_fresh(seconds));
            match fresh {
                true => Timespec {
                    tv_sec: TWIN_TIME_SECONDS,
                    tv_nsec: 0,
                },
                false => time,
            }
        };
        // Both are set, because some filesystems take the current time for one that is omitted.
        let read = times(stat);
        let times = Timestamps {
            last_access: settled(read.last_access),
            last_modification: settled(read.last_modification),
        };
        Ok(utimensat(dir, name, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    fn is_fresh(&self, seconds: u64) -> bool {
        (self.fresh.start().as_secs()..=self.fresh.end().as_secs()).contains(&seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{Attributes, Snapshot};

    #[test]
    fn twins_are_equal_in_everything() {
        let (a, b) = twin(|tree| {
            let tree = tree.file("a/b", b"content").symlink("l", "a");
            tree.file("dated", "").mtime(Duration::from_secs(77));
        });
        let a = Snapshot::of(&a, Attributes::ALL);
        assert_eq!(a.diff(&Snapshot::of(&b, Attributes::ALL)), "");
        assert!(format!("{a:?}").contains("mtime 77."));
    }
}
