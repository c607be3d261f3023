//! `--parents`, which makes the source's whole path below the target. Also `--strip-trailing-slashes` and
//! `--keep-directory-symlink`.
//!
//! The comparisons leave out two sources below a directory that its owner may not write to. GNU sets the mode of
//! the copied directory after the first source, and fails at the second.

use std::fs;

use testkit::{
    probe::{NOBODY, is_root},
    run::{Outcome, Run, Status},
    skip,
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ, complaint};

fn nested(tree: &Tree) {
    tree.file("a/b/f", "content")
        .file("a/b/g", "")
        .file("f", "")
        .symlink("l", "a/b")
        .dir("d")
        .select("a/b")
        .mode(0o3500)
        .select("a")
        .mode(0o777);
}

#[test]
fn makes_the_directories_on_the_way() {
    CP.check(["--parents", "-v", "a/b/f", "d"], nested);
    // cp gives each directory its mode at once, so that its owner cannot add the second file.
    if is_root() {
        CP.check(["--path", "-v", "a/b/f", "a/b/g", "f", "d/"], nested);
    }
    CP.check(["--parents", "-v", "-t", "d", "./a//b/f"], nested);
    CP.check(["--parents", "-v", "a/../a/b/f", "d"], nested);
    CP.check_strict(["--parents", "-v", "l/f", "d"], nested);
}

#[test]
fn gives_them_the_modes_of_the_sources_directories() {
    CP.check_as_nobody(["--parents", "-v", "a/b/f", "d"], nested);
}

#[test]
fn copies_directories_below_them() {
    CP.check(["--parents", "-v", "a/b", "d"], nested);
    CP.check(["--parents", "-v", "a/b//", "l", "d"], nested);
}

#[test]
fn leaves_directories_that_are_there_as_they_are() {
    let build = |tree: &Tree| {
        nested(tree);
        tree.dir("d/a").mode(0o700).dir("e").symlink("d/l", "../e");
    };
    CP.check(["--parents", "-v", "a/b/f", "d"], build);
    CP.check(["--parents", "-v", "l/f", "d"], build);
}

#[test]
fn reports_files_in_place_of_parents() {
    CP.check(["--parents", "-v", "a/b/f", "f", "d"], |tree| {
        nested(tree);
        tree.file("d/a", "");
    });
    CP.check(["--parents", "-v", "a/b/f", "d"], |tree| {
        nested(tree);
        tree.symlink("d/a", "nowhere");
    });
}

#[test]
fn parents_keep_special_bits_without_the_owner() {
    if !is_root() {
        skip!("only root can become another user");
    }
    let options = [
        "-a",
        "-p",
        "--preserve=mode,ownership",
        "--preserve=ownership",
    ];
    for mode in [0o7755, 0o2755, 0o1777, 0o6711] {
        for (option, dest) in options
            .map(|option| [(option, "d"), (option, "e")])
            .concat()
        {
            let cp = CP.strict().only_newest().uid(NOBODY);
            cp.args(["-r", option, "--parents", "a/b/f", dest])
                .check(|tree| {
                    tree.file("a/b/f", "x");
                    for dir in ["a/b", "a"] {
                        tree.select(dir).owner(1234, 1234).mode(mode);
                    }
                    tree.dir("d").owner(NOBODY, NOBODY);
                    tree.dir("e/a").owner(NOBODY, NOBODY).mode(0o711);
                    tree.select("e").owner(NOBODY, NOBODY);
                });
        }
    }
}

#[test]
fn names_a_parent_whose_attributes_cannot_be_preserved() {
    if !is_root() {
        skip!("only root can become another user");
    }
    for option in [
        "-a",
        "-p",
        "--preserve=timestamps",
        "--preserve=mode",
        "--preserve=ownership",
    ] {
        for source in ["a/b/f", "./a/f"] {
            let cp = CP.strict().only_newest().uid(NOBODY);
            cp.args(["-r", option, "--parents", source, "d"])
                .check(|tree| {
                    tree.file("a/b/f", "x").file("a/f", "x");
                    tree.dir("d/a").owner(1234, 1234).mode(0o777);
                    tree.select("d").owner(1234, 1234).mode(0o777);
                });
        }
    }
}

