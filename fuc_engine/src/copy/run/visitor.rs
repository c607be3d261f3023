//! A copy, as the walk sees it.

use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::{CopyRun, CopyTask, EntryCopy, Processed, durable, large, pipeline, tasks, verifying};
use crate::copy::collisions;
use crate::copy::context::Context;
use crate::copy::decide::mode::Origin;
use crate::copy::entry::Entry;
use crate::copy::facts::{CopyDir, CopyNode, Mark};
use crate::copy::make::{CopyScratch, directory, file};
use crate::copy::mirror;
use crate::descriptors::{Descriptors, Roots};
use crate::error::Operation;
use crate::node::{Dir, Place, Side};
use crate::observer::CopyMethod;
use crate::paths;
use crate::report::{Counted, Report};
use crate::sched::When;
use crate::sys::{self, Fd, Identity, PrivateTables};
use crate::walk::{self, OpenDirs, Purpose, Settings, Task, Tuning, Visit, Visitor, Walk, Walker};

/// Returns `true` if a directory below an operand is on another filesystem than its parent.
fn is_mount_point(node: &CopyNode) -> bool {
    let device = |node: &CopyNode| {
        let identity = node.dir.slot(Side::Source).identity();
        identity.map(Identity::device)
    };
    let parent = node.place.parent.as_ref();
    parent.is_some_and(|parent| device(parent) != device(node))
}

/// Opens the dest of the first operand, or the directory that it will be made in.
fn open_first_dest(ctx: &Context<'_>) -> Result<Fd, Errno> {
    ctx.open_operand(0, Side::Dest)
        .or_else(|_| paths::open_directory_of(ctx.target(), ctx.operands.dest_name(0)))
}

/// Queued tasks from which the filesystem is asked whether directories are made early.
const MANY: usize = 8;

/// Returns `true` if directories are made and opened when they are listed.
#[cold]
fn enters_early(run: &CopyRun<'_>) -> bool {
    let in_any_order = !run.ctx.settings.is_in_order && !run.ctx.report.wants_events();
    // Others may get directories that were not entered.
    let is_free = !run.is_shared() && !run.ctx.descriptors.are_short();
    in_any_order && is_free && walk::tuning(run).enters_early
}

impl Walk for CopyRun<'_> {
    type Dir = CopyDir;
}

