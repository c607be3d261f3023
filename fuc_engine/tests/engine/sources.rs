//! Followed links, links instead of copies, and the reported method of a copy.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Mutex;

use fuc_engine::gnu::{CopyMethod, Mechanism};
use fuc_engine::{CopyOp, Dereference, Error, Event, LinkKind, Observer, Reflink, Refusal};
use testkit::snapshot::assert_same_tree;
use testkit::tree::{Scratch, Tree, chain};

use crate::kit::{Failure, Told, copy_with, exactly, paths, plain};

/// Makes a directory with a link to a file and a link to a directory, both outside of it.
fn linked(scratch: &Scratch) -> Tree {
    let tree = Tree::at(scratch);
    tree.file("out/f", "content")
        .symlink("s/file", "../out/f")
        .symlink("s/dir", "../out")
        .symlink("link", "s");
    tree
}

#[test]
fn all_links_are_followed_if_asked_for() {
    let scratch = Scratch::in_memory();
    let tree = linked(&scratch);
    let options = CopyOp::new().with(|options| options.dereference = Dereference::Always);
    let dest = tree.path().join("d");
    let told = copy_with(options, [tree.path().join("link")], &exactly(&dest));
    assert_eq!(told, Told::complete(4, 14));
    assert_same_tree(tree.path().join("out"), dest.join("dir"), plain());
    assert!(dest.join("file").symlink_metadata().unwrap().is_file());
}

#[test]
fn links_below_an_operand_are_not_followed_with_it() {
    let scratch = Scratch::in_memory();
    let tree = linked(&scratch);
    let options = CopyOp::new().with(|options| options.dereference = Dereference::Operands);
    let dest = tree.path().join("d");
    let told = copy_with(options, [tree.path().join("link")], &exactly(&dest));
    assert_eq!(told, Told::complete(3, 0));
    assert_same_tree(tree.path().join("s"), dest, plain());
}

#[test]
fn a_link_that_leads_back_is_refused_and_the_rest_is_copied() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    tree.file("s/a/f", "content").symlink("s/a/b/up", "../..");
    chain(tree.path().join("s/a/deep"), 300);
    let options = CopyOp::new().with(|options| options.dereference = Dereference::Always);
    let [source, dest] = ["s", "d"].map(|name| tree.path().join(name));
    let told = copy_with(options, [&source], &exactly(&dest));
    let failure = Failure::refused(Refusal::CyclicSymlink, source.join("a/b/up"));
    assert_eq!(told, Told::complete(5 + 300, 7).with([failure]));
    assert!(!dest.join("a/b/up").exists());
}

#[test]
fn hard_links_are_made_instead_of_copies() {
    let scratch = Scratch::in_memory();
    let tree = linked(&scratch);
    let options = CopyOp::new().with(|options| options.as_links = Some(LinkKind::Hard));
    let [source, dest] = ["out", "d"].map(|name| tree.path().join(name));
    let told = copy_with(options, [&source], &exactly(&dest));
    assert_eq!(told, Told::complete(2, 0));
    let inode = |dir: &Path| fs::metadata(dir.join("f")).unwrap().ino();
    assert_eq!(inode(&source), inode(&dest));
}

#[test]
fn a_link_replaces_a_dest_with_force() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    tree.file("s/f", "new").file("d/f", "old");
    let [source, dest] = ["s", "d"].map(|name| tree.path().join(name));
    let options = CopyOp::new().with(|options| {
        options.as_links = Some(LinkKind::Symbolic);
        options.force = true;
    });
    assert_eq!(
        copy_with(options, [&source], &exactly(&dest)),
        Told::complete(2, 0)
    );
    assert_eq!(fs::read_link(dest.join("f")).unwrap(), source.join("f"));
    assert_eq!(fs::read_dir(&dest).unwrap().count(), 1);
}

/// Records the method of each copy.
#[derive(Default)]
struct Asking(Mutex<Vec<CopyMethod>>);

impl Observer for Asking {
    fn failed(&self, error: Error) {
        panic!("{error}");
    }

    fn wants_events(&self) -> bool {
        true
    }

    fn on_event(&self, done: Event<'_>) {
        if let Event::Copied { method, .. } = done {
            self.0.lock().unwrap().extend(method);
        }
    }
}

#[test]
fn the_event_of_a_copied_file_has_the_copy_method_if_that_is_wanted() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    tree.sparse("s/f", 1 << 20, &[(0, b"x")]);
    let asking = Asking::default();
    let mut options = CopyOp::new().with(|options| options.reflink = Reflink::Never);
    let dest = exactly(tree.path().join("without"));
    let summary = options.run(paths([tree.path().join("s")]), &dest, &asking);
    assert!(summary.is_complete());
    assert!(asking.0.lock().unwrap().is_empty());
    options.reports_methods = true;
    let dest = exactly(tree.path().join("d"));
    let summary = options.run(paths([tree.path().join("s")]), &dest, &asking);
    assert!(summary.is_complete());
    let told = asking.0.into_inner().unwrap();
    let [method] = told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(method.offload, Mechanism::Avoided);
    assert_eq!(method.reflink, Mechanism::Avoided);
    let holes = method.holes.expect("the copy has looked for holes");
    assert!(holes.asks_filesystem && !holes.finds_zeros);
}
