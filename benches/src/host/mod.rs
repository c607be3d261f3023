//! The host: its programs, signals and hardware.

pub(crate) mod command;
pub(crate) mod interrupt;
pub(crate) mod machine;
