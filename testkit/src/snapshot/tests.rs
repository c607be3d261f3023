use std::time::Duration;

use super::*;
use crate::{
    probe,
    tree::{Scratch, Tree, chain},
};

/// Builds two trees and describes how they differ in `attributes`.
fn difference(
    attributes: Attributes,
    a: impl Fn(&Tree) -> &Tree,
    b: impl Fn(&Tree) -> &Tree,
) -> String {
    let (left, right) = (Scratch::new(), Scratch::new());
    a(&Tree::at(left.path()));
    b(&Tree::at(right.path()));
    let (left, right) = (
        Snapshot::of(&left, attributes),
        Snapshot::of(&right, attributes),
    );
    assert_eq!(left == right, left.diff(&right).is_empty());
    left.diff(&right)
}

/// Returns `build`. Its bound makes the compiler infer a closure that takes trees of every lifetime.
fn tree<F: Fn(&Tree) -> &Tree>(build: F) -> F {
    build
}

fn f(tree: &Tree) -> &Tree {
    tree.plant("d/f=one")
}

#[test]
fn equal_trees_are_equal() {
    let build = tree(|t| f(t).plant("p<fifo> l->t g==d/f"));
    assert_eq!(difference(Attributes::CONTENT, build, build), "");
}

#[test]
fn a_missing_entry_is_seen() {
    let text = difference(Attributes::NAMES, |t| f(t).dir("e"), f);
    assert_eq!(text, "- e: Directory\n");
}

#[test]
fn an_additional_entry_is_seen() {
    let text = difference(Attributes::NAMES, f, |t| f(t).fifo("d/p"));
    assert_eq!(text, "+ d/p: Fifo\n");
}

#[test]
fn another_type_is_seen() {
    let text = difference(Attributes::NAMES, f, |t| t.dir("d/f"));
    assert_eq!(text, "~ d/f: RegularFile != Directory\n");
}

#[test]
fn another_mode_is_seen() {
    let text = difference(Attributes::MODE, f, |t| f(t).mode(0o4755));
    assert_eq!(text, "~ d/f: mode 644 != mode 4755\n");
}

#[test]
fn another_mode_of_the_root_is_seen() {
    let build = tree(|t| t.select("").mode(0o700));
    let text = difference(Attributes::MODE, |t| t, build);
    assert_eq!(text, "~ .: mode 755 != mode 700\n");
}

#[test]
fn another_size_is_seen() {
    let text = difference(Attributes::SIZE, f, |t| f(t).append("!"));
    assert_eq!(text, "~ d/f: 3 bytes != 4 bytes\n");
}

#[test]
fn other_content_of_the_same_size_is_seen() {
    let text = difference(Attributes::DATA, f, |t| t.plant("d/f=two"));
    assert_eq!(text, "~ d/f: \"one\" != \"two\"\n");
}

#[test]
fn other_content_of_a_big_file_is_seen() {
    let big = |last| [vec![1; 300_000], vec![last]].concat();
    let same = tree(|t| t.file("f", big(1)));
    assert_eq!(difference(Attributes::DATA, same, same), "");
    let text = difference(Attributes::DATA, same, |t| t.file("f", big(2)));
    assert!(text.starts_with("~ f: hash "), "{text}");
}

#[test]
fn data_at_another_offset_of_a_sparse_file_is_seen() {
    let at = |offset| tree(move |t| t.sparse("f", 1 << 40, &[(offset, b"x")]));
    let text = difference(Attributes::DATA, at(1 << 30), at(1 << 31));
    assert!(text.starts_with("~ f: hash "), "{text}");
}

#[test]
fn holes_are_zeros_as_content_and_differ_as_holes() {
    let sparse = tree(|t| t.sparse("f", 200_000, &[(100_000, b"x")]));
    let dense = tree(|t| {
        let mut content = vec![0; 200_000];
        content[100_000] = b'x';
        t.file("f", content)
    });
    assert_eq!(difference(Attributes::DATA, sparse, dense), "");
    let text = difference(Attributes::HOLES, sparse, dense);
    assert_eq!(text, "~ f: has holes != nothing\n");
}

#[test]
fn another_symlink_target_is_seen() {
    let to = |target| tree(move |t| t.symlink("l", target));
    let text = difference(Attributes::NAMES, to("a"), to("b"));
    assert_eq!(text, "~ l: -> \"a\" != -> \"b\"\n");
}

#[test]
fn a_broken_hard_link_is_seen() {
    let linked = tree(|t| f(t).plant("g==d/f"));
    let text = difference(Attributes::LINKS, linked, |t| f(t).plant("g=one"));
    assert_eq!(text, "~ d/f: = g != nothing\n~ g: = g != nothing\n");
}

#[test]
fn hard_links_grouped_otherwise_are_seen() {
    let base = tree(|t| t.plant("a= b="));
    let text = difference(
        Attributes::LINKS,
        |t| base(t).plant("c==a d==b"),
        |t| base(t).plant("c==b d==a"),
    );
    assert_eq!(text, "~ c: = a != = b\n~ d: = b != = a\n");
}

