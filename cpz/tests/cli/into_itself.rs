//! A directory is not copied into itself. GNU stops there and leaves a part of the tree uncopied, depending on
//! the order of the listing; cpz copies the rest. So the tests compare only the messages and the status with
//! GNU's, and check that our copy has everything except the refused part.

use std::{fs, path::Path};

use testkit::{
    habits, or_skip,
    probe::{Fs, FuseMount, Habits, Layers, LoopMount, Numbering, Overlay},
    run::{Outcome, Run},
    snapshot::{Attributes, Kind, Snapshot, assert_same_tree},
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ, NEWEST_CP, complaint};

fn build(tree: &Tree) {
    tree.plant("a/1/f=content a/f=content a/l->f a/b/c/");
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
        "{at}: {tree:?}"
    );
}

#[test]
fn refuses_a_directory_in_itself_and_copies_the_rest() {
    let keeping = "--keep-directory-symlink a a/new";
    // The path of the copy, and that of a copy of the copy.
    for (args, copied, refused) in [
        ("a a/new", "a/new", "a/new/new"),
        (keeping, "a/new", "a/new/new"),
        ("a a/b", "a/b/a", "a/b/a/b/a"),
        ("a a/b/c", "a/b/c/a", "a/b/c/a/b/c/a"),
        ("a a", "a/a", "a/a/a"),
        (". a/new", "a/new/a", "a/new/a/new"),
        ("a/. a/b", "a/b", "a/b/b"),
        ("a to-b", "a/b/a", "a/b/a/b/a"),
    ] {
        let pair = if args == keeping { NEWEST_CP } else { CP };
        let scratch = pair.check_messages(args, |tree| {
            build(tree);
            tree.plant("to-b->a/b");
        });
        all_is_there(&scratch, copied);
        let tree = Snapshot::of(&scratch, Attributes::NAMES);
        assert_eq!(tree.kind(refused), None, "{args}: {tree:?}");
    }
}

#[test]
fn refuses_a_directory_whose_dest_is_reached_by_a_link_into_the_source() {
    let scratch = Scratch::with("a/b/c/f= d/a/b->../../a/b/c");
    let run = Run::new(CPZ).words("--keep-directory-symlink a d");
    let outcome = run.current_dir(&scratch).fails();
    assert_eq!(
        complaint(&outcome),
        "cpz: cannot copy a directory, 'a/b/c', into itself, 'd/a/b/c'\n"
    );
    let tree = Snapshot::of(&scratch, Attributes::NAMES);
    assert_eq!(tree.kind("a/b/c/c"), None, "{tree:?}");
}

#[test]
fn refuses_a_link_that_leads_into_the_copy() {
    let scratch = Scratch::new();
    // The link leads nowhere until its directory is copied. GNU cp ends when the path is too long.
    scratch.plant("t/a/d->../t/a");
    let run = Run::new(CPZ).words("-LRn t").arg(scratch.at("t"));
    let outcome = run.current_dir(&scratch).fails();
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
        Tree::at(overlay.upper()).plant("d/f=content");
        if !is_new {
            fs::create_dir(overlay.at("sub")).unwrap();
        }
        let run = Run::new(CPZ).arg("-T").arg(overlay.upper());
        let outcome = run.arg("sub").current_dir(overlay.path()).fails();
        let lines = complaint(&outcome);
        assert!(
            lines.contains("cannot copy a directory, ") && lines.lines().count() == 1,
            "{lines}"
        );
        let copied = fs::read(overlay.at("sub/d/f")).unwrap();
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
    outcome.assert_status(1);
    assert_eq!(complaint(outcome), expected);
}

/// In the second case, a client shows other times than the one that fills a directory, because it has cached them.
#[test]
fn refuses_a_copy_that_another_mount_shows_in_its_source() {
    for time_step_seconds in [0, 10] {
        let scratch = Scratch::with("one/ other/");
        build(&Tree::at(scratch.at("stored")));
        let mount =
            |name, habits| FuseMount::over(&scratch.at("stored"), &scratch.at(name), habits);
        let _one = or_skip!(mount("one", habits!(time_step_seconds)));
        let _other = or_skip!(mount("other", Habits::default()));
        for operands in [["one/a", "other/a/b/new"], ["one/a", "other/a/1/new"]] {
            let outcome = copy(&scratch, operands);
            is_refused(&outcome, operands);
            all_is_there(&scratch, &operands[1].replace("other", "stored"));
        }
    }
}

/// Two servers that count their files give the same number to different directories.
#[test]
fn copies_a_directory_to_another_server_that_has_given_its_number() {
    let numbering = Numbering::Lasting;
    let stored = or_skip!(LoopMount::new(Fs::Tmpfs, 64));
    for others in 0..5 {
        let scratch = Scratch::with("source/a/a/a/f= one/ other/");
        let mount = |from: &Path, to| FuseMount::over(from, &scratch.at(to), habits!(numbering));
        let _one = or_skip!(mount(&scratch.at("source"), "one"));
        let _other = or_skip!(mount(stored.path(), "other"));
        let dest = format!("other/{others}");
        for other in 0..others {
            fs::create_dir(scratch.at(format!("{dest}-{other}"))).unwrap();
        }
        fs::create_dir(scratch.at(&dest)).unwrap();
        copy(&scratch, ["one/a", &dest]).assert_status(0);
        let [source, dest] = ["source/a".into(), format!("{dest}/a")].map(|at| scratch.at(at));
        assert_same_tree(source, dest, Attributes::NAMES);
    }
}

#[test]
fn numbers_of_files_that_are_new_or_equal_do_not_mislead() {
    let served = |numbering| CP.table().served("m", habits!(numbering));
    served(Numbering::Fresh).rows(
        "# A copy is refused by its path.
        m/a/1/f=content m/a/f=content m/a/l->f m/a/b/c/
        cpz m/a m/a/new
        ! cannot copy a directory, 'm/a', into itself, 'm/a/new'
        = m/a/new/1/f=content m/a/new/f=content m/a/new/l->f m/a/new/b/c/
        cpz ./m/a m/a/b/new
        ! cannot copy a directory, './m/a', into itself, 'm/a/b/new'
        = m/a/b/new/1/f=content m/a/b/new/f=content m/a/b/new/l->f m/a/b/new/b/c/",
    );
    served(Numbering::Zero).rows(
        "# A directory is copied beside itself.
        m/a/f=content m/a/b/c/ m/a/new/a/new/f=
        cpz m/a m/new
        = m/new/f=content m/new/b/c/ m/new/new/a/new/f=",
    );
}

#[test]
fn copies_other_operands_after_refusing_one() {
    let scratch = CP.check_messages(["a", "z", "a/b"], |tree| {
        build(tree);
        tree.plant("z/f=content");
    });
    all_is_there(&scratch, "a/b/a");
    let tree = Snapshot::of(&scratch, Attributes::NAMES);
    assert_eq!(tree.kind("a/b/z/f"), Some(Kind::RegularFile));
}

#[test]
fn copies_beside_itself_and_over_a_parent_directory_are_no_copies_into_itself() {
    CP.rows(
        "a/1/f=content a/f=content a/l->f a/b/c/
        cpz (a a2|a/b a/b2|a/b a/1|a/b/c a)
        a/a/f=content
        cpz -T a/a a",
    );
}
