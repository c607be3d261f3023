//! Copies of sources of each type, and their options.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use fuc_engine::{CopyOp, Dereference, Dest, Operation, Refusal, copy_tree};
use rustix::io::Errno;
use testkit::probe;
use testkit::snapshot::{Attributes, Snapshot, assert_same_tree};
use testkit::tree::{Scratch, Tree};

use crate::kit::{
    Failure, Told, all_but_atime, assert_unchanged, copy, copy_with, counts, exactly, plain,
    threads,
};

#[test]
fn a_tree_of_all_types_is_copied_and_counted() {
    let scratch = Scratch::new();
    let source = Tree::at(scratch.path().join("s"));
    source
        .file("a/b/file", "content")
        .mode(0o755)
        .file("a/b/empty", "")
        .mode(0o640)
        .symlink("a/link", "b/file")
        .symlink("dangling", "nowhere")
        .fifo("pipe")
        .socket("socket")
        .dir("empty/empty")
        .select("a")
        .mode(0o555);
    let dest = scratch.path().join("d");
    let before = Snapshot::of(source.path(), all_but_atime());
    assert_eq!(copy(source.path(), &dest), Told::complete(before.len(), 7));
    assert_same_tree(source.path(), &dest, plain());
    assert_unchanged(&before, source.path(), all_but_atime());
}

#[test]
fn devices_are_made_anew() {
    if !probe::is_root() {
        testkit::skip!("only root can make devices");
    }
    let scratch = Scratch::new();
    let source = Tree::at(scratch.path().join("s"));
    source
        .char_device("null", 1, 3)
        .block_device("block", 7, 77);
    let dest = scratch.path().join("d");
    assert_eq!(copy(source.path(), &dest), Told::complete(3, 0));
    assert_same_tree(source.path(), &dest, plain());
}

#[test]
fn names_of_one_inode_become_files_of_their_own() {
    let scratch = Scratch::new();
    let source = Tree::at(scratch.path().join("s"));
    source.file("a", "content").hardlink("a", "b");
    let dest = scratch.path().join("d");
    assert_eq!(copy(source.path(), &dest), Told::complete(3, 14));
    assert_same_tree(source.path(), &dest, plain());
}

#[test]
fn a_file_is_copied_to_exactly_that_name() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.file("s", "content").mode(0o600);
    let [source, dest] = ["s", "d"].map(|name| tree.path().join(name));
    assert_eq!(copy(&source, &dest), Told::complete(1, 7));
    assert_same_tree(&source, &dest, plain());
}

#[test]
fn operands_of_other_types_are_made_anew() {
    let scratch = Scratch::new();
    let source = Tree::at(scratch.path().join("s"));
    source
        .fifo("pipe")
        .socket("socket")
        .symlink("link", "nowhere")
        .dir("empty");
    let dest = Tree::at(scratch.path().join("d"));
    let operands = ["pipe", "socket", "link", "empty"].map(|name| source.path().join(name));
    let into = Dest::Into(dest.path().to_owned());
    let told = copy_with(CopyOp::new(), operands, &into);
    assert_eq!(told, Told::complete(4, 0));
    assert_same_tree(source.path(), dest.path(), plain());
}

#[test]
fn copies_go_into_a_directory_under_their_own_names() {
    let scratch = Scratch::new();
    let source = Tree::at(scratch.path().join("s"));
    source.file("a/f", "one").file("b", "three");
    let dest = Tree::at(scratch.path().join("d"));
    let operands = ["a/", "b"].map(|name| source.path().join(name));
    let into = Dest::Into(dest.path().to_owned());
    let told = copy_with(CopyOp::new(), operands, &into);
    assert_eq!(told, Told::complete(3, 8));
    assert_same_tree(source.path(), dest.path(), plain());
}

#[test]
fn a_source_that_ends_in_a_dot_is_merged_into_the_directory() {
    let scratch = Scratch::new();
    let source = Tree::at(scratch.path().join("s"));
    source.file("a/f", "one");
    let dest = Tree::at(scratch.path().join("d"));
    let into = Dest::Into(dest.path().to_owned());
    let told = copy_with(CopyOp::new(), [source.path().join("a/..")], &into);
    assert_eq!(told, Told::complete(3, 3));
    assert_same_tree(source.path(), dest.path(), plain());
}

