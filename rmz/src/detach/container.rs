//! A hidden directory that holds trees until they are removed.
//!
//! Only its owner can open, fill or empty it. Every call goes by the open directory. Only its own removal goes by
//! its name, and the kernel then refuses a directory that is not empty.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use fuc_engine::{Counts, Error, Event, Observer, RemoveOp, Summary};
use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat, StatxAttributes, StatxFlags,
    chmodat, fstat, mkdirat, openat, renameat, statat, statx, unlinkat,
};
use rustix::io::Errno;
use rustix::path::Arg;
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};

/// The beginning of each container's name. The rest are [`RANDOM_BYTES`] in hexadecimal digits.
const PREFIX: &str = ".rmz-";

/// Random bytes in a name, so many that no other user can guess it.
const RANDOM_BYTES: usize = 16;

/// The permissions of a container: all for its owner, and none for other users.
const PRIVATE: Mode = Mode::RWXU;

/// The permissions with which a container is created. The private directories of other programs can be read by
/// their owner, so none of them is taken for a new container.
const NEW: Mode = Mode::WUSR.union(Mode::XUSR);

/// The device and the inode number of a file, by which it is recognised after it was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The size in a message.
    pub(super) const BYTES: usize = 16;

    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }

    /// Returns `true` if both files are on one device.
    pub(super) fn shares_device_with(self, other: Self) -> bool {
        self.device == other.device
    }

    /// Returns the bytes that stand for it in a message.
    pub(super) fn encoded(self) -> [u8; Self::BYTES] {
        let bytes = u128::from(self.device) << 64 | u128::from(self.inode);
        bytes.to_ne_bytes()
    }

    pub(super) fn decoded(bytes: [u8; Self::BYTES]) -> Self {
        let bytes = u128::from_ne_bytes(bytes);
        Self {
            device: (bytes >> 64) as u64,
            inode: bytes as u64,
        }
    }
}

/// A hidden directory `.rmz-…`, open and, if the filesystem has locks, locked by this process.
#[derive(Debug)]
pub(super) struct Container {
    /// The directory that contains the container.
    place: Rc<OwnedFd>,
    /// The container.
    dir: OwnedFd,
    /// The name of the container. The mark in it has the same name.
    name: CString,
}

/// Says what to do about a container that another process uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InUse {
    Skip,
    /// Wait until that process has ended. Then the container is gone, or it is a leftover.
    Await,
}

/// The result of looking at a name that may be a container.
pub(super) enum Found {
    /// A container that no process is removing.
    Leftover(Container),
    /// A container that is being filled or removed by another process.
    InUse,
    /// A directory of the caller, but perhaps rmz has not made it, for this reason.
    Doubtful(&'static str),
    /// Something else: it is gone, belongs to another user, or is not private.
    Foreign,
}

/// The result of removing a container whose trees are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Removed {
    /// The container is gone.
    Gone,
    /// The container has an entry, because another process uses it. It stays, with its mark.
    InUse,
}

impl Container {
    /// Creates a container in the directory `place`.
    ///
    /// # Errors
    /// Fails if the kernel refuses, or if the filesystem keeps no owners or modes. Then nothing is left behind.
    pub(super) fn create(place: Rc<OwnedFd>) -> Result<Self, Errno> {
        // The container could be made, but neither filled nor removed.
        if is_append_only(&place) {
            return Err(Errno::PERM);
        }
        let name = random_name()?;
        mkdirat(&place, &name, NEW)?;
        match Self::furnish(&place, &name) {
            Ok(dir) => Ok(Self { place, dir, name }),
            Err(errno) => {
                // If this fails, too, `--reap` removes the empty directory.
                let _ = unlinkat(&place, &name, AtFlags::REMOVEDIR);
                Err(errno)
            }
        }
    }

