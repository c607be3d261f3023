//! The comparison that most tests begin with, and helpers for tests of cpz alone.

use std::path::Path;

use testkit::run::{Outcome, Pair, Run, Status};

/// The command, or another build of it if this variable was set when the tests were built.
pub(crate) const CPZ: &str = match option_env!("FUC_CPZ") {
    Some(path) => path,
    None => env!("CARGO_BIN_EXE_cpz"),
};

pub(crate) const CP: Pair = Pair::new(CPZ, "cp");

/// Compares only with the newest release, because older ones behave differently.
pub(crate) const NEWEST_CP: Pair = CP.only_newest();

/// Asserts that cpz, run in `dir`, succeeds and prints nothing.
#[track_caller]
pub(crate) fn succeeds(dir: impl AsRef<Path>, args: &[&str]) {
    let outcome = Run::new(CPZ).args(args).current_dir(dir).output();
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    assert!(
        outcome.stdout.is_empty() && outcome.stderr.is_empty(),
        "{outcome}"
    );
}

/// Returns the stderr of cpz, as if it had been called by its bare name.
pub(crate) fn complaint(outcome: &Outcome) -> String {
    outcome.stderr_text().replace(CPZ, "cpz")
}
