//! A copy, as the walk sees it.

use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::dest_filesystem::DestFilesystem;
use super::pipeline::Processed;
use super::postponed::{self, copy_large, copy_waiter};
use super::tasks::CopyTask;
use super::{CopyRun, dividing, durable, operands, sharing, verifying};
use crate::copy::facts::Entry;
use crate::copy::make::directory;
use crate::copy::node::{CopyDir, CopyNode};
use crate::copy::scratch::CopyScratch;
use crate::descriptors::{Descriptors, Roots};
use crate::error::Operation;
use crate::node::{Dir, Place, Side};
use crate::report::{Counted, Report};
use crate::sched::{Limits, SecondWorker, Zones};
use crate::sys::{self, Identity, InheritedTable, Symlinks, TableUse};
use crate::walk::{
    self, Filters, Offer, OpenDirs, Purpose, Sharer, SourceAndDest, Visit, Visitor, Walker,
};

/// Time per entry without content from which an idle worker gets a part of the listing.
///
/// Copying 1,500 files in one directory to a server that answers after 0.1 ms: with 1 ms 2.1 of the
/// time. Cell: slow-0.1ms-copy-flat. Copying 2,000 empty files in one directory on ext4: with 12 µs 1.1 of
/// the time (41 rounds).
const SHARE_EMPTY_FROM: Duration = Duration::from_micros(100);

/// The same for entries with content, which is copied without a lock of the directory.
///
/// Copying 1,000 files of 16 KiB in one directory with 100 µs: 1.13 of the time on ext4, 1.06 on tmpfs
/// (41 rounds, two cores).
const SHARE_CONTENT_FROM: Duration = Duration::from_micros(12);

/// Returns `true` if a directory below an operand is on another filesystem than its parent.
fn is_mount_point(node: &CopyNode) -> bool {
    let device = |node: &CopyNode| {
        let identity = node.dir.slot(Side::Source).identity();
        identity.map(Identity::device)
    };
    let parent = node.place.parent.as_ref();
    parent.is_some_and(|parent| device(parent) != device(node))
}