    /// Opens, locks and marks a new container.
    fn furnish(place: &OwnedFd, name: &CStr) -> Result<OwnedFd, Errno> {
        // It cannot be read yet.
        let new = open(place.as_fd(), name, OFlags::PATH | OFlags::NOFOLLOW)?;
        // Another user may have put another directory of the caller in its place.
        if !is_own_directory(&fstat(&new)?, NEW) {
            return Err(Errno::PERM);
        }
        chmodat(&new, c".", PRIVATE, AtFlags::empty())?;
        let dir = open(new.as_fd(), c".", OFlags::NOFOLLOW)?;
        if !names_in(dir.as_fd())?.is_empty() {
            return Err(Errno::NOTEMPTY);
        }
        // Go on after other errors: some filesystems have no locks for directories.
        if lock(dir.as_fd()) == Err(Errno::WOULDBLOCK) {
            return Err(Errno::WOULDBLOCK);
        }
        mark(&dir, name)?;
        Ok(dir)
    }

    /// Returns a container that another process has created and handed over, with its lock.
    pub(super) fn received(place: OwnedFd, dir: OwnedFd, name: CString) -> Self {
        let place = Rc::new(place);
        Self { place, dir, name }
    }

    /// Looks at the entry `name` of the directory `place`, and locks it if it is a leftover.
    ///
    /// # Errors
    /// Fails if the entry cannot be looked at, or is a private directory of the caller that cannot be opened. Fails with
    /// `EINTR` if a signal ends the wait.
    pub(super) fn find(place: &Rc<OwnedFd>, name: &CStr, in_use: InUse) -> Result<Found, Errno> {
        match statat(place, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if is_own_directory(&stat, PRIVATE) => {}
            // The run that has created it was killed before the next step.
            Ok(stat) if is_own_directory(&stat, NEW) => {
                return Ok(Found::Doubtful("whose mode is not 0700"));
            }
            Ok(_) | Err(Errno::NOENT) => return Ok(Found::Foreign),
            Err(errno) => return Err(errno),
        }
        let dir = match open(place.as_fd(), name, OFlags::NOFOLLOW) {
            Ok(dir) => dir,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Found::Foreign),
            Err(errno) => return Err(errno),
        };
        // Another process may have replaced the directory since, so look at the one that is open.
        if !is_own_directory(&fstat(&dir)?, PRIVATE) {
            return Ok(Found::Foreign);
        }
        match lock(dir.as_fd()) {
            Err(Errno::WOULDBLOCK) if in_use == InUse::Skip => return Ok(Found::InUse),
            Err(Errno::WOULDBLOCK) => {
                rustix::fs::flock(&dir, FlockOperation::LockExclusive)?;
            }
            // As above, there may be no locks.
            _ => {}
        }
        let container = Self {
            place: Rc::clone(place),
            dir,
            name: name.to_owned(),
        };
        match container.is_marked()? {
            true => Ok(Found::Leftover(container)),
            false => Ok(Found::Doubtful("which has no mark of rmz")),
        }
    }

    /// Moves the entry `name` of the directory that contains the container into the container, in one step.
    ///
    /// # Errors
    /// Fails if the kernel refuses the rename. Then the entry stays as it is.
    pub(super) fn take(&self, name: &OsStr) -> Result<(), Errno> {
        renameat(&self.place, name, &self.dir, name)
    }

    /// Returns the identity of the entry `name` of the container.
    pub(super) fn look(&self, name: &OsStr) -> Result<FileId, Errno> {
        let stat = statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileId::of(&stat))
    }

    /// Removes entries of the container. Each one that stays is reported to `observer`. `path` is the path of the
    /// container in failures and events.
    pub(super) fn remove_entries(
        &self,
        removal: &RemoveOp<'_>,
        names: Vec<PathBuf>,
        path: &Path,
        observer: &dyn Observer,
    ) -> Summary {
        let below = Below {
            dir: path,
            observer,
        };
        let removal = removal.clone().in_dir(&self.dir);
        removal.run(names, &below)
    }

    /// Removes the container itself, which is empty but for its mark. It is not an error if it is gone.
    ///
    /// # Errors
    /// Fails if the kernel refuses.
    pub(super) fn remove(&self) -> Result<Removed, Errno> {
        if !self.content()?.is_empty() {
            return Ok(Removed::InUse);
        }
        let unlink = || unlinkat(&self.dir, &self.name, AtFlags::empty());
        gone(with_room(unlink))?;
        if remove_if_empty(&self.place, &self.name)? {
            return Ok(Removed::Gone);
        }
        // On a filesystem without locks, another process has added an entry. Without a mark, no `--reap` would
        // ever remove it.
        match mark(&self.dir, &self.name) {
            Ok(()) | Err(Errno::EXIST) => Ok(Removed::InUse),
            // Another process has removed it.
            Err(Errno::NOENT) => Ok(Removed::Gone),
            Err(errno) => Err(errno),
        }
    }

    /// Returns the name.
    pub(super) fn name(&self) -> &CStr {
        &self.name
    }

    /// Returns both descriptors.
    pub(super) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.place.as_fd(), self.dir.as_fd()]
    }

    /// Returns `true` if rmz has made the container for itself: it contains a file of its own name.
    fn is_marked(&self) -> Result<bool, Errno> {
        match statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Returns the names in the container, except for the mark. There are none if the container is gone.
    pub(super) fn content(&self) -> Result<Vec<PathBuf>, Errno> {
        let names = match names_in(self.dir.as_fd()) {
            Err(Errno::NOENT) => Vec::new(),
            names => names?,
        };
        let names = names.into_iter();
        Ok(names
            .filter(|name| name.as_bytes() != self.name.to_bytes())
            .map(PathBuf::from)
            .collect())
    }
}

