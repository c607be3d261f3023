//! A directory is not copied into itself. GNU stops there and leaves a part of the tree uncopied, depending on
//! the order of the listing; cpz copies the rest. So the tests compare only the messages and the status with
//! GNU's, and check that our copy has everything except the refused part.

use std::fs;
use std::path::Path;

use testkit::{
    or_skip,
    probe::{FuseMount, Habits, Layers, Numbering, Overlay},
    run::{Outcome, Run, Status},
    snapshot::{Attributes, Kind, Snapshot, assert_same_tree},
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ, NEWEST_CP, complaint};

fn build(tree: &Tree) {
    tree.file("a/1/f", b"content")
        .file("a/f", b"content")
        .symlink("a/l", "f")
        .dir("a/b/c");
}

/// Asserts that the copy at `at` has the entries that `a` had.
#[track_caller]
fn all_is_there(scratch: &Scratch, at: &str) {
    let tree = Snapshot::of(scratch, Attributes::NAMES);
    let kinds = ["1/f", "f", "l"].map(|name| tree.kind(format!("{at}/{name}")));
    assert_eq!(
        kinds,
        [
            Some(Kind::RegularFile),
            Some(Kind::RegularFile),
            Some(Kind::Symlink)
        ],
        "{tree:?}"
    );
}

/// Asserts that the copy does not contain a copy of itself.
#[track_caller]
fn refused_part_is_not_there(scratch: &Scratch, path: &str) {
    let tree = Snapshot::of(scratch, Attributes::NAMES);
    assert_eq!(tree.kind(path), None, "{tree:?}");
}

#[test]
fn refuses_a_new_directory_in_itself() {
    let scratch = CP.check_messages(&["a", "a/new"], build);
    all_is_there(&scratch, "a/new");
    refused_part_is_not_there(&scratch, "a/new/new");
}

#[test]
fn names_the_operand_if_links_to_directories_are_kept() {
    let scratch = NEWEST_CP.check_messages(&["--keep-directory-symlink", "a", "a/new"], build);
    all_is_there(&scratch, "a/new");
    refused_part_is_not_there(&scratch, "a/new/new");
}

#[test]
fn refuses_a_directory_into_one_in_itself() {
    let scratch = CP.check_messages(&["a", "a/b"], build);
    all_is_there(&scratch, "a/b/a");
    refused_part_is_not_there(&scratch, "a/b/a/b/a");
}

#[test]
fn refuses_a_directory_whose_dest_is_reached_by_a_link_into_the_source() {
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .file("a/b/c/f", "")
        .symlink("d/a/b", "../../a/b/c");
    let run = Run::new(CPZ).args(["--keep-directory-symlink", "a", "d"]);
    let outcome = run.current_dir(&scratch).output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    assert_eq!(
        complaint(&outcome),
        "cpz: cannot copy a directory, 'a/b/c', into itself, 'd/a/b/c'\n"
    );
    let tree = Snapshot::of(&scratch, Attributes::NAMES);
    assert_eq!(tree.kind("a/b/c/c"), None, "{tree:?}");
}

#[test]
fn refuses_a_directory_into_one_deeper_in_itself() {
    let scratch = CP.check_messages(&["a", "a/b/c"], build);
    all_is_there(&scratch, "a/b/c/a");
    refused_part_is_not_there(&scratch, "a/b/c/a/b/c/a");
}

#[test]
fn refuses_a_directory_into_itself() {
    let scratch = CP.check_messages(&["a", "a"], build);
    all_is_there(&scratch, "a/a");
    refused_part_is_not_there(&scratch, "a/a/a");
}

#[test]
fn refuses_the_working_directory_into_itself() {
    let scratch = CP.check_messages(&[".", "a/new"], build);
    all_is_there(&scratch, "a/new/a");
    refused_part_is_not_there(&scratch, "a/new/a/new");
}

#[test]
fn refuses_the_content_of_a_directory_into_itself() {
    let scratch = CP.check_messages(&["a/.", "a/b"], build);
    all_is_there(&scratch, "a/b");
    refused_part_is_not_there(&scratch, "a/b/b");
}

#[test]
fn refuses_a_directory_into_itself_through_a_symlink() {
    let scratch = CP.check_messages(&["a", "to-b"], |tree| {
        build(tree);
        tree.symlink("to-b", "a/b");
    });
    all_is_there(&scratch, "a/b/a");
    refused_part_is_not_there(&scratch, "a/b/a/b/a");
}

