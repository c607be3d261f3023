//! A range of a file that one engine gives to another.

use std::ffi::CStr;
use std::ops::Range;

use super::bytes::{take, take_names};

/// A range of one file that is copied by several engines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileRange {
    /// The inode number of the source.
    pub(crate) source_inode: u64,
    /// The name of the incomplete dest, in the parent.
    pub(crate) dest_name: Box<CStr>,
    /// The inode number of the incomplete dest.
    pub(crate) dest_inode: u64,
    /// Positions of the content. The range is not empty.
    pub(crate) content: Range<u64>,
}

impl FileRange {
    pub(super) fn encode(&self, bytes: &mut Vec<u8>) {
        let Range { start, end } = self.content;
        for number in [self.source_inode, self.dest_inode, start, end] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&1_u32.to_le_bytes());
        bytes.extend_from_slice(self.dest_name.to_bytes_with_nul());
    }

    pub(super) fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let mut number = || Some(u64::from_le_bytes(take(bytes)?));
        let (source_inode, dest_inode) = (number()?, number()?);
        let content = number()?..number()?;
        let [dest_name] = <[_; 1]>::try_from(take_names(bytes)?).ok()?;
        (!content.is_empty()).then_some(Self {
            source_inode,
            dest_name,
            dest_inode,
            content,
        })
    }
}
