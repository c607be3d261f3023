//! The prose of the manual page, and the test that the generated files are those of the table.

use std::path::Path;

use fuc_cli::generate::{Manual, check};

use crate::flags::TABLE;

const MANUAL: Manual = Manual {
    name: "cpz",
    version: env!("CARGO_PKG_VERSION"),
    summary: "copy files and directories, on all cores",
    prose: include_str!("../../manual.txt"),
    words: &[
        ("{NAME}", "CPZ"),
        ("{gnu}", "cp"),
        ("{OPERAND}", "SOURCE"),
        ("{done}", "copied"),
        (
            "{kinds}",
            "`files`, `directories`, `symlinks`, `hard_links` and `other`",
        ),
        (
            "{keys}",
            "`reflinked_bytes` that share blocks, `kept` dests (up to date for `-u` or `--resume`), `compared` files (by \
             `--verify`), `merged` directories (which existed before), `deleted` and `not_deleted` names (by `--delete`, because of `--max-delete`), `discarded` files \
             (incomplete at a signal)",
        ),
        ("{others}", "`unknown` is of rmz, and 0."),
        (
            "{single}",
            "`--dry-run`, `--resume`, `--delete` and its like, `--files0-from`, and `--exclude-from` of stdin",
        ),
    ],
};

#[test]
fn the_manual_page_and_the_completions_are_those_of_the_table() {
    check(Path::new(env!("CARGO_MANIFEST_DIR")), &TABLE, &MANUAL);
}
