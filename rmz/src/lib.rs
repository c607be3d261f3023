//! The flags of `rmz`, the options that they resolve to, and the removal that they ask for. Commands with the same
//! flags share them.

pub mod flags;
pub mod options;
pub mod request;
mod words;