/// Removes the entry `name` of the directory `place` if it is an empty directory. Returns `false` if it is not
/// empty. It is not an error if it is gone.
pub(super) fn remove_if_empty(place: &OwnedFd, name: &CStr) -> Result<bool, Errno> {
    match gone(with_room(|| unlinkat(place, name, AtFlags::REMOVEDIR))) {
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        removed => removed.map(|()| true),
    }
}

/// Returns the names in a directory that have the form of a container's name, in order.
pub(super) fn names_of_containers(dir: BorrowedFd<'_>) -> Result<Vec<CString>, Errno> {
    let mut names: Vec<_> = names_in(dir)?
        .into_iter()
        .filter(|name| is_name(name.as_bytes()))
        .filter_map(|name| CString::new(name.into_vec()).ok())
        .collect();
    names.sort_unstable();
    Ok(names)
}

/// Passes everything on to an observer, with paths below `dir`.
struct Below<'a> {
    dir: &'a Path,
    observer: &'a dyn Observer,
}

impl Observer for Below<'_> {
    fn failed(&self, error: Error) {
        self.observer.failed(error.below(self.dir));
    }

    fn wants_events(&self) -> bool {
        self.observer.wants_events()
    }

    fn on_event(&self, event: Event<'_>) {
        let (Event::Removed(path) | Event::RemovedDirectory(path)) = event else {
            // A removal has no other events.
            return;
        };
        let path = self.dir.join(path);
        self.observer.on_event(match event {
            Event::RemovedDirectory(_) => Event::RemovedDirectory(&path),
            _ => Event::Removed(&path),
        });
    }

    fn counts(&self) -> Option<&Counts> {
        self.observer.counts()
    }
}

fn random_name() -> Result<CString, Errno> {
    let mut bytes = [0; RANDOM_BYTES];
    let filled = getrandom(&mut bytes, GetRandomFlags::empty())?;
    if filled < bytes.len() {
        // The kernel never interrupts a request as short as this.
        return Err(Errno::IO);
    }
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(CString::new(format!("{PREFIX}{digits}")).expect("BUG: a NUL in hexadecimal digits"))
}

