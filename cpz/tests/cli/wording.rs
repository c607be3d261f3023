//! Messages and lines that are those of the newest cp.

use std::time::Duration;

use testkit::{
    probe::{NOBODY, is_root},
    run::Parity,
    skip,
    tree::Tree,
};

use crate::support::NEWEST_CP;

/// Compares cpz, called as `cp` without `-r`, with cp.
fn strict(args: &[&str]) -> Parity {
    NEWEST_CP.strict().args(args)
}

#[track_caller]
fn check(args: &[&str], build: impl Fn(&Tree)) {
    strict(args).check(build);
}

/// Builds a source of each type, and a directory in the way.
fn sources(tree: &Tree) {
    tree.file("f", "content")
        .symlink("link", "f")
        .symlink("dangling", "nowhere")
        .fifo("fifo")
        .dir("d");
}

#[test]
fn a_refusal_names_the_directory_and_the_source() {
    for source in ["f", "link", "dangling", "fifo"] {
        check(&["-rT", source, "d"], sources);
        check(&["-rT", "--remove-destination", source, "d"], sources);
    }
}

#[test]
fn with_backups_the_copy_over_a_directory_is_tried() {
    for source in ["f", "link", "dangling", "fifo"] {
        for flag in ["-b", "-S.o", "-a", "-l", "-s", "--attributes-only"] {
            check(&["-rbvT", flag, source, "d"], sources);
        }
    }
    for flag in ["-f", "-lf", "-sf", "-li", "-si", "-i"] {
        strict(&["-bvT", flag, "f", "d"])
            .stdin("y\n")
            .check(sources);
    }
    check(&["-bvPT", "to-d", "d"], |tree| {
        tree.symlink("to-d", "d").dir("d");
    });
    check(&["-rbvT", "s", "into"], |tree| {
        tree.file("s/x", "x").symlink("s/y", "x").dir("into/x");
        tree.dir("into/y");
    });
    check(&["-rbv", "x/c", "c", "into"], |tree| {
        tree.dir("x/c").file("c", "content").dir("into");
    });
}

#[test]
fn with_backups_an_unreadable_source_is_reported_first() {
    if !is_root() {
        skip!("only root can become another user");
    }
    strict(&["-bvT", "f", "d"]).uid(NOBODY).check(|tree| {
        tree.file("f", "content").mode(0).dir("d");
    });
}

#[test]
fn a_link_to_the_directory_in_the_way_is_the_same_file() {
    let build = |tree: &Tree| {
        tree.dir("d").symlink("to-d", "d");
    };
    for flag in ["-d", "-a", "-df", "-ds", "-dl", "-dn", "-du"] {
        check(&["-vT", flag, "to-d", "d"], build);
    }
    check(&["-vdT", "--remove-destination", "to-d", "d"], build);
}

#[test]
fn a_source_directory_is_compared_with_the_target_of_a_link_if_no_source_is_followed() {
    let build = |tree: &Tree| {
        tree.file("d/f", "content").symlink("into/d", "../d");
    };
    for flag in [
        "-v",
        "-L",
        "-H",
        "-a",
        "-u",
        "-n",
        "-l",
        "-s",
        "--update=none-fail",
        "--remove-destination",
    ] {
        check(&["-r", flag, "d", "into"], build);
    }
}

#[test]
fn wrong_options_and_help_come_before_checks_of_the_rules() {
    let build = |tree: &Tree| {
        tree.file("a", "new").file("b", "old");
    };
    for args in [
        &["-n", "-b", "--bogus"][..],
        &["--backup=x", "--bogus"],
        &["--backup=x", "-t"],
        &["--backup=x", "-n"],
        &["-n", "-b", "-l", "-s"],
        &["-n", "-b", "--reflink", "--sparse=never"],
        &["--backup=x", "--reflink", "--sparse=never"],
        &["--backup=x", "--preserve=context"],
        &["--backup=x", "-t", "missing", "a"],
        &["--update=none", "-b", "a", "b"],
        &["-b", "--update=none", "a", "b"],
        &["--update=none", "-S.o", "a", "b"],
        &["--update=none", "--backup=off", "a", "b"],
        &["--update=none", "-u", "-b", "a", "b"],
        &["--backup=none", "-n", "a", "b"],
        &["--update=none-fail", "-b", "a", "b"],
        &["-n", "-i", "--backup=x", "a", "b"],
    ] {
        check(args, build);
        strict(args).env("VERSION_CONTROL", "x").check(build);
    }
    for stop in ["--help", "--version"] {
        for args in [["-n", "-b", stop], ["--backup=x", "-b", stop]] {
            // The text itself is our own.
            let script = r#""$@" >/dev/null"#;
            strict(&args).in_script(script).check(build);
        }
    }
}

#[test]
fn debug_names_dests_that_are_skipped() {
    let build = |tree: &Tree| {
        tree.file("old", "old")
            .mtime(Duration::from_secs(1))
            .file("new", "new")
            .mtime(Duration::from_secs(2))
            .symlink("link", "old")
            .hardlink("link", "other");
    };
    for flag in ["-u", "-n", "--update=none", "--update=none-fail", "-ub"] {
        check(&["--debug", flag, "old", "new"], build);
    }
    strict(&["--debug", "-i", "old", "new"])
        .stdin("n\n")
        .check(build);
    check(&["-vu", "old", "new"], build);
    check(&["--debug", "-d", "link", "other"], build);
    check(&["--debug", "-dn", "link", "other"], build);
}

#[test]
fn debug_names_backups_and_only_content_that_was_copied() {
    let build = |tree: &Tree| {
        tree.file("f", "content").file("old", "old").dir("d");
    };
    for flag in ["-b", "--backup=t", "-S.o", "-p", "-f", "-l", "-s"] {
        check(&["--debug", flag, "f", "old"], build);
    }
    for flags in ["-p", "-r", "-b"] {
        check(&["--debug", "--attributes-only", flags, "f", "old"], build);
        check(&["--debug", "--attributes-only", flags, "f", "d"], build);
    }
}

#[test]
fn a_colon_in_the_name_of_a_symbolic_link_is_quoted() {
    for name in ["a:b", ":", "it:'s", "a b", "a"] {
        check(&["-s", name, "d"], |tree| {
            tree.file(name, "").dir("d");
        });
    }
}

#[test]
fn a_copy_is_named_before_its_dest_cannot_be_removed() {
    if !is_root() {
        skip!("only root can become another user");
    }
    for flag in ["-f", "-fd", "--remove-destination", "-fp", "-lf", "-b"] {
        strict(&["-v", flag, "f", "locked/f"])
            .uid(NOBODY)
            .check(|tree| {
                tree.file("f", "new")
                    .file("locked/f", "old")
                    .mode(0o400)
                    .select("locked")
                    .mode(0o555);
            });
    }
}

#[test]
fn permissions_that_cannot_be_set_are_reported_in_the_quotes_of_the_locale() {
    if !is_root() {
        skip!("only root can make files of others");
    }
    let script = "chown 0 \"it's theirs\"; chmod 666 \"it's theirs\"; chmod 777 .
        exec setpriv --reuid 65534 --clear-groups \"$@\"";
    for locale in ["C", "C.UTF-8"] {
        strict(&["--preserve=mode", "f", "it's theirs"])
            .in_script(script)
            .env("LC_ALL", locale)
            .check(|tree| {
                tree.file("f", "new").mode(0o640);
                tree.file("it's theirs", "old");
            });
    }
}
