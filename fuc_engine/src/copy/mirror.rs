//! Deletes from dests what their sources do not have, for [`Deletion`].
//!
//! A directory that existed loses its extraneous names when it is entered, before anything is copied to it. So none of them
//! is a copy of this run, and nothing is in the way of one.
//!
//! Only directories that the dest lists by the exact names of their sources are entered. If the dest takes the name of
//! another source for one of them, that source is refused. So no directory deletes the copies of another one.
//!
//! Names are compared with the listing of the source, byte by byte. A source that ignores case, or has names that it does
//! not list, would find other names, too. A dest may store a name in another form than it was given: in lower case, or
//! decomposed. It finds the file by both, but lists only the form that it has stored. So on filesystems that are not native,
//! a file stays if a name of the source leads to it that the dest does not list.
//!
//! Each removal is a run of its own on this thread, relative to the open dest directory. It never enters another
//! filesystem.

use std::ffi::{CStr, CString, OsString};
use std::hash::BuildHasher;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::collisions::has_other_spelling;
use super::context::{Context, Deletions, Use};
use super::decide::mode::Origin;
use super::facts::{CopyNode, FileId, Mark, Symlinks};
use super::operand::ancestry;
use super::options::{Deletion, Replace};
use crate::error::{Cause, Error, Operation, Refusal};
use crate::filter::{Candidate, Verdict};
use crate::hashing::{HashMap, HashSet, Seeded};
use crate::node::{Dir, Side};
use crate::observer::{Event, Observer};
use crate::remove::RemoveOp;
use crate::report::Tally;
use crate::sync::lock;
use crate::sys::{self, At, Entries, Fd, Identity, Listed, Listing, Mount, Stat, Storage};
use crate::{paths, walk};

/// Bytes of a listing buffer, which holds about 1,000 short names.
const BUFFER_BYTES: usize = 32 << 10;

/// The most links on the way to a source.
const MOST_LINKS: u32 = 40;

/// Returns the state before anything is copied.
pub(super) fn initial_state(ctx: &Context<'_>) -> Deletions {
    let deletions = Deletions::default();
    if ctx.policy.options.delete.is_none() {
        return deletions;
    }
    let mut in_use = lock(&deletions.in_use);
    for source in ctx.operands.sources() {
        // A source that cannot be reached is reported when it is copied.
        let base = sys::open_path_directory(ctx.bases.source, c".", Symlinks::NoFollow);
        let _ = base.and_then(|base| {
            note_way(&mut in_use, base, paths::path_of(source), &mut {
                MOST_LINKS
            })
        });
    }
    if let Some(older) = &ctx.older {
        note_above(&mut in_use, older.as_fd());
    }
    for operand in 0..ctx.operands.len() as u32 {
        let dest = sys::stat(
            ctx.target(),
            ctx.operands.dest_name(operand),
            Symlinks::NoFollow,
        );
        if let Ok(dest) = dest.as_ref()
            && sys::is_directory(dest)
        {
            let of_first = in_use.entry(FileId::of(dest));
            of_first.or_insert(Use::Dest { operand });
        }
    }
    drop(in_use);
    deletions
}

/// Notes all directories in which the kernel looks up the names of `path`, those above them, and the source itself if it is
/// a directory. Returns the source.
fn note_way(
    in_use: &mut HashMap<FileId, Use>,
    mut dir: Fd,
    path: &Path,
    links_left: &mut u32,
) -> Result<Fd, Errno> {
    for component in path.components() {
        if component == Component::RootDir {
            dir = sys::open_path_directory(dir.as_fd(), c"/", Symlinks::NoFollow)?;
            continue;
        }
        note_above(in_use, dir.as_fd());
        let name = paths::to_c(Path::new(component.as_os_str()))?;
        dir = match sys::read_link(dir.as_fd(), &name) {
            Ok(target) => {
                *links_left = links_left.checked_sub(1).ok_or(Errno::LOOP)?;
                note_way(in_use, dir, paths::path_of(&target), links_left)?
            }
            Err(_) => sys::open_path(At {
                dir: dir.as_fd(),
                name: &name,
                symlinks: Symlinks::NoFollow,
            })?,
        };
    }
    note_above(in_use, dir.as_fd());
    Ok(dir)
}

