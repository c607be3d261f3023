//! The difference between two trees. It walks both side by side, with a stack of pairs of directories, and
//! matches entries by their names.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsStr,
};

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
    let mut lines = lines([a, b]);
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
fn lines(trees: [&Snapshot; 2]) -> Vec<String> {
    let mut lines = Vec::new();
    let children = trees.map(children);
    let mut pairs = vec![[0, 0]];
    while let Some(pair) = pairs.pop() {
        lines.extend(changed(trees, pair));
        let mut below: BTreeMap<&OsStr, [Option<usize>; 2]> = BTreeMap::new();
        for side in [0, 1] {
            for &child in children[side].get(&pair[side]).into_iter().flatten() {
                let name = &trees[side].entries[child].name;
                below.entry(name).or_default()[side] = Some(child);
            }
        }
        for pair in below.into_values().rev() {
            match pair {
                [Some(in_a), Some(in_b)] => pairs.push([in_a, in_b]),
                [Some(in_a), None] => lines.push(format!("- {}", trees[0].described(in_a))),
                [None, Some(in_b)] => lines.push(format!("+ {}", trees[1].described(in_b))),
                [None, None] => {}
            }
        }
    }
    lines
}

/// Returns the numbers of the entries of each directory.
fn children(tree: &Snapshot) -> HashMap<usize, Vec<usize>> {
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    for (index, entry) in tree.entries.iter().enumerate().skip(1) {
        children.entry(entry.parent).or_default().push(index);
    }
    children
}

/// Describes the facts in which two entries of one path differ, or returns `None` if there are none.
fn changed(trees: [&Snapshot; 2], pair: [usize; 2]) -> Option<String> {
    let mut facts: BTreeMap<&str, [Option<&str>; 2]> = BTreeMap::new();
    for side in [0, 1] {
        for (label, fact) in &trees[side].entries[pair[side]].facts {
            facts.entry(label).or_default()[side] = Some(fact);
        }
    }
    facts.retain(|_, [a, b]| a != b);
    let shown = |fact: Option<&str>| shortened(fact.unwrap_or("nothing"));
    let changes = facts.values().map(|facts| facts.map(shown).join(" != "));
    let changes: Vec<String> = changes.collect();
    let path = full_path(&trees[0].entries, pair[0]);
    (!changes.is_empty()).then(|| format!("~ {}: {}", shortened(&path), changes.join("; ")))
}
