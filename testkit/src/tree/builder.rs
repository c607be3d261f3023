//! The builder. It works at once, call by call, so that order is the caller's: a directory that loses
//! its write permission, or gets its times, is given its entries before.

use std::{
    ffi::OsStr,
    fmt::Display,
    fs::{self, File, OpenOptions},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileExt as _, PermissionsExt as _, lchown, symlink},
    },
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, Timespec, Timestamps, UTIME_OMIT, XattrFlags, lsetxattr, makedev,
    mknodat, utimensat,
};

/// A tree under construction.
///
/// Names are relative to the tree's root, and are bytes. Missing parents are made. Modes do not depend
/// on the umask: files get 644 and directories 755 unless [`mode`](Tree::mode) says otherwise. The
/// modifiers ([`mode`](Tree::mode), [`mtime`](Tree::mtime), ...) apply to the entry that was made last,
/// or that was [selected](Tree::select).
///
/// # Panics
/// Every method panics if the system refuses, with the path and the reason.
#[derive(Clone, Debug)]
pub struct Tree {
    root: PathBuf,
    last: PathBuf,
}

impl Tree {
    /// Begins at `root`, a directory that is made if it is missing.
    #[track_caller]
    pub fn at(root: impl AsRef<Path>) -> Self {
        let root = root.as_ref().to_owned();
        make_dirs(&root);
        Self {
            last: root.clone(),
            root,
        }
    }

    /// Where the tree is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Makes a file of mode 644.
    #[track_caller]
    pub fn file(self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Self {
        let tree = self.next(name);
        built(&tree.last, fs::write(&tree.last, content));
        tree.mode(0o644)
    }

    /// Makes a directory of mode 755; one that exists is only selected.
    #[track_caller]
    pub fn dir(self, name: impl AsRef<Path>) -> Self {
        let tree = self.next(name);
        make_dirs(&tree.last);
        tree
    }

    /// Makes the symlink `name` that says `target`.
    #[track_caller]
    pub fn symlink(self, name: impl AsRef<Path>, target: impl AsRef<Path>) -> Self {
        let tree = self.next(name);
        built(&tree.last, symlink(target, &tree.last));
        tree
    }

    /// Gives the file `existing` the further name `name`.
    #[track_caller]
    pub fn hardlink(self, existing: impl AsRef<Path>, name: impl AsRef<Path>) -> Self {
        let tree = self.next(name);
        built(
            &tree.last,
            fs::hard_link(tree.root.join(existing), &tree.last),
        );
        tree
    }

    /// Makes a FIFO of mode 644.
    #[track_caller]
    pub fn fifo(self, name: impl AsRef<Path>) -> Self {
        self.node(name, FileType::Fifo, 0)
    }

    /// Makes a socket of mode 644 that nobody listens on.
    #[track_caller]
    pub fn socket(self, name: impl AsRef<Path>) -> Self {
        self.node(name, FileType::Socket, 0)
    }

    /// Makes a character device of mode 644; only root may, except for 0:0.
    #[track_caller]
    pub fn char_device(self, name: impl AsRef<Path>, major: u32, minor: u32) -> Self {
        self.node(name, FileType::CharacterDevice, makedev(major, minor))
    }

    /// Makes a block device of mode 644; only root may.
    #[track_caller]
    pub fn block_device(self, name: impl AsRef<Path>, major: u32, minor: u32) -> Self {
        self.node(name, FileType::BlockDevice, makedev(major, minor))
    }

    /// Makes a file of `len_bytes` that is one hole but for `data`, pairs of an offset and bytes.
    #[track_caller]
    pub fn sparse(self, name: impl AsRef<Path>, len_bytes: u64, data: &[(u64, &[u8])]) -> Self {
        let tree = self.next(name);
        let file = built(&tree.last, File::create(&tree.last));
        built(&tree.last, file.set_len(len_bytes));
        for (offset, bytes) in data {
            built(&tree.last, file.write_all_at(bytes, *offset));
        }
        tree.mode(0o644)
    }

    /// Lets the modifiers that follow apply to `name`, which exists; `""` is the root.
    pub fn select(mut self, name: impl AsRef<Path>) -> Self {
        self.last = match name.as_ref() {
            name if name.as_os_str().is_empty() => self.root.clone(),
            name => self.root.join(name),
        };
        self
    }

    /// Sets the permission bits, set-id and sticky included.
    #[track_caller]
    pub fn mode(self, mode: u32) -> Self {
        let metadata = built(&self.last, fs::symlink_metadata(&self.last));
        assert!(
            !metadata.is_symlink(),
            "{}: a symlink has no mode of its own",
            self.last.display()
        );
        let permissions = fs::Permissions::from_mode(mode);
        built(&self.last, fs::set_permissions(&self.last, permissions));
        self
    }

    /// Sets the owner and the group; only root may change the owner. Before `mode`: it drops set-id bits.
    #[track_caller]
    pub fn owner(self, uid: u32, gid: u32) -> Self {
        built(&self.last, lchown(&self.last, Some(uid), Some(gid)));
        self
    }

    /// Sets the time of the last modification, given since 1970.
    #[track_caller]
    pub fn mtime(self, since_epoch: Duration) -> Self {
        self.times(OMIT, timespec(since_epoch))
    }

    /// Sets the time of the last access, given since 1970.
    #[track_caller]
    pub fn atime(self, since_epoch: Duration) -> Self {
        self.times(timespec(since_epoch), OMIT)
    }

    /// Sets an extended attribute, such as `user.note`.
    #[track_caller]
    pub fn xattr(self, name: impl AsRef<OsStr>, value: impl AsRef<[u8]>) -> Self {
        let outcome = lsetxattr(
            &self.last,
            name.as_ref().as_bytes(),
            value.as_ref(),
            XattrFlags::empty(),
        );
        built(&self.last, outcome);
        self
    }

    /// Adds to the ACL what the program `setfacl` understands after `-m`: `u:1:rwx`, `d:g:2:rx`.
    #[track_caller]
    pub fn acl(self, entries: &str) -> Self {
        let output = Command::new("setfacl")
            .args(["-m", entries, "--"])
            .arg(&self.last)
            .output();
        let output = built(Path::new("setfacl"), output);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "setfacl: {complaint}");
        self
    }

