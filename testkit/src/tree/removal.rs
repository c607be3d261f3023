//! Cleans up after a test: small trees here, because most trees are small and a process costs more than they do, and all
//! others by GNU rm, which copes with any depth and mode.

use std::{ffi::OsStr, fs, io, path::Path};

use crate::probe::{Skip, run};

/// Trees with more levels are left to rm, because each level takes a descriptor and a part of the stack.
const MOST_LEVELS: usize = 16;

/// Deletes the entry at `path`: a file, a symlink (not its target), or a directory of any depth and mode. A
/// missing `path` is not an error.
///
/// # Errors
/// If rm fails: at an entry that is a mount point or that belongs to another user. Other entries may be deleted.
pub fn remove_for_sure(path: impl AsRef<Path>) -> io::Result<()> {
    if remove_shallow(path.as_ref(), MOST_LEVELS).is_ok() {
        return Ok(());
    }
    let path = path.as_ref().as_os_str();
    let on_path = |program, options: [&str; 2]| {
        let options = options.map(OsStr::new).into_iter();
        run(program, options.chain([path]))
    };
    let remove = || on_path("rm", ["-rf", "--"]);
    remove()
        .or_else(|_| {
            // Only root can list and change directories of any mode.
            let _ = on_path("chmod", ["-R", "u+rwx"]);
            remove()
        })
        .map_err(|Skip(reason)| io::Error::other(reason))
}

/// Deletes an entry that has at most so many levels below it. A missing one is not an error.
fn remove_shallow(path: &Path, levels: usize) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::IsADirectory && levels > 0 => {}
        done => return done,
    }
    for entry in fs::read_dir(path)? {
        remove_shallow(&entry?.path(), levels - 1)?;
    }
    fs::remove_dir(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Scratch, Tree, chain};

    #[test]
    fn a_chain_of_10_000_levels_goes() {
        let scratch = Scratch::in_memory();
        let deep = scratch.path().join("deep");
        chain(&deep, 10_000);
        remove_for_sure(&deep).unwrap();
        assert!(!deep.exists());
    }

    #[test]
    fn modes_do_not_matter() {
        let scratch = Scratch::new();
        let locked = scratch.path().join("locked");
        Tree::at(&locked)
            .file("a/b/c", "")
            .mode(0)
            .select("a/b")
            .mode(0)
            .select("a")
            .mode(0o100)
            .select("")
            .mode(0);
        remove_for_sure(&locked).unwrap();
        assert!(!locked.exists());
    }

    #[test]
    fn symlinks_are_removed_and_not_followed() {
        let scratch = Scratch::new();
        Tree::at(scratch.path())
            .file("kept/f", "")
            .symlink("gone/l", "../kept")
            .symlink("l", "kept");
        remove_for_sure(scratch.path().join("gone")).unwrap();
        remove_for_sure(scratch.path().join("l")).unwrap();
        assert!(scratch.path().join("kept/f").exists());
        assert!(scratch.path().join("l").symlink_metadata().is_err());
    }
}
