//! The output: the tables, the plot, and the pages that they are in.

mod format;
pub(crate) mod pages;
mod plot;
mod readme;
pub(crate) mod tables;
