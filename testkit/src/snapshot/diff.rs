//! The difference between two trees. It walks both side by side, with a stack of pairs of directories, and
//! matches entries by their names.

use std::{collections::BTreeMap, ffi::OsStr, fmt::Write as _};

use super::{Kind, SHOWN_LINES, Snapshot, shortened};

/// One fact about one entry in which two trees differ. See [`Snapshot::changes`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path of the entry, relative to the root.
    pub path: String,
    /// The type of the entry in the first tree and in the second one.
    pub kinds: (Option<Kind>, Option<Kind>),
    /// The kind of the fact: [`Change::ENTRY`], `type`, `mode`, `size`, `content`, `target`, `link`, `device`, `owner`,
    /// `mtime`, `atime`, `xattrs`, `holes` or `locked`.
    pub label: &'static str,
    /// The fact in the first tree, or `None` if it is missing there.
    pub first: Option<String>,
    /// The fact in the second tree, or `None` if it is missing there.
    pub second: Option<String>,
}

impl Change {
    /// The label of an entry that only one tree has. The fact is a description of the entry.
    pub const ENTRY: &'static str = "entry";
}

/// Implements [`Snapshot::changes`].
pub(super) fn changes(a: &Snapshot, b: &Snapshot) -> Vec<Change> {
    assert_eq!(
        a.attributes, b.attributes,
        "BUG in a test: these snapshots can't be compared"
    );
    let mut changes = Vec::new();
    if a == b {
        return changes;
    }
    let (a_children, b_children) = (a.children(), b.children());
    let mut pairs = vec![(0, 0)];
    while let Some((in_a, in_b)) = pairs.pop() {
        compare(&Side(a, in_a), &Side(b, in_b), &mut changes);
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
                (Some(in_a), None) => changes.push(only(Tree::First, &Side(a, in_a))),
                (None, Some(in_b)) => changes.push(only(Tree::Second, &Side(b, in_b))),
                (None, None) => {}
            }
        }
    }
    // Without this check, unequal trees without an unequal fact would give an empty difference, and the test
    // would pass.
    assert!(!changes.is_empty(), "BUG: a difference that has no words");
    changes
}

/// Implements [`Snapshot::diff`].
pub(super) fn diff(a: &Snapshot, b: &Snapshot) -> String {
    let changes = changes(a, b);
    let mut text = String::new();
    let mut count = 0;
    let is_same =
        |one: &Change, next: &Change| one.path == next.path && next.label != Change::ENTRY;
    for entry in changes.chunk_by(is_same) {
        count += 1;
        if count > SHOWN_LINES {
            continue;
        }
        let path = shortened(&entry[0].path);
        match (entry[0].label, &entry[0].first, &entry[0].second) {
            (Change::ENTRY, Some(facts), _) => writeln!(text, "- {path}: {facts}"),
            (Change::ENTRY, None, Some(facts)) => writeln!(text, "+ {path}: {facts}"),
            _ => {
                let shown = |fact: &Option<String>| fact.clone().unwrap_or("nothing".to_owned());
                let changes = entry.iter();
                let changes: Vec<String> = changes
                    .map(|it| format!("{} != {}", shown(&it.first), shown(&it.second)))
                    .collect();
                writeln!(text, "~ {path}: {}", changes.join("; "))
            }
        }
        .expect("BUG: a string can't fail");
    }
    if count > SHOWN_LINES {
        let more = count - SHOWN_LINES;
        writeln!(text, "... and {more} more differences").expect("BUG: a string can't fail");
    }
    text
}

/// An entry by its tree and its number there.
struct Side<'a>(&'a Snapshot, usize);

impl Side<'_> {
    fn kind(&self) -> Kind {
        self.0.entries[self.1].kind
    }
}

enum Tree {
    First,
    Second,
}

/// Describes an entry that only one tree has.
fn only(tree: Tree, side: &Side<'_>) -> Change {
    let facts = side.0.facts(side.1);
    let facts: Vec<String> = facts
        .iter()
        .map(|(label, fact)| kept(label, fact))
        .collect();
    let (kind, facts) = (Some(side.kind()), Some(facts.join(" ")));
    let (kinds, first, second) = match tree {
        Tree::First => ((kind, None), facts, None),
        Tree::Second => ((None, kind), None, facts),
    };
    Change {
        path: side.0.full_path(side.1),
        kinds,
        label: Change::ENTRY,
        first,
        second,
    }
}

fn compare(a: &Side<'_>, b: &Side<'_>, changes: &mut Vec<Change>) {
    let (a_facts, b_facts) = (a.0.facts(a.1), b.0.facts(b.1));
    if a_facts == b_facts {
        return;
    }
    let (a_facts, b_facts) = (by_label(a_facts), by_label(b_facts));
    let mut add = |label, first: Option<&String>, second: Option<&String>| {
        changes.push(Change {
            path: a.0.full_path(a.1),
            kinds: (Some(a.kind()), Some(b.kind())),
            label,
            first: first.map(|fact| kept(label, fact)),
            second: second.map(|fact| kept(label, fact)),
        });
    };
    for (label, fact) in &a_facts {
        match b_facts.get(label) {
            Some(other) if other == fact => {}
            other => add(label, Some(fact), other),
        }
    }
    for (label, fact) in &b_facts {
        if !a_facts.contains_key(label) {
            add(label, None, Some(fact));
        }
    }
}

/// Returns a fact for a [`Change`]. Long ones are shortened, except paths, which can be compared with those of other
/// changes.
fn kept(label: &str, fact: &str) -> String {
    match label {
        "link" => fact.to_owned(),
        _ => shortened(fact),
    }
}

fn by_label(facts: Vec<(&'static str, String)>) -> BTreeMap<&'static str, String> {
    facts.into_iter().collect()
}
