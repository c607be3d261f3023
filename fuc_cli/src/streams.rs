//! The standard streams as they are: the standard library's own hold back what was
//! read or written, and take a stream that cannot be written to for one that can.

use std::ffi::CString;
use std::io::{self, IsTerminal, Write};

use fuc_engine::Errno;
use fuc_engine::process::{stderr_was_closed, stdin_was_closed, stdout_was_closed};
use rustix::io::retry_on_intr;
use rustix::stdio;

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

/// What reading a line of stdin came to.
pub(crate) enum Line {
    /// As far as its first NUL.
    Read(CString),
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
    loop {
        match retry_on_intr(|| rustix::io::read(stdio::stdin(), &mut byte)) {
            Ok(0) if line.is_empty() => return Line::End,
            Ok(0) => break,
            Ok(_) if byte == *b"\n" => break,
            Ok(_) => line.extend(byte),
            Err(_) => return Line::Unreadable(None),
        }
    }
    let end = line.iter().position(|&byte| byte == 0);
    line.truncate(end.unwrap_or(line.len()));
    Line::Read(CString::new(line).expect("BUG: a NUL before the first NUL"))
}
