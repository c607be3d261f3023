//! The token by which SIGINT, SIGTERM and SIGHUP cancel a run.

pub use crate::sys::cancel_on_signals;