#[test]
fn a_link_to_a_directory_may_be_the_directory_to_copy_into() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.file("s", "content").dir("d").symlink("link", "d");
    let into = Dest::Into(tree.path().join("link"));
    let told = copy_with(CopyOp::new(), [tree.path().join("s")], &into);
    assert_eq!(told, Told::complete(1, 7));
    assert_same_tree(tree.path().join("s"), tree.path().join("d/s"), plain());
}

#[test]
fn a_dest_directory_is_merged_into() {
    let scratch = Scratch::new();
    let source = Tree::at(scratch.path().join("s"));
    source.file("sub/new", "new").file("sub/both", "short");
    let dest = Tree::at(scratch.path().join("d"));
    dest.file("sub/both", "this was longer")
        .mode(0o600)
        .file("sub/old", "old")
        .select("sub")
        .mode(0o711);
    let expected = Tree::at(scratch.path().join("e"));
    expected
        .file("sub/both", "short")
        .mode(0o600)
        .file("sub/new", "new")
        .file("sub/old", "old")
        .select("sub")
        .mode(0o711);
    let told = copy(source.path(), dest.path());
    assert_eq!(told, Told::complete(4, 8));
    assert_same_tree(expected.path(), dest.path(), plain());
}

#[test]
fn copy_tree_returns_the_summary() {
    let scratch = Scratch::new();
    let source = Tree::at(scratch.path().join("s"));
    source.file("f", "four");
    let dest = scratch.path().join("d");
    assert_eq!(counts(copy_tree(source.path(), &dest).unwrap()), (2, 4, 0));
    assert_same_tree(source.path(), &dest, plain());
}

#[test]
fn copy_tree_returns_the_failure() {
    let scratch = Scratch::new();
    let missing = scratch.path().join("missing");
    let error = copy_tree(&missing, scratch.path().join("d")).unwrap_err();
    let expected = Failure::failed(Operation::Stat, &missing, Errno::NOENT);
    assert_eq!(Failure::of(&error), expected);
    crate::kit::assert_nothing_in(&scratch);
}

#[test]
fn a_missing_source_is_reported_and_the_others_are_copied() {
    let scratch = Scratch::new();
    let source = Tree::at(scratch.path().join("s"));
    source.file("a", "1").file("b", "2");
    let dest = Tree::at(scratch.path().join("d"));
    let operands = ["a", "missing", "b"].map(|name| source.path().join(name));
    let into = Dest::Into(dest.path().to_owned());
    let told = copy_with(CopyOp::new(), &operands, &into);
    let failure = Failure::failed(Operation::Stat, &operands[1], Errno::NOENT);
    assert_eq!(told, Told::complete(2, 2).with([failure]));
    assert_same_tree(source.path(), dest.path(), plain());
}

#[test]
fn without_a_parent_of_the_dest_that_is_reported() {
    let scratch = Scratch::new();
    let source = Tree::at(scratch.path().join("s"));
    source.file("f", "x");
    let dest = scratch.path().join("no/d");
    let failure = Failure::failed(Operation::CreateDirectory, &dest, Errno::NOENT);
    assert_eq!(
        copy(source.path(), &dest),
        Told::complete(0, 0).with([failure])
    );
    let failure = Failure::failed(Operation::CreateFile, &dest, Errno::NOENT);
    assert_eq!(
        copy(source.path().join("f"), &dest),
        Told::complete(0, 0).with([failure])
    );
}

#[test]
fn a_directory_to_copy_into_must_be_one() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.file("f", "").file("g", "");
    for (name, errno) in [("missing", Errno::NOENT), ("f", Errno::NOTDIR)] {
        let target = tree.path().join(name);
        let into = Dest::Into(target.clone());
        let told = copy_with(CopyOp::new(), [tree.path().join("g")], &into);
        let failure = Failure::failed(Operation::OpenTarget, target, errno);
        assert_eq!(told, Told::complete(0, 0).with([failure]));
    }
}

