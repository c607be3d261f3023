//! Makes one copy: fills the dest, makes a link or a special file, or links the dest to the copy of another name of its
//! source. Counts and reports each copy.
//!
//! A source with several names is copied once, and the dests of its other names are linked to that copy. If several
//! engines share the run, one of them is its home, which does that.

use rustix::io::Errno;

use super::tasks::CopyTask;
use super::{EntryCopy, Processed, durable, verifying};
use crate::copy::content::{Moved, OpenSource, PIECE_BYTES};
use crate::copy::context::Failure;
use crate::copy::decide::clear::{Clear, RemovalEvent};
use crate::copy::dest::{Naming, backup, open};
use crate::copy::entry::StoredEntry;
use crate::copy::facts::{DestState, FileId};
use crate::copy::make::file::{Filled, Filling};
use crate::copy::make::hardlink::{self, Claim, FirstCopy};
use crate::copy::make::{self, Created};
use crate::copy::options::{LinkKind, Replace};
use crate::error::{Error, Operation, Refusal};
use crate::node::Side;
use crate::observer::{BYTES_PER_WORK, Mechanism};
use crate::report::Counted;
use crate::sched::When;
use crate::sys::{self, Stat};
use crate::walk::{self, Task};

/// The state of an entry whose dest is as new as its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Adopted {
    Done,
    /// The entry waits for another name of its source, and is decided about again after that.
    Waiting,
}

impl EntryCopy<'_, '_, '_, '_> {
    /// Makes a copy by `make`, or links to the copy of another name of the same source. If other engines share the copy,
    /// the home of the source does that. `make` returns the id of the written file, if it knows it.
    pub(super) fn make_or_link(
        &mut self,
        source: &Stat,
        make: impl FnOnce(&mut Self) -> Result<Option<FileId>, Failure>,
    ) -> Result<Processed, Failure> {
        let entry = self.entry;
        if !entry.has_other_names(source) {
            make(self)?;
            return Ok(Processed::Handled);
        }
        if let Some(home) = self.other_home(source) {
            return self.entrust(home);
        }
        let id = FileId::of(source);
        match self.claim(source) {
            Claim::First => {
                let made = make(self);
                let written = made.as_ref().ok();
                let first = written.and_then(|&written| self.find_copy(source, written));
                // If the dest was another name of the source, a link to it would not be a link to a copy.
                self.complete(id, first.filter(|first| first.itself.id != id));
                made?;
            }
            Claim::Waiting => {}
            Claim::OtherFile(_) => {
                self.warn_of_other_file();
                make(self)?;
            }
            Claim::LinkTo(first) => {
                let scratch = &mut self.worker.scratch.own;
                if hardlink::link(entry, &first, None, scratch)? == Created::Yes {
                    self.copied(Counted::HardLink);
                }
            }
        }
        Ok(Processed::Handled)
    }

