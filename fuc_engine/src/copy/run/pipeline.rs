//! The stages of one entry, or of one operand that is not a directory.
//!
//! ```text
//! copy_listed            makes links and symbolic links without a look; or calls look_and_copy
//! copy_file              the plain way of regular files: opens one without a look; queues a large file, which is looked at
//!                        when its turn comes; if the type of a source has changed, calls look_and_copy
//!   look_and_copy        looks at the source; queues a directory or a large file, or calls
//!     copy_looked        chooses what is made, by the type just seen
//!       make_or_link     links to the copy of another name of the source, if there is one
//!         settle_and_make
//!                        in a new directory: makes the dest, and looks only if something is there
//!                        elsewhere: looks at the dest, settles what happens to it, and makes the copy in that way
//! ```
//!
//! Except for new empty files, nothing is done about a dest before `settle_and_make`, so an entry can wait, or go to another
//! engine, until then. What makes a copy returns `None` if something is at a dest that should be created. That enters
//! `decide::settle`, too.
//!
//! A source with several names is copied once, and the dests of its other names are linked to that copy. If several
//! engines share the run, one of them is its home, which does that.

use std::ops::ControlFlow;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::{CopyRun, CopyTask, EntryCopy, Processed, durable, large, note_piece, verifying};
use crate::copy::collisions;
use crate::copy::content::{Moved, OpenSource, PIECE_BYTES};
use crate::copy::context::Failure;
use crate::copy::decide::mode::Origin;
use crate::copy::decide::settle::{Making, RemovalEvent, Settled, Way};
use crate::copy::dest::settling::{Looked, look_and_settle, unlink};
use crate::copy::dest::{self, backup};
use crate::copy::entry::{Entry, StoredEntry};
use crate::copy::facts::{FileId, Symlinks};
use crate::copy::make::file::{self, Filled};
use crate::copy::make::hardlink::{self, Claim, FirstCopy};
use crate::copy::make::{self, Contentless};
use crate::copy::options::{LinkKind, Replace};
use crate::error::{Error, Operation, Refusal};
use crate::node::Side;
use crate::observer::{BYTES_PER_WORK, Change, CopyMethod, Event, KeepReason, Mechanism};
use crate::report::Counted;
use crate::sched::When;
use crate::sys::{self, Stat};
use crate::walk::{self, Task, Visit, Walker};

/// The file that was written to a dest, if further names of its source may link to it.
type Written = Option<FileId>;

/// Makes a dest in the way that was settled. Returns `None` if it should be created, and something is there.
type Make<'m, 's, 'e, 'a> =
    &'m mut dyn FnMut(&mut EntryCopy<'_, 's, 'e, 'a>, Way) -> Result<Option<Written>, Failure>;

/// The end of an entry about whose dest was decided.
enum Outcome {
    Made(Written),
    /// The dest, which is this file, stays as it is, because that was settled.
    Kept(Settled, FileId),
    /// The failure was reported, after the dest was vacated.
    Failed,
}

impl From<Outcome> for Processed {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Made(_) => Self::Handled,
            Outcome::Kept(..) | Outcome::Failed => Self::NotCopied,
        }
    }
}

