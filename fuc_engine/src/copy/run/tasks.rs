//! The tasks of a copy other than listing a directory.

use std::ops::Range;

use super::part::FilePart;
use crate::copy::node::CopyDir;
use crate::copy::source::SharedSource;
use crate::copy::stored::StoredEntry;
use crate::walk::{OwnRange, OwnTask};

/// Tasks of a copy other than listing a directory.
pub(in crate::copy) enum CopyTask {
    Operands(Operands),
    Large(Box<LargeFile>),
    /// Copy a range of a file that several engines may copy together.
    Part(FilePart),
    /// Copy or link an entry that has waited for another name of its source.
    Waiter(StoredEntry),
    /// Compare copies with their sources.
    Verify(Vec<StoredEntry>),
    /// Compare the copies that were not compared before.
    VerifyRest,
}

impl OwnTask<CopyDir> for CopyTask {
    fn range(&self) -> Option<OwnRange<'_, CopyDir>> {
        match self {
            Self::Part(part) => part.for_another_engine(),
            _ => None,
        }
    }
}

/// A large file whose content is still to be copied. Its dest was not touched yet.
pub(in crate::copy) struct LargeFile {
    /// `None` if the rules about the dest are still to be applied.
    pub(super) source: Option<SharedSource>,
    pub(super) entry: StoredEntry,
    /// Room that the copy needs.
    pub(super) bytes: u64,
}

impl LargeFile {
    /// Descriptors that are open while it is queued.
    pub(super) const DESCRIPTORS: usize = 1;
}

/// Operands to begin, in order.
pub(in crate::copy) struct Operands {
    pub(super) range: Range<u32>,
    /// `true` if no other task is queued or running.
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
