//! The stages of one entry, or of one operand that is not a directory.
//!
//! ```text
//! listed                  makes links and symbolic links without a look; or calls
//!   look_and_copy         looks; queues a directory or a large file, or calls decide, or make if no rules are left
//!     decide              applies the rules; keeps the dest, or renames or unlinks it; calls
//!       make              makes a copy by the type just seen, or a link instead
//!         make_file       opens a regular file without looking; if its type has changed, looks and calls make
//!           copy_opened   copies the content, or queues that
//! ```
//!
//! Each entry begins with the first stage that it needs: `make_file` if it is a plain regular file, `decide` or `make` if
//! it is an operand, `look_and_copy` if it has waited, and `listed` otherwise. [`super::making`] fills files and makes the other
//! kinds of copies. If several engines share the run, `decide` and `making` give an entry with several names to its home.

use std::ops::ControlFlow;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::making::Adopted;
use super::{EntryCopy, Processed, durable, large, verifying};
use crate::copy::content::OpenSource;
use crate::copy::context::{Failure, Stage};
use crate::copy::decide::mode::Origin;
use crate::copy::dest::existing::{self, Unreplaced};
use crate::copy::dest::{Naming, backup};
use crate::copy::entry::Entry;
use crate::copy::facts::{DestState, Symlinks};
use crate::copy::large::TASK_FROM;
use crate::copy::make::{self, file};
use crate::copy::options::{LinkKind, Replace};
use crate::error::{Operation, Refusal};
use crate::observer::{CopyMethod, Event};
use crate::report::Counted;
use crate::sys::{self, Stat, Storage};
use crate::walk::{self, Reconsidered};

impl EntryCopy<'_, '_, '_, '_> {
    /// Copies an entry that is not listed as a directory, if it may need more than the fast path.
    pub(super) fn listed(&mut self, kind: FileType) -> Result<Processed, Failure> {
        let options = self.entry.ctx.policy.options;
        let made = match (kind, options.as_links) {
            _ if !options.rules.are_plain() => return self.look_and_copy(),
            (FileType::RegularFile, Some(kind))
                // A symbolic link can be made to a directory, too.
                if kind == LinkKind::Hard || !is_listed_by_server(self) =>
            {
                self.make_link(kind)
            }
            (FileType::Symlink, None) if self.entry.symlinks == Symlinks::NoFollow => {
                self.copy_symlink(None)
            }
            _ => return self.look_and_copy(),
        };
        made.or_else(|failure| match self.entry.stat_source() {
            // The filesystem has listed the wrong type, or another process has replaced the source.
            Ok(source) if sys::file_type(&source) != kind => self.look_and_copy(),
            _ => Err(failure),
        })
    }

    /// Looks at the source, applies the rules about its dest unless that was done before, and copies it.
    pub(super) fn look_and_copy(&mut self) -> Result<Processed, Failure> {
        let source = match self.look()? {
            ControlFlow::Continue(source) => source,
            ControlFlow::Break(processed) => return Ok(processed),
        };
        let is_undecided = matches!(self.entry.dest_state, DestState::Unchecked);
        if !is_undecided || !self.entry.has_rules() {
            return self.make(&source);
        }
        // The rules may rename or unlink the dest, so they are applied when the file's turn comes.
        match large::try_lend(self, &source) {
            true => Ok(large::queue(self, &source, None)),
            false => self.decide(&source),
        }
    }

    /// Looks at the source. If its type has changed, the filter may leave it alone now. Queues a directory.
    /// Breaks if there is nothing more to do.
    pub(super) fn look(&mut self) -> Result<ControlFlow<Processed, Stat>, Failure> {
        let entry = self.entry;
        let source = entry
            .stat_source()
            .map_err(|errno| entry.source_stat_failure(errno))?;
        let kind = sys::file_type(&source);
        let Some(node) = entry.node else {
            return match kind {
                // The operand was not a directory when it was begun.
                FileType::Directory => {
                    let error = entry.source_error(Operation::OpenSource, Errno::ISDIR);
                    Err(Failure::making(error))
                }
                _ => Ok(ControlFlow::Continue(source)),
            };
        };
        if kind == entry.kind {
            return Ok(ControlFlow::Continue(source));
        }
        let (dir, name) = (entry.source_dir, entry.source_name);
        match walk::reconsider(node, dir, name, kind, self.worker) {
            Reconsidered::Process => Ok(ControlFlow::Continue(source)),
            Reconsidered::Queued => Ok(ControlFlow::Break(Processed::Queued)),
            Reconsidered::LeftAlone if matches!(entry.dest_state, DestState::Unchecked) => {
                Ok(ControlFlow::Break(Processed::NotCopied))
            }
            // Rules may have moved the dest away. This failure puts it back.
            Reconsidered::LeftAlone => Err(entry.source_refused(Refusal::SourceReplaced)),
        }
    }

