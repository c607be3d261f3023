//! Sources as the caller names them: where each goes, and what is refused at once.

use std::ffi::CStr;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{OnceLock, PoisonError};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::Dest;
use super::item::Item;
use super::parents::name_with_parents;
use super::same_file::Sameness;
use super::settle::{Ground, Made};
use super::tree::{CopyTask, Copying};
use crate::error::{Error, Operation, Refusal};
use crate::node::{self, Place, Side};
use crate::operand;
use crate::sys::{self, CWD, Identity, Stat, Symlinks};
use crate::walk::{Task, Walker};

pub(super) struct Operand {
    pub(super) source: Box<CStr>,
    /// Relative to the target directory, if there is one.
    pub(super) dest_name: Box<CStr>,
    /// For people.
    pub(super) dest_path: PathBuf,
    /// The directory that this operand's copy begins with.
    pub(super) root: OnceLock<Identity>,
}

impl Operand {
    pub(super) fn new(source: &Path, dest: &Dest, parents: bool) -> Result<Self, Error> {
        let unusable = |operation, path: &Path| {
            let path = path.to_path_buf();
            move |errno| Error::failed(operation, path, errno)
        };
        let c_source = operand::to_c(source).map_err(unusable(Operation::Stat, source))?;
        let (dest_name, dest_path) = match dest {
            Dest::Exactly(path) => (
                operand::to_c(path).map_err(unusable(Operation::Stat, path))?,
                path.clone(),
            ),
            Dest::Into(target) => {
                let name = if parents {
                    name_with_parents(&c_source)
                } else {
                    name_in_target(&c_source)
                };
                let path = node::join(target, &name);
                (name, path)
            }
        };
        Ok(Self {
            source: c_source,
            dest_name,
            dest_path,
            root: OnceLock::new(),
        })
    }
}

/// The source's last component; the target itself for `.`, `..` and `/`, which name nothing in it.
fn name_in_target(source: &CStr) -> Box<CStr> {
    let (_, name) = operand::split(source.to_bytes());
    if name.is_empty() || operand::is_dot_or_dot_dot(name) {
        return c".".into();
    }
    std::ffi::CString::new(name)
        .expect("BUG: a NUL within a C string")
        .into_boxed_c_str()
}

/// What the operands of a run have used up.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Used {
    /// A source and where it goes, whatever path leads to it.
    Source(Box<CStr>, Identity),
    Dest(Box<CStr>),
}

/// Operands that are to be begun, in order.
pub(super) struct Operands {
    pub(super) range: Range<u32>,
    /// Nothing else is under way.
    pub(super) is_alone: bool,
}

