//! The comparison that most tests begin with.

use std::path::Path;

use testkit::run::{Pair, Run, Words};

/// The command, or another build of it if this variable was set when the tests were built.
pub(crate) const RMZ: &str = match option_env!("FUC_RMZ") {
    Some(path) => path,
    None => env!("CARGO_BIN_EXE_rmz"),
};

pub(crate) const RM: Pair = Pair::new(RMZ, "rm");

/// Returns a run of rmz in `dir`.
pub(crate) fn rmz(dir: impl AsRef<Path>, args: impl Words) -> Run {
    Run::new(RMZ).words(args).current_dir(dir)
}
