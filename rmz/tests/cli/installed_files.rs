//! The manual page and the completions, which packages install.

use testkit::{installed::Installed, or_skip};

use crate::support::RMZ;

const INSTALLED: Installed<'_> = Installed {
    name: "rmz",
    package: env!("CARGO_MANIFEST_DIR"),
    program: RMZ,
};

#[test]
fn man_shows_the_page_without_a_warning() {
    or_skip!(INSTALLED.page_has(&["-r, -R, --recursive", "--interactive[=WHEN]"]));
}

#[test]
#[ignore = "slow"]
fn shells_complete_options_values_and_files() {
    or_skip!(INSTALLED.completes(&[
        ("rmz --pro", &["--progress"]),
        ("rmz some-file --thr", &["--threads"]),
        ("rmz --progress=", &["always", "auto", "never"]),
        ("rmz --interactive=o", &["once"]),
        // A value that is optional is never a word of its own.
        ("rmz --progress ", &["dir", "some-file"]),
        // Hidden options are not offered.
        ("rmz --presume", &[]),
        ("rmz s", &["some-file"]),
        ("rmz -v ", &["dir", "some-file"]),
    ]));
}

#[test]
fn the_help_fits_a_terminal_of_80_columns() {
    INSTALLED.help_fits();
}
