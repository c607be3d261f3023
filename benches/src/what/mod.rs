//! The subject of a run: the cells, and the commands that compete in them.

pub(crate) mod cell;
pub(crate) mod cells;
pub(crate) mod peers;
