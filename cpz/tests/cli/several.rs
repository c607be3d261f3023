//! Several sources with one dest.

use std::path::Path;

use testkit::{
    or_skip,
    probe::{self, gnu},
    run::Run,
    skip,
    snapshot::{Attributes, assert_same_tree},
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ, NEWEST_CP, succeeds};

#[test]
fn merges_two_directories_of_one_name() {
    CP.check(["1/d", "2/d", "into"], |tree| {
        tree.file("1/d/a", b"1")
            .file("1/d/sub/a", b"1")
            .file("2/d/b", b"2")
            .file("2/d/sub/b", b"2")
            .dir("into");
    });
}

#[test]
fn copies_directories_in_their_order_on_one_thread() {
    let said = |program: &Path, args: &[&str]| {
        let scratch = Scratch::new();
        Tree::at(scratch.path())
            .file("a/f", b"")
            .file("b/f", b"")
            .file("c/f", b"")
            .dir("d");
        let operands = ["-rv", "a", "b", "c", "d"];
        let run = Run::new(program).args(args).args(operands);
        run.current_dir(&scratch).output().stdout_text()
    };
    let cp = or_skip!(gnu("cp"));
    let ours = said(CPZ.as_ref(), &["--threads=1"]);
    assert_eq!(ours, said(&cp, &[]), "ours, GNU's");
}

#[test]
fn does_not_overwrite_a_dest_that_it_has_just_created() {
    CP.check(["1/f", "2/f", "into"], |tree| {
        tree.file("1/f", b"1").file("2/f", b"2").dir("into");
    });
}

#[test]
fn does_not_overwrite_a_dest_that_it_has_just_written_to() {
    CP.check(["1/f", "2/f", "into"], |tree| {
        tree.file("1/f", b"1")
            .file("2/f", b"2")
            .file("into/f", b"old");
    });
}

#[test]
fn does_not_overwrite_a_dest_that_it_has_just_created_in_a_merged_directory() {
    CP.check(["1/d", "2/d", "into"], |tree| {
        tree.file("1/d/f", b"1").file("2/d/f", b"2").dir("into");
    });
}

#[test]
fn does_not_put_a_directory_over_a_file_it_has_just_created() {
    CP.check(["1/f", "2/f", "into"], |tree| {
        tree.file("1/f", b"1").file("2/f/x", b"2").dir("into");
    });
}

#[test]
fn does_not_put_a_file_over_a_directory_it_has_just_created() {
    NEWEST_CP.check(["1/f", "2/f", "into"], |tree| {
        tree.file("1/f/x", b"1").file("2/f", b"2").dir("into");
    });
}

#[test]
fn does_not_write_through_a_symlink_it_has_just_created() {
    CP.check(["1/f", "2/f", "into"], |tree| {
        tree.symlink("1/f", "../other")
            .file("2/f", b"2")
            .file("other", b"old")
            .dir("into");
    });
    CP.check(["1/d", "2/d", "into"], |tree| {
        tree.symlink("1/d/f", "../../other")
            .file("2/d/f", b"2")
            .file("other", b"old")
            .dir("into");
    });
}

#[test]
fn follows_a_dest_symlink_into_the_copy_of_an_earlier_source() {
    let build = |tree: &Tree| {
        tree.file("a/b/f", "new")
            .dir("x/b")
            .file("c", "")
            .file("f", "2");
        tree.symlink("d/c", "a")
            .symlink("d/f", "a/b/f")
            .symlink("d/b", "a/g");
    };
    for option in ["-r", "-rv", "-a", "-rf", "-ru"] {
        for sources in [["a", "c"], ["a", "f"], ["a", "x/b"], ["f", "a"], ["c", "a"]] {
            for threads in ["1", "8"] {
                let arguments = [option, sources[0], sources[1], "d"];
                CP.strict()
                    .only_newest()
                    .args(arguments)
                    .env("CPZ_THREADS", threads)
                    .check(build);
            }
        }
    }
}

#[test]
fn does_not_merge_through_a_symlink_it_has_just_created() {
    CP.check(["1/d", "2/d", "into"], |tree| {
        tree.symlink("1/d", "../other")
            .file("2/d/f", b"2")
            .dir("other")
            .dir("into");
    });
}

#[test]
fn keeps_a_symlink_it_has_just_created() {
    CP.check(["1/l", "2/l", "into"], |tree| {
        tree.symlink("1/l", "1").symlink("2/l", "2").dir("into");
    });
}

#[test]
fn keeps_a_fifo_it_has_just_created() {
    CP.check(["1/p", "2/p", "into"], |tree| {
        tree.fifo("1/p").fifo("2/p").mode(0o600).dir("into");
    });
}

