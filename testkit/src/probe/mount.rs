//! Filesystems of several kinds, made in image files and mounted.

use std::{
    ffi::OsStr,
    fs::{self, File},
    path::{Path, PathBuf},
};

use super::{Skip, need_root, run};
use crate::tree::{Scratch, place};

/// A kind of filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fs {
    /// A filesystem with holes and ACLs, without reflinks.
    Ext4,
    /// A filesystem with reflinks.
    Xfs,
    /// A filesystem with reflinks, and a device number for each subvolume.
    Btrfs,
    /// A filesystem in memory.
    Tmpfs,
}

impl Fs {
    /// Returns the name for `mount -t`, the smallest size that `mkfs` accepts in MiB, and options of `mkfs`.
    pub(super) fn facts(self) -> (&'static str, u64, &'static [&'static str]) {
        match self {
            Self::Ext4 => ("ext4", 8, &["-q", "-F"]),
            Self::Xfs => ("xfs", 300, &["-q", "-f"]),
            Self::Btrfs => ("btrfs", 128, &["-q", "-f"]),
            Self::Tmpfs => ("tmpfs", 1, &[]),
        }
    }

    /// Returns the name for `mount -t`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().0
    }
}

/// A new and empty filesystem, which is unmounted and deleted when this is dropped.
#[derive(Debug)]
pub struct LoopMount {
    mounted: Mounted,
    fs: Fs,
}

/// A mounted filesystem, which is unmounted when this is dropped.
#[derive(Debug)]
pub struct Mounted {
    pub(super) point: Scratch,
    /// The directory in which the filesystem is stored, if it is stored in one. It is deleted after the unmounting.
    pub(super) stored: Option<Scratch>,
}

impl LoopMount {
    /// Makes and mounts a filesystem of `size_mib`, or of the smallest size that its `mkfs` accepts. The image
    /// is sparse, so an empty filesystem takes little room.
    ///
    /// # Errors
    /// Fails without root, if a program is missing, or if the kernel refuses.
    pub fn new(fs: Fs, size_mib: u64) -> Result<Self, Skip> {
        Self::new_in(&place(), fs, size_mib, &[])
    }

    /// Does the same as [`new`](Self::new), with the image and the mount point in `dir`, and with more options for `mkfs`. A
    /// filesystem in memory ignores them.
    ///
    /// # Errors
    /// Fails as [`new`](Self::new) does, or if `mkfs` refuses the options.
    pub fn new_in(dir: &Path, fs: Fs, size_mib: u64, options: &[&str]) -> Result<Self, Skip> {
        need_root(fs.name())?;
        let size_mib = size_mib.max(fs.facts().1);
        let point = Scratch::new_in(dir);
        let mounted = match fs {
            Fs::Tmpfs => {
                let size = format!("size={size_mib}m,mode=755");
                let options = ["-t", "tmpfs", "-o", &size];
                Mounted::new(point, None, &options, "tmpfs".as_ref())?
            }
            Fs::Ext4 | Fs::Xfs | Fs::Btrfs => {
                let image = Scratch::new_in(dir);
                make_image(fs, size_mib, options, &image_in(&image))?;
                mount_image(fs, point, image)?
            }
        };
        // mke2fs makes this directory, which no test expects.
        let _ = fs::remove_dir(mounted.path().join("lost+found"));
        Ok(Self { mounted, fs })
    }

    /// Returns the path of the image. Returns `None` for a filesystem in memory.
    #[must_use]
    pub fn image(&self) -> Option<PathBuf> {
        self.mounted.stored.as_ref().map(image_in)
    }

    /// Returns the filesystem as it is after a power cut at this moment. What was not yet written to the
    /// disk is lost. The mount point changes.
    ///
    /// # Errors
    /// Fails if the filesystem is in memory, or cannot be mounted again.
    pub fn after_power_cut(self) -> Result<Self, Skip> {
        let Self { mounted, fs } = self;
        let stored = mounted.stored.as_ref();
        let image = stored.ok_or_else(|| Skip(format!("{} loses everything", fs.name())))?;
        let copy = Scratch::new();
        // The kernel's cache for the image is the disk: the copy has what the filesystem has written.
        let files = [image_in(image), image_in(&copy)];
        let sparse = OsStr::new("--sparse=always");
        run("cp", [sparse, files[0].as_os_str(), files[1].as_os_str()])?;
        // Two filesystems with one UUID cannot be mounted at the same time.
        drop(mounted);
        let mounted = mount_image(fs, Scratch::new(), copy)?;
        Ok(Self { mounted, fs })
    }

    /// Returns the mount point, at first an empty directory of mode 755.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.mounted.path()
    }

    /// Returns the path of an entry.
    #[must_use]
    pub fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path().join(name)
    }
}

impl AsRef<Path> for LoopMount {
    fn as_ref(&self) -> &Path {
        self.path()
    }
}

impl Mounted {
    pub(super) fn new(
        point: Scratch,
        stored: Option<Scratch>,
        options: &[&str],
        device: &OsStr,
    ) -> Result<Self, Skip> {
        let options = options.iter().map(OsStr::new);
        run("mount", options.chain([device, point.path().as_os_str()]))?;
        Ok(Self { point, stored })
    }

    /// Returns the mount point.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.point.path()
    }

    /// Returns the path of an entry.
    #[must_use]
    pub fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path().join(name)
    }
}

impl AsRef<Path> for Mounted {
    fn as_ref(&self) -> &Path {
        self.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        unmount(self.point.path());
    }
}

/// Unmounts the filesystem at `point`.
///
/// A failed test may have left a file open there, and a child of another test may have a descriptor until it executes
/// its program. Then detach the filesystem; the kernel unmounts it when the file is closed. If this fails too, the
/// removal of the mount point reports it.
pub(super) fn unmount(point: &Path) {
    let point = point.as_os_str();
    if run("umount", [point]).is_err() {
        let _ = run("umount", [OsStr::new("-l"), point]);
    }
}

fn image_in(dir: &Scratch) -> PathBuf {
    dir.path().join("image")
}

fn mount_image(fs: Fs, point: Scratch, image: Scratch) -> Result<Mounted, Skip> {
    let options = ["-t", fs.name(), "-o", "loop"];
    let file = image_in(&image);
    Mounted::new(point, Some(image), &options, file.as_os_str())
}

fn make_image(fs: Fs, size_mib: u64, options: &[&str], path: &Path) -> Result<(), Skip> {
    File::create(path)
        .and_then(|file| file.set_len(size_mib << 20))
        .map_err(|e| Skip(format!("no image of {size_mib} MiB: {e}")))?;
    let mkfs = format!("mkfs.{}", fs.name());
    let options = fs.facts().2.iter().chain(options).map(OsStr::new);
    run(&mkfs, options.chain([path.as_os_str()]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[test]
    fn each_filesystem_is_mounted_and_unmounted() {
        for fs in [Fs::Ext4, Fs::Xfs, Fs::Btrfs, Fs::Tmpfs] {
            let mount = crate::or_skip!(LoopMount::new(fs, 64));
            let path = mount.path().to_owned();
            Tree::at(&path).file("a/b", b"content");
            let mounts = || fs::read_to_string("/proc/self/mounts").unwrap();
            let line = format!(" {} {} ", path.display(), fs.name());
            assert!(mounts().contains(&line));
            // An open file must not prevent the unmounting.
            let _open = File::open(path.join("a/b")).unwrap();
            drop(mount);
            assert!(!mounts().contains(&line));
            assert!(!path.exists());
        }
    }
}
