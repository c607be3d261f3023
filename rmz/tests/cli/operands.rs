//! Operands of all kinds.

use std::path::Path;

use testkit::{
    probe,
    run::{Outcome, Parity, Run, Status},
    skip,
    tree::{Scratch, Tree},
};

use crate::support::{RM, RMZ};

const NONE: [&str; 0] = [];

fn tree_of_all_kinds(tree: &Tree) {
    tree.file("d/file", b"content")
        .dir("d/empty")
        .file("d/sub/sub/file", "")
        .file("target/kept", "")
        .symlink("d/link", "file")
        .symlink("d/dangling", "nowhere")
        .symlink("d/link-to-dir", "../target")
        .symlink("d/absolute", "/etc")
        .symlink("d/loop", "loop")
        .fifo("d/fifo")
        .socket("d/socket")
        .hardlink("d/file", "d/twin")
        .hardlink("d/file", "kept-twin");
}

#[test]
fn removes_a_tree_of_all_kinds() {
    RM.check(["d"], tree_of_all_kinds);
}

#[test]
fn removes_directories_without_being_told_to() {
    let scratch = Scratch::new();
    tree_of_all_kinds(&Tree::at(scratch.path()));
    let outcome = Run::new(RMZ)
        .args(["d", "target"])
        .current_dir(&scratch)
        .output();
    outcome.assert_success();
    assert_eq!(outcome.stdout, b"");
    let left: Vec<_> = std::fs::read_dir(&scratch).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(scratch.path().join("kept-twin").is_file());
}

#[test]
fn removes_entries_that_are_not_directories() {
    RM.check(["f", "l", "dangling", "fifo", "socket"], |tree| {
        tree.file("f", b"content")
            .file("kept", "")
            .symlink("l", "kept")
            .symlink("dangling", "nowhere")
            .fifo("fifo")
            .socket("socket");
    });
}

#[test]
fn removes_devices() {
    if !probe::is_root() {
        skip!("only root can make devices");
    }
    RM.check(["null", "d"], |tree| {
        tree.char_device("null", 1, 3)
            .char_device("d/zero", 1, 5)
            .block_device("d/loop", 7, 0);
    });
}

#[test]
fn removes_a_symlink_and_not_the_directory_it_leads_to() {
    RM.check(["l"], |tree| {
        tree.file("d/f", "").symlink("l", "d");
    });
}

#[test]
fn removes_no_symlink_to_a_directory_that_has_a_slash_after_it() {
    RM.check(["l/"], |tree| {
        tree.file("d/f", "").symlink("l", "d");
    });
}

#[test]
fn removes_the_target_of_a_link_with_a_slash_before_its_neighbours() {
    RM.check(["d/self/", "d/file"], |tree| {
        tree.file("d/file", "").symlink("d/self", ".");
    });
}

#[test]
fn removes_no_dangling_symlink_that_has_a_slash_after_it() {
    RM.check(["l/"], |tree| {
        tree.symlink("l", "nowhere");
    });
}

#[test]
fn removes_no_file_that_has_a_slash_after_it() {
    RM.check(["f/"], |tree| {
        tree.file("f", "");
    });
}

#[test]
fn removes_no_fifo_that_has_a_slash_after_it() {
    RM.check(["p/", "l/"], |tree| {
        tree.fifo("p").symlink("l", "p");
    });
}

#[test]
fn removes_a_directory_that_has_slashes_after_it() {
    RM.check(["-v", "d///"], |tree| {
        tree.file("d/f", "").file("d/e/f", "");
    });
}

#[test]
fn removes_by_absolute_path() {
    RM.check(["-v", "$PWD/d", "$PWD//e//f"], |tree| {
        tree.file("d/f", "").file("e/f", "");
    });
}

#[test]
fn removes_through_dots_and_symlinks_in_the_middle_of_a_path() {
    RM.check(["-v", "./d/../d/e", "l/f", ".//d//g"], |tree| {
        tree.file("d/e/x", "")
            .file("d/f/y", "")
            .file("d/g", "")
            .symlink("l", "d");
    });
}

#[test]
fn removes_several_operands() {
    RM.check(["a", "b", "c"], |tree| {
        tree.file("a/f", "")
            .file("b", "")
            .symlink("c", "a")
            .file("kept", "");
    });
}

#[test]
fn misses_entries_that_the_operand_before_removed() {
    RM.check(["a", "a/b"], |tree| {
        tree.file("a/b/c", "").file("a/d", "");
    });
}

#[test]
fn removes_a_nested_operand_and_then_the_outer_one() {
    RM.check(["-v", "a/b", "a"], |tree| {
        tree.file("a/b/c", "").file("a/d", "");
    });
}

#[test]
fn misses_an_operand_the_second_time() {
    RM.check(["a", "f", "a", "f"], |tree| {
        tree.file("a/b/c", "").file("f", "");
    });
}

#[test]
fn ignores_an_operand_the_second_time_if_forced() {
    RM.check(["-f", "a", "f", "a", "f", "a/b"], |tree| {
        tree.file("a/b/c", "").file("f", "");
    });
}

#[test]
fn knows_an_operand_under_two_names() {
    RM.check(["a", "./a", "$PWD/a", "l/b"], |tree| {
        tree.file("a/b/c", "").symlink("l", "a");
    });
}

#[test]
fn goes_on_after_a_missing_operand() {
    RM.check(["a", "missing", "b"], |tree| {
        tree.file("a/f", "").file("b/f", "");
    });
}

