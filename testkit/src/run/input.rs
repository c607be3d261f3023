//! The stdin of a command: a pipe or a terminal.

use std::{
    fs::File,
    io::{self, Write as _},
    os::fd::OwnedFd,
    thread::{self, JoinHandle},
};

use rustix::{
    fs::{Mode, OFlags, open},
    pipe::{PipeFlags, pipe_with},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};

/// The character that ends the input of a terminal at the beginning of a line.
const END_OF_INPUT: u8 = 4;

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
                let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
                Ok((write, read))
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

    /// Writes `bytes`, and closes a pipe. A terminal stays open until the returned file is dropped.
    pub(super) fn feed(self, writing: OwnedFd, bytes: &[u8]) -> Option<File> {
        let mut writing = File::from(writing);
        match self {
            Self::Pipe => {
                let bytes = bytes.to_owned();
                // Ignore a broken pipe: a command may read less than it is given.
                let _: JoinHandle<()> = thread::spawn(move || drop(writing.write_all(&bytes)));
                None
            }
            Self::Terminal => {
                // This does not block, because tests type less than the terminal buffers.
                let typed = [bytes, &[END_OF_INPUT]].concat();
                writing.write_all(&typed).expect("a terminal takes a line");
                Some(writing)
            }
        }
    }
}