#[test]
fn parents_get_no_sticky_bit_without_the_mode() {
    for option in ["-a", "-r"] {
        let cp = CP.strict().only_newest();
        cp.args([
            option,
            "--no-preserve=mode",
            "--parents",
            "a/b/f",
            "c/d",
            "e",
        ])
        .check(|tree| {
            tree.file("a/b/f", "x").dir("c/d").mode(0o1777).dir("e");
            tree.select("a").mode(0o1755).select("a/b").mode(0o3755);
            tree.select("c").mode(0o1700);
        });
    }
}

#[test]
fn reports_the_first_source_directory_whose_attributes_are_missing() {
    let sources: [fn(&Tree) -> &Tree; 2] = [
        |tree| tree.file("a", ""),
        |tree| tree.symlink("a", "nowhere"),
    ];
    let dests: [fn(&Tree) -> &Tree; 4] = [
        |tree| tree.fifo("d/a"),
        |tree| tree.dir("d/a"),
        |tree| tree.symlink("d/a/b", "nowhere"),
        |tree| tree.file("d/a/b", ""),
    ];
    for option in ["-r", "-a", "-p", "--preserve=mode", "--preserve=xattr"] {
        for (source, dest) in sources
            .iter()
            .flat_map(|source| dests.map(|dest| (source, dest)))
        {
            CP.strict()
                .only_newest()
                .args([option, "--parents", "a/b/f", "d"])
                .check(|tree| {
                    source(tree);
                    dest(tree);
                });
        }
    }
}

#[test]
fn reports_missing_sources() {
    CP.check(
        ["--parents", "-v", "a/zz/f", "a/b/zz", "f/x", "", "d"],
        nested,
    );
}

#[test]
fn needs_a_directory() {
    CP.check(["--parents", "f", "g"], nested);
    CP.check(["--parents", "f", "a/b/f"], nested);
    CP.check(["--parents", "-T", "f", "d"], nested);
    CP.check(["--parents", "f", "f", "g"], nested);
    CP.check(["--parents", "f"], nested);
}

#[test]
fn joins_other_rules() {
    let build = |tree: &Tree| {
        nested(tree);
        tree.file("d/a/b/f", "old");
    };
    CP.check(["--parents", "-nv", "a/b/f", "a/b/g", "d"], build);
    CP.check(["--parents", "--backup=t", "-v", "a/b/f", "d"], build);
    CP.check(
        ["--parents", "--remove-destination", "-v", "a/b/f", "d"],
        build,
    );
    CP.check(["--parents", "-v", "a/b/f", "a/b/f", "d"], build);
}

#[test]
fn keeps_hard_links_between_directories() {
    let build = |tree: &Tree| {
        nested(tree);
        tree.hardlink("a/b/g", "a/linked")
            .hardlink("a/b/g", "d/other");
    };
    CP.check(
        ["--preserve=links", "--parents", "a/b/g", "a/linked", "d"],
        build,
    );
    CP.check(
        ["--preserve=links", "--parents", "a/linked", "a/b", "d"],
        build,
    );
    CP.check_strict(["-l", "--parents", "a/b/g", "a/linked", "d"], build);
    CP.check(["-s", "--parents", "a/b/g", "d"], build);
}

#[test]
fn finds_a_directory_below_them_again() {
    let deep: String = (0..60).map(|level| format!("{level}/")).collect();
    let dir = Scratch::new();
    Tree::at(dir.path())
        .file(format!("a/b/{deep}last"), "")
        .file("a/b/0/beside", "")
        .dir("d");
    Run::new(CPZ)
        .args(["-a", "--parents", "a/b/", "d"])
        .current_dir(&dir)
        .nofile_limit(20)
        .output()
        .assert_success();
    assert!(dir.path().join(format!("d/a/b/{deep}last")).is_file());
    assert!(dir.path().join("d/a/b/0/beside").is_file());
}

#[test]
fn a_link_that_leads_through_a_file_is_not_taken_for_a_file() {
    CP.check(["--parents", "s/f", "d"], |tree| {
        tree.file("s/f", "").file("d/g", "").symlink("d/s", "g/x");
    });
}

