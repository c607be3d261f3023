//! Finds out what the machine can do. A test that can't run here returns, and is counted with its reason: it neither
//! fails nor passes silently.
//!
//! ```no_run
//! use testkit::{or_skip, probe::{self, Fs, LoopMount}, skip};
//!
//! fn keeps_ownership() {
//!     if !probe::is_root() {
//!         skip!("only root can give files away");
//!     }
//!     let xfs = or_skip!(LoopMount::new(Fs::Xfs, 512));
//!     // ...
//! }
//! ```

use std::{
    collections::BTreeMap,
    env,
    ffi::OsStr,
    fs::{self, File},
    io::{self, Write as _},
    path::PathBuf,
    process::Command,
    sync::{Mutex, PoisonError},
};

use rustix::{
    fs::{Access, access},
    process::geteuid,
};

use crate::{sys::at_exit, util::write_note};

pub use fuser::FileType;
pub use rustix::io::Errno;

pub use crate::tree::{supports_acls, supports_xattrs};

pub use fuse::{FuseMount, Habits, Names, Numbering, Removal};
pub use gnu::{gnu, newest_gnu};
pub use mount::{Fs, LoopMount, Mounted};
pub use overlay::{Layers, Overlay};
pub use power::{FailingDisk, Others, Recording};
pub use program::Program;

mod fuse;
mod gnu;
mod mount;
mod overlay;
mod power;
mod program;

/// Id of an ordinary user, and of a group, that own nothing.
pub const NOBODY: u32 = 65534;

/// The reason why a test can't run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip(pub String);

/// How often tests of this process were skipped, by the reason.
static SKIPPED: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

impl Skip {
    /// Counts a skip. When the process ends, one line on stderr has the number and all reasons. If `FUC_SKIPS` names a file,
    /// each skip is a line of that file instead.
    ///
    /// # Panics
    /// If that file can't be written.
    pub fn announce(&self) {
        if let Some(path) = env::var_os("FUC_SKIPS") {
            let opened = File::options().append(true).create(true).open(path);
            let line = format!("SKIP: {}", self.0);
            let written = opened.and_then(|file| write_note(&file, &line));
            return written.expect("FUC_SKIPS is a file that can be written");
        }
        let mut skipped = SKIPPED.lock().unwrap_or_else(PoisonError::into_inner);
        if skipped.is_empty() {
            at_exit(report_skips);
        }
        *skipped.entry(self.0.clone()).or_default() += 1;
    }
}

/// Prints how many tests were skipped, and why.
extern "C" fn report_skips() {
    let skipped = SKIPPED.lock().unwrap_or_else(PoisonError::into_inner);
    let number: usize = skipped.values().sum();
    let reasons = skipped
        .iter()
        .map(|(reason, number)| format!("{reason} ({number})"));
    let reasons: Vec<String> = reasons.collect();
    // A closed stderr is not worth a failed test.
    let _ = writeln!(
        io::stderr(),
        "SKIP: {number} tests or parts of tests: {}",
        reasons.join(", ")
    );
}

/// Skips the test for a reason, which is formatted as by `format!`.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)+) => {{
        $crate::probe::Skip(format!($($reason)+)).announce();
        return;
    }};
}

/// Unwraps a `Result<_, Skip>`, or skips the test.
#[macro_export]
macro_rules! or_skip {
    ($probed:expr) => {
        match $probed {
            Ok(value) => value,
            Err(skip) => {
                $crate::probe::Skip::announce(&skip);
                return;
            }
        }
    };
}

/// Skips the test unless it runs as root, if that is asked for, and all these programs are installed:
/// `needs!(root, "strace")`.
#[macro_export]
macro_rules! needs {
    (root $(, $program:literal)*) => {
        if !$crate::probe::is_root() {
            $crate::skip!("only root can do this");
        }
        $crate::needs!($($program),*);
    };
    ($($program:literal),*) => {$(
        if !$crate::probe::has_program($program) {
            $crate::skip!("there is no {}", $program);
        }
    )*};
}

