//! The dest: a directory, a name, or -t and -T.

use std::path::Path;

use testkit::{
    run::{Run, Status},
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ, NEWEST_CP, complaint, succeeds};

fn small(tree: &Tree) {
    tree.file("a/b/f", b"content")
        .file("a/g", b"more")
        .symlink("a/l", "g")
        .file("f", b"file")
        .file("old", b"old")
        .dir("dir")
        .symlink("to-dir", "dir")
        .symlink("to-old", "old")
        .symlink("dangling", "nowhere");
}

#[test]
fn copies_directories_without_being_told_to() {
    let scratch = Scratch::new();
    small(&Tree::at(scratch.path()));
    succeeds(&scratch, &["a", "b"]);
    testkit::snapshot::assert_same_tree(
        scratch.path().join("a"),
        scratch.path().join("b"),
        testkit::snapshot::Attributes::CONTENT,
    );
}

#[test]
fn makes_a_missing_dest() {
    CP.check(["a", "new"], small);
    CP.check(["f", "new"], small);
}

#[test]
fn makes_a_missing_dest_with_a_slash_if_it_is_a_directory() {
    CP.check(["a", "new/"], small);
    CP.check(["a", "new//"], small);
    CP.check(["a", "new/."], small);
}

#[test]
fn makes_no_file_with_a_slash_after_it() {
    CP.check(["f", "new/"], small);
    CP.check(["f", "old/"], small);
    CP.check(["f", "dangling/"], small);
}

#[test]
fn replaces_no_dangling_link_with_a_slash_after_it() {
    for options in ["-f", "-lf", "-sf", "-b", "-bf"] {
        for source in ["f", "to-old", "a"] {
            CP.check([options, source, "dangling/"], small);
        }
    }
}

#[test]
fn copies_into_an_existing_directory() {
    CP.check(["a", "dir"], small);
    CP.check(["f", "dir"], small);
    CP.check(["a", "dir/"], small);
    CP.check(["f", "dir/."], small);
}

#[test]
fn copies_into_the_directory_behind_a_symlink() {
    CP.check(["a", "to-dir"], small);
    CP.check(["f", "to-dir/"], small);
}

#[test]
fn copies_over_an_existing_file() {
    CP.check(["f", "old"], small);
    CP.check(["f", "to-old"], small);
}

#[test]
fn copies_no_directory_over_a_file() {
    CP.check(["a", "old"], small);
    CP.check(["a", "to-old"], small);
    CP.check(["a", "old/"], small);
}

#[test]
fn copies_the_content_of_a_directory_with_a_dot_after_it() {
    CP.check(["a/.", "dir"], small);
    CP.check(["a/.", "new"], small);
    CP.check(["a/./", "dir"], small);
}

#[test]
fn copies_a_directory_with_slashes_after_it() {
    CP.check(["a/", "dir"], small);
    CP.check(["a///", "new"], small);
    CP.check(["-v", "a//b//", "dir//"], small);
}

#[test]
fn copies_a_path_that_ends_in_dot_dot() {
    CP.check(["-v", "a/b/..", "dir"], small);
    CP.check(["-v", "a/b/..", "new"], small);
}

#[test]
fn copies_into_the_working_directory() {
    CP.check(["a/b", "."], small);
    CP.check(["a/g", "a/b/f", "./"], |tree| {
        tree.file("a/b/f", b"content").file("a/g", b"more");
    });
}

#[test]
fn copies_by_absolute_paths() {
    CP.check(["-v", "$PWD/a", "$PWD/dir"], small);
    CP.check(["-v", "$PWD/f", "$PWD/new"], small);
}

#[test]
fn copies_several_into_a_directory() {
    CP.check(["a", "f", "old", "dir"], small);
    CP.check(["a", "f", "to-dir"], small);
}

#[test]
fn copies_several_only_into_a_directory() {
    CP.check(["a", "f", "old"], small);
    CP.check(["a", "f", "new"], small);
    CP.check(["a", "f", "dangling"], small);
    CP.check(["a", "f", "old/"], small);
}

#[test]
fn makes_no_parents_of_the_dest() {
    CP.check(["f", "new/f"], small);
    CP.check(["a", "new/new"], small);
    CP.check(["a", "old/new"], small);
    CP.check(["f", "old/new"], small);
}

#[test]
fn copies_into_a_target_directory() {
    CP.check(["-t", "dir", "a", "f"], small);
    CP.check(["--target-directory=to-dir", "a"], small);
    CP.check(["a", "-tdir/"], small);
}

