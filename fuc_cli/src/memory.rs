//! What a command does when memory runs out.

pub use crate::sys::Allocator;