/// From the listing to what is made.
impl<'s, 'e, 'a> EntryCopy<'_, 's, 'e, 'a> {
    /// Copies an entry that is not listed as a directory, if it may need more than the fast path.
    pub(super) fn copy_listed(&mut self, kind: FileType) -> Result<Processed, Failure> {
        let options = self.entry.ctx.policy.options;
        let made = match (kind, options.as_links) {
            _ if !options.rules.are_plain() => return self.look_and_copy(),
            // A symbolic link could be made to a directory, too, so its source is looked at.
            (FileType::RegularFile, Some(LinkKind::Hard)) => {
                self.link_instead(LinkKind::Hard, None)
            }
            (FileType::Symlink, None)
                if self.entry.source.symlinks == Symlinks::NoFollow && !options.preserve.links =>
            {
                self.copy_symlink(None)
            }
            _ => return self.look_and_copy(),
        };
        // As in cp, the error of looking at the source comes first.
        made.or_else(|failure| match self.entry.stat_source() {
            // The filesystem has listed the wrong type, or another process has replaced the source.
            Ok(source) if sys::file_type(&source) != kind => self.look_and_copy(),
            Ok(_) => Err(failure),
            Err(unseen) => Err(self.entry.source_stat_failure(unseen)),
        })
    }

    /// Copies a source that was listed as a regular file, without a look at it. If another type is opened, looks at it. The
    /// options must have no rules about dests.
    pub(super) fn copy_file(&mut self) -> Result<Processed, Failure> {
        let entry = self.entry;
        let fd = match file::open_source(entry, entry.blocking()) {
            Ok(fd) => fd,
            Err(errno) if file::is_other_type(errno) => return self.look_and_copy(),
            Err(errno) => return Err(self.not_opened(errno)),
        };
        // It has 144 bytes, so it stays here.
        let stat = match sys::stat_open(&fd) {
            Ok(stat) if sys::is_regular(&stat) => stat,
            Ok(_) => {
                drop(fd);
                return self.look_and_copy();
            }
            Err(errno) => return Err(self.not_opened(errno)),
        };
        let opened = self.worker.scratch.own.describe_source(fd, &stat);
        self.copy_opened(&opened)
    }

    /// Returns the failure to open a source that was not looked at. As in cp, which looks at both sides first, that comes
    /// after what the looks find.
    #[cold]
    fn not_opened(&mut self, errno: Errno) -> Failure {
        let entry = self.entry;
        let looked = match entry.stat_source() {
            Ok(source) => look_and_settle(entry, Making::File, Some(&source), false).err(),
            Err(unseen) => Some(entry.source_stat_failure(unseen)),
        };
        let failed = || Failure::making(entry.source_error(Operation::OpenSource, errno));
        looked.unwrap_or_else(failed)
    }

    /// Copies the content of a source that is open, or queues a large file.
    fn copy_opened(&mut self, source: &OpenSource<'_>) -> Result<Processed, Failure> {
        self.worker.scratch.own.expects_empty = source.is_known_empty();
        let (entry, stat) = (self.entry, source.stat);
        if large::may_come_later(entry, stat) {
            return Ok(large::queue(self, stat));
        }
        let is_new = entry.dest_directory_origin() == Origin::Created;
        // A call without a pointer takes fewer instructions. The guard counts them.
        if is_new && !entry.has_other_names(stat) && self.fill_dest(source, Way::Create)?.is_some()
        {
            return Ok(Processed::Handled);
        }
        self.make_or_link(Making::File, Some(stat), &mut |copy, way| {
            copy.fill_dest(source, way)
        })
    }

    /// Looks at the source, and copies it. A large file is queued, and decided about when its turn comes.
    pub(super) fn look_and_copy(&mut self) -> Result<Processed, Failure> {
        match self.look_at_source()? {
            ControlFlow::Continue(source) if large::may_come_later(self.entry, &source) => {
                Ok(large::queue(self, &source))
            }
            ControlFlow::Continue(source) => self.copy_looked(&source),
            ControlFlow::Break(processed) => Ok(processed),
        }
    }

    /// Looks at the source. If its type has changed, the filter may leave it alone now. Queues a directory.
    /// Breaks if there is nothing more to do.
    pub(super) fn look_at_source(&mut self) -> Result<ControlFlow<Processed, Stat>, Failure> {
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
        let (dir, name) = (entry.source.dir, entry.source.name);
        Ok(match walk::reconsider(node, dir, name, kind, self.worker) {
            None => ControlFlow::Continue(source),
            Some(Visit::Done) => ControlFlow::Break(Processed::NotCopied),
            Some(_) => ControlFlow::Break(Processed::Queued),
        })
    }

    /// Copies a source that was looked at.
    pub(super) fn copy_looked(&mut self, source: &Stat) -> Result<Processed, Failure> {
        let policy = &self.entry.ctx.policy;
        if let Some(kind) = policy.options.as_links {
            return self.link_instead(kind, Some(source));
        }
        let kind = sys::file_type(source);
        if kind == FileType::RegularFile
            || kind != FileType::Symlink && policy.reads_special_content()
        {
            return self.make_or_link(Making::File, Some(source), &mut |copy, way| {
                if copy.link_unchanged(source, way)? {
                    return Ok(Some(None));
                }
                let (fd, stat) = file::open_seen(copy.entry, source)?;
                let opened = copy.worker.scratch.own.describe_source(fd, &stat);
                copy.fill_dest(&opened, way)
            });
        }
        match kind {
            FileType::Symlink => self.copy_symlink(Some(source)),
            _ => {
                let special = make::find_special(self.entry, source)?;
                self.copy_contentless(Making::Special, Some(source), &special, Counted::Other)
            }
        }
    }

    /// Links the dest to an unchanged file of an older copy. Returns `false` if there is none.
    fn link_unchanged(&mut self, source: &Stat, way: Way) -> Result<bool, Failure> {
        let Self { entry, .. } = *self;
        if !make::unchanged::link(entry, source, way, &mut self.worker.scratch.own) {
            return Ok(false);
        }
        durable::linked(entry)?;
        verifying::compare_later(self, source);
        let entry = &Entry {
            change: Change::Linked,
            ..*entry
        };
        self.with_entry(entry).note_contentless(Counted::HardLink);
        // The link counts as an entry, and its content as skipped.
        let content = entry.ctx.policy.options.counted_content().bytes(source);
        if let Some(rest) = content.checked_sub(BYTES_PER_WORK) {
            entry.ctx.report.count_skipped(rest);
        }
        Ok(true)
    }

    /// Copies a symbolic link. It must be seen as `source` if it may have other names.
    fn copy_symlink(&mut self, source: Option<&Stat>) -> Result<Processed, Failure> {
        let entry = self.entry;
        let link = make::read_link(entry)
            .map_err(|errno| Failure::making(entry.source_error(Operation::ReadLink, errno)))?;
        self.copy_contentless(Making::Symlink, source, &link, Counted::Symlink)
    }

    fn copy_contentless(
        &mut self,
        making: Making,
        seen: Option<&Stat>,
        source: &Contentless,
        counted: Counted,
    ) -> Result<Processed, Failure> {
        let mut unset = Ok(());
        let processed = self.make_or_link(making, seen, &mut |copy, way| {
            let Some(attributes) = make::copy_contentless(copy.entry, source, way)? else {
                return Ok(None);
            };
            match attributes {
                // As in cp, the other names of a special file are linked to it all the same.
                Err(failure) if making == Making::Special => unset = Err(failure),
                attributes => return attributes.map(|()| Some(copy.note_contentless(counted))),
            }
            Ok(Some(None))
        })?;
        unset.map(|()| processed)
    }

    /// Makes a link instead of a copy.
    fn link_instead(
        &mut self,
        kind: LinkKind,
        source: Option<&Stat>,
    ) -> Result<Processed, Failure> {
        let outcome = self.settle_and_make(Making::Link(kind), source, &mut |copy, way| {
            let made = make::make_link(copy.entry, kind, way)?;
            if made.is_none() || kind == LinkKind::Symbolic {
                return Ok(made.map(|()| copy.note_contentless(Counted::Symlink)));
            }
            durable::linked(copy.entry)?;
            Ok(Some(copy.note_contentless(Counted::HardLink)))
        });
        outcome.map(Processed::from)
    }
}

