//! The prose of the manual page, and the test that the generated files are those of the table.

use std::path::Path;

use fuc_cli::generate::{Manual, check};

use crate::flags::TABLE;

const MANUAL: Manual = Manual {
    name: "rmz",
    version: env!("CARGO_PKG_VERSION"),
    summary: "remove files and directories, on all cores",
    prose: include_str!("../../manual.txt"),
    words: &[
        ("{NAME}", "RMZ"),
        ("{gnu}", "rm"),
        ("{OPERAND}", "FILE"),
        ("{done}", "removed"),
        (
            "{kinds}",
            "`files`, `directories`, `symlinks`, `other`, and `unknown` for names whose type the filesystem does not list",
        ),
        ("{keys}", "which rmz looks at only for this option"),
        ("{others}", "Keys of cpz, such as `kept`, are 0."),
        (
            "{single}",
            "`--dry-run`, `--detach`, `--reap`, `--wait`, `--files0-from`, and `--exclude-from` of stdin",
        ),
    ],
};

#[test]
fn the_manual_page_and_the_completions_are_those_of_the_table() {
    check(Path::new(env!("CARGO_MANIFEST_DIR")), &TABLE, &MANUAL);
}
