//! The way of one entry, or of one operand that is not a directory.
//!
//! ```text
//! process_by_rules          looks; queues a directory, or calls
//!   copy_by_rules           decides; renames or unlinks the dest
//!     make_known            calls make_seen for all but regular files of a directory
//!       make_listed_file    opens a regular file without looking; if its type has changed:
//!         look_and_make     looks; queues a directory, or calls
//!           make_seen       copies by the type just seen, or makes a link instead
//! ```
//!
//! The visitor and the tasks call the first function that an entry needs: `process_by_rules` if
//! there are rules, `make_listed_file` for a plain regular file, `look_and_make` for a waiter. If
//! the source may have other names, `make_or_link` links to the first copy instead of another one. If
//! several engines share the copy, `copy_by_rules` and `make_or_link` give such an entry to its home.

use std::ops::ControlFlow;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::tasks::CopyTask;
use super::{CopyRun, durable, large, sharing, verifying};
use crate::copy::content::{Moved, PIECE_BYTES};
use crate::copy::context::Failure;
use crate::copy::decide::mode::Origin;
use crate::copy::dest::backup;
use crate::copy::dest::open;
use crate::copy::dest::overwrite::{self, Decided};
use crate::copy::facts::{DestState, Entry, FileId, StoredEntry, Symlinks};
use crate::copy::hardlinks::{Claim, FirstCopy};
use crate::copy::large::TASK_FROM;
use crate::copy::large::naming::Naming;
use crate::copy::look;
use crate::copy::make::file::{self, Filled};
use crate::copy::make::{Created, hardlink, link, special, symlink};
use crate::copy::options::{LinkKind, Replace};
use crate::copy::source::OpenSource;
use crate::error::{self, Error, Operation, Refusal};
use crate::node::{Dir, Side};
use crate::observer::{BYTES_PER_WORK, CopyMethod, Event, Mechanism};
use crate::report::Counted;
use crate::sched::When;
use crate::sys::{self, Stat, Storage};
use crate::walk::{self, Reconsidered, Task, Walker};

/// The result for an entry that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Processed {
    /// Copied, or waits for another name of its source, or was given to another engine.
    Handled,
    /// Queued, because there is much content to copy.
    QueuedLarge,
    /// Nothing was to be done, or a failure was reported already.
    NotCopied,
    /// The entry is a directory, for which a task was queued.
    Queued,
}

