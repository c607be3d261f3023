//! What a tree is, written down: [`Snapshot`] records every entry, [`Snapshot::diff`] says in lines how
//! two trees differ, and [`Attributes`] chooses what counts.
//!
//! ```
//! use testkit::{snapshot::{Attributes, Snapshot, assert_same_tree}, tree::{Scratch, Tree}};
//!
//! let (a, b) = (Scratch::new(), Scratch::new());
//! Tree::at(a.path()).file("f", b"one");
//! Tree::at(b.path()).file("f", b"one");
//! assert_same_tree(&a, &b, Attributes::CONTENT);
//!
//! let before = Snapshot::of(&b, Attributes::CONTENT);
//! Tree::at(b.path()).file("f", b"two");
//! assert_ne!(before, Snapshot::of(&b, Attributes::CONTENT));
//! ```
//!
//! The invariant: entries are in the walk's order, which the names alone decide, and an entry knows its
//! parent by number. So equal trees are equal lists, and a chain of 100 000 levels needs no long paths.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    fmt,
    ops::RangeInclusive,
    path::Path,
    time::Duration,
};

use entry::Entry;

pub use attributes::Attributes;
pub use entry::Kind;

mod attributes;
mod content;
mod diff;
mod entry;
mod record;

/// At most so many lines of a listing or a difference are shown.
const SHOWN_LINES: usize = 300;

/// A record of a tree, or of a single file. See the module's description.
#[derive(Clone, PartialEq, Eq)]
pub struct Snapshot {
    attributes: Attributes,
    entries: Vec<Entry>,
}

impl Snapshot {
    /// Records what is at `path`, which is not followed if it is a symlink, and all that is below.
    ///
    /// Neither depth nor PATH_MAX is a limit. What the process may not read is recorded as such.
    /// Reading leaves atimes as they were, where the owner or root takes the snapshot.
    ///
    /// # Panics
    /// If nothing is there, or if the tree changes meanwhile.
    #[must_use]
    #[track_caller]
    pub fn of(path: impl AsRef<Path>, attributes: Attributes) -> Self {
        let path = path.as_ref();
        match record::record(path, attributes) {
            Ok(entries) => Self {
                attributes,
                entries,
            },
            Err(e) => panic!("no snapshot of {}: {e}", path.display()),
        }
    }

    /// The number of entries, the root included.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is always a root")]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The type of the entry at `path`, relative to the root; `None` if there is none.
    #[must_use]
    pub fn kind(&self, path: impl AsRef<Path>) -> Option<Kind> {
        let mut found = 0;
        for name in path.as_ref() {
            found = *self
                .children()
                .get(&found)?
                .iter()
                .find(|&&child| self.entries[child].name == name)?;
        }
        Some(self.entries[found].kind)
    }

    /// Replaces all times within `period`, given since 1970, by one word. Two commands that ran at
    /// different moments leave equal trees then, while times that they preserved still count.
    #[must_use]
    pub fn with_fresh_times(mut self, period: &RangeInclusive<Duration>) -> Self {
        for entry in &mut self.entries {
            entry.freshen(period);
        }
        self
    }

    /// Replaces what each symlink says by what `change` makes of it.
    #[must_use]
    pub fn with_targets(mut self, change: impl Fn(&OsStr) -> OsString) -> Self {
        for target in self
            .entries
            .iter_mut()
            .filter_map(|entry| entry.target.as_mut())
        {
            *target = change(target);
        }
        self
    }

    /// How `other` differs from this, one line for each entry; empty if they are equal.
    ///
    /// `-` is only here, `+` only there, `~` in both with different attributes.
    #[must_use]
    pub fn diff(&self, other: &Self) -> String {
        diff::diff(self, other)
    }

    /// The numbers of the entries of each directory.
    pub(super) fn children(&self) -> HashMap<usize, Vec<usize>> {
        let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, entry) in self.entries.iter().enumerate().skip(1) {
            children.entry(entry.parent).or_default().push(index);
        }
        children
    }
}

impl fmt::Debug for Snapshot {
    /// A listing: one line for each entry, cut after some hundred.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for index in 0..self.len().min(SHOWN_LINES) {
            write!(f, "{}:", self.shown_path(index))?;
            for (_, fact) in self.facts(index) {
                write!(f, " {}", shortened(&fact))?;
            }
            writeln!(f)?;
        }
        match self.len().saturating_sub(SHOWN_LINES) {
            0 => Ok(()),
            more => writeln!(f, "... and {more} more entries"),
        }
    }
}

/// Asserts that the trees at `a` and `b` are the same as far as `attributes` go.
///
/// # Panics
/// If they are not, with the difference.
#[track_caller]
pub fn assert_same_tree(a: impl AsRef<Path>, b: impl AsRef<Path>, attributes: Attributes) {
    let (a, b) = (a.as_ref(), b.as_ref());
    let difference = Snapshot::of(a, attributes).diff(&Snapshot::of(b, attributes));
    assert!(
        difference.is_empty(),
        "trees differ:\n- {}\n+ {}\n\n{difference}",
        a.display(),
        b.display()
    );
}

/// Cuts the middle out of what nobody reads to the end.
fn shortened(text: &str) -> String {
    const KEPT_CHARS: usize = 80;
    let chars = text.chars().count();
    if chars <= 2 * KEPT_CHARS {
        return text.to_owned();
    }
    let head: String = text.chars().take(KEPT_CHARS).collect();
    let tail: String = text.chars().skip(chars - KEPT_CHARS).collect();
    format!("{head}[... {} ...]{tail}", chars - 2 * KEPT_CHARS)
}

#[cfg(test)]
mod tests;
