//! The machine and its programs: what the runner needs of its host, whatever it measures.

pub(crate) mod command;
pub(crate) mod interrupt;
pub(crate) mod machine;
pub(crate) mod progress;
