use std::time::Duration;

use super::*;
use crate::{
    probe,
    tree::{Scratch, Tree, chain, place},
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

/// Attributes, the entries of two trees that differ in them, and the lines about that.
const ROWS: &str = r#"
    CONTENT | d/f=one p<fifo> l->t g==d/f | d/f=one p<fifo> l->t g==d/f |
    NAMES | d/ e/ | d/ | - e: Directory
    NAMES | d/ | d/p<fifo> | + d/p: Fifo
    NAMES | f= | f/ | ~ f: RegularFile != Directory
    NAMES | l->a | l->b | ~ l: -> "a" != -> "b"
    MODE | f= | f= %4755 | ~ f: mode 644 != mode 4755
    MODE | f= | f= . %700 | ~ .: mode 755 != mode 700
    SIZE | f=one | f=more | ~ f: 3 bytes != 4 bytes
    DATA | f=one | f=two | ~ f: "one" != "two"
    LINKS | f= g==f | f= g= | ~ f: = f != nothing; ~ g: = f != nothing
    LINKS | a= b= c==a d==b | a= b= c==b d==a | ~ c: = a != = b; ~ d: = b != = a
    MTIME | f= @1.1 . @1 | f= @1.2 . @1 | ~ f: mtime 1.000000001 != mtime 1.000000002
    OWNER | f= | f= :0:65534 | ~ f: owner 0:0 != owner 0:65534
    DEVICE | c<null> | c<zero> | ~ c: device 1:3 != device 1:5
    XATTRS | f= xattr:user.a=x | f= xattr:user.a=y | ~ f: xattrs user.a=x != xattrs user.a=y
    XATTRS | f= | f= xattr:user.a= | ~ f: nothing != xattrs user.a=
    XATTRS | f= acl:u:1:r | f= acl:u:2:r | ~ f: xattrs system.posix_acl_access=...
"#;

#[test]
fn each_difference_is_seen() {
    for row in ROWS.trim().lines() {
        let [name, left, right, expected] = row.split('|').map(str::trim).collect::<Vec<_>>()[..]
        else {
            panic!("BUG in a test: {row}");
        };
        let is_possible = match name {
            "OWNER" | "DEVICE" => probe::is_root(),
            "XATTRS" if right.contains("acl:") => probe::supports_acls(&place()),
            "XATTRS" => probe::supports_xattrs(&place()),
            _ => true,
        };
        if !is_possible {
            probe::Skip(format!("this cannot be made here: {right}")).announce();
            continue;
        }
        let attributes = Attributes::from_name(name).expect("attributes");
        let text = difference(
            attributes,
            |tree| tree.plant(left),
            |tree| tree.plant(right),
        );
        let lines = text.lines().collect::<Vec<_>>().join("; ");
        match expected.strip_suffix("...") {
            Some(begin) => assert!(lines.starts_with(begin), "{row}: {lines}"),
            None => assert_eq!(lines, expected, "{row}"),
        }
    }
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
fn links_from_outside_do_not_count() {
    let outside = Scratch::new();
    Tree::at(outside.path()).plant("o=");
    let linked = tree(|t| t.hardlink(outside.path().join("o"), "f"));
    let text = difference(Attributes::LINKS, linked, |t| t.plant("f="));
    assert_eq!(text, "");
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
    scratch.plant("d/f=one");
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
