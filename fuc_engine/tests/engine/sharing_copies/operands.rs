//! Operands and dests that are special, or that some engines cannot reach.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use fuc_engine::{Cause, CopyOp, Dest, Preserve, Refusal};
use testkit::{
    snapshot::assert_same_tree,
    tree::{Scratch, Tree},
};

use super::{archive, assert_alike, build_linked, following};
use crate::hub::{Hub, slow, totals};
use crate::kit::{Failure, Limited as _, all_but_atime, exactly, paths, plain, told};
use crate::races::{BUILT, build};

/// Copies operands by one engine and by three. Both begin in a directory of their own that `prepare` has filled,
/// and return the failures.
fn operands_alike(
    prepare: impl Fn(&Path),
    operands: &[&str],
    target: &str,
    copy: &CopyOp,
) -> Vec<Failure> {
    let scratch = Scratch::in_memory();
    let roots = ["alone", "together"].map(|name| scratch.at(name));
    roots.iter().for_each(|root| prepare(root));
    let paths = |root: &Path| operands.iter().map(|it| root.join(it)).collect::<Vec<_>>();
    let into = |root: &Path| Dest::Into(root.join(target));
    let expected = told(|observer| copy.run(paths(&roots[0]), &into(&roots[0]), observer));
    let hub = Hub::new(3, || {});
    let (summaries, failures) = hub.copy(copy, &paths(&roots[1]), &into(&roots[1]));
    assert!(hub.stolen() > 0);
    let [alone, together] = roots.each_ref().map(PathBuf::as_path);
    assert_alike([alone, together], &expected, &summaries, &failures);
    assert_same_tree(alone, together, plain());
    failures
}

#[test]
fn a_directory_is_not_copied_into_itself() {
    let prepare = |root: &Path| {
        build(&root.join("s"));
        build(&root.join("s/5/sub/more"));
    };
    let failures = operands_alike(prepare, &["s"], "s/5/sub", &CopyOp::new().threads(1));
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].cause, Cause::Refused(Refusal::IntoItself));
}

#[test]
fn an_operand_that_contains_the_target_waits_for_all_engines() {
    let prepare = |root: &Path| {
        build(&root.join("a"));
        build(&root.join("b"));
        build(&root.join("around"));
        fs::create_dir(root.join("around/target")).unwrap();
    };
    let operands = ["a", "around", "b"];
    let copy = CopyOp::new().threads(1);
    let failures = operands_alike(prepare, &operands, "around/target", &copy);
    assert_eq!(failures.len(), 1);
}

#[test]
fn a_way_back_behind_a_link_is_reported_once() {
    let prepare = |root: &Path| {
        build(&root.join("around"));
        build(&root.join("around/s"));
        for number in 0..5 {
            let link = root.join(format!("around/s/{number}/sub/out"));
            symlink("../../..", link).unwrap();
        }
        fs::create_dir(root.join("target")).unwrap();
    };
    let copy = following()
        .with(|copy| copy.preserve = Preserve::default())
        .threads(1);
    let failures = operands_alike(prepare, &["around/s"], "target", &copy);
    assert_eq!(failures.len(), 5);
    let cyclic = Cause::Refused(Refusal::CyclicSymlink);
    assert!(failures.iter().all(|it| it.cause == cyclic));
}

#[test]
fn directories_on_the_way_to_a_dest_are_made_by_the_leader() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    build(&scratch.at("a/b/c"));
    build_linked(&scratch.at("a/b/c/linked"), 5, 5);
    tree.plant("a/b %711 @5000 target/");
    let target = scratch.at("target");
    let hub = Hub::new(3, || {});
    let copy = archive().with(|copy| copy.parents = true).threads(1);
    let operands = [scratch.at("a/./b/c")];
    let dest = Dest::Into(target.clone());
    let (_, failures) = hub.copy(&copy, &operands, &dest);
    assert_eq!(failures, []);
    hub.assert_shared();
    assert!(hub.entrusted() > 0);
    let made = target.join(scratch.path().strip_prefix("/").unwrap());
    assert_same_tree(scratch.at("a/b"), made.join("a/b"), all_but_atime());
}

#[test]
fn an_engine_that_reaches_nothing_gives_directories_back() {
    for (source, dest) in [("missing", "d"), ("s", "missing/d")] {
        let scratch = Scratch::in_memory();
        let at = |name: &str| scratch.at(name);
        build(&at("s"));
        let hub = Hub::new(2, || {});
        let observers = slow(2);
        let copy = CopyOp::new().threads(1);
        let summaries = hub.run(&observers, |engine, observer, desk| {
            let [source, dest] = [["s", "d"], [source, dest]][engine].map(at);
            let copy = copy.clone().shared_by(desk, desk.role());
            copy.run(paths([source]), &exactly(dest), observer)
        });
        assert_eq!(totals(&summaries), (BUILT, 0));
        assert_eq!(summaries[1].entries, 0);
        assert!(hub.not_reached() > 0);
        assert_same_tree(at("s"), at("d"), plain());
    }
}

#[test]
fn an_engine_whose_target_is_missing_ends_with_the_others() {
    let scratch = Scratch::in_memory();
    let at = |name: &str| scratch.at(name);
    build(&at("s"));
    fs::create_dir(at("target")).unwrap();
    for missing_at in [0, 1] {
        let hub = Hub::new(2, || {});
        let observers = slow(2);
        let copy = CopyOp::new().threads(1);
        let summaries = hub.run(&observers, |engine, observer, desk| {
            let target = if engine == missing_at {
                "missing"
            } else {
                "target"
            };
            let copy = copy.clone().shared_by(desk, desk.role());
            copy.run(paths([at("s")]), &Dest::Into(at(target)), observer)
        });
        let (entries, failed) = [(0, 1), (BUILT, 0)][missing_at];
        assert_eq!(totals(&summaries), (entries, failed));
        assert_eq!(summaries[1].entries + summaries[1].failures, 0);
        if missing_at == 1 {
            assert!(hub.not_reached() > 0);
            assert_same_tree(at("s"), at("target/s"), plain());
        }
    }
}