fn is_name(name: &[u8]) -> bool {
    let digits = name.strip_prefix(PREFIX.as_bytes()).unwrap_or_default();
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    digits.len() == 2 * RANDOM_BYTES && digits.iter().all(is_digit)
}

/// Returns `true` if a file is a directory of the caller with these permissions.
fn is_own_directory(stat: &Stat, permissions: Mode) -> bool {
    // The set-group-id bit of the directory that contains it may have been inherited.
    let granted = Mode::from_raw_mode(stat.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO);
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
        && stat.st_uid == geteuid().as_raw()
        && granted == permissions
}

/// Returns `true` if nothing can be renamed or removed in a directory, although names can be made there.
fn is_append_only(dir: &OwnedFd) -> bool {
    let looked_at = statx(dir, c"", AtFlags::EMPTY_PATH, StatxFlags::empty());
    looked_at.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::APPEND))
}

/// Opens a directory, with these additional flags.
pub(super) fn open(dir: BorrowedFd<'_>, path: impl Arg, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | flags;
    openat(dir, path, flags, Mode::empty())
}

/// Creates the mark of the container `name`, which is open as `dir`.
fn mark(dir: &OwnedFd, name: &CStr) -> Result<(), Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::RUSR | Mode::WUSR).map(drop)
}

fn lock(dir: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::fs::flock(dir, FlockOperation::NonBlockingLockExclusive)
}

fn names_in(dir: BorrowedFd<'_>) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(OsString::from_vec(name.to_vec()));
        }
    }
    Ok(names)
}

/// Removes a name. If the filesystem is full, tries again, because the removals before may make room. The pauses are
/// those of the engine, and take about two seconds.
fn with_room(mut remove: impl FnMut() -> Result<(), Errno>) -> Result<(), Errno> {
    for exponent in 0..26 {
        match remove() {
            Err(Errno::NOSPC | Errno::DQUOT) => {
                thread::sleep(Duration::from_millis(100.min(1 << exponent)));
            }
            removed => return removed,
        }
    }
    remove()
}