/// Sources with several names.
impl<'s, 'e, 'a> EntryCopy<'_, 's, 'e, 'a> {
    /// Makes a copy by `make`, or links to the copy of another name of the same source. If other engines share the copy,
    /// the home of the source does that. A source that may have other names was seen as `source`.
    fn make_or_link(
        &mut self,
        making: Making,
        source: Option<&Stat>,
        make: Make<'_, 's, 'e, 'a>,
    ) -> Result<Processed, Failure> {
        match source {
            Some(source) if self.entry.has_other_names(source) => {
                self.make_or_link_one_of(making, source, make)
            }
            _ => self
                .settle_and_make(making, source, make)
                .map(Processed::from),
        }
    }

    #[cold]
    fn make_or_link_one_of(
        &mut self,
        making: Making,
        source: &Stat,
        make: Make<'_, 's, 'e, 'a>,
    ) -> Result<Processed, Failure> {
        #[cfg(feature = "distribute")]
        if let Some(given) = super::sharing::give_to_home(self, source) {
            return given;
        }
        let seen = Some(source);
        let outcome = match self.claim(source) {
            Claim::Waiting => return Ok(Processed::Handled),
            Claim::First => {
                let outcome = self.settle_and_make(making, seen, make);
                let first = match &outcome {
                    Ok(Outcome::Made(written)) => self.find_copy(source, *written),
                    Ok(Outcome::Kept(Settled::KeepAsCopy, dest)) => {
                        self.find_copy(source, Some(*dest))
                    }
                    _ => None,
                };
                let id = FileId::of(source);
                // If the dest was another name of the source, a link to it would not be a link to a copy.
                let first = first.filter(|first| first.itself.id != id);
                // The entries that have waited for it claim again.
                for waiter in self.run.links.end_first(id, first) {
                    let task = Task::Own(CopyTask::Waiter(waiter));
                    self.worker.push(task, When::Next);
                }
                outcome?
            }
            Claim::OtherFile(_) => {
                // Another source has the inode number of this one.
                let entry = self.entry;
                let path = entry.path(Side::Source);
                let warning = Error::refused(Refusal::SharedInodeNumber, path);
                entry.ctx.report.warn(entry.operand, warning);
                self.settle_and_make(making, seen, make)?
            }
            Claim::LinkTo(first) => self.link_to(&first, source)?,
        };
        Ok(outcome.into())
    }

    /// Links the dest to the first copy of its source. A dest that is kept as the copy becomes a link, too, as in cp.
    fn link_to(&mut self, first: &FirstCopy, source: &Stat) -> Result<Outcome, Failure> {
        let outcome =
            self.settle_and_make(Making::LinkToCopy, Some(source), &mut |copy, way| {
                let scratch = &mut copy.worker.scratch.own;
                let made = hardlink::link(copy.entry, first, way, scratch)?;
                Ok(made.map(|()| copy.note_contentless(Counted::HardLink)))
            })?;
        if let Outcome::Kept(Settled::KeepAsCopy, dest) = &outcome {
            let is_resumed = self.entry.ctx.policy.options.rules.replace == Replace::Changed;
            if !is_resumed || first.itself.id != *dest {
                let way = Way::Replace(RemovalEvent::Reported);
                let scratch = &mut self.worker.scratch.own;
                let linked = hardlink::link(self.entry, first, way, scratch);
                // As in cp, `-v` does not name the entry.
                linked.map_err(|failure| Failure::preparing(failure.error))?;
            }
        }
        Ok(outcome)
    }

    /// Looks the source up among those that have several names.
    fn claim(&self, source: &Stat) -> Claim {
        let other_names = || sys::links(source).saturating_sub(1);
        let other_names = self.run.meets_names_once.then(other_names);
        let Self { run, entry, .. } = *self;
        let claim = run
            .links
            .claim(source, || StoredEntry::of(entry), other_names);
        match claim {
            // If it cannot be looked at, a copy has the right content.
            Claim::OtherFile(first) if hardlink::is_still_the_source(&first, entry) == Ok(true) => {
                run.links.note_changed(source);
                Claim::LinkTo(first)
            }
            claim => claim,
        }
    }

    /// Finds the copy that was made. If that fails, it is reported, and other names of the
    /// source are not linked to the copy.
    fn find_copy(&self, source: &Stat, written: Option<FileId>) -> Option<FirstCopy> {
        let entry = self.entry;
        let found = hardlink::find_copy(entry, source, written);
        found
            .inspect_err(|&errno| entry.fail(entry.dest_error(Operation::Stat, errno)))
            .ok()
    }
}

