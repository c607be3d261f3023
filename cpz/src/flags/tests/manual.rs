//! The prose of the manual page, and the test that the generated files are those of the table.

use std::path::Path;

use fuc_cli::generate::{Manual, check};
use fuc_cli::invocation::Personality;

use crate::flags::TABLE;

const MANUAL: Manual = Manual {
    summary: "copy files and directories, on all cores",
    prose: include_str!("../../manual.txt"),
    words: &[
        ("{name}", "cpz"),
        ("{NAME}", "CPZ"),
        ("{gnu}", "cp"),
        ("{OPERAND}", "SOURCE"),
        ("{done}", "copied"),
        (
            "{single}",
            "`--dry-run`, `--resume`, `--delete` and its like, `--files0-from`, and `--exclude-from` of stdin",
        ),
    ],
};

#[test]
fn the_manual_page_and_the_completions_are_those_of_the_table() {
    let version = env!("CARGO_PKG_VERSION");
    let command = TABLE.clap_command("cpz", version, Personality::Extended);
    check(Path::new(env!("CARGO_MANIFEST_DIR")), &command, &MANUAL);
}
