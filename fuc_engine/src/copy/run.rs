//! One run of a copy: the only file, with those below it, that knows the whole pipeline.
//!
//! - [`visitor`]: the run, as the walk sees it, also if several engines share it.
//! - [`pipeline`]: the way of one entry through the stages, and the links to other copies.
//! - [`large`]: the way of a large file.
//! - `sharing`: shares a copy with other engines.
//! - [`durable`]: which directories and filesystems are written to the disk.
//! - [`verifying`]: compares copies with their sources.
//! - [`tasks`]: what is queued besides directories: operands, and entries that are copied later.
//!
//! How a run ends: the scheduler has no task left (`sched` says why), and `walk::run_tasks` begins the next group of operands or
//! ends the threads. Then [`CopyRun::run`] completes the directories that `--parents` has
//! made, reports the failures that waited for their turn, writes to the disk if the copy is durable, and returns the summary.

use std::iter;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, OnceLock};

use rustix::io::Errno;

use large::Room;
use tasks::OperandGroup;
use verifying::Unverified;

use super::changes::Changes;
use super::content::Next;
use super::context::{Context, Deletions};
use super::dest::backup;
use super::durability::Durability;
use super::entry::{Entry, StoredEntry};
use super::facts::{FileId, Symlinks};
use super::make::hardlink::LinkTable;
use super::mirror;
use super::operand::{Bases, Operands};
use super::options::{CopyOp, Dereference, Dest};
use super::parents::{self, MadeParents};
use super::policy::Policy;
use super::writers::Writers;
use crate::descriptors::Descriptors;
use crate::error::{Error, Operation, Refusal};
use crate::node::Side;
use crate::observer::{BYTES_PER_WORK, Observer, Summary};
use crate::paths;
use crate::report::Report;
use crate::setup::Execution;
use crate::sync::lock;
use crate::sys::{self, Identity};
use crate::walk::{self, Settings, Walker};

mod durable;
mod large;
mod pipeline;
#[cfg(feature = "distribute")]
mod sharing;
mod tasks;
mod verifying;
mod visitor;

/// One run of a [`CopyOp`].
pub(super) struct CopyRun<'a> {
    ctx: Context<'a>,
    /// `true` if regular files are copied without rules about their dests. Cached, because each
    /// entry needs it.
    copies_plainly: bool,
    links: LinkTable,
    /// `true` if no name of a source is met twice, so that the names still to be met can be
    /// counted.
    meets_names_once: bool,
    room: Room,
    /// Directories made on the way to dests.
    parents: Mutex<MadeParents>,
    /// Operands that are begun when those before them are done.
    later: Mutex<Option<Range<u32>>>,
    /// The target and the directories above it, found when they are first needed.
    above_target: OnceLock<Vec<Identity>>,
    unverified: Unverified,
    #[cfg(feature = "distribute")]
    shared: Option<walk::Shared<'a, super::facts::CopyDir>>,
}

/// Tasks of a copy other than listing a directory.
pub(crate) enum CopyTask {
    Operands(OperandGroup),
    /// Copy the next large file that waits.
    Large,
    /// Copy or link an entry that has waited for another name of its source.
    Waiter(StoredEntry),
    /// Compare copies with their sources.
    Verify(Vec<StoredEntry>),
    /// Compare the copies that were not compared before.
    VerifyRest,
}

/// The result for an entry that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Processed {
    /// Copied, or waits for another name of its source, or was given to another engine.
    Handled,
    /// Queued, because there is much content to copy.
    QueuedLarge,
    /// Nothing was to be done, or a failure was reported already.
    NotCopied,
    /// The entry is a directory, for which a task was queued.
    Queued,
}

/// An entry on its way through a run, and the worker that leads it.
struct EntryCopy<'c, 's, 'e, 'a> {
    run: &'c CopyRun<'a>,
    entry: &'c Entry<'c>,
    worker: &'c mut Walker<'s, 'e, CopyRun<'a>>,
}

