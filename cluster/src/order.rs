//! The work and the surroundings that rank 0 resolves for all ranks, so that no rank depends on its own arguments or
//! environment.
//!
//! A launcher may start ranks with other arguments, variables, umasks or working directories. If a rank then
//! removed what the user has excluded, it would be too late to notice. So only rank 0 reads its command line, its
//! file of options, lists of names and files of patterns.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use fuc_cli::console::Console;
use fuc_cli::exclude::{ExcludeFilter, Exclusions};
use fuc_cli::flags::UsageError;
use fuc_cli::locale::Charset;
use fuc_cli::reporter::Verbosity;
use fuc_cli::wording::{self, Tool};
use fuc_engine::{CopyOp, Dest, RemoveOp};
use rustix::fs::Mode;
use rustix::process::umask;

use crate::homes::Links;
use crate::wire::{Wire, wire_enum, wire_struct};

/// The work of a job, on which all ranks agree.
#[derive(Clone, Debug)]
pub struct Order {
    pub(crate) work: Work,
    /// The operands of a removal, or the sources of a copy.
    pub(crate) operands: Vec<OsString>,
    /// The entries that are left alone. They contain no files of patterns, since other ranks may not have them.
    pub(crate) exclusions: Exclusions,
    pub(crate) verbosity: Verbosity,
    /// The most entries per second of all ranks together.
    pub(crate) max_rate: Option<NonZeroUsize>,
    /// The choice of the ranks that keep hard links.
    pub(crate) links: Links,
    pub(crate) surroundings: Surroundings,
}

/// The operation of a job.
#[derive(Clone, Debug)]
pub enum Work {
    /// The operands are removed.
    Removal(Box<RemoveOp<'static>>),
    /// The operands are copied.
    Copy(Box<CopyOp<'static>>, Dest),
}

/// The properties of rank 0's process on which a run depends.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    /// The name of the command, for its messages.
    pub(crate) program: Vec<u8>,
    /// The charset in which names are shown.
    pub(crate) charset: Charset,
    /// The directory in which relative operands are looked up.
    pub(crate) directory: PathBuf,
    /// The bits that new files do not get.
    pub(crate) umask: u32,
}

impl Order {
    /// Makes the order of rank 0. `filter` is that of the exclusions.
    ///
    /// # Errors
    /// If the working directory has no path.
    pub fn new(
        work: Work,
        operands: Vec<OsString>,
        filter: Option<&ExcludeFilter>,
        verbosity: Verbosity,
        console: &Console,
    ) -> Result<Self, UsageError> {
        Ok(Self {
            links: match &work {
                Work::Removal(_) => Links::default(),
                Work::Copy(options, dest) => Links::of_copy(options, dest, &operands),
            },
            work,
            operands,
            exclusions: filter.map_or_else(Exclusions::default, ExcludeFilter::exclusions),
            verbosity,
            max_rate: None,
            surroundings: Surroundings::of_this_process(console)?,
        })
    }

    /// Limits the entries per second of all ranks together.
    #[must_use]
    pub fn limited_to(mut self, max_rate: Option<NonZeroUsize>) -> Self {
        self.max_rate = max_rate;
        self
    }

    pub(crate) fn tool(&self) -> Tool {
        match self.work {
            Work::Removal(_) => Tool::Remove,
            Work::Copy(..) => Tool::Copy,
        }
    }
}

impl Surroundings {
    fn of_this_process(console: &Console) -> Result<Self, UsageError> {
        let directory = std::env::current_dir().map_err(|error| {
            let reason = wording::errno_text(&error);
            UsageError::plain(format!("cannot find the working directory: {reason}"))
        })?;
        // The only way to read the umask is to set it.
        let mask = umask(Mode::RWXG | Mode::RWXO);
        umask(mask);
        Ok(Self {
            program: console.program().to_vec(),
            charset: console.charset(),
            directory,
            umask: mask.as_raw_mode(),
        })
    }

    /// Gives this process the working directory and the umask of rank 0.
    ///
    /// # Errors
    /// If the directory cannot be entered.
    pub(crate) fn enter(&self) -> std::io::Result<()> {
        umask(Mode::from_raw_mode(self.umask));
        std::env::set_current_dir(&self.directory)
    }
}

wire_struct!(Order {
    work,
    operands,
    exclusions,
    verbosity,
    max_rate,
    links,
    surroundings,
});
wire_struct!(Surroundings {
    program,
    charset,
    directory,
    umask,
});
wire_enum!(Charset { Utf8, Ascii });
wire_enum!(Verbosity {
    Quiet,
    Verbose,
    Debug,
});

impl Wire for Work {
    fn put(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Removal(options) => {
                bytes.push(0);
                options.put(bytes);
            }
            Self::Copy(options, dest) => {
                bytes.push(1);
                options.put(bytes);
                dest.put(bytes);
            }
        }
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        match u8::take(bytes)? {
            0 => Some(Self::Removal(Wire::take(bytes)?)),
            1 => Some(Self::Copy(Wire::take(bytes)?, Wire::take(bytes)?)),
            _ => None,
        }
    }
}

impl Wire for Exclusions {
    fn put(&self, bytes: &mut Vec<u8>) {
        let patterns: Vec<_> = self.patterns().map(OsString::from).collect();
        patterns.put(bytes);
        self.reads_gitignore().put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let mut exclusions = Self::default();
        for pattern in Vec::<OsString>::take(bytes)? {
            exclusions.add_read_pattern(pattern);
        }
        if bool::take(bytes)? {
            exclusions.add_gitignore();
        }
        Some(exclusions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::assert_travels;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn an_order_is_read_as_it_was_written() {
        let mut exclusions = Exclusions::default();
        exclusions.add_read_pattern("*.o".into());
        exclusions.add_gitignore();
        let order = Order {
            work: Work::Removal(Box::default()),
            operands: vec!["a".into(), OsString::from_vec(b"\xff\n".to_vec())],
            exclusions,
            verbosity: Verbosity::Debug,
            max_rate: NonZeroUsize::new(7),
            links: Links::default(),
            surroundings: Surroundings {
                program: b"rmz-mpi".to_vec(),
                charset: Charset::Ascii,
                directory: "/some/where".into(),
                umask: 0o27,
            },
        };
        assert_travels(&order);
        assert_travels(&Order {
            work: Work::Copy(Box::default(), Dest::Exactly("b".into())),
            ..order
        });
    }
}
