//! The place to which a process in the background reports: the system log, or what `RMZ_LOG` names.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process;

use fuc_cli::locale::Charset;
use fuc_cli::wording::{self, Tool};
use fuc_engine::{Error, Observer};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::retry_on_intr;
use rustix::net::{SendFlags, send};

/// The socket on which the system log receives messages.
const SYSTEM_LOG: &str = "/dev/log";

/// The priority of messages to the system log, as RFC 3164 encodes it: facility `user`, severity `err`.
const PRIORITY: &str = "<11>";

/// The permissions of a new log file, which contains names of files.
const LOG_MODE: u32 = 0o600;

/// An open log.
#[derive(Debug)]
pub(super) enum Log {
    /// A socket of a system log.
    Socket(UnixDatagram),
    /// A file to which lines are added.
    File(File),
    /// There is no system log, and the user has named no file.
    None,
}

/// A log that the user has named and that cannot be opened.
#[derive(Debug)]
pub(super) struct NoLog {
    pub(super) path: OsString,
    pub(super) reason: io::Error,
}

impl Log {
    /// Opens the log that the environment names, or the system log if there is one.
    pub(super) fn from_environment() -> Result<Self, NoLog> {
        match env::var_os("RMZ_LOG").filter(|path| !path.is_empty()) {
            None => Ok(connect(Path::new(SYSTEM_LOG)).map_or(Self::None, Self::Socket)),
            Some(path) => Self::open(Path::new(&path)).map_err(|reason| NoLog { path, reason }),
        }
    }

    fn open(path: &Path) -> io::Result<Self> {
        let is_socket = fs::metadata(path).is_ok_and(|found| found.file_type().is_socket());
        if is_socket {
            return connect(path).map(Self::Socket);
        }
        // Without this flag, opening a FIFO would wait for a reader. With it, a FIFO without a reader fails.
        let file = File::options()
            .append(true)
            .create(true)
            .mode(LOG_MODE)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(path)?;
        // A full pipe makes writes wait instead of failing with EAGAIN.
        fcntl_setfl(&file, OFlags::APPEND)?;
        Ok(Self::File(file))
    }

    /// Writes one line. A failure cannot be reported; the name that the line is about stays, so that `--reap`
    /// reports it again.
    pub(super) fn write(&self, line: &[u8]) {
        let tag = format!("rmz[{}]: ", process::id());
        let _ = match self {
            Self::Socket(socket) => {
                let message = [PRIORITY.as_bytes(), tag.as_bytes(), line].concat();
                // A signal asks the process to end, but lines about what stays still follow.
                retry_on_intr(|| send(socket, &message, SendFlags::empty()))
                    .map(drop)
                    .map_err(io::Error::from)
            }
            // One write, so that lines of several processes do not mix.
            Self::File(file) => {
                let mut file = file;
                file.write_all(&[tag.as_bytes(), line, b"\n"].concat())
            }
            Self::None => Ok(()),
        };
    }

    /// Returns the descriptor, if there is one.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Socket(socket) => Some(socket.as_fd()),
            Self::File(file) => Some(file.as_fd()),
            Self::None => None,
        }
    }
}

fn connect(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(path)?;
    Ok(socket)
}

/// Writes failures to a log, in the words that rm has for them.
#[derive(Debug)]
pub(super) struct LogReporter<'a> {
    pub(super) log: &'a Log,
    pub(super) charset: Charset,
}

impl Observer for LogReporter<'_> {
    fn failed(&self, error: Error) {
        let diagnostic = wording::describe(&error, Tool::Remove, self.charset);
        self.log.write(&diagnostic.line);
    }
}
