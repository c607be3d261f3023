//! Hides operands, and starts the process that removes them.
//!
//! Operands take effect in their order. Those that are not hidden are collected, and removed in the foreground
//! before the next one is hidden.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{self, Path, PathBuf};
use std::rc::Rc;

use fuc_cli::background;
use fuc_cli::command::Outcome;
use fuc_cli::console::Console;
use fuc_cli::interrupt;
use fuc_cli::locale::Charset;
use fuc_cli::progress::Watch;
use fuc_cli::quote;
use fuc_cli::reporter::{Reporter, Verbosity};
use fuc_cli::wording::{Diagnostic, Tool, errno_text};
use fuc_engine::{Ask, Execution, Observer, RemoveOp, RemoveOptions, Summary};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use super::cannot_remove;
use super::container::{Container, Removed};
use super::log::{Log, LogReporter};
use crate::options::Options;

/// Hides the operands that are directories, and removes all others. Returns when no operand has its name any more,
/// except for those that could not be removed.
pub(crate) fn detach(
    options: Options,
    operands: Vec<OsString>,
    watch: Option<Watch>,
    console: &Console,
) -> Outcome {
    // A log that cannot be opened is an error before anything has changed.
    let log = match Log::from_environment() {
        Ok(log) => log,
        Err(no_log) => {
            let path = console.quoted(no_log.path.as_bytes());
            let reason = errno_text(&no_log.reason);
            let line = [b"cannot open the log ", &path[..], b": ", reason.as_bytes()].concat();
            console.error(&line.into());
            return Outcome::Incomplete;
        }
    };
    let mut engine = options.engine;
    // A process without a terminal cannot ask, so no write-protected file is asked about, wherever it is.
    engine.ask = Ask::Never;
    let in_background = background_options(&engine);
    let cancel = interrupt::cancel_on_signals();
    let reporter = Reporter::new(console, Tool::Remove, options.verbosity);
    let summary = reporter.run(
        watch,
        |reporter| {
            let mut hiding = Hiding {
                console,
                reporter,
                verbosity: options.verbosity,
                preserves_mount_points: engine.preserve_mount_points,
                removal: RemoveOp::with_options(engine).cancelled_by(&cancel),
                summary: Summary::default(),
                pending: Vec::new(),
                hidden: Vec::new(),
                last_is_reusable: false,
            };
            for operand in operands {
                hiding.hide_or_collect(operand);
            }
            hiding.remove_collected();
            hiding.finish(in_background, &log)
        },
        None,
    );
    Outcome::of(summary, Tool::Remove, Execution::Real)
}

/// Returns the options of the background process.
fn background_options(engine: &RemoveOptions) -> RemoveOptions {
    let mut options = engine.clone();
    // Without locks, `--reap` may remove the same names.
    options.ignore_missing = true;
    // A low priority does not reach a server of files, so do not keep it busy unless the user asks for that.
    options.threads = options.threads.or(Some(NonZeroUsize::MIN));
    options
}

/// A container, and the path of its directory as the user named it. The path ends in a slash, or is empty.
struct Hidden {
    container: Container,
    directory: PathBuf,
}

impl Hidden {
    /// Opens `directory` and creates a container there.
    fn create(directory: &OsStr) -> Result<Self, Errno> {
        let path = match directory.is_empty() {
            true => OsStr::new("."),
            false => directory,
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let place: OwnedFd = openat(CWD, path, flags, Mode::empty())?;
        Ok(Self {
            container: Container::create(Rc::new(place))?,
            directory: directory.into(),
        })
    }

    fn take(&self, name: &OsStr, preserves_mount_points: bool) -> Result<(), Errno> {
        if preserves_mount_points && !self.container.shares_device_with(name)? {
            return Err(Errno::XDEV);
        }
        self.container.take(name)
    }

    /// Returns the absolute path of the directory, or the path as it is if there is no working directory.
    fn absolute_directory(&self) -> PathBuf {
        let path = match self.directory.as_os_str().is_empty() {
            true => Path::new("."),
            false => &self.directory,
        };
        path::absolute(path).unwrap_or_else(|_| self.directory.clone())
    }
}

/// The state of a run with `--detach`.
struct Hiding<'a> {
    console: &'a Console,
    reporter: &'a Reporter<'a>,
    verbosity: Verbosity,
    preserves_mount_points: bool,
    /// Removes operands in the foreground.
    removal: RemoveOp,
    /// The totals in the foreground.
    summary: Summary,
    /// Operands to remove in the foreground.
    pending: Vec<OsString>,
    hidden: Vec<Hidden>,
    /// Is `true` if the path of the last container's directory still leads to the same directory, because nothing
    /// was removed since.
    last_is_reusable: bool,
}

