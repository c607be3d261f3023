//! Filesystems of several kinds, made in image files and mounted.

use std::{
    ffi::OsStr,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use super::{Skip, find_program, is_root};
use crate::tree::Scratch;

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
    fn facts(self) -> (&'static str, u64, &'static [&'static str]) {
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
    // Fields are dropped in this order, so the filesystem is unmounted before its image is deleted.
    mounted: Mounted,
    image: Option<Scratch>,
    fs: Fs,
}

#[derive(Debug)]
pub(super) struct Mounted {
    point: Scratch,
}

impl LoopMount {
    /// Makes and mounts a filesystem of `size_mib`, or of the smallest size that its `mkfs` accepts. The image
    /// is sparse, so an empty filesystem takes little room.
    ///
    /// # Errors
    /// Fails without root, if a program is missing, or if the kernel refuses.
    pub fn new(fs: Fs, size_mib: u64) -> Result<Self, Skip> {
        Self::with_options(fs, size_mib, &[])
    }

    /// Does the same as [`new`](Self::new), with more options for `mkfs`. A filesystem in memory ignores them.
    ///
    /// # Errors
    /// Fails as [`new`](Self::new) does, or if `mkfs` refuses the options.
    pub fn with_options(fs: Fs, size_mib: u64, options: &[&str]) -> Result<Self, Skip> {
        if !is_root() {
            return Err(Skip(format!("mounting {} takes root", fs.name())));
        }
        let size_mib = size_mib.max(fs.facts().1);
        let point = Scratch::new();
        let (image, mounted) = match fs {
            Fs::Tmpfs => {
                let size = format!("size={size_mib}m,mode=755");
                let mounted = Mounted::new(point, &["-t", "tmpfs", "-o", &size], "tmpfs".as_ref())?;
                (None, mounted)
            }
            Fs::Ext4 | Fs::Xfs | Fs::Btrfs => {
                let image = Scratch::new();
                make_image(fs, size_mib, options, &image_in(&image))?;
                let mounted = mount_image(fs, point, &image)?;
                (Some(image), mounted)
            }
        };
        // mke2fs makes this directory, which no test expects.
        let _ = fs::remove_dir(mounted.point.path().join("lost+found"));
        Ok(Self { mounted, image, fs })
    }

    /// Returns the path of the image. Returns `None` for a filesystem in memory.
    #[must_use]
    pub fn image(&self) -> Option<PathBuf> {
        self.image.as_ref().map(image_in)
    }

    /// Returns the filesystem as it is after a power cut at this moment. What was not yet written to the
    /// disk is lost. The mount point changes.
    ///
    /// # Errors
    /// Fails if the filesystem is in memory, or cannot be mounted again.
    pub fn after_power_cut(self) -> Result<Self, Skip> {
        let Self { mounted, image, fs } = self;
        let image = image.ok_or_else(|| Skip(format!("{} loses everything", fs.name())))?;
        let copy = Scratch::new();
        // The kernel's cache for the image is the disk: the copy has what the filesystem has written.
        let files = [image_in(&image), image_in(&copy)];
        let sparse = OsStr::new("--sparse=always");
        run("cp", [sparse, files[0].as_os_str(), files[1].as_os_str()])?;
        // Two filesystems with one UUID cannot be mounted at the same time.
        drop(mounted);
        Ok(Self {
            mounted: mount_image(fs, Scratch::new(), &copy)?,
            image: Some(copy),
            fs,
        })
    }

    /// Returns the mount point, at first an empty directory of mode 755.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.mounted.path()
    }
}

impl AsRef<Path> for LoopMount {
    fn as_ref(&self) -> &Path {
        self.path()
    }
}

impl Mounted {
    pub(super) fn new(point: Scratch, options: &[&str], device: &OsStr) -> Result<Self, Skip> {
        let point_path = point.path().as_os_str();
        let options = options.iter().map(OsStr::new);
        run("mount", options.chain([device, point_path]))?;
        Ok(Self::at(point))
    }

    /// Takes over what is mounted at `point`.
    pub(super) fn at(point: Scratch) -> Self {
        Self { point }
    }

    pub(super) fn path(&self) -> &Path {
        self.point.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let point = self.point.path().as_os_str();
        // A failed test may have left a file open there. Then detach the filesystem; the kernel unmounts it
        // when the file is closed. If this fails too, the removal of the mount point reports it.
        if run("umount", [point]).is_err() {
            let _ = run("umount", [OsStr::new("-l"), point]);
        }
    }
}

fn image_in(dir: &Scratch) -> PathBuf {
    dir.path().join("image")
}

fn mount_image(fs: Fs, point: Scratch, image: &Scratch) -> Result<Mounted, Skip> {
    let options = ["-t", fs.name(), "-o", "loop"];
    Mounted::new(point, &options, image_in(image).as_os_str())
}

fn make_image(fs: Fs, size_mib: u64, options: &[&str], path: &Path) -> Result<(), Skip> {
    File::create(path)
        .and_then(|file| file.set_len(size_mib << 20))
        .map_err(|e| Skip(format!("no image of {size_mib} MiB: {e}")))?;
    let mkfs = format!("mkfs.{}", fs.name());
    let options = fs.facts().2.iter().chain(options).map(OsStr::new);
    run(&mkfs, options.chain([path.as_os_str()]))
}

pub(super) fn run<'a>(
    program: &str,
    args: impl IntoIterator<Item = &'a OsStr>,
) -> Result<(), Skip> {
    let found = find_program(program).ok_or_else(|| Skip(format!("there is no {program}")))?;
    match Command::new(found).args(args).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let complaint = String::from_utf8_lossy(&output.stderr);
            Err(Skip(format!("{program} refuses: {}", complaint.trim())))
        }
        Err(e) => Err(Skip(format!("{program} does not run: {e}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn mounts_and_unmounts(fs: Fs) {
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

    #[test]
    fn ext4_mounts_and_unmounts() {
        mounts_and_unmounts(Fs::Ext4);
    }

    #[test]
    fn xfs_mounts_and_unmounts() {
        mounts_and_unmounts(Fs::Xfs);
    }

    #[test]
    fn btrfs_mounts_and_unmounts() {
        mounts_and_unmounts(Fs::Btrfs);
    }

    #[test]
    fn tmpfs_mounts_and_unmounts() {
        mounts_and_unmounts(Fs::Tmpfs);
    }
}