impl<'a> CopyRun<'a> {
    pub(super) fn new(op: &'a CopyOp<'a>, dest: &'a Dest, observer: &'a dyn Observer) -> Self {
        let policy = Policy::new(op);
        Self {
            ctx: Context {
                settings: Settings {
                    is_in_order: op.rules.ask,
                    symlinks: policy.symlinks_of_entries,
                    ..Settings::new(op.threads, op.setup.filter.clone())
                },
                policy,
                acl_of_target: OnceLock::new(),
                is_target_native: OnceLock::new(),
                dest,
                bases: Bases {
                    source: op.setup.dir.as_fd(),
                    dest: op.dest_dir.as_fd(),
                },
                target: None,
                older: None,
                operands: Operands::new(dest),
                merges_directories: false,
                report: Report::new(observer, &op.setup),
                descriptors: Descriptors::new(),
                lacks_unnamed_files: AtomicBool::new(false),
                writers: Writers::default(),
                native: AtomicU64::new(0),
                stored_times: Mutex::default(),
                changes: Changes::Real,
                deletions: Deletions::default(),
                durability: (op.durable && op.execution == Execution::Real)
                    .then(Durability::default),
            },
            copies_plainly: op.copies_plainly(),
            links: LinkTable::default(),
            meets_names_once: false,
            room: Room::default(),
            parents: Mutex::default(),
            later: Mutex::default(),
            above_target: OnceLock::new(),
            unverified: Unverified::default(),
            #[cfg(feature = "distribute")]
            shared: walk::Shared::of(&op.setup, op.execution),
        }
    }

    fn is_shared(&self) -> bool {
        self.ctx.policy.options.setup.exchange.is_some()
    }

    fn assists(&self) -> bool {
        self.ctx.policy.options.setup.assists
    }

    pub(super) fn run(&mut self, sources: impl IntoIterator<Item = PathBuf>) -> Summary {
        let sources = &mut sources.into_iter();
        if let Err(error) = self.prepare(sources) {
            self.report_unprepared(error);
            // An engine that cannot take part still answers the others.
            self.ctx.operands = Operands::new(self.ctx.dest);
        }
        let runs = self.independent_groups();
        self.meets_names_once = self.meets_names_once(&runs);
        let runs = match self.ctx.report.wants_events() {
            // Events come in the order of the operands.
            true => one_by_one(self.ctx.operands.len()),
            false => runs,
        };
        let mut runs = runs.into_iter();
        let operands = iter::from_fn(|| lock(&self.later).take().or_else(|| runs.next()));
        let operands = operands.map(OperandGroup::alone);
        walk::run_tasks(self, operands.map(CopyTask::Operands));
        let made = std::mem::take(&mut *lock(&self.parents));
        parents::set_final_attributes(&self.ctx, made);
        self.ctx.report.report_rest();
        durable::write_rest(self);
        self.ctx.report.summary()
    }

    /// Opens the target and makes the operands. If this fails, nothing can be copied.
    fn prepare(&mut self, sources: &mut dyn Iterator<Item = PathBuf>) -> Result<(), Error> {
        let (Dest::Into(path) | Dest::Exactly(path)) = self.ctx.dest;
        let unusable = |errno| Error::failed(Operation::OpenTarget, path.clone(), errno).at_dest();
        if let Dest::Into(target) = self.ctx.dest {
            let base = self.ctx.bases.dest;
            let opened = paths::to_c(target)
                .and_then(|path| sys::open_path_directory(base, &path, Symlinks::Follow));
            self.ctx.target = Some(opened.map_err(unusable)?.into_kept());
        }
        let options = self.ctx.policy.options;
        if let Some(older) = &options.link_dest {
            self.ctx.older = self.open_older(older)?;
        }
        for source in sources {
            let (bases, dest) = (self.ctx.bases, self.ctx.dest);
            let own_backup = backup::own_backup(options, bases, dest, &source);
            if let Err(error) = self.ctx.operands.push(&source, own_backup, options) {
                self.report_unprepared(error);
            }
        }
        self.ctx.operands.complete();
        self.ctx.merges_directories = may_merge(options, &self.ctx.operands);
        self.ctx.changes = Changes::new(options.execution).map_err(unusable)?;
        let follows_links = options.recursive && options.dereference == Dereference::Always;
        let is_unsafe =
            self.ctx.merges_directories || options.rules.backup.is_some() || follows_links;
        if options.delete.is_some() && is_unsafe {
            return Err(Error::refused(Refusal::CannotMirror, path.clone()).at_dest());
        }
        self.ctx.deletions = mirror::initial_state(&self.ctx);
        durable::note_filesystems(&self.ctx)
    }