impl Hiding<'_> {
    fn hide_or_collect(&mut self, operand: OsString) {
        if self.summary.cancelled {
            return;
        }
        match split(&operand) {
            Some((directory, name)) if is_directory(directory, name) => {
                self.remove_collected();
                if self.hide(directory, name).is_err() {
                    // Whatever the reason is, the removal reports it if it matters there.
                    self.pending.push(operand);
                }
            }
            _ => self.pending.push(operand),
        }
    }

    fn hide(&mut self, directory: &OsStr, name: &OsStr) -> Result<(), Errno> {
        match self.hidden.last() {
            Some(last) if self.last_is_reusable && last.directory.as_os_str() == directory => {
                last.take(name, self.preserves_mount_points)?;
            }
            _ => {
                let new = Hidden::create(directory)?;
                if let Err(errno) = new.take(name, self.preserves_mount_points) {
                    // It is empty. If this fails, `--reap` removes it.
                    let _ = new.container.remove();
                    return Err(errno);
                }
                self.hidden.push(new);
                self.last_is_reusable = true;
            }
        }
        if self.verbosity != Verbosity::Quiet
            && let Some(hidden) = self.hidden.last()
        {
            let from = hidden.directory.join(name);
            let to = hidden.directory.join(hidden.container.name()).join(name);
            let [from, to] =
                [from, to].map(|path| self.console.quoted(path.as_os_str().as_bytes()));
            self.console
                .print(&[b"renamed ", &from, b" -> ", &to, b"\n"]);
        }
        Ok(())
    }

    /// Removes the collected operands in the foreground.
    fn remove_collected(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let pending = std::mem::take(&mut self.pending);
        self.summary += self.removal.run(pending, self.reporter);
        self.last_is_reusable = false;
    }

    /// Starts the process that removes what is hidden. If that is impossible, removes it here.
    fn finish(mut self, in_background: RemoveOptions, log: &Log) -> Summary {
        if self.hidden.is_empty() {
            return self.summary;
        }
        let charset = self.console.charset();
        let keep: Vec<_> = self
            .hidden
            .iter()
            .flat_map(|hidden| hidden.container.descriptors())
            .chain(log.descriptor())
            .collect();
        // In a log, a relative path would say nothing.
        let places: Vec<_> = self.hidden.iter().map(Hidden::absolute_directory).collect();
        let started = background::spawn(&keep, || {
            let removal = RemoveOp::with_options(in_background);
            let observer = &LogReporter { log, charset };
            for (hidden, place) in self.hidden.iter().zip(&places) {
                let path = place.join(hidden.container.name());
                let report = |diagnostic: Diagnostic| log.write(&diagnostic.line);
                let named = Named {
                    path: &path,
                    content: place,
                    charset,
                };
                let summary = finish(&hidden.container, named, &removal, observer, report);
                if !summary.is_complete() {
                    log.write(&leftover(&path, place, charset));
                }
            }
        });
        if started.is_err() {
            self.finish_here();
        }
        self.summary
    }

    /// Removes what is hidden, and reports as a removal in the foreground does.
    fn finish_here(&mut self) {
        for hidden in &self.hidden {
            let named = Named {
                path: &hidden.directory.join(hidden.container.name()),
                content: &hidden.directory,
                charset: self.console.charset(),
            };
            let report = |diagnostic: Diagnostic| self.console.error(&diagnostic);
            let container = &hidden.container;
            self.summary += finish(container, named, &self.removal, self.reporter, report);
        }
    }
}

/// The names of a container in messages.
#[derive(Clone, Copy, Debug)]
struct Named<'a> {
    /// The path of the container.
    path: &'a Path,
    /// The path below which messages show the trees in the container.
    content: &'a Path,
    charset: Charset,
}

/// Empties a container, and removes it if nothing stays. Failures in it go to `observer`, and those of the container
/// itself to `report`.
fn finish(
    container: &Container,
    named: Named<'_>,
    removal: &RemoveOp,
    observer: &dyn Observer,
    report: impl Fn(Diagnostic),
) -> Summary {
    let failed = |errno| {
        report(cannot_remove(named.path, errno, named.charset));
        let mut summary = Summary::default();
        summary.failures = 1;
        summary
    };
    match container.empty(removal, named.content, observer) {
        Ok(summary) if summary.is_complete() => match container.remove() {
            Ok(Removed::Gone) => summary,
            Ok(Removed::InUse) => failed(Errno::NOTEMPTY),
            Err(errno) => failed(errno),
        },
        Ok(summary) => summary,
        Err(errno) => failed(errno),
    }
}

/// Returns the line about a container that stays.
fn leftover(path: &Path, place: &Path, charset: Charset) -> Vec<u8> {
    let path = quote::always(path.as_os_str().as_bytes(), charset);
    let place = quote::always(place.as_os_str().as_bytes(), charset);
    [&path[..], b" stays; to try again: rmz --reap ", &place].concat()
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

/// Returns `true` if the name is a directory, and not a link to one.
fn is_directory(directory: &OsStr, name: &OsStr) -> bool {
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
