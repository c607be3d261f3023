//! The tasks of a copy other than listing a directory.

use std::ffi::CStr;
use std::ops::Range;

use crate::copy::dest::open::OpenDest;
use crate::copy::hardlinks::Waiter;
use crate::copy::make::file::OpenSource;
use crate::copy::node::CopyNode;

/// Tasks of a copy other than listing a directory.
pub(in crate::copy) enum CopyTask {
    Operands(Operands),
    Large(Box<LargeFile>),
    /// Copy or link an entry that has waited for another name of its source.
    Waiter(Waiter),
}

/// A large file whose content is still to be copied.
pub(in crate::copy) struct LargeFile {
    pub(super) source: OpenSource,
    pub(super) dest: OpenDest,
    pub(super) node: CopyNode,
    pub(super) name: Box<CStr>,
    /// Name of the backup that was made of its dest.
    pub(super) backup: Option<Box<CStr>>,
}

impl LargeFile {
    pub(super) const DESCRIPTORS: usize = 2;
}

/// Operands to begin, in order.
pub(in crate::copy) struct Operands {
    pub(super) range: Range<u32>,
    /// No other task is queued or running.
    pub(super) is_alone: bool,
}

impl Operands {
    /// Returns a task that must be pushed when no other task is queued or running.
    pub(super) fn alone(range: Range<u32>) -> Self {
        Self {
            range,
            is_alone: true,
        }
    }
}
