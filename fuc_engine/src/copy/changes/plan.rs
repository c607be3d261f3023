//! A dry run: what would be at the dests by now, and which calls would be permitted.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::{New, Replaces};
use crate::copy::decide::mode::Origin;
use crate::copy::facts::{FileId, Symlinks};
use crate::copy::operand::Operands;
use crate::copy::options::ModePolicy;
use crate::copy::policy::Policy;
use crate::hashing::HashMap;
use crate::paths;
use crate::sync::lock;
use crate::sys::{self, At, Blocking, Fd, Identity, SharedFd, Stat};

type Spot<'a> = super::Spot<'a, PathBuf>;
type Noted = HashMap<PathBuf, Option<Made>>;

/// The most links that lead to one dest.
const MOST_LINKS: u32 = 40;

/// A dest that would have been made.
#[derive(Clone)]
pub(super) struct Made {
    stat: Stat,
    /// The target of a symbolic link, if it is known.
    target: Option<CString>,
}

impl From<Stat> for Made {
    fn from(stat: Stat) -> Self {
        let target = None;
        Self { stat, target }
    }
}

/// The changes that a dry run has planned.
pub(crate) struct Plan {
    stand_in: SharedFd,
    /// Identifies a dest directory that would be new.
    new_directory: Identity,
    /// The dests that would have been renamed or unlinked (`None`) by now, and those that would have been
    /// made (`Some`) if a dest may be met a second time.
    changes: Mutex<Noted>,
    /// `true` if a dest may be met a second time: operands collide, backups are made, or names have `..` in them.
    may_meet_again: bool,
    /// The directory of relative dests, if the name of one has `..` in it.
    base: Option<SharedFd>,
    keeps_times: bool,
    /// The bits of modes that files and directories do not keep.
    dropped_bits: u32,
    /// The last number that was given to a file that would be new.
    last_inode: AtomicU64,
}

impl Plan {
    pub(super) fn new(
        policy: &Policy<'_>,
        operands: &Operands<'_>,
        may_collide: bool,
    ) -> Result<Self, Errno> {
        let options = policy.options;
        let stand_in = sys::create_in_memory()?;
        let stat = sys::stat_directory(stand_in.as_fd())?;
        let mut names = (0..operands.len() as u32).map(|index| operands.dest_name(index));
        let leads_up = |name: &CStr| {
            let mut components = paths::path_of(name).components();
            components.any(|component| component == Component::ParentDir)
        };
        let base = match names.any(leads_up) {
            true => {
                Some(sys::open_path_directory(options.dest_dir, c".", Symlinks::Follow)?.into())
            }
            false => None,
        };
        Ok(Self {
            stand_in: stand_in.into(),
            new_directory: stat.identity,
            changes: Mutex::default(),
            may_meet_again: may_collide || base.is_some() || options.rules.backup.is_some(),
            base,
            keeps_times: options.preserve.timestamps,
            dropped_bits: match options.preserve.mode {
                ModePolicy::Preserve => 0,
                _ => 0o7000 | policy.umask(),
            },
            last_inode: AtomicU64::new(0),
        })
    }

    /// Returns a descriptor that stands for a file or directory that would be open.
    pub(super) fn stand_in(&self) -> Result<Fd, Errno> {
        sys::duplicate(self.stand_in.borrow()?.as_fd())
    }

    /// Returns `true` if `dir` stands for a new directory.
    pub(super) fn is_new(&self, dir: BorrowedFd<'_>) -> bool {
        sys::stat_directory(dir).is_ok_and(|stat| stat.identity == self.new_directory)
    }

    /// Returns `true` for the name `.` of a new directory.
    fn is_new_itself(&self, spot: &Spot<'_>) -> bool {
        spot.name == c"." && self.is_new(spot.dir)
    }

    /// Returns the path, relative to the first value, of the directory that exists and has this new one.
    fn above_new(&self, spot: &Spot<'_>) -> Option<(impl AsFd, CString)> {
        let base = self.base.as_ref()?.borrow().ok()?;
        let is_above = spot.name == c".." && self.is_new(spot.dir);
        let key = is_above.then(|| self.key(&lock(&self.changes), &spot.path))?;
        let path = paths::to_c(&Path::new(".").join(key)).ok()?;
        Some((base, path.into()))
    }

    /// Opens a dest directory, or a dest that would be created. Returns `None` if that exists apart from the plan.
    pub(super) fn open(&self, spot: &Spot<'_>, origin: Origin) -> Option<Result<Fd, Errno>> {
        let is_new = origin == Origin::Created || self.is_new_itself(spot);
        match self.change(spot).flatten() {
            _ if is_new => Some(self.stand_in()),
            Some(made) if sys::is_directory(&made.stat) => Some(self.stand_in()),
            Some(_) => Some(Err(Errno::NOTDIR)),
            None => {
                let (base, path) = self.above_new(spot)?;
                Some(sys::open_path_directory(
                    base.as_fd(),
                    &path,
                    Symlinks::Follow,
                ))
            }
        }
    }

