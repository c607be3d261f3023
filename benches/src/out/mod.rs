//! What is written: tables, plots, and the document that holds them.

pub(crate) mod document;
mod markers;
mod plot;
mod report;