fn note_above(in_use: &mut HashMap<FileId, Use>, dir: BorrowedFd<'_>) {
    let above = ancestry(dir).into_iter();
    in_use.extend(above.map(|above| (above.file(), Use::Source)));
}

/// Notes that a directory was entered. Fails if the dest is already that of another directory, or contains a source.
pub(super) fn check_entered(ctx: &Context<'_>, node: &CopyNode) -> Result<(), Error> {
    // A cancelled run compares no names.
    if ctx.policy.options.delete.is_none() || ctx.report.must_stop() {
        return Ok(());
    }
    let is_own = match &node.place.parent {
        None => is_only_dest(ctx, node),
        Some(parent) => {
            !is_mirrored(ctx, node) || !is_mirrored(ctx, parent) || has_own_name(ctx, parent, node)
        }
    };
    match is_own {
        true => Ok(()),
        false => Err(cannot_mirror(ctx, node)),
    }
}

fn cannot_mirror(ctx: &Context<'_>, node: &CopyNode) -> Error {
    let dest = ctx.place_path(&node.place, Side::Dest);
    Error::refused(Refusal::CannotMirror, dest).at_dest()
}

/// Returns `true` if the dest of an operand contains no source, and is not that of another operand.
fn is_only_dest(ctx: &Context<'_>, node: &CopyNode) -> bool {
    let is_there = ctx.changes.are_visible() || node.state.origin() == Origin::Existing;
    let dest = node.dir.slot(Side::Dest).identity();
    let operand = node.place.operand;
    dest.filter(|_| is_there).is_none_or(|dest| {
        let mut in_use = lock(&ctx.deletions.in_use);
        let of_first = in_use.entry(dest.file());
        *of_first.or_insert(Use::Dest { operand }) == Use::Dest { operand }
    })
}

/// Returns `true` if names may be deleted from the dest of a directory. As in rsync, none is on another filesystem if the
/// options exclude that.
fn is_mirrored(ctx: &Context<'_>, node: &CopyNode) -> bool {
    let root = ctx.operands.state(node.place.operand).root.get();
    let dest = node.dir.slot(Side::Dest).identity();
    let is_elsewhere = || root.copied().map(Identity::device) != dest.map(Identity::device);
    node.state.origin() == Origin::Existing
        && !(ctx.policy.options.one_file_system && is_elsewhere())
}

/// Returns `true` if the dest has listed a directory by the name of its source, and not by a name that it takes for that.
fn has_own_name(ctx: &Context<'_>, parent: &CopyNode, node: &CopyNode) -> bool {
    if !parent.state.marks.has(Mark::COMPARED) {
        let dest = ctx.descriptors.pin(parent, Side::Dest, ctx);
        return dest.is_ok_and(|dest| !has_other_spelling(dest.as_fd(), &node.place.name));
    }
    lock(&ctx.deletions.listed).remove(&directory_hash(parent, &node.place.name))
}

fn directory_hash(parent: &CopyNode, name: &CStr) -> u64 {
    Seeded::default().hash_one((parent.address(), name))
}

/// Deletes the names in a dest directory that the source does not have. If the names of one side cannot be found out,
/// reports that, and deletes nothing more there.
pub(super) fn delete_extraneous(ctx: &Context<'_>, node: &CopyNode) {
    let deletion = ctx.policy.options.delete;
    let Some(deletion) = deletion.filter(|_| is_mirrored(ctx, node)) else {
        return;
    };
    let pin = |side| {
        let pinned = ctx.descriptors.pin(node, side, ctx);
        pinned.map_err(|errno| ctx.node_error(node, side, Operation::ReadDirectory, errno))
    };
    let deleted = pin(Side::Source).and_then(|source| {
        let dest = pin(Side::Dest)?;
        let mirror = Mirror {
            ctx,
            deletion,
            node,
            source: source.as_fd(),
            dest: dest.as_fd(),
            guard: Guard {
                in_use: Arc::clone(&ctx.deletions.in_use),
                has_met_one: Arc::default(),
            },
        };
        let deleted = mirror.delete();
        if mirror.guard.has_met_one.load(Relaxed) {
            ctx.fail(node.place.operand, cannot_mirror(ctx, node));
        }
        deleted
    });
    match deleted {
        Ok(()) => node.state.marks.set(Mark::COMPARED),
        Err(error) => {
            node.state.marks.set(Mark::UNCLEAR);
            ctx.fail(node.place.operand, error);
        }
    }
}

