//! Links instead of copies: -l and -s.

use std::time::Duration;

use testkit::{
    or_skip,
    probe::{self, Fs, LoopMount, NOBODY},
    run::Parity,
    skip,
    tree::Tree,
};

use crate::support::{CPZ, cp_r, strict_cp};

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
    strict_cp(["-l", "f", "new"], sources);
    strict_cp(["-lv", "f", "d/f", "other", "into"], sources);
    cp_r(["-l", "f", "new"], sources);
}

#[test]
fn makes_directories_of_hard_links() {
    cp_r(["-l", "d", "new"], sources);
    cp_r(["-lv", "d", "into"], sources);
    strict_cp(["-l", "d", "new"], sources);
}

#[test]
fn makes_hard_links_to_symlinks_only_if_asked() {
    strict_cp(["-l", "link", "new"], sources);
    strict_cp(["-lP", "link", "new"], sources);
    strict_cp(["-lL", "link", "new"], sources);
    strict_cp(["-l", "dangling", "new"], sources);
    cp_r(["-lP", "d", "new"], sources);
    cp_r(["-lP", "to-dir", "new"], sources);
    cp_r(["-l", "to-dir", "new"], sources);
    cp_r(["-lL", "d", "new"], sources);
    cp_r(["-lH", "d", "new"], sources);
}

#[test]
fn makes_hard_links_to_special_files() {
    cp_r(["-l", "d", "new"], |tree| {
        tree.fifo("d/p").socket("d/s");
    });
    strict_cp(["-l", "p", "new"], |tree| {
        tree.fifo("p");
    });
}

#[test]
fn replaces_no_dest_by_a_hard_link() {
    strict_cp(["-lv", "f", "other"], sources);
    strict_cp(["-l", "f", "dangling"], sources);
    strict_cp(["-l", "d/f", "link"], sources);
    strict_cp(["-lT", "f", "into"], sources);
}

#[test]
fn replaces_the_dest_by_a_hard_link_with_force() {
    strict_cp(["-lfv", "f", "other"], sources);
    strict_cp(["-lf", "f", "dangling"], sources);
    strict_cp(["-lf", "d/f", "link"], sources);
    strict_cp(["-lfT", "f", "into"], sources);
}

#[test]
fn is_content_with_a_hard_link_that_is_there() {
    strict_cp(["-lv", "f", "twin"], sources);
    strict_cp(["-lv", "f", "f"], sources);
    strict_cp(["-lfv", "f", "f"], sources);
    strict_cp(["-lP", "link", "link"], sources);
}

#[test]
fn makes_no_hard_links_to_another_filesystem() {
    let other = or_skip!(LoopMount::new(Fs::Tmpfs, 1));
    let dest = other.path().join("new").display().to_string();
    strict_cp(["-lv", "f", &dest], sources);
}

#[test]
fn makes_symlinks() {
    strict_cp(["-s", "d/f", "new"], sources);
    strict_cp(["-sv", "d/f", "./new"], sources);
    strict_cp(["-s", "./d/f", "into/../new"], sources);
    strict_cp(["-s", "$PWD/f", "$PWD/d/f", "into"], sources);
    strict_cp(["-s", "f", "$PWD/new"], sources);
}

#[test]
fn makes_directories_of_symlinks() {
    cp_r(["-s", "$PWD/d", "new"], sources);
    cp_r(["-sL", "$PWD/d", "new"], sources);
    cp_r(["-s", "d/.", "."], sources);
}

#[test]
fn makes_relative_symlinks_in_the_working_directory_only() {
    strict_cp(["-sv", "f", "into"], sources);
    strict_cp(["-s", "d/f", "into/with a space"], sources);
    strict_cp(["-s", "f", "missing/new"], sources);
    cp_r(["-s", "d", "new"], sources);
}

#[test]
fn follows_the_links_that_symlinks_are_made_to() {
    strict_cp(["-s", "link", "new"], sources);
    strict_cp(["-sP", "link", "new"], sources);
    strict_cp(["-s", "dangling", "new"], sources);
    strict_cp(["-sP", "dangling", "new"], sources);
}

#[test]
fn replaces_no_dest_by_a_symlink() {
    strict_cp(["-sv", "f", "other"], sources);
    strict_cp(["-s", "f", "dangling"], sources);
    strict_cp(["-s", "d/f", "link"], sources);
    strict_cp(["-sT", "f", "into"], sources);
}

#[test]
fn replaces_the_dest_by_a_symlink_with_force() {
    strict_cp(["-sfv", "f", "other"], sources);
    strict_cp(["-sf", "f", "dangling"], sources);
    strict_cp(["-sf", "d/f", "link"], sources);
}

#[test]
fn loses_no_file_to_a_symlink_to_itself() {
    strict_cp(["-s", "f", "f"], sources);
    strict_cp(["-sf", "f", "f"], sources);
    strict_cp(["-sf", "f", "twin"], sources);
    strict_cp(["-sf", "link", "d/f"], sources);
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
    cp_r(["-sv", "$PWD/d", "into"], taken);
    cp_r(["-lPv", "d", "into"], taken);
    cp_r(["-lv", "d", "into"], taken);
    cp_r(["-sLv", "$PWD/d", "into"], taken);
}

#[test]
fn makes_either_hard_or_symbolic_links() {
    strict_cp(["-ls", "f", "new"], sources);
    strict_cp(["-sl"], sources);
    strict_cp(["-slt", "missing", "f"], sources);
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
fn takes_the_place_of_one_of_several_names_where_links_are_kept() {
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