#[test]
fn wants_the_target_directory_to_be_one() {
    CP.check(["-t", "old", "a"], small);
    CP.check(["-t", "new", "a"], small);
    CP.check(["-t", "dangling", "a"], small);
    CP.check(["-t", "", "a"], small);
}

#[test]
fn takes_one_target_directory() {
    CP.check(["-t", "dir", "-t", "to-dir", "a"], small);
    CP.check(["-t", "dir", "-T", "a", "new"], small);
}

#[test]
fn takes_the_dest_for_the_copy_itself_if_told_to() {
    CP.check(["-T", "a", "dir"], small);
    CP.check(["-T", "a", "new"], small);
    CP.check(["-T", "a", "to-dir"], small);
    CP.check(["-T", "f", "old"], small);
    CP.check(["-T", "a/", "dir/"], small);
}

#[test]
fn copies_no_file_over_a_directory() {
    NEWEST_CP.check(["-T", "f", "dir"], small);
    NEWEST_CP.check(["-T", "f", "to-dir"], small);
    NEWEST_CP.check(["-T", "f", "dir/"], small);
}

#[test]
fn takes_two_operands_if_there_is_no_target_directory() {
    CP.check(["-T", "a", "f", "dir"], small);
    CP.check(["-T", "a"], small);
}

#[test]
fn reports_missing_sources() {
    CP.check(["missing", "new"], small);
    CP.check(["missing", "dir"], small);
    CP.check(["f", "missing", "a", "dir"], small);
    CP.check(["missing/x", "f/x", "f/", "dangling/x", "dir"], small);
}

#[test]
fn reports_empty_names() {
    CP.check(["", "new"], small);
    CP.check(["", "f", "dir"], small);
    CP.check(["f", "a", ""], small);
}

#[test]
fn does_not_go_through_a_dangling_symlink() {
    CP.check(["f", "dangling"], small);
    CP.check(["a", "dangling"], small);
    CP.check(["-T", "f", "dangling"], small);
}

#[test]
fn forces_no_way_through_a_dangling_symlink() {
    CP.check(["-f", "f", "dangling"], small);
}

#[test]
fn merges_into_a_directory_that_exists() {
    CP.check(["-v", "a", "dir"], |tree| {
        tree.file("a/b/f", b"new")
            .file("a/g", b"new")
            .file("dir/a/b/f", b"older and longer")
            .file("dir/a/b/kept", b"kept")
            .dir("dir/a/c")
            .mode(0o700);
    });
}

#[test]
fn keeps_the_modes_of_directories_that_exist() {
    CP.check(["-T", "a", "dir"], |tree| {
        tree.file("a/b/f", b"new")
            .select("a/b")
            .mode(0o777)
            .select("a")
            .mode(0o777)
            .dir("dir/b")
            .mode(0o700)
            .select("dir")
            .mode(0o711);
    });
}

#[test]
fn merges_through_no_symlink_below_the_dest() {
    CP.check(["a", "dir"], |tree| {
        tree.file("a/b/f", b"new")
            .dir("other")
            .dir("dir/a")
            .symlink("dir/a/b", "../../other");
    });
}

#[test]
fn writes_through_a_symlink_below_the_dest_that_leads_to_a_file() {
    CP.check(["a", "dir"], |tree| {
        tree.file("a/f", b"new")
            .file("other", b"older and longer")
            .dir("dir/a")
            .symlink("dir/a/f", "../../other");
    });
}

#[test]
fn merges_no_directory_with_a_file() {
    NEWEST_CP.check(["a", "dir"], |tree| {
        tree.file("a/b/f", b"new")
            .file("a/c", b"new")
            .file("dir/a/b", b"a file")
            .dir("dir/a/c");
    });
}

#[test]
fn does_not_make_the_target_of_a_dangling_link_with_a_slash() {
    let build = |tree: &Tree| {
        tree.dir("d").symlink("l", "x").symlink("dest", "nowhere");
    };
    CP.check(["d", "dest/"], build);
    CP.check(["l", "dest/"], build);
}

/// Compares both commands with `POSIXLY_CORRECT` set.
#[track_caller]
fn posix(args: &[&str]) {
    let parity = CP.parity().args(args);
    parity.env("POSIXLY_CORRECT", "1").check(|tree| {
        small(tree);
        tree.file("x/f", b"newer")
            .mode(0o640)
            .symlink("dir/f", "../made")
            .symlink("dir/x/f", "away")
            .symlink("far", "no/where")
            .symlink("slash", "nowhere/")
            .symlink("loop", "loop")
            .symlink("twice", "dangling")
            .fifo("p");
    });
}

