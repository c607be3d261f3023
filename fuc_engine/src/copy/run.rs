//! One run of a copy: the only file, with those below it, that knows the whole pipeline.
//!
//! ```text
//! visit ─▶ fast path (regular file, no rules): make         O_EXCL first, no look
//!      └─▶ look ─▶ decide ─▶ back up or unlink ─▶ make ─▶ attributes ─▶ report
//!          ▲                                       │ Outcome::TypeChanged
//!          └────────────── one retry ──────────────┘
//! ```
//!
//! Creation comes first in `make`. Only after `EEXIST` does it call `dest::clear`, which decides
//! about the dest in the way. Each stage returns a value to the run.
//!
//! - [`visitor`]: the run, as the walk sees it.
//! - [`pipeline`]: the way of one entry through the stages.
//! - [`operands`]: begins the operands, in their order.
//! - [`durable`]: which directories and filesystems are written to the disk.
//! - [`verifying`]: which copies are compared with their sources.
//! - [`tasks`]: what is queued besides directories.
//! - [`postponed`]: large files, and entries that waited for another name of their source.

use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::bases::Bases;
use super::context::Context;
use super::duplicates::UsedNames;
use super::durability::Durability;
use super::facts::Symlinks;
use super::hardlinks::LinkTable;
use super::naming::UnnamedFiles;
use super::operand::Operand;
use super::options::{CopyOptions, Dereference, Dest};
use super::parents::{self, MadeParents};
use super::plan::Plan;
use super::policy::Policy;
use super::room::Room;
use super::scratch::{CopyScratch, CopyWorker};
use crate::descriptors::Descriptors;
use crate::error::{Error, Operation};
use crate::execution::Execution;
use crate::failures::Failures;
use crate::filter::SharedFilter;
use crate::observer::{BYTES_PER_WORK, Summary};
use crate::operand;
use crate::report::Report;
use crate::sched;
use crate::sys::{self, Identity};
use crate::walk::{Filters, Task, Walker};

mod durable;
mod operands;
mod pipeline;
mod postponed;
mod tasks;
mod verifying;
mod visitor;

use postponed::Overwrites;
use tasks::{CopyTask, Operands};
use verifying::Unverified;

/// One run of a [`CopyOp`](super::CopyOp).
pub(super) struct CopyRun<'a> {
    ctx: Context<'a>,
    /// `true` if regular files are copied without rules about their dests. Cached, because each
    /// entry needs it.
    copies_plainly: bool,
    links: LinkTable,
    /// `true` if no name of a source is met twice, so that the names still to be met can be
    /// counted.
    meets_names_once: bool,
    used: UsedNames,
    room: Room,
    /// Directories made on the way to dests.
    parents: Mutex<MadeParents>,
    /// The target and the directories above it, found when they are first needed.
    above_target: OnceLock<Vec<Identity>>,
    unverified: Unverified,
    overwrites: Overwrites,
    filters: Option<Filters>,
}

impl<'a> CopyRun<'a> {
    pub(super) fn new(
        options: &'a CopyOptions,
        bases: Bases<'a>,
        dest: &'a Dest,
        report: Report<'a>,
        filter: Option<SharedFilter>,
    ) -> Self {
        Self {
            ctx: Context {
                policy: Policy::new(options),
                dest,
                bases,
                target: None,
                operands: Vec::new(),
                report,
                failures: Failures::default(),
                descriptors: Descriptors::new(),
                unnamed_dests: UnnamedFiles::default(),
                plan: None,
                durability: (options.durable && options.execution == Execution::Real)
                    .then(Durability::default),
            },
            copies_plainly: options.rules.are_plain() && options.as_links.is_none(),
            links: LinkTable::default(),
            meets_names_once: false,
            used: UsedNames::default(),
            room: Room::default(),
            parents: Mutex::default(),
            above_target: OnceLock::new(),
            unverified: Unverified::default(),
            overwrites: Overwrites::default(),
            filters: filter.map(Filters::new),
        }
    }

