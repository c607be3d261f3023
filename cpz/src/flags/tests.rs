//! Compares the table with cp: both read the same command lines, and must report the same errors. Older
//! releases lack some options.

mod manual;

use super::TABLE;
use crate::options;
use fuc_cli::console::Console;
use fuc_cli::flags::{assert_words_are_accepted, error_in};
use fuc_cli::invocation::Personality;
use fuc_cli::locale::Charset;
use testkit::command_line::Readers;
use testkit::or_skip;
use testkit::probe::newest_gnu;

#[test]
fn reports_the_same_errors_as_cp() {
    let readers = Readers {
        gnu: &or_skip!(newest_gnu("cp")),
        name: "cp",
        later: &[
            "missing file operand",
            "warning: ",
            "failed to set default file creation context",
            "cannot ",
        ],
        ours: |arguments| error_in(&TABLE, arguments),
    };
    readers.agree_about_names(
        "archive attributes-only backup copy-contents debug dereference force interactive keep-directory-symlink
        link no-clobber no-dereference no-preserve no-target-directory one-file-system parents path preserve
        recursive remove-destination sparse reflink strip-trailing-slashes suffix symbolic-link target-directory
        update verbose context help version",
    );
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
        readers.agree(arguments);
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
