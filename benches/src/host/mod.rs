//! The host: its programs, signals, hardware and terminal.

pub(crate) mod command;
pub(crate) mod interrupt;
pub(crate) mod machine;
pub(crate) mod progress;
