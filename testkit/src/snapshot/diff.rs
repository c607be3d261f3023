//! The difference between two trees. It walks both side by side, with a stack of pairs of directories, and
//! matches entries by their names.

use std::{collections::BTreeMap, ffi::OsStr, fmt::Write as _};

use super::{SHOWN_LINES, Snapshot, shortened};

/// Implements [`Snapshot::diff`].
pub(super) fn diff(a: &Snapshot, b: &Snapshot) -> String {
    assert_eq!(
        a.attributes, b.attributes,
        "BUG in a test: these snapshots can't be compared"
    );
    if a == b {
        return String::new();
    }
    let (a_children, b_children) = (a.children(), b.children());
    let mut lines = Lines::default();
    let mut pairs = vec![(0, 0)];
    while let Some((in_a, in_b)) = pairs.pop() {
        lines.compare(&Side(a, in_a), &Side(b, in_b));
        let mut sides: BTreeMap<&OsStr, (Option<usize>, Option<usize>)> = BTreeMap::new();
        for &child in a_children.get(&in_a).into_iter().flatten() {
            sides.entry(&a.entries[child].name).or_default().0 = Some(child);
        }
        for &child in b_children.get(&in_b).into_iter().flatten() {
            sides.entry(&b.entries[child].name).or_default().1 = Some(child);
        }
        for pair in sides.into_values().rev() {
            match pair {
                (Some(in_a), Some(in_b)) => pairs.push((in_a, in_b)),
                (Some(in_a), None) => lines.only('-', &Side(a, in_a)),
                (None, Some(in_b)) => lines.only('+', &Side(b, in_b)),
                (None, None) => {}
            }
        }
    }
    lines.finish()
}

/// An entry by its tree and its number there.
struct Side<'a>(&'a Snapshot, usize);

#[derive(Default)]
struct Lines {
    text: String,
    count: usize,
}

impl Lines {
    fn compare(&mut self, a: &Side<'_>, b: &Side<'_>) {
        let (a_facts, b_facts) = (a.0.facts(a.1), b.0.facts(b.1));
        if a_facts == b_facts {
            return;
        }
        let (a_facts, b_facts) = (by_label(a_facts), by_label(b_facts));
        let mut changes = Vec::new();
        for (label, fact) in &a_facts {
            match b_facts.get(label) {
                Some(other) if other == fact => {}
                Some(other) => changes.push(format!("{} != {}", shortened(fact), shortened(other))),
                None => changes.push(format!("{} != nothing", shortened(fact))),
            }
        }
        for (label, fact) in &b_facts {
            if !a_facts.contains_key(label) {
                changes.push(format!("nothing != {}", shortened(fact)));
            }
        }
        self.add('~', a, &changes.join("; "));
    }

    fn only(&mut self, sign: char, side: &Side<'_>) {
        let facts = side.0.facts(side.1);
        let facts: Vec<String> = facts.iter().map(|(_, fact)| shortened(fact)).collect();
        self.add(sign, side, &facts.join(" "));
    }

    fn add(&mut self, sign: char, side: &Side<'_>, what: &str) {
        self.count += 1;
        if self.count <= SHOWN_LINES {
            let path = side.0.shown_path(side.1);
            writeln!(self.text, "{sign} {path}: {what}").expect("BUG: a string can't fail");
        }
    }

    fn finish(mut self) -> String {
        if self.count > SHOWN_LINES {
            let more = self.count - SHOWN_LINES;
            writeln!(self.text, "... and {more} more differences")
                .expect("BUG: a string can't fail");
        }
        // Without this check, unequal trees without an unequal fact would give an empty difference, and the test
        // would pass.
        assert!(self.count > 0, "BUG: a difference that has no words");
        self.text
    }
}

fn by_label(facts: Vec<(&'static str, String)>) -> BTreeMap<&'static str, String> {
    facts.into_iter().collect()
}