/// Returns [`Habits`], of which these are bad: `habits!(numbering: Numbering::Fresh)`.
#[macro_export]
macro_rules! habits {
    ($($habit:ident $(: $value:expr)?),* $(,)?) => {
        $crate::probe::Habits { $($habit $(: $value)?,)* ..Default::default() }
    };
}

/// Mounts a filesystem with such habits, or skips the test.
#[macro_export]
macro_rules! served {
    ($($habit:tt)*) => {
        $crate::or_skip!($crate::probe::FuseMount::with($crate::habits!($($habit)*)))
    };
}

/// Returns `true` if the process runs as root.
#[must_use]
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Returns `true` if the program `name` is installed.
#[must_use]
pub fn has_program(name: &str) -> bool {
    need_program(name).is_ok()
}

/// Returns the path of the program `name`.
///
/// # Errors
/// If it is not installed.
pub(crate) fn need_program(name: &str) -> Result<PathBuf, Skip> {
    // A user's PATH often lacks the directories of programs that make and mount filesystems.
    let extra = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let dirs = env::var_os("PATH").unwrap_or_default();
    find_program(name, env::split_paths(&dirs).chain(extra))
        .ok_or_else(|| Skip(format!("there is no {name}")))
}

/// Returns the path of the program `name` in the first of the directories that have one.
pub fn find_program(name: &str, dirs: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    let mut files = dirs.into_iter().map(|dir| dir.join(name));
    files.find(|file| file.is_file() && access(file, Access::EXEC_OK).is_ok())
}

/// Runs a program to its end.
///
/// # Errors
/// If it is not installed, or fails.
pub(crate) fn run<'a>(
    program: &str,
    args: impl IntoIterator<Item = &'a OsStr>,
) -> Result<(), Skip> {
    match Command::new(need_program(program)?).args(args).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let complaint = String::from_utf8_lossy(&output.stderr);
            Err(Skip(format!("{program} refuses: {}", complaint.trim())))
        }
        Err(e) => Err(Skip(format!("{program} does not run: {e}"))),
    }
}

fn need_root(what: &str) -> Result<(), Skip> {
    match is_root() {
        true => Ok(()),
        false => Err(Skip(format!("mounting {what} takes root"))),
    }
}

/// Returns `true` if the kernel surely has the system calls of Linux `major.minor`: it is new enough, and no seccomp
/// filter is active that could refuse them.
#[must_use]
pub fn has_calls_of(major: u32, minor: u32) -> bool {
    let unfiltered = fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        let mut lines = status.lines();
        !lines.any(|line| line.starts_with("Seccomp:") && !line.ends_with('0'))
    });
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    unfiltered && version(&release) >= (major, minor)
}

fn version(release: &str) -> (u32, u32) {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|number| number.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_or_not() {
        assert!(has_program("sh"));
        assert!(!has_program("no-such-program"));
        assert!(!has_program("."));
        let dirs = ["/nonexistent", "/bin"].map(PathBuf::from);
        assert_eq!(find_program("sh", dirs), Some("/bin/sh".into()));
    }

    #[test]
    fn releases_are_compared() {
        assert_eq!(version("6.13.0-rc1-custom\n"), (6, 13));
        assert_eq!(version("6.6-x"), (6, 6));
        assert!(version("5.15.0") < (6, 6) && (6, 6) < version("10.0.1"));
        assert_eq!(version(""), (0, 0));
    }

    #[test]
    fn or_skip_returns_early() {
        fn unwrapped(probed: Result<u8, Skip>, seen: &mut Option<u8>) {
            *seen = Some(or_skip!(probed));
        }
        let mut seen = None;
        unwrapped(Err(Skip("this is a test of skipping".into())), &mut seen);
        assert_eq!(seen, None);
        unwrapped(Ok(3), &mut seen);
        assert_eq!(seen, Some(3));
    }
}