    /// Adds bytes to the end of the selected file.
    #[track_caller]
    pub fn append(self, content: impl AsRef<[u8]>) -> Self {
        let opened = OpenOptions::new().append(true).open(&self.last);
        let mut file = built(&self.last, opened);
        built(
            &self.last,
            std::io::Write::write_all(&mut file, content.as_ref()),
        );
        self
    }

    #[track_caller]
    fn next(self, name: impl AsRef<Path>) -> Self {
        let tree = self.select(name);
        if let Some(parent) = tree.last.parent() {
            make_dirs(parent);
        }
        tree
    }

    #[track_caller]
    fn node(self, name: impl AsRef<Path>, kind: FileType, device: u64) -> Self {
        let tree = self.next(name);
        let mode = Mode::RUSR | Mode::WUSR;
        built(&tree.last, mknodat(CWD, &tree.last, kind, mode, device));
        tree.mode(0o644)
    }

    #[track_caller]
    fn times(self, last_access: Timespec, last_modification: Timespec) -> Self {
        let times = Timestamps {
            last_access,
            last_modification,
        };
        let outcome = utimensat(CWD, &self.last, &times, AtFlags::SYMLINK_NOFOLLOW);
        built(&self.last, outcome);
        self
    }
}

/// A time that stays as it is.
pub(crate) const OMIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: UTIME_OMIT,
};

pub(crate) fn timespec(since_epoch: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(since_epoch.as_secs()).expect("a time within the range of time_t"),
        tv_nsec: since_epoch.subsec_nanos().into(),
    }
}

/// Makes `dir` and what is missing above it, each of mode 755.
#[track_caller]
fn make_dirs(dir: &Path) {
    let missing: Vec<&Path> = dir
        .ancestors()
        .take_while(|d| !d.as_os_str().is_empty() && !d.is_dir())
        .collect();
    for dir in missing.into_iter().rev() {
        built(dir, fs::create_dir(dir));
        built(
            dir,
            fs::set_permissions(dir, fs::Permissions::from_mode(0o755)),
        );
    }
}

#[track_caller]
fn built<T, E: Display + Into<std::io::Error>>(path: &Path, outcome: Result<T, E>) -> T {
    match outcome {
        Ok(value) => value,
        Err(e) => panic!("can't build {}: {e}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

    use super::*;
    use crate::tree::Scratch;

    #[test]
    fn parents_are_made_and_modes_ignore_the_umask() {
        let scratch = Scratch::new();
        Tree::at(scratch.path())
            .file("a/b/c", b"x")
            .mode(0o666)
            .file("d", b"y");
        let mode = |name| fs::metadata(scratch.path().join(name)).unwrap().mode() & 0o7777;
        assert_eq!(
            [mode("a"), mode("a/b"), mode("a/b/c"), mode("d")],
            [0o755, 0o755, 0o666, 0o644]
        );
    }

    #[test]
    fn every_kind_is_made() {
        let scratch = Scratch::new();
        let tree = Tree::at(scratch.path())
            .fifo("fifo")
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

    #[test]
    #[should_panic(expected = "a symlink has no mode")]
    fn a_symlinks_mode_is_refused() {
        let scratch = Scratch::new();
        Tree::at(scratch.path()).symlink("l", "t").mode(0o600);
    }

    #[test]
    fn the_root_can_be_selected() {
        let scratch = Scratch::new();
        Tree::at(scratch.path())
            .file("f", "")
            .select("")
            .mode(0o711)
            .mtime(Duration::from_secs(9));
        let root = fs::metadata(scratch.path()).unwrap();
        assert_eq!((root.mode() & 0o777, root.mtime()), (0o711, 9));
    }
}
