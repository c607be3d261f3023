//! Trees in the lower layer of an overlay. Their directories change their times of birth when they are
//! copied up.

use crate::support::rmz;
use testkit::{
    or_skip,
    probe::{Layers, Overlay},
    tree::{Tree, chain},
};

#[track_caller]
fn removes_a_chain(depth: usize, descriptors: u64) {
    for layers in [Layers::Together, Layers::Apart] {
        let below = |image: &Tree| chain(image.path().join("d"), depth);
        let overlay = or_skip!(Overlay::new(layers, &[], below));
        rmz(overlay.path(), "d")
            .nofile_limit(descriptors)
            .output()
            .assert_success();
        assert!(!overlay.at("d").exists());
    }
}

#[test]
#[ignore = "slow"]
fn are_removed_with_few_descriptors_however_deep_they_are() {
    removes_a_chain(60, 20);
}

#[test]
#[ignore = "slow"]
fn are_removed_if_they_are_deeper_than_the_usual_number_of_descriptors() {
    removes_a_chain(1_200, 1_024);
}
