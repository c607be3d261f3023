//! Makes the trees, counts them, and finds the real ones.

use std::{
    env, fs,
    io::{self, Read as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};

use super::{place::Scratch, programs::Programs};
use crate::{
    host::command,
    what::cell::{Real, Spread, Tree},
};

/// Makes trees in the scratch directory.
pub(crate) struct Trees<'a> {
    pub(crate) scratch: &'a Scratch,
    pub(crate) programs: &'a Programs,
    pub(crate) node_modules: PathBuf,
}

/// The numbers of entries of a tree, and of the bytes in its files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) files: u64,
    pub(crate) dirs: u64,
    pub(crate) bytes: u64,
}

impl Trees<'_> {
    /// Makes `tree` at `dest`, which does not exist.
    pub(crate) fn make(&self, tree: &Tree, dest: &Path) -> Result<()> {
        match tree {
            Tree::Made {
                files,
                bytes,
                shape,
            } => {
                let mut ftzz = Command::new(self.program("ftzz"));
                // Without `--exact` ftzz may make six files if asked for ten.
                let size = ["-n", &files.to_string(), "-b", &bytes.to_string()];
                ftzz.args(["-q", "--exact"])
                    .args(size)
                    .args(*shape)
                    .arg(dest);
                command::run(&mut ftzz)?;
                // ftzz makes nothing at all if its random number of files is 0.
                ensure!(dest.is_dir(), "ftzz made no {}", dest.display());
                Ok(())
            }
            Tree::Spread(tree) => spread(tree, dest),
            Tree::Real(real) => self.copy(&self.find(*real)?, dest),
        }
    }

    /// Copies a tree with cpz, for speed.
    pub(crate) fn copy(&self, source: &Path, dest: &Path) -> Result<()> {
        command::run(
            Command::new(self.program("cpz"))
                .arg("-T")
                .args([source, dest]),
        )
        .map(drop)
    }

    /// Removes what a run left of a tree, if anything.
    pub(crate) fn clear(&self, dir: &Path) -> Result<()> {
        ensure!(
            dir.starts_with(self.scratch.path()),
            "BUG: {} is outside of the scratch directory",
            dir.display()
        );
        command::run(Command::new(self.program("rmz")).arg("-f").arg(dir)).map(drop)
    }

    fn program(&self, name: &str) -> PathBuf {
        command::find(name, std::slice::from_ref(&self.programs.bin)).unwrap_or_else(|| name.into())
    }

    /// Returns the path of a real tree; that of Linux is unpacked first.
    fn find(&self, real: Real) -> Result<PathBuf> {
        match real {
            Real::Linux => self.linux(),
            Real::Go => {
                newest(&["/usr/share"], "go-", "").context("no Go source: install golang-src")
            }
            Real::Registry => {
                let home = env::var_os("CARGO_HOME").map(PathBuf::from);
                let home =
                    home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
                let registry = home
                    .map(|home| home.join("registry/src"))
                    .filter(|dir| dir.is_dir());
                registry.context("no cargo registry: no registry/src in CARGO_HOME")
            }
            Real::NodeModules if self.node_modules.is_dir() => Ok(self.node_modules.clone()),
            Real::NodeModules => bail!(
                "there is no {}: benches/setup.sh makes one where there is npm, or name one with --node-modules",
                self.node_modules.display()
            ),
        }
    }

    fn linux(&self) -> Result<PathBuf> {
        let unpacked = self.scratch.path().join("linux");
        if !unpacked.is_dir() {
            let archive = newest(&["/usr/src"], "linux-source-", ".tar.xz");
            let archive = archive.context("no Linux source: install linux-source")?;
            let partial = self.scratch.subdir("linux-partial")?;
            command::run(
                Command::new("tar")
                    .arg("-C")
                    .args([&partial])
                    .arg("-xf")
                    .arg(&archive),
            )?;
            fs::rename(&partial, &unpacked)?;
        }
        Ok(unpacked)
    }
}

/// The size of each write to a file.
const WRITE_BYTES: usize = 1 << 20;

/// Makes the first file in the first directory, the second in the second one, and so on. A single directory is `dest`
/// itself.
fn spread(tree: &Spread, dest: &Path) -> Result<()> {
    let dir = |i: u64| match tree.dirs {
        1 => dest.to_owned(),
        _ => dest.join(format!("d{i:03}")),
    };
    for i in 0..tree.dirs {
        fs::create_dir_all(dir(i)).with_context(|| format!("cannot make {}", dir(i).display()))?;
    }
    for i in 0..tree.files {
        if let Some(bytes) = tree.large_file_bytes
            && i == tree.files / 2
        {
            fill(&dir(0).join(format!("f{i:05}-large")), bytes)?;
        }
        fill(
            &dir(i % tree.dirs).join(format!("f{i:05}")),
            tree.file_bytes,
        )?;
    }
    Ok(())
}

