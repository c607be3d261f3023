//! The engine of a rank, made as the order says.

use std::ffi::OsString;
use std::path::PathBuf;

use fuc_cli::exclude::ExcludeFilter;
use fuc_engine::distribute::Exchange;
use fuc_engine::{Cancel, CopyOp, Counts, Dest, Observer, RemoveOp, Summary, Throttle};

use crate::order::{Order, Work};

/// The engine's operation on the operands of an order.
pub(crate) struct Engine<'a> {
    operation: Operation<'a>,
    operands: &'a [OsString],
}

#[derive(Clone)]
enum Operation<'a> {
    Removal(RemoveOp<'a>),
    Copy(CopyOp<'a>, &'a Dest),
}

impl<'a> Engine<'a> {
    /// Makes the engine.
    pub(crate) fn new(order: &'a Order, filter: Option<&ExcludeFilter>, cancel: &Cancel) -> Self {
        let filter = filter.cloned();
        let operation = match &order.work {
            Work::Removal(removal) => {
                let removal = (**removal).clone().cancelled_by(cancel.clone());
                Operation::Removal(match filter {
                    Some(filter) => removal.filtered_by(filter),
                    None => removal,
                })
            }
            Work::Copy(copy, dest) => {
                let copy = (**copy).clone().cancelled_by(cancel.clone());
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

    /// Limits the speed, if there is a throttle.
    pub(crate) fn throttled_by(mut self, throttle: Option<&'a dyn Throttle>) -> Self {
        if let Some(throttle) = throttle {
            self.operation = match self.operation {
                Operation::Removal(removal) => Operation::Removal(removal.throttled_by(throttle)),
                Operation::Copy(copy, dest) => Operation::Copy(copy.throttled_by(throttle), dest),
            };
        }
        self
    }

    fn operands(&self) -> impl Iterator<Item = PathBuf> {
        self.operands.iter().map(PathBuf::from)
    }

    /// Begins the operands, and works on what is below them.
    pub(crate) fn lead(&self, observer: &dyn Observer, exchange: &dyn Exchange) -> Summary {
        match self.operation.clone() {
            Operation::Removal(removal) => removal.leading(exchange).run(self.operands(), observer),
            Operation::Copy(copy, dest) => {
                copy.leading(exchange).run(self.operands(), dest, observer)
            }
        }
    }

    /// Works on what other engines give.
    pub(crate) fn assist(&self, observer: &dyn Observer, exchange: &dyn Exchange) -> Summary {
        match self.operation.clone() {
            Operation::Removal(removal) => {
                removal.assisting(exchange).run(self.operands(), observer)
            }
            Operation::Copy(copy, dest) => {
                copy.assisting(exchange)
                    .run(self.operands(), dest, observer)
            }
        }
    }

    /// Counts what there is to do. Returns `true` if everything was counted.
    pub(crate) fn count(&self, counts: &Counts) -> bool {
        match &self.operation {
            Operation::Removal(removal) => removal.count(self.operands(), counts),
            Operation::Copy(copy, _) => copy.count(self.operands(), counts),
        }
    }
}
