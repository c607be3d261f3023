//! Hides operands, and hands them over to the background process.
//!
//! Operands take effect in their order. Those that are not hidden are collected, and removed in the foreground
//! before the next one is hidden.

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{self, Path, PathBuf};
use std::rc::Rc;

use fuc_cli::console::Console;
use fuc_cli::outcome::Outcome;
use fuc_cli::progress::Watch;
use fuc_cli::reporter::{Reporter, Verbosity};
use fuc_cli::sys;
use fuc_cli::tool::Tool;
use fuc_engine::{Ask, Cancel, Execution, Observer, RemoveOp, Summary};
use rustix::fs::{AtFlags, CWD, FileType, OFlags, fstat, statat};
use rustix::io::Errno;

use super::container::{Container, FileId, InUse, open};
use super::daemon::DaemonHandle;
use super::leftover;
use super::log::Log;
use super::reap::Reaping;
use rmz::options::Options;

/// Hides the operands that are directories, and removes all others. Returns when no operand has its name any more,
/// except for those that could not be removed.
pub(crate) fn detach(
    options: Options,
    operands: Vec<OsString>,
    watch: Option<Watch>,
    console: &Console,
) -> Outcome {
    // A log that cannot be opened is an error before anything has changed.
    let log = match Log::from_environment(console.charset()) {
        Ok(log) => log,
        Err(diagnostic) => {
            console.error(diagnostic);
            return Outcome::Incomplete;
        }
    };
    let mut engine = options.engine;
    // A process without a terminal cannot ask, so no write-protected file is asked about, wherever it is.
    engine.ask = Ask::Never;
    let cancel = sys::cancel_on_signals();
    // A process can be started only before there are other threads, such as one that draws progress.
    let daemon = match operands.iter().any(|operand| is_directory(operand)) {
        true => DaemonHandle::start(&log, &engine, &cancel).ok(),
        false => None,
    };
    let reporter = Reporter::new(console, Tool::Remove, options.common.verbosity);
    let summary = reporter.run(
        watch,
        |reporter| {
            let hiding = Hiding {
                console,
                reporter,
                waits: options.waits,
                removal: engine.cancelled_by(cancel.clone()),
                cancel,
                daemon,
                summary: Summary::default(),
                pending: Vec::new(),
                current: None,
                hidden: Vec::new(),
            };
            hiding.run(operands)
        },
        None,
    );
    Outcome::of(summary, Execution::Real)
}

/// The state of a run with `--detach`.
struct Hiding<'a> {
    console: &'a Console,
    reporter: &'a Reporter<'a>,
    /// `true` if the command ends after the background process.
    waits: bool,
    /// Removes operands in the foreground.
    removal: RemoveOp<'static>,
    cancel: Cancel,
    /// The background process. Without it, nothing is hidden.
    daemon: Option<DaemonHandle>,
    /// The totals in the foreground. A directory that is hidden counts as one entry.
    summary: Summary,
    /// Operands to remove in the foreground.
    pending: Vec<PathBuf>,
    /// The container of the operand that was hidden last.
    current: Option<CurrentContainer>,
    /// The paths of all containers with entries.
    hidden: Vec<PathBuf>,
}

/// A container that is being filled.
struct CurrentContainer {
    container: Container,
    /// The identity of the directory that contains it.
    place: FileId,
}