    /// Applies the rules about the dest, and copies the source.
    pub(super) fn decide(&mut self, source: &Stat) -> Result<Processed, Failure> {
        let Self { run, entry, .. } = *self;
        if let Some(home) = self.other_home(source) {
            return self.entrust(home);
        }
        let found = match existing::decide(entry, source)? {
            ControlFlow::Continue(found) => found,
            ControlFlow::Break(kept) => return self.keep(source, kept),
        };
        // Other names of a source may become links, which need no room.
        if !entry.has_other_names(source) {
            large::check_room(run, entry, source)?;
        }
        run.check_dest_of_operand(entry, source)?;
        let numbers = &mut self.worker.scratch.own.backup_numbers;
        let prepared = existing::prepare(entry, source, found.as_ref(), numbers)?;
        let entry = &Entry {
            dest_state: prepared.map(|backup| &**backup),
            ..*entry
        };
        let worker = &mut *self.worker;
        let made = EntryCopy { run, entry, worker }.make(source);
        made.or_else(|failure| {
            // Nothing was changed, so the caller can try again.
            if failure.stage == Stage::AtDanglingDest
                && matches!(prepared, DestState::Vacant { backup: None })
            {
                return Err(failure);
            }
            entry.report_failure(failure);
            backup::restore(entry);
            Ok(Processed::NotCopied)
        })
    }

    /// Leaves the dest as it is.
    fn keep(&mut self, source: &Stat, kept: Unreplaced) -> Result<Processed, Failure> {
        let Self { run, entry, .. } = *self;
        let ctx = entry.ctx;
        if let Unreplaced::Adopted(dest) = &kept {
            self.worker.scratch.tally.kept += 1;
            let is_resumed = ctx.policy.options.rules.replace == Replace::Changed;
            if is_resumed {
                run.check_dest_of_operand(entry, source)?;
            }
            if self.adopt(source, dest)? == Adopted::Waiting {
                return Ok(Processed::Handled);
            }
            if is_resumed {
                make::update_attributes(entry, source, dest)?;
                verifying::add(self, source);
            }
            durable::kept(entry, dest)?;
            if is_resumed && entry.is_operand() {
                // An earlier run has made it, so it counts as made.
                run.used.note(ctx, entry.operand, None);
            }
        }
        let content = ctx.policy.options.counted_content();
        ctx.report.skipped(content.bytes(source));
        if !matches!(kept, Unreplaced::AlreadyThere) {
            entry.emit(|_, dest, _| Event::SkippedDest(dest));
        }
        Ok(Processed::NotCopied)
    }

    /// Copies a source that was looked at.
    pub(super) fn make(&mut self, source: &Stat) -> Result<Processed, Failure> {
        let entry = self.entry;
        let (ctx, scratch) = (entry.ctx, &mut self.worker.scratch.own);
        if let Some(kind) = ctx.policy.options.as_links {
            return self.make_link(kind);
        }
        match sys::file_type(source) {
            FileType::RegularFile => self.make_file(),
            FileType::Symlink => self.copy_symlink(Some(source)),
            _ if ctx.policy.reads_special_content() => {
                let opened = file::open_special(entry, source, scratch)?;
                self.copy_opened(opened)
            }
            _ => self.copy_special(source),
        }
    }

    /// Copies a source that was listed or seen as a regular file. Looks at it only if its type has changed.
    #[inline(always)]
    pub(super) fn make_file(&mut self) -> Result<Processed, Failure> {
        let entry = self.entry;
        let scratch = &mut self.worker.scratch.own;
        if scratch.expects_empty
            && entry.ctx.policy.creates_empty_files
            // A process that watches an older directory waits for a file to be closed.
            && entry.node.is_some_and(|node| node.state.origin() == Origin::Created)
            && file::try_copy_empty(entry, scratch)
        {
            self.count(Counted::File, 0);
            entry.emit_copied(Some(CopyMethod::default()));
            return Ok(Processed::Handled);
        }
        let opened = match file::open_regular(entry, scratch)? {
            Some(opened) => opened,
            None => match self.look()? {
                ControlFlow::Continue(source) if sys::is_regular(&source) => {
                    file::open_again(entry, &mut self.worker.scratch.own)?
                }
                ControlFlow::Continue(source) => return self.make(&source),
                ControlFlow::Break(processed) => return Ok(processed),
            },
        };
        self.copy_opened(opened)
    }

    /// Copies the content of a source that is open, or queues that as a task.
    // If it is not inlined, the call copies the stat of the source. That takes 40 more instructions for each file with
    // data. The guard's case `cpz-files-with-data` counts them.
    #[inline(always)]
    fn copy_opened(&mut self, source: OpenSource) -> Result<Processed, Failure> {
        self.worker.scratch.own.expects_empty = source.is_known_empty();
        if self.entry.has_other_names(&source.stat) {
            let stat = source.stat;
            return self.make_or_link(&stat, |copy| {
                if gets_own_task(&source) {
                    large::check_room(copy.run, copy.entry, &stat)?;
                }
                copy.fill(&source, Naming::WhenComplete)
            });
        }
        if !gets_own_task(&source) {
            self.fill(&source, Naming::WhenComplete)?;
            return Ok(Processed::Handled);
        }
        let stat = source.stat;
        match large::try_lend(self, &stat) {
            true => Ok(large::queue(self, &stat, Some(source))),
            false => large::copy_content(self, source),
        }
    }
}

/// Returns `true` if the source is on the filesystem of a server, which may list wrong types.
fn is_listed_by_server(copy: &mut EntryCopy<'_, '_, '_, '_>) -> bool {
    let EntryCopy { entry, worker, .. } = copy;
    entry.source_directory().is_none_or(|directory| {
        let device = sys::device_of(directory.file());
        let scratch = &mut worker.scratch.own;
        scratch.storage(device, entry.source_dir) == Storage::Server
    })
}

fn gets_own_task(source: &OpenSource) -> bool {
    source.stat.st_size as u64 >= TASK_FROM
}
