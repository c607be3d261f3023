//! The parts of a run that all of its steps share: options, operands, open directories, paths and reports.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::node::{KEPT, Name, RemoveDir, RemoveNode, SHRUNK};
use super::options::{Ask, RemoveOp};
use super::remover::Remover;
use crate::descriptors::{Descriptors, Roots};
use crate::error::{Error, Operation, Refusal};
use crate::node::Side;
use crate::observer::Event;
use crate::paths;
use crate::report::Report;
use crate::sys::{self, Fd, FileId, Inode, Mount, Stat, Symlinks};

pub(super) struct RemoveContext<'a> {
    pub(super) options: &'a RemoveOp<'a>,
    /// The directory in which operands that are relative paths are looked up.
    pub(super) base: BorrowedFd<'a>,
    pub(super) operands: Vec<Box<CStr>>,
    pub(super) report: Report<'a>,
    pub(super) descriptors: Descriptors<RemoveDir>,
    /// The root directory, once it is known.
    pub(super) root: OnceLock<FileId>,
    /// The mount of each operand, once it is open. There are none if no option asks for them.
    pub(super) mounts: Vec<OnceLock<Mount>>,
    /// `true` if there may be questions.
    pub(super) asks: bool,
    /// `true` if more than one call may be needed for a name. The flag is read for every name.
    pub(super) looks_at_entries: bool,
    pub(super) remover: Remover,
    /// `true` if the modes of directories may be changed.
    pub(super) unlocks: bool,
    /// `true` if no mode protects a file from the user. It is `false` if there are no
    /// questions, because then it does not matter.
    pub(super) is_superuser: bool,
}

impl<'a> RemoveContext<'a> {
    /// Reports operands that cannot be paths, and leaves them out.
    pub(super) fn new(options: &'a RemoveOp<'a>, paths: Vec<PathBuf>, report: Report<'a>) -> Self {
        let mut operands = Vec::new();
        for path in paths {
            match paths::to_c(&path) {
                Ok(path) => operands.push(paths::with_one_slash(path)),
                Err(errno) => report.fail(0, Error::failed(Operation::Remove, path, errno)),
            }
        }
        let mounts = match options.one_file_system {
            true => operands.len(),
            false => 0,
        };
        let asks = options.ask != Ask::Never;
        let remover = Remover::new(options);
        Self {
            options,
            base: options.setup.dir.as_fd(),
            operands,
            report,
            descriptors: Descriptors::new(),
            root: OnceLock::new(),
            mounts: vec![OnceLock::new(); mounts],
            asks,
            looks_at_entries: asks || remover != Remover::Real,
            remover,
            unlocks: options.unlock && !remover.leaves_names(),
            is_superuser: asks && sys::effective_user() == 0,
        }
    }

    /// Removes a name other than a directory, and counts its bytes.
    pub(super) fn unlink(&self, dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
        self.report.add_bytes(self.remover.unlink(dir, name)?);
        Ok(())
    }

    pub(super) fn operand_path(&self, operand: u32) -> &Path {
        paths::path_of(&self.operands[operand as usize])
    }

    /// Returns `true` if a directory is an operand of which only the entries are removed.
    pub(super) fn stays(&self, name: Name<'_>) -> bool {
        self.options.keeps_operands && name.parent.is_none()
    }

    /// Runs `call` on the directory that `name` is in, and on its name there.
    pub(super) fn on<T>(
        &self,
        name: Name<'_>,
        call: impl FnOnce(BorrowedFd<'_>, &CStr) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match name.parent {
            Some(node) => {
                let dir = self.descriptors.pin(node, Side::Source, self)?;
                call(dir.as_fd(), name.name)
            }
            None => call(self.base, name.name),
        }
    }
}

