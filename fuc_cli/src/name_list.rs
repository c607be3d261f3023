//! `--files0-from=FILE`: operands from a file, with a NUL after each name, in the words of GNU's `du`.
//!
//! Names are read when they are asked for, so a removal can begin before the list ends. A part of a name is never an
//! operand: it might name a directory around the file that is meant. Hence, unlike in `du`, a last name without a NUL
//! is refused, because the program that wrote the list may have been killed.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use rustix::io::Errno;

use crate::console::Console;
use crate::flags::UsageError;
use crate::input;
use crate::quote;
use crate::streams;
use crate::sys::received_signal;
use crate::wording::errno_text;

/// The length in bytes from which the kernel refuses a path. The rest of a longer name is skipped.
const PATH_MAX: usize = 4096;

/// The file that holds the names of operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListFile(OsString);

impl ListFile {
    /// Makes it from the value of `--files0-from`.
    #[must_use]
    pub fn new(value: &OsStr) -> Self {
        Self(value.to_owned())
    }

    /// Returns `true` if the names come from stdin, which then cannot hold answers to prompts.
    #[must_use]
    pub fn is_stdin(&self) -> bool {
        streams::is_stdin(&self.0)
    }

    /// Opens the list.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(self, console: &Console) -> Result<NameList<'_>, UsageError> {
        let source = BufReader::new(input::open(&self.0, console)?);
        Ok(NameList {
            file: self,
            console,
            source,
            names: 0,
            failures: 0,
            has_ended: false,
        })
    }
}

/// Names in one block of memory, because a list may hold millions.
#[derive(Clone, Debug, Default)]
pub struct PackedNames(Vec<u8>);

impl PackedNames {
    /// Returns the names in order.
    pub fn iter(&self) -> impl Iterator<Item = PathBuf> {
        let names = self.0.split_inclusive(|&byte| byte == 0);
        names.map(|name| OsStr::from_bytes(&name[..name.len() - 1]).into())
    }
}

impl FromIterator<OsString> for PackedNames {
    fn from_iter<I: IntoIterator<Item = OsString>>(names: I) -> Self {
        let mut all = Vec::new();
        for name in names {
            all.extend_from_slice(name.as_bytes());
            all.push(0);
        }
        Self(all)
    }
}

/// Returns the usage error for an operand beside a list.
#[must_use]
pub fn extra_operand(operand: &OsStr, console: &Console) -> UsageError {
    let operand = console.quoted(operand);
    UsageError::with_help(format!(
        "extra operand {operand}\nfile operands cannot be combined with --files0-from"
    ))
}

/// The names in a file, in order. It reports those that cannot be operands, and goes on with the others.
pub struct NameList<'a> {
    file: ListFile,
    console: &'a Console,
    source: BufReader<Box<dyn Read>>,
    /// The number of names read so far.
    names: u64,
    failures: u64,
    has_ended: bool,
}

impl NameList<'_> {
    /// Returns the name of the file as messages show it.
    #[must_use]
    pub fn quoted(&self, console: &Console) -> String {
        console.quoted(&self.file.0)
    }

    /// Returns the number of failures that were reported.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Reads up to the next NUL, or to the end of the file. Returns a name, or the problem with it, and `None` at the end of
    /// the list. A signal is the end, too.
    fn read_name(&mut self) -> io::Result<Option<Result<OsString, String>>> {
        let mut name = Vec::new();
        let mut is_too_long = false;
        let mut last = None;
        loop {
            let read = match self.source.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => match received_signal() {
                    Some(_) => return Ok(None),
                    None => continue,
                },
                read => read?,
            };
            let end = read.iter().position(|&byte| byte == 0);
            let part = &read[..end.unwrap_or(read.len())];
            is_too_long |= name.len() + part.len() >= PATH_MAX;
            if !is_too_long {
                name.extend_from_slice(part);
            }
            let is_at_end = read.is_empty();
            last = read.last().copied().or(last);
            let consumed = part.len() + usize::from(end.is_some());
            self.source.consume(consumed);
            if is_at_end || end.is_some() {
                let name = OsString::from_vec(name);
                return Ok(match (is_at_end, last) {
                    (true, None) => None,
                    // The list is of another kind.
                    (true, Some(b'\n')) => Some(Err(
                        "a newline is not the end of a name; write NUL bytes, as find -print0 does"
                            .to_owned(),
                    )),
                    _ if is_too_long => Some(Err(errno_text(&Errno::NAMETOOLONG.into()))),
                    (true, Some(_)) => Some(Err(format!(
                        "{} does not end in a NUL byte, so the name may be incomplete",
                        self.console.quoted(&name)
                    ))),
                    (false, _) if name.is_empty() => {
                        Some(Err("invalid zero-length file name".to_owned()))
                    }
                    (false, _) => Some(Ok(name)),
                });
            }
        }
    }

    /// Reports that the list, or its latest name, is bad.
    fn complain(&mut self, location: &str, problem: &[u8]) {
        let file = quote::if_needed(&self.file.0, self.console.charset());
        let message = [file.as_bytes(), location.as_bytes(), b": ", problem].concat();
        self.console.error(message);
        self.failures += 1;
    }

    /// Reports that the name that was read last is left out.
    pub fn refuse(&mut self, error: &UsageError) {
        self.complain_about_name(&error.message);
    }

    fn complain_about_name(&mut self, problem: &[u8]) {
        self.complain(&format!(":{}", self.names), problem);
    }
}

impl Iterator for NameList<'_> {
    type Item = OsString;

    fn next(&mut self) -> Option<OsString> {
        while !self.has_ended {
            let next = self.read_name();
            self.names += 1;
            match next {
                Ok(Some(Ok(name))) => return Some(name),
                Ok(Some(Err(problem))) => self.complain_about_name(problem.as_bytes()),
                Ok(None) => self.has_ended = true,
                Err(error) => {
                    self.has_ended = true;
                    let problem = format!("read error: {}", errno_text(&error));
                    self.complain("", problem.as_bytes());
                }
            }
        }
        None
    }
}
