//! Links instead of copies: -l and -s.

use std::time::Duration;

use testkit::{
    or_skip,
    probe::{self, Fs, LoopMount, NOBODY, is_root},
    run::Parity,
    skip,
    tree::Tree,
};

use crate::support::{CP, CPZ, NEWEST_CP};

fn sources(tree: &Tree) {
    tree.file("d/f", b"content")
        .mode(0o640)
        .file("d/sub/g", b"more")
        .symlink("d/link", "f")
        .symlink("link", "d/f")
        .symlink("to-dir", "d/sub")
        .file("f", b"content")
        .hardlink("f", "twin")
        .file("other", b"other")
        .symlink("dangling", "nowhere")
        .dir("into");
}

#[test]
fn makes_hard_links() {
    CP.check_strict(["-l", "f", "new"], sources);
    CP.check_strict(["-lv", "f", "d/f", "other", "into"], sources);
    CP.check(["-l", "f", "new"], sources);
}

#[test]
fn makes_directories_of_hard_links() {
    CP.check(["-l", "d", "new"], sources);
    CP.check(["-lv", "d", "into"], sources);
    CP.check_strict(["-l", "d", "new"], sources);
}

#[test]
fn makes_hard_links_to_symlinks_only_if_asked() {
    CP.check_strict(["-l", "link", "new"], sources);
    CP.check_strict(["-lP", "link", "new"], sources);
    CP.check_strict(["-lL", "link", "new"], sources);
    CP.check_strict(["-l", "dangling", "new"], sources);
    CP.check(["-lP", "d", "new"], sources);
    CP.check(["-lP", "to-dir", "new"], sources);
    CP.check(["-l", "to-dir", "new"], sources);
    CP.check(["-lL", "d", "new"], sources);
    CP.check(["-lH", "d", "new"], sources);
}

#[test]
fn makes_hard_links_to_special_files() {
    CP.check(["-l", "d", "new"], |tree| {
        tree.fifo("d/p").socket("d/s");
    });
    CP.check_strict(["-l", "p", "new"], |tree| {
        tree.fifo("p");
    });
}

#[test]
fn replaces_no_dest_by_a_hard_link() {
    CP.check_strict(["-lv", "f", "other"], sources);
    CP.check_strict(["-l", "f", "dangling"], sources);
    CP.check_strict(["-l", "d/f", "link"], sources);
    NEWEST_CP.check_strict(["-lT", "f", "into"], sources);
}

#[test]
fn replaces_the_dest_by_a_hard_link_with_force() {
    CP.check_strict(["-lfv", "f", "other"], sources);
    CP.check_strict(["-lf", "f", "dangling"], sources);
    CP.check_strict(["-lf", "d/f", "link"], sources);
    NEWEST_CP.check_strict(["-lfT", "f", "into"], sources);
}

#[test]
fn is_content_with_a_hard_link_that_is_there() {
    CP.check_strict(["-lv", "f", "twin"], sources);
    CP.check_strict(["-lv", "f", "f"], sources);
    CP.check_strict(["-lfv", "f", "f"], sources);
    CP.check_strict(["-lP", "link", "link"], sources);
}

#[test]
fn makes_no_hard_links_to_another_filesystem() {
    let other = or_skip!(LoopMount::new(Fs::Tmpfs, 1));
    let dest = other.path().join("new").display().to_string();
    CP.check_strict(["-lv", "f", &dest], sources);
}

#[test]
fn makes_symlinks() {
    CP.check_strict(["-s", "d/f", "new"], sources);
    CP.check_strict(["-sv", "d/f", "./new"], sources);
    CP.check_strict(["-s", "./d/f", "into/../new"], sources);
    CP.check_strict(["-s", "$PWD/f", "$PWD/d/f", "into"], sources);
    CP.check_strict(["-s", "f", "$PWD/new"], sources);
}

#[test]
fn makes_directories_of_symlinks() {
    CP.check(["-s", "$PWD/d", "new"], sources);
    CP.check(["-sL", "$PWD/d", "new"], sources);
    CP.check(["-s", "d/.", "."], sources);
}

