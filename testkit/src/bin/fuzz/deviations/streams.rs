//! Deviations that show only in what the commands print or ask.

use testkit::snapshot::{Change, Kind};

use super::{Deviation, comparison::Which};
use crate::{
    case::{Called, PRESUME_TERMINAL, Pair},
    fact::{Fact, Side, Stream},
};

/// The beginning of a line of `--debug`.
const OFFLOAD: &str = "copy offload: ";

pub(super) const ROWS: &[Deviation] = &[
    Deviation {
        pair: Pair::Rm,
        readme: "rmz/README.md",
        line: "`--help`, `--version` | as rm, with our own text",
        applies: |it| is_own_text(&it.gnu.stdout),
        explains: |_, fact| matches!(fact, Fact::Line(Stream::Stdout, ..)),
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "`--help`, `--version` | as cp, with our own text",
        applies: |it| is_own_text(&it.gnu.stdout),
        explains: |_, fact| matches!(fact, Fact::Line(Stream::Stdout, ..)),
    },
    Deviation {
        pair: Pair::Rm,
        readme: "rmz/README.md",
        line: "Except under the name `rm`, rmz prompts for write-protected files only with `-i` or `-I`.",
        applies: |it| it.case.called == Called::Own && it.case.has_long(PRESUME_TERMINAL),
        explains: |it, fact| {
            // GNU looks at each name before it may ask, and reports an error of that.
            let is_question = fact.is_error(Side::Gnu, "write-protected")
                || fact.is_error(Side::Gnu, "cannot remove")
                || fact.is_error(Side::Ours, "cannot remove");
            // Without an answer of yes, GNU keeps the file.
            let is_kept = it.gnu_says("write-protected")
                && (fact.only(Side::Gnu).is_some()
                    || fact
                        .output(Side::Ours)
                        .is_some_and(|line| line.starts_with("removed "))
                    || fact.change(&["mtime", "link"]).is_some());
            // To ask, GNU looks into a directory first, and keeps it if that fails.
            let unseen = it.named(Side::Gnu, "cannot remove", Which::First);
            let is_unseen = |change: &Change| {
                change.kinds.0 == Some(Kind::Directory) && unseen.contains(&it.place_of(change)[0])
            };
            is_question || is_kept || fact.only(Side::Gnu).is_some_and(is_unseen)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--debug`** describes what cpz did. It does not try to share blocks before it copies data,",
        applies: |it| it.case.has_long("debug"),
        explains: |_, fact| {
            let line = fact.output(Side::Gnu).or(fact.output(Side::Ours));
            line.is_some_and(|line| line.starts_with(OFFLOAD))
        },
    },
];

fn is_own_text(stdout: &[u8]) -> bool {
    let text = String::from_utf8_lossy(stdout);
    text.starts_with("Usage: ")
        || text
            .lines()
            .next()
            .is_some_and(|line| line.ends_with("(GNU coreutils) 9.10"))
}
