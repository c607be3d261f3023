//! Decides whether the rest of a file is halved, because other engines want to copy a part of it.

use std::ffi::CStr;
use std::ops::Range;
use std::os::fd::AsFd;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::{HALF_BYTES, TASK_FROM};
use crate::copy::content::{Ways, takes_any_order};
use crate::copy::context::Context;
use crate::copy::dest::open::OpenDest;
use crate::copy::facts::Entry;
use crate::copy::options::{Reflink, Sparse};
use crate::copy::source::{OpenSource, SharedSource};
use crate::sys::{self, Stat, Storage};

/// Descriptors that are open while a part of the file is queued.
pub(in crate::copy) const DESCRIPTORS: usize = 2;

/// Returns `true` if much content may have to be written.
#[inline]
pub(in crate::copy) fn has_much_content(ctx: &Context<'_>, source: &Stat) -> bool {
    let options = ctx.policy.options;
    source.st_size as u64 >= TASK_FROM
        && sys::file_type(source) == FileType::RegularFile
        && options.reflink != Reflink::Always
        && ctx.policy.writes_content
        && options.as_links.is_none()
}

/// Returns `true` if the content may be copied at another time than the entries beside it.
pub(in crate::copy) fn may_come_later(ctx: &Context<'_>, entry: &Entry<'_>, source: &Stat) -> bool {
    has_much_content(ctx, source)
        && !entry.is_operand()
        && !ctx.policy.options.rules.ask
        // Other names of the source wait until the copy is complete, so it is made at once.
        && !ctx.policy.has_other_names(entry, source)
}

/// Returns `true` if several engines may copy the content: a worker reads and writes it, and it is not the filesystem, or
/// its server, that copies.
pub(in crate::copy) fn may_be_divided(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &OpenSource,
) -> bool {
    let options = ctx.policy.options;
    let kernel_copies = Ways::new(options).let_kernel_copy() && source.storage == Storage::Native;
    // Zeros in several parts would have to be found together.
    options.sparse != Sparse::Always
        && !kernel_copies
        && middle(0..source.stat.st_size as u64).is_some()
        && may_come_later(ctx, entry, &source.stat)
}

/// The rest of a file whose content several engines want to copy. Descriptors are lent to it.
pub(in crate::copy) struct Rest {
    pub(super) source: SharedSource,
    /// The name of the dest.
    pub(super) hidden_name: Box<CStr>,
    /// Its inode number.
    pub(super) dest_inode: u64,
    pub(super) from: u64,
}

impl Rest {
    /// Returns the rest of the content, if other engines may have a part of it.
    #[cold]
    pub(in crate::copy) fn begin(
        ctx: &Context<'_>,
        entry: &Entry<'_>,
        source: &OpenSource,
        dest: &OpenDest<'_>,
        from: u64,
    ) -> Option<Box<Self>> {
        // Without one, other engines cannot open it.
        let hidden_name = dest.hidden_name()?;
        let size = source.stat.st_size as u64;
        let may_begin = middle(from..size).is_some()
            && may_be_divided(ctx, entry, source)
            && takes_any_order(dest.fd.as_fd(), size)
            && ctx.descriptors.lend(DESCRIPTORS);
        if !may_begin {
            return None;
        }
        let rest = Self::open(source, dest, hidden_name, from);
        if rest.is_err() {
            ctx.descriptors.take_back(DESCRIPTORS);
        }
        rest.ok().map(Box::new)
    }

    fn open(
        source: &OpenSource,
        dest: &OpenDest<'_>,
        hidden_name: &CStr,
        from: u64,
    ) -> Result<Self, Errno> {
        Ok(Self {
            source: source.duplicate()?.into(),
            hidden_name: hidden_name.into(),
            dest_inode: sys::stat_open(&dest.fd)?.st_ino,
            from,
        })
    }
}

/// Returns the position from which another engine gets the content of `rest`, or `None` if there is too little.
pub(super) fn middle(rest: Range<u64>) -> Option<u64> {
    let half = rest.end.saturating_sub(rest.start) / 2;
    // Not in the middle of a block of any filesystem.
    (half >= HALF_BYTES).then(|| (rest.start + half).next_multiple_of(ALIGNMENT))
}

/// Parts begin at multiples of this, which is at least a block of any filesystem.
const ALIGNMENT: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_not_too_small() {
        for (rest, expected) in [
            (0..2 * HALF_BYTES - 1, None),
            (0..2 * HALF_BYTES, Some(HALF_BYTES)),
            (1..1 + 2 * HALF_BYTES, Some(HALF_BYTES + ALIGNMENT)),
            (0..u64::MAX, Some(1 << 63)),
        ] {
            assert_eq!(middle(rest.clone()), expected, "{rest:?}");
        }
    }
}
