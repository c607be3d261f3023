//! The process-wide state that a command reads and changes, and every `unsafe` block of this crate.
//!
//! The engine changes none of this state: it belongs to a command's `main`.
//!
//! | file | content |
//! |---|---|
//! | `startup` | `main`, its arguments, and closed standard streams; the start of another program |
//! | `locale` | which answers mean yes in the user's language, and which characters can be shown |
//! | `background` | a process that goes on after the command has ended |
//! | `interrupt` | the signals that cancel a run, and the one that asks for its status |
//! | `memory` | the end of a command when memory runs out |
//! | `limits` | the limit on open descriptors |
//! | `tables` | the descriptor tables of the engine's threads |
#![allow(unsafe_code)]

mod background;
mod interrupt;
mod limits;
mod locale;
mod memory;
mod startup;
mod tables;

pub use background::{lower_priority, spawn_background};
pub use interrupt::cancel_on_signals;
pub(crate) use interrupt::{end_by, on_status_request, received_signal, set_last_line};
pub use limits::raise_descriptor_limit;
pub(crate) use locale::{is_affirmative, is_printable};
pub use memory::Allocator;
pub use startup::{arguments, begin};
pub(crate) use startup::{execute, was_closed};
pub use tables::private_tables;
