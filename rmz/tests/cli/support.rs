//! The comparison that most tests begin with.

use testkit::run::Pair;

pub(crate) const RMZ: &str = env!("CARGO_BIN_EXE_rmz");

pub(crate) const RM: Pair = Pair::new(RMZ, "rm");
