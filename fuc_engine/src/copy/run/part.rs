//! A range of a large file that several engines copy together, as a task. [`dividing`](super::dividing) runs it.

use std::ffi::CStr;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use crate::copy::attributes::AttributeError;
use crate::copy::content::ContentError;
use crate::copy::node::CopyDir;
use crate::copy::source::SharedSource;
use crate::copy::stored::StoredEntry;
use crate::sys::SharedFd;
use crate::walk::OwnRange;

/// A file whose ranges are copied.
pub(in crate::copy) struct DividedFile {
    pub(super) entry: StoredEntry,
    pub(super) source: SharedSource,
    pub(super) dest: SharedFd,
    /// The name of the dest until it is complete.
    pub(super) hidden_name: Box<CStr>,
    pub(super) dest_inode: u64,
    /// Says whether the dest has got its SELinux context.
    pub(super) labelled: Result<(), AttributeError>,
    pub(super) keeps_holes: bool,
    /// Room that the copy needs.
    pub(super) bytes: u64,
    /// The first reason why a range was not copied.
    pub(super) failure: OnceLock<ContentError>,
    /// The source has ended before its size.
    pub(super) is_short: AtomicBool,
}

impl DividedFile {
    /// Descriptors that are open while ranges are queued.
    pub(super) const DESCRIPTORS: usize = 2;
}

/// A range of a file that several engines may copy together.
pub(in crate::copy) struct FilePart {
    pub(super) file: Arc<DividedFile>,
    pub(super) content: Range<u64>,
    /// `true` if another engine was not able to copy the range.
    pub(super) stays: bool,
}

impl FilePart {
    pub(super) fn for_another_engine(&self) -> Option<OwnRange<'_, CopyDir>> {
        let file = &*self.file;
        let parent = file.entry.node.as_ref().filter(|_| !self.stays)?;
        Some(OwnRange {
            parent,
            name: &file.entry.name,
            source_inode: file.source.stat.st_ino,
            dest_name: &file.hidden_name,
            dest_inode: file.dest_inode,
            content: self.content.clone(),
        })
    }
}