#[test]
fn warns_of_a_file_that_is_named_twice() {
    CP.check(["f", "f", "into"], |tree| {
        tree.file("f", b"content").dir("into");
    });
    CP.check_strict(["f", "f", "f", "into"], |tree| {
        tree.file("f", b"content").dir("into");
    });
}

#[test]
fn warns_of_a_directory_that_is_named_twice() {
    CP.check(["d", "d", "into"], |tree| {
        tree.file("d/f", b"content").dir("into");
    });
    CP.check(["d", "d/", "./d", "$PWD/d", "into"], |tree| {
        tree.file("d/f", b"content").dir("into");
    });
}

#[test]
fn does_not_overwrite_with_a_file_that_is_named_otherwise() {
    CP.check(["f", "./f", "into"], |tree| {
        tree.file("f", b"content").dir("into");
    });
    CP.check(["f", "twin", "into"], |tree| {
        tree.file("f", b"content").hardlink("f", "twin").dir("into");
    });
    // The directory of the second one is a link.
    for first in ["f", "here/./f", "$PWD/f"] {
        CP.check([first, "here/f", "into"], |tree| {
            tree.file("f", b"content").symlink("here", ".").dir("into");
        });
    }
    CP.check(["here/f", "here//f", "into"], |tree| {
        tree.file("f", b"content").symlink("here", ".").dir("into");
    });
    CP.check(["here", "-s", "$PWD/here/here", "into"], |tree| {
        tree.symlink("here", ".").dir("into");
    });
}

#[test]
fn warns_of_a_symlink_that_is_named_twice() {
    CP.check(["l", "l", "into"], |tree| {
        tree.symlink("l", "f").dir("into");
    });
}

#[test]
fn copies_a_directory_and_one_of_its_entries() {
    CP.check(["d", "d/sub", "d/sub/f", "into"], |tree| {
        tree.file("d/sub/f", b"content").dir("into");
    });
}

#[test]
fn continues_after_a_source_that_could_not_be_copied() {
    CP.check(["missing", "f", "d", "f2", "into"], |tree| {
        tree.file("f", b"content")
            .file("d/f", b"content")
            .file("f2", b"content")
            .file("into/d", b"in the way");
    });
}

#[test]
fn merges_the_contents_of_two_directories() {
    CP.check(["1/.", "2/.", "into"], |tree| {
        tree.file("1/a", b"1")
            .file("1/sub/a", b"1")
            .file("2/b", b"2")
            .file("2/sub/b", b"2")
            .dir("into");
    });
}

// GNU's cp fails: "will not create hard link 'into/a/sub' to directory 'into/sub'".
#[test]
fn copies_a_directory_to_two_places_unlike_cp() {
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .file("a/sub/f", b"content")
        .symlink("l", "a")
        .dir("into");
    succeeds(&scratch, &["a/sub", "a", "l/", "into"]);
    for copy in ["into/a", "into/l"] {
        let copy = scratch.path().join(copy);
        assert_same_tree(scratch.path().join("a"), copy, Attributes::CONTENT);
    }
    let sub = scratch.path().join("into/sub");
    assert_same_tree(scratch.path().join("a/sub"), sub, Attributes::CONTENT);
}

#[test]
fn does_not_write_through_a_looping_symlink_it_has_just_created() {
    CP.check(["1/f", "2/f", "into"], |tree| {
        tree.symlink("1/f", "f/").file("2/f", b"2").dir("into");
    });
}

#[test]
fn refuses_a_directory_twice_if_it_was_not_copied() {
    CP.check(["d", "d", "into"], |tree| {
        tree.file("d/f", b"content").file("into/d", b"in the way");
    });
}

#[test]
fn does_not_write_through_a_symlink_to_a_directory_it_has_just_created() {
    NEWEST_CP.check(["1/f", "2/f", "into"], |tree| {
        tree.symlink("1/f", "..").file("2/f", b"2").dir("into");
    });
}

#[test]
fn are_compared_without_random_numbers() {
    if !probe::has_program("strace") {
        skip!("there is no strace");
    }
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .file("s/a", "content")
        .hardlink("s/a", "t/b")
        .dir("into");
    let outcome = Run::new("strace")
        .args(["-f", "-o", "/dev/null", "-e", "inject=getrandom:error=EIO"])
        .args([
            CPZ,
            "-a",
            "--backup=numbered",
            "s",
            "t",
            "s/a",
            "t/b",
            "into",
        ])
        .current_dir(&scratch)
        .output();
    outcome.assert_success();
}
