//! Source and dest are one file, and a flag decides what happens to the dest. `cp` copies if the source survives.

use testkit::{
    probe::{Fs, LoopMount, is_root},
    tree::Tree,
};

use crate::support::CP;

fn names_of_one_file(tree: &Tree) {
    tree.file("f", "f")
        .hardlink("f", "h")
        .symlink("s", "f")
        .symlink("s2", "s")
        .hardlink("s", "s3")
        .file("o", "o")
        .symlink("so", "o");
}

const PAIRS: [[&str; 2]; 11] = [
    ["f", "f"],
    ["f", "h"],
    ["f", "s"],
    ["s", "f"],
    ["s", "s2"],
    ["s2", "s"],
    ["s", "s"],
    ["f", "./f"],
    ["s", "s3"],
    ["so", "s"],
    ["s", "o"],
];

/// Compares cpz with cp twice: with links copied as links, and with links followed.
#[track_caller]
fn all_pairs(flags: &[&str]) {
    for pair in PAIRS {
        let args = || flags.iter().chain(&pair);
        println!("{:?}", args().collect::<Vec<_>>());
        CP.check(args(), names_of_one_file);
        CP.check_strict(args(), names_of_one_file);
    }
}

#[test]
fn with_a_backup() {
    all_pairs(&["-bv"]);
}

#[test]
fn with_a_numbered_backup() {
    all_pairs(&["--backup=t", "-v"]);
}

#[test]
fn with_a_backup_by_force() {
    all_pairs(&["-fbv"]);
}

#[test]
fn removed_first() {
    all_pairs(&["--remove-destination", "-v"]);
}

#[test]
fn removed_first_by_force() {
    all_pairs(&["--remove-destination", "-fv"]);
}

#[test]
fn updated() {
    all_pairs(&["-uv"]);
}

#[test]
fn updated_by_hard_links() {
    for flags in ["-luv", "-lufv", "-Pluv", "-Plufv", "-Plbuv"] {
        all_pairs(&[flags]);
    }
}

#[test]
fn not_clobbered() {
    all_pairs(&["-nv"]);
}

#[test]
fn asked_about_but_for_the_answer() {
    all_pairs(&["-uiv"]);
}

/// Compares cpz with cp on a tree in which `m` is another mount of `d`.
#[track_caller]
fn through_a_bind_mount(flags: &[&str]) {
    if !can_mount() {
        testkit::skip!("nothing can be mounted here");
    }
    let script = r#"mount --bind d m && "$@"; s=$?; umount m; exit $s"#;
    CP.parity()
        .in_script(script)
        .args(flags)
        .args(["d/f", "m/f"])
        .check(|tree| {
            tree.file("d/f", "content").dir("m");
        });
}

fn can_mount() -> bool {
    is_root() && LoopMount::new(Fs::Tmpfs, 1).is_ok()
}

#[test]
fn through_a_bind_mount_with_a_backup() {
    through_a_bind_mount(&["-bv"]);
    through_a_bind_mount(&["-fbv"]);
}

#[test]
fn through_a_bind_mount_removed_first() {
    through_a_bind_mount(&["--remove-destination", "-v"]);
}

#[test]
fn through_a_bind_mount_updated() {
    through_a_bind_mount(&["-uv"]);
    through_a_bind_mount(&["-nv"]);
}
