//! Copies between all kinds of filesystems, which support different system calls.

use fuc_engine::CopyOp;
use testkit::probe::{Fs, LoopMount};
use testkit::snapshot::{Snapshot, assert_same_tree};
use testkit::tree::{Tree, wide};

use crate::kit::{Told, assert_nothing_in, copy, copy_with, exactly, plain, remove, threads};

fn build(at: &LoopMount) -> Tree {
    let tree = Tree::at(at.path().join("s"));
    tree.file("a/b/content", "content")
        .mode(0o751)
        .file("a/b/empty", "")
        .mode(0o400)
        .file("a/large", vec![7; (5 << 20) + 3])
        .sparse("a/holes", 3 << 20, &[(1 << 20, &[1; 1 << 16])])
        .symlink("link", "a/b")
        .fifo("pipe")
        .socket("socket")
        .char_device("null", 1, 3)
        .dir("empty")
        .select("a/b")
        .mode(0o1555);
    wide(tree.path().join("wide"), 2_000);
    tree
}

fn copies_to_each(from: Fs) {
    // Mount the source before the targets, so that it is unmounted after them.
    let source = testkit::or_skip!(LoopMount::new(from, 48));
    let tree = build(&source);
    let entries = Snapshot::of(tree.path(), plain()).len();
    for to in [Fs::Ext4, Fs::Xfs, Fs::Btrfs, Fs::Tmpfs] {
        let target = match LoopMount::new(to, 48) {
            Ok(target) => target,
            Err(skip) => {
                skip.announce();
                continue;
            }
        };
        let dest = target.path().join("d");
        let told = copy(tree.path(), &dest);
        assert_eq!(told.failures, [], "to {}", to.name());
        assert_eq!(told.counts.0, entries as u64);
        assert_same_tree(tree.path(), &dest, plain());
        assert_eq!(
            remove(&dest),
            Told::complete(entries, 0),
            "on {}",
            to.name()
        );
        assert_nothing_in(&target);
    }
    let beside = source.path().join("d");
    assert_eq!(copy(tree.path(), &beside).failures, [], "beside");
    assert_same_tree(tree.path(), &beside, plain());
}

#[test]
fn from_ext4() {
    copies_to_each(Fs::Ext4);
}

#[test]
fn from_xfs() {
    copies_to_each(Fs::Xfs);
}

#[test]
fn from_btrfs() {
    copies_to_each(Fs::Btrfs);
}

#[test]
fn from_tmpfs() {
    copies_to_each(Fs::Tmpfs);
}

/// XFS has few allocation groups. So a worker puts some of these many directories off, because another worker is in their
/// group.
#[test]
fn nested_directories_within_xfs_by_many_workers() {
    let place = testkit::or_skip!(LoopMount::new(Fs::Xfs, 300));
    let tree = Tree::at(place.path().join("s"));
    for name in 0..600 {
        let parents = [name / 100, name / 10].map(|parent| parent.to_string());
        tree.file(format!("{}/{}/{name}/f", parents[0], parents[1]), "content");
    }
    wide(tree.path().join("0"), 3_000);
    for number in [2, 8] {
        let dest = place.path().join(number.to_string());
        let options = CopyOp::new().with(|options| options.threads = threads(number));
        let told = copy_with(options, [tree.path()], &exactly(&dest));
        assert_eq!(told.failures, []);
        assert_same_tree(tree.path(), &dest, plain());
    }
}

#[test]
fn a_filesystem_mounted_in_a_tree_is_copied_with_it() {
    let outer = testkit::or_skip!(LoopMount::new(Fs::Tmpfs, 4));
    let inner = testkit::or_skip!(LoopMount::new(Fs::Ext4, 8));
    let tree = Tree::at(outer.path().join("s"));
    tree.dir("point").file("f", "1");
    let point = tree.path().join("point");
    let mount = |verb: &str, args: &[&std::path::Path]| {
        let status = std::process::Command::new(verb).args(args).status();
        status.is_ok_and(|status| status.success())
    };
    if !mount("mount", &["--bind".as_ref(), inner.path(), &point]) {
        testkit::skip!("no bind mounts");
    }
    // The same inode number on two devices must not pass for one directory.
    Tree::at(&inner).file("a/b", "2").dir("point/point");
    let dest = outer.path().join("d");
    let told = copy(tree.path(), &dest);
    let before = Snapshot::of(tree.path(), plain());
    let difference = before.diff(&Snapshot::of(&dest, plain()));
    assert!(mount("umount", &[&point]));
    assert_eq!(told, Told::complete(before.len(), 2));
    assert_eq!(difference, "");
}
