//! The deliberate differences from GNU. Each names the line of the README that documents it.
//!
//! A difference is a set of single facts, and each row of a table explains some of them. A case is explained if each
//! of its facts is explained by a row, or follows from facts that are. So a case may show several deviations at once,
//! and a fact that no row knows is still found.

use std::collections::BTreeSet;

pub(crate) use comparison::Comparison;

use crate::{case::Pair, fact::Fact};

mod attributes;
mod comparison;
mod consequences;
pub(crate) mod dry_run;
mod links;
mod operands;
mod overwriting;
mod parents;
pub(crate) mod reruns;
mod streams;
#[cfg(test)]
mod tests;

/// A deliberate difference.
pub(crate) struct Deviation {
    pair: Pair,
    /// The README, relative to the root of the repository.
    pub(crate) readme: &'static str,
    /// A text in one line of the README.
    pub(crate) line: &'static str,
    /// Returns `true` if this deviation can show in a case: from its options, its tree and all messages.
    applies: fn(&Comparison<'_>) -> bool,
    /// Returns `true` if this deviation explains a fact of a case to which it applies.
    explains: fn(&Comparison<'_>, &Fact) -> bool,
}

/// The tables of all rows.
const TABLES: &[&[Deviation]] = &[
    streams::ROWS,
    operands::ROWS,
    attributes::ROWS,
    links::ROWS,
    overwriting::ROWS,
    parents::ROWS,
];

/// A line of a README: its path, and a text in the line.
pub(crate) type Line = (&'static str, &'static str);

/// The explanation of a difference.
#[derive(Default)]
pub(crate) struct Explanation {
    /// The facts that deviations explain, each with the line that documents it.
    pub(crate) documented: Vec<(Line, Fact)>,
    /// The facts that follow from those.
    pub(crate) following: Vec<Fact>,
    /// The facts that nothing explains.
    pub(crate) rest: Vec<Fact>,
}

impl Explanation {
    /// Returns the lines that document the difference.
    pub(crate) fn lines(&self) -> BTreeSet<Line> {
        self.documented.iter().map(|(line, _)| *line).collect()
    }

    /// Explains the facts that follow from those that are explained.
    pub(crate) fn add_consequences(&mut self, comparison: &Comparison<'_>) {
        // One consequence can have another one.
        loop {
            let documented = self.documented.iter().map(|(_, fact)| fact);
            let explained: Vec<&Fact> = documented.chain(&self.following).collect();
            let (following, rest): (Vec<Fact>, Vec<Fact>) = self
                .rest
                .iter()
                .cloned()
                .partition(|fact| consequences::follows(comparison, &explained, fact));
            self.rest = rest;
            if following.is_empty() {
                break;
            }
            self.following.extend(following);
        }
    }

    /// Returns the kinds of the facts that nothing explains.
    pub(crate) fn kinds(&self) -> BTreeSet<String> {
        self.rest.iter().map(Fact::kind).collect()
    }
}

/// Explains the facts of a case.
pub(crate) fn explain(comparison: &Comparison<'_>) -> Explanation {
    let table = TABLES.iter().copied().flatten();
    let applying: Vec<&Deviation> = table
        .filter(|row| row.pair == comparison.case.pair && (row.applies)(comparison))
        .collect();
    let mut explanation = Explanation::default();
    for fact in comparison.facts {
        match applying.iter().find(|row| (row.explains)(comparison, fact)) {
            Some(row) => {
                let line = (row.readme, row.line);
                explanation.documented.push((line, fact.clone()));
            }
            None => explanation.rest.push(fact.clone()),
        }
    }
    explanation.add_consequences(comparison);
    explanation
}
