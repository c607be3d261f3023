//! The work and the surroundings that rank 0 resolves for all ranks, so that no rank depends on its own arguments or
//! environment.
//!
//! A launcher may start ranks with other arguments, variables, umasks or working directories. If a rank then
//! removed what the user has excluded, it would be too late to notice. So only rank 0 reads its command line, its
//! file of options, lists of names and files of patterns.

use std::ffi::OsString;
use std::num::NonZeroUsize;

use fuc_cli::common::CommonOptions;
use fuc_cli::console::Console;
use fuc_cli::exclude::{ExcludeFilter, Exclusions};
use fuc_cli::flags::UsageError;
use fuc_cli::locale::Charset;
use fuc_cli::rate::MaxRate;
use fuc_cli::reporter::Verbosity;
use fuc_cli::tool::Tool;
use fuc_cli::wording;
use fuc_engine::{CopyOp, Dest, Execution, RemoveOp};
use rustix::fs::Mode;
use rustix::process::umask;
use serde::{Deserialize, Serialize};

use crate::homes::Links;

/// The work of a job, on which all ranks agree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    pub(crate) work: Work<'static>,
    /// The operands of a removal, or the sources of a copy.
    pub(crate) operands: Vec<OsString>,
    /// The entries that are left alone, without files of patterns: other ranks may not have these.
    pub(crate) exclusions: Exclusions,
    pub(crate) verbosity: Verbosity,
    /// Each failure is written. Otherwise, each rank counts equal ones after the first.
    pub(crate) all_failures: bool,
    /// The most entries or bytes per second of all ranks together.
    pub(crate) max_rate: Option<MaxRate>,
    /// The choice of the ranks that keep hard links.
    pub(crate) links: Links,
    pub(crate) surroundings: Surroundings,
}

/// The operation of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Work<'a> {
    /// The operands are removed.
    Removal(Box<RemoveOp<'a>>),
    /// The operands are copied.
    Copy(Box<CopyOp<'a>>, Dest),
}

/// The properties of rank 0's process on which a run depends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Surroundings {
    /// The name of the command, for its messages.
    pub(crate) program: Vec<u8>,
    /// The charset in which names are shown.
    pub(crate) charset: Charset,
    /// The directory in which relative operands are looked up.
    pub(crate) directory: OsString,
    /// The bits that new files do not get.
    pub(crate) umask: u32,
}

impl Order {
    /// Makes the order of rank 0. `filter` is that of the exclusions.
    ///
    /// # Errors
    /// If the working directory has no path.
    pub fn new(
        work: Work<'static>,
        operands: Vec<OsString>,
        filter: Option<&ExcludeFilter>,
        common: &CommonOptions,
        console: &Console,
    ) -> Result<Self, UsageError> {
        Ok(Self {
            links: match &work {
                Work::Removal(_) => Links::default(),
                Work::Copy(options, dest) => Links::of_copy(options, dest, &operands),
            },
            work,
            operands,
            exclusions: filter.map(ExcludeFilter::exclusions).unwrap_or_default(),
            verbosity: common.verbosity,
            all_failures: common.all_failures,
            max_rate: common.max_rate,
            surroundings: Surroundings::of_this_process(console)?,
        })
    }

    /// Returns whether anything is changed. Rank 0 makes a dry run, and the others wait.
    pub(crate) fn execution(&self) -> Execution {
        match &self.work {
            Work::Removal(options) => options.execution,
            Work::Copy(options, _) => options.execution,
        }
    }

    /// Returns the most threads of each rank, if there is a limit.
    pub(crate) fn threads(&self) -> Option<NonZeroUsize> {
        match &self.work {
            Work::Removal(options) => options.threads,
            Work::Copy(options, _) => options.threads,
        }
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
            directory: directory.into(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::assert_travels;
    use fuc_engine::{Backup, Dereference, LinkKind, Preserve, Replace};
    use std::num::NonZeroU64;
    use std::os::unix::ffi::OsStringExt;
    use std::path::PathBuf;

    #[test]
    fn an_order_is_read_as_it_was_written() {
        let mut exclusions = Exclusions::default();
        exclusions.add_pattern("*.o".as_ref());
        exclusions.reads_gitignore = true;
        exclusions.stops_at_unread = true;
        // Files of patterns are read by rank 0 only.
        let console = Console::new(Vec::new(), Charset::Ascii);
        let filter = exclusions.filter(&console).unwrap().unwrap();
        let exclusions = filter.exclusions();
        let order = Order {
            work: Work::Removal(Box::default()),
            operands: vec!["a".into(), OsString::from_vec(b"\xff\n".to_vec())],
            exclusions,
            verbosity: Verbosity::Debug,
            all_failures: true,
            max_rate: NonZeroU64::new(7).map(MaxRate::Bytes),
            links: Links::default(),
            surroundings: Surroundings {
                program: b"rmz-mpi".to_vec(),
                charset: Charset::Ascii,
                directory: "/some/where".into(),
                umask: 0o27,
            },
        };
        assert_travels(&order);
        let copy = CopyOp::new().with(|copy| {
            copy.dereference = Dereference::Always;
            copy.as_links = Some(LinkKind::Symbolic);
            copy.rules.replace = Replace::NoneAndFail;
            copy.rules.backup = Some(Backup::NumberedIfAny);
            copy.rules.backup_suffix = OsString::from_vec(b"\xff".to_vec());
            copy.preserve = Preserve::all();
            copy.context = Some(c"a:b:c".into());
            copy.threads = NonZeroUsize::new(3);
        });
        let dest = PathBuf::from(OsString::from_vec(b"\xff".to_vec()));
        for dest in [Dest::Exactly(dest.clone()), Dest::Into(dest)] {
            let work = Work::Copy(Box::new(copy.clone()), dest);
            assert_travels(&Order {
                work,
                ..order.clone()
            });
        }
    }
}
