//! Entries that an ordinary user may not remove are reported once, with their paths. All others are removed.

use testkit::{
    probe::{has_program, is_root},
    skip,
    tree::Tree,
};

use crate::support::RM;

/// Id of a user other than root and the user that runs the commands.
const OTHER: u32 = 1;

/// Removes a tree with a directory of this mode, in which there are a file and a directory.
#[track_caller]
fn with_full_dir_of_mode(mode: u32) {
    RM.check_as_nobody(["-v", "d"], |tree| full_dir_of_mode(tree, mode));
    RM.check_as_nobody(["-vf", "d"], |tree| full_dir_of_mode(tree, mode));
    RM.check_as_nobody(["d/sub/odd"], |tree| full_dir_of_mode(tree, mode));
}

fn full_dir_of_mode(tree: &Tree, mode: u32) {
    tree.file("d/a/f", "")
        .file("d/sub/odd/file", "")
        .file("d/sub/odd/dir/file", "")
        .file("d/sub/sibling/f", "")
        .file("d/z/f", "")
        .select("d/sub/odd")
        .mode(mode);
}

#[track_caller]
fn with_empty_dir_of_mode(mode: u32) {
    let build = |tree: &Tree| {
        tree.file("d/f", "").dir("d/odd").mode(mode);
    };
    RM.check_as_nobody(["-v", "d"], build);
    RM.check_as_nobody(["-v", "d/odd"], build);
}

#[test]
fn keeps_a_full_directory_of_mode_000() {
    with_full_dir_of_mode(0o000);
}

#[test]
fn keeps_the_entries_of_a_directory_without_x() {
    with_full_dir_of_mode(0o666);
}

#[test]
fn keeps_the_entries_of_a_directory_without_w() {
    with_full_dir_of_mode(0o555);
}

#[test]
fn keeps_a_full_directory_without_r() {
    with_full_dir_of_mode(0o333);
}

#[test]
fn keeps_the_entries_of_a_directory_that_is_only_readable() {
    with_full_dir_of_mode(0o444);
}

#[test]
fn keeps_a_full_directory_that_is_only_searchable() {
    with_full_dir_of_mode(0o111);
}

#[test]
fn removes_an_empty_directory_of_mode_000() {
    with_empty_dir_of_mode(0o000);
}

#[test]
fn removes_an_empty_directory_without_w() {
    with_empty_dir_of_mode(0o555);
}

#[test]
fn removes_an_empty_directory_without_r() {
    with_empty_dir_of_mode(0o333);
}

#[test]
fn removes_an_empty_directory_without_x() {
    with_empty_dir_of_mode(0o666);
}

#[test]
fn removes_files_of_any_mode() {
    RM.check_as_nobody(["f", "d"], |tree| {
        tree.file("f", "")
            .mode(0)
            .file("d/a", "")
            .mode(0)
            .file("d/b", "")
            .mode(0o444)
            .fifo("d/c")
            .mode(0);
    });
}

#[test]
fn keeps_operands_in_a_directory_without_w() {
    RM.check_as_nobody(["f", "d", "l", "missing"], |tree| {
        tree.file("f", "")
            .file("d/f", "")
            .symlink("l", "d")
            .select("")
            .mode(0o555);
    });
}

#[test]
fn keeps_an_empty_operand_in_a_directory_without_w() {
    RM.check_as_nobody(["-v", "d"], |tree| {
        tree.dir("d").select("").mode(0o555);
    });
}

#[test]
fn reports_operands_below_a_directory_without_x() {
    RM.check_as_nobody(["d/f", "d/missing", "d/sub/f"], |tree| {
        tree.file("d/f", "")
            .file("d/sub/f", "")
            .select("d")
            .mode(0o666);
    });
    RM.check_as_nobody(["-f", "d/f", "d/missing", "d/sub/f"], |tree| {
        tree.file("d/f", "")
            .file("d/sub/f", "")
            .select("d")
            .mode(0o666);
    });
}

#[test]
fn keeps_several_locked_directories_and_removes_the_rest() {
    RM.check_as_nobody(["-v", "d", "e"], |tree| {
        tree.file("d/1/locked/f", "")
            .file("d/1/f", "")
            .file("d/2/3/locked/f", "")
            .file("d/2/3/f", "")
            .file("d/2/locked/f", "")
            .file("e/f", "")
            .select("d/1/locked")
            .mode(0)
            .select("d/2/3/locked")
            .mode(0o555)
            .select("d/2/locked")
            .mode(0o111);
    });
}

#[test]
fn reports_each_file_that_stays() {
    RM.check_as_nobody(["d"], |tree| {
        tree.file("d/a", "")
            .file("d/b", "")
            .symlink("d/c", "a")
            .dir("d/e")
            .file("d/g/h", "")
            .select("d")
            .mode(0o555);
    });
}

#[test]
fn keeps_the_entries_of_a_directory_of_another_user() {
    RM.check_as_nobody(["-v", "d"], |tree| {
        tree.file("d/theirs/f", "")
            .owner(OTHER, OTHER)
            .dir("d/theirs/empty")
            .owner(OTHER, OTHER)
            .select("d/theirs")
            .owner(OTHER, OTHER)
            .dir("d/their-empty")
            .owner(OTHER, OTHER)
            .file("d/their-file", "")
            .owner(OTHER, OTHER)
            .file("d/ours", "");
    });
}

#[test]
fn keeps_the_entries_of_other_users_in_a_sticky_directory() {
    RM.check_as_nobody(["-v", "d"], |tree| {
        tree.file("d/sticky/theirs", "")
            .owner(OTHER, OTHER)
            .dir("d/sticky/their-dir")
            .owner(OTHER, OTHER)
            .file("d/sticky/ours", "")
            .dir("d/sticky/our-dir")
            .select("d/sticky")
            .owner(OTHER, OTHER)
            .mode(0o1777);
    });
}

#[test]
fn keeps_nested_locked_directories() {
    RM.check_as_nobody(["d"], |tree| {
        tree.file("d/x/y/z", "")
            .select("d/x/y")
            .mode(0o555)
            .select("d/x")
            .mode(0o555);
    });
}

#[test]
fn reports_an_unreadable_directory_that_may_not_be_removed() {
    if !is_root() || !has_program("setpriv") {
        skip!("becoming another user takes root and setpriv");
    }
    let script = r#"chown -R 65534:65534 d && chattr +i d
        setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; status=$?
        chattr -i d; exit $status"#;
    for flags in [&["-v"][..], &["-f"], &["-d"]] {
        RM.parity()
            .in_script(script)
            .only_newest()
            .args(flags)
            .args(["d/sub"])
            .check(|tree| {
                tree.dir("d/sub").mode(0);
            });
    }
}