/// From the decision about the dest to the end.
impl<'s, 'e, 'a> EntryCopy<'_, 's, 'e, 'a> {
    /// Makes the dest by `make`. In a new directory, nothing is there. Elsewhere, or if something is there, settles what
    /// happens to it before.
    fn settle_and_make(
        &mut self,
        making: Making,
        source: Option<&Stat>,
        make: Make<'_, 's, 'e, 'a>,
    ) -> Result<Outcome, Failure> {
        let is_new = self.entry.dest_directory_origin() == Origin::Created;
        if is_new && let Some(written) = make(self, Way::Create)? {
            return Ok(Outcome::Made(written));
        }
        self.look_and_make(making, source, is_new, make)
    }

    /// Returns the same entry with other facts about its dest.
    fn with_entry<'c>(&'c mut self, entry: &'c Entry<'c>) -> EntryCopy<'c, 's, 'e, 'a> {
        EntryCopy {
            run: self.run,
            entry,
            worker: self.worker,
        }
    }

    /// Settles what happens to the dest, and makes it by `make`. `is_occupied` says that creation has failed before, because
    /// something is there.
    fn look_and_make(
        &mut self,
        making: Making,
        source: Option<&Stat>,
        mut is_occupied: bool,
        make: Make<'_, 's, 'e, 'a>,
    ) -> Result<Outcome, Failure> {
        loop {
            let made = match look_and_settle(self.entry, making, source, is_occupied)? {
                Looked::Make(way, change) => {
                    let entry = &Entry {
                        change,
                        ..*self.entry
                    };
                    make(&mut self.with_entry(entry), way)?
                }
                Looked::Vacate(settled, dest, change) => {
                    if making == Making::File
                        && let Some(source) = source
                    {
                        large::check_room(self.run, self.entry, source)?;
                    }
                    return self.vacate_and_make(settled, &dest, change, make);
                }
                Looked::Keep(settled, dest) => {
                    self.keep(settled, source, &dest)?;
                    return Ok(Outcome::Kept(settled, FileId::of(&dest)));
                }
            };
            match made {
                Some(written) => return Ok(Outcome::Made(written)),
                // Another process was faster.
                None if !is_occupied => is_occupied = true,
                None => {
                    let failed = make(self, Way::Stay(Errno::EXIST))?;
                    return Ok(Outcome::Made(failed.flatten()));
                }
            }
        }
    }

    /// Unlinks the dest or renames it to its backup, and makes the copy by `make`. If that fails, gives the dest its name
    /// back. What another process puts there in the meantime stays.
    #[cold]
    fn vacate_and_make(
        &mut self,
        settled: Settled,
        dest: &Stat,
        change: Change,
        make: Make<'_, 's, 'e, 'a>,
    ) -> Result<Outcome, Failure> {
        let backup = match settled {
            Settled::BackUp => {
                let numbers = &mut self.worker.scratch.own.backup_numbers;
                backup::back_up(self.entry, dest, numbers)?
            }
            _ => {
                unlink(self.entry)?;
                None
            }
        };
        let entry = &Entry {
            dest: self.entry.dest.vacated(),
            backup: backup.as_deref(),
            change,
            ..*self.entry
        };
        let copy = &mut self.with_entry(entry);
        // The first time, the dest may not have got its name.
        let ways = [Way::Create, Way::Create, Way::Stay(Errno::EXIST)];
        let made = ways.into_iter().find_map(|way| make(copy, way).transpose());
        Ok(match made {
            None => Outcome::Failed,
            Some(Ok(written)) => Outcome::Made(written),
            Some(Err(failure)) => {
                entry.report_failure(failure);
                backup::restore(entry);
                Outcome::Failed
            }
        })
    }

    /// Leaves the dest as it is. If it is kept as the copy, `source` was seen.
    #[cold]
    fn keep(
        &mut self,
        settled: Settled,
        source: Option<&Stat>,
        dest: &Stat,
    ) -> Result<(), Failure> {
        let entry = self.entry;
        let ctx = entry.ctx;
        if let (Settled::KeepAsCopy, Some(source)) = (settled, source) {
            self.worker.scratch.tally.kept += 1;
            if ctx.policy.options.rules.replace == Replace::Changed {
                make::update_attributes(entry, source, dest)?;
                verifying::compare_later(self, source);
                if entry.is_operand() {
                    // An earlier run has made it, so it counts as made.
                    collisions::note_used(ctx, entry.operand, None);
                }
            }
        }
        if settled != Settled::Keep {
            durable::kept(entry, dest)?;
        }
        let content = ctx.policy.options.counted_content();
        ctx.report
            .count_skipped(source.map_or(0, |source| content.bytes(source)));
        if settled != Settled::AlreadyThere {
            let reason = match ctx.policy.options.rules.replace {
                Replace::None | Replace::NoneAndFail => KeepReason::Exists,
                Replace::Older if settled == Settled::KeepAsCopy => KeepReason::NotOlder,
                Replace::Changed if settled == Settled::KeepAsCopy => KeepReason::Unchanged,
                Replace::All | Replace::Older | Replace::Changed => KeepReason::Declined,
            };
            entry.emit(|_, path, _| Event::SkippedDest { path, reason });
        }
        Ok(())
    }

    /// Opens the dest and copies the content. Returns `None` if the dest should be created, and something is there, or it could
    /// not be given its name.
    #[inline(always)]
    fn fill_dest(&mut self, source: &OpenSource<'_>, way: Way) -> Result<Option<Written>, Failure> {
        let entry = self.entry;
        if !entry.dest.is_vacated {
            large::check_room(self.run, entry, source.stat)?;
        }
        let dest = match dest::open_for_content(entry, source, way) {
            Ok(Some(dest)) => dest,
            Ok(None) => return Ok(None),
            Err(failure) => return Err(failure.with_method(CopyMethod::default())),
        };
        let mut written = None;
        if entry.has_other_names(source.stat) {
            let id = || sys::stat_open(&dest.fd).map(|stat| Some(FileId::of(&stat)));
            written = entry
                .ctx
                .changes
                .really(id)
                .map_err(|errno| entry.making_failure(Operation::Stat, errno))?;
        }
        self.worker.is_awaited = !dest.writing.is_empty();
        let mut buffer = std::mem::take(&mut self.worker.scratch.own.buffer);
        let mut on_piece = |bytes| note_piece(self.worker, bytes);
        let labelled = dest.label();
        let Moved { bytes, method } = dest.move_content(&mut buffer, &mut on_piece);
        let filled = match bytes {
            Ok(bytes) => dest.complete_dest(bytes, labelled),
            Err(error) => dest.abandon(error),
        };
        self.worker.scratch.own.buffer = buffer;
        self.worker.is_awaited = false;
        let named = self.note_filled(source, method, filled)?;
        Ok(named.map(|()| written))
    }

    /// Counts and reports a dest that was filled. Returns `None` if it could not be given its name, so that the source must be
    /// copied again.
    #[inline(always)]
    pub(super) fn note_filled(
        &mut self,
        source: &OpenSource<'_>,
        method: CopyMethod,
        filled: Result<Filled, Failure>,
    ) -> Result<Option<()>, Failure> {
        let Self { run, entry, .. } = *self;
        if let Err(failure) = &filled {
            let errno = failure.error.raw_os_error();
            run.room
                .note_failure(entry, errno.map(Errno::from_raw_os_error));
        }
        match filled.map_err(|failure| failure.with_method(method))? {
            Filled::Complete {
                bytes,
                is_file,
                attributes,
            } => {
                if is_file {
                    verifying::compare_later(self, source.stat);
                }
                attributes.map_err(|error| Failure::making(error).with_method(method))?;
                count_copy(self.worker, Counted::File, bytes);
                entry.ctx.report.throttle(0, bytes);
                if method.reflink == Mechanism::Used {
                    self.worker.scratch.tally.reflinked_bytes += bytes;
                }
                entry.emit_copied(Some(method));
            }
            Filled::Nameless => {
                let failed = |errno| entry.source_error(Operation::Read, errno);
                let rewound = source.rewind().map_err(failed);
                return rewound.map(|()| None).map_err(Failure::making);
            }
            Filled::Cancelled => backup::restore(entry),
        }
        Ok(Some(()))
    }

    /// Counts and reports a copy without content.
    fn note_contentless(&mut self, counted: Counted) -> Written {
        count_copy(self.worker, counted, 0);
        self.entry.emit_copied(None);
        None
    }
}

/// Counts a copy, and the bytes that were moved since its last piece.
pub(super) fn count_copy(worker: &mut Walker<'_, '_, CopyRun<'_>>, counted: Counted, bytes: u64) {
    worker.scratch.tally.add_entry(counted);
    worker.scratch.tally.bytes += bytes;
    worker.scratch.had_content = bytes > 0;
    worker.count_work(1 + bytes.min(PIECE_BYTES as u64) / BYTES_PER_WORK);
}
