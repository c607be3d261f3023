//! Names of one file that different engines meet.

use std::{fs, os::unix::fs::MetadataExt};

use fuc_engine::{Backup, Dest, Refusal, Replace};
use testkit::{
    snapshot::{Attributes, Snapshot, assert_same_tree},
    tree::{Scratch, Tree, remove_for_sure},
};

use super::{Twins, archive, build_linked, following};
use crate::hub::{Hub, failures, slow, totals};
use crate::kit::{Failure, Limited as _, all_but_atime, entries_of, exactly, paths};
use crate::races::build;

#[test]
fn files_with_names_in_many_directories_stay_one_file() {
    for threads in [1, 4] {
        let twins = Twins::new();
        build_linked(&twins.source(), 15, 80);
        let tree = Tree::at(twins.source());
        tree.plant("0/link->nowhere 0/fifo<fifo>");
        for directory in 1..15 {
            tree.plant(format!("{directory}/link==0/link {directory}/fifo==0/fifo"));
        }
        let (hub, summaries) = twins.copy_alike(4, &archive().threads(threads), all_but_atime());
        assert_same_tree(tree.path(), &twins.dests()[1], all_but_atime());
        assert!(hub.entrusted() > 0);
        assert_eq!(hub.not_reached(), 0);
        for summary in summaries {
            assert!(summary.hard_links > 100, "{summary:?}");
        }
    }
}

#[test]
fn names_of_one_directory_travel_together() {
    let twins = Twins::new();
    build_linked(&twins.source(), 4, 600);
    let hub = Hub::new(2, || {}).with_home(1);
    let summaries = twins.assert_alike(&hub, &archive().threads(1), all_but_atime());
    assert_eq!((summaries[0].files, summaries[0].hard_links), (0, 0));
    assert_eq!((summaries[1].files, summaries[1].hard_links), (600, 1_800));
    // The home may have stolen names, but not all of them.
    assert!((4..=400).contains(&hub.entrusted()), "{}", hub.entrusted());
}

#[test]
fn followed_links_to_one_file_stay_one_file() {
    for home in [None, Some(0), Some(1)] {
        let twins = Twins::new();
        let tree = Tree::at(twins.source());
        for file in 0..20 {
            tree.plant(format!("0/{file}='content {file}'"));
            for directory in 1..20 {
                tree.plant(format!("{directory}/{file}->../0/{file}"));
            }
        }
        tree.plant("to-directory->0");
        let mut hub = Hub::new(3, || {});
        if let Some(home) = home {
            hub = hub.with_home(home);
        }
        let summaries = twins.assert_alike(&hub, &following().threads(1), all_but_atime());
        let files: u64 = summaries.iter().map(|it| it.files).sum();
        assert_eq!(files, 20);
        assert!(hub.entrusted() > 0);
    }
}

#[test]
fn dests_of_linked_files_are_backed_up_once() {
    for backup in [Backup::Simple, Backup::Numbered] {
        let twins = Twins::new();
        build_linked(&twins.source(), 10, 20);
        for dest in twins.dests() {
            let tree = Tree::at(&dest);
            for directory in 0..10 {
                (0..20).for_each(|file| {
                    tree.plant(format!("{directory}/{file}='old {directory}'"));
                });
            }
        }
        let copy = archive()
            .threads(2)
            .with(|copy| copy.rules.backup = Some(backup));
        let (hub, _) = twins.copy_alike(3, &copy, all_but_atime() - Attributes::MTIME);
        assert!(hub.entrusted() > 0);
        let names = entries_of(&twins.dests()[1]);
        assert_eq!(names, 1 + 10 * (1 + 2 * 20));
    }
}

#[test]
fn rules_about_dests_hold_for_linked_files() {
    for replace in [Replace::Older, Replace::Changed, Replace::None] {
        let twins = Twins::new();
        build_linked(&twins.source(), 10, 20);
        build(&twins.source().join("more"));
        let copy = archive()
            .threads(1)
            .with(|copy| copy.rules.replace = replace);
        let (hub, _) = twins.copy_alike(3, &copy, all_but_atime());
        assert!(hub.entrusted() > 0);
        // Once more, everything is there.
        let dests = twins.dests();
        let before = Snapshot::of(&dests[1], Attributes::ALL - Attributes::ATIME);
        let (hub, summaries) = twins.copy_alike(3, &copy, all_but_atime());
        let files: u64 = summaries.iter().map(|it| it.files).sum();
        assert_eq!(files, 0);
        assert!(hub.entrusted() > 0);
        let after = Snapshot::of(&dests[1], Attributes::ALL - Attributes::ATIME);
        assert_eq!(before.diff(&after), "");
    }
}

#[test]
fn a_linked_file_that_is_an_operand_is_linked_if_the_leader_is_its_home() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    tree.plant("file=content target/");
    build_linked(&scratch.at("s"), 20, 5);
    tree.plant("s/9/file==file s/19/file==file");
    let operands = ["file", "s"].map(|name| scratch.at(name));
    for home in [0, 1] {
        let target = scratch.at("target");
        let hub = Hub::new(2, || {}).with_home(home);
        let dest = Dest::Into(target.clone());
        let (_, failures) = hub.copy(&archive().threads(1), &operands, &dest);
        if home == 0 {
            assert_eq!(failures, []);
            assert_eq!(fs::metadata(target.join("file")).unwrap().nlink(), 3);
        } else {
            let lost = Failure::refused(Refusal::HomeNotReached, target.join("file"));
            assert_eq!(failures, [lost.and(&operands[0])]);
            assert!(!target.join("file").exists());
            assert_eq!(fs::metadata(target.join("s/9/file")).unwrap().nlink(), 2);
        }
        assert_eq!(fs::metadata(target.join("s/3/4")).unwrap().nlink(), 20);
        assert!(hub.entrusted() + hub.stolen() > 0);
        remove_for_sure(target).unwrap();
        tree.dir("target");
    }
}

#[test]
fn linked_files_fail_if_their_home_cannot_reach_them() {
    let scratch = Scratch::in_memory();
    let at = |name: &str| scratch.at(name);
    build_linked(&at("s"), 10, 3);
    fs::write(at("s/alone"), "has one name").unwrap();
    let hub = Hub::new(2, || {}).with_home(1);
    let observers = slow(2);
    let copy = archive().threads(1);
    let summaries = hub.run(&observers, |engine, observer, desk| {
        let source = at(["s", "missing"][engine]);
        let copy = copy.clone().shared_by(desk, desk.role());
        copy.run(paths([source]), &exactly(at("d")), observer)
    });
    assert_eq!(totals(&summaries), (1 + 10 + 1, 30));
    let names = (0..10).flat_map(|directory| (0..3).map(move |file| format!("{directory}/{file}")));
    let expected = names.map(|name| {
        let dest = at("d").join(&name);
        Failure::refused(Refusal::HomeNotReached, dest).and(at("s").join(&name))
    });
    assert_eq!(failures(observers), expected.collect::<Vec<_>>());
    assert_eq!(entries_of(at("d")), 12);
    assert!(hub.entrusted() > 0);
}
