//! Copies on filesystems with allocation groups, and across mount points.

use fuc_engine::CopyOp;
use testkit::{
    probe::{Fs, LoopMount},
    snapshot::assert_same_tree,
    tree::{Tree, wide},
};

use crate::kit::{Limited as _, copy_with, exactly, plain};

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
