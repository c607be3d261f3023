//! The table against the installed cp: each command line is scanned here and given to cp, and the complaints are compared.

use super::TABLE;
use fuc_cli::flags::{Order, Stop};
use fuc_cli::invocation::Personality;
use std::ffi::OsString;
use std::process::Command;

/// The complaint about these arguments, none of them an operand; empty: they are fine.
fn ours(arguments: &[OsString]) -> String {
    match TABLE.scan(arguments, Personality::Strict, Order::Any).stop {
        Some(Stop::Misuse(misuse)) => String::from_utf8(misuse.message).unwrap(),
        Some(Stop::Help | Stop::Version) | None => String::new(),
    }
}

fn theirs(arguments: &[OsString]) -> String {
    let cp = Command::new("cp")
        .env("LC_ALL", "C")
        .env_remove("POSIXLY_CORRECT")
        .args(arguments)
        .output()
        .unwrap();
    let stderr = String::from_utf8(cp.stderr).unwrap();
    let line = stderr.lines().next().unwrap_or_default();
    let line = line.strip_prefix("cp: ").unwrap_or_default();
    // What cp says next is no business of the scan.
    let of_a_later_stage = line.starts_with("missing file operand")
        || line.starts_with("warning: ")
        || line.starts_with("failed to set default file creation context")
        || line.starts_with("cannot ");
    if of_a_later_stage || line.contains(" argument '") {
        String::new()
    } else {
        line.into()
    }
}

/// Where newer cps differ from 9.1: they have --debug, and --update takes a value.
const NEWER: [&str; 5] = ["--d", "--de", "--de=", "--up=", "--update=x"];

fn agrees_with_cp(arguments: &[&str]) {
    if NEWER.contains(&arguments[0]) {
        return;
    }
    let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    let ours = ours(&arguments);
    let theirs = theirs(&arguments);
    assert_eq!(ours, theirs, "{arguments:?}");
}

#[test]
fn resolves_every_prefix_of_every_long_option_as_cp_does() {
    for name in [
        "archive",
        "attributes-only",
        "backup",
        "copy-contents",
        "dereference",
        "force",
        "interactive",
        "link",
        "no-clobber",
        "no-dereference",
        "no-preserve",
        "no-target-directory",
        "one-file-system",
        "parents",
        "path",
        "preserve",
        "recursive",
        "remove-destination",
        "sparse",
        "reflink",
        "strip-trailing-slashes",
        "suffix",
        "symbolic-link",
        "target-directory",
        "update",
        "verbose",
        "context",
        "help",
        "version",
    ] {
        for end in 1..=name.len() {
            agrees_with_cp(&[&format!("--{}", &name[..end])]);
        }
        agrees_with_cp(&[&format!("--{name}=x")]);
        agrees_with_cp(&[&format!("--{name}x")]);
        agrees_with_cp(&[&format!("--{}=", &name[..2])]);
    }
}

#[test]
fn knows_every_letter_that_cp_knows() {
    for byte in b' '..=b'~' {
        agrees_with_cp(&[&format!("-{}", char::from(byte))]);
        agrees_with_cp(&[&format!("-f{}", char::from(byte))]);
    }
}

#[test]
fn complains_as_cp_does() {
    for arguments in [
        &["--threads=2"][..],
        &["--x=y"],
        &["-rfvx"],
        &["-r-"],
        &["-f", "--bogus", "-x"],
        &["-x", "--help"],
        &["--help", "-%"],
        &["-t"],
        &["-ft"],
        &["-S"],
        &["--target"],
        &["--no-t", "-t"],
        &["-R", "--recursive", "-vv"],
    ] {
        agrees_with_cp(arguments);
    }
}