impl Hiding<'_> {
    fn run(mut self, operands: Vec<OsString>) -> Summary {
        for operand in operands {
            if self.cancel.is_cancelled() {
                self.summary.cancelled = true;
                break;
            }
            self.hide_or_collect(operand);
        }
        self.remove_collected();
        self.finish()
    }

    fn hide_or_collect(&mut self, operand: OsString) {
        if is_directory(&operand) {
            self.remove_collected();
            if self.hide(&operand).is_ok() {
                return;
            }
            // Whatever the reason is, the removal reports it if it matters there.
        }
        self.pending.push(operand.into());
    }

    fn hide(&mut self, operand: &OsStr) -> Result<(), Errno> {
        // A signal may have come while operands before this one were removed.
        if self.cancel.is_cancelled() {
            return Err(Errno::INTR);
        }
        let (directory, name) = split(operand).ok_or(Errno::INVAL)?;
        let daemon = self.daemon.as_mut().ok_or(Errno::SRCH)?;
        let place = open_place(directory)?;
        let place_id = FileId::of(&fstat(&place)?);
        let entry = FileId::of(&statat(&place, name, AtFlags::SYMLINK_NOFOLLOW)?);
        if self.removal.preserve_mount_points && !entry.shares_device_with(place_id) {
            return Err(Errno::XDEV);
        }
        match &self.current {
            Some(current) if current.place == place_id => {
                take(&current.container, daemon, name, entry)?;
            }
            _ => {
                // Its descriptors are closed before there are new ones.
                self.current = None;
                let container = Container::create(Rc::new(place))?;
                let path = path_of(&container, directory);
                let moved = daemon
                    .hand_over(&container, &path)
                    .and_then(|()| take(&container, daemon, name, entry));
                if let Err(errno) = moved {
                    // It is empty. If this fails, `--reap` removes it.
                    let _ = container.remove();
                    return Err(errno);
                }
                self.hidden.push(path);
                let place = place_id;
                self.current = Some(CurrentContainer { container, place });
            }
        }
        self.summary.entries += 1;
        self.summary.directories += 1;
        self.print(directory, name);
        Ok(())
    }

    /// Prints that an operand was moved to the current container.
    fn print(&self, directory: &OsStr, name: &OsStr) {
        if self.reporter.wants_events()
            && let Some(current) = &self.current
        {
            let directory = Path::new(directory);
            let container = OsStr::from_bytes(current.container.name().to_bytes());
            let to = directory.join(container).join(name);
            let [from, to] = [directory.join(name), to].map(|path| self.console.quoted(path));
            let line = format!("renamed {from} -> {to}\n");
            self.console.print(&[line.as_bytes()]);
        }
    }

    /// Removes the collected operands in the foreground.
    fn remove_collected(&mut self) {
        if !self.pending.is_empty() {
            let pending = std::mem::take(&mut self.pending);
            self.summary += self.removal.run(pending, self.reporter);
        }
    }

    /// Lets the background process begin. If it has ended already, reports what stays.
    fn finish(mut self) -> Summary {
        let is_received = self.daemon.take().is_none_or(DaemonHandle::confirm);
        if self.hidden.is_empty() {
        } else if !is_received {
            for path in &self.hidden {
                self.console.error(leftover(path, self.console.charset()));
                self.summary.failures += 1;
            }
        } else if self.waits {
            self.wait();
        } else if self.console.stderr_is_terminal() {
            self.console.error(self.hint());
        }
        self.summary
    }

    /// Waits for the background process, and tries again to remove what it could not remove.
    fn wait(&mut self) {
        // It shares the lock with the background process, and would keep it.
        self.current = None;
        let mut removal = self.removal.clone();
        removal.ignore_missing = true;
        let mut reaping = Reaping {
            console: self.console,
            reporter: self.reporter,
            verbosity: Verbosity::Quiet,
            in_use: InUse::Await,
            removal,
            summary: Summary::default(),
        };
        for path in &self.hidden {
            let (directory, name) = split(path.as_os_str()).expect("BUG: a container has a name");
            let name = CString::new(name.as_bytes()).expect("BUG: a NUL in a name");
            // If it is gone, so is the container.
            if let Ok(place) = open_place(directory) {
                reaping.reap_name(&Rc::new(place), &name, Path::new(directory));
            }
        }
        self.summary += reaping.summary;
    }

    /// Returns the line about what goes on in the background.
    fn hint(&self) -> String {
        let place = match &self.hidden[..] {
            [path] => path.parent().map(|place| self.console.quoted(place)),
            _ => None,
        };
        format!(
            "hidden directories: {}, which are removed in the background; to wait: rmz --reap --wait {}",
            self.summary.directories,
            place.as_deref().unwrap_or("DIR")
        )
    }
}

/// Moves the entry `name` of the directory that contains the container into it. `id` is the identity of the entry.
///
/// The entry is announced before it is moved. If another process has replaced it just before, the one that was moved
/// instead is announced, too.
fn take(
    container: &Container,
    daemon: &DaemonHandle,
    name: &OsStr,
    id: FileId,
) -> Result<(), Errno> {
    daemon.announce(name, id)?;
    container.take(name)?;
    if let Ok(moved) = container.look(name)
        && moved != id
    {
        // If this fails, the daemon has ended, which is reported in the end.
        let _ = daemon.announce(name, moved);
    }
    Ok(())
}

fn open_place(directory: &OsStr) -> Result<OwnedFd, Errno> {
    open(CWD, or_dot(directory), OFlags::PATH)
}

/// Returns the absolute path of a container in `directory`: in a log, a relative path would say nothing. It stays
/// relative if the working directory was removed.
fn path_of(container: &Container, directory: &OsStr) -> PathBuf {
    let directory = Path::new(or_dot(directory));
    let directory = path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    directory.join(OsStr::from_bytes(container.name().to_bytes()))
}

/// Returns the directory part of an operand as a path.
fn or_dot(directory: &OsStr) -> &OsStr {
    match directory.is_empty() {
        true => OsStr::new("."),
        false => directory,
    }
}

/// Splits an operand into its directory part and its name. Slashes at its end are dropped. Returns `None` if it ends
/// in `.` or `..`, or has no name.
fn split(operand: &OsStr) -> Option<(&OsStr, &OsStr)> {
    let bytes = operand.as_bytes();
    let end = bytes.iter().rposition(|&byte| byte != b'/')? + 1;
    let trimmed = &bytes[..end];
    let slash = trimmed.iter().rposition(|&byte| byte == b'/');
    let (directory, name) = trimmed.split_at(slash.map_or(0, |slash| slash + 1));
    let is_dots = matches!(name, b"." | b"..");
    (!is_dots).then(|| (OsStr::from_bytes(directory), OsStr::from_bytes(name)))
}

/// Returns `true` if the operand has a name, and is a directory and not a link to one.
fn is_directory(operand: &OsStr) -> bool {
    let Some((directory, name)) = split(operand) else {
        return false;
    };
    let path = Path::new(directory).join(name);
    statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operand_has_a_directory_and_a_name() {
        let parts = |operand: &'static str| {
            let (directory, name) = split(OsStr::new(operand))?;
            Some((directory.to_str()?, name.to_str()?))
        };
        assert_eq!(parts("a"), Some(("", "a")));
        assert_eq!(parts("a/b//c//"), Some(("a/b//", "c")));
        assert_eq!(parts("/c"), Some(("/", "c")));
        for none in ["", "/", "//", ".", "..", "a/..", "a/./"] {
            assert_eq!(parts(none), None, "{none}");
        }
    }
}