    pub(super) fn run<P: AsRef<Path>>(&mut self, sources: impl AsRef<[P]>) -> Summary {
        let ctx = &mut self.ctx;
        if let Dest::Into(target) = ctx.dest {
            let base = ctx.bases.dest;
            let opened = operand::to_c(target)
                .and_then(|path| sys::open_path_directory(base, &path, Symlinks::Follow));
            match opened {
                Ok(fd) => ctx.target = Some(fd),
                Err(errno) => {
                    let error =
                        Error::failed(Operation::OpenTarget, target.clone(), errno).at_dest();
                    ctx.report.failed(error);
                    return ctx.report.summary();
                }
            }
        }
        for source in sources.as_ref() {
            let options = ctx.policy.options;
            match Operand::new(ctx.bases, source.as_ref(), ctx.dest, options) {
                Ok(operand) => ctx.operands.push(operand),
                Err(error) => ctx.report.failed(error),
            }
        }
        // The run has its own copies of the paths.
        drop(sources);
        ctx.failures = Failures::of(ctx.operands.len());
        if ctx.policy.options.execution == Execution::DryRun {
            match Plan::new(ctx.policy.options, &ctx.operands) {
                Ok(plan) => ctx.plan = Some(plan),
                Err(errno) => {
                    let (Dest::Into(path) | Dest::Exactly(path)) = ctx.dest;
                    let error = Error::failed(Operation::OpenTarget, path.clone(), errno).at_dest();
                    ctx.report.failed(error);
                    return ctx.report.summary();
                }
            }
        }
        if let Err(error) = durable::begin(&self.ctx) {
            self.ctx.report.failed(error);
            return self.ctx.report.summary();
        }
        let runs = self.independent_runs();
        self.meets_names_once = self.meets_names_once(&runs);
        let runs = match self.ctx.report.wants_events() {
            // Events come in the order of the operands.
            true => one_by_one(self.ctx.operands.len()),
            false => runs,
        };
        sched::scope(self, |worker| {
            for range in runs {
                worker.push(Task::Own(CopyTask::Operands(Operands::alone(range))));
                worker.run_all();
            }
        });
        let made = std::mem::take(
            self.parents
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner),
        );
        if self.ctx.plan.is_none() {
            parents::finish(&self.ctx, made);
        }
        self.ctx.failures.report_rest(&self.ctx.report);
        durable::finish(&self.ctx);
        self.ctx.report.summary()
    }

    /// Groups neighbouring operands that can be copied at the same time.
    fn independent_runs(&self) -> Vec<Range<u32>> {
        let operands = &self.ctx.operands;
        match self.ctx.dest {
            // Questions come in the order of the operands.
            Dest::Into(_) if !self.ctx.policy.options.rules.ask => {
                operand::independent_runs(operands.iter().map(|operand| &*operand.source))
            }
            Dest::Into(_) | Dest::Exactly(_) => one_by_one(operands.len()),
        }
    }

    /// Returns `true` if each name of a source is met once at most. Then the number of its hard
    /// links says when the last name was met, and its copy can be forgotten.
    ///
    /// Within one independent run, the operands are different names in one directory, and
    /// symbolic links are not followed. So no operand is, or lies in, another one, and their trees
    /// have no name in common. Operands of several runs may overlap, as in `d d/e`, and a followed
    /// symbolic link is one more name, which is not counted.
    fn meets_names_once(&self, independent_runs: &[Range<u32>]) -> bool {
        independent_runs.len() == 1 && self.ctx.policy.options.dereference == Dereference::Never
    }
}

/// Returns a range for each operand.
fn one_by_one(operands: usize) -> Vec<Range<u32>> {
    (0..operands as u32).map(|i| i..i + 1).collect()
}

impl CopyWorker for Walker<'_, '_, CopyRun<'_>> {
    fn scratch(&mut self) -> &mut CopyScratch {
        &mut self.scratch.own
    }

    fn copied_piece(&mut self, report: &Report<'_>, bytes: u64) -> ControlFlow<()> {
        self.scratch.tally.count_bytes(bytes);
        report.publish(&mut self.scratch.tally);
        self.count(bytes / BYTES_PER_WORK);
        self.checkpoint();
        if report.must_stop() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::options::Preserve;
    use crate::sys::CWD;
    use std::fs;

    /// Copies operands out of a directory in which `a/1` and `b/1`, `a/2` and `b/2`, and so on,
    /// are hard links. Returns how many sources are still known at the end.
    fn known_after(operands: &[&str]) -> usize {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for name in ["s/a", "s/b", "d"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        for number in 0..9 {
            fs::write(at(&format!("s/a/{number}")), "x").unwrap();
            let names = ["a", "b"].map(|sub| at(&format!("s/{sub}/{number}")));
            fs::hard_link(&names[0], &names[1]).unwrap();
        }
        let options = CopyOptions {
            recursive: true,
            dereference: Dereference::Never,
            preserve: Preserve {
                links: true,
                ..Preserve::default()
            },
            ..CopyOptions::default()
        };
        let dest = Dest::Into(at("d"));
        let failures = Mutex::new(Vec::new());
        let report = Report::new(&failures, None);
        let bases = Bases {
            source: CWD,
            dest: CWD,
        };
        let mut run = CopyRun::new(&options, bases, &dest, report, None);
        let operands: Vec<_> = operands.iter().map(|operand| at(operand)).collect();
        assert!(run.run(operands).is_complete(), "{failures:?}");
        run.links.len()
    }

    #[test]
    fn copies_are_forgotten_if_operands_do_not_overlap() {
        assert_eq!(known_after(&["s"]), 0);
        assert_eq!(known_after(&["s/a", "s/b"]), 0);
    }

    #[test]
    fn copies_are_remembered_if_operands_may_overlap() {
        assert_eq!(known_after(&["s", "s/a"]), 9);
    }
}
