//! The standard streams as they are: the standard library's own hold back what was
//! read or written, and take a stream that cannot be written to for one that can.

use std::ffi::CString;
use std::io::{self, IsTerminal, Write};

use fuc_engine::Errno;
use rustix::io::retry_on_intr;
use rustix::stdio;

use crate::sys::{stderr_was_closed, stdin_was_closed, stdout_was_closed};

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
}

pub(crate) struct Stderr;

impl Stderr {
    pub(crate) fn is_terminal(&self) -> bool {
        !stderr_was_closed() && stdio::stderr().is_terminal()
    }

    /// How many characters a line of the terminal has room for; `None`: it is none, or does not tell.
    pub(crate) fn columns(&self) -> Option<u16> {
        let size = rustix::termios::tcgetwinsize(stdio::stderr()).ok()?;
        Some(size.ws_col).filter(|&columns| columns > 0)
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

/// Whether answers are typed, and so seen with the end of their lines, if they have one.
pub(crate) fn stdin_is_terminal() -> bool {
    !stdin_was_closed() && stdio::stdin().is_terminal()
}

/// What reading a line of stdin came to.
pub(crate) enum Line {
    /// As far as its first NUL.
    Read(CString),
    /// The same of what stands before the end of stdin, with no end of line.
    Unended(CString),
    /// There is nothing (more).
    End,
    /// stdin cannot be read; the reason if it was closed.
    Unreadable(Option<Errno>),
}

/// Byte by byte: what follows belongs to whoever reads stdin next, the next
/// command of a script for one.
pub(crate) fn read_line() -> Line {
    if stdin_was_closed() {
        return Line::Unreadable(Some(Errno::BADF));
    }
    let mut line = Vec::new();
    let mut byte = [0];
    let kind: fn(CString) -> Line = loop {
        match retry_on_intr(|| rustix::io::read(stdio::stdin(), &mut byte)) {
            Ok(0) if line.is_empty() => return Line::End,
            Ok(0) => break Line::Unended,
            Ok(_) if byte == *b"\n" => break Line::Read,
            Ok(_) => line.extend(byte),
            Err(_) => return Line::Unreadable(None),
        }
    };
    let end = line.iter().position(|&byte| byte == 0);
    line.truncate(end.unwrap_or(line.len()));
    kind(CString::new(line).expect("BUG: a NUL before the first NUL"))
}
