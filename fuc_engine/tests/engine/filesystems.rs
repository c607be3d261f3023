//! Copies on filesystems with allocation groups, and across mount points.

use fuc_engine::CopyOp;
use testkit::{
    probe::{Fs, LoopMount},
    snapshot::{Snapshot, assert_same_tree},
    tree::{Tree, wide},
};

use crate::kit::{Limited as _, Told, copy, copy_with, exactly, plain};

/// XFS has few allocation groups. So a worker puts some of these many directories off, because another worker is in their
/// group.
#[test]
#[ignore = "slow"]
fn nested_directories_within_xfs_by_many_workers() {
    let place = testkit::or_skip!(LoopMount::new(Fs::Xfs, 300));
    let tree = Tree::at(place.at("s"));
    for name in 0..600 {
        let parents = [name / 100, name / 10].map(|parent| parent.to_string());
        tree.file(format!("{}/{}/{name}/f", parents[0], parents[1]), "content");
    }
    wide(tree.path().join("0"), 3_000);
    for number in [2, 8] {
        let dest = place.at(number.to_string());
        let told = copy_with(
            CopyOp::new().threads(number),
            [tree.path()],
            &exactly(&dest),
        );
        assert_eq!(told.failures, []);
        assert_same_tree(tree.path(), &dest, plain());
    }
}

#[test]
fn a_filesystem_mounted_in_a_tree_is_copied_with_it() {
    let outer = testkit::or_skip!(LoopMount::new(Fs::Tmpfs, 4));
    let inner = testkit::or_skip!(LoopMount::new(Fs::Ext4, 8));
    let tree = Tree::at(outer.at("s"));
    tree.plant("point/ f=1");
    let point = tree.path().join("point");
    let mount = |verb: &str, args: &[&std::path::Path]| {
        let status = std::process::Command::new(verb).args(args).status();
        status.is_ok_and(|status| status.success())
    };
    if !mount("mount", &["--bind".as_ref(), inner.path(), &point]) {
        testkit::skip!("no bind mounts");
    }
    // The same inode number on two devices must not pass for one directory.
    Tree::at(&inner).plant("a/b=2 point/point/");
    let dest = outer.at("d");
    let told = copy(tree.path(), &dest);
    let before = Snapshot::of(tree.path(), plain());
    let difference = before.diff(&Snapshot::of(&dest, plain()));
    assert!(mount("umount", &[&point]));
    assert_eq!(told, Told::complete(before.len(), 2));
    assert_eq!(difference, "");
}
