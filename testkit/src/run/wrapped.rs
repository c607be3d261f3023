//! A command under another name.

use std::path::{Path, PathBuf};

use crate::tree::{Scratch, Tree};

/// A symlink to a program under another name.
#[derive(Debug)]
pub struct Link {
    dir: Scratch,
    name: String,
}

impl Link {
    /// Makes a symlink `name`, in a directory of its own, to the program at `target`.
    ///
    /// # Panics
    /// Panics if it can't be made.
    #[must_use]
    #[track_caller]
    pub fn named(name: &str, target: impl AsRef<Path>) -> Self {
        let dir = Scratch::new();
        Tree::at(dir.path()).symlink(name, target);
        Self {
            dir,
            name: name.to_owned(),
        }
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.dir.path().join(&self.name)
    }
}
