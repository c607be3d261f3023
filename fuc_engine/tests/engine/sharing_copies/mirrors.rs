//! Mirrors that several engines make together: each engine deletes in the directories that it has entered.

use fuc_engine::{CopyOp, Deletion};
use proptest::prelude::*;
use testkit::{
    snapshot::assert_same_tree,
    tree::{Tree, wide},
};

use super::{Twins, archive};
use crate::kit::{Limited as _, all_but_atime, plain};
use crate::properties::{config, tree};

fn mirror(copy: CopyOp<'static>) -> CopyOp<'static> {
    copy.with(|copy| copy.delete = Some(Deletion::default()))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn engines_make_random_trees_equal_to_their_source(
        new in tree(), old in tree(), engines in 2..5usize, threads in 1..3usize,
    ) {
        let twins = Twins::new();
        new.build(&twins.source());
        for dest in twins.dests() {
            std::fs::create_dir_all(dest.parent().unwrap()).unwrap();
            old.build(&dest);
        }
        twins.copy_alike(engines, &mirror(archive()).threads(threads), all_but_atime());
        assert_same_tree(twins.source(), &twins.dests()[1], all_but_atime());
    }
}

/// Makes a directory with many names, and one in its dest that the source does not have.
fn build(twins: &Twins) {
    wide(twins.source().join("wide"), 3_000);
    for dest in twins.dests() {
        Tree::at(dest).plant("wide/old= other/old=");
    }
}

#[test]
fn a_directory_that_is_shared_is_a_mirror_in_the_end() {
    let twins = Twins::new();
    build(&twins);
    let (hub, summaries) = twins.copy_alike(3, &mirror(CopyOp::new()).threads(2), plain());
    hub.assert_assisted(&summaries);
    assert_same_tree(twins.source(), &twins.dests()[1], plain());
    assert_eq!(
        summaries.iter().map(|summary| summary.deleted).sum::<u64>(),
        3
    );
}