/// Turns the failure of a removal whose name is missing into a success.
fn gone(removed: Result<(), Errno>) -> Result<(), Errno> {
    match removed {
        Err(Errno::NOENT) => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn random_names_are_recognised_and_differ() {
        let [one, other] = [random_name(), random_name()].map(Result::unwrap);
        assert!(is_name(one.to_bytes()) && is_name(other.to_bytes()));
        assert_ne!(one, other);
    }

    /// Makes a directory for a container in a scratch directory.
    struct Place {
        scratch: tempfile::TempDir,
        place: Rc<OwnedFd>,
        name: CString,
    }

    impl Place {
        fn new() -> Self {
            let scratch = tempfile::tempdir().unwrap();
            let place = File::open(scratch.path()).map(OwnedFd::from).unwrap();
            Self {
                scratch,
                place: Rc::new(place),
                name: random_name().unwrap(),
            }
        }

        /// Returns the path of the container.
        fn path(&self) -> PathBuf {
            self.scratch.path().join(self.name.to_str().unwrap())
        }

        fn set_mode(&self, mode: u32) {
            fs::set_permissions(self.path(), fs::Permissions::from_mode(mode)).unwrap();
        }

        fn furnish(&self) -> Result<(), Errno> {
            Container::furnish(&self.place, &self.name).map(drop)
        }
    }

    #[test]
    fn another_directory_in_place_of_a_new_container_is_not_used() {
        let place = Place::new();
        symlink("precious", place.path()).unwrap();
        assert_eq!(place.furnish(), Err(Errno::NOTDIR));
        fs::remove_file(place.path()).unwrap();

        // These are modes of directories that other programs make. The second is that of `mkdtemp`.
        fs::create_dir(place.path()).unwrap();
        for mode in [0o755, 0o700, 0o1700, 0o500, 0o301] {
            place.set_mode(mode);
            assert_eq!(place.furnish(), Err(Errno::PERM), "{mode:o}");
            let stat = fs::metadata(place.path()).unwrap();
            assert_eq!(stat.permissions().mode() & 0o7777, mode);
            let names = names_in(File::open(place.path()).unwrap().as_fd()).unwrap();
            assert!(names.is_empty(), "nothing is left in it");
        }

        fs::create_dir(place.path().join("precious")).unwrap();
        place.set_mode(0o300);
        assert_eq!(place.furnish(), Err(Errno::NOTEMPTY));
        fs::remove_dir(place.path().join("precious")).unwrap();
        place.set_mode(0o300);
        assert_eq!(place.furnish(), Ok(()));
    }

    /// The test changes the container between two calls of `remove`, as another process does without locks. In
    /// place of the container, a directory that is not empty makes `rmdir` fail.
    #[test]
    fn a_container_that_gets_another_entry_keeps_its_mark() {
        let place = Place::new();
        let container = Container::create(Rc::clone(&place.place)).unwrap();
        let name = container.name().to_str().unwrap();
        let path = place.scratch.path().join(name);
        let mark = path.join(name);
        File::create(path.join("tree")).unwrap();
        assert_eq!(container.remove(), Ok(Removed::InUse));
        assert!(mark.exists() && path.join("tree").exists());
        fs::remove_file(path.join("tree")).unwrap();

        let moved = place.scratch.path().join("moved");
        fs::rename(&path, &moved).unwrap();
        fs::create_dir_all(path.join("tree")).unwrap();
        assert_eq!(container.remove(), Ok(Removed::InUse));
        assert!(moved.join(name).exists() && path.join("tree").exists());
        fs::remove_dir_all(&path).unwrap();
        fs::rename(&moved, &path).unwrap();
        assert_eq!(container.remove(), Ok(Removed::Gone));
        assert_eq!(container.remove(), Ok(Removed::Gone));
        assert!(!path.exists());
    }

    #[test]
    fn a_directory_without_a_mark_is_not_emptied() {
        let place = Place::new();
        fs::create_dir(place.path()).unwrap();
        place.set_mode(0o300);
        let found = Container::find(&place.place, &place.name, InUse::Skip).unwrap();
        assert!(matches!(found, Found::Doubtful("whose mode is not 0700")));
        place.set_mode(0o700);
        let found = Container::find(&place.place, &place.name, InUse::Skip).unwrap();
        assert!(matches!(found, Found::Doubtful("which has no mark of rmz")));
        // Its owner adds a file after the look.
        File::create(place.path().join("precious")).unwrap();
        assert_eq!(remove_if_empty(&place.place, &place.name), Ok(false));
        assert!(place.path().join("precious").exists());
        fs::remove_file(place.path().join("precious")).unwrap();
        assert_eq!(remove_if_empty(&place.place, &place.name), Ok(true));
        assert!(!place.path().exists());
    }

    #[test]
    fn a_removal_is_tried_again_only_if_the_filesystem_is_full() {
        for (failure, calls) in [(Errno::NOSPC, 3), (Errno::DQUOT, 3), (Errno::IO, 1)] {
            let mut left = 3;
            let removed = with_room(|| {
                left -= 1;
                match left {
                    0 => Ok(()),
                    _ => Err(failure),
                }
            });
            assert_eq!(3 - left, calls, "{failure:?}");
            assert_eq!(removed.is_ok(), calls == 3);
        }
    }

    #[test]
    fn similar_names_are_not_recognised() {
        let name = random_name().unwrap().into_string().unwrap();
        let shorter = &name[..name.len() - 1];
        for other in [
            "",
            ".rmz-",
            shorter,
            &format!("{name}0"),
            &format!("{shorter}G"),
            &name.to_uppercase(),
            &format!("x{name}"),
        ] {
            assert!(!is_name(other.as_bytes()), "{other}");
        }
    }
}
