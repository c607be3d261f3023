//! What is measured: the cells, and the commands that compete in them.

pub(crate) mod cells;
pub(crate) mod peers;
pub(crate) mod select;