/// Both sides of a directory, from whose dest names are deleted.
struct Mirror<'m, 'a> {
    ctx: &'m Context<'a>,
    deletion: Deletion,
    node: &'m CopyNode,
    source: BorrowedFd<'m>,
    dest: BorrowedFd<'m>,
    guard: Guard,
}

impl Mirror<'_, '_> {
    fn path(&self, side: Side, name: &CStr) -> PathBuf {
        let operand = self.node.place.operand;
        self.ctx.path_in(Some(self.node), operand, name, side)
    }

    /// Opens a directory once more and lists it, a buffer at a time, from its start to its end.
    fn list(
        &self,
        side: Side,
        mut each: impl FnMut(Entries<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let dir = match side {
            Side::Source => self.source,
            Side::Dest => self.dest,
        };
        let operation = Operation::ReadDirectory;
        let unlisted = |errno| self.ctx.node_error(self.node, side, operation, errno);
        let open = || sys::open_directory_noatime(dir, c".", Symlinks::NoFollow);
        let opened = self.ctx.descriptors.making_room(open);
        let (listed, _) = opened.map_err(unlisted)?;
        let mut buffer = Listing::with_capacity(BUFFER_BYTES);
        while buffer.refill(listed.as_fd()).map_err(unlisted)? {
            each(buffer.entries())?;
        }
        Ok(())
    }

    /// Lists the dest, and deletes the extraneous names.
    fn delete(&self) -> Result<(), Error> {
        let (mut names, mut other_forms) = (SourceNames::default(), None);
        let mut extraneous = Vec::new();
        self.list(Side::Dest, |entries| {
            if self.ctx.report.must_stop() {
                return Ok(());
            }
            extraneous.append(&mut self.extraneous(entries, &mut names, &mut other_forms)?);
            // Another listing may skip names while others are removed.
            if self.ctx.is_node_native(self.node, self.dest) {
                self.remove(std::mem::take(&mut extraneous));
            }
            Ok(())
        })?;
        self.remove(extraneous);
        Ok(())
    }

    /// Removes names from the dest, as far as they are not in use and the limit permits it.
    fn remove(&self, extraneous: Vec<Extraneous>) {
        if extraneous.is_empty() {
            return;
        }
        let removal = self.removal();
        let mut names = Vec::new();
        for Extraneous { name, kind } in extraneous {
            // The filter of the removal is not asked about operands.
            let is_spared = kind == FileType::Directory
                && paths::id_of(self.dest, &name).is_some_and(|id| self.guard.spares(Ok(id)));
            let stays = is_spared || self.stays_mounted(&name);
            let name = PathBuf::from(OsString::from_vec(name.into_bytes()));
            if !stays && self.permits(&removal, &name) {
                names.push(name);
            }
        }
        let removed = removal.run(names, self);
        self.ctx.report.add_tally(&mut Tally {
            deleted: removed.entries,
            ..Tally::default()
        });
    }

    /// Returns the removal of extraneous names. It spares directories that are in use, and what the caller's filter does not
    /// take.
    fn removal(&self) -> RemoveOp<'_> {
        let guard = self.guard.clone();
        let (ctx, place) = (self.ctx, &self.node.place);
        let options = ctx.policy.options;
        let removal = RemoveOp::new().with(|removal| {
            removal.ignore_missing = true;
            removal.preserve_mount_points = true;
            removal.one_file_system = true;
            removal.threads = Some(NonZeroUsize::MIN);
            removal.execution = options.execution;
        });
        let filter = ctx.settings.filter_of(self.node);
        let filter = filter.filter(|_| !self.deletion.excluded);
        let operand = ctx.operands.dest_path(place.operand);
        let directory = place.path(Path::new(""), None);
        let verdict = move |entry: &Candidate<'_>| {
            let id = || sys::stat_open(&(entry.open)()?).map(|stat| FileId::of(&stat));
            if entry.kind == FileType::Directory && guard.spares(id()) {
                return Verdict::Prune;
            }
            let Some(filter) = &filter else {
                return Verdict::Take;
            };
            let below = |name: Option<&CStr>| (entry.build_path)(entry.operand, name);
            filter.verdict(&Candidate {
                operand: &operand,
                build_path: &|operand, name| operand.join(&directory).join(below(name)),
                ..*entry
            })
        };
        let removal = removal.in_dir(&self.dest).together_with(&options.setup);
        removal.filtered_by(verdict)
    }

    /// Returns `true` if something is mounted on a name in the dest, and stays there. It is not opened.
    fn stays_mounted(&self, name: &CStr) -> bool {
        let of = |name: &CStr| Mount::of(self.dest, name);
        let is_mounted = |above: Mount| of(name).is_ok_and(|itself| !above.is_same(itself));
        self.ctx.policy.options.one_file_system && of(c"").is_ok_and(is_mounted)
    }

    /// Returns `true` if the limit permits to delete a name and everything in it. Otherwise nothing more is deleted.
    fn permits(&self, removal: &RemoveOp<'_>, name: &Path) -> bool {
        let Some(most) = self.deletion.most else {
            return true;
        };
        let counts = Arc::default();
        removal.count([name.into()], &counts);
        let (entries, deletions) = (counts.entries(), &self.ctx.deletions);
        let add = |permitted| Some(permitted + entries).filter(|sum| *sum <= most);
        let is_permitted = deletions
            .permitted
            .fetch_update(Relaxed, Relaxed, add)
            .is_ok();
        if !is_permitted {
            deletions.permitted.store(most, Relaxed);
            self.ctx.report.add_tally(&mut Tally {
                not_deleted: entries,
                ..Tally::default()
            });
        }
        is_permitted
    }
}

