//! The manual page and the completions, which packages install.

use testkit::{installed::Installed, or_skip};

use crate::support::CPZ;

const INSTALLED: Installed<'_> = Installed {
    name: "cpz",
    package: env!("CARGO_MANIFEST_DIR"),
    program: CPZ,
};

#[test]
fn man_shows_the_page_without_a_warning() {
    or_skip!(INSTALLED.page_has(&["-r, -R, --recursive", "--reflink[=WHEN]"]));
}

#[test]
#[ignore = "slow"]
fn shells_complete_options_values_and_files() {
    or_skip!(INSTALLED.completes(&[
        ("cpz --pro", &["--progress"]),
        ("cpz some-file --res", &["--resume"]),
        ("cpz --reflink=", &["always", "auto", "never"]),
        ("cpz --reflink=a", &["always", "auto"]),
        ("cpz --sparse=n", &["never"]),
        ("cpz --preserve=x", &["xattr"]),
        // A value that is required may be a word of its own, and an optional one may not.
        ("cpz --sparse ", &["always", "auto", "never"]),
        ("cpz -t ", &["dir"]),
        ("cpz --reflink ", &["dir", "some-file"]),
        ("cpz s", &["some-file"]),
        ("cpz -v ", &["dir", "some-file"]),
    ]));
}

#[test]
fn the_help_fits_a_terminal_of_80_columns() {
    INSTALLED.help_fits();
}
