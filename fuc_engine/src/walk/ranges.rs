//! Tasks of a visitor that copy a range of a large file, which another engine may do.
//!
//! A thief may give a range that it has not begun to a third engine. So all engines get ranges of a file, although only
//! one of them has cut it.

use std::ffi::CStr;
use std::ops::Range;
use std::sync::Arc;

use crate::distribute::FileRange;
use crate::node::{Dir, Node};

/// A task of a visitor.
pub(crate) trait OwnTask<D: Dir>: Send {
    /// Returns the range of a file that the task copies, if another engine may do that.
    fn range(&self) -> Option<OwnRange<'_, D>> {
        None
    }
}

/// The tasks of a removal, and of a look-ahead.
impl<D: Dir> OwnTask<D> for Range<u32> {}

/// A range of a file that a task copies.
pub(crate) struct OwnRange<'t, D: Dir> {
    /// The directory of the file.
    pub(crate) parent: &'t Arc<Node<D>>,
    pub(crate) name: &'t CStr,
    pub(crate) source_inode: u64,
    /// The name of the incomplete dest, in the directory.
    pub(crate) dest_name: &'t CStr,
    pub(crate) dest_inode: u64,
    pub(crate) content: Range<u64>,
}

impl<D: Dir> OwnRange<'_, D> {
    pub(super) fn file_range(&self) -> FileRange {
        FileRange {
            source_inode: self.source_inode,
            dest_name: self.dest_name.into(),
            dest_inode: self.dest_inode,
            content: self.content.clone(),
        }
    }
}