/// Spares the directories that are in use.
#[derive(Clone)]
struct Guard {
    in_use: Arc<Mutex<HashMap<FileId, Use>>>,
    has_met_one: Arc<AtomicBool>,
}

impl Guard {
    /// Returns `true` if a directory must not be deleted. One that cannot be looked at may be in use.
    fn spares(&self, directory: Result<FileId, Errno>) -> bool {
        let is_in_use = directory.map_or(true, |id| lock(&self.in_use).contains_key(&id));
        self.has_met_one.fetch_or(is_in_use, Relaxed);
        is_in_use
    }
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
        self.ctx.report.wants_events() || !self.ctx.changes.are_visible()
    }

    fn on_event(&self, event: Event<'_>) {
        let (Event::Removed(path) | Event::RemovedDirectory(path)) = event else {
            return;
        };
        self.note_gone(path);
        if self.ctx.report.wants_events() {
            let path = &self.path(Side::Dest, c"").join(path);
            self.ctx.report.event(match event {
                Event::Removed(_) => Event::Removed(path),
                _ => Event::RemovedDirectory(path),
            });
        }
    }
}

impl Mirror<'_, '_> {
    /// Notes for a dry run that a dest would be gone before it is copied.
    fn note_gone(&self, path: &Path) {
        let Ok(name) = paths::to_c(path) else {
            return;
        };
        let is_in_source = || sys::stat(self.source, &name, Symlinks::NoFollow).is_ok();
        if !self.ctx.changes.are_visible() && !name.to_bytes().contains(&b'/') && is_in_source() {
            self.ctx.changes.note_gone(self.dest, name.into());
        }
    }
}

/// The time that a program may take to put a file into the place of another one.
///
/// Beside a program that renames a file away and creates it again, each 3 ms, 8 of 2,000 runs deleted its copy after one
/// look, and none of 1,000 after two (tmpfs).
const SETTLING: Duration = Duration::from_millis(2);

/// A name to delete.
struct Extraneous {
    name: CString,
    kind: FileType,
}

/// The names in a source directory, from the first time that the dest has any: 8 bytes for each.
#[derive(Default)]
struct SourceNames {
    /// Hashes of names, sorted. The lowest four bits are the type.
    hashes: Vec<u64>,
    looks: u8,
}

impl SourceNames {
    const KIND: u64 = 0xf;

