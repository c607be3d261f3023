//! Messages and lines that are those of the newest cp.

use testkit::{run::Parity, tree::Tree};

use crate::support::NEWEST_CP;

/// Compares cpz, called as `cp` without `-r`, with cp.
fn strict(args: &[&str]) -> Parity {
    NEWEST_CP.strict().args(args)
}

#[track_caller]
fn check(args: &[&str], build: impl Fn(&Tree)) {
    strict(args).check(build);
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
