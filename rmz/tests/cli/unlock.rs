//! With `--unlock`, directories of the user get `u+rwx` if that helps to remove them, and nothing else changes.

use std::{
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::Path,
};

use testkit::{
    or_skip,
    probe::{Fs, LoopMount, NOBODY, Skip, is_root},
    run::{Run, Status, Stream},
    skip,
    tree::{Scratch, Tree},
};

use crate::support::RMZ;

/// Id of a user other than root and the user that runs the command.
const OTHER: u32 = 1;

/// Gives a tree of an ordinary user a directory of this mode with entries.
fn theirs(mode: u32) -> Scratch {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    tree.file("d/odd/file", "").file("d/odd/sub/f", "");
    for dir in ["d/odd/sub", "d/odd", "d", ""] {
        tree.select(dir).owner(NOBODY, NOBODY);
    }
    tree.select("d/odd").mode(mode);
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
        if !is_root() {
            skip!("becoming another user takes root");
        }
    };
}

#[test]
fn directories_of_any_mode_are_removed() {
    needs_root!();
    for mode in [0o000, 0o111, 0o222, 0o333, 0o444, 0o555, 0o666] {
        for threads in ["--threads=1", "--threads=4"] {
            let scratch = theirs(mode);
            let outcome = unlock(&scratch, &["-v", threads, "d"]).output();
            outcome.assert_success();
            assert_eq!(outcome.stdout_text().lines().count(), 5, "{mode:o}");
            assert!(!scratch.path().join("d").exists(), "{mode:o}");
        }
    }
}

#[test]
fn what_cannot_be_removed_keeps_the_permissions_that_it_got() {
    needs_root!();
    for (locked, left) in [(0o000, 0o700), (0o1555, 0o1755)] {
        let scratch = theirs(0o755);
        let tree = Tree::at(scratch.path());
        tree.file("d/odd/foreign/f", "");
        tree.select("d/odd/foreign").owner(OTHER, OTHER);
        tree.select("d/odd").mode(locked);
        let outcome = unlock(&scratch, &["d"]).output();
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        let expected = "rmz: cannot remove 'd/odd/foreign/f': Permission denied\n";
        assert_eq!(outcome.stderr_text(), expected);
        let odd = scratch.path().join("d/odd");
        assert_eq!(mode(&odd), left);
        assert_eq!(mode(&odd.join("foreign")), 0o755);
        let names: Vec<_> = fs::read_dir(odd).unwrap().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }
}

/// As on MooseFS, which checks permissions when a directory is listed, and not when it is opened.
#[test]
fn a_directory_whose_listing_is_refused_is_removed() {
    needs_root!();
    or_skip!(Run::new(RMZ).arg("-f").calls());
    // The calls are those for `d` and for `d/odd`, which are also read to their ends.
    for when in ["1", "2", "3", "4"] {
        let scratch = theirs(0o700);
        let odd = if when < "3" { "d" } else { "d/odd" };
        Tree::at(scratch.path()).select(odd).mode(0o400);
        let inject = format!("inject=getdents64:error=EACCES:when={when}");
        let run = Run::new("strace").args(["-f", "-o", "/dev/null", "-e", &inject, RMZ]);
        let run = run.args(["--unlock", "--threads=1", "d"]);
        let outcome = run.current_dir(&scratch).uid(NOBODY).output();
        outcome.assert_success();
        assert!(!scratch.path().join("d").exists(), "{when}");
    }
}

#[test]
fn a_directory_that_may_not_be_listed_even_then_is_reported() {
    needs_root!();
    or_skip!(Run::new(RMZ).arg("-f").calls());
    let scratch = theirs(0o500);
    let inject = "inject=getdents64:error=EACCES:when=3+";
    let run = Run::new("strace").args(["-f", "-o", "/dev/null", "-e", inject, RMZ]);
    let run = run.args(["--unlock", "--threads=1", "d"]);
    let outcome = run.current_dir(&scratch).uid(NOBODY).output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let expected = "rmz: cannot remove 'd/odd': Permission denied\n";
    assert_eq!(outcome.stderr_text(), expected);
    assert_eq!(mode(&scratch.path().join("d/odd")), 0o700);
}

#[test]
fn nothing_above_an_operand_is_unlocked() {
    needs_root!();
    let scratch = theirs(0o555);
    let outcome = unlock(&scratch, &["d/odd/sub", "d/odd/file"]).output();
    let expected = "rmz: cannot remove 'd/odd/sub': Permission denied\n\
                    rmz: cannot remove 'd/odd/file': Permission denied\n";
    assert_eq!(outcome.stderr_text(), expected);
    assert_eq!(mode(&scratch.path().join("d/odd")), 0o555);
}

#[test]
fn the_user_is_asked_before_a_directory_is_unlocked() {
    needs_root!();
    let scratch = theirs(0o000);
    let refused = unlock(&scratch, &["-i", "d"]).stdin("y\nn\ny\n").output();
    let expected = "rmz: descend into directory 'd'? \
                    rmz: attempt removal of inaccessible directory 'd/odd'? \
                    rmz: remove directory 'd'? \
                    rmz: cannot remove 'd': Directory not empty\n";
    let stderr = refused.stderr_text().replace(RMZ, "rmz");
    assert_eq!(stderr, expected);
    let left = unlock(&scratch, &["-i", "d"]).stdin("y\ny\nn\n").output();
    assert_eq!(left.status, Status::Exit(0));
    assert!(scratch.path().join("d/odd/file").exists());
    let removed = unlock(&scratch, &["-i", "d"]).stdin("y\n".repeat(9));
    assert_eq!(removed.output().status, Status::Exit(0));
    assert!(!scratch.path().join("d").exists());
}

/// The test swaps the directory between its failure and the attempt to unlock it.
#[test]
fn a_directory_that_is_replaced_by_a_link_is_not_followed() {
    needs_root!();
    let scratch = theirs(0o000);
    let path = |name: &str| scratch.path().join(name);
    Tree::at(scratch.path())
        .file("precious/f", "")
        .select("precious")
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
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("d/a/f", "").file("d/b/f", "");
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
    Tree::at(ext4.path()).file("d/f", "").file("d/i", "");
    let chattr = |attribute| {
        let run = Run::new("chattr").args([attribute, "d/i"]);
        run.current_dir(&ext4).output().assert_success();
    };
    chattr("+i");
    let run = Run::new(RMZ).args(["--unlock", "d"]).current_dir(&ext4);
    let outcome = run.output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let expected = "rmz: cannot remove 'd/i': Operation not permitted\n";
    assert_eq!(outcome.stderr_text(), expected);
    chattr("-i");
    run.output().assert_success();
}
