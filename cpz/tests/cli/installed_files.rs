//! The manual page and the completions, which packages install.

use std::path::Path;

use testkit::{
    completion::Shell,
    or_skip,
    probe::has_program,
    run::Run,
    skip,
    tree::{Scratch, Tree},
};

use crate::support::CPZ;

const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

/// Asserts that each shell completes `line` to these words, in a directory with `dir` and `some-file`.
#[track_caller]
fn completes(line: &str, expected: &[&str]) {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).dir("dir").file("some-file", "");
    let scripts = Path::new(PACKAGE).join("completions");
    for shell in Shell::ALL {
        let candidates = or_skip!(shell.complete(&scripts, line, scratch.path()));
        assert_eq!(candidates, expected, "{shell:?} completes {line:?}");
    }
}

#[test]
fn man_shows_the_page_without_a_warning() {
    if !has_program("man") {
        skip!("man is not installed");
    }
    let page = format!("{PACKAGE}/man/cpz.1");
    let outcome = Run::new("man")
        .args(["--warnings", "-l", &page])
        .env("MANWIDTH", "80")
        .output();
    assert_eq!(outcome.stderr_text(), "");
    let text = outcome.assert_success().stdout_text();
    for heading in [
        "NAME",
        "SYNOPSIS",
        "OPTIONS",
        "PATTERNS",
        "STATISTICS",
        "SIGNALS",
    ] {
        assert!(text.contains(&format!("\n{heading}\n")), "{text}");
    }
    assert!(text.contains("-r, -R, --recursive"), "{text}");
    assert!(text.contains("--reflink[=WHEN]"), "{text}");
    assert!(!text.contains("presume"), "{text}");
}

#[test]
fn shells_complete_the_name_of_an_option() {
    completes("cpz --pro", &["--progress"]);
}

#[test]
fn shells_complete_an_option_after_an_operand() {
    completes("cpz some-file --res", &["--resume"]);
}

#[test]
fn shells_complete_the_value_of_an_option() {
    completes("cpz --reflink=", &["always", "auto", "never"]);
    completes("cpz --reflink=a", &["always", "auto"]);
    completes("cpz --sparse=n", &["never"]);
    completes("cpz --preserve=x", &["xattr"]);
}

#[test]
fn shells_complete_a_required_value_as_a_word_of_its_own() {
    completes("cpz --sparse ", &["always", "auto", "never"]);
    completes("cpz -t ", &["dir"]);
}

#[test]
fn shells_complete_files_after_an_option_whose_value_is_optional() {
    completes("cpz --reflink ", &["dir", "some-file"]);
}

#[test]
fn shells_complete_operands_to_files() {
    completes("cpz s", &["some-file"]);
    completes("cpz -v ", &["dir", "some-file"]);
}

#[test]
fn the_help_fits_a_terminal_of_80_columns() {
    // By its name, because the help repeats the path that the command was called by.
    let programs = Path::new(CPZ).parent().unwrap();
    let outcome = Run::new("cpz").arg("--help").env("PATH", programs).output();
    outcome.assert_success().assert_fits(80);
}