    /// Returns `true` if the user may write to a dest that exists.
    pub(super) fn may_write(&self, spot: &Spot<'_>) -> bool {
        match self.change(spot).flatten() {
            Some(made) => may_write(&made.stat),
            None => sys::may_write(spot.dir, spot.name, Symlinks::Follow) == Ok(true),
        }
    }

    /// Looks at a dest as it would be by now.
    pub(super) fn look(&self, spot: &Spot<'_>, symlinks: Symlinks) -> Result<Stat, Errno> {
        self.look_through(spot, symlinks, MOST_LINKS)
    }

    fn look_through(&self, spot: &Spot<'_>, symlinks: Symlinks, links: u32) -> Result<Stat, Errno> {
        let made = match self.change(spot) {
            Some(made) => made.ok_or(Errno::NOENT)?,
            None => return self.look_at_present(spot, symlinks),
        };
        if symlinks == Symlinks::NoFollow || sys::file_type(&made.stat) != FileType::Symlink {
            return Ok(made.stat);
        }
        let left = links.checked_sub(1).ok_or(Errno::LOOP)?;
        let target = made.target.ok_or(Errno::NOENT)?;
        let (directory, _) = paths::split(spot.name.to_bytes());
        let target = OsStr::from_bytes(target.to_bytes());
        let name = paths::to_c(&Path::new(OsStr::from_bytes(directory)).join(target))?;
        let path = spot.path.parent().unwrap_or(&spot.path).join(target);
        let (name, dir) = (&*name, spot.dir);
        self.look_through(&Spot { dir, name, path }, symlinks, left)
    }

    /// Looks at a dest of which nothing is planned.
    fn look_at_present(&self, spot: &Spot<'_>, symlinks: Symlinks) -> Result<Stat, Errno> {
        if let Some((base, path)) = self.above_new(spot) {
            return sys::stat(base.as_fd(), &path, symlinks);
        }
        match sys::stat(spot.dir, spot.name, symlinks) {
            Err(Errno::NOTDIR) if self.is_new_itself(spot) => self.invent(),
            Err(Errno::NOTDIR) if self.is_new(spot.dir) => Err(Errno::NOENT),
            found => found,
        }
    }

