//! The comparison that most tests begin with, and helpers for tests of cpz alone.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path, thread, time::Duration};

use testkit::{
    probe::{Fs, LoopMount, Skip},
    run::{Outcome, Pair, Run, Status, Words},
};

/// The command, or another build of it if this variable was set when the tests were built.
pub(crate) const CPZ: &str = match option_env!("FUC_CPZ") {
    Some(path) => path,
    None => env!("CARGO_BIN_EXE_cpz"),
};

pub(crate) const CP: Pair = Pair::new(CPZ, "cp");

/// Returns a run of cpz in `dir`.
pub(crate) fn cpz(dir: impl AsRef<Path>, args: impl Words) -> Run {
    Run::new(CPZ).words(args).current_dir(dir)
}

/// Compares only with the newest release, because older ones behave differently.
pub(crate) const NEWEST_CP: Pair = CP.only_newest();

/// Asserts that cpz, run in `dir`, succeeds and prints nothing.
#[track_caller]
pub(crate) fn succeeds(dir: impl AsRef<Path>, args: impl Words) {
    let outcome = cpz(dir, args).output();
    outcome.assert_status(0);
    assert!(
        outcome.stdout.is_empty() && outcome.stderr.is_empty(),
        "{outcome}"
    );
}

/// Returns the stderr of cpz, as if it had been called by its bare name.
pub(crate) fn complaint(outcome: &Outcome) -> String {
    outcome.stderr_text().replace(CPZ, "cpz")
}

/// Returns the number of a file, or of a link itself.
pub(crate) fn inode(path: impl AsRef<Path>) -> u64 {
    fs::symlink_metadata(path).unwrap().ino()
}

/// Returns a filesystem with room for 500 entries.
pub(crate) fn with_few_inodes() -> Result<LoopMount, Skip> {
    let mount = LoopMount::new(Fs::Tmpfs, 1)?;
    let remount = Run::new("mount").words("-o remount,nr_inodes=500");
    let remounted = remount.arg(mount.path()).output();
    match remounted.status {
        Status::Exit(0) => Ok(mount),
        _ => Err(Skip(format!("no limit of inodes: {remounted}"))),
    }
}

/// Returns a command that runs as if the kernel had been started within the last second.
pub(crate) fn after_boot(command: &str) -> Result<Run, Skip> {
    let uptime = fs::read_to_string("/proc/uptime").expect("/proc is mounted");
    let (seconds, _) = uptime.split_once('.').expect("a fraction");
    let run = Run::new("unshare").args(["--time", &format!("--boottime=-{seconds}")]);
    match run.clone().arg("true").output().status {
        Status::Exit(0) => Ok(run.arg(command)),
        _ => Err(Skip("this user cannot unshare the boot time".to_owned())),
    }
}

/// Waits until the times of all files are before the boot that [`after_boot`] pretends.
pub(crate) fn wait_for_boot() {
    thread::sleep(Duration::from_millis(1100));
}