    fn hash(name: &CStr, kind: FileType) -> u64 {
        let kind = u64::from(kind.as_raw_mode() >> 12) & Self::KIND;
        Seeded::default().hash_one(name) & !Self::KIND | kind
    }

    /// Returns the hashes of `name` with all its types.
    fn find(&self, name: &CStr) -> &[u64] {
        let hash = Self::hash(name, FileType::Unknown) | Self::KIND;
        let start = self.hashes.partition_point(|&it| it | Self::KIND < hash);
        let rest = &self.hashes[start..];
        &rest[..rest.partition_point(|&it| it | Self::KIND == hash)]
    }
}

/// The names of a source that its dest finds but does not list, by the files to which they lead.
type OtherForms = HashMap<Found, CString>;

/// A file in a dest: its number, and the size of a file that is not a directory. Some filesystems give several files one
/// number. Times are not compared: under its two names a client may remember two states of one file, and a name that is
/// not found here is deleted.
type Found = (FileId, Option<i64>);

fn found(dest: &Stat) -> Found {
    let size = (!sys::is_directory(dest)).then_some(dest.st_size);
    (FileId::of(dest), size)
}

impl Mirror<'_, '_> {
    /// Returns the extraneous names among those that the dest lists. Notes the directories that stay.
    fn extraneous(
        &self,
        listed: Entries<'_>,
        names: &mut SourceNames,
        other_forms: &mut Option<OtherForms>,
    ) -> Result<Vec<Extraneous>, Error> {
        let mut extraneous = Vec::new();
        for entry in listed {
            let kind = walk::kind_of(self.dest, entry, Symlinks::NoFollow);
            let entry = Listed::new(entry.name, kind);
            let other_form;
            let source_name = match self.is_in_source(entry, names)? {
                true => Some(entry.name),
                false => {
                    other_form = self.source_name(entry.name, other_forms)?;
                    other_form.as_deref()
                }
            };
            let is_deleted = match source_name {
                Some(name) => self.deletion.excluded && !self.is_taken(Listed::new(name, kind)),
                None => self.deletion.excluded || self.is_taken(entry),
            };
            if let Some(name) = source_name.filter(|_| kind == FileType::Directory) {
                lock(&self.ctx.deletions.listed).insert(directory_hash(self.node, name));
            }
            if is_deleted {
                let name = entry.name.to_owned();
                extraneous.push(Extraneous { name, kind });
            }
        }
        Ok(extraneous)
    }

    /// Returns the name of the source that the dest has stored as `stored`, a name that the source does not list.
    fn source_name(
        &self,
        stored: &CStr,
        other_forms: &mut Option<OtherForms>,
    ) -> Result<Option<CString>, Error> {
        if self.ctx.is_node_native(self.node, self.dest) {
            return Ok(None);
        }
        let known = match other_forms {
            Some(known) => known,
            None => other_forms.insert(self.find_other_forms()?),
        };
        let dest = sys::stat(self.dest, stored, Symlinks::NoFollow);
        // The dest may store two names of the source as one. Only one of them is copied to it.
        Ok(dest.ok().and_then(|dest| known.remove(&found(&dest))))
    }

    /// Finds the names of the source that the dest finds, with their types, but does not list.
    #[cold]
    fn find_other_forms(&self) -> Result<OtherForms, Error> {
        let mut stored = HashSet::default();
        let hash = |name: &CStr| SourceNames::hash(name, FileType::Unknown);
        self.list(Side::Dest, |listed| {
            stored.extend(listed.map(|entry| hash(entry.name)));
            Ok(())
        })?;
        let mut other_forms = OtherForms::default();
        self.list(Side::Source, |listed| {
            for entry in listed.filter(|entry| !stored.contains(&hash(entry.name))) {
                let kind = walk::kind_of(self.source, entry, Symlinks::NoFollow);
                match sys::stat(self.dest, entry.name, Symlinks::NoFollow) {
                    Ok(dest) if sys::file_type(&dest) == kind => {
                        other_forms.insert(found(&dest), entry.name.to_owned());
                    }
                    _ => {}
                }
            }
            Ok(())
        })?;
        Ok(other_forms)
    }

