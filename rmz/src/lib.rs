//! The flags of `rmz` and the options that they resolve to, for commands with the same flags.

pub mod flags;
#[cfg(test)]
mod manual;
pub mod options;
mod words;
