//! With `--unlock`, directories of the user get `u+rwx` if that helps to remove them, and nothing else changes.

use std::{
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::Path,
};

use testkit::{
    needs, or_skip,
    probe::{Fs, LoopMount, NOBODY, Skip},
    run::{Run, Stream},
    tree::{Scratch, Tree},
};

use crate::support::{RM, RMZ, rmz};

/// Gives a tree of an ordinary user a directory of this mode with entries.
fn theirs(mode: u32) -> Scratch {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.plant("d/odd/file= d/odd/sub/f=");
    for dir in ["d/odd/sub", "d/odd", "d", ""] {
        tree.select(dir).owner(NOBODY, NOBODY);
    }
    tree.plant("d/odd").mode(mode);
    scratch
}

fn unlock(scratch: &Scratch, args: &[&str]) -> Run {
    let run = Run::new(RMZ).arg("--unlock").args(args);
    run.current_dir(scratch).uid(NOBODY)
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

macro_rules! needs_root {
    () => {
        needs!(root);
    };
}

/// The test swaps the directory between its failure and the attempt to unlock it.
#[test]
fn a_directory_that_is_replaced_by_a_link_is_not_followed() {
    needs_root!();
    let scratch = theirs(0o000);
    let path = |name: &str| scratch.at(name);
    Tree::at(&scratch)
        .plant("precious/f= precious")
        .owner(NOBODY, NOBODY)
        .mode(0o000);
    let mut run = unlock(&scratch, &["-i", "d"]).start();
    run.write("y\n");
    run.wait_for(Stream::Stderr, "inaccessible directory");
    fs::rename(path("d/odd"), path("moved")).unwrap();
    symlink("../precious", path("d/odd")).unwrap();
    run.write("y\ny\ny\ny\n");
    run.finish();
    assert_eq!(mode(&path("precious")), 0o000);
    assert_eq!(mode(&path("moved")), 0o000);
    assert!(path("precious/f").exists());
}

/// Counts the system calls that remove a tree.
fn calls(args: &[&str]) -> Result<usize, Skip> {
    let scratch = Scratch::with("d/a/f= d/b/f=");
    let calls = Run::new(RMZ).args(args).arg("d").current_dir(&scratch);
    Ok(calls.calls()?.len())
}

#[test]
fn nothing_is_paid_if_nothing_fails() {
    let plain = or_skip!(calls(&["--threads=1"]));
    assert_eq!(or_skip!(calls(&["--threads=1", "--unlock"])), plain);
}

#[test]
fn attributes_of_files_stay_and_what_they_protect_is_reported() {
    let ext4 = or_skip!(LoopMount::new(Fs::Ext4, 8));
    Tree::at(ext4.path()).plant("d/f= d/i=");
    let chattr = |attribute| {
        let run = Run::new("chattr").args([attribute, "d/i"]);
        run.current_dir(&ext4).output().assert_success();
    };
    chattr("+i");
    let run = rmz(&ext4, "--unlock d");
    let outcome = run.fails();
    let expected = "rmz: cannot remove 'd/i': Operation not permitted\n";
    assert_eq!(outcome.stderr_text(), expected);
    chattr("-i");
    run.output().assert_success();
}

#[test]
fn directories_that_are_unlocked_or_not() {
    RM.rows(
        r"
        # Directories of any mode are removed.
        d/odd/file= d/odd/sub/f= d/odd %(0|111|222|333|444|555|666)
        user rmz --unlock --threads=(1|4) -v d
        > removed 'd/odd/file'
        > removed 'd/odd/sub/f'
        > removed directory 'd/odd/sub'
        > removed directory 'd/odd'
        > removed directory 'd'
        = -d
        # What cannot be removed keeps the permissions that it got.
        d/odd/file= d/odd/foreign/f= d/odd/foreign :1:1 d/odd %0
        user rmz --unlock d
        ! cannot remove 'd/odd/foreign/f': Permission denied
        = -d/odd/file d/odd %700
        d/odd/file= d/odd/foreign/f= d/odd/foreign :1:1 d/odd %1555
        user rmz --unlock d
        ! cannot remove 'd/odd/foreign/f': Permission denied
        = -d/odd/file d/odd %1755
        # A directory whose listing is refused is removed: MooseFS checks permissions when a directory is listed, and not
        # when it is opened. The calls are those for d and for d/odd, which are also read to their ends.
        d/odd/file= d/odd/sub/f= d %400
        user fault:getdents64:error=EACCES:when=(1|2) rmz --unlock --threads=1 d
        = -d
        d/odd/file= d/odd/sub/f= d/odd %400
        user fault:getdents64:error=EACCES:when=(3|4) rmz --unlock --threads=1 d
        = -d
        # One that may not be listed even then is reported.
        d/odd/file= d/odd %500
        user fault:getdents64:error=EACCES:when=3+ rmz --unlock --threads=1 d
        ! cannot remove 'd/odd': Permission denied
        = d/odd %700
        # Nothing above an operand is unlocked.
        d/odd/file= d/odd/sub/f= d/odd %555
        user rmz --unlock d/odd/sub d/odd/file
        ! cannot remove 'd/odd/sub': Permission denied
        ! cannot remove 'd/odd/file': Permission denied
        = -d/odd/sub/f
        # The user is asked before a directory is unlocked.
        d/odd/file= d/odd %0
        user rmz -i --unlock d << y n y
        ! descend into directory 'd'?
        ! attempt removal of inaccessible directory 'd/odd'?
        ! remove directory 'd'?
        ! cannot remove 'd': Directory not empty
        user rmz -i --unlock d << y y y y y y
        ! descend into directory 'd'?
        ! attempt removal of inaccessible directory 'd/odd'?
        ! descend into directory 'd/odd'?
        ! remove regular empty file 'd/odd/file'?
        ! remove directory 'd/odd'?
        ! remove directory 'd'?
        ? 0
        = -d",
    );
}
