//! The builder. Each call takes effect at once, so the caller decides the order: add the entries of a
//! directory before its times are set or its write permission is removed.

use std::{
    cell::RefCell,
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileExt as _, PermissionsExt as _, lchown, symlink},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, Timespec, Timestamps, UTIME_OMIT, XattrFlags, lsetxattr, makedev,
    mknodat, utimensat,
};

use super::acl;

/// A tree under construction.
///
/// Names are bytes, relative to the root. Missing parents are made. Modes do not depend on the umask: files
/// get 644 and directories 755, unless [`mode`](Tree::mode) sets another. Modifiers such as
/// [`mtime`](Tree::mtime) apply to the entry that was made or [selected](Tree::select) last.
///
/// # Panics
/// Every method panics if the system refuses, with the path and the reason.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    /// Path of the selected entry.
    selected: RefCell<PathBuf>,
}

impl Tree {
    /// Starts a tree at the directory `root`, which is made if it is missing.
    #[track_caller]
    pub fn at(root: impl AsRef<Path>) -> Self {
        let root = root.as_ref().to_owned();
        built(&root, make_dirs(&root));
        Self {
            selected: RefCell::new(root.clone()),
            root,
        }
    }

    /// Returns the path of the root.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Makes a file of mode 644.
    #[track_caller]
    pub fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> &Self {
        self.make(name, |path| fs::write(path, content)).mode(0o644)
    }

    /// Makes a directory of mode 755, or selects an existing one.
    #[track_caller]
    pub fn dir(&self, name: impl AsRef<Path>) -> &Self {
        self.select(name).on_selected(make_dirs)
    }

    /// Makes the symlink `name` to `target`.
    #[track_caller]
    pub fn symlink(&self, name: impl AsRef<Path>, target: impl AsRef<Path>) -> &Self {
        self.make(name, |path| symlink(target, path))
    }

    /// Gives the file `existing` the further name `name`.
    #[track_caller]
    pub fn hardlink(&self, existing: impl AsRef<Path>, name: impl AsRef<Path>) -> &Self {
        self.make(name, |path| fs::hard_link(self.root.join(existing), path))
    }

    /// Makes a FIFO of mode 644.
    #[track_caller]
    pub fn fifo(&self, name: impl AsRef<Path>) -> &Self {
        self.node(name, FileType::Fifo, 0)
    }

    /// Makes a socket of mode 644, on which no process listens.
    #[track_caller]
    pub fn socket(&self, name: impl AsRef<Path>) -> &Self {
        self.node(name, FileType::Socket, 0)
    }

    /// Makes a character device of mode 644. This takes root, except for the device 0:0.
    #[track_caller]
    pub fn char_device(&self, name: impl AsRef<Path>, major: u32, minor: u32) -> &Self {
        self.node(name, FileType::CharacterDevice, makedev(major, minor))
    }

    /// Makes a block device of mode 644. This takes root.
    #[track_caller]
    pub fn block_device(&self, name: impl AsRef<Path>, major: u32, minor: u32) -> &Self {
        self.node(name, FileType::BlockDevice, makedev(major, minor))
    }

    /// Makes a sparse file of `len_bytes`. Its `data` are pairs of an offset and bytes.
    #[track_caller]
    pub fn sparse(&self, name: impl AsRef<Path>, len_bytes: u64, data: &[(u64, &[u8])]) -> &Self {
        self.make(name, |path| {
            let file = File::create(path)?;
            file.set_len(len_bytes)?;
            data.iter()
                .try_for_each(|(offset, bytes)| file.write_all_at(bytes, *offset))
        })
        .mode(0o644)
    }

    /// Selects the existing entry `name` for the modifiers that follow; `""` is the root.
    pub fn select(&self, name: impl AsRef<Path>) -> &Self {
        self.selected.replace(match name.as_ref() {
            name if name.as_os_str().is_empty() => self.root.clone(),
            name => self.root.join(name),
        });
        self
    }

    /// Sets the permission bits, including set-id and sticky bits.
    #[track_caller]
    pub fn mode(&self, mode: u32) -> &Self {
        self.on_selected(|path| {
            let metadata = fs::symlink_metadata(path)?;
            if metadata.is_symlink() {
                return Err(io::Error::other("a symlink has no mode of its own"));
            }
            fs::set_permissions(path, fs::Permissions::from_mode(mode))
        })
    }

    /// Sets the owner and the group. Changing the owner takes root. Call it before `mode`, since it drops set-id
    /// bits.
    #[track_caller]
    pub fn owner(&self, uid: u32, gid: u32) -> &Self {
        self.on_selected(|path| lchown(path, Some(uid), Some(gid)))
    }

