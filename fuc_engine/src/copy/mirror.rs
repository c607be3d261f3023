//! Deletes from dests what their sources do not have, for [`Deletion`].
//!
//! A dest directory is looked through when everything in it was copied. Each name there is looked up in the open source
//! directory, so no list of names is kept. It is deleted if it is missing twice. What cannot be looked up stays.
//!
//! A directory in the way of a file is removed as soon as the file is open.
//!
//! If links are followed, one that is met later may lead to what would be deleted. Then nothing is deleted before
//! everything is copied, and nothing that was copied through a link.
//!
//! Each removal is a run of its own on this thread, relative to the open dest directory. It never enters another
//! filesystem.

use std::ffi::{CStr, CString, OsString};
use std::iter;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::context::{Context, Deletions, Use};
use super::decide::mode::Origin;
use super::entry::Entry;
use super::facts::{CopyNode, FileId, Symlinks};
use super::operand::ancestry;
use super::options::Deletion;
use crate::error::{Cause, Error, Operation, Refusal};
use crate::filter::{Above, Candidate, Location, Verdict};
use crate::node::{Dir, Side};
use crate::observer::{Counts, Event, Observer};
use crate::paths;
use crate::remove::RemoveOp;
use crate::sync::lock;
use crate::sys::{self, Fd, Identity, Listing, Mount, Stat};

mod names;

/// Bytes of a listing buffer, which holds about 1,000 short names.
const BUFFER_BYTES: usize = 32 << 10;

/// Returns the state before anything is copied.
pub(super) fn begin(ctx: &Context<'_>) -> Deletions {
    let deletions = Deletions::default();
    if ctx.policy.options.delete.is_none() {
        return deletions;
    }
    for source in ctx.operands.sources() {
        for path in [source, &*paths::directory_of(source)] {
            let opened = sys::open_path_directory(ctx.bases.source, path, Symlinks::Follow);
            if let Ok(dir) = opened {
                let above = ancestry(dir.as_fd()).into_iter();
                let above = above.map(|above| (above.file(), Use::Operand));
                lock(&deletions.in_use).extend(above);
            }
        }
    }
    let put_off = Mutex::new(follows_links(ctx).then(Vec::new));
    Deletions {
        put_off,
        ..deletions
    }
}

fn follows_links(ctx: &Context<'_>) -> bool {
    ctx.policy.symlinks_of_entries == Symlinks::Follow
}

/// Notes that a directory was entered. Fails if it is the dest of an operand, and contains a source or is that of another
/// operand.
pub(super) fn entered(ctx: &Context<'_>, node: &CopyNode) -> Result<(), Error> {
    if ctx.policy.options.delete.is_none() {
        return Ok(());
    }
    let note = |side, of| {
        let id = node.dir.slot(side).identity()?.file();
        lock(&ctx.deletions.in_use).insert(id, of)
    };
    let is_there = ctx.changes.are_visible() || node.state.origin() == Origin::Existing;
    if node.place.parent.is_none() && is_there {
        return match note(Side::Dest, Use::Operand) {
            Some(_) => Err(cannot_mirror(ctx, node)),
            None => Ok(()),
        };
    }
    if follows_links(ctx) && node.state.is_behind_link() {
        note(Side::Source, Use::BehindLink);
    }
    Ok(())
}

/// Notes an entry that was copied through a link.
#[cold]
pub(super) fn note_followed(entry: &Entry<'_>, source: &Stat) {
    let itself = sys::stat(entry.source_dir, entry.source_name, Symlinks::NoFollow);
    if itself.is_ok_and(|itself| FileId::of(&itself) != FileId::of(source)) {
        lock(&entry.ctx.deletions.in_use).insert(FileId::of(source), Use::BehindLink);
    }
}

fn cannot_mirror(ctx: &Context<'_>, node: &CopyNode) -> Error {
    let dest = ctx.place_path(&node.place, Side::Dest);
    Error::refused(Refusal::CannotMirror, dest).at_dest()
}