    /// Lets other names of the source link to the dest, which is as new as the source. If another name was copied before,
    /// the dest becomes a link to that copy, as in cp.
    pub(super) fn adopt(&mut self, source: &Stat, dest: &Stat) -> Result<Adopted, Failure> {
        let entry = self.entry;
        if !entry.has_other_names(source) {
            return Ok(Adopted::Done);
        }
        match self.claim(source) {
            Claim::First => {
                let first = self.find_copy(source, Some(FileId::of(dest)));
                self.complete(FileId::of(source), first);
            }
            Claim::Waiting => return Ok(Adopted::Waiting),
            Claim::OtherFile(_) => self.warn_of_other_file(),
            Claim::LinkTo(first) => {
                let is_resumed = entry.ctx.policy.options.rules.replace == Replace::Changed;
                if !is_resumed || first.itself.id != FileId::of(dest) {
                    let decided = Clear::Replace(RemovalEvent::Reported);
                    let scratch = &mut self.worker.scratch.own;
                    let linked = hardlink::link(entry, &first, Some(decided), scratch);
                    // As in cp, `-v` does not name the entry.
                    linked.map_err(|failure| Failure::preparing(failure.error))?;
                }
            }
        }
        Ok(Adopted::Done)
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

    /// Records the first copy of a source, and queues the entries that have waited for it.
    fn complete(&mut self, source: FileId, first: Option<FirstCopy>) {
        for waiter in self.run.links.complete(source, first) {
            let task = Task::Own(CopyTask::Waiter(waiter));
            self.worker.push(task, When::Next);
        }
    }

    /// Warns that another source has the inode number of this one.
    fn warn_of_other_file(&self) {
        let entry = self.entry;
        let warning = Error::refused(Refusal::SharedInodeNumber, entry.path(Side::Source));
        entry.ctx.warn(entry.operand, warning);
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

    /// Returns the engine that is the home of a source, if the source may have other names and its home is another
    /// engine.
    pub(super) fn other_home(&self, source: &Stat) -> Option<u32> {
        let stealing = self.run.stealing.as_ref()?;
        let may_have = self.entry.has_other_names(source);
        may_have.then(|| stealing.other_home(source.st_ino))?
    }

    /// Gives an entry to its home, before anything is done about its dest.
    ///
    /// # Errors
    /// The entry is an operand. Or another process has replaced the source since the rules were applied to the dest,
    /// or since another engine has found this one to be the home.
    #[cold]
    pub(super) fn entrust(&mut self, home: u32) -> Result<Processed, Failure> {
        let Self { run, entry, .. } = *self;
        let Some(node) = entry.node else {
            return Err(entry.refused(Refusal::HomeNotReached));
        };
        let stealing = run.stealing.as_ref();
        let is_home = stealing.is_some_and(|stealing| stealing.is_home_of(node));
        if is_home || !matches!(entry.dest_state, DestState::Unchecked) {
            return Err(entry.source_refused(Refusal::SourceReplaced));
        }
        let listed = sys::Listed::new(entry.source_name, entry.kind);
        walk::entrust(node, listed, home, self.worker);
        Ok(Processed::Handled)
    }

    /// Copies a symbolic link. Looks at it only if it may have other names and `source` was not seen.
    pub(super) fn copy_symlink(&mut self, source: Option<&Stat>) -> Result<Processed, Failure> {
        let entry = self.entry;
        let mut processed = Processed::Handled;
        let mut make = |copy: &mut Self| {
            match make::copy_symlink(entry)? {
                Created::Yes => copy.copied(Counted::Symlink),
                Created::AlreadyThere => processed = Processed::NotCopied,
            }
            Ok(None)
        };
        if !entry.ctx.policy.options.preserve.links {
            make(self)?;
            return Ok(processed);
        }
        let source = source.map_or_else(|| entry.stat_source(), |source| Ok(*source));
        let source = source.map_err(|errno| entry.source_stat_failure(errno))?;
        self.make_or_link(&source, make)?;
        Ok(processed)
    }

    /// Makes a link instead of a copy.
    pub(super) fn make_link(&mut self, kind: LinkKind) -> Result<Processed, Failure> {
        let counted = match kind {
            LinkKind::Hard => Counted::HardLink,
            LinkKind::Symbolic => Counted::Symlink,
        };
        let created = make::make_link(self.entry, kind)?;
        if kind == LinkKind::Hard {
            durable::linked(self.entry)?;
        }
        Ok(match created {
            Created::Yes => {
                self.copied(counted);
                Processed::Handled
            }
            Created::AlreadyThere => Processed::NotCopied,
        })
    }

    /// Makes a copy of a FIFO, socket or device.
    pub(super) fn copy_special(&mut self, source: &Stat) -> Result<Processed, Failure> {
        self.make_or_link(source, |copy| {
            make::copy_special(copy.entry, source)?;
            copy.copied(Counted::Other);
            Ok(None)
        })
    }

    /// Opens the dest and copies the content. Returns the file that was written, if further names of its source may link
    /// to it.
    #[inline(always)]
    pub(super) fn fill(
        &mut self,
        source: &OpenSource,
        naming: Naming,
    ) -> Result<Option<FileId>, Failure> {
        let entry = self.entry;
        let dest = open::open(entry, source, naming)?;
        let mut written = None;
        if entry.has_other_names(&source.stat) {
            let id = || sys::stat_open(&dest.fd).map(|stat| Some(FileId::of(&stat)));
            written = entry
                .ctx
                .changes
                .really(id)
                .map_err(|errno| entry.making_failure(Operation::Stat, errno))?;
        }
        self.worker.is_awaited = dest.writing.is_some();
        let filled = Filling::new(entry, source, dest).fill(self.worker);
        self.worker.is_awaited = false;
        self.note_filled(source, filled, written)
    }

    /// Copies a file whose content may have been read before.
    #[cold]
    fn fill_again(
        &mut self,
        source: &OpenSource,
        naming: Naming,
    ) -> Result<Option<FileId>, Failure> {
        source
            .rewind()
            .map_err(|errno| Failure::making(self.entry.source_error(Operation::Read, errno)))?;
        self.fill(source, naming)
    }

    /// Counts and reports a dest that was filled. Copies the file again if its dest could not be given its name. Returns
    /// the file that was written, if further names of its source may link to it: `written`, or another one.
    #[inline(always)]
    pub(super) fn note_filled(
        &mut self,
        source: &OpenSource,
        filled: Result<Filled, Failure>,
        written: Option<FileId>,
    ) -> Result<Option<FileId>, Failure> {
        let Self { run, entry, .. } = *self;
        if let Err(failure) = &filled {
            let errno = failure.error.raw_os_error();
            run.room
                .note_failure(entry, errno.map(Errno::from_raw_os_error));
        }
        match filled? {
            Filled::Complete {
                moved: Moved { bytes, method },
                is_file,
                attributes,
            } => {
                if is_file {
                    verifying::add(self, &source.stat);
                }
                attributes?;
                self.count(Counted::File, bytes);
                entry.ctx.report.throttle(0, bytes);
                if method.reflink == Mechanism::Used {
                    self.worker.scratch.tally.reflinked_bytes += bytes;
                }
                entry.emit_copied(Some(method));
            }
            Filled::Nameless => return self.fill_again(source, Naming::AtOnce),
            Filled::Cancelled => backup::restore(entry),
        }
        Ok(written)
    }

    /// Counts and reports a copy without content.
    pub(super) fn copied(&mut self, counted: Counted) {
        self.count(counted, 0);
        self.entry.emit_copied(None);
    }

    #[inline]
    pub(super) fn count(&mut self, counted: Counted, bytes: u64) {
        let worker = &mut *self.worker;
        worker.scratch.tally.count(counted);
        worker.scratch.tally.bytes += bytes;
        worker.scratch.had_content = bytes > 0;
        worker.count(1 + bytes.min(PIECE_BYTES as u64) / BYTES_PER_WORK);
    }
}