#[test]
fn names_a_missing_operand_and_exits_1() {
    let scratch = Scratch::new();
    let outcome = Run::new("sh")
        .args(["-c", r#"PATH=$1:$PATH; exec rmz x"#, "sh"])
        .arg(Path::new(RMZ).parent().unwrap())
        .current_dir(&scratch)
        .output();
    assert_eq!(outcome.status, Status::Exit(1));
    assert_eq!(
        outcome.stderr_text(),
        "rmz: cannot remove 'x': No such file or directory\n"
    );
}

#[test]
fn reports_operands_below_missing_names_and_files() {
    RM.check(
        ["missing/x", "f/x", "dangling/x", "loop/x", "loop/"],
        |tree| {
            tree.file("f", "")
                .symlink("dangling", "nowhere")
                .symlink("loop", "loop");
        },
    );
}

#[test]
fn ignores_missing_operands_if_forced() {
    RM.check(
        ["-f", "a", "missing", "f/x", "missing/x", "dangling/x"],
        |tree| {
            tree.file("a/f", "")
                .file("f", "")
                .symlink("dangling", "nowhere");
        },
    );
}

#[test]
fn reports_a_loop_of_symlinks_even_if_forced() {
    RM.check(["-f", "loop/x", "loop/", "link/"], |tree| {
        tree.symlink("loop", "loop").dir("d").symlink("link", "d");
    });
}

#[test]
fn needs_an_operand() {
    Parity::new(RMZ, "rm").args(NONE).check(|_| {});
    RM.check(NONE, |_| {});
    RM.check(["--"], |_| {});
}

#[test]
fn needs_no_operand_if_forced() {
    RM.check(["-f"], |_| {});
}

#[test]
fn takes_options_after_operands() {
    RM.check(["a", "-v", "missing", "-f"], |tree| {
        tree.file("a/f", "");
    });
}

#[test]
fn takes_options_for_operands_if_posixly_correct() {
    Parity::new(RMZ, "rm")
        .args(["-r", "a", "-v"])
        .env("POSIXLY_CORRECT", "1")
        .check(|tree| {
            tree.file("a/f", "").file("-v", "");
        });
}

#[test]
fn refuses_dot() {
    RM.check(["."], |tree| {
        tree.file("f", "");
    });
}

#[test]
fn refuses_dot_even_if_forced() {
    RM.check(["-f", ".", "./", "d/.", "d/..", "d/./", "d/..//"], |tree| {
        tree.file("d/f", "");
    });
}

#[test]
fn refuses_dot_dot() {
    // `sub` is the working directory, so that at worst the scratch tree is removed.
    let script = r#"cd sub && exec "$@""#;
    crate::support::RM
        .parity()
        .in_script(script)
        .args(["..", "../", "../.."])
        .check(|tree| {
            tree.file("sub/f", "").file("f", "");
        });
}

#[test]
fn refuses_paths_that_end_in_dots() {
    RM.check(
        ["d/.", "d/..", "d/../", "d/.//", "missing/.", "missing/.."],
        |tree| {
            tree.file("d/f", "");
        },
    );
}

#[test]
fn does_the_rest_after_refusing_dots() {
    RM.check([".", "d", "d/..", "e"], |tree| {
        tree.file("d/f", "").file("e", "");
    });
}

#[test]
fn removes_the_working_directory_by_its_path() {
    RM.check(["$PWD/sub/../sub"], |tree| {
        tree.file("sub/f", "");
    });
    let script = r#"cd sub && exec "$@""#;
    crate::support::RM
        .parity()
        .in_script(script)
        .args(["$PWD/sub"])
        .check(|tree| {
            tree.file("sub/f", "").file("f", "");
        });
}

#[test]
fn reports_a_mount_point_and_empties_it() {
    if !probe::is_root() {
        skip!("only root can mount");
    }
    let script = r#"
        test -d d/mount || exec "$@"
        exec unshare -m sh -c 'mount -t tmpfs tmpfs d/mount || exit 99
            mkdir d/mount/sub && : >d/mount/sub/f
            "$@"; status=$?
            ls -A d/mount
            exit "$status"' sh "$@""#;
    let outcome = crate::support::RM
        .parity()
        .in_script(script)
        .args(["-v", "d"])
        .check(|tree| {
            tree.file("d/f", "").dir("d/mount").file("d/z/f", "");
        });
    if outcome.is_some_and(|o| o.status == Status::Exit(99)) {
        skip!("no mount in a namespace of its own");
    }
}

/// Runs `rmz -f` so that system calls on `name` fail as `faults` say, in the words of strace.
fn forced_with_faults(tree: &Scratch, name: &str, faults: &[&str]) -> Outcome {
    let faults = faults
        .iter()
        .flat_map(|fault| ["-e".to_owned(), format!("inject={fault}")]);
    Run::new("strace")
        .args(["-f", "-o", "/dev/null", "-P", name])
        .args(faults)
        .args([RMZ, "-f", "d", name])
        .current_dir(tree)
        .output()
}

#[test]
fn a_stale_name_is_ignored_by_force_only_if_it_is_gone() {
    if !probe::has_program("strace") {
        skip!("there is no strace");
    }
    let stale = "unlinkat,openat:error=ESTALE";
    let tree = Scratch::new();
    let gone = forced_with_faults(&tree, "gone", &[stale]);
    gone.assert_success();
    Tree::at(tree.path()).dir("there");
    let there = forced_with_faults(&tree, "there", &[stale]);
    assert_eq!(there.status, Status::Exit(1), "{there}");
    assert!(there.stderr_text().contains("'there': Stale"), "{there}");
    // The entry only seems to be gone.
    Tree::at(tree.path()).dir("d/entry");
    let kept = forced_with_faults(&tree, "entry", &[stale, "newfstatat:error=ENOENT"]);
    assert_eq!(kept.status, Status::Exit(1), "{kept}");
    assert!(
        kept.stderr_text().contains("'d': Directory not empty"),
        "{kept}"
    );
}
