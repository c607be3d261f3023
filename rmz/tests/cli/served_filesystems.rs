//! Removals on filesystems that programs serve by FUSE. Each has limits and habits of its own, and the result is
//! that of GNU rm: the same tree, the same messages and the same status.

use std::process::Command;

use testkit::{
    or_skip,
    probe::Program,
    snapshot::Attributes,
    tree::{Scratch, Tree},
};

use crate::support::RM;

/// Builds a tree with more entries than one request lists.
fn build(tree: &Tree) {
    for number in 0..300 {
        tree.plant(format!("s/many/a-file-with-a-long-name-{number}="));
    }
    tree.plant("s/a/b/content=content %400 s/twin==s/a/b/content")
        .file("s/name with spaces", "")
        .plant("s/caf\u{e9}= s/empty-dir/ s/pipe<fifo> s/socket<socket> s/a/b %500");
}

fn build_with_links(tree: &Tree) {
    build(tree);
    tree.plant("s/link->a s/dangling->nowhere");
}

/// Compares removals of as much of the tree as the filesystem can store.
#[track_caller]
fn compare(program: Program, build: fn(&Tree)) {
    let mount = or_skip!(program.mount(&[]));
    let local = Scratch::new();
    build(&Tree::at(local.path()));
    let source = local.at("s");
    let copy = |tree: &Tree| {
        // The status is that of a failure if there are entries that the filesystem cannot store.
        let copied = Command::new("cp")
            .arg("-r")
            .args([&source, tree.path()])
            .output();
        copied.expect("cp runs");
        assert!(tree.path().join("s/many").is_dir());
    };
    // Not every program can list extended attributes.
    let attributes = Attributes::CONTENT | Attributes::MODE;
    let parity = |args: &[&str]| {
        let parity = RM.parity().args(args).on(&mount);
        parity.attributes(attributes).check(copy);
    };
    parity(&["-v", "s"]);
    parity(&["s/many", "s/missing", "s/a/b/content"]);
    parity(&["-f", "s/a", "s/link", "s/pipe", "s/missing"]);
    parity(&["--one-file-system", "$PWD/s"]);
}

#[test]
#[ignore = "slow"]
fn removals_on_bindfs_are_those_of_gnu() {
    compare(Program::Bindfs, build_with_links);
}

#[test]
#[ignore = "slow"]
fn removals_on_mergerfs_are_those_of_gnu() {
    compare(Program::Mergerfs, build_with_links);
}

#[test]
#[ignore = "slow"]
fn removals_on_unionfs_are_those_of_gnu() {
    compare(Program::Unionfs, build_with_links);
}

#[test]
#[ignore = "slow"]
fn removals_on_gocryptfs_are_those_of_gnu() {
    compare(Program::Gocryptfs, build_with_links);
}

#[test]
#[ignore = "slow"]
fn removals_on_sshfs_are_those_of_gnu() {
    // A dangling symlink has no times there, so it cannot be prepared.
    compare(Program::Sshfs, build);
}

#[test]
#[ignore = "slow"]
fn removals_on_rclone_are_those_of_gnu() {
    compare(Program::Rclone, build_with_links);
}

#[test]
#[ignore = "slow"]
fn removals_on_ntfs_are_those_of_gnu() {
    compare(Program::Ntfs3g, build_with_links);
}

#[test]
#[ignore = "slow"]
fn removals_on_exfat_are_those_of_gnu() {
    compare(Program::ExfatFuse, build_with_links);
}

#[test]
#[ignore = "slow"]
fn removals_on_juicefs_are_those_of_gnu() {
    compare(Program::Juicefs, build_with_links);
}
