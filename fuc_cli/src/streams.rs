//! stdin, stdout and stderr without buffers.
//!
//! The standard library's own streams have buffers. They also report success for a stream that was closed when
//! the process began.

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;

use rustix::io::Errno;
use rustix::stdio;

use crate::sys::{stderr_was_closed, stdin_was_closed, stdout_was_closed};

/// Returns `true` if the name stands for stdin: `-`, or one of the kernel's own names.
pub(crate) fn is_stdin(name: &OsStr) -> bool {
    let of_kernel = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];
    name == "-" || of_kernel.map(Path::new).contains(&Path::new(name))
}

pub(crate) struct Stdin;

impl Read for Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if stdin_was_closed() {
            return Err(Errno::BADF.into());
        }
        Ok(rustix::io::read(stdio::stdin(), buffer)?)
    }
}

pub(crate) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if stdout_was_closed() {
            return Err(Errno::BADF.into());
        }
        Ok(rustix::io::write(stdio::stdout(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stdout {
    pub(crate) fn is_terminal(&self) -> bool {
        stdio::stdout().is_terminal()
    }

    /// Fails if stdout was closed when the process began. The stream itself stays open.
    pub(crate) fn close(&self) -> io::Result<()> {
        match stdout_was_closed() {
            true => Err(Errno::BADF.into()),
            false => Ok(()),
        }
    }
}

pub(crate) struct Stderr;

impl Stderr {
    pub(crate) fn is_terminal(&self) -> bool {
        !stderr_was_closed() && stdio::stderr().is_terminal()
    }

    /// Returns the width of the terminal in characters, or `None` if stderr is not a terminal or
    /// does not know.
    pub(crate) fn columns(&self) -> Option<u16> {
        let size = rustix::termios::tcgetwinsize(stdio::stderr()).ok()?;
        Some(size.ws_col).filter(|&columns| columns > 0)
    }

    /// Returns `false` if stderr is the terminal of this session, and another job is in its foreground.
    pub(crate) fn is_in_foreground(&self) -> bool {
        rustix::termios::tcgetpgrp(stdio::stderr())
            .map_or(true, |foreground| foreground == rustix::process::getpgrp())
    }
}

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if stderr_was_closed() {
            return Err(Errno::BADF.into());
        }
        Ok(rustix::io::write(stdio::stderr(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