    /// Opens the older copy whose unchanged files are linked. Without one on the filesystem of the dest, as in the first run of
    /// many, everything is copied.
    ///
    /// # Errors
    /// It is the directory of the dest, whose files would be changed.
    fn open_older(&self, path: &Path) -> Result<Option<OwnedFd>, Error> {
        let (base, Dest::Into(dest) | Dest::Exactly(dest)) = (self.ctx.bases.dest, self.ctx.dest);
        let open = || {
            let older = sys::open_path_directory(base, &paths::to_c(path)?, Symlinks::Follow)?;
            let older_id = FileId::of(&sys::stat_open(&older)?);
            let dest = paths::to_c(dest)?;
            let dest_id = sys::stat(base, &dest, Symlinks::Follow).map(|dest| FileId::of(&dest));
            let nearest = dest_id.ok().or_else(|| paths::directory_id_of(base, &dest));
            match nearest.is_none_or(|nearest| nearest.device == older_id.device) {
                true => Ok((older.into_kept(), dest_id == Ok(older_id))),
                false => Err(Errno::XDEV),
            }
        };
        match open() {
            Ok((_, true)) => Err(Error::refused(Refusal::SameFile, path.into())
                .at_dest()
                .with_other(Side::Dest, dest.clone())),
            Ok((older, false)) => Ok(Some(older)),
            Err(errno) => {
                let warning = Error::failed(Operation::OpenLinkDest, path.into(), errno);
                if !self.assists() {
                    self.ctx.report.warn(0, warning.at_dest());
                }
                Ok(None)
            }
        }
    }

    /// Reports a failure to prepare. The leader meets the same one, so an engine that assists does not report it.
    fn report_unprepared(&self, error: Error) {
        if !self.assists() {
            self.ctx.report.fail(0, error);
        }
    }