/// Opens directories.
///
/// If the options permit it, a directory is unlocked when a call has failed with EACCES, and the call is made again. What
/// stays keeps the new permissions. Two invariants. **Nothing above an operand is changed.** A mode is only changed by a
/// descriptor: that of a directory in flight, or of one that was opened without following a link.
impl RemoveContext<'_> {
    /// Opens a directory.
    #[inline(always)]
    pub(super) fn open_directory(&self, name: Name<'_>) -> Result<Fd, Errno> {
        self.unlocking(name, |dir, name| {
            self.descriptors
                .making_room(|| self.remover.open_directory(dir, name))
        })
    }

    /// Opens a directory that need not be readable.
    #[cold]
    pub(super) fn open_path(&self, name: Name<'_>) -> Result<Fd, Errno> {
        self.on(name, |dir, name| {
            self.descriptors
                .making_room(|| sys::open_path_directory(dir, name, Symlinks::NoFollow))
        })
    }

    /// Unlocks and opens a directory that could not be opened because of `errno`.
    pub(super) fn open_locked(&self, name: Name<'_>, errno: Errno) -> Option<Fd> {
        if !self.may_unlock(errno) {
            return None;
        }
        let held = self.open_path(name).ok()?;
        unlock(held.as_fd()).ok()?;
        let listed = || sys::open_directory(held.as_fd(), c".", Symlinks::NoFollow);
        self.descriptors.making_room(listed).ok()
    }

    /// Does the same as [`on`](Self::on), and [tries again](Self::unlock_and_retry).
    // If the functions between the walk and the call on a directory are not inlined, that takes 30 more instructions. The
    // guard's case `rmz-directories` counts them.
    #[inline(always)]
    pub(super) fn unlocking<T>(
        &self,
        name: Name<'_>,
        mut call: impl FnMut(BorrowedFd<'_>, &CStr) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let called = self.on(name, &mut call);
        called.or_else(|errno| self.unlock_and_retry(name, errno, call))
    }

    /// Makes a call on `name` again that has failed with `errno`, if the directory above could be unlocked.
    #[cold]
    pub(super) fn unlock_and_retry<T>(
        &self,
        name: Name<'_>,
        errno: Errno,
        call: impl FnOnce(BorrowedFd<'_>, &CStr) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match name.parent {
            Some(above) if self.unlock(above, errno) => self.on(name, call),
            _ => Err(errno),
        }
    }

    /// Unlocks a directory in flight if that may help after `errno`. Returns `true` if the owner has all permissions now.
    pub(super) fn unlock(&self, node: &RemoveNode, errno: Errno) -> bool {
        let unlock = || {
            let dir = self.descriptors.pin(node, Side::Source, self)?;
            unlock(dir.as_fd())
        };
        self.may_unlock(errno) && unlock().is_ok()
    }

    fn may_unlock(&self, errno: Errno) -> bool {
        self.unlocks && errno == Errno::ACCESS
    }
}

/// All permissions of the owner.
const ALL: u32 = 0o700;

/// Gives the owner all permissions on an open directory. Fails if it belongs to another user.
fn unlock(dir: BorrowedFd<'_>) -> Result<(), Errno> {
    let stat = sys::stat_open(dir)?;
    match stat.st_mode & ALL == ALL {
        // Another worker may have unlocked it.
        true => Ok(()),
        false if stat.st_uid != sys::effective_user() => Err(Errno::ACCESS),
        false => Inode::PathOnly(dir).set_mode(stat.st_mode | ALL),
    }
}

