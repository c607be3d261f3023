//! The options and operands that rank 0 resolves for all ranks, so that no rank depends on its own arguments or
//! environment.
//!
//! A launcher may start ranks with other arguments, variables or working directories. If a rank then removed what
//! the user has excluded, it would be too late to notice. So only rank 0 reads its command line, its
//! file of options and the files of patterns.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use fuc_cli::exclude::Exclusions;
use fuc_cli::reporter::Verbosity;
use fuc_engine::RemoveOptions;

use crate::bytes::{put_number, put_slice, take_byte, take_number, take_slice};

/// A removal that all ranks work on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The name of the command, for its messages.
    pub program: Vec<u8>,
    /// The directory in which relative operands are looked up: the working directory of rank 0.
    pub directory: PathBuf,
    /// The operands.
    pub operands: Vec<OsString>,
    /// The patterns of `--exclude`, in order.
    pub patterns: Vec<OsString>,
    /// See [`RemoveOptions::ignore_missing`].
    pub ignore_missing: bool,
    /// See [`RemoveOptions::one_file_system`].
    pub one_file_system: bool,
    /// See [`RemoveOptions::threads`].
    pub threads: Option<NonZeroUsize>,
    /// Says whether each removed name is printed.
    pub is_verbose: bool,
}

impl Order {
    /// Returns the order as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_slice(&mut bytes, &self.program);
        put_slice(&mut bytes, self.directory.as_os_str().as_bytes());
        for list in [&self.operands, &self.patterns] {
            put_number(&mut bytes, list.len() as u64);
            list.iter()
                .for_each(|item| put_slice(&mut bytes, item.as_bytes()));
        }
        put_number(
            &mut bytes,
            self.threads.map_or(0, |threads| threads.get() as u64),
        );
        let flags = [self.ignore_missing, self.one_file_system, self.is_verbose];
        bytes.extend(flags.map(u8::from));
        bytes
    }

    /// Reads what [`encode`](Self::encode) has written. Returns `None` for anything else.
    #[must_use]
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let order = Self {
            program: take_slice(bytes)?.to_vec(),
            directory: OsStr::from_bytes(take_slice(bytes)?).into(),
            operands: take_list(bytes)?,
            patterns: take_list(bytes)?,
            threads: NonZeroUsize::new(usize::try_from(take_number(bytes)?).ok()?),
            ignore_missing: take_byte(bytes)? != 0,
            one_file_system: take_byte(bytes)? != 0,
            is_verbose: take_byte(bytes)? != 0,
        };
        bytes.is_empty().then_some(order)
    }

    /// Returns the options of a rank that assists.
    #[must_use]
    pub fn options(&self) -> RemoveOptions {
        let mut options = RemoveOptions::default();
        options.ignore_missing = self.ignore_missing;
        options.one_file_system = self.one_file_system;
        options.threads = self.threads;
        options
    }

    /// Returns the entries that stay.
    #[must_use]
    pub fn exclusions(&self) -> Exclusions {
        let mut exclusions = Exclusions::default();
        for pattern in &self.patterns {
            exclusions.add_pattern(pattern);
        }
        exclusions
    }

    /// Returns the amount of detail in the report.
    #[must_use]
    pub fn verbosity(&self) -> Verbosity {
        match self.is_verbose {
            true => Verbosity::Verbose,
            false => Verbosity::Quiet,
        }
    }
}

fn take_list(bytes: &mut &[u8]) -> Option<Vec<OsString>> {
    let count = take_number(bytes)?;
    let items = (0..count).map(|_| Some(OsString::from_vec(take_slice(bytes)?.to_vec())));
    items.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_written() {
        let order = Order {
            program: b"rmz-mpi".to_vec(),
            directory: "/some/where".into(),
            operands: vec!["a".into(), OsString::from_vec(b"\xff\n".to_vec())],
            patterns: vec!["*.o".into()],
            ignore_missing: true,
            one_file_system: false,
            threads: NonZeroUsize::new(3),
            is_verbose: true,
        };
        let bytes = order.encode();
        assert_eq!(Order::decode(&bytes), Some(order));
        for end in 0..bytes.len() {
            assert_eq!(Order::decode(&bytes[..end]), None, "{end} bytes");
        }
    }
}