#[test]
fn paths_with_a_nul_byte_are_reported() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.file("f", "");
    let file = tree.path().join("f");
    let bad = tree.path().join("a\0b");
    let failure = |operation| Failure::failed(operation, &bad, Errno::INVAL);
    assert_eq!(
        copy(&bad, tree.path().join("d")),
        Told::complete(0, 0).with([failure(Operation::Stat)])
    );
    assert_eq!(
        copy(&file, &bad),
        Told::complete(0, 0).with([failure(Operation::Stat)])
    );
    assert_eq!(
        copy_with(CopyOp::new(), [&file], &Dest::Into(bad.clone())),
        Told::complete(0, 0).with([failure(Operation::OpenTarget)])
    );
    assert_eq!(Snapshot::of(&scratch, plain()).len(), 2);
}

#[test]
fn a_directory_is_refused_without_recursion() {
    let scratch = Scratch::new();
    let source = Tree::at(scratch.path().join("s"));
    source.file("f", "");
    let options = CopyOp::new().with(|options| options.recursive = false);
    let told = copy_with(options, [source.path()], &exactly(scratch.path().join("d")));
    let failure = Failure::refused(Refusal::NotRecursive, source.path());
    assert_eq!(told, Told::complete(0, 0).with([failure]));
    assert_eq!(Snapshot::of(&scratch, plain()).kind("d"), None);
}

#[test]
fn a_link_stands_for_its_target_if_operands_are_followed() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.file("f", "content").symlink("link", "f");
    let options = CopyOp::new().with(|options| options.dereference = Dereference::Operands);
    let dest = tree.path().join("d");
    let told = copy_with(options, [tree.path().join("link")], &exactly(&dest));
    assert_eq!(told, Told::complete(1, 7));
    assert_same_tree(tree.path().join("f"), &dest, plain());
}

#[test]
fn a_fifo_is_read_without_recursion() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.fifo("pipe");
    let [pipe, dest] = ["pipe", "d"].map(|name| tree.path().join(name));
    let options = CopyOp::new().with(|options| options.recursive = false);
    let told = std::thread::scope(|scope| {
        scope.spawn(|| fs::write(&pipe, "through the pipe").unwrap());
        copy_with(options, [&pipe], &exactly(&dest))
    });
    assert_eq!(told, Told::complete(1, 16));
    assert_eq!(fs::read(dest).unwrap(), b"through the pipe");
}

#[test]
fn any_number_of_threads_copies_the_same() {
    let scratch = Scratch::in_memory();
    let source = Tree::at(scratch.path().join("s"));
    for dir in 0..150 {
        for file in 0..5 {
            source.file(format!("{}/{dir}/{file}", dir % 7), "x".repeat(dir * file));
        }
    }
    testkit::tree::wide(source.path().join("wide"), 5_000);
    let entries = Snapshot::of(source.path(), Attributes::NAMES).len();
    let bytes = (0..150).sum::<u64>() * 10;
    for number in [1, 2, 8] {
        let options = CopyOp::new().with(|options| options.threads = threads(number));
        let dest = scratch.path().join(number.to_string());
        let told = copy_with(options, [source.path()], &exactly(&dest));
        assert_eq!(told, Told::complete(entries, bytes), "{number} threads");
        assert_same_tree(source.path(), &dest, plain());
    }
}

#[test]
fn a_default_acl_decides_the_modes() {
    let scratch = Scratch::new();
    if !probe::supports_acls(scratch.path()) {
        testkit::skip!("no ACLs in {}", scratch.path().display());
    }
    let source = Tree::at(scratch.path().join("s"));
    source
        .file("sub/f", "content")
        .mode(0o666)
        .file("sub/empty", "")
        .mode(0o666)
        .select("sub")
        .mode(0o777);
    // This ACL lets the group write, which a usual umask would not, and gives others no permission.
    let dest = Tree::at(scratch.path().join("d"));
    dest.acl("d:u::rwx,d:g::rwx,d:o::-");
    let into = Dest::Into(dest.path().to_owned());
    let told = copy_with(CopyOp::new(), [source.path().join("sub")], &into);
    assert_eq!(told, Told::complete(3, 7));
    let mode = |name| fs::metadata(dest.path().join(name)).unwrap().mode() & 0o777;
    assert_eq!(
        ["sub", "sub/f", "sub/empty"].map(mode),
        [0o770, 0o660, 0o660]
    );
}
