//! The flags of `cpz`, the options that they resolve to, and the copy that they ask for. Commands with the same
//! flags share them.
//!
//! `flags` holds the table of flags, `words` the words of their values. `options` resolves the flags,
//! with `preserve` for attributes and `rules` for existing dests. `request` completes them and takes the sources and,
//! by `target`, the dest from the operands.

pub mod flags;
pub mod options;
mod preserve;
pub mod request;
mod rules;
mod target;
mod words;