#[test]
fn writes_through_a_dangling_link_if_posix_is_to_be_obeyed() {
    posix(&["f", "dangling"]);
    posix(&["-v", "f", "dir"]);
    posix(&["f", "twice"]);
    posix(&["-p", "x/f", "dangling"]);
    posix(&["--no-preserve=mode", "x/f", "dangling"]);
    posix(&["--parents", "x/f", "dir"]);
    posix(&["--attributes-only", "f", "dangling"]);
    posix(&["-n", "f", "dangling"]);
    posix(&["-u", "f", "dangling"]);
    posix(&["f", "f", "dir"]);
}

#[test]
fn replaces_a_dangling_link_itself_if_nothing_is_written() {
    posix(&["-b", "f", "dangling"]);
    posix(&["--remove-destination", "f", "dangling"]);
    posix(&["a/l", "dangling"]);
    posix(&["p", "dangling"]);
    posix(&["a", "dangling"]);
}

#[test]
fn reports_why_the_target_of_a_dangling_link_cannot_be_made() {
    posix(&["f", "far"]);
    posix(&["f", "slash"]);
    posix(&["f", "loop"]);
}

#[test]
fn leaves_the_link_if_its_target_cannot_be_cloned() {
    let scratch = Scratch::new();
    small(&Tree::at(scratch.path()));
    let outcome = Run::new(CPZ)
        .args(["--reflink=always", "/proc/version", "dangling"])
        .env("POSIXLY_CORRECT", "1")
        .current_dir(&scratch)
        .output();
    assert_eq!(outcome.status, Status::Exit(1));
    let link = std::fs::read_link(scratch.path().join("dangling"));
    assert_eq!(link.expect("a link"), Path::new("nowhere"));
}

#[test]
fn makes_nothing_through_a_link_below_an_operand() {
    let scratch = Scratch::new();
    small(Tree::at(scratch.path()).symlink("dir/g", "../made"));
    let outcome = Run::new(CPZ)
        .args(["-T", "a", "dir"])
        .env("POSIXLY_CORRECT", "1")
        .current_dir(&scratch)
        .output();
    let words = "cpz: not writing through dangling symlink 'dir/g'\n";
    assert_eq!(
        (outcome.status, complaint(&outcome).as_str()),
        (Status::Exit(1), words)
    );
    assert!(!scratch.path().join("made").exists());
}

#[test]
fn an_empty_dest_is_not_the_working_directory() {
    let cases: &[(&[&str], &str)] = &[
        (&["a", ""], "cannot create directory ''"),
        (&["-T", "a", ""], "cannot create directory ''"),
        (&["-a", "a/.", ""], "cannot create directory ''"),
        (&["-b", "a", ""], "cannot create directory ''"),
        (&["-n", "a", ""], "cannot create directory ''"),
        (&["-s", "a", ""], "cannot create directory ''"),
        (&["f", ""], "cannot create regular file ''"),
        (&["-T", "f", ""], "cannot create regular file ''"),
        (
            &["--remove-destination", "f", ""],
            "cannot create regular file ''",
        ),
        (&["dangling", ""], "cannot create symbolic link ''"),
        (&["-l", "f", ""], "cannot create hard link '' to 'f'"),
        (&["a", "f", ""], "target ''"),
        (&["-t", "", "a"], "target directory ''"),
        (&["", ""], "cannot stat ''"),
    ];
    let cp = CP.link("cp");
    for (program, name) in [(Path::new(CPZ), "cpz"), (&cp.path(), "cp")] {
        for (args, message) in cases {
            let scratch = Scratch::new();
            small(&Tree::at(scratch.path()));
            let twin = Scratch::new();
            small(&Tree::at(twin.path()));
            let run = Run::new(program).arg("-r").args(*args);
            let outcome = run.current_dir(&scratch).output();
            let expected = format!("{name}: {message}: No such file or directory\n");
            assert_eq!(outcome.stderr_text(), expected, "{args:?}");
            assert_eq!(outcome.status, Status::Exit(1), "{args:?}");
            testkit::snapshot::assert_same_tree(
                scratch.path(),
                twin.path(),
                testkit::snapshot::Attributes::CONTENT,
            );
        }
    }
}
