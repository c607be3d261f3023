//! stdin, stdout and stderr without buffers.
//!
//! The standard library's own streams have buffers. They also report success for a stream that was closed when
//! the process began.

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::io::Errno;
use rustix::stdio;

use crate::sys::was_closed;

/// Returns `true` if the name stands for stdin: `-`, or one of the kernel's own names.
pub(crate) fn is_stdin(name: &OsStr) -> bool {
    let of_kernel = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];
    name == "-" || of_kernel.map(Path::new).contains(&Path::new(name))
}

/// A standard stream.
pub(crate) struct Stream(BorrowedFd<'static>);

pub(crate) fn stdin() -> Stream {
    Stream(stdio::stdin())
}

pub(crate) fn stdout() -> Stream {
    Stream(stdio::stdout())
}

pub(crate) fn stderr() -> Stream {
    Stream(stdio::stderr())
}

impl Stream {
    /// Returns the descriptor. Fails if the stream was closed when the process began.
    pub(crate) fn descriptor(&self) -> io::Result<BorrowedFd<'static>> {
        match was_closed(self.0) {
            true => Err(Errno::BADF.into()),
            false => Ok(self.0),
        }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.descriptor().is_ok_and(|stream| stream.is_terminal())
    }

    /// Returns the width of the terminal in characters, or `None` if the stream is not a terminal or does not know.
    pub(crate) fn columns(&self) -> Option<u16> {
        let size = rustix::termios::tcgetwinsize(self.0).ok()?;
        Some(size.ws_col).filter(|&columns| columns > 0)
    }

    /// Returns `false` if the stream is the terminal of this session, and another job is in its foreground.
    pub(crate) fn is_in_foreground(&self) -> bool {
        rustix::termios::tcgetpgrp(self.0)
            .map_or(true, |foreground| foreground == rustix::process::getpgrp())
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(self.descriptor()?, buffer)?)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(self.descriptor()?, bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
