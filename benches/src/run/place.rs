//! The place of the trees: a new directory, and filesystems mounted in it. Nothing outside of it is ever deleted.

use std::{
    fs,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use rustix::mount::{MountFlags, mount_remount};
use tempfile::TempDir;

use crate::{
    host::{command, machine},
    serve::CONTROL_NAME,
};

/// The runner's own directory, which is removed when it is dropped.
pub(crate) struct Scratch {
    dir: TempDir,
}

impl Scratch {
    /// Makes a new directory in `parent`, by default the directory of temporary files.
    pub(crate) fn new(parent: Option<&Path>) -> Result<Self> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
        let dir = TempDir::with_prefix_in("fuc-benches-", &parent);
        Ok(Self {
            dir: dir.with_context(|| format!("cannot make a directory in {}", parent.display()))?,
        })
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

/// A new filesystem, mounted in the scratch directory, which is unmounted when it is dropped.
pub(crate) struct Mount {
    dir: PathBuf,
    store: Store,
}

/// The place where a mounted filesystem has its data.
enum Store {
    Memory,
    Image(PathBuf),
    Server(Child),
}

/// The size of the image files; they are sparse.
const IMAGE_BYTES: u64 = 4 << 30;

impl Mount {
    pub(crate) fn new(scratch: &Scratch, filesystem: &str) -> Result<Self> {
        command::need_root("mounting")?;
        let dir = scratch.subdir("mount")?;
        let mut mount = Command::new("mount");
        if filesystem == "tmpfs" {
            command::run(mount.args(["-t", "tmpfs", "tmpfs"]).arg(&dir))?;
            return Ok(Self {
                dir,
                store: Store::Memory,
            });
        }
        let image = scratch.path().join("image");
        fs::File::create(&image)?
            .set_len(IMAGE_BYTES)
            .context("cannot make an image file")?;
        let made = command::run(
            Command::new(format!("mkfs.{filesystem}"))
                .arg("-q")
                .arg(&image),
        );
        let mounted =
            made.and_then(|_| command::run(mount.args(["-o", "loop"]).args([&image, &dir])));
        if let Err(error) = mounted {
            fs::remove_file(&image)?;
            return Err(error.context(format!("no {filesystem} on a loop device")));
        }
        Ok(Self {
            dir,
            store: Store::Image(image),
        })
    }

    /// Mounts a filesystem whose server can be slow. It is fast until [`set_latency`](Self::set_latency) is called.
    pub(crate) fn serve(scratch: &Scratch) -> Result<Self> {
        command::need_root("mounting")?;
        let dir = scratch.subdir("mount")?;
        let mut server = Command::new(std::env::current_exe()?);
        // Ctrl-C on a terminal reaches all processes, but the server is needed until it is unmounted.
        let mut server = server.process_group(0).arg("serve").arg(&dir).spawn()?;
        while !dir.join(CONTROL_NAME).exists() {
            if let Some(status) = server.try_wait()? {
                bail!("no slow filesystem: {status}");
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(Self {
            dir,
            store: Store::Server(server),
        })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Sets how late the server answers each request.
    pub(crate) fn set_latency(&self, latency: Duration) -> Result<()> {
        let control = self.dir.join(CONTROL_NAME);
        fs::write(control, latency.as_micros().to_string()).context("cannot set the latency")
    }

    /// Makes the kernel forget the names and attributes of this filesystem, and of no other one.
    pub(crate) fn forget(&self) -> Result<()> {
        // A remount that changes nothing drops all unused dentries, and FUSE keeps no inode without one.
        mount_remount(&self.dir, MountFlags::empty(), c"").context("cannot remount")
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // `command::run` would refuse to run this after an interrupt.
        let status = Command::new("umount").arg(&self.dir).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!(
                "cannot unmount {}: unmount it and remove it by hand",
                self.dir.display()
            );
            return;
        }
        match &mut self.store {
            Store::Memory => {}
            // If this fails, the image is removed with the scratch directory.
            Store::Image(image) => drop(fs::remove_file(image)),
            // The server ends after the unmount. A failure of its own was printed.
            Store::Server(server) => drop(server.wait()),
        }
    }
}

/// Checks that there is room.
///
/// # Errors
/// If the filesystem of `dir` has less than `bytes` to give.
pub(crate) fn need_space(dir: &Path, bytes: u64) -> Result<()> {
    let free = free_bytes(dir)?;
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

/// Returns how much an ordinary user may still write to the filesystem of `dir`.
pub(crate) fn free_bytes(dir: &Path) -> Result<u64> {
    let stat = rustix::fs::statvfs(dir)
        .with_context(|| format!("cannot ask for space in {}", dir.display()))?;
    Ok(stat.f_bavail * stat.f_frsize)
}

/// Writes back the dirty pages of the filesystem of `dir`, so that no run pays for the one before.
pub(crate) fn write_back(dir: &Path) -> Result<()> {
    let opened = fs::File::open(dir)?;
    rustix::fs::syncfs(opened).with_context(|| format!("cannot sync {}", dir.display()))
}

/// Checks that the caches of `dir` can be dropped.
///
/// # Errors
/// If the user is not root, or if the filesystem has no disk below its caches.
pub(crate) fn need_cold(dir: &Path) -> Result<()> {
    if machine::filesystem(dir)? == "tmpfs" {
        bail!("a tmpfs is nothing but cache");
    }
    command::need_root("dropping caches")?;
    drop_caches()
}

/// Drops the page cache, dentries and inodes.
pub(crate) fn drop_caches() -> Result<()> {
    fs::write("/proc/sys/vm/drop_caches", "3").context("cannot drop caches")
}
