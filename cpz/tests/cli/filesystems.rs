//! Copies between all kinds of filesystems, with entries of all types.

use std::path::Path;

use testkit::{
    or_skip,
    probe::{Fs, Layers, LoopMount, Overlay, Skip},
    tree::{Tree, noise},
};

use crate::support::CP;

fn on(fs: Fs) -> Result<LoopMount, Skip> {
    LoopMount::new(fs, 300)
}

fn build(tree: &Tree) {
    tree.file("d/a/content", noise(10_000))
        .mode(0o751)
        .plant("d/a/empty= %400")
        .file("d/large", noise((5 << 20) + 3))
        .sparse("d/holes", 3 << 20, &[(1 << 20, &noise(1 << 16))])
        .sparse("d/hole", 1 << 20, &[])
        .file("d/twin", noise(100))
        .plant("d/other-twin==d/twin d/link->a/content d/dangling->nowhere d/pipe<fifo> d/socket<socket>")
        .char_device("d/null", 1, 3)
        .plant("d/empty-dir/ d/a %1555");
}

/// Compares copies by cpz and cp from `from` to each kind of filesystem.
#[track_caller]
fn copies_to_each(from: &Path) {
    let source = from.join("d").display().to_string();
    for fs in [Fs::Tmpfs, Fs::Ext4, Fs::Xfs, Fs::Btrfs] {
        let to = or_skip!(on(fs));
        copies(&source, to.path());
    }
    let overlay = or_skip!(Overlay::new(Layers::Together, &[], |_| {}));
    copies(&source, overlay.path());
    copies(&source, from);
}

#[track_caller]
fn copies(source: &str, to: &Path) {
    let parity = |args: &[&str]| CP.parity().args(args).on(to);
    parity(&[source, "new"]).check(|_| {});
    parity(&["-L", "--sparse=always", source, "old"]).check(|tree| {
        tree.file("old/d/large", noise(100_000))
            .plant("old/d/a/content=old %600");
    });
}

#[track_caller]
fn copies_from(fs: Fs) {
    let from = or_skip!(on(fs));
    build(&Tree::at(from.path()));
    copies_to_each(from.path());
}

#[test]
#[ignore = "slow"]
fn copies_from_tmpfs() {
    copies_from(Fs::Tmpfs);
}

#[test]
#[ignore = "slow"]
fn copies_from_ext4() {
    copies_from(Fs::Ext4);
}

#[test]
#[ignore = "slow"]
fn copies_from_xfs() {
    copies_from(Fs::Xfs);
}

#[test]
#[ignore = "slow"]
fn copies_from_btrfs() {
    copies_from(Fs::Btrfs);
}

#[test]
#[ignore = "slow"]
fn copies_from_an_overlay() {
    let from = or_skip!(Overlay::new(Layers::Together, &[], build));
    copies_to_each(from.path());
}

#[test]
#[ignore = "slow"]
fn copies_from_several_filesystems_in_one_run() {
    let places = [
        or_skip!(on(Fs::Tmpfs)),
        or_skip!(on(Fs::Ext4)),
        or_skip!(on(Fs::Xfs)),
        or_skip!(on(Fs::Btrfs)),
    ];
    let sources: Vec<String> = (0..)
        .zip(&places)
        .map(|(number, place)| {
            let tree = Tree::at(place.at(number.to_string()));
            build(&tree);
            tree.path().display().to_string()
        })
        .collect();
    let args = sources.iter().map(String::as_str).chain(["into"]);
    CP.check(args.collect::<Vec<_>>(), |tree| {
        tree.dir("into");
    });
}