impl Visitor for CopyRun<'_> {
    type Dir = CopyDir;
    type Open<'n> = SourceAndDest<'n>;
    type Task = CopyTask;
    type Scratch = CopyScratch;

    fn descriptors(&self) -> &Descriptors<CopyDir> {
        &self.ctx.descriptors
    }

    fn roots(&self) -> &dyn Roots {
        &self.ctx
    }

    fn report(&self) -> &Report<'_> {
        &self.ctx.report
    }

    fn filters(&self) -> Option<&Filters> {
        self.filters.as_ref()
    }

    fn operand_path(&self, operand: u32) -> &Path {
        self.ctx.operand_path(operand, Side::Source)
    }

    fn symlinks(&self) -> Symlinks {
        self.ctx.policy.symlinks_of_entries
    }

    fn enter(
        &self,
        place: Place<CopyDir>,
        purpose: Purpose,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Option<CopyNode> {
        let ctx = &self.ctx;
        let numbers = &mut worker.scratch.own.backup_numbers;
        match directory::enter(ctx, place, purpose, numbers, &mut worker.scratch.finished) {
            Ok(node) => {
                if node.place.parent.is_none()
                    && let Some(source) = node.dir.slot(Side::Source).identity()
                {
                    self.used
                        .note_directory(ctx, node.place.operand, source.file());
                }
                worker.scratch.tally.count(Counted::Directory);
                worker.count(1);
                durable::entered(self, &node);
                if ctx.policy.options.one_file_system && is_mount_point(&node) {
                    walk::leave(self, Some(node), worker);
                    return None;
                }
                Some(node)
            }
            Err(not_entered) => {
                let place = not_entered.place;
                if not_entered.unfilled.is_none()
                    && let Some(kind) = postponed::other_type(ctx, &place)
                {
                    postponed::copy_of_other_type(self, place, kind, worker);
                    return None;
                }
                if let Some(unfilled) = not_entered.unfilled {
                    if unfilled.is_created() {
                        worker.scratch.tally.count(Counted::Directory);
                    }
                    if place.parent.is_none() {
                        self.used
                            .note_directory(ctx, place.operand, unfilled.source);
                    }
                }
                if let Some(error) = not_entered.error {
                    ctx.fail(place.operand, error);
                }
                if place.parent.is_none() {
                    ctx.finish_operand(place.operand);
                }
                walk::leave(self, place.parent, worker);
                None
            }
        }
    }

    /// Returns `false`: large files become tasks, and their size is known without another call.
    fn is_worth_a_worker(&self, _dirs: &SourceAndDest<'_>, _entry: sys::Entry<'_>) -> bool {
        false
    }

    fn visit(
        &self,
        node: &CopyNode,
        dirs: &SourceAndDest<'_>,
        listed: sys::Entry<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Visit {
        if listed.kind() == FileType::Directory {
            return walk::queue(node, listed, worker);
        }
        let entry = Entry::listed(node, dirs.source(), dirs.dest(), listed);
        let entry = entry.following(self.ctx.policy.symlinks_of_entries);
        let processed = if self.copies_plainly && listed.kind() == FileType::RegularFile {
            self.make_listed_file(&entry, worker)
                .and_then(|outcome| self.retry_if_changed(&entry, outcome, worker))
        } else {
            self.process_listed(&entry, listed.kind(), worker)
        };
        match processed {
            Ok(Processed::Queued) => Visit::Queued,
            Ok(Processed::QueuedLarge) => Visit::QueuedSlow,
            Ok(Processed::Handled | Processed::NotCopied) => Visit::Done,
            Err(failure) => {
                self.ctx.report_failure(&entry, failure);
                Visit::Done
            }
        }
    }

    fn path(&self, node: &CopyNode) -> PathBuf {
        self.ctx.place_path(&node.place, Side::Source)
    }

    /// Does nothing: a directory of which entries are not copied is finished like any other.
    fn entries_stay(&self, _node: &CopyNode) {}

    /// Does nothing, as [`entries_stay`](Self::entries_stay).
    fn entries_left_alone(&self, _node: &CopyNode) {}

    fn listing_failed(&self, node: &CopyNode, errno: Errno) {
        let operation = Operation::ReadDirectory;
        let error = self
            .ctx
            .place_error(&node.place, Side::Source, operation, errno);
        self.ctx.fail(node.place.operand, error);
    }

    fn finish(&self, node: &CopyNode, _worker: &mut Walker<'_, '_, Self>) -> ControlFlow<()> {
        if node.state.is_borrowed() {
            return sharing::give_back(self, node);
        }
        directory::finish(&self.ctx, node);
        if node.place.parent.is_none() {
            self.ctx.finish_operand(node.place.operand);
        }
        ControlFlow::Continue(())
    }

    fn run_own(&self, task: CopyTask, worker: &mut Walker<'_, '_, Self>) {
        match task {
            CopyTask::Operands(operands) => operands::begin(self, operands, worker),
            CopyTask::Large(file) => copy_large(self, file, worker),
            CopyTask::Part(part) => dividing::copy_part(self, part, worker),
            CopyTask::Waiter(waiter) => copy_waiter(self, waiter, worker),
            CopyTask::Verify(files) => verifying::compare_all(self, files, worker),
            CopyTask::VerifyRest => verifying::queue_rest(self, worker),
        }
    }

    fn limits(&self) -> Limits {
        if self.is_in_order() {
            Limits::of(1)
        } else {
            walk::worker_limits(self.ctx.policy.options.threads)
        }
    }

    /// On btrfs, each name goes into the single tree of the subvolume, and kernel threads do a part of the work later. Copying
    /// 50,000 files with two workers takes 0.9 of the time on one processor, and 1.2 on others. Cell: btrfs-copy.
    ///
    /// On XFS, two workers in different [zones](Self::zones) take 0.68 (4 KB) and 0.72 (empty) of the time of one. Directly after a large copy or removal, a
    /// trial of a second worker often fails, and runs take 1.16 to 1.21 of the time if there is one (15 rounds). Cells:
    /// xfs-copy, xfs-copy-data, and those of `benches steady`. Within XFS, a large file is usually cloned in no time.
    fn second_worker(&self) -> SecondWorker {
        let filesystem = self.dest_filesystem.get_or_init(|| match &self.ctx.target {
            Some(target) => DestFilesystem::of(target.as_fd()),
            // An engine that cannot take part has no operands.
            None if self.ctx.operands.is_empty() => None,
            // A dest that is not a directory does not need more workers.
            None => {
                let dest = self.ctx.open_operand(0, Side::Dest).ok()?;
                DestFilesystem::of(dest.as_fd())
            }
        });
        match filesystem {
            Some(DestFilesystem {
                groups: Some(_), ..
            }) => SecondWorker::PaysForMany,
            Some(DestFilesystem {
                magic: sys::BTRFS | sys::XFS,
                ..
            }) => SecondWorker::Unknown,
            _ => SecondWorker::Pays,
        }
    }

    /// There are none until a second worker is considered, because until then the filesystem of the dests is unknown.
    ///
    /// Without zones, two workers in nested directories of XFS wait for each other most of the time. Copying 50,000 files
    /// within an XFS of four groups then takes 1.52 of the time with 4 KB and 1.35 without content, and 1.64 from a tmpfs. In
    /// 500 directories side by side it takes 1.01 (two cores of an Intel Xeon, 5 to 7 rounds). Cells: xfs-copy,
    /// xfs-copy-data.
    fn zones(&self, node: &CopyNode) -> Zones {
        match self.dest_filesystem.get() {
            Some(Some(filesystem)) if self.ctx.plan.is_none() => filesystem.zones(node),
            _ => Zones::NONE,
        }
    }

    fn share_from(&self, scratch: &CopyScratch) -> Duration {
        match scratch.had_content {
            true => SHARE_CONTENT_FROM,
            false => SHARE_EMPTY_FROM,
        }
    }

    /// Offers of half a buffer are worse, because a server makes one change in a directory at a time. Copying 1,500 files
    /// in 8 directories to a server: 1.19 of the time if it answers after 1 ms, 1.24 after 0.1 ms (7 rounds). Cells:
    /// slow-1ms-copy-8 and slow-0.1ms-copy-8.
    fn offers(&self) -> Offer {
        Offer::RestOfListing
    }

    fn begin_thread(&self, table: InheritedTable) -> TableUse {
        match self.private_tables() {
            Some(permit) => table.replace(permit, &self.ctx.kept_descriptors()),
            None => table.keep(),
        }
    }

    fn is_in_order(&self) -> bool {
        self.ctx.policy.options.rules.ask
    }

    /// Returns `None` in a dry run, which changes nothing that other engines could see. So the leader does all of it.
    fn sharer(&self) -> Option<&dyn Sharer<Self>> {
        let is_shared = self.stealing.is_some() && self.ctx.plan.is_none();
        is_shared.then_some(self as &dyn Sharer<Self>)
    }
}