/// Deletes the names in a dest directory that the source does not have, after everything in it was copied. In a cancelled
/// run, or if an entry of the directory has failed, nothing is deleted. Breaks if the directory waits for [`finish`].
pub(super) fn delete_extraneous(ctx: &Context<'_>, node: &CopyNode) -> ControlFlow<()> {
    let options = ctx.policy.options;
    if options.delete.is_none() || node.state.is_incomplete() {
        return ControlFlow::Continue(());
    }
    let pin = |side| ctx.descriptors.pin(node, side, ctx);
    let deleted = pin(Side::Source).and_then(|source| {
        let dest = pin(Side::Dest)?;
        match Mirror::of(ctx, node, [source.as_fd(), dest.as_fd()]) {
            // As in rsync, nothing is deleted on another filesystem.
            Some(mirror) if !(options.one_file_system && mirror.is_elsewhere()) => mirror.delete(),
            _ => Ok(ControlFlow::Continue(())),
        }
    });
    if matches!(deleted, Ok(ControlFlow::Break(()))) {
        // A thread with descriptors of its own may end before.
        ctx.descriptors.close(node, Side::Source);
        ctx.descriptors.close(node, Side::Dest);
    }
    deleted.unwrap_or_else(|errno| {
        let error = ctx.node_error(node, Side::Dest, Operation::ReadDirectory, errno);
        ctx.fail(node.place.operand, error);
        ControlFlow::Continue(())
    })
}

/// Deletes what was put off, when everything is copied. Gives each of the directories to `finish`.
pub(super) fn finish(ctx: &Context<'_>, finish: impl Fn(&CopyNode)) {
    let put_off = lock(&ctx.deletions.put_off).take();
    for node in put_off.into_iter().flatten() {
        let _done = delete_extraneous(ctx, &node);
        finish(&node);
    }
}

/// Removes a dest directory in the way of an entry. Returns `true` if it is gone.
#[cold]
pub(super) fn make_way(entry: &Entry<'_>) -> bool {
    let ctx = entry.ctx;
    let (dir, name) = (entry.dest_dir, entry.dest_name);
    let of = |node| Mirror::of(ctx, node, [entry.source_dir, dir]);
    // A link that is met later may lead to the directory.
    let node = entry.node.filter(|_| !follows_links(ctx));
    let Some(mirror) = node.and_then(of) else {
        return false;
    };
    // A pattern may match directories only.
    if !mirror.deletion.excluded && !mirror.is_taken(name, FileType::Directory) {
        return false;
    }
    // It may be the copy of another source.
    let names = mirror.without_copies(vec![name.to_owned()], &mut None);
    let names = names.ok().flatten();
    let is_removed = names.is_some_and(|names| mirror.remove(names.into_iter(), Extent::Whole));
    if is_removed {
        ctx.changes.vacated(entry.spot());
    }
    is_removed
}

/// Says how much of each name is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// All that the filter takes.
    Taken,
    /// All, or nothing.
    Whole,
}

/// Both sides of a directory, from whose dest names may be deleted.
struct Mirror<'m, 'a> {
    ctx: &'m Context<'a>,
    deletion: Deletion,
    node: &'m CopyNode,
    source: BorrowedFd<'m>,
    dest: BorrowedFd<'m>,
}

