//! The engine of a rank, made as the order says.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use fuc_cli::exclude::ExcludeFilter;
use fuc_engine::distribute::Role;
use fuc_engine::{Cancel, Counts, Observer, Summary};

use crate::line::Line;
use crate::order::{Order, Work};
use crate::pace::Pace;

/// The engine's operation on the operands of an order.
pub(crate) struct Engine<'a> {
    work: Work<'a>,
    operands: &'a [OsString],
}

impl<'a> Engine<'a> {
    /// Makes the engine. It keeps to `pace`, if there is one.
    pub(crate) fn new(
        order: &'a Order,
        filter: Option<&ExcludeFilter>,
        cancel: &Cancel,
        pace: Option<&'a Pace>,
    ) -> Self {
        let work = match order.work.clone() {
            Work::Removal(removal) => {
                let mut removal = removal.cancelled_by(cancel.clone());
                if let Some(filter) = filter {
                    removal = removal.filtered_by(filter.clone());
                }
                if let Some(pace) = pace {
                    removal = removal.throttled_by(pace);
                }
                Work::Removal(Box::new(removal))
            }
            Work::Copy(copy, dest) => {
                let mut copy = copy.cancelled_by(cancel.clone());
                if let Some(filter) = filter {
                    copy = copy.filtered_by(filter.clone());
                }
                if let Some(pace) = pace {
                    copy = copy.throttled_by(pace);
                }
                Work::Copy(Box::new(copy), dest)
            }
        };
        Self {
            work,
            operands: &order.operands,
        }
    }

    fn operands(&self) -> impl Iterator<Item = PathBuf> {
        self.operands.iter().map(PathBuf::from)
    }

    /// Takes its part in the run of all engines.
    pub(crate) fn run(&self, role: Role, observer: &dyn Observer, line: &Line) -> Summary {
        match self.work.clone() {
            Work::Removal(removal) => {
                let removal = removal.shared_by(line, role);
                removal.run(self.operands(), observer)
            }
            Work::Copy(copy, dest) => {
                let copy = copy.shared_by(line, role);
                copy.run(self.operands(), &dest, observer)
            }
        }
    }

    /// Counts what there is to do. Returns `true` if everything was counted.
    pub(crate) fn count(&self, counts: &Arc<Counts>) -> bool {
        match &self.work {
            Work::Removal(removal) => removal.count(self.operands(), counts),
            Work::Copy(copy, _) => copy.count(self.operands(), counts),
        }
    }
}
