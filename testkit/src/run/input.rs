//! What a command reads: a pipe or a terminal.

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

/// Ends the input of a terminal when it is typed at the beginning of a line.
const END_OF_INPUT: u8 = 4;

/// What a command's stdin is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// A pipe, which ends after what is written to it.
    #[default]
    Pipe,
    /// A pseudo-terminal, on which its lines are typed, and then the end of input.
    Terminal,
}

impl Input {
    /// Where it is written, and where it is read.
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

    /// Writes `bytes`, and closes a pipe. A terminal hangs up when what is returned is dropped.
    pub(super) fn feed(self, writing: OwnedFd, bytes: &[u8]) -> Option<File> {
        let mut writing = File::from(writing);
        match self {
            Self::Pipe => {
                let bytes = bytes.to_owned();
                // A command that reads less than it is given breaks the pipe, which is its right.
                let _: JoinHandle<()> = thread::spawn(move || drop(writing.write_all(&bytes)));
                None
            }
            Self::Terminal => {
                // So few that the terminal holds them.
                let typed = [bytes, &[END_OF_INPUT]].concat();
                writing.write_all(&typed).expect("a terminal takes a line");
                Some(writing)
            }
        }
    }
}