impl<'m, 'a> Mirror<'m, 'a> {
    /// Returns `None` if nothing may be deleted. What is in a directory that this run has made, it has copied there.
    fn of(
        ctx: &'m Context<'a>,
        node: &'m CopyNode,
        [source, dest]: [BorrowedFd<'m>; 2],
    ) -> Option<Self> {
        let is_older = node.state.origin() == Origin::Existing;
        Some(Self {
            ctx,
            deletion: ctx.policy.options.delete.filter(|_| is_older)?,
            node,
            source,
            dest,
        })
    }

    fn path(&self, side: Side, name: &CStr) -> PathBuf {
        let operand = self.node.place.operand;
        self.ctx.path_in(Some(self.node), operand, name, side)
    }

    /// Opens a directory once more to list it.
    fn list(&self, dir: BorrowedFd<'_>) -> Result<Fd, Errno> {
        let open = || sys::open_directory_noatime(dir, c".", Symlinks::NoFollow);
        Ok(self.ctx.descriptors.making_room(open)?.0)
    }

    /// Returns `true` if the dest is on another filesystem than that of its operand.
    fn is_elsewhere(&self) -> bool {
        let root = self.ctx.operands.state(self.node.place.operand).root.get();
        let dest = self.node.dir.slot(Side::Dest).identity();
        root.copied().map(Identity::device) != dest.map(Identity::device)
    }

    /// Returns `true` if something is mounted on a name in the dest, and stays there. It is not opened.
    fn stays_mounted(&self, name: &CStr) -> bool {
        let of = |name: &CStr| Mount::of(self.dest, name);
        let is_mounted = |above: Mount| of(name).is_ok_and(|itself| !above.is_same(itself));
        self.ctx.policy.options.one_file_system && of(c"").is_ok_and(is_mounted)
    }

    /// Returns `true` if what is in the dest was copied through a link.
    fn is_behind_link(&self) -> bool {
        let in_use = lock(&self.ctx.deletions.in_use);
        let dest = self.node.dir.slot(Side::Dest).identity();
        dest.and_then(|dest| in_use.get(&dest.file())) == Some(&Use::BehindLink)
    }

    /// Deletes the extraneous names, or puts that off.
    fn delete(&self) -> Result<ControlFlow<()>, Errno> {
        let listed = self.list(self.dest)?;
        let mut buffer = Listing::with_capacity(BUFFER_BYTES);
        let mut broken_off = Ok(());
        let mut aliases = None;
        let extraneous = iter::from_fn(|| {
            let found = self.look_through(&mut buffer, listed.as_fd(), &mut aliases);
            found.map_err(|errno| broken_off = Err(errno)).ok()?
        });
        let mut extraneous = extraneous.flatten().peekable();
        if extraneous.peek().is_some() {
            if let Some(nodes) = &mut *lock(&self.ctx.deletions.put_off) {
                nodes.push(self.node.clone());
                return Ok(ControlFlow::Break(()));
            }
            match self.is_behind_link() {
                true => self.refuse(),
                false => drop(self.remove(extraneous, Extent::Taken)),
            }
        }
        broken_off.map(ControlFlow::Continue)
    }

    /// Reports that nothing is deleted here.
    fn refuse(&self) {
        let error = cannot_mirror(self.ctx, self.node);
        self.ctx.fail(self.node.place.operand, error);
    }

    /// Removes names from the dest. Returns `true` if nothing has failed.
    fn remove(&self, names: impl Iterator<Item = CString>, extent: Extent) -> bool {
        let (ctx, place) = (self.ctx, &self.node.place);
        let options = ctx.policy.options;
        let unfiltered = RemoveOp::new().with(|removal| {
            removal.ignore_missing = true;
            removal.preserve_mount_points = true;
            removal.one_file_system = true;
            removal.threads = Some(NonZeroUsize::MIN);
            removal.execution = options.execution;
        });
        let unfiltered = unfiltered.in_dir(&self.dest).together_with(&options.setup);
        let filter = ctx.settings.filter_of(self.node);
        let filter = filter.filter(|_| !self.deletion.excluded);
        let operand = ctx.operands.dest_path(place.operand);
        let directory = place.path(Path::new(""), None);
        let has_met_one = Arc::new(AtomicBool::new(false));
        let is_spared = {
            let (in_use, has_met_one) =
                (Arc::clone(&ctx.deletions.in_use), Arc::clone(&has_met_one));
            move |id: Result<FileId, Errno>| {
                // A file that cannot be looked at may be in use.
                let is_in_use = id.map_or(true, |id| lock(&in_use).contains_key(&id));
                has_met_one.fetch_or(is_in_use, Relaxed);
                is_in_use
            }
        };
        let is_spared_below = is_spared.clone();
        let spares_files = follows_links(ctx);
        let removal = unfiltered
            .clone()
            .filtered_by(move |entry: &Candidate<'_>| {
                let id = || sys::stat_open(&(entry.open)()?).map(|stat| FileId::of(&stat));
                if (spares_files || entry.kind == FileType::Directory) && is_spared_below(id()) {
                    return Verdict::Prune;
                }
                let Some(filter) = &filter else {
                    return Verdict::Take;
                };
                let above = Above {
                    operand: &operand,
                    directory: &Joined(&directory, entry.above),
                };
                filter.verdict(&Candidate { above, ..*entry })
            });
        // The filter is not asked about operands.
        let names =
            names.filter(|name| !paths::id_of(self.dest, name).is_some_and(|id| is_spared(Ok(id))));
        let names = names.filter(|name| !self.stays_mounted(name));
        let names = names.map(|name| PathBuf::from(OsString::from_vec(name.into_bytes())));
        let is_whole = |name: &PathBuf| {
            extent == Extent::Taken || entries(&removal, name) == entries(&unfiltered, name)
        };
        let permitted = names.filter(|name| is_whole(name) && self.permits(&removal, name));
        let removed = removal.run(permitted, self);
        ctx.deletions.deleted.fetch_add(removed.entries, Relaxed);
        if has_met_one.load(Relaxed) {
            self.refuse();
            return false;
        }
        // If the removal was cancelled, so was the copy.
        removed.entries > 0 && removed.failures == 0 && !ctx.report.must_stop()
    }