    /// Sets the time of the last modification, given since 1970.
    #[track_caller]
    pub fn mtime(&self, since_epoch: Duration) -> &Self {
        self.times(OMIT, time(since_epoch))
    }

    /// Sets the time of the last access, given since 1970.
    #[track_caller]
    pub fn atime(&self, since_epoch: Duration) -> &Self {
        self.times(time(since_epoch), OMIT)
    }

    /// Sets an extended attribute, such as `user.note`.
    #[track_caller]
    pub fn xattr(&self, name: impl AsRef<OsStr>, value: impl AsRef<[u8]>) -> &Self {
        let name = name.as_ref().as_bytes();
        self.on_selected(|path| lsetxattr(path, name, value.as_ref(), XattrFlags::empty()))
    }

    /// Adds entries to the ACL, written as for `setfacl -m`: `u:1:rwx` or `d:g:2:rx`.
    #[track_caller]
    pub fn acl(&self, entries: &str) -> &Self {
        self.on_selected(|path| acl::add(path, entries))
    }

    /// Adds bytes to the end of the selected file.
    #[track_caller]
    pub fn append(&self, content: impl AsRef<[u8]>) -> &Self {
        self.on_selected(|path| {
            let mut file = OpenOptions::new().append(true).open(path)?;
            file.write_all(content.as_ref())
        })
    }

    #[track_caller]
    fn node(&self, name: impl AsRef<Path>, kind: FileType, device: u64) -> &Self {
        let mode = Mode::RUSR | Mode::WUSR;
        self.make(name, |path| mknodat(CWD, path, kind, mode, device))
            .mode(0o644)
    }

    #[track_caller]
    fn times(&self, last_access: Timespec, last_modification: Timespec) -> &Self {
        let times = Timestamps {
            last_access,
            last_modification,
        };
        self.on_selected(|path| utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW))
    }

    /// Makes `name` by `make`, and its missing parents before it.
    #[track_caller]
    fn make<E: Into<io::Error>>(
        &self,
        name: impl AsRef<Path>,
        make: impl FnOnce(&Path) -> Result<(), E>,
    ) -> &Self {
        self.select(name).on_selected(|path| {
            if let Some(parent) = path.parent() {
                make_dirs(parent)?;
            }
            make(path).map_err(Into::into)
        })
    }

    #[track_caller]
    fn on_selected<E: Into<io::Error>>(&self, act: impl FnOnce(&Path) -> Result<(), E>) -> &Self {
        let path = self.selected.borrow();
        built(&path, act(&path));
        self
    }
}

/// A timestamp that `utimensat` leaves as it is.
pub(crate) const OMIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: UTIME_OMIT,
};

fn time(since_epoch: Duration) -> Timespec {
    Timespec::try_from(since_epoch).expect("a time within the range of time_t")
}

/// Makes `dir` and its missing parents, each of mode 755.
fn make_dirs(dir: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = dir
        .ancestors()
        .take_while(|d| !d.as_os_str().is_empty() && !d.is_dir())
        .collect();
    for dir in missing.into_iter().rev() {
        fs::create_dir(dir)?;
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

#[track_caller]
fn built<E: Into<io::Error>>(path: &Path, outcome: Result<(), E>) {
    if let Err(e) = outcome {
        panic!("can't build {}: {}", path.display(), e.into());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

    use super::*;
    use crate::tree::Scratch;

    #[test]
    fn every_kind_is_made() {
        let scratch = Scratch::new();
        let tree = Tree::at(scratch.path());
        tree.fifo("fifo")
            .socket("socket")
            .file("file", b"content")
            .append(b" and more")
            .hardlink("file", "twin")
            .symlink("link", OsStr::from_bytes(b"\xff"))
            .mtime(Duration::new(5, 6))
            .sparse("holes", 1 << 30, &[(4096, b"data")]);
        let stat = |name| fs::symlink_metadata(tree.path().join(name)).unwrap();
        assert!(stat("fifo").file_type().is_fifo());
        assert!(stat("socket").file_type().is_socket());
        assert_eq!(stat("file").ino(), stat("twin").ino());
        assert_eq!(stat("file").len(), 16);
        assert_eq!((stat("link").mtime(), stat("link").mtime_nsec()), (5, 6));
        assert_eq!(stat("holes").len(), 1 << 30);
        assert!(stat("holes").blocks() < 1 << 11);
    }
}
