//! Compares the table with the installed rm: both read the same command lines, and must report the
//! same errors.

mod manual;

use super::TABLE;
use crate::options;
use fuc_cli::console::Console;
use fuc_cli::flags::{ArgOrder, Scan, Stop, assert_words_are_accepted};
use fuc_cli::invocation::Personality;
use fuc_cli::locale::Charset;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;
use testkit::probe::gnu;

/// Returns the error in these arguments, none of which is an operand. Returns an empty string if
/// there is no error.
fn ours(arguments: &[OsString]) -> String {
    match Scan::of(&TABLE, arguments, Personality::Strict, ArgOrder::Any).stop {
        Some(Stop::Error(error)) => String::from_utf8(error.message).unwrap(),
        Some(Stop::Help | Stop::Version) | None => String::new(),
    }
}

fn theirs(arguments: &[OsString]) -> String {
    let rm = Command::new(gnu("rm").expect("rm is GNU's here"))
        .arg0("rm")
        .env("LC_ALL", "C")
        .env_remove("POSIXLY_CORRECT")
        .args(arguments)
        .output()
        .unwrap();
    let stderr = String::from_utf8(rm.stderr).unwrap();
    let line = stderr.lines().next().unwrap_or_default();
    let line = line.strip_prefix("rm: ").unwrap_or_default();
    // Later stages report these errors, not the scan.
    let of_a_later_stage =
        line.starts_with("missing operand") || line.starts_with("unrecognized --preserve-root");
    if of_a_later_stage || line.contains(" argument '") {
        String::new()
    } else {
        line.into()
    }
}

fn agrees_with_rm(arguments: &[&str]) {
    let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    let ours = ours(&arguments);
    let theirs = theirs(&arguments);
    assert_eq!(ours, theirs, "{arguments:?}");
}

#[test]
fn resolves_every_prefix_of_every_long_option_as_rm_does() {
    for name in [
        "force",
        "interactive",
        "one-file-system",
        "no-preserve-root",
        "preserve-root",
        "-presume-input-tty",
        "recursive",
        "dir",
        "verbose",
        "help",
        "version",
    ] {
        for end in 1..=name.len() {
            agrees_with_rm(&[&format!("--{}", &name[..end])]);
        }
        agrees_with_rm(&[&format!("--{name}=x")]);
        agrees_with_rm(&[&format!("--{name}x")]);
        agrees_with_rm(&[&format!("--{}=", &name[..2])]);
    }
}

#[test]
fn knows_the_same_letters_as_rm() {
    for byte in b' '..=b'~' {
        agrees_with_rm(&[&format!("-{}", char::from(byte))]);
        agrees_with_rm(&[&format!("-f{}", char::from(byte))]);
    }
}

#[test]
fn reports_the_same_errors_as_rm() {
    for arguments in [
        &["--=x"][..],
        &["--="],
        &["--threads=2"],
        &["--x=y"],
        &["--x\ty"],
        &["-rfvx"],
        &["-r-"],
        &["-f", "--bogus", "-x"],
        &["-x", "--help"],
        &["--help", "-x"],
        &["--no-preserve-root", "--no-pres"],
        &["-R", "--recursive", "-vv"],
    ] {
        agrees_with_rm(arguments);
    }
}

#[test]
fn the_words_of_the_table_are_those_that_the_options_accept() {
    let console = &Console::new(b"rmz".to_vec(), Charset::Ascii);
    let resolve = |flag| options::resolve(&[flag], Personality::Extended, console);
    assert_words_are_accepted(&TABLE, |flag| resolve(flag).is_ok());
}
