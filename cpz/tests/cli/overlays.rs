//! Copies to overlays, the lower layer of which has the directories already. They change their
//! times of birth when they are copied up, and some files their numbers.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use testkit::{
    or_skip,
    probe::{Layers, Overlay, gnu},
    run::Run,
    snapshot::{Attributes, assert_same_tree},
    tree::{Scratch, Tree, chain},
};

use crate::support::CPZ;

/// Sets of mount options that change how directories and files are copied up.
const OPTIONS: [&[&str]; 6] = [
    &[],
    &["xino=off"],
    &["index=on"],
    &["redirect_dir=on", "metacopy=on"],
    &["index=on", "redirect_dir=on", "metacopy=on"],
    &["index=on", "nfs_export=on"],
];

/// Runs cp and cpz with `args`, each on an overlay with an image of `below`, and compares what they
/// leave. Does so for each kind of overlay.
#[track_caller]
fn check(args: &[&str], below: impl Fn(&Tree)) {
    let cp = or_skip!(gnu("cp"));
    for layers in [Layers::Together, Layers::Apart] {
        for options in OPTIONS {
            let gnu = or_skip!(Overlay::new(layers, options, &below));
            let ours = or_skip!(Overlay::new(layers, options, &below));
            let run = |program: &Path, threads: &[&str], overlay: &Overlay| {
                let run = Run::new(program).args(threads).args(args);
                let outcome = run.current_dir(overlay.path()).output();
                outcome.assert_success();
                assert_eq!(outcome.stderr_text(), "");
            };
            run(&cp, &[], &gnu);
            run(CPZ.as_ref(), &["--threads=1"], &ours);
            let kind = format!("{layers:?} {options:?}");
            assert_eq!(links(ours.path()), links(gnu.path()), "{kind}");
            assert_same_tree(gnu.path(), ours.path(), Attributes::CONTENT);
            // Copy again, over the complete copy.
            run(CPZ.as_ref(), &["--threads=4"], &ours);
            assert_eq!(links(ours.path()), links(gnu.path()), "{kind}");
        }
    }
}

/// Returns the names of the files below `dir`, with their numbers of links.
fn links(dir: &Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("a name in ASCII");
        let stat = entry.metadata().expect("a file");
        if stat.is_dir() {
            let below = links(&entry.path()).into_iter();
            found.extend(below.map(|(below, links)| (format!("{name}/{below}"), links)));
        } else {
            found.push((name, stat.nlink()));
        }
    }
    found.sort();
    found
}

/// A directory `d` with several names of each kind of file.
fn linked() -> (Scratch, String) {
    let source = Scratch::new();
    let tree = Tree::at(source.path());
    for name in ["one", "two"] {
        let first = format!("d/a/{name}");
        tree.file(&first, "new")
            .hardlink(&first, format!("d/b/{name}"))
            .hardlink(&first, format!("d/c/{name}"));
    }
    tree.plant("d/a/link->one d/b/link==d/a/link d/a/pipe<fifo> d/c/pipe==d/a/pipe");
    let d = source.at("d").display().to_string();
    (source, d)
}

fn directories(tree: &Tree) {
    tree.plant("d/a/ d/b/ d/c/");
}

#[test]
#[ignore = "slow"]
fn keep_links_between_directories_of_the_image() {
    let (_source, d) = linked();
    check(&["-a", &d, "."], directories);
}

#[test]
#[ignore = "slow"]
fn keep_links_where_the_image_has_files_of_the_same_names() {
    let (_source, d) = linked();
    check(&["-a", &d, "."], |image| {
        directories(image);
        image.plant(
            "d/a/one='an old one' d/b/one='another old one' d/c/two='an old one' d/b/two==d/c/two",
        );
    });
}

#[test]
#[ignore = "slow"]
fn keep_links_to_what_is_newer_in_the_image() {
    let source = Scratch::new();
    let tree = Tree::at(source.path());
    tree.plant("one=old @5000.0 two==one");
    let [one, two] = ["one", "two"].map(|name| source.at(name).display().to_string());
    check(&["-au", &one, &two, "."], |image| {
        image.plant("one=newer @6000.0");
    });
}

/// Nothing shows that both are one file. So the dest is written to without being emptied first.
#[test]
#[ignore = "slow"]
fn a_file_keeps_its_content_if_it_is_copied_to_where_the_overlay_has_it_from() {
    let overlay = or_skip!(Overlay::new(Layers::Together, &[], |image| {
        image.plant("f=content @6000.0");
    }));
    let dest = overlay.lower().join("f");
    let run = Run::new(CPZ).arg("f").arg(&dest);
    let outcome = run.current_dir(overlay.path()).output();
    outcome.assert_success();
    for file in [dest, overlay.at("f")] {
        assert_eq!(fs::read_to_string(file).unwrap(), "content");
    }
    assert!(
        !overlay.upper().join("f").exists(),
        "the source was changed"
    );
}

/// Copies a chain onto one that is in the image, so that each directory of it is copied up.
#[track_caller]
fn merges_a_chain(depth: usize, descriptors: u64) {
    let source = Scratch::in_memory();
    chain(source.at("d"), depth);
    for layers in [Layers::Together, Layers::Apart] {
        let below = |image: &Tree| chain(image.path().join("d"), depth);
        let overlay = or_skip!(Overlay::new(layers, &[], below));
        let outcome = Run::new(CPZ)
            .arg("-a")
            .arg(source.at("d"))
            .arg(".")
            .current_dir(overlay.path())
            .nofile_limit(descriptors)
            .output();
        outcome.assert_success();
        let merged = overlay.at("d");
        assert_same_tree(source.at("d"), merged, Attributes::CONTENT);
    }
}

#[test]
#[ignore = "slow"]
fn merge_deep_trees_with_few_descriptors() {
    merges_a_chain(60, 20);
}

#[test]
#[ignore = "slow"]
fn merge_trees_deeper_than_the_usual_number_of_descriptors() {
    merges_a_chain(1_200, 1_024);
}
