//! The engine of a rank, made as the order says.

use std::ffi::OsString;
use std::sync::Arc;

use fuc_cli::exclude::ExcludeFilter;
use fuc_engine::distribute::Exchange;
use fuc_engine::{Cancel, CopyOp, Counts, Dest, Observer, RemoveOp, Summary};

use crate::order::{Order, Work};

/// The engine's operation on the operands of an order.
pub(crate) struct Engine<'a> {
    operation: Operation<'a>,
    operands: &'a [OsString],
}

enum Operation<'a> {
    Removal(RemoveOp),
    Copy(CopyOp, &'a Dest),
}

impl<'a> Engine<'a> {
    /// Makes the engine.
    pub(crate) fn new(order: &'a Order, filter: Option<&ExcludeFilter>, cancel: &Cancel) -> Self {
        let filter = filter.map(|filter| Arc::new(filter.clone()));
        let operation = match &order.work {
            Work::Removal(options) => {
                let removal = RemoveOp::with_options((**options).clone()).cancelled_by(cancel);
                Operation::Removal(match filter {
                    Some(filter) => removal.filtered_by(filter),
                    None => removal,
                })
            }
            Work::Copy(options, dest) => {
                let copy = CopyOp::with_options((**options).clone()).cancelled_by(cancel);
                let copy = match filter {
                    Some(filter) => copy.filtered_by(filter),
                    None => copy,
                };
                Operation::Copy(copy, dest)
            }
        };
        Self {
            operation,
            operands: &order.operands,
        }
    }

    /// Begins the operands, and works on what is below them.
    pub(crate) fn lead(&self, observer: &dyn Observer, exchange: &dyn Exchange) -> Summary {
        match &self.operation {
            Operation::Removal(removal) => removal.lead(self.operands, observer, exchange),
            Operation::Copy(copy, dest) => copy.lead(self.operands, dest, observer, exchange),
        }
    }

    /// Works on what other engines give.
    pub(crate) fn assist(&self, observer: &dyn Observer, exchange: &dyn Exchange) -> Summary {
        match &self.operation {
            Operation::Removal(removal) => removal.assist(self.operands, observer, exchange),
            Operation::Copy(copy, dest) => copy.assist(self.operands, dest, observer, exchange),
        }
    }

    /// Counts what there is to do. Returns `true` if everything was counted.
    pub(crate) fn count(&self, counts: &Counts) -> bool {
        match &self.operation {
            Operation::Removal(removal) => removal.count(self.operands, counts),
            Operation::Copy(copy, _) => copy.count(self.operands, counts),
        }
    }
}
