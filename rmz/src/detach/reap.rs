//! Finds containers that no process uses any more, and removes them in the foreground.

use std::ffi::{CStr, OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

use fuc_cli::console::Console;
use fuc_cli::outcome::Outcome;
use fuc_cli::progress::Watch;
use fuc_cli::reporter::{Reporter, Verbosity};
use fuc_cli::sys;
use fuc_cli::tool::Tool;
use fuc_cli::wording::errno_text;
use fuc_engine::{Ask, Event, Execution, Observer, RemoveOp, Summary};
use rustix::fs::{CWD, OFlags};
use rustix::io::Errno;

use super::cannot_remove;
use super::container::{
    Container, Found, InUse, Removed, names_of_containers, open, remove_if_empty,
};
use rmz::options::Options;

/// Removes the containers directly in each of the directories.
pub(crate) fn reap(
    options: Options,
    directories: Vec<OsString>,
    watch: Option<Watch>,
    console: &Console,
) -> Outcome {
    let mut engine = options.engine;
    let ignores_missing = engine.ignore_missing;
    engine.ask = Ask::Never;
    // On a filesystem without locks, the process in the background may remove the same names.
    engine.ignore_missing = true;
    let removal = engine.cancelled_by(sys::cancel_on_signals());
    let reporter = Reporter::new(console, Tool::Remove, options.common.verbosity);
    let summary = reporter.run(
        watch,
        |reporter| {
            let mut reaping = Reaping {
                console,
                reporter,
                verbosity: options.common.verbosity,
                in_use: match options.waits {
                    true => InUse::Await,
                    false => InUse::Skip,
                },
                removal,
                summary: Summary::default(),
            };
            for directory in &directories {
                match open(CWD, directory, OFlags::empty()) {
                    Ok(place) => reaping.reap(&Rc::new(place), Path::new(directory)),
                    Err(Errno::NOENT) if ignores_missing => {}
                    Err(errno) => reaping.unreadable(directory, errno),
                }
            }
            reaping.summary
        },
        None,
    );
    Outcome::of(summary, Execution::Real)
}

/// The state of a run with `--reap`.
pub(super) struct Reaping<'a> {
    pub(super) console: &'a Console,
    pub(super) reporter: &'a Reporter<'a>,
    pub(super) verbosity: Verbosity,
    pub(super) in_use: InUse,
    pub(super) removal: RemoveOp<'static>,
    pub(super) summary: Summary,
}

impl Reaping<'_> {
    /// Removes the containers in the directory that is open as `place`.
    fn reap(&mut self, place: &Rc<OwnedFd>, directory: &Path) {
        let names = match names_of_containers(place.as_fd()) {
            Ok(names) => names,
            Err(errno) => return self.unreadable(directory.as_os_str(), errno),
        };
        for name in names {
            if self.summary.cancelled {
                return;
            }
            self.reap_name(place, &name, directory);
        }
    }

    pub(super) fn reap_name(&mut self, place: &Rc<OwnedFd>, name: &CStr, directory: &Path) {
        let path = directory.join(OsStr::from_bytes(name.to_bytes()));
        match self.try_name(place, name, &path) {
            Ok(()) => {}
            // A signal has ended the wait.
            Err(Errno::INTR) => self.summary.cancelled = true,
            Err(errno) => self.fail(&cannot_remove(&path, errno, self.console.charset())),
        }
    }

    fn try_name(&mut self, place: &Rc<OwnedFd>, name: &CStr, path: &Path) -> Result<(), Errno> {
        match Container::find(place, name, self.in_use)? {
            Found::Leftover(container) => self.remove(&container, path)?,
            Found::InUse => self.print_in_use(path),
            Found::Foreign => {
                self.print_if_verbose(path, "which is not a private directory of this user");
            }
            // Nothing in it is removed.
            Found::Doubtful(_) if remove_if_empty(place, name)? => self.removed(path),
            Found::Doubtful(reason) => {
                let path = self.console.quoted(path);
                self.fail(&format!("skipping {path}, {reason}"));
            }
        }
        Ok(())
    }

    fn remove(&mut self, container: &Container, path: &Path) -> Result<(), Errno> {
        let names = container.content()?;
        let summary = container.remove_entries(&self.removal, names, path, self.reporter);
        self.summary += summary;
        // Otherwise the reasons have been reported.
        if summary.is_complete() {
            match container.remove()? {
                Removed::Gone => self.removed(path),
                Removed::InUse => self.print_in_use(path),
            }
        }
        Ok(())
    }

    fn removed(&self, path: &Path) {
        if self.verbosity != Verbosity::Quiet {
            self.reporter.on_event(Event::RemovedDirectory(path));
        }
    }

    fn print_in_use(&self, path: &Path) {
        self.print_if_verbose(path, "which another process removes");
    }

    fn print_if_verbose(&self, path: &Path, reason: &str) {
        if self.verbosity != Verbosity::Quiet {
            let line = format!("skipped {}, {reason}\n", self.console.quoted(path));
            self.console.print(&[line.as_bytes()]);
        }
    }

    fn unreadable(&mut self, directory: &OsStr, errno: Errno) {
        let directory = self.console.quoted(directory);
        let reason = errno_text(&errno.into());
        self.fail(&format!("cannot open directory {directory}: {reason}"));
    }

    fn fail(&mut self, diagnostic: &str) {
        self.console.error(diagnostic);
        self.summary.failures += 1;
    }
}