/// Copies `a/b/f` to `d`, where `a` is a link to `elsewhere` that another user has made.
fn with_link_of_another_user(args: &[&str]) -> Option<(Outcome, Scratch)> {
    if !is_root() {
        return None;
    }
    let dir = Scratch::new();
    Tree::at(dir.path())
        .file("a/b/f", "new")
        .file("elsewhere/b/f", "old")
        .symlink("d/a", "../elsewhere")
        .owner(1234, 1234);
    let run = Run::new(CPZ).args(["--parents", "a/b/f", "d"]).args(args);
    Some((run.current_dir(&dir).output(), dir))
}

#[test]
fn refuses_a_link_of_another_user_in_place_of_a_parent() {
    for args in [&[][..], &["--remove-destination"], &["-f"]] {
        let Some((outcome, dir)) = with_link_of_another_user(args) else {
            skip!("only root can give links away");
        };
        assert_eq!(outcome.status, Status::Exit(1), "{args:?}");
        assert_eq!(
            complaint(&outcome),
            "cpz: 'd/a' exists but is not a directory\n"
        );
        let content = fs::read_to_string(dir.path().join("elsewhere/b/f")).unwrap();
        assert_eq!(content, "old", "{args:?}");
    }
}

#[test]
fn follows_a_link_of_another_user_if_asked_for() {
    let Some((outcome, dir)) = with_link_of_another_user(&["--keep-directory-symlink"]) else {
        skip!("only root can give links away");
    };
    outcome.assert_success();
    let content = fs::read_to_string(dir.path().join("elsewhere/b/f")).unwrap();
    assert_eq!(content, "new");
}

#[test]
fn strips_slashes_from_sources_that_go_into_a_directory() {
    CP.check(["--strip-trailing-slashes", "-v", "f///", "d"], nested);
    CP.check(["--strip-trailing-slashes", "-v", "l/", "d"], nested);
    CP.check(
        ["--strip-trailing-slashes", "--parents", "-v", "a/b/f/", "d"],
        nested,
    );
    CP.check(["--strip-trailing-slashes", "-v", "f/", "g"], nested);
    CP.check(["--strip-trailing-slashes", "-v", "f", "g/"], nested);
    CP.check_strict(["--strip-trailing-slashes", "-v", "//", "d"], nested);
}

// cp 9.10 follows the link only if --copy-contents is given, too.

fn with_linked_dest(args: &[&str]) -> (Outcome, Scratch) {
    let dir = Scratch::new();
    Tree::at(dir.path())
        .file("from/sub/f", "new")
        .file("from/sub/deep/g", "new")
        .dir("elsewhere")
        .symlink("to/sub", "../elsewhere");
    let run = Run::new(CPZ).args(args).args(["-T", "from", "to"]);
    (run.current_dir(&dir).output(), dir)
}

#[test]
fn keeps_a_link_to_a_directory() {
    let (outcome, dir) = with_linked_dest(&["--keep-directory-symlink"]);
    outcome.assert_success();
    assert!(dir.path().join("to/sub").is_symlink());
    assert!(dir.path().join("elsewhere/f").is_file());
    assert!(dir.path().join("elsewhere/deep/g").is_file());
}

#[test]
fn refuses_a_link_to_a_directory_without_it() {
    let (outcome, dir) = with_linked_dest(&[]);
    assert_eq!(outcome.status, Status::Exit(1));
    assert_eq!(
        complaint(&outcome),
        "cpz: cannot overwrite non-directory 'to/sub' with directory 'from/sub'\n"
    );
    assert!(!dir.path().join("elsewhere/f").exists());
}

#[test]
fn keeps_a_link_that_it_has_to_find_again() {
    let dir = Scratch::new();
    let tree = Tree::at(dir.path());
    tree.dir("elsewhere").symlink("to/0", "../elsewhere");
    let deep: String = (0..60).map(|level| format!("{level}/")).collect();
    tree.file(format!("from/{deep}last"), "")
        .file("from/0/beside", "")
        .file("from/0/1/beside", "");
    Run::new(CPZ)
        .args(["--keep-directory-symlink", "-T", "from", "to"])
        .current_dir(&dir)
        .nofile_limit(20)
        .output()
        .assert_success();
    let below = deep.trim_start_matches("0/");
    assert!(
        dir.path()
            .join("elsewhere")
            .join(below)
            .join("last")
            .is_file()
    );
    assert!(dir.path().join("elsewhere/1/beside").is_file());
}
