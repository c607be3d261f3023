//! Explains facts by further runs, after the rows.
//!
//! Most differences that no row knows are two deviations that meet: an operand leaves another tree, and a later operand
//! reads or replaces what it finds there. Rows cannot list all of these, but the commands can be asked:
//!
//! - **In turn.** cpz treats each operand by itself. If a row says so, GNU's command runs once for each source, in one
//!   tree. A fact is explained if ours agrees with these runs.
//! - **Untouched.** Ours refuses the whole command line. A fact is explained if ours has changed nothing there.
//! - **In parts.** The case runs again without each of its sources. What is left is explained if no such part has an
//!   unexplained fact, and if a deviation in one of them leaves another tree. So a difference that needs no deviation
//!   is found in a part, and one between sources that do not deviate is found in the case.

use testkit::snapshot::Change;

use super::{Comparison, Explanation, Line, operands};
use crate::{fact::Fact, run::Status};

/// A further run that ours is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    InTurn,
    Untouched,
}

const TWICE: Line = (
    "README.md",
    "`cpz a . dest` copies `a` twice, to the same place. cp copies it once, and warns.",
);
const LEFT_OUT: Line = (
    "README.md",
    "`cpz a a/b dest` copies `a/b` twice, as `dest/a/b` and as `dest/b`. cp leaves",
);
const PARENTS: Line = (
    "cpz/README.md",
    "**`--parents`** treats each operand by itself. In cp 9.10, an operand can",
);
const EMPTY: Line = (
    "cpz/README.md",
    "**An empty dest** (`cpz a ''`) does not exist, as POSIX says, so the copy fails.",
);
/// The lines of the further runs.
#[cfg(test)]
pub(super) const LINES: [Line; 4] = [TWICE, LEFT_OUT, PARENTS, EMPTY];

/// Returns the further runs that can explain a case, each with the line that documents what it explains.
pub(crate) fn reruns(it: &Comparison<'_>) -> Vec<(How, Line)> {
    let may_run_in_turn = it.can_run_in_turn();
    let reruns = [
        (How::Untouched, EMPTY, operands::refuses_empty_dest(it)),
        (
            How::InTurn,
            TWICE,
            may_run_in_turn && it.gnu_says(operands::WARNING),
        ),
        (
            How::InTurn,
            LEFT_OUT,
            may_run_in_turn && it.gnu_says(operands::NO_HARD_LINK),
        ),
        (How::InTurn, PARENTS, may_run_in_turn && it.has_parents()),
    ];
    let mut meant: Vec<(How, Line)> = Vec::new();
    for (how, line, applies) in reruns {
        if applies && meant.iter().all(|(known, _)| *known != how) {
            meant.push((how, line));
        }
    }
    meant
}

impl Explanation {
    /// Explains the facts in which ours agrees with a further run. `others` are the facts in which it does not.
    pub(crate) fn settle(&mut self, line: Line, others: &[Fact]) {
        let differs = |fact: &Fact| others.iter().any(|other| is_about_same(fact, other));
        let (rest, settled) = self.rest.drain(..).partition(differs);
        self.rest = rest;
        self.document(line, settled);
    }

    /// Explains the rest of a case by the explanations of its parts, each of which lacks one source.
    pub(crate) fn settle_by_parts(&mut self, parts: &[Explanation]) {
        let is_explained = parts.iter().all(|part| part.rest.is_empty());
        let line = parts.iter().find_map(Explanation::leaves_another_tree);
        if let (true, Some(line)) = (is_explained, line) {
            let settled = self.rest.drain(..).collect();
            self.document(line, settled);
        }
    }

    /// Returns the line of a deviation after which a later operand can find another tree.
    fn leaves_another_tree(&self) -> Option<Line> {
        const LABELS: [&str; 8] = [
            Change::ENTRY,
            "type",
            "content",
            "size",
            "target",
            "link",
            "mode",
            "owner",
        ];
        let changes = |fact: &Fact| match fact {
            Fact::Tree(change) => LABELS.contains(&change.label),
            Fact::Status { gnu, ours } => [*gnu, *ours].contains(&Status::Hung),
            _ => false,
        };
        let mut documented = self.documented.iter();
        documented
            .find(|(_, fact)| changes(fact))
            .map(|(line, _)| *line)
    }

    fn document(&mut self, line: Line, facts: Vec<Fact>) {
        let facts = facts.into_iter().map(|fact| (line, fact));
        self.documented.extend(facts);
    }
}

/// Returns `true` if two facts say that ours differs in the same respect, perhaps from different runs.
fn is_about_same(one: &Fact, other: &Fact) -> bool {
    match (one, other) {
        (Fact::Tree(one), Fact::Tree(other)) => {
            let is_whole = |change: &Change| [Change::ENTRY, "type"].contains(&change.label);
            one.path == other.path && (one.label == other.label || is_whole(one) || is_whole(other))
        }
        (Fact::Line(..), Fact::Line(..)) | (Fact::Order(_), Fact::Order(_)) => one == other,
        (Fact::Status { ours, .. }, Fact::Status { ours: other, .. }) => ours == other,
        _ => false,
    }
}
