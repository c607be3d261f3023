//! Records of trees. A [`Snapshot`] has every entry, [`Snapshot::diff`] describes how two trees differ, and
//! [`Attributes`] choose what counts.
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
//! The invariant: the order of entries depends only on their names, and an entry refers to its parent by
//! number. So equal trees are equal lists, and a chain of 100,000 levels needs no long paths.

use std::{ffi::OsString, fmt, ops::RangeInclusive, path::Path};

pub use attributes::Attributes;
pub(crate) use record::XATTR_MAX_BYTES;
pub use rustix::fs::FileType as Kind;

mod attributes;
mod content;
mod diff;
mod record;

/// Most lines that a listing or a difference shows.
const SHOWN_LINES: usize = 300;

/// A period without times.
pub(crate) const NEVER: RangeInclusive<i64> = RangeInclusive::new(1, 0);

/// A record of a tree or of a single file. See the [module](self).
#[derive(Clone, PartialEq, Eq)]
pub struct Snapshot {
    attributes: Attributes,
    entries: Vec<Entry>,
}

/// An entry of a tree.
#[derive(Clone, PartialEq, Eq)]
struct Entry {
    /// Number of the parent directory. The root is its own parent.
    parent: usize,
    name: OsString,
    kind: Kind,
    /// The type and the attributes that count, with labels. Facts of two entries are compared if they have the same label.
    facts: Vec<(&'static str, String)>,
}

impl Snapshot {
    /// Records the entry at `path` and everything below it. Does not follow a symlink.
    ///
    /// Neither depth nor PATH_MAX is a limit. Entries that the process may not read are recorded as unreadable.
    /// Atimes stay as they were if the process is the owner or root.
    ///
    /// # Panics
    /// Panics if `path` does not exist, or if the tree changes during the walk.
    #[must_use]
    #[track_caller]
    pub fn of(path: impl AsRef<Path>, attributes: Attributes) -> Self {
        Self::with_fresh_times(path.as_ref(), attributes, &NEVER)
    }

    /// Records a tree as [`of`](Self::of) does. All times within `period`, in seconds since 1970, are equal. Then two
    /// commands that ran at different moments leave equal trees, while times that they preserved still count.
    #[track_caller]
    pub(crate) fn with_fresh_times(
        path: &Path,
        attributes: Attributes,
        period: &RangeInclusive<i64>,
    ) -> Self {
        match record::record(path, attributes, period) {
            Ok(entries) => Self {
                attributes,
                entries,
            },
            Err(e) => panic!("no snapshot of {}: {e}", path.display()),
        }
    }

    /// Returns the number of entries, including the root.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is always a root")]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the type of the entry at `path`, relative to the root, or `None` if it does not exist.
    #[must_use]
    pub fn kind(&self, path: impl AsRef<Path>) -> Option<Kind> {
        let mut found = 0;
        for name in path.as_ref() {
            let mut below = self.entries.iter().skip(1);
            found = 1 + below.position(|entry| entry.parent == found && entry.name == name)?;
        }
        Some(self.entries[found].kind)
    }

    /// Replaces a path in the targets of symlinks.
    pub(crate) fn with_targets(mut self, path: &Path, by: &str) -> Self {
        let facts = self.entries.iter_mut().flat_map(|entry| &mut entry.facts);
        for (_, target) in facts.filter(|(label, _)| *label == "target") {
            *target = target.replace(&*path.to_string_lossy(), by);
        }
        self
    }

    /// Describes how `other` differs from this snapshot, one line for each entry. Returns an empty string if
    /// they are equal.
    ///
    /// `-` marks an entry only of this one, `+` one only of `other`, and `~` different attributes.
    #[must_use]
    pub fn diff(&self, other: &Self) -> String {
        diff::diff(self, other)
    }

    /// Describes an entry by its path and its facts. What is long is shortened.
    fn described(&self, index: usize) -> String {
        let facts = self.entries[index].facts.iter();
        let facts: Vec<String> = facts.map(|(_, fact)| shortened(fact)).collect();
        let path = full_path(&self.entries, index);
        format!("{}: {}", shortened(&path), facts.join(" "))
    }
}

/// Returns the path of an entry for messages.
fn full_path(entries: &[Entry], mut index: usize) -> String {
    let mut names = Vec::new();
    while index != 0 {
        names.push(entries[index].name.to_string_lossy());
        index = entries[index].parent;
    }
    names.reverse();
    match names.is_empty() {
        true => ".".to_owned(),
        false => names.join("/").escape_debug().to_string(),
    }
}

impl fmt::Debug for Snapshot {
    /// Lists the entries, one line for each, up to a limit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for index in 0..self.len().min(SHOWN_LINES) {
            writeln!(f, "{}", self.described(index))?;
        }
        match self.len().saturating_sub(SHOWN_LINES) {
            0 => Ok(()),
            more => writeln!(f, "... and {more} more entries"),
        }
    }
}

/// Asserts that the trees at `a` and `b` are equal in `attributes`.
///
/// # Panics
/// Panics with the difference if they are not.
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

/// Cuts the middle out of a long text.
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