/// Builds paths, and reports the names that are gone and those that stay.
impl RemoveContext<'_> {
    pub(super) fn path(&self, name: Name<'_>) -> PathBuf {
        match name.parent {
            Some(node) => node
                .place
                .path(self.operand_path(name.operand), Some(name.name)),
            None => self.operand_path(name.operand).to_path_buf(),
        }
    }

    /// Reports that a name of this type is gone.
    #[inline]
    pub(super) fn note_removed(&self, name: Name<'_>, kind: FileType) {
        name.mark(SHRUNK);
        if self.report.wants_events() {
            // A call that takes the whole name would make the compiler store each name in memory.
            self.emit_removed(name.parent, name.operand, name.name, kind);
        }
    }

    #[cold]
    fn emit_removed(&self, parent: Option<&RemoveNode>, operand: u32, name: &CStr, kind: FileType) {
        let path = &self.path(Name {
            parent,
            operand,
            name,
        });
        self.report.event(match kind {
            FileType::Directory => Event::RemovedDirectory(path),
            _ => Event::Removed(path),
        });
    }

    /// Reports that a name could not be removed, and keeps its ancestors; does nothing
    /// if the error is [ignorable](Self::is_ignorable).
    pub(super) fn fail_and_keep(&self, name: Name<'_>, errno: Errno) {
        if self.report_unless_ignorable(name, errno) {
            name.mark(KEPT);
        }
    }

    /// Reports that a name could not be removed, unless the error is [ignorable](Self::is_ignorable). Returns `true` if it was
    /// reported.
    pub(super) fn report_unless_ignorable(&self, name: Name<'_>, errno: Errno) -> bool {
        let is_reported = !self.is_ignorable(name, errno);
        if is_reported {
            let error = Error::failed(Operation::Remove, self.path(name), errno);
            self.fail(name, error);
        }
        is_reported
    }

    /// Reports that the removal of a name is refused.
    pub(super) fn refuse(&self, name: Name<'_>, refusal: Refusal) {
        self.fail(name, Error::refused(refusal, self.path(name)));
    }

    /// Reports a failure about a name.
    pub(super) fn fail(&self, name: Name<'_>, error: Error) {
        self.report.fail(name.operand, error);
    }

    /// Returns `true` if the name is missing, or cannot exist on its filesystem, and the options accept that.
    pub(super) fn is_ignorable(&self, name: Name<'_>, errno: Errno) -> bool {
        let path = name.name.to_bytes();
        let is_dot = errno == Errno::INVAL && paths::split(path).1 == b".";
        self.options.ignore_missing
            && (is_missing(errno) || errno == Errno::STALE)
            && match self.look(name) {
                // The kernel never removes a directory by this name.
                _ if is_dot => true,
                // A link or a file has no name with a slash.
                Ok(stat) if path.ends_with(b"/") => !sys::is_directory(&stat),
                // Another process may have created a file since.
                Ok(stat) if errno == Errno::NOENT => !sys::is_directory(&stat),
                // A filesystem may give the same reasons for a name that is there.
                Ok(_) => false,
                // The directory that contained the name is gone. If not, its own removal will fail. Some FUSE
                // filesystems list a directory twice, and answer this for its second name.
                Err(Errno::STALE) => name.parent.is_some(),
                Err(errno) => is_missing(errno),
            }
    }

    /// Looks at a name without the slashes at its end.
    pub(super) fn look(&self, name: Name<'_>) -> Result<Stat, Errno> {
        self.on(name, |dir, name| {
            sys::stat(dir, &paths::without_slashes(name), Symlinks::NoFollow)
        })
    }
}

/// Returns `true` if a removal failed because it needs room on the filesystem.
pub(super) fn needs_room(errno: Errno) -> bool {
    matches!(errno, Errno::NOSPC | Errno::DQUOT)
}

/// Returns `true` if this is the reason why a name is not found: it is missing, or cannot exist on its filesystem.
fn is_missing(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::ILSEQ
    )
}

impl Roots for RemoveContext<'_> {
    fn open_operand(&self, operand: u32, _side: Side) -> Result<Fd, Errno> {
        let path = &self.operands[operand as usize];
        self.remover.open_directory(self.base, path)
    }

    fn open_below(&self, dir: BorrowedFd<'_>, name: &CStr, _side: Side) -> Result<Fd, Errno> {
        self.remover.open_directory(dir, name)
    }
}