    /// Returns `true` if the source lists a name of the dest, of the same type. Looks a second time before it
    /// returns `false`: a program that saves a file may rename the old one away before it creates the new one.
    fn is_in_source(&self, dest: Listed<'_>, names: &mut SourceNames) -> Result<bool, Error> {
        if names.looks == 0 {
            self.list_source(names)?;
        }
        let found = names.find(dest.name);
        if found.contains(&SourceNames::hash(dest.name, dest.kind())) {
            return Ok(true);
        }
        if !found.is_empty() {
            return self.is_of_same_type(dest);
        }
        if names.looks > 1 {
            return Ok(false);
        }
        if self.was_just_changed() {
            thread::sleep(SETTLING);
        }
        // If names cannot be looked at, the listing may lack some, too.
        match sys::stat(self.source, dest.name, Symlinks::NoFollow) {
            Ok(_) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(self.unseen(dest.name, errno)),
        }
        self.list_source(names)?;
        self.is_in_source(dest, names)
    }

    /// Adds the names that the source lists now.
    fn list_source(&self, names: &mut SourceNames) -> Result<(), Error> {
        let mut added = Vec::new();
        let hash = |entry: Listed<'_>| SourceNames::hash(entry.name, entry.kind());
        let is_new = |hash: &u64| names.hashes.binary_search(hash).is_err();
        self.list(Side::Source, |listed| {
            added.extend(listed.map(hash).filter(is_new));
            Ok(())
        })?;
        names.hashes.append(&mut added);
        names.hashes.sort_unstable();
        names.looks += 1;
        Ok(())
    }

    /// Returns `true` if a dest whose source is listed with another type may stay. The listings may be wrong.
    fn is_of_same_type(&self, dest: Listed<'_>) -> Result<bool, Error> {
        if self.ctx.policy.keeps_existing() {
            return Ok(true);
        }
        let kind = |dir| {
            let stat = sys::stat(dir, dest.name, Symlinks::NoFollow);
            stat.map(|stat| sys::file_type(&stat))
        };
        match (kind(self.source), kind(self.dest)) {
            // The dest keeps its name until the new file is complete.
            (Ok(source), Ok(dest)) => Ok(source == dest || self.is_replaced_later([source, dest])),
            (Err(errno), _) if errno != Errno::NOENT => Err(self.unseen(dest.name, errno)),
            // One of them was removed, or the copy reports why the dest cannot be looked at.
            _ => Ok(true),
        }
    }

    /// Returns `true` if a copy replaces a dest of another type by a rename, whatever their times are.
    fn is_replaced_later(&self, kinds: [FileType; 2]) -> bool {
        let rules = &self.ctx.policy.options.rules;
        rules.atomic && rules.replace != Replace::Older && !kinds.contains(&FileType::Directory)
    }

    fn unseen(&self, source: &CStr, errno: Errno) -> Error {
        Error::failed(Operation::Stat, self.path(Side::Source, source), errno)
    }

    /// Returns `true` if the source directory may have been changed within the last second. The clock of a server may differ.
    fn was_just_changed(&self) -> bool {
        let now = SystemTime::UNIX_EPOCH.elapsed();
        let now = now.map_or(0, |since| since.as_secs() as i64);
        let source = sys::stat_open(self.source);
        source.is_ok_and(|source| sys::modified(&source).seconds.abs_diff(now) <= 1)
            || Storage::of(self.source) == Storage::Server
    }

    /// Returns `true` if the filter takes an entry of the dest.
    fn is_taken(&self, dest: Listed<'_>) -> bool {
        let Some(filter) = self.ctx.settings.filter_of(self.node) else {
            return true;
        };
        let at = At {
            dir: self.dest,
            name: dest.name,
            symlinks: Symlinks::NoFollow,
        };
        let open = || sys::open_path(at);
        let verdict = filter.verdict(&Candidate {
            dir: self.dest,
            name: dest.name,
            kind: dest.kind(),
            operand: &self.ctx.operands.dest_path(self.node.place.operand),
            build_path: &|operand, name| self.node.place.path(operand, name),
            open: &|| self.ctx.descriptors.making_room(open),
        });
        verdict == Verdict::Take
    }
}
