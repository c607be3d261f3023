//! The output: the figures, their tables and plots, and the page that sums them up.

mod details;
pub(crate) mod document;
mod format;
mod libraries;
mod markers;
mod plot;
mod readme;
mod report;
mod steady;
mod store;
