//! Trees that jobs work on.

use std::fs;
use std::path::Path;
use std::time::Duration;

use testkit::snapshot::Attributes;
use testkit::tree::Tree;

/// The attributes that `-a` keeps, except for the atime: reading changes that of the sources.
pub(crate) fn archived() -> Attributes {
    Attributes::ALL - Attributes::ATIME
}

/// A sequence of numbers that is the same in each run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// Builds 400 entries of all types below `root`, with hard links across directories, and various names, modes and times.
/// `fill` is the first byte of each file. The other things depend only on the seed.
pub(crate) fn build(tree: &Tree, root: &str, seed: u64, fill: u8) {
    let mut numbers = Numbers(seed);
    let mut dirs = vec![String::from(root)];
    let mut files: Vec<String> = Vec::new();
    tree.dir(root);
    for number in 0..400 {
        let dir = dirs[numbers.below(dirs.len() as u64) as usize].clone();
        let name = format!("{dir}/{number}");
        match numbers.below(10) {
            0..3 => {
                dirs.push(name.clone());
                tree.dir(&name);
            }
            3 => {
                tree.symlink(&name, "../0");
            }
            4 => {
                tree.fifo(&name);
                files.push(name.clone());
            }
            5 | 6 if !files.is_empty() => {
                let other = &files[numbers.below(files.len() as u64) as usize];
                tree.hardlink(other, &name);
            }
            7 => {
                let size_bytes = 1 + numbers.below(30_000);
                tree.file(format!("{name}\n'quoted'"), vec![fill; size_bytes as usize]);
            }
            _ => {
                tree.file(&name, format!("{}{number}", char::from(fill)));
                files.push(name.clone());
            }
        }
    }
    for name in dirs.iter().chain(&files) {
        let time = Duration::new(1_000_000_000 + numbers.below(1000), 5);
        let mode = [0o755, 0o700, 0o750, 0o640, 0o4711, 0o1777][numbers.below(6) as usize];
        tree.select(name).mode(mode).mtime(time);
    }
}

/// Counts the entries below a directory, which may change.
pub(crate) fn count(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let below = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => 1 + count(&entry.path()),
        _ => 1,
    });
    below.sum()
}