#[test]
fn refuses_a_link_that_leads_into_the_copy() {
    let scratch = Scratch::new();
    // The link leads nowhere until its directory is copied. GNU cp ends when the path is too long.
    Tree::at(scratch.path()).symlink("t/a/d", "../t/a");
    let run = Run::new(CPZ)
        .args(["-LRn", "t"])
        .arg(scratch.path().join("t"));
    let outcome = run.current_dir(&scratch).output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let lines = complaint(&outcome);
    assert!(
        lines.contains("cannot copy a directory, 't', into itself"),
        "{lines}"
    );
    assert!(Snapshot::of(&scratch, Attributes::NAMES).len() < 10);
}

/// GNU cp ends when the path is too long.
#[test]
fn refuses_a_copy_that_an_overlay_shows_in_its_source() {
    for is_new in [true, false] {
        let overlay = or_skip!(Overlay::new(Layers::Together, &[], |_| {}));
        Tree::at(overlay.upper()).file("d/f", b"content");
        if !is_new {
            fs::create_dir(overlay.path().join("sub")).unwrap();
        }
        let run = Run::new(CPZ).arg("-T").arg(overlay.upper());
        let outcome = run.arg("sub").current_dir(overlay.path()).output();
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        let lines = complaint(&outcome);
        assert!(
            lines.contains("cannot copy a directory, ") && lines.lines().count() == 1,
            "{lines}"
        );
        let copied = fs::read(overlay.path().join("sub/d/f")).unwrap();
        assert_eq!(copied, b"content");
        assert!(Snapshot::of(overlay.path(), Attributes::NAMES).len() < 20);
    }
}

/// Copies by `cpz -r` in `dir`, and stops a copy that does not end.
fn copy(dir: impl AsRef<Path>, operands: [&str; 2]) -> Outcome {
    let run = Run::new("timeout").args(["60", CPZ, "-r"]).args(operands);
    run.current_dir(dir).output()
}

#[track_caller]
fn is_refused(outcome: &Outcome, [source, dest]: [&str; 2]) {
    let expected = format!("cpz: cannot copy a directory, '{source}', into itself, '{dest}'\n");
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    assert_eq!(complaint(outcome), expected);
}

#[test]
fn refuses_a_copy_that_another_mount_shows_in_its_source() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).dir("one").dir("other");
    build(&Tree::at(scratch.path().join("stored")));
    let at = |name: &str| scratch.path().join(name);
    let mount = |point| FuseMount::over(&at("stored"), &at(point), Habits::default());
    let (_one, _other) = (or_skip!(mount("one")), or_skip!(mount("other")));
    for operands in [["one/a", "other/a/b/new"], ["one/a", "other/a/1/new"]] {
        let outcome = copy(&scratch, operands);
        is_refused(&outcome, operands);
        all_is_there(&scratch, &operands[1].replace("other", "stored"));
    }
}

#[test]
fn refuses_a_copy_by_its_path_where_each_look_shows_new_numbers() {
    let numbering = Numbering::Fresh;
    let habits = || Habits {
        numbering,
        ..Habits::default()
    };
    for operands in [["a", "a/new"], ["./a", "a/b/new"]] {
        let mount = or_skip!(FuseMount::with(habits()));
        build(&Tree::at(mount.path()));
        let outcome = copy(mount.path(), operands);
        is_refused(&outcome, operands);
        let new = Snapshot::of(mount.stored().join(operands[1]), Attributes::NAMES);
        assert_eq!(new.kind("1/f"), Some(Kind::RegularFile), "{new:?}");
    }
}

#[test]
fn copies_a_directory_beside_itself_where_all_have_one_number() {
    let mount = or_skip!(FuseMount::with(Habits {
        numbering: Numbering::Zero,
        ..Habits::default()
    }));
    build(&Tree::at(mount.path()));
    Tree::at(mount.path()).file("a/new/a/new/f", "");
    let outcome = copy(mount.path(), ["a", "new"]);
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    let [source, dest] = ["a", "new"].map(|name| mount.stored().join(name));
    assert_same_tree(source, dest, Attributes::NAMES);
}

#[test]
fn copies_other_operands_after_refusing_one() {
    let scratch = CP.check_messages(&["a", "z", "a/b"], |tree| {
        build(tree);
        tree.file("z/f", b"content");
    });
    all_is_there(&scratch, "a/b/a");
    let tree = Snapshot::of(&scratch, Attributes::NAMES);
    assert_eq!(tree.kind("a/b/z/f"), Some(Kind::RegularFile));
}

#[test]
fn copies_a_directory_beside_itself() {
    CP.check(["a", "a2"], build);
    CP.check(["a/b", "a/b2"], build);
    CP.check(["a/b", "a/1"], build);
}

#[test]
fn copies_a_child_over_its_parent_directory() {
    CP.check(["-T", "a/a", "a"], |tree| {
        tree.file("a/a/f", b"content");
    });
    CP.check(["a/b/c", "a"], build);
}
