//! Compares the table with cp: both read the same command lines, and must report the same errors. Older
//! releases lack some options.

mod manual;

use super::TABLE;
use crate::options;
use fuc_cli::console::Console;
use fuc_cli::flags::{ArgOrder, Scan, Stop, assert_words_are_accepted};
use fuc_cli::invocation::Personality;
use fuc_cli::locale::Charset;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use testkit::or_skip;
use testkit::probe::newest_gnu;

/// Returns the error in these arguments, none of which is an operand. Returns an empty string if there is no error.
fn ours(arguments: &[OsString]) -> String {
    match Scan::of(&TABLE, arguments, Personality::Strict, ArgOrder::Any).stop {
        Some(Stop::Error(error)) => String::from_utf8(error.message).unwrap(),
        Some(Stop::Help | Stop::Version) | None => String::new(),
    }
}

fn theirs(cp: &Path, arguments: &[OsString]) -> String {
    let cp = Command::new(cp)
        .arg0("cp")
        .env("LC_ALL", "C")
        .env_remove("POSIXLY_CORRECT")
        .args(arguments)
        .output()
        .unwrap();
    let stderr = String::from_utf8(cp.stderr).unwrap();
    let line = stderr.lines().next().unwrap_or_default();
    let line = line.strip_prefix("cp: ").unwrap_or_default();
    // Later stages report these errors, not the scan.
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

fn agrees_with(cp: &Path, arguments: &[&str]) {
    let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    let ours = ours(&arguments);
    let theirs = theirs(cp, &arguments);
    assert_eq!(ours, theirs, "{arguments:?}");
}

#[test]
fn resolves_every_prefix_of_every_long_option_as_cp_does() {
    let cp = or_skip!(newest_gnu("cp"));
    for name in [
        "archive",
        "attributes-only",
        "backup",
        "copy-contents",
        "debug",
        "dereference",
        "force",
        "interactive",
        "keep-directory-symlink",
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
            agrees_with(&cp, &[&format!("--{}", &name[..end])]);
        }
        agrees_with(&cp, &[&format!("--{name}=x")]);
        agrees_with(&cp, &[&format!("--{name}x")]);
        agrees_with(&cp, &[&format!("--{}=", &name[..2])]);
    }
}

#[test]
fn knows_the_same_letters_as_cp() {
    let cp = or_skip!(newest_gnu("cp"));
    for byte in b' '..=b'~' {
        agrees_with(&cp, &[&format!("-{}", char::from(byte))]);
        agrees_with(&cp, &[&format!("-f{}", char::from(byte))]);
    }
}

#[test]
fn reports_the_same_errors_as_cp() {
    let cp = or_skip!(newest_gnu("cp"));
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
        agrees_with(&cp, arguments);
    }
}

#[test]
fn the_words_of_the_table_are_those_that_the_options_accept() {
    let console = &Console::new(b"cpz".to_vec(), Charset::Ascii);
    let resolve = |flag| options::resolve(&[flag], Personality::Extended, console);
    assert_words_are_accepted(&TABLE, |flag| {
        let resolved = resolve(flag);
        resolved.is_ok_and(|mut options| options.finish(Charset::Ascii).is_ok())
    });
}