impl CopyRun<'_> {
    /// Copies an entry that is not listed as a directory, if it may need more than the fast path.
    pub(super) fn process_listed(
        &self,
        entry: &Entry<'_>,
        kind: FileType,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Processed, Failure> {
        let options = self.ctx.policy.options;
        let made = match (kind, options.as_links) {
            _ if !options.rules.are_plain() => return self.process_by_rules(entry, worker),
            (FileType::RegularFile, Some(kind))
                // A symbolic link can be made to a directory, too.
                if kind == LinkKind::Hard || !is_listed_by_server(entry, worker) =>
            {
                self.make_link(entry, kind, worker)
            }
            (FileType::Symlink, None) if entry.symlinks == Symlinks::NoFollow => {
                self.make_symlink(entry, None, worker)
            }
            _ => return self.look_and_make(entry, worker),
        };
        made.or_else(|failure| match look::at_source(entry) {
            // The filesystem has listed the wrong type, or another process has replaced the source.
            Ok(source) if sys::file_type(&source) != kind => self.look_and_make(entry, worker),
            _ => Err(failure),
        })
    }

    /// Looks at the source, applies the rules about its dest, and copies it.
    pub(super) fn process_by_rules(
        &self,
        entry: &Entry<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Processed, Failure> {
        let source = match self.look(entry, worker)? {
            ControlFlow::Continue(source) => source,
            ControlFlow::Break(processed) => return Ok(processed),
        };
        // The rules may rename or unlink the dest, so they are applied when the file's turn comes.
        if large::is_task(&self.ctx, entry, &source) {
            large::queue(entry, &source, None, worker);
            return Ok(Processed::QueuedLarge);
        }
        self.copy_by_rules(entry, &source, worker)
    }

    /// Looks at the source. If its type has changed, the filter may leave it alone now. Queues a directory.
    /// Breaks if there is nothing more to do.
    pub(super) fn look(
        &self,
        entry: &Entry<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<ControlFlow<Processed, Stat>, Failure> {
        let source =
            look::at_source(entry).map_err(|errno| self.ctx.source_stat_failure(entry, errno))?;
        let kind = sys::file_type(&source);
        let Some(node) = entry.node else {
            return match kind {
                // The operand was not a directory when it was begun.
                FileType::Directory => {
                    let operation = Operation::OpenSource;
                    let error = self.ctx.source_error(entry, operation, Errno::ISDIR);
                    Err(Failure::making(error))
                }
                _ => Ok(ControlFlow::Continue(source)),
            };
        };
        if kind == entry.kind {
            return Ok(ControlFlow::Continue(source));
        }
        match walk::reconsider(
            self,
            node,
            entry.source_dir,
            entry.source_name,
            kind,
            worker,
        ) {
            Reconsidered::Process => Ok(ControlFlow::Continue(source)),
            Reconsidered::Queued => Ok(ControlFlow::Break(Processed::Queued)),
            Reconsidered::LeftAlone if matches!(entry.dest_state, DestState::Unchecked) => {
                Ok(ControlFlow::Break(Processed::NotCopied))
            }
            // Rules may have moved the dest away. This failure puts it back.
            Reconsidered::LeftAlone => Err(self.ctx.source_refused(entry, Refusal::SourceReplaced)),
        }
    }

    /// Applies the rules about the dest, and copies the source.
    pub(super) fn copy_by_rules(
        &self,
        entry: &Entry<'_>,
        source: &Stat,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Processed, Failure> {
        let ctx = &self.ctx;
        if let Some(home) = sharing::other_home(self, entry, source) {
            sharing::entrust(self, entry, home, worker)?;
            return Ok(Processed::Handled);
        }
        let skip = || {
            ctx.count_skipped(source);
            ctx.emit(entry, |_, dest, _| Event::SkippedDest(dest));
            Ok(Processed::NotCopied)
        };
        let prepared = match overwrite::decide(ctx, entry, source)? {
            Decided::AlreadyThere => {
                ctx.count_skipped(source);
                return Ok(Processed::NotCopied);
            }
            Decided::Skip => return skip(),
            Decided::Adopt(dest) if ctx.policy.options.rules.replace == Replace::Changed => {
                self.check_dest_of_operand(entry, source)?;
                // The other names of the source may have been copied to another file.
                let found = FileId::of(&dest);
                self.make_or_link(entry, source, worker, |_| Ok(Some(found)))?;
                if sys::file_type(source) == FileType::RegularFile {
                    durable::kept(ctx, entry)?;
                    verifying::add(self, entry, source, worker);
                }
                if entry.is_operand() {
                    // An earlier run has made it, so it counts as made.
                    self.used.note_dest(ctx, entry);
                }
                return skip();
            }
            Decided::Adopt(dest) => {
                self.adopt(entry, source, &dest, worker);
                return skip();
            }
            Decided::ProceedThroughLoop => {
                self.check_dest_of_operand(entry, source)?;
                DestState::Occupied
            }
            Decided::Proceed(dest) => {
                // Other names of a source may become links, which need no room.
                if !ctx.policy.has_other_names(entry, source) {
                    large::check_room(self, entry, source)?;
                }
                self.check_dest_of_operand(entry, source)?;
                match dest {
                    None => DestState::Vacant { backup: None },
                    Some(dest) => {
                        let numbers = &mut worker.scratch.own.backup_numbers;
                        overwrite::prepare(ctx, entry, source, &dest, numbers)?
                    }
                }
            }
        };
        let entry = &Entry {
            dest_state: prepared.map(|backup| &**backup),
            ..*entry
        };
        self.make_known(entry, source, worker).or_else(|failure| {
            // Nothing was changed, so the caller can try again.
            if failure.is_dangling_dest() && matches!(prepared, DestState::Vacant { backup: None })
            {
                return Err(failure);
            }
            ctx.report_failure(entry, failure);
            backup::restore(ctx, entry);
            Ok(Processed::NotCopied)
        })
    }

    /// Fails if the entry is an operand whose dest an earlier operand has made.
    fn check_dest_of_operand(&self, entry: &Entry<'_>, source: &Stat) -> Result<(), Failure> {
        if !entry.is_operand() {
            return Ok(());
        }
        self.used.check_dest(&self.ctx, entry, source)
    }

    /// Copies a source whose type is known but may have changed.
    pub(super) fn make_known(
        &self,
        entry: &Entry<'_>,
        source: &Stat,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Processed, Failure> {
        let is_entry = !entry.is_operand() && self.ctx.policy.options.as_links.is_none();
        if is_entry && sys::file_type(source) == FileType::RegularFile {
            self.make_listed_file_rarely(entry, worker)
        } else {
            self.make_seen(entry, source, worker)
        }
    }

    /// Does the same as [`make_listed_file`](Self::make_listed_file), which is inlined for entries without rules.
    #[cold]
    fn make_listed_file_rarely(
        &self,
        entry: &Entry<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Processed, Failure> {
        self.make_listed_file(entry, worker)
    }

    /// Looks at the source and copies it. The rules about its dest were applied before.
    pub(super) fn look_and_make(
        &self,
        entry: &Entry<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Processed, Failure> {
        match self.look(entry, worker)? {
            ControlFlow::Continue(source) => self.make_seen(entry, &source, worker),
            ControlFlow::Break(processed) => Ok(processed),
        }
    }

    /// Copies a source that was just looked at.
    fn make_seen(
        &self,
        entry: &Entry<'_>,
        source: &Stat,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Processed, Failure> {
        let ctx = &self.ctx;
        if let Some(kind) = ctx.policy.options.as_links {
            return self.make_link(entry, kind, worker);
        }
        match sys::file_type(source) {
            FileType::Symlink => return self.make_symlink(entry, Some(source), worker),
            FileType::RegularFile => {
                let opened = file::open_seen(ctx, entry, &mut worker.scratch.own)?;
                return self.copy_opened(entry, opened, worker);
            }
            _ if ctx.policy.reads_special_content() => {
                let opened = file::open_special(ctx, entry, source, &mut worker.scratch.own)?;
                return self.copy_opened(entry, opened, worker);
            }
            _ => self.make_or_link(entry, source, worker, |worker| {
                special::copy(ctx, entry, source)?;
                self.copied(entry, Counted::Other, worker);
                Ok(None)
            })?,
        }
        Ok(Processed::Handled)
    }

    /// Copies a source that was listed as a regular file. Looks at it only if its type has changed.
    #[inline(always)]
    pub(super) fn make_listed_file(
        &self,
        entry: &Entry<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Processed, Failure> {
        let (ctx, scratch) = (&self.ctx, &mut worker.scratch.own);
        if scratch.expects_empty
            && ctx.policy.creates_empty_files
            // A process that watches an older directory waits for a file to be closed.
            && entry.node.is_some_and(|node| node.state.origin() == Origin::Created)
            && file::try_copy_empty(ctx, entry, scratch)
        {
            self.count_copied(Counted::File, 0, worker);
            ctx.emit_content_copied(entry, CopyMethod::default());
            return Ok(Processed::Handled);
        }
        match file::open_listed(ctx, entry, scratch)? {
            Some(source) => self.copy_opened(entry, source, worker),
            None => self.look_and_make(entry, worker),
        }
    }

    pub(super) fn make_symlink(
        &self,
        entry: &Entry<'_>,
        source: Option<&Stat>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Processed, Failure> {
        let ctx = &self.ctx;
        let mut processed = Processed::Handled;
        let mut make = |worker: &mut Walker<'_, '_, Self>| {
            match symlink::copy(ctx, entry)? {
                Created::Yes => self.copied(entry, Counted::Symlink, worker),
                Created::AlreadyThere => processed = Processed::NotCopied,
            }
            Ok(None)
        };
        if !ctx.policy.options.preserve.links {
            make(worker).map(|_: Option<FileId>| ())?;
            return Ok(processed);
        }
        let source = match source {
            Some(source) => *source,
            None => {
                look::at_source(entry).map_err(|errno| ctx.source_stat_failure(entry, errno))?
            }
        };
        self.make_or_link(entry, &source, worker, &mut make)?;
        Ok(processed)
    }

    pub(super) fn make_link(
        &self,
        entry: &Entry<'_>,
        kind: LinkKind,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Processed, Failure> {
        let counted = match kind {
            LinkKind::Hard => Counted::HardLink,
            LinkKind::Symbolic => Counted::Symlink,
        };
        Ok(match link::make(&self.ctx, entry, kind)? {
            Created::Yes => {
                self.copied(entry, counted, worker);
                Processed::Handled
            }
            Created::AlreadyThere => Processed::NotCopied,
        })
    }

    /// Copies the content, or queues that as a task.
    // If it is not inlined, the call copies the stat of the source. That takes 40 more instructions for each file with
    // data. The guard's case `cpz-files-with-data` counts them.
    #[inline(always)]
    fn copy_opened(
        &self,
        entry: &Entry<'_>,
        source: OpenSource,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Processed, Failure> {
        worker.scratch.own.expects_empty = source.is_known_empty();
        if self.ctx.policy.has_other_names(entry, &source.stat) {
            let stat = source.stat;
            self.make_or_link(entry, &stat, worker, |worker| {
                self.copy_content(entry, source, worker)
            })?;
            return Ok(Processed::Handled);
        }
        let is_small = (source.stat.st_size as u64) < TASK_FROM;
        if is_small || !large::is_task(&self.ctx, entry, &source.stat) {
            self.copy_content(entry, source, worker)?;
            return Ok(Processed::Handled);
        }
        let stat = source.stat;
        large::queue(entry, &stat, Some(source), worker);
        Ok(Processed::QueuedLarge)
    }

    /// Opens the dest and copies the content. Returns the file that was written, if further
    /// names of its source may link to it.
    fn copy_content(
        &self,
        entry: &Entry<'_>,
        source: OpenSource,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Option<FileId>, Failure> {
        if source.stat.st_size as u64 >= TASK_FROM {
            return large::copy_content(self, entry, source, worker);
        }
        self.open_and_fill(entry, &source, Naming::WhenComplete, worker)
    }

    /// Copies a file whose content may have been read before.
    #[cold]
    pub(super) fn copy_from_start(
        &self,
        entry: &Entry<'_>,
        source: &OpenSource,
        naming: Naming,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Option<FileId>, Failure> {
        source.rewind().map_err(|errno| {
            let operation = Operation::Read;
            Failure::making(self.ctx.source_error(entry, operation, errno))
        })?;
        self.open_and_fill_rarely(entry, source, naming, worker)
    }

    /// Does the same as [`open_and_fill`](Self::open_and_fill). With more than one other call of that function, it would
    /// not be inlined for small files.
    #[cold]
    pub(super) fn open_and_fill_rarely(
        &self,
        entry: &Entry<'_>,
        source: &OpenSource,
        naming: Naming,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Option<FileId>, Failure> {
        self.open_and_fill(entry, source, naming, worker)
    }

    #[inline]
    fn open_and_fill(
        &self,
        entry: &Entry<'_>,
        source: &OpenSource,
        naming: Naming,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Option<FileId>, Failure> {
        let ctx = &self.ctx;
        let dest = open::open(ctx, entry, source, naming)?;
        let mut written = None;
        if ctx.policy.has_other_names(entry, &source.stat) {
            let id = || sys::stat_open(&dest.fd).map(|stat| Some(FileId::of(&stat)));
            written = ctx
                .changes
                .really(id)
                .map_err(|errno| ctx.making_failure(entry, Operation::Stat, errno))?;
        }
        let filled = file::fill(ctx, entry, source, dest, worker);
        self.note_filled(entry, source, filled, written, worker)
    }

    /// Counts and reports a dest that was filled. Copies the file again if its dest could not be given its name. Returns
    /// the file that was written, if further names of its source may link to it: `written`, or another one.
    #[inline(always)]
    pub(super) fn note_filled(
        &self,
        entry: &Entry<'_>,
        source: &OpenSource,
        filled: Result<Filled, Failure>,
        written: Option<FileId>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Option<FileId>, Failure> {
        let ctx = &self.ctx;
        if let Err(failure) = &filled {
            let errno = failure.error.errno();
            self.room
                .note_failure(entry, errno.map(error::Errno::kernel));
        }
        match filled? {
            Filled::Complete(completed) => {
                if completed.is_file {
                    verifying::add(self, entry, &source.stat, worker);
                }
                completed.attributes?;
                let Moved { bytes, method } = completed.moved;
                self.count_copied(Counted::File, bytes, worker);
                if method.reflink == Mechanism::Used {
                    worker.scratch.tally.count_reflinked(bytes);
                }
                ctx.emit_content_copied(entry, method);
            }
            Filled::Nameless => {
                return self.copy_from_start(entry, source, Naming::AtOnce, worker);
            }
            Filled::Cancelled => backup::restore(ctx, entry),
        }
        Ok(written)
    }

    /// Counts and reports a copy without content.
    fn copied(&self, entry: &Entry<'_>, counted: Counted, worker: &mut Walker<'_, '_, Self>) {
        self.count_copied(counted, 0, worker);
        self.ctx.emit_copied(entry);
    }

    #[inline]
    fn count_copied(&self, counted: Counted, bytes: u64, worker: &mut Walker<'_, '_, Self>) {
        worker.scratch.tally.count(counted);
        worker.scratch.tally.count_bytes(bytes);
        worker.scratch.had_content = bytes > 0;
        worker.count(1 + bytes.min(PIECE_BYTES as u64) / BYTES_PER_WORK);
    }

    /// Makes a copy by `make`, or links to the copy of another name of the same source. If other engines share the copy,
    /// the home of the source does that. `make` returns the id of the written file, if it knows it.
    fn make_or_link<'s, 'e>(
        &self,
        entry: &Entry<'_>,
        source: &Stat,
        worker: &mut Walker<'s, 'e, Self>,
        make: impl FnOnce(&mut Walker<'s, 'e, Self>) -> Result<Option<FileId>, Failure>,
    ) -> Result<(), Failure> {
        if !self.ctx.policy.has_other_names(entry, source) {
            return make(worker).map(drop);
        }
        if let Some(home) = sharing::other_home(self, entry, source) {
            return sharing::entrust(self, entry, home, worker);
        }
        let id = FileId::of(source);
        match self.links.claim(source, entry, self.other_names(source)) {
            Claim::First => {
                let made = make(worker);
                let written = made.as_ref().ok();
                let first = written.and_then(|&written| self.find_copy(entry, written));
                // If the dest was another name of the source, a link to it would not be a link to a copy.
                let first = first.filter(|first| first.itself.id != id);
                queue_waiters(self.links.complete(id, first), worker);
                made.map(drop)
            }
            Claim::Waiting => Ok(()),
            Claim::OtherFile => {
                let path = self.ctx.path(entry, Side::Source);
                let warning = Error::refused(Refusal::SharedInodeNumber, path);
                self.ctx.warn(entry.operand, warning);
                make(worker).map(drop)
            }
            Claim::LinkTo(first) => {
                hardlink::link(&self.ctx, entry, &first, &mut worker.scratch.own)?;
                self.copied(entry, Counted::HardLink, worker);
                Ok(())
            }
        }
    }

    /// Finds the copy that was made. If that fails, it is reported, and other names of the
    /// source are not linked to the copy.
    fn find_copy(&self, entry: &Entry<'_>, written: Option<FileId>) -> Option<FirstCopy> {
        match hardlink::find_copy(&self.ctx, entry, written) {
            Ok(first) => Some(first),
            Err(errno) => {
                let error = self.ctx.dest_error(entry, Operation::Stat, errno);
                self.ctx.fail(entry.operand, error);
                None
            }
        }
    }

    /// Returns how many other names of the source will be met at most, or `None` if that is
    /// unknown.
    fn other_names(&self, source: &Stat) -> Option<u64> {
        // The type of the field depends on the architecture.
        #[allow(clippy::unnecessary_cast)]
        self.meets_names_once
            .then(|| (source.st_nlink as u64).saturating_sub(1))
    }

    /// Lets other names of the source link to the dest, which is as new as the source.
    fn adopt(
        &self,
        entry: &Entry<'_>,
        source: &Stat,
        dest: &Stat,
        worker: &mut Walker<'_, '_, Self>,
    ) {
        let id = FileId::of(source);
        if self.ctx.policy.has_other_names(entry, source)
            && self.links.adopt(source, self.other_names(source))
        {
            let first = self.find_copy(entry, Some(FileId::of(dest)));
            queue_waiters(self.links.complete(id, first), worker);
        }
    }
}

/// Returns `true` if the source is on the filesystem of a server, which may list wrong types.
fn is_listed_by_server(entry: &Entry<'_>, worker: &mut Walker<'_, '_, CopyRun<'_>>) -> bool {
    let directory = entry
        .node
        .and_then(|node| node.dir.slot(Side::Source).identity());
    directory.is_none_or(|directory| {
        let device = sys::device_of(directory.file());
        let scratch = &mut worker.scratch.own;
        scratch.storage_of_device(device, entry.source_dir) == Storage::Server
    })
}

fn queue_waiters<'a>(waiters: Vec<StoredEntry>, worker: &mut Walker<'_, '_, CopyRun<'a>>) {
    for waiter in waiters {
        worker.push(Task::Own(CopyTask::Waiter(waiter)), When::Next);
    }
}
