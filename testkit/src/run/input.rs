//! The stdin of a command: a pipe or a terminal.

use std::{io, os::fd::OwnedFd};

use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};

/// The kind of a command's stdin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// A pipe, closed after the input is written.
    #[default]
    Pipe,
    /// A pseudo-terminal, into which the input is typed, and then the end of input.
    Terminal,
}

impl Input {
    /// Opens it. Returns the end to write to and the end to read from.
    pub(super) fn open(self) -> io::Result<(OwnedFd, OwnedFd)> {
        match self {
            Self::Pipe => {
                let (read, write) = io::pipe()?;
                Ok((write.into(), read.into()))
            }
            Self::Terminal => {
                let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
                let keyboard = openpt(flags)?;
                grantpt(&keyboard)?;
                unlockpt(&keyboard)?;
                let name = ptsname(&keyboard, Vec::new())?;
                let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
                Ok((keyboard, open(name, flags, Mode::empty())?))
            }
        }
    }
}