    /// Returns `true` if the limit permits to delete a name and everything in it. Otherwise nothing more is deleted.
    fn permits(&self, removal: &RemoveOp<'_>, name: &Path) -> bool {
        let Some(most) = self.deletion.most else {
            return true;
        };
        let (entries, deletions) = (entries(removal, name), &self.ctx.deletions);
        let add = |permitted| Some(permitted + entries).filter(|sum| *sum <= most);
        let is_permitted = deletions
            .permitted
            .fetch_update(Relaxed, Relaxed, add)
            .is_ok();
        if !is_permitted {
            deletions.permitted.store(most, Relaxed);
            deletions.not_deleted.fetch_add(entries, Relaxed);
        }
        is_permitted
    }
}

/// Returns the number of entries that a removal of `name` would remove.
fn entries(removal: &RemoveOp<'_>, name: &Path) -> u64 {
    let counts = Counts::default();
    removal.count([name.into()], &counts);
    counts.entries()
}

/// Passes on what a removal reports, with the paths that users know.
impl Observer for Mirror<'_, '_> {
    fn failed(&self, error: Error) {
        let elsewhere = [Refusal::MountPoint, Refusal::OtherFilesystem].map(Cause::Refused);
        if self.ctx.policy.options.one_file_system && elsewhere.contains(&error.cause()) {
            // It stays, as what is there in the source.
            return;
        }
        let error = error.below(&self.path(Side::Dest, c"")).at_dest();
        self.ctx.fail(self.node.place.operand, error);
    }

    fn wants_events(&self) -> bool {
        self.ctx.report.wants_events()
    }

    fn on_event(&self, event: Event<'_>) {
        let below = |path| self.path(Side::Dest, c"").join(path);
        match event {
            Event::Removed(path) => self.ctx.report.event(Event::Removed(&below(path))),
            Event::RemovedDirectory(path) => {
                self.ctx.report.event(Event::RemovedDirectory(&below(path)));
            }
            _ => {}
        }
    }
}

/// A directory of a removal that begins in a directory of a copy.
struct Joined<'f>(&'f Path, Above<'f>);

impl Location for Joined<'_> {
    fn path(&self, operand: &Path, name: Option<&CStr>) -> PathBuf {
        let Self(directory, above) = self;
        let below = above.directory.path(above.operand, name);
        operand.join(directory).join(below)
    }
}
