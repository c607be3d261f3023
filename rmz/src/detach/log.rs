//! The place to which a process in the background reports: the system log, or what `RMZ_LOG` names.

use std::env;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fuc_cli::locale::Charset;
use fuc_cli::quote;
use fuc_cli::tool::Tool;
use fuc_cli::wording;
use fuc_engine::{Error, Observer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{cannot_remove, leftover};

/// The socket on which the system log receives messages.
const SYSTEM_LOG: &str = "/dev/log";

/// The priority of messages to the system log, as RFC 3164 encodes it: facility `user`, severity `err`.
const PRIORITY: &str = "<11>";

/// The permissions of a new log file, which contains names of files.
const LOG_MODE: u32 = 0o600;

/// Longest time to wait for a log that has no room for a line. After it, such lines are lost: a log that
/// is never read must not stop the removal.
const PATIENCE: Duration = Duration::from_secs(2);

/// An open log.
#[derive(Debug)]
pub(super) struct Log {
    /// Is `None` if the machine has no system log and the user has named no file.
    target: Option<Target>,
    charset: Charset,
    /// `true` if the log once had no room for so long that no line waits for it any more.
    is_stuck: AtomicBool,
}

/// The place that a log leads to. No write to it waits.
#[derive(Debug)]
struct Target {
    fd: OwnedFd,
    /// `true` for a socket of a system log. Otherwise it is a file to which lines are added, or a FIFO.
    is_socket: bool,
}

impl Log {
    /// Opens the log that the environment names, or the system log if there is one.
    ///
    /// # Errors
    /// If the user has named a log that cannot be opened. The error is a diagnostic.
    pub(super) fn from_environment(charset: Charset) -> Result<Self, String> {
        let target = match env::var_os("RMZ_LOG").filter(|path| !path.is_empty()) {
            None => Target::connect(Path::new(SYSTEM_LOG)).ok(),
            Some(path) => Some(Target::open(Path::new(&path)).map_err(|error| {
                let path = quote::always(&path, charset);
                format!(
                    "cannot open the log {path}: {}",
                    wording::errno_text(&error)
                )
            })?),
        };
        Ok(Self {
            target,
            charset,
            is_stuck: AtomicBool::new(false),
        })
    }

    /// Writes one line. A failure cannot be reported; the name that the line is about stays, so that `--reap`
    /// reports it again.
    pub(super) fn write(&self, line: &str) {
        let Some(target) = &self.target else {
            return;
        };
        let line = format!("rmz[{}]: {line}", process::id());
        // Each is one write, so that lines of several processes do not mix.
        let message = match target.is_socket {
            true => format!("{PRIORITY}{line}"),
            false => line + "\n",
        };
        let began = Instant::now();
        let mut rest = message.as_bytes();
        while !rest.is_empty() {
            match rustix::io::write(&target.fd, rest) {
                // A file that takes nothing would take nothing again.
                Ok(0) => return,
                Ok(written) => rest = &rest[written..],
                // A signal asks the process to end, but lines about what stays still follow.
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.waits_for_room(target, began) => {}
                Err(_) => return,
            }
        }
    }

    /// Waits until there may be room for a line whose writing has begun then. Returns `false` if there is none.
    fn waits_for_room(&self, target: &Target, began: Instant) -> bool {
        // Relaxed: nothing else is read because of the flag.
        if self.is_stuck.load(Ordering::Relaxed) {
            return false;
        }
        let left = PATIENCE.saturating_sub(began.elapsed());
        let timeout = Timespec::try_from(left).expect("BUG: the patience is too long");
        let mut polled = [PollFd::new(&target.fd, PollFlags::OUT)];
        let is_late = left.is_zero() || matches!(poll(&mut polled, Some(&timeout)), Ok(0));
        if is_late {
            self.is_stuck.store(true, Ordering::Relaxed);
        }
        !is_late
    }

    /// Writes that a name cannot be removed.
    pub(super) fn write_failure(&self, path: &Path, errno: Errno) {
        self.write(&cannot_remove(path, errno, self.charset));
    }

    /// Writes that a container stays, whose path is absolute.
    pub(super) fn write_leftover(&self, path: &Path) {
        self.write(&leftover(path, self.charset));
    }

    /// Returns the descriptor, if there is one.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.target.as_ref().map(|target| target.fd.as_fd())
    }
}

impl Target {
    fn open(path: &Path) -> io::Result<Self> {
        let is_socket = fs::metadata(path).is_ok_and(|found| found.file_type().is_socket());
        if is_socket {
            return Self::connect(path);
        }
        // A FIFO without a reader fails. If it is full, a write fails instead of waiting.
        let file = File::options()
            .append(true)
            .create(true)
            .mode(LOG_MODE)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(path)?;
        Ok(Self {
            fd: file.into(),
            is_socket: false,
        })
    }

    fn connect(path: &Path) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(path)?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            fd: socket.into(),
            is_socket: true,
        })
    }
}

/// Receives failures, and writes them in the words that rm has for them.
impl Observer for Log {
    fn failed(&self, error: Error) {
        let diagnostic = wording::describe(&error, Tool::Remove, self.charset);
        // The second line, which only refused operands have, says nothing more in a log.
        self.write(diagnostic.lines().next().unwrap_or_default());
    }
}