impl Copying<'_> {
    /// Copies operands that are no directories, in order, and queues the others.
    ///
    /// A source that the target lies in would meet the copies of its
    /// neighbours there: it waits for those before it, and those after it wait.
    pub(super) fn begin_all(&self, operands: Operands, worker: &mut Walker<'_, '_, Self>) {
        let queued_before = worker.backlog();
        let rest = self.begin_portion(&operands, worker);
        let queued = worker.backlog().saturating_sub(queued_before);
        // The last one queued would be the first to run.
        worker.reverse_top(queued);
        if let Some(range) = rest {
            let rest = Operands {
                range,
                is_alone: false,
            };
            worker.push_under(queued, Task::Own(CopyTask::Operands(rest)));
        }
    }

    /// Returns what is to be done next.
    fn begin_portion(
        &self,
        operands: &Operands,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Option<Range<u32>> {
        let (portion, rest) = operand::portion(operands.range.clone());
        for index in portion {
            self.report.publish(&mut worker.scratch.tally);
            if self.options().parents
                && let Err(error) = self.make_parents(index)
            {
                self.report.failed(error);
                continue;
            }
            let item = self.item(index);
            let stat = match item.stat_source() {
                Ok(stat) => stat,
                Err(errno) => {
                    self.report
                        .failed(self.source_error(&item, Operation::Stat, errno));
                    continue;
                }
            };
            let is_above_target = self.is_above_target(&stat);
            if is_above_target && !(operands.is_alone && index == operands.range.start) {
                self.defer(index..operands.range.end);
                return None;
            }
            if let Err(error) = self.begin(&item, &stat, worker) {
                self.report_item(&item, error);
            }
            if is_above_target {
                self.defer(index + 1..operands.range.end);
                return None;
            }
        }
        rest
    }

    fn defer(&self, operands: Range<u32>) {
        let mut deferred = self.deferred.lock().unwrap_or_else(PoisonError::into_inner);
        *deferred = (!operands.is_empty()).then_some(operands);
    }

    fn is_above_target(&self, source: &Stat) -> bool {
        if self.operands.len() < 2 || sys::file_type(source) != FileType::Directory {
            return false;
        }
        let Some(target) = &self.target else {
            return false;
        };
        let above = self.above_target.get_or_init(|| ancestry(target.as_fd()));
        let source = sys::identity(source);
        above.iter().any(|directory| directory.same_file(source))
    }

    pub(super) fn item(&self, index: u32) -> Item<'_> {
        let operand = &self.operands[index as usize];
        Item {
            source_dir: CWD,
            source_name: &operand.source,
            dest_dir: self.target(),
            dest_name: &operand.dest_name,
            symlinks: self.symlinks_of_operands(),
            ground: Ground::Unknown,
            node: None,
            operand: index,
        }
    }

    fn begin(
        &self,
        item: &Item<'_>,
        stat: &Stat,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<(), Error> {
        let kind = sys::file_type(stat);
        if kind == FileType::Directory && !self.options().recursive {
            let path = self.item_path(item, Side::Source);
            return Err(Error::refused(Refusal::NotRecursive, path));
        }
        self.check_named_twice(item, stat)?;
        if kind == FileType::Directory {
            let place = Place {
                parent: None,
                name: item.source_name.into(),
                operand: item.operand,
            };
            worker.push(Task::Enter { place, pass: 0 });
            return Ok(());
        }
        let made = if self.rules.are_plain() {
            self.check_just_created(item, stat)?;
            self.copy_seen(item, stat, worker)?;
            Made::Yes
        } else {
            self.copy_by_rules(item, stat, worker)?
        };
        if made == Made::Yes {
            self.remember_dest(item);
        }
        Ok(())
    }

    /// Two operands must not be one source.
    fn check_named_twice(&self, item: &Item<'_>, source: &Stat) -> Result<(), Error> {
        if self.operands.len() < 2 || self.target.is_none() {
            return Ok(());
        }
        let is_directory = sys::file_type(source) == FileType::Directory;
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let as_source = Used::Source(item.dest_name.into(), sys::identity(source));
        // With backups, the second copy does not go over the first one unseen.
        let is_told_later = !is_directory && self.rules.backup.is_some();
        if used.contains(&as_source) && !is_told_later && self.was_named_before(item) {
            let path = self.item_path(item, Side::Source);
            let refusal = if is_directory {
                Refusal::DirectoryNamedTwice
            } else {
                Refusal::FileNamedTwice
            };
            return Err(Error::refused(refusal, path));
        }
        if is_directory {
            // Only once its copy has begun is it a source given before.
            return Ok(());
        }
        used.insert(as_source);
        Ok(())
    }

    /// Whether an earlier operand is the same name in the same directory, and not
    /// only another name of the same file.
    fn was_named_before(&self, item: &Item<'_>) -> bool {
        let is_it = |earlier: &Operand| {
            let earlier = Item {
                dest_dir: CWD,
                dest_name: &earlier.source,
                ..*item
            };
            earlier.is_one_entry()
        };
        let earlier = &self.operands[..item.operand as usize];
        earlier.iter().any(is_it)
    }

    /// Two operands must not make one file, unless the first becomes a backup of its own.
    pub(super) fn check_just_created(&self, item: &Item<'_>, source: &Stat) -> Result<(), Error> {
        if self.operands.len() < 2 || self.target.is_none() || self.rules.numbers_backups() {
            return Ok(());
        }
        let dest = Used::Dest(item.dest_name.into());
        if !(self.used.lock().unwrap_or_else(PoisonError::into_inner)).contains(&dest) {
            return Ok(());
        }
        let is = |symlinks, kind| {
            item.stat_dest(symlinks)
                .is_ok_and(|there| sys::file_type(&there) == kind)
        };
        if self.sameness_of(item, source) == Sameness::SameFile {
            return Err(self.same_file(item));
        }
        let target = item.stat_dest(self.follows_dest(source));
        if let Err(errno @ Errno::LOOP) = target {
            return Err(self.dest_error(item, Operation::Stat, errno));
        }
        let refusal = if self.options().as_links.is_some()
            || sys::file_type(source) != FileType::RegularFile
            || self.rules.moves_dest()
            || !is(Symlinks::NoFollow, FileType::Symlink)
        {
            Refusal::JustCreated
        } else if is(Symlinks::Follow, FileType::Directory) {
            Refusal::DirectoryByNonDirectory
        } else {
            Refusal::ThroughJustCreatedLink
        };
        Err(self.refusal(item, refusal))
    }

    /// The copy of a directory operand has begun.
    pub(super) fn remember_directory(&self, operand: u32, source: Identity) {
        if self.operands.len() >= 2 && self.target.is_some() {
            let dest = self.operands[operand as usize].dest_name.clone();
            let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            // As `stat` tells it, which knows no time of birth.
            used.insert(Used::Source(dest, source.without_birth()));
        }
    }

    fn remember_dest(&self, item: &Item<'_>) {
        if self.operands.len() >= 2 && self.target.is_some() {
            let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            used.insert(Used::Dest(item.dest_name.into()));
        }
    }
}

/// Returns an open directory and all directories above it, as far as they can be reached.
fn ancestry(dir: BorrowedFd<'_>) -> Vec<Identity> {
    let mut found = Vec::new();
    let mut above = sys::open_path_directory(dir, c".", Symlinks::NoFollow);
    while let Ok(dir) = above {
        match sys::stat_directory(dir.as_fd()) {
            // The root is its own parent.
            Ok(stat) if found.last() != Some(&stat.identity) => found.push(stat.identity),
            _ => break,
        }
        above = sys::open_path_directory(dir.as_fd(), c"..", Symlinks::NoFollow);
    }
    found
}
