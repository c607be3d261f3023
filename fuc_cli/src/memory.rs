//! Ends a command with a message when memory runs out.

pub use crate::sys::Allocator;
