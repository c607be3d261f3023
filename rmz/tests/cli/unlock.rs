//! Names that only permissions of the user's own making protect are removed with `--unlock`, and nothing else changes.

use std::{
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::Path,
    process::Command,
};

use testkit::{
    or_skip,
    probe::{Fs, LoopMount, NOBODY, Skip, has_program, is_root},
    run::{Outcome, Run, Status, Stream},
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
fn what_cannot_be_removed_is_locked_again() {
    needs_root!();
    for locked in [0o000, 0o1555] {
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
        assert_eq!(mode(&odd), locked);
        let names: Vec<_> = fs::read_dir(odd).unwrap().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }
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
    assert_eq!(mode(&scratch.path().join("d/odd")), 0o000);
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

/// Runs a shell command in a directory, which must succeed. Returns what it prints.
fn sh(dir: impl AsRef<Path>, script: &str) -> String {
    let mut shell = Command::new("sh");
    let output = shell.args(["-ec", script]).current_dir(dir).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn attributes_are_taken_away_and_given_back() {
    let ext4 = or_skip!(LoopMount::new(Fs::Ext4, 8));
    let tree = Tree::at(ext4.path());
    tree.file("d/f", "")
        .file("d/i/f", "")
        .file("d/a/f", "")
        .dir("d/empty")
        .dir("d/kept/mount")
        .file("d/kept/f", "")
        .symlink("d/a/link", "../../other")
        .hardlink("d/f", "d/g")
        .hardlink("d/f", "other")
        .file("operand", "")
        .file("above/f", "");
    sh(&ext4, "chattr +i d/f d/i d/empty d/kept operand above");
    sh(&ext4, "chattr +a d/a/f d/a; chattr +i d");
    let outcome = Run::new("unshare")
        .args(["-m", "sh", "-c"])
        .arg("mount -t tmpfs none d/kept/mount && exec \"$@\"")
        .args(["sh", RMZ, "--unlock", "d", "operand", "above/f"])
        .current_dir(&ext4)
        .output();
    let expected = "rmz: cannot remove 'd/kept/mount': Device or resource busy\n\
                    rmz: cannot remove 'above/f': Operation not permitted\n";
    assert_eq!(outcome.stderr_text(), expected);
    let left = sh(&ext4, "find . -mindepth 1 | sort | tr '\\n' ' '");
    assert_eq!(
        left,
        "./above ./above/f ./d ./d/kept ./d/kept/mount ./other "
    );
    for name in ["above", "d", "d/kept", "other"] {
        let attributes = sh(&ext4, &format!("lsattr -d {name}"));
        assert!(attributes.starts_with("----i"), "{attributes}");
    }
    sh(&ext4, "chattr -i above d d/kept other");
}

#[test]
fn read_only_subvolumes_are_removed_and_their_parts_are_not() {
    if !has_program("btrfs") {
        skip!("there is no btrfs");
    }
    let btrfs = or_skip!(LoopMount::new(Fs::Btrfs, 0));
    let script = "
        btrfs subvolume create s && mkdir -p s/a/b && : >s/a/b/f && mkdir t
        for name in one two t/three; do btrfs subvolume snapshot -r s $name; done";
    sh(&btrfs, script);
    let run = |args: &[&str]| Run::new(RMZ).args(args).current_dir(&btrfs).output();
    let refused = |outcome: Outcome, path: &str| {
        let expected = format!("rmz: cannot remove '{path}': Read-only file system\n");
        assert_eq!(outcome.stderr_text(), expected);
    };
    refused(run(&["one"]), "one/a/b/f");
    refused(run(&["--unlock", "two/a"]), "two/a/b/f");
    let is_read_only = sh(&btrfs, "btrfs property get two ro");
    assert_eq!(is_read_only, "ro=true\n");
    run(&["--unlock", "one", "t"]).assert_success();
    assert!(!btrfs.path().join("one").exists() && !btrfs.path().join("t").exists());
}
