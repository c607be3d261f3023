//! One single fact in which the runs of two commands differ.

use std::fmt;

use testkit::snapshot::{Change, Kind};

use crate::run::Status;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    Gnu,
    Ours,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// A fact in which GNU's command and ours differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    Status {
        gnu: Status,
        ours: Status,
    },
    /// A line that only this side printed.
    Line(Stream, Side, String),
    /// The lines are the same, but their order differs, and it is not free.
    Order(Stream),
    /// The first tree is that of GNU's command.
    Tree(Change),
}

impl Fact {
    /// Returns the line of stderr that only `side` printed.
    pub(crate) fn error(&self, side: Side) -> Option<&str> {
        match self {
            Self::Line(Stream::Stderr, by, text) if *by == side => Some(text),
            _ => None,
        }
    }

    /// Returns `true` if this is an error that only `side` reports, and that contains `text`.
    pub(crate) fn is_error(&self, side: Side, text: &str) -> bool {
        self.error(side).is_some_and(|line| line.contains(text))
    }

    /// Returns the line of stdout that only `side` printed.
    pub(crate) fn output(&self, side: Side) -> Option<&str> {
        match self {
            Self::Line(Stream::Stdout, by, text) if *by == side => Some(text),
            _ => None,
        }
    }

    /// Returns the change if only the tree of `side` has the entry.
    pub(crate) fn only(&self, side: Side) -> Option<&Change> {
        match self {
            Self::Tree(change) if change.label == Change::ENTRY => {
                let has = match side {
                    Side::Gnu => change.kinds.0,
                    Side::Ours => change.kinds.1,
                };
                has.is_some().then_some(change)
            }
            _ => None,
        }
    }

    /// Returns the type of an entry that only the tree of `side` has.
    pub(crate) fn only_kind(&self, side: Side) -> Option<Kind> {
        let change = self.only(side)?;
        change.kinds.0.or(change.kinds.1)
    }

    /// Returns the change if an entry of both trees differs in one of these labels.
    pub(crate) fn change(&self, labels: &[&str]) -> Option<&Change> {
        match self {
            Self::Tree(change) if labels.contains(&change.label) => Some(change),
            _ => None,
        }
    }

    /// Returns the change if a directory of both trees differs in one of these labels.
    pub(crate) fn dir_change(&self, labels: &[&str]) -> Option<&Change> {
        let dir = Some(Kind::Directory);
        self.change(labels).filter(|it| it.kinds == (dir, dir))
    }

    /// Returns `true` if GNU's command has changed a directory in this run, and ours has not.
    pub(crate) fn is_dir_changed_by_gnu(&self) -> bool {
        let change = self.dir_change(&["mtime"]);
        change.is_some_and(|it| is_fresh(&it.first) && !is_fresh(&it.second))
    }

    /// Returns the kind of the fact: everything but names and numbers. Two facts of one kind probably have one cause.
    pub(crate) fn kind(&self) -> String {
        match self {
            Self::Status { gnu, ours } => format!("status {gnu:?} != {ours:?}"),
            Self::Line(stream, side, text) => {
                let text = template(text);
                format!("{} {} {text}", stream.name(), side.sign())
            }
            Self::Order(stream) => format!("{} order", stream.name()),
            Self::Tree(change) => match (change.label, change.kinds) {
                (Change::ENTRY, (Some(kind), _)) => format!("tree - {kind:?}"),
                (Change::ENTRY, (_, Some(kind))) => format!("tree + {kind:?}"),
                (label, _) => format!("tree ~ {label}"),
            },
        }
    }
}

/// Returns `true` if an mtime lies in the run.
pub(crate) fn is_fresh(mtime: &Option<String>) -> bool {
    mtime.as_deref() == Some("mtime fresh")
}

impl Side {
    fn sign(self) -> char {
        match self {
            Self::Gnu => '-',
            Self::Ours => '+',
        }
    }
}

impl Stream {
    fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

impl fmt::Display for Fact {
    /// Writes one line: `-` marks what only GNU's command did, and `+` what only ours did.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status { gnu, ours } => write!(f, "status: - {gnu:?}, + {ours:?}"),
            Self::Line(stream, side, text) => {
                write!(f, "{}: {} {text}", stream.name(), side.sign())
            }
            Self::Order(stream) => write!(f, "{}: the order of lines differs", stream.name()),
            Self::Tree(change) => {
                let Change {
                    path,
                    first,
                    second,
                    ..
                } = change;
                let shown = |fact: &Option<String>| fact.clone().unwrap_or("nothing".to_owned());
                match change.label {
                    Change::ENTRY if first.is_some() => {
                        write!(f, "tree: - {path}: {}", shown(first))
                    }
                    Change::ENTRY => write!(f, "tree: + {path}: {}", shown(second)),
                    _ => write!(f, "tree: ~ {path}: {} != {}", shown(first), shown(second)),
                }
            }
        }
    }
}

/// Removes the command's name, and replaces everything in quotes by `N`, and each number by `0`.
fn template(line: &str) -> String {
    let message = line.split_once(": ").map_or(line, |(_, message)| message);
    let mut template = String::new();
    let mut closing = None;
    for c in message.chars() {
        match (closing, c) {
            (Some(quote), c) if c == quote => closing = None,
            (Some(_), _) => {}
            (None, '\'' | '"' | '‘') => {
                closing = Some(if c == '‘' { '’' } else { c });
                if !template.ends_with('N') {
                    template.push('N');
                }
            }
            (None, '$' | '\\') if template.ends_with('N') => {}
            (None, '0'..='9') if template.ends_with('0') => {}
            (None, '0'..='9') => template.push('0'),
            (None, c) => template.push(c),
        }
    }
    template
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_matter_for_the_kind() {
        assert_eq!(
            template("rm: cannot remove 'a'$'\\001''/b': x"),
            "cannot remove N: x"
        );
        let mode = Change {
            path: "a/b".to_owned(),
            kinds: (Some(Kind::File), Some(Kind::File)),
            label: "mode",
            first: Some("mode 1".to_owned()),
            second: Some("mode 2".to_owned()),
        };
        assert_eq!(Fact::Tree(mode).kind(), "tree ~ mode");
    }
}