impl Visitor for CopyRun<'_> {
    type Task = CopyTask;
    type Scratch = CopyScratch;

    fn descriptors(&self) -> &Descriptors<CopyDir> {
        &self.ctx.descriptors
    }

    fn report(&self) -> &Report<'_> {
        &self.ctx.report
    }

    fn settings(&self) -> &Settings {
        &self.ctx.settings
    }

    fn tune(&self) -> Tuning {
        let ctx = &self.ctx;
        let opened = match ctx.target {
            // A dest that is not a directory does not need more workers.
            None if ctx.operands.len() > 0 => open_first_dest(ctx).ok(),
            // An engine that cannot take part has no operands.
            _ => None,
        };
        let target = ctx.target.as_ref().map(AsFd::as_fd);
        let tuning = Tuning::of_copy(target.or(opened.as_ref().map(AsFd::as_fd)));
        Tuning {
            // A dry run makes nothing that workers would wait for.
            groups: tuning.groups.filter(|_| ctx.changes.are_visible()),
            ..tuning
        }
    }

    fn operand_path(&self, operand: u32) -> &Path {
        self.ctx.source_path(operand)
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
                    let source = Some(source.file());
                    collisions::note_used(ctx, node.place.operand, source);
                }
                if node.state.origin() == Origin::Existing {
                    worker.scratch.tally.merged += 1;
                    ctx.report.count_skipped(0);
                } else {
                    worker.scratch.tally.add_entry(Counted::Directory);
                }
                worker.count_work(1);
                durable::entered(self, &node);
                let entered = mirror::check_entered(ctx, &node);
                let entered = entered.map_err(|error| ctx.fail(node.place.operand, error));
                let is_left_empty = ctx.policy.options.one_file_system && is_mount_point(&node);
                // If the source is not listed because of a failure, that was reported.
                if entered.is_ok() && !is_left_empty && !node.state.marks.has(Mark::UNLISTED) {
                    return Some(node);
                }
                walk::leave(Some(node), worker);
                None
            }
            Err((place, error)) if place.parent.is_some() => {
                tasks::end_unentered(place, error, worker);
                None
            }
            Err((place, error)) => {
                if let Some(error) = error {
                    ctx.fail(place.operand, error);
                }
                ctx.finish_operand(place.operand);
                None
            }
        }
    }

    fn await_turn(&self, node: CopyNode) -> Option<CopyNode> {
        mirror::delete_extraneous(&self.ctx, &node);
        collisions::begin_filling(&self.ctx, node)
    }

    fn visit(
        &self,
        node: &CopyNode,
        dirs: &OpenDirs<'_>,
        listed: sys::Listed<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Visit {
        if listed.kind() == FileType::Directory {
            return match worker.queued_tasks() >= MANY && enters_early(self) {
                true => walk::enter_at_once(node, listed, worker),
                false => walk::queue(node, listed, worker),
            };
        }
        let dirs = [dirs.source(), dirs.dest()];
        let entry = || Entry::listed(&self.ctx, node, dirs, listed);
        let is_plain = self.copies_plainly && listed.kind() == FileType::RegularFile;
        let scratch = &mut worker.scratch.own;
        if is_plain && scratch.expects_empty && file::try_copy_empty(entry(), scratch) {
            pipeline::count_copy(worker, Counted::File, 0);
            if self.ctx.report.wants_events() {
                entry().emit_copied(Some(CopyMethod::default()));
            }
            return Visit::Done;
        }
        let entry = entry();
        let mut copy = EntryCopy {
            run: self,
            entry: &entry,
            worker,
        };
        let processed = match is_plain {
            true => copy.copy_file(),
            false => copy.copy_listed(listed.kind()),
        };
        match processed {
            Ok(Processed::Queued) => Visit::Queued,
            Ok(Processed::QueuedLarge) => Visit::QueuedSlow,
            Ok(Processed::Handled | Processed::NotCopied) => Visit::Done,
            Err(failure) => {
                entry.report_failure(failure);
                Visit::Done
            }
        }
    }

    fn not_listed(&self, node: &CopyNode, errno: Errno) {
        if node.state.marks.has(Mark::UNCLEAR) {
            return;
        }
        let operation = Operation::ReadDirectory;
        let error = self.ctx.node_error(node, Side::Source, operation, errno);
        self.ctx.fail(node.place.operand, error);
    }

    fn finish(&self, node: &CopyNode, worker: &mut Walker<'_, '_, Self>) -> ControlFlow<()> {
        collisions::forget_dests_in(&self.ctx, node);
        directory::finish(&self.ctx, node);
        if let Some(node) = collisions::end_filling(&self.ctx, node) {
            worker.push(Task::List { node }, When::Next);
        }
        if node.place.parent.is_none() {
            self.ctx.finish_operand(node.place.operand);
        }
        ControlFlow::Continue(())
    }

    fn run_own(&self, task: CopyTask, worker: &mut Walker<'_, '_, Self>) {
        match task {
            CopyTask::Operands(operands) => tasks::begin_operands(operands, worker),
            CopyTask::Large => large::copy_next(worker),
            CopyTask::Waiter(waiter) => {
                tasks::resume(waiter, worker, |copy| copy.look_and_copy().map(drop));
            }
            CopyTask::Verify(files) => verifying::compare_all(files, worker),
            CopyTask::VerifyRest => verifying::queue_rest(worker),
        }
    }

    fn private_tables(&self) -> Option<(PrivateTables, Vec<BorrowedFd<'_>>)> {
        let options = self.ctx.policy.options;
        // The filesystems of a durable copy are written at its end, when the threads that have opened them have ended.
        let permit = options.tables.filter(|_| !options.durable)?;
        Some((permit, self.ctx.kept_descriptors()))
    }

    fn roots(&self) -> &dyn Roots {
        &self.ctx
    }
}