    /// Groups neighbouring operands that can be copied at the same time.
    fn independent_groups(&self) -> Vec<Range<u32>> {
        let operands = &self.ctx.operands;
        match self.ctx.dest {
            // Questions come in the order of the operands.
            Dest::Into(_) if !self.ctx.policy.options.rules.ask => {
                paths::independent_groups(operands.sources(), |index| {
                    operands.may_share_dest(index)
                })
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
    fn meets_names_once(&self, independent_groups: &[Range<u32>]) -> bool {
        independent_groups.len() == 1 && self.ctx.policy.options.dereference == Dereference::Never
    }
}

/// Returns `true` if several directories may be merged: through a link at the dest, or those of several operands, as in
/// `a/d b/d` or `a/. d`.
fn may_merge(options: &CopyOp<'_>, operands: &Operands<'_>) -> bool {
    options.rules.follow_links_to_directories
        || operands.len() > 1 && (options.parents || operands.have_shared_dests())
}

/// Returns a range for each operand.
fn one_by_one(operands: usize) -> Vec<Range<u32>> {
    (0..operands as u32).map(|i| i..i + 1).collect()
}

/// Accounts for a piece of a large file that was copied, and lets other workers have queued work before the next piece.
/// Returns [`Next::Cancel`] if the run was cancelled.
fn note_piece(worker: &mut Walker<'_, '_, CopyRun<'_>>, bytes: u64) -> Next {
    let report = &worker.job.ctx.report;
    worker.scratch.tally.bytes += bytes;
    report.publish(&mut worker.scratch.tally);
    worker.count_work(bytes / BYTES_PER_WORK);
    report.throttle(0, bytes);
    worker.checkpoint();
    match report.must_stop() {
        true => Next::Cancel,
        false => Next::Piece,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::options::Preserve;
    use crate::filter::{Candidate, Verdict};
    use crate::observer::Event;
    use crate::setup::Cancel;
    use crate::sys::AllocationGroups;
    use crate::walk::{Tuning, Visitor};
    use std::fs;
    use std::num::NonZeroUsize;
    use std::os::fd::AsFd;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use testkit::probe::{Fs, LoopMount};
    use testkit::snapshot::{Attributes, assert_same_tree};
    use testkit::tree::Tree;

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
        let options = CopyOp {
            recursive: true,
            dereference: Dereference::Never,
            preserve: Preserve {
                links: true,
                ..Preserve::default()
            },
            ..CopyOp::default()
        };
        let dest = Dest::Into(at("d"));
        let failures = Mutex::new(Vec::new());
        let mut run = CopyRun::new(&options, &dest, &failures);
        let operands = operands.iter().map(|operand| at(operand));
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

    /// Cancels a run when `left` more entries have been copied.
    struct CancelAfter {
        left: AtomicUsize,
        cancel: Cancel,
    }

    impl Observer for CancelAfter {
        fn failed(&self, error: Error) {
            panic!("{error}");
        }

        fn wants_events(&self) -> bool {
            true
        }

        fn on_event(&self, _: Event<'_>) {
            if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
                self.cancel.cancel();
            }
        }
    }

    /// Copies 400 directories of three levels, with a file each, as if all were in one allocation group: four workers put
    /// directories off all the time. Cancels the copy after `entries`. Returns the directory of the source `s` and the
    /// dest `d`, and the summary.
    fn copy_in_one_group(entries: usize) -> (tempfile::TempDir, Summary) {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::at(dir.path().join("s"));
        for number in 0..400 {
            tree.file(format!("{}/{number}/f", number / 20), "x");
        }
        let options = CopyOp {
            recursive: true,
            threads: NonZeroUsize::new(4),
            ..CopyOp::default()
        };
        let dest = Dest::Exactly(dir.path().join("d"));
        let observer = CancelAfter {
            left: AtomicUsize::new(entries),
            cancel: Cancel::new(),
        };
        let options = options.cancelled_by(observer.cancel.clone());
        let mut run = CopyRun::new(&options, &dest, &observer);
        let stat = sys::stat_directory(fs::File::open(dir.path()).unwrap().as_fd()).unwrap();
        let tuning = Tuning {
            groups: Some(AllocationGroups::single(stat.identity.device())),
            ..Tuning::of_copy(None)
        };
        assert!(run.ctx.settings.tuning.set(tuning).is_ok());
        let summary = run.run(vec![tree.path().into()]);
        (dir, summary)
    }

    #[test]
    fn directories_are_made_before_the_files_in_them_if_that_pays() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let tree = Tree::at(at("s"));
        for number in 0..100 {
            tree.file(format!("{number}/f"), "x");
        }
        let (made, dest) = (Arc::new(AtomicUsize::new(0)), at("d"));
        let first = (Arc::clone(&made), dest.clone());
        let filter = move |entry: &Candidate<'_>| {
            let (made, dest) = &first;
            if entry.name() == "f" && made.load(Ordering::Relaxed) == 0 {
                let entries = fs::read_dir(dest).unwrap().count();
                made.store(entries, Ordering::Relaxed);
            }
            Verdict::Take
        };
        let options = CopyOp {
            recursive: true,
            threads: NonZeroUsize::new(1),
            ..CopyOp::default()
        };
        let options = options.filtered_by(filter);
        let (dest, failures) = (Dest::Exactly(dest), Mutex::new(Vec::new()));
        let mut run = CopyRun::new(&options, &dest, &failures);
        let tuning = Tuning {
            enters_early: true,
            ..Tuning::of_copy(None)
        };
        assert!(run.ctx.settings.tuning.set(tuning).is_ok());
        assert!(run.run(vec![at("s")]).is_complete(), "{failures:?}");
        // A few are queued before the filesystem is asked.
        let made = made.load(Ordering::Relaxed);
        assert!(made > 90, "{made} were made before the first file");
        assert_same_tree(at("s"), at("d"), Attributes::CONTENT);
    }

    #[test]
    fn the_filesystem_of_a_dest_that_is_not_there_yet_is_that_of_its_directory() {
        let place = testkit::or_skip!(LoopMount::new(Fs::Ext4, 16));
        let options = CopyOp::default();
        for dest in ["d", "d/"] {
            let dest = Dest::Exactly(place.path().join(dest));
            let failures = Mutex::new(Vec::new());
            let mut run = CopyRun::new(&options, &dest, &failures);
            assert!(run.prepare(&mut ["s".into()].into_iter()).is_ok());
            assert!(run.tune().enters_early, "{dest:?}");
        }
    }

    #[test]
    fn directories_that_are_put_off_are_copied_later() {
        let (dir, summary) = copy_in_one_group(usize::MAX);
        assert!(summary.is_complete());
        let [source, dest] = ["s", "d"].map(|name| dir.path().join(name));
        assert_same_tree(source, dest, Attributes::CONTENT);
    }

    #[test]
    fn directories_that_are_put_off_are_given_up_by_a_cancelled_run() {
        let (_dir, summary) = copy_in_one_group(150);
        assert!(summary.cancelled);
    }
}