#[test]
fn links_from_outside_do_not_count() {
    let outside = Scratch::new();
    Tree::at(outside.path()).plant("o=");
    let linked = tree(|t| t.hardlink(outside.path().join("o"), "f"));
    let text = difference(Attributes::LINKS, linked, |t| t.plant("f="));
    assert_eq!(text, "");
}

#[test]
fn another_mtime_is_seen_to_the_nanosecond() {
    let at = |nanos| tree(move |t| f(t).mtime(Duration::new(1, nanos)));
    let text = difference(Attributes::MTIME, at(1), at(2));
    assert!(
        text.contains("~ d/f: mtime 1.000000001 != mtime 1.000000002\n"),
        "{text}"
    );
}

#[test]
fn another_atime_is_seen_and_reading_does_not_change_it() {
    let scratch = Scratch::new();
    let old = Duration::from_secs(7);
    Tree::at(scratch.path())
        .plant("f=content")
        .atime(old)
        .plant("l->t")
        .atime(old)
        .select("")
        .atime(old);
    let first = Snapshot::of(&scratch, Attributes::ALL);
    assert_eq!(first, Snapshot::of(&scratch, Attributes::ALL));
    Tree::at(scratch.path()).plant("f").atime(old * 2);
    let text = first.diff(&Snapshot::of(&scratch, Attributes::ALL));
    assert_eq!(text, "~ f: atime 7.000000000 != atime 14.000000000\n");
}

#[test]
fn fresh_times_are_equal_and_old_ones_still_count() {
    let file = |seconds| {
        let scratch = Scratch::new();
        Tree::at(scratch.path())
            .plant("f=")
            .mtime(Duration::from_secs(seconds))
            .select("")
            .mtime(Duration::ZERO);
        Snapshot::with_fresh_times(scratch.path(), Attributes::MTIME, &(100..=200))
    };
    assert_eq!(file(100), file(200));
    assert_ne!(file(98), file(99));
    assert_ne!(file(99), file(100));
    assert_ne!(file(200), file(201));
}

#[test]
fn another_owner_is_seen() {
    if !probe::is_root() {
        crate::skip!("only root can change owners");
    }
    let owned = tree(|t| f(t).owner(0, 65534));
    let text = difference(Attributes::OWNER, f, owned);
    assert_eq!(text, "~ d/f: owner 0:0 != owner 0:65534\n");
}

#[test]
fn another_device_number_is_seen() {
    if !probe::is_root() {
        crate::skip!("only root can make devices");
    }
    let device = |minor| tree(move |t| t.char_device("c", 1, minor));
    let text = difference(Attributes::DEVICE, device(3), device(5));
    assert_eq!(text, "~ c: device 1:3 != device 1:5\n");
}

#[test]
fn another_xattr_is_seen() {
    if !probe::supports_xattrs(&std::env::temp_dir()) {
        crate::skip!("the temporary directory has no user xattrs");
    }
    let note = |value| tree(move |t| f(t).xattr("user.note", value));
    let text = difference(Attributes::XATTRS, note("a"), note("b"));
    assert_eq!(text, "~ d/f: xattrs user.note=a != xattrs user.note=b\n");
    let text = difference(Attributes::XATTRS, f, note(""));
    assert_eq!(text, "~ d/f: nothing != xattrs user.note=\n");
}

#[test]
fn another_acl_is_seen() {
    if !probe::supports_acls(&std::env::temp_dir()) {
        crate::skip!("the temporary directory has no ACLs");
    }
    let acl = |entries| tree(move |t| f(t).acl(entries));
    let text = difference(Attributes::XATTRS, acl("u:1:r"), acl("u:2:r"));
    assert!(text.contains("system.posix_acl_access"), "{text}");
}

#[test]
fn a_single_file_is_a_tree_whatever_its_name() {
    let scratch = Scratch::new();
    scratch.plant("a=x b=x c=y");
    let of = |name| Snapshot::of(scratch.at(name), Attributes::CONTENT);
    assert_eq!(of("a"), of("b"));
    assert_ne!(of("a"), of("c"));
}

#[test]
fn kinds_are_found_by_path() {
    let scratch = Scratch::new();
    f(&Tree::at(scratch.path()));
    let snapshot = Snapshot::of(&scratch, Attributes::NAMES);
    assert_eq!(snapshot.kind("d/f"), Some(Kind::RegularFile));
    assert_eq!(snapshot.kind("d"), Some(Kind::Directory));
    assert_eq!(snapshot.kind("d/g"), None);
}

#[test]
fn deep_trees_are_compared_and_shown_in_short() {
    let (a, b) = (Scratch::new(), Scratch::new());
    chain(&a, 3_000);
    chain(&b, 3_001);
    let [a, b] = [a, b].map(|s| Snapshot::of(&s, Attributes::CONTENT));
    let text = a.diff(&b);
    assert!(text.starts_with("+ d/d/d/"), "{text}");
    assert!(text.len() < 300, "{text}");
}

#[test]
#[should_panic(expected = "~ f: \"1\" != \"2\"")]
fn the_assertion_panics_with_the_difference() {
    let (a, b) = (Scratch::new(), Scratch::new());
    Tree::at(a.path()).plant("f=1");
    Tree::at(b.path()).plant("f=2");
    assert_same_tree(&a, &b, Attributes::CONTENT);
}
