//! The difference between two trees. It walks both side by side, with a stack of pairs of directories, and
//! matches entries by their names.

use std::{collections::BTreeMap, ffi::OsStr};

use super::{SHOWN_LINES, Snapshot, full_path, shortened};

/// Implements [`Snapshot::diff`].
pub(super) fn diff(a: &Snapshot, b: &Snapshot) -> String {
    assert_eq!(
        a.attributes, b.attributes,
        "BUG in a test: these snapshots can't be compared"
    );
    if a == b {
        return String::new();
    }
    let mut lines = lines(a, b);
    // Without this check, unequal trees without an unequal fact would give an empty difference, and the test
    // would pass.
    assert!(!lines.is_empty(), "BUG: a difference that has no words");
    if let Some(more @ 1..) = lines.len().checked_sub(SHOWN_LINES) {
        lines.truncate(SHOWN_LINES);
        lines.push(format!("... and {more} more differences"));
    }
    lines.join("\n") + "\n"
}

/// Describes each entry that differs.
fn lines(a: &Snapshot, b: &Snapshot) -> Vec<String> {
    let mut lines = Vec::new();
    let (a_children, b_children) = (a.children(), b.children());
    let mut pairs = vec![(0, 0)];
    while let Some((in_a, in_b)) = pairs.pop() {
        lines.extend(changed((a, in_a), (b, in_b)));
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
                (Some(in_a), None) => lines.push(format!("- {}", a.described(in_a))),
                (None, Some(in_b)) => lines.push(format!("+ {}", b.described(in_b))),
                (None, None) => {}
            }
        }
    }
    lines
}

/// Describes the facts in which two entries of one path differ, or returns `None` if there are none.
fn changed(a: (&Snapshot, usize), b: (&Snapshot, usize)) -> Option<String> {
    let facts = |(tree, entry): (&Snapshot, usize)| BTreeMap::from_iter(tree.facts(entry));
    let (first, second) = (facts(a), facts(b));
    let labels = first
        .keys()
        .chain(second.keys().filter(|&label| !first.contains_key(label)));
    let differing = labels.filter(|&label| first.get(label) != second.get(label));
    let shown = |fact: Option<&String>| fact.map_or("nothing".to_owned(), |fact| shortened(fact));
    let changes = differing.map(|label| {
        format!(
            "{} != {}",
            shown(first.get(label)),
            shown(second.get(label))
        )
    });
    let changes: Vec<String> = changes.collect();
    let path = full_path(&a.0.entries, a.1);
    (!changes.is_empty()).then(|| format!("~ {}: {}", shortened(&path), changes.join("; ")))
}
