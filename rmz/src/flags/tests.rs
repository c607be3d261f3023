//! Compares the table with the installed rm: both read the same command lines, and must report the
//! same errors.

mod manual;

use super::TABLE;
use crate::options;
use fuc_cli::console::Console;
use fuc_cli::flags::{assert_words_are_accepted, error_in};
use fuc_cli::invocation::Personality;
use fuc_cli::locale::Charset;
use testkit::command_line::Readers;
use testkit::probe::gnu;

#[test]
fn reports_the_same_errors_as_rm() {
    let readers = Readers {
        gnu: &gnu("rm").expect("rm is GNU's here"),
        name: "rm",
        later: &["missing operand", "unrecognized --preserve-root"],
        ours: |arguments| error_in(&TABLE, arguments),
    };
    readers.agree_about_names(
        "force interactive one-file-system no-preserve-root preserve-root -presume-input-tty recursive
        dir verbose help version",
    );
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
        readers.agree(arguments);
    }
}

#[test]
fn the_words_of_the_table_are_those_that_the_options_accept() {
    let console = &Console::new(b"rmz".to_vec(), Charset::Ascii);
    let resolve = |flag| options::resolve(&[flag], Personality::Extended, console);
    assert_words_are_accepted(&TABLE, |flag| resolve(flag).is_ok());
}
