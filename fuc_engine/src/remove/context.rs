//! The parts of a run that all of its steps share. This module decides nothing.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;

use super::name::{Name, Parent};
use super::node::RemoveDir;
use super::options::{Ask, RemoveOptions};
use crate::descriptors::{Descriptors, Roots};
use crate::node::Side;
use crate::observer::Observer;
use crate::report::Report;
use crate::sys::{self, CWD, Symlinks};

pub(super) struct Context<'a> {
    pub(super) options: &'a RemoveOptions,
    pub(super) operands: Vec<Box<CStr>>,
    pub(super) report: Report<'a>,
    pub(super) descriptors: Descriptors<RemoveDir>,
    /// `true` if there may be questions. The flag is read for every entry.
    pub(super) asks: bool,
    /// `true` if no mode protects a file from the user. It is `false` if there are no
    /// questions, because then it does not matter.
    pub(super) is_superuser: bool,
}

impl<'a> Context<'a> {
    pub(super) fn new(options: &'a RemoveOptions, observer: &'a dyn Observer) -> Self {
        let asks = options.ask != Ask::Never;
        Self {
            options,
            operands: Vec::new(),
            report: Report::new(observer),
            descriptors: Descriptors::new(),
            asks,
            is_superuser: asks && sys::effective_user() == 0,
        }
    }

    pub(super) fn operand_path(&self, operand: u32) -> &Path {
        Path::new(OsStr::from_bytes(
            self.operands[operand as usize].to_bytes(),
        ))
    }

    /// Runs `call` on the directory that `name` is in, and on its name there.
    pub(super) fn at<T>(
        &self,
        name: Name<'_>,
        call: impl FnOnce(BorrowedFd<'_>, &CStr) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match name.parent {
            Parent::Node(node) => {
                let dir = self.descriptors.pin(node, Side::Source, self)?;
                call(dir.as_fd(), name.name)
            }
            Parent::Operand(_) => call(CWD, name.name),
        }
    }

    /// Opens a directory.
    pub(super) fn open(&self, name: Name<'_>) -> Result<OwnedFd, Errno> {
        self.at(name, |dir, name| {
            self.descriptors
                .making_room(|| sys::open_directory(dir, name, Symlinks::NoFollow))
        })
    }
}

impl Roots for Context<'_> {
    fn open_operand(&self, operand: u32, _side: Side) -> Result<OwnedFd, Errno> {
        sys::open_directory(CWD, &self.operands[operand as usize], Symlinks::NoFollow)
    }
}