    /// Plans to create a name.
    #[cold]
    pub(super) fn create(&self, spot: Spot<'_>, new: New<'_>) -> Result<(), Errno> {
        // Only directories can be created by a name with a slash at the end.
        let has_slash = spot.name.to_bytes().ends_with(b"/");
        let directory = &paths::directory_of(spot.name);
        if spot.name.is_empty() {
            return Err(Errno::NOENT);
        }
        // The slash does not matter to a name that exists, even if it is a dangling link.
        let itself = Spot {
            name: &paths::without_slashes(spot.name),
            path: spot.path.clone(),
            dir: spot.dir,
        };
        let seen = self.look(&itself, Symlinks::NoFollow);
        if has_slash && matches!(new, New::File(_)) {
            // A missing directory on the way is reported first.
            sys::stat(spot.dir, directory, Symlinks::Follow)?;
            return Err(Errno::ISDIR);
        }
        match seen {
            Ok(_) => return Err(Errno::EXIST),
            Err(_) if has_slash && !matches!(new, New::Directory(_)) => return Err(Errno::NOENT),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
        if let New::HardLink(source) = new {
            check_linking(&spot, source)?;
        }
        if !self.is_new(spot.dir) {
            sys::check_adding(spot.dir, directory)?;
        }
        if let New::Copy(source) = new {
            let source = stat(source)?;
            sys::check_making_node(sys::file_type(&source), source.st_rdev)?;
        }
        match self.may_meet_again {
            true => self.note(spot, self.made(new).ok()),
            false => drop(lock(&self.changes).remove(&spot.path)),
        }
        Ok(())
    }

    /// Returns a new directory with a number of its own.
    fn invent(&self) -> Result<Stat, Errno> {
        let mut invented = sys::stat_open(self.stand_in()?)?;
        invented.st_mode = FileType::Directory.as_raw_mode() | 0o777;
        // Relaxed: only the numbers count, and they publish nothing.
        invented.st_ino = u64::MAX - self.last_inode.fetch_add(1, Ordering::Relaxed);
        Ok(invented)
    }

    /// Returns what a dest would be once it is created.
    fn made(&self, new: New<'_>) -> Result<Made, Errno> {
        let (source, id) = match new {
            New::HardLink(source) => return Ok(stat(source)?.into()),
            New::LinkToCopy(source, id) => (source, id),
            New::Directory(source)
            | New::File(source)
            | New::Copy(source)
            | New::Symlink(source) => (source, FileId::of(&self.invent()?)),
        };
        let mut made = Made::from(stat(source)?);
        if let New::Symlink(_) = new {
            made.stat.st_mode = FileType::Symlink.as_raw_mode() | 0o777;
        } else if sys::file_type(&made.stat) == FileType::Symlink {
            made.target = sys::read_link(source.dir, source.name).ok();
        } else {
            made.stat.st_mode &= !self.dropped_bits;
        }
        made.stat.st_ino = id.inode;
        made.stat.st_dev = sys::device_of(id);
        made.stat.st_nlink = 1;
        if !self.keeps_times {
            // A new file is newer than all others.
            made.stat.st_mtime = i64::MAX;
        }
        Ok(made)
    }

    /// Plans to unlink a name.
    pub(super) fn unlink(&self, spot: Spot<'_>) -> Result<(), Errno> {
        self.check_removing(&spot)?;
        self.note(spot, None);
        Ok(())
    }

    /// Plans to rename a name. Fails with `EEXIST` if the new name exists, unless it `replaces`.
    pub(super) fn rename(
        &self,
        old: Spot<'_>,
        new: Spot<'_>,
        replaces: Replaces,
    ) -> Result<(), Errno> {
        let seen = self.look(&old, Symlinks::NoFollow)?;
        match self.look(&new, Symlinks::NoFollow) {
            Ok(_) if replaces == Replaces::Nothing => return Err(Errno::EXIST),
            Ok(_) => self.check_removing(&new)?,
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
        self.check_removing(&old)?;
        self.note(old, None);
        self.note(new, Some(seen.into()));
        Ok(())
    }

    fn check_removing(&self, spot: &Spot<'_>) -> Result<(), Errno> {
        let stat = self.look(spot, Symlinks::NoFollow)?;
        if sys::is_directory(&stat) {
            return Err(Errno::ISDIR);
        }
        if self.is_new(spot.dir) || self.change(spot).is_some() {
            return Ok(());
        }
        sys::check_removing(spot.dir, &paths::directory_of(spot.name), spot.name)
    }

    /// Checks that a dest, which exists, could be opened to write to it.
    #[cold]
    pub(super) fn open_existing(
        &self,
        spot: &Spot<'_>,
        at: At<'_>,
        blocking: Blocking,
    ) -> Result<Fd, Errno> {
        let dest = self.look(spot, at.symlinks);
        match dest.as_ref().map(sys::file_type) {
            // The FIFO probably has no reader.
            Ok(FileType::Fifo) if blocking == Blocking::OnlyForLease => return Err(Errno::NXIO),
            Ok(FileType::Directory) => return Err(Errno::ISDIR),
            Ok(FileType::Socket) => return Err(Errno::NXIO),
            _ => {}
        }
        match self.change(spot) {
            Some(Some(made)) if !may_write(&made.stat) => return Err(Errno::ACCESS),
            Some(_) => {}
            None => {
                dest?;
                sys::check_writing(at)?;
            }
        }
        self.stand_in()
    }

    fn change(&self, spot: &Spot<'_>) -> Option<Option<Made>> {
        let changes = lock(&self.changes);
        changes.get(&self.key(&changes, &spot.path)).cloned()
    }

    /// Notes what a dest would be by now. `None` if it would have been renamed or unlinked.
    pub(super) fn note(&self, spot: Spot<'_>, now: Option<Made>) {
        let mut changes = lock(&self.changes);
        let key = self.key(&changes, &spot.path);
        changes.insert(key, now);
    }

    /// Returns the path by which a dest is noted. A directory that would be new and `..` after it cancel each other out.
    fn key(&self, changes: &Noted, path: &Path) -> PathBuf {
        if self.base.is_none() {
            return path.into();
        }
        let mut key = PathBuf::new();
        for component in path.components() {
            let above = changes.get(&key).and_then(Option::as_ref);
            let is_new = above.is_some_and(|it| sys::is_directory(&it.stat));
            match component {
                Component::ParentDir if is_new => drop(key.pop()),
                component => key.push(component),
            }
        }
        key
    }
}

/// Returns `true` if the user may write to a file that would have been made.
fn may_write(made: &Stat) -> bool {
    const OWNER_WRITES: u32 = 0o200;
    made.st_mode & OWNER_WRITES != 0 || sys::effective_user() == 0
}

/// Fails as the kernel does if no hard link to the source can be made in the directory of the dest.
fn check_linking(spot: &Spot<'_>, source: At<'_>) -> Result<(), Errno> {
    let linked = stat(source)?;
    sys::check_linking(source, &linked)?;
    match paths::directory_id_of(spot.dir, spot.name) {
        Some(directory) if directory.device != FileId::of(&linked).device => Err(Errno::XDEV),
        _ => Ok(()),
    }
}

fn stat(source: At<'_>) -> Result<Stat, Errno> {
    sys::stat(source.dir, source.name, source.symlinks)
}
