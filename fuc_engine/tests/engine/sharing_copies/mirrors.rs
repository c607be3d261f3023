//! Mirrors that several engines make together: each engine deletes in the directories that it has entered.

use std::path::Path;

use fuc_engine::{CopyOp, Deletion, Dereference};
use proptest::prelude::*;
use testkit::snapshot::assert_same_tree;
use testkit::tree::{Tree, wide};

use super::{Twins, archive};
use crate::hub::Hub;
use crate::kit::{Limited as _, all_but_atime, plain};
use crate::properties::tree;

fn mirror(copy: CopyOp<'static>) -> CopyOp<'static> {
    copy.with(|copy| copy.delete = Some(Deletion::default()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn engines_make_random_trees_equal_to_their_source(
        new in tree(), old in tree(), engines in 2..4usize, threads in 1..3usize,
    ) {
        let twins = Twins::new();
        new.build(&twins.source());
        for dest in twins.dests() {
            std::fs::create_dir_all(dest.parent().unwrap()).unwrap();
            old.build(&dest);
        }
        let hub = Hub::new(engines, || {});
        twins.assert_alike(&hub, &mirror(archive()).threads(threads), all_but_atime());
        assert_same_tree(twins.source(), &twins.dests()[1], all_but_atime());
    }
}

/// Makes a directory with many names, and one in its dest that the source does not have.
fn build(twins: &Twins) {
    wide(twins.source().join("wide"), 3_000);
    for dest in twins.dests() {
        Tree::at(dest).file("wide/old", "").file("other/old", "");
    }
}

fn is_there(dest: &Path, name: &str) -> bool {
    dest.join(name).exists()
}

#[test]
fn a_directory_that_is_shared_is_a_mirror_in_the_end() {
    let twins = Twins::new();
    build(&twins);
    let hub = Hub::new(3, || {});
    let summaries = twins.assert_alike(&hub, &mirror(CopyOp::new()).threads(2), plain());
    hub.assert_assisted(&summaries);
    assert_same_tree(twins.source(), &twins.dests()[1], plain());
    assert_eq!(
        summaries.iter().map(|summary| summary.deleted).sum::<u64>(),
        3
    );
}

#[test]
fn an_entry_that_fails_at_any_engine_protects_its_directory() {
    let mut failed_elsewhere = false;
    for _ in 0..10 {
        let twins = Twins::new();
        // A tmpfs lists the oldest entry last, when another engine has half of the listing.
        Tree::at(twins.source()).symlink("wide/link", "missing");
        build(&twins);
        let hub = Hub::new(3, || {});
        let copy = mirror(CopyOp::new()).with(|copy| copy.dereference = Dereference::Always);
        let summaries = twins.assert_alike(&hub, &copy.threads(2), plain());
        failed_elsewhere |= summaries[1..].iter().any(|summary| summary.failures > 0);
        for dest in twins.dests() {
            assert!(is_there(&dest, "wide/old") && !is_there(&dest, "other"));
        }
    }
    assert!(failed_elsewhere);
}
