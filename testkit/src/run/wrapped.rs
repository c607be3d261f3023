//! A command in another place or under another name.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use crate::{
    probe::run,
    tree::{Scratch, Tree},
};

/// A symlink to a program under another name, or a copy of the program.
#[derive(Debug)]
pub struct Link {
    dir: Scratch,
    name: PathBuf,
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
            name: name.into(),
        }
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.dir.path().join(&self.name)
    }
}

/// Copies a program to a place where every user can run it, unless every user can do so already.
pub(super) fn lend(program: &Path) -> Option<Link> {
    let open_to_all = |dir: &Path| {
        dir.metadata()
            .is_ok_and(|m| m.permissions().mode() & 1 != 0)
    };
    let (parent, name) = (program.parent()?, program.file_name()?);
    if parent.as_os_str().is_empty() || program.ancestors().all(open_to_all) {
        return None;
    }
    let lent = Link {
        dir: Scratch::new(),
        name: name.into(),
    };
    // Let another process copy the file. If this process had the copy open for writing, a child of another thread
    // could inherit that descriptor, and the copy would be "busy".
    run("cp", [program.as_os_str(), lent.path().as_os_str()]).ok()?;
    Tree::at(lent.dir.path()).select(name).mode(0o755);
    Some(lent)
}
