//! Makes the trees, counts them, and finds the real ones.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use super::{place::Scratch, programs::Programs};
use crate::{
    host::command,
    what::cell::{Spread, Tree},
};

/// Makes, copies and removes trees.
pub(super) struct Trees<'a> {
    pub(super) programs: &'a Programs,
    /// The directory into which `benches/setup.sh` has installed the peers and the real trees.
    pub(super) peers: PathBuf,
}

/// The numbers of entries of a tree, and of the bytes in its files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) files: u64,
    pub(super) dirs: u64,
    pub(super) bytes: u64,
}

impl Trees<'_> {
    /// Makes `tree` at `dest`, which does not exist.
    pub(super) fn make(&self, tree: &Tree, dest: &Path) -> Result<()> {
        match tree {
            Tree::Made {
                files,
                bytes,
                shape,
            } => {
                // Without `--exact` ftzz may make six files if asked for ten.
                let size = ["-n", &files.to_string(), "-b", &bytes.to_string()];
                let mut ftzz = self.programs.command("ftzz")?;
                ftzz.args(["-q", "--exact"]).args(size).args(*shape);
                command::run(ftzz.arg(dest))?;
                // ftzz makes nothing at all if its random number of files is 0.
                ensure!(dest.is_dir(), "ftzz made no {}", dest.display());
                Ok(())
            }
            Tree::Spread(tree) => spread(tree, dest),
            Tree::Real(name) => {
                // It may be a link to a tree of the system.
                let tree = self.peers.join("trees").join(name).canonicalize();
                let missing = || format!("no tree {name}: benches/setup.sh makes it");
                self.copy(&tree.with_context(missing)?, dest)
            }
        }
    }

    /// Copies a tree with cpz, for speed.
    pub(super) fn copy(&self, source: &Path, dest: &Path) -> Result<()> {
        let mut cpz = self.programs.command("cpz")?;
        command::run(cpz.arg("-T").args([source, dest])).map(drop)
    }

    /// Removes what a run left of a tree, if anything.
    pub(super) fn clear(&self, dir: &Path) -> Result<()> {
        ensure!(
            Scratch::holds(dir),
            "BUG: {} is not in a scratch directory",
            dir.display()
        );
        command::run(self.programs.command("rmz")?.arg("-f").arg(dir)).map(drop)
    }
}

/// The size of each write to a file.
const WRITE_BYTES: usize = 1 << 20;

/// Makes the first file in the first directory, the second in the second one, and so on. A single directory is `dest`
/// itself.
pub(crate) fn spread(tree: &Spread, dest: &Path) -> Result<()> {
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

/// Counts a tree; if it does not exist, all numbers are zero.
pub(super) fn count(dir: &Path) -> Result<Count> {
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

    #[test]
    fn a_tree_is_spread_over_its_directories() {
        let scratch = tempfile::tempdir().unwrap();
        let [many, one] = ["many", "one"].map(|name| scratch.path().join(name));
        let expected = |dirs| Count {
            files: 7,
            dirs,
            bytes: 70,
        };
        spread(&Spread::new(3, 7, 10), &many).unwrap();
        assert_eq!(count(&many).unwrap(), expected(4));
        assert_eq!(fs::read_dir(many.join("d000")).unwrap().count(), 3);
        spread(&Spread::new(1, 7, 10), &one).unwrap();
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
                ..Spread::new(dirs, 7, 10)
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
