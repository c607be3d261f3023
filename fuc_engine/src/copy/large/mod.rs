//! Large files: which they are, when their dests get their names, which of them are written at the same time, and
//! how several engines copy the rest of one.
//!
//! ```text
//! listed ─▶ queued ─▶ may be written now ─▶ copied ─▶ named ─▶ ended
//!             ▲        │ not yet             └▶ halved ─▶ all parts copied ─▶ named ─▶ ended
//!             │        ▼                                                                 │
//!             └────── waits ◀── the next one ────────────────────────────────────────────┘
//! ```
//!
//! - [`naming`]: dests that get their names when they are complete.
//! - [`room`]: the files that are being written, and those that wait for them.
//! - [`divided`]: a file of which several engines copy parts.
//!
//! `run/large` leads a file along this way. These are the sizes from which a file is treated differently:
//!
//! | from | a file |
//! |---|---|
//! | 1 MiB | gets its name last, and begins with a trial if a server stores it |
//! | 4 MiB | is a task of its own, waits for room, and is cloned if possible |
//! | 8 MiB | is halved if other engines want a part of it |

use std::ffi::CStr;
use std::ops::Range;
use std::os::fd::AsFd;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::content::{Ways, takes_any_order};
use super::context::Context;
use super::dest::open::OpenDest;
use super::facts::Entry;
use super::look::{OpenSource, SharedSource};
use super::options::{Reflink, Sparse};
use crate::sys::{self, Stat, Storage};

pub(super) mod divided;
pub(super) mod naming;
pub(super) mod room;

/// Size from which a file is a task of its own.
pub(super) const TASK_FROM: u64 = 4 << 20;

/// The least content that another engine gets of a file.
///
/// To open its files takes another engine some requests, and to copy this much takes it eight or more.
const HALF_BYTES: u64 = 4 << 20;

/// Parts begin at multiples of this, which is at least a block of any filesystem.
const ALIGNMENT: u64 = 64 << 10;

/// Descriptors that are open while a part of the file is queued.
const DESCRIPTORS: usize = 2;

/// Returns `true` if much content may have to be written.
#[inline]
pub(super) fn has_much_content(ctx: &Context<'_>, source: &Stat) -> bool {
    let options = ctx.policy.options;
    source.st_size as u64 >= TASK_FROM
        && sys::file_type(source) == FileType::RegularFile
        && options.reflink != Reflink::Always
        && ctx.policy.writes_content
        && options.as_links.is_none()
}

/// Returns `true` if the content may be copied at another time than the entries beside it.
pub(super) fn may_come_later(ctx: &Context<'_>, entry: &Entry<'_>, source: &Stat) -> bool {
    has_much_content(ctx, source)
        && !entry.is_operand()
        && !ctx.policy.options.rules.ask
        // Other names of the source wait until the copy is complete, so it is made at once.
        && !ctx.policy.has_other_names(entry, source)
}

/// Returns `true` if several engines may copy the content: a worker reads and writes it, and it is not the filesystem, or
/// its server, that copies.
pub(super) fn may_be_divided(ctx: &Context<'_>, entry: &Entry<'_>, source: &OpenSource) -> bool {
    let options = ctx.policy.options;
    let kernel_copies = Ways::new(options).let_kernel_copy() && source.storage == Storage::Native;
    // Zeros in several parts would have to be found together.
    options.sparse != Sparse::Always
        && !kernel_copies
        && middle(0..source.stat.st_size as u64).is_some()
        && may_come_later(ctx, entry, &source.stat)
}

/// The rest of a file whose content several engines want to copy. Descriptors are lent to it.
pub(super) struct Rest {
    source: SharedSource,
    /// The name of the dest.
    hidden_name: Box<CStr>,
    /// Its inode number.
    dest_inode: u64,
    from: u64,
}

impl Rest {
    /// Returns the rest of the content, if other engines may have a part of it.
    #[cold]
    pub(super) fn begin(
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
fn middle(rest: Range<u64>) -> Option<u64> {
    let half = rest.end.saturating_sub(rest.start) / 2;
    // Not in the middle of a block of any filesystem.
    (half >= HALF_BYTES).then(|| (rest.start + half).next_multiple_of(ALIGNMENT))
}

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
