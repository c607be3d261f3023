//! Work that goes on after the command has ended.

pub use crate::sys::{lower_priority, spawn_background as spawn};