/// Makes a file of `bytes`, none of which is zero.
fn fill(file: &Path, bytes: u64) -> Result<()> {
    let write = || -> io::Result<()> {
        let mut writer = io::BufWriter::with_capacity(WRITE_BYTES, fs::File::create(file)?);
        io::copy(&mut io::repeat(b'x').take(bytes), &mut writer)?;
        writer.flush()
    };
    write().with_context(|| format!("cannot make {}", file.display()))
}

/// Returns the last by name of the entries of `dirs` that have this prefix and suffix.
fn newest(dirs: &[&str], prefix: &str, suffix: &str) -> Option<PathBuf> {
    let entries = dirs.iter().flat_map(fs::read_dir).flatten().flatten();
    let named = entries.filter(|entry| {
        let name = command::lossy(entry.file_name());
        name.starts_with(prefix) && name.ends_with(suffix)
    });
    named.map(|entry| entry.path()).max()
}

/// Counts a tree; if it does not exist, all numbers are zero.
pub(crate) fn count(dir: &Path) -> Result<Count> {
    let mut count = Count::default();
    let mut queue = Vec::new();
    if fs::symlink_metadata(dir).is_ok() {
        queue.push(dir.to_owned());
        count.dirs = 1;
    }
    while let Some(dir) = queue.pop() {
        for entry in fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))? {
            let entry = entry?;
            let meta = entry.metadata()?;
            if meta.is_dir() {
                count.dirs += 1;
                queue.push(entry.path());
            } else {
                count.files += 1;
                count.bytes += if meta.is_file() { meta.size() } else { 0 };
            }
        }
    }
    Ok(count)
}

/// Checks that a tree was removed.
pub(super) fn need_removed(dir: &Path) -> Result<()> {
    let left = count(dir)?;
    // rsync empties the directory but keeps it.
    ensure!(
        left.files == 0 && left.dirs <= 1,
        "it left {} files and {} directories",
        left.files,
        left.dirs
    );
    Ok(())
}

/// Checks that a copy has as many files, directories and bytes as the tree.
pub(super) fn need_copied(original: Count, copy: &Path) -> Result<()> {
    let made = count(copy)?;
    ensure!(
        made == original,
        "the copy has {made:?}, the tree {original:?}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns seven files of ten bytes in `dirs` directories.
    fn seven(dirs: u64) -> Spread {
        Spread {
            dirs,
            files: 7,
            file_bytes: 10,
            large_file_bytes: None,
        }
    }

    #[test]
    fn a_tree_is_spread_over_its_directories() {
        let scratch = tempfile::tempdir().unwrap();
        let [many, one] = ["many", "one"].map(|name| scratch.path().join(name));
        let expected = |dirs| Count {
            files: 7,
            dirs,
            bytes: 70,
        };
        spread(&seven(3), &many).unwrap();
        assert_eq!(count(&many).unwrap(), expected(4));
        assert_eq!(fs::read_dir(many.join("d000")).unwrap().count(), 3);
        spread(&seven(1), &one).unwrap();
        assert_eq!(count(&one).unwrap(), expected(1));
    }

    #[test]
    fn a_large_file_is_one_more_in_the_first_directory() {
        let scratch = tempfile::tempdir().unwrap();
        for dirs in [1, 3] {
            let root = scratch.path().join(dirs.to_string());
            let bytes = 2 * WRITE_BYTES as u64 + 1;
            let tree = Spread {
                large_file_bytes: Some(bytes),
                ..seven(dirs)
            };
            spread(&tree, &root).unwrap();
            let all = count(&root).unwrap();
            assert_eq!(
                (all.files, all.bytes),
                (8, 70 + bytes),
                "{dirs} directories"
            );
            let first = if dirs == 1 { root } else { root.join("d000") };
            let content = fs::read(first.join("f00003-large")).unwrap();
            assert_eq!(content.len() as u64, bytes, "{dirs} directories");
            assert!(
                content.iter().all(|&byte| byte == b'x'),
                "{dirs} directories"
            );
        }
    }

    #[test]
    fn a_tree_is_counted_with_its_root() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("t");
        assert_eq!(count(&root).unwrap(), Count::default());
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/f"), "four").unwrap();
        assert_eq!(
            count(&root).unwrap(),
            Count {
                files: 1,
                dirs: 3,
                bytes: 4
            }
        );
    }
}
