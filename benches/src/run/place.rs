//! The places of the trees: new directories, and filesystems mounted in them. Nothing outside of them is ever deleted.

use std::{
    fs,
    path::{Component, Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use rustix::mount::{MountFlags, mount_remount};
use tempfile::TempDir;
use testkit::probe::{Fs, FuseMount, Habits, LoopMount, Skip, is_root};

use crate::host::machine;

/// The beginning of the names of the runner's own directories.
const PREFIX: &str = "fuc-benches-";

/// A directory of the runner's own, which is removed when it is dropped.
pub(crate) struct Scratch {
    dir: TempDir,
}

impl Scratch {
    /// Makes a new directory in `parent`.
    pub(crate) fn new(parent: &Path) -> Result<Self> {
        let dir = TempDir::with_prefix_in(PREFIX, parent);
        let context = || format!("cannot make a directory in {}", parent.display());
        Ok(Self {
            dir: dir.with_context(context)?,
        })
    }

    /// Returns `true` if a path is in such a directory.
    pub(super) fn holds(path: &Path) -> bool {
        let is_prefixed = |part: Component<'_>| {
            let part = part.as_os_str().to_string_lossy();
            part.starts_with(PREFIX)
        };
        path.parent()
            .is_some_and(|dir| dir.components().any(is_prefixed))
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Returns a directory in it, which is made if it does not exist.
    pub(crate) fn subdir(&self, name: &str) -> Result<PathBuf> {
        let dir = self.path().join(name);
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        Ok(dir)
    }

    /// Removes the directory.
    ///
    /// # Errors
    /// If something in it can't be removed: the message names the directory, which stays.
    pub(crate) fn remove(self) -> Result<()> {
        let path = self.path().to_owned();
        self.dir
            .close()
            .with_context(|| format!("cannot remove {}", path.display()))
    }
}

/// How long the kernel trusts names and attributes of a slow filesystem: as long as an NFS client trusts the attributes
/// of a file that has just changed, by default (`acregmin`).
const CLIENT_CACHES: Duration = Duration::from_secs(3);

/// The size of the image files; they are sparse.
const IMAGE_MIB: u64 = 4 << 10;

/// Mounts a new filesystem on a loop device.
pub(super) fn mount_image(scratch: &Scratch, filesystem: Fs) -> Result<LoopMount> {
    let mounted = LoopMount::new_in(scratch.path(), filesystem, IMAGE_MIB, &[]);
    mounted.map_err(|Skip(reason)| anyhow!(reason))
}

/// Mounts clients of a server that has its files in `stored`. They are fast until [`FuseMount::set_latency`] is called.
/// `bandwidth` is that of each client.
pub(super) fn serve(
    scratch: &Scratch,
    stored: &Path,
    clients: usize,
    bandwidth: Option<u64>,
) -> Result<Vec<FuseMount>> {
    let habits = Habits {
        client_caches: CLIENT_CACHES,
        bandwidth,
        ..Habits::default()
    };
    let client = |rank| {
        let dir = scratch.subdir(&format!("clients/{rank}"))?;
        let client = FuseMount::over(stored, &dir, habits.clone());
        client.map_err(|Skip(reason)| anyhow!(reason))
    };
    (0..clients).map(client).collect()
}

/// Makes the kernel forget the names and attributes that it knows by this client, and no others.
pub(super) fn forget(client: &FuseMount) -> Result<()> {
    // A remount that changes nothing drops all unused dentries, and FUSE keeps no inode without one.
    mount_remount(client.path(), MountFlags::empty(), c"").context("cannot remount")
}

/// Checks that there is room.
///
/// # Errors
/// If the filesystem of `dir` has less than `bytes` to give.
pub(super) fn need_space(dir: &Path, bytes: u64) -> Result<()> {
    let stat = rustix::fs::statvfs(dir)
        .with_context(|| format!("cannot ask for space in {}", dir.display()))?;
    let free = stat.f_bavail * stat.f_frsize;
    if free < bytes {
        bail!(
            "needs {:.1} GB in {}, which has {:.1}",
            bytes as f64 / 1e9,
            dir.display(),
            free as f64 / 1e9
        );
    }
    Ok(())
}

/// Writes back the dirty pages of the filesystem of `dir`, so that no run pays for the one before.
pub(super) fn write_back(dir: &Path) -> Result<()> {
    let opened = fs::File::open(dir)?;
    rustix::fs::syncfs(opened).with_context(|| format!("cannot sync {}", dir.display()))
}

/// Checks that cold caches can be measured in `dir`.
///
/// # Errors
/// If the user is not root, or if the filesystem is not ext4, to which the figures of other runs belong.
pub(super) fn need_cold(dir: &Path) -> Result<()> {
    let filesystem = machine::filesystem(dir)?;
    ensure!(filesystem == "ext2/ext3", "{filesystem} is not ext4");
    ensure!(is_root(), "dropping caches needs root");
    Ok(())
}

/// Drops the page cache, dentries and inodes.
pub(super) fn drop_caches() -> Result<()> {
    fs::write("/proc/sys/vm/drop_caches", "3").context("cannot drop caches")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_mounted_in_the_scratch_directory_and_forget_what_they_know() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let stored = scratch.subdir("stored").unwrap();
        if !is_root() {
            testkit::skip!("mounting takes root");
        }
        let made = mount_image(&scratch, Fs::Ext4);
        let served = serve(&scratch, &stored, 2, None);
        let (image, clients) = match made.and_then(|image| Ok((image, served?))) {
            Ok(mounted) => mounted,
            Err(reason) => testkit::skip!("{reason}"),
        };
        fs::write(clients[0].path().join("f"), "content").unwrap();
        for client in &clients {
            client.set_latency(Duration::from_millis(1));
            assert_eq!(fs::read(client.path().join("f")).unwrap(), b"content");
        }
        // A client trusts its cache until it forgets.
        let known = clients[1].path().join("f");
        assert!(known.exists());
        fs::remove_file(stored.join("f")).unwrap();
        assert!(known.exists());
        forget(&clients[1]).unwrap();
        assert!(!known.exists());
        for dir in [image.path(), clients[0].path(), clients[1].path()] {
            assert!(Scratch::holds(&dir.join("tree")));
            fs::write(dir.join("g"), "").unwrap();
        }
        drop((image, clients));
        scratch.remove().unwrap();
    }
}
