//! The engine of a rank, made as the order says.

use std::ffi::OsString;
use std::path::PathBuf;

use fuc_cli::exclude::ExcludeFilter;
use fuc_engine::distribute::Role;
use fuc_engine::{Cancel, CopyOp, Counts, Dest, Observer, RemoveOp, Summary};

use crate::line::Line;
use crate::order::{Order, Work};
use crate::pace::Pace;

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
    /// Makes the engine. It keeps to `pace`, if there is one.
    pub(crate) fn new(
        order: &'a Order,
        filter: Option<&ExcludeFilter>,
        cancel: &Cancel,
        pace: Option<&'a Pace>,
    ) -> Self {
        let operation = match &order.work {
            Work::Removal(removal) => {
                let mut removal = (**removal).clone().cancelled_by(cancel.clone());
                if let Some(filter) = filter {
                    removal = removal.filtered_by(filter.clone());
                }
                if let Some(pace) = pace {
                    removal = removal.throttled_by(pace);
                }
                Operation::Removal(removal)
            }
            Work::Copy(copy, dest) => {
                let mut copy = (**copy).clone().cancelled_by(cancel.clone());
                if let Some(filter) = filter {
                    copy = copy.filtered_by(filter.clone());
                }
                if let Some(pace) = pace {
                    copy = copy.throttled_by(pace);
                }
                Operation::Copy(copy, dest)
            }
        };
        Self {
            operation,
            operands: &order.operands,
        }
    }

    fn operands(&self) -> impl Iterator<Item = PathBuf> {
        self.operands.iter().map(PathBuf::from)
    }

    /// Takes its part in the run of all engines.
    pub(crate) fn run(&self, role: Role, observer: &dyn Observer, line: &Line) -> Summary {
        match self.operation.clone() {
            Operation::Removal(removal) => {
                let removal = removal.shared_by(line, role);
                removal.run(self.operands(), observer)
            }
            Operation::Copy(copy, dest) => {
                let copy = copy.shared_by(line, role);
                copy.run(self.operands(), dest, observer)
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
