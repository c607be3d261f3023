//! `-u`, `--update`, `-n`, `--remove-destination`: which dests are replaced, and by what means.

use std::time::Duration;

use testkit::{
    run::Run,
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ, NEWEST_CP};

fn dated(tree: &Tree) {
    let at = Duration::from_nanos;
    tree.file("old", "old")
        .mtime(at(1_000_000_001))
        .file("new", "new")
        .mtime(at(1_000_000_002))
        .file("same", "same")
        .mtime(at(1_000_000_001))
        .symlink("l", "old")
        .mtime(at(5_000_000_000))
        .symlink("dangling", "nowhere")
        .file("d/new", "other")
        .mtime(at(1_000_000_001))
        .file("d/old", "other")
        .mtime(at(1_000_000_002))
        .dir("dir");
}

#[test]
fn replaces_dests_that_are_older_by_a_nanosecond() {
    CP.check(["-uv", "new", "old"], dated);
    CP.check(["-uv", "old", "new"], dated);
    CP.check(["-uv", "same", "old"], dated);
    CP.check(["--update", "-v", "new", "old", "d"], dated);
}

#[test]
fn replaces_dests_that_a_power_cut_has_emptied() {
    let build = |tree: &Tree| {
        let at = Duration::from_secs(1_000_000_000);
        for name in ["full", "emptied", "long"] {
            tree.file(format!("s/{name}"), "content").mtime(at);
        }
        tree.file("d/full", "content").mtime(at);
        tree.file("d/emptied", "").mtime(at);
        tree.file("d/long", "content, and more").mtime(at);
    };
    let scratch = Scratch::new();
    build(&Tree::at(scratch.path()));
    let run = Run::new(CPZ)
        .args(["-auTv", "s", "d"])
        .current_dir(&scratch);
    let outcome = run.output();
    let mut lines: Vec<_> = outcome
        .assert_success()
        .stdout_text()
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    assert_eq!(
        lines,
        ["'s/emptied' -> 'd/emptied'", "'s/long' -> 'd/long'"]
    );
    // Without preserved times, an equal time says nothing.
    CP.check(["-uTv", "s", "d"], build);
}

#[test]
fn copies_to_missing_dests() {
    CP.check(["-uv", "old", "fresh"], dated);
    CP.check(["-nv", "old", "fresh"], dated);
    CP.check(["--remove-destination", "-v", "old", "fresh"], dated);
}

#[test]
fn compares_the_files_that_links_lead_to() {
    CP.check(["-uv", "new", "l"], dated);
    CP.check(["-uv", "l", "new"], dated);
    CP.check_strict(["-uv", "l", "new"], dated);
    CP.check(["-u", "new", "dangling"], dated);
    CP.check(["-n", "new", "dangling"], dated);
}

#[test]
fn passes_over_whatever_exists() {
    CP.check(["-nv", "new", "old"], dated);
    CP.check(["-nv", "new", "old", "l", "d"], dated);
    CP.check(["-nvT", "new", "d"], dated);
    CP.check(["-nf", "new", "old"], dated);
    CP.check(["-n", "--remove-destination", "new", "dangling"], dated);
    CP.check(["-un", "new", "old"], dated);
    CP.check(["-n", "old", "old"], dated);
}

#[test]
fn passes_over_without_opening_the_source() {
    CP.check_as_nobody(["-nv", "secret", "old"], |tree| {
        dated(tree);
        tree.file("secret", "").mode(0);
    });
}

#[test]
fn refuses_one_file_though_it_is_not_older() {
    CP.check(["-u", "old", "old"], dated);
    CP.check(["-u", "old", "l"], dated);
}

#[test]
fn updates_a_tree() {
    let build = |tree: &Tree| {
        let seconds = Duration::from_secs;
        for number in 0..60 {
            tree.file(format!("from/{}/{number}", number % 7), "new")
                .mtime(seconds(100 + number % 3))
                .file(format!("to/{}/{number}", number % 7), "old content")
                .mtime(seconds(101));
        }
        tree.symlink("from/1/l", "x")
            .symlink("to/1/l", "y")
            .file("from/2/dir", "")
            .dir("to/2/dir")
            .file("to/3/other", "")
            .dir("from/3/other");
    };
    NEWEST_CP.check(["-uv", "-T", "from", "to"], build);
    CP.check(["-nv", "-T", "from", "to"], build);
    NEWEST_CP.check(["--remove-destination", "-v", "-T", "from", "to"], build);
}

#[test]
fn updates_a_file_twice_in_one_run_only_if_it_is_newer() {
    CP.check(["-uv", "new", "d/new", "dir"], dated);
    CP.check(["-nv", "new", "d/new", "dir"], dated);
    CP.check(["--remove-destination", "-v", "new", "d/new", "dir"], dated);
}

#[test]
fn removes_the_dest_first() {
    CP.check(["--remove-destination", "-v", "new", "old"], dated);
    CP.check(["--remove-destination", "-v", "new", "l"], dated);
    CP.check(["--remove-destination", "-v", "new", "dangling"], dated);
    NEWEST_CP.check(["--remove-destination", "-v", "-T", "new", "dir"], dated);
    CP.check(["--remove-destination", "-v", "-T", "dir", "new"], dated);
    CP.check(["--remove-destination", "-v", "l", "new"], dated);
}

#[test]
fn reports_dests_that_cannot_be_removed() {
    CP.check_as_nobody(["--remove-destination", "-v", "a", "locked/a"], |tree| {
        tree.file("a", "new")
            .file("locked/a", "")
            .select("locked")
            .mode(0o555);
    });
}

/// Compares `--update=WHEN`, which older releases lack.
#[track_caller]
fn update(when: &str, source: &str, dest: &str) {
    let update = format!("--update={when}");
    NEWEST_CP.check([&update, "-v", source, dest], dated);
}

#[test]
fn all_replaces_all() {
    update("all", "old", "new");
}

#[test]
fn older_replaces_older_dests() {
    update("older", "new", "old");
    update("o", "old", "new");
}

#[test]
fn none_replaces_nothing_in_silence() {
    update("none", "new", "old");
}

#[test]
fn none_fail_reports_dests_that_it_does_not_replace() {
    update("none-fail", "new", "old");
}

#[test]
fn other_words_are_listed() {
    update("non", "new", "old");
    update("x", "new", "old");
}