#[test]
fn makes_relative_symlinks_in_the_working_directory_only() {
    CP.check_strict(["-sv", "f", "into"], sources);
    CP.check_strict(["-s", "d/f", "into/with a space"], sources);
    CP.check_strict(["-s", "f", "missing/new"], sources);
    CP.check(["-s", "d", "new"], sources);
}

#[test]
fn follows_the_links_that_symlinks_are_made_to() {
    CP.check_strict(["-s", "link", "new"], sources);
    CP.check_strict(["-sP", "link", "new"], sources);
    CP.check_strict(["-s", "dangling", "new"], sources);
    CP.check_strict(["-sP", "dangling", "new"], sources);
}

#[test]
fn replaces_no_dest_by_a_symlink() {
    CP.check_strict(["-sv", "f", "other"], sources);
    CP.check_strict(["-s", "f", "dangling"], sources);
    CP.check_strict(["-s", "d/f", "link"], sources);
    NEWEST_CP.check_strict(["-sT", "f", "into"], sources);
}

#[test]
fn replaces_the_dest_by_a_symlink_with_force() {
    CP.check_strict(["-sfv", "f", "other"], sources);
    CP.check_strict(["-sf", "f", "dangling"], sources);
    CP.check_strict(["-sf", "d/f", "link"], sources);
}

#[test]
fn loses_no_file_to_a_symlink_to_itself() {
    CP.check_strict(["-s", "f", "f"], sources);
    CP.check_strict(["-sf", "f", "f"], sources);
    CP.check_strict(["-sf", "f", "twin"], sources);
    CP.check_strict(["-sf", "link", "d/f"], sources);
}

#[test]
fn replaces_symlinks_and_special_files_by_links() {
    fn taken(tree: &Tree) {
        tree.symlink("d/l", "f")
            .fifo("d/p")
            .file("d/f", b"content")
            .symlink("into/d/l", "x")
            .file("into/d/p", b"old");
    }
    CP.check(["-sv", "$PWD/d", "into"], taken);
    CP.check(["-lPv", "d", "into"], taken);
    CP.check(["-lv", "d", "into"], taken);
    CP.check(["-sLv", "$PWD/d", "into"], taken);
}

#[test]
fn makes_either_hard_or_symbolic_links() {
    CP.check_strict(["-ls", "f", "new"], sources);
    CP.check_strict(["-sl"], sources);
    CP.check_strict(["-slt", "missing", "f"], sources);
}

#[test]
fn makes_links_as_an_ordinary_user() {
    if !probe::is_root() {
        skip!("only root can become another user");
    }
    for flag in ["-lv", "-sfv"] {
        Parity::new(CPZ, "cp")
            .args(["-R", flag, "$PWD/d", "locked"])
            .uid(NOBODY)
            .check(|tree| {
                tree.file("d/f", b"content")
                    .mode(0)
                    .file("locked/d/f", b"old")
                    .select("locked/d")
                    .mode(0o555);
            });
    }
}

#[test]
fn gives_symbolic_links_the_times_of_their_sources_if_asked_to() {
    if !is_root() {
        skip!("only root can give files away");
    }
    let build = |tree: &Tree| {
        tree.file("d/f", "")
            .owner(1, 2)
            .mtime(Duration::from_nanos(99_000_000_007));
    };
    for flags in ["-as", "-psr", "-sr", "-dsr"] {
        Parity::new(CPZ, "cp")
            .args([flags, "$PWD/d", "new"])
            .check(build);
    }
}

#[test]
fn replaces_one_of_several_names_if_links_are_kept() {
    let build = |tree: &Tree| {
        tree.file("s/f", "new")
            .file("s/alone", "new")
            .file("d/f", "old")
            .hardlink("d/f", "d/other")
            .file("d/alone", "old")
            .symlink("d/to-f", "f");
    };
    for flags in [
        &["-dl"][..],
        &["-al"],
        &["-dlf"],
        &["-l", "--preserve=links"],
        &["-dl", "--attributes-only"],
        &["-dlb"],
        &["-dln"],
        &["-alu"],
        &["-l"],
    ] {
        for operands in [["s/f", "d/f"], ["s/f", "d/to-f"], ["s/.", "d"]] {
            Parity::new(CPZ, "cp")
                .args(["-r", "-v"])
                .args(flags)
                .args(operands)
                .check(build);
        }
    }
}
