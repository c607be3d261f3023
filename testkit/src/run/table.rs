//! Tables of command lines. A row is a command; above it are the tree that it finds, and the reason why it is tested.
//!
//! ```text
//! # a dest gets another name             the reason of the rows below
//! a=new b=old l->b                       the tree of the rows below
//! cpz (-b|-S.o) -v a b                   two rows, compared with `cp -r`
//! user newest cp a b                     a row without -r and under GNU's name, see below
//! + d/                                   for the rows below, more entries in the same tree
//! cpz --atomic a b                       a row of our command alone, because expectations follow:
//! ! cannot stat 'x': No such file...     a line of stderr, without the name of the command; dots stand for anything
//! !! file operands                       a line of stderr that has no name; `! try` is the one about --help
//! > 'a' -> 'b'                           a line of stdout
//! = b=new -l                             the changes of the tree, in which `-` removes an entry
//! ? 1                                    the status; by default 1 if stderr has lines, and otherwise 0
//! ```
//!
//! Each row runs in trees of its own, and all rows run even if some fail. The message names those.
//!
//! Words are separated by white space, and quoted by `'`. `(x|y)` in a line stands for two lines, `{x,y}` and `{0..9}` in
//! a word for several words, and `{x*99}` for as many letters. In front of a command, `user` runs it by an ordinary user,
//! `bare` adds no `-r`, `tty` types the answers at a terminal, `umask:077` and `NAME=value` set these. `sh:'script'` runs it by
//! a script with `"$@"` in its place, and `fault:close:error=EIO:when=2` lets strace make system calls fail. `newest` skips it
//! without the newest release, and `root`, `strace`, `acls` and `xattrs` without these. Answers follow after `<<`, each without
//! its newline; `\c` at the end of one leaves that out. [`plant`](crate::tree::plant) has the words for trees.
//!
//! A row without expectations is a comparison. A row with expectations whose tree has no changes must leave it as it is.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::OnceLock,
};

use super::{
    Input, Observed, Pair, Parity, Run, Status,
    compare::{difference, normal_lines},
};
use crate::{
    probe::{FuseMount, Habits, NOBODY, Skip, is_root, supports_acls, supports_xattrs},
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, memory, place, remove_for_sure, words},
};

/// A command line and what belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Row {
    reason: String,
    tree: String,
    command: String,
    expected: Vec<String>,
}

/// A table under construction: what its rows have in common.
pub struct Table<'a> {
    pair: Pair,
    build: Box<dyn Fn(&Tree) + 'a>,
    setting: Box<dyn Fn(Parity) -> Parity + 'a>,
    served: Option<(&'static str, Habits)>,
}

impl<'a> Table<'a> {
    /// Starts a table of command lines of this pair.
    pub(super) fn of(pair: Pair) -> Self {
        Self {
            pair,
            build: Box::new(|_| {}),
            setting: Box::new(|parity| parity),
            served: None,
        }
    }

    /// Builds a part of each tree by code, before the words of the table are added.
    #[must_use]
    pub fn build(mut self, build: impl Fn(&Tree) + 'a) -> Self {
        self.build = Box::new(build);
        self
    }

    /// Changes each comparison.
    #[must_use]
    pub fn setting(mut self, setting: impl Fn(Parity) -> Parity + 'a) -> Self {
        self.setting = Box::new(setting);
        self
    }

    /// Runs our command with so many threads, on trees in memory.
    #[must_use]
    pub fn threads(self, number: usize) -> Self {
        let ours = format!(r#"ours=$1; shift; exec "$ours" --threads={number} "$@""#);
        self.setting(move |parity| parity.in_scripts(&ours, r#"exec "$@""#).on(memory()))
    }

    /// Serves the directory `name` of each tree by a filesystem with these habits while the commands run. What the rows say
    /// about it is as the filesystem stores it.
    #[must_use]
    pub fn served(mut self, name: &'static str, habits: Habits) -> Self {
        self.served = Some((name, habits));
        self
    }

    /// Runs all rows.
    ///
    /// # Panics
    /// Panics if a row differs, with the differences of all such rows.
    #[track_caller]
    pub fn rows(&self, text: &str) {
        let rows = rows(text, &self.pair.names());
        assert!(!rows.is_empty(), "BUG in a test: a table without rows");
        if let Some((_, habits)) = &self.served
            && let Err(skip) = FuseMount::with(habits.clone())
        {
            return skip.announce();
        }
        let failures: Vec<String> = rows.iter().filter_map(|row| self.failure(row)).collect();
        assert!(
            failures.is_empty(),
            "{} of {} rows fail{}\n{}",
            failures.len(),
            rows.len(),
            self.served
                .as_ref()
                .map_or_else(String::new, |served| format!(" with {served:?}")),
            failures.join("\n")
        );
    }

    /// Returns what is wrong with a row.
    fn failure(&self, row: &Row) -> Option<String> {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.difference(row)));
        let difference = outcome.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            Ok(format!("panicked: {}\n", text.unwrap_or("no text")))
        });
        match difference {
            Ok(difference) if difference.is_empty() => None,
            Ok(difference) => {
                let Row {
                    reason,
                    tree,
                    command,
                    ..
                } = row;
                Some(format!(
                    "*** {command}\n    in: {tree}\n    # {reason}\n{difference}"
                ))
            }
            Err(skip) => {
                skip.announce();
                None
            }
        }
    }

    fn difference(&self, row: &Row) -> Result<String, Skip> {
        let has_expectations = !row.expected.is_empty();
        let mut parity = (self.setting)(self.parity(&row.command, !has_expectations)?);
        if let Some((name, habits)) = &self.served {
            parity = parity.served(name, habits.clone());
        }
        let build = |tree: &Tree| {
            (self.build)(tree);
            tree.plant(&row.tree);
        };
        if has_expectations {
            let parity = parity.attributes(Attributes::CONTENT);
            return Ok(unexpected(
                &parity.observe_ours(build),
                &row.expected,
                build,
            ));
        }
        let [ours, gnu] = parity.observe(build)?;
        Ok(difference(&ours, &gnu))
    }

    /// Returns the comparison that a command line describes.
    fn parity(&self, command: &str, adds_r: bool) -> Result<Parity, Skip> {
        assert!(
            !command.contains(')'),
            "BUG in a test: a parenthesis is left"
        );
        let (command, answers) = match command.split_once(" <<") {
            Some((command, answers)) => (command, words::split(answers)),
            None => (command, Vec::new()),
        };
        let mut arguments = words::split(command).into_iter();
        let names = self.pair.names();
        let mut settings: Vec<String> = Vec::new();
        let name = loop {
            match arguments.next() {
                Some(word) if names.contains(&&*word) => break word,
                Some(word) => settings.push(word),
                None => panic!("BUG in a test: no command in {command}"),
            }
        };
        let is_bare = !adds_r || settings.iter().any(|setting| setting == "bare");
        let mut parity = match (name == names[1], is_bare) {
            (true, _) => self.pair.strict(),
            (false, true) => self.pair.bare(),
            (false, false) => self.pair.parity(),
        };
        for setting in settings {
            parity = match &*setting {
                "newest" => parity.only_newest(),
                "bare" => parity,
                "user" if is_root() => parity.uid(NOBODY),
                "user" => return Err(Skip("only root can become another user".into())),
                "root" if is_root() => parity,
                "root" => return Err(Skip("only root can do this".into())),
                "strace" => can_trace().map(|()| parity)?,
                "acls" if supports_acls(&place()) => parity,
                "xattrs" if supports_xattrs(&place()) => parity,
                missing @ ("acls" | "xattrs") => {
                    return Err(Skip(format!("there are no {missing}")));
                }
                "tty" => parity.input(Input::Terminal),
                other => match (other.split_once(':'), other.split_once('=')) {
                    (Some(("umask", umask)), _) => {
                        parity.in_script(&format!(r#"umask {umask}; exec "$@""#))
                    }
                    (Some(("sh", script)), _) => parity.in_script(script),
                    (Some(("fault", fault)), _) => {
                        can_trace()?;
                        let strace = "exec strace -f -qq -o /dev/null -e inject";
                        parity.in_script(&format!(r#"{strace}={fault} "$@""#))
                    }
                    (_, Some((variable, value))) => parity.env(variable, value),
                    (_, None) => panic!("BUG in a test: unknown setting {other}"),
                },
            };
        }
        let answers = answers
            .iter()
            .map(|answer| match answer.strip_suffix(words::NO_NEWLINE) {
                Some(last) => last.to_owned(),
                None => format!("{answer}\n"),
            });
        let answers: String = answers.collect();
        Ok(parity.args(arguments).stdin(answers))
    }
}

/// Skips a row if strace cannot trace.
fn can_trace() -> Result<(), Skip> {
    static TRACED: OnceLock<Result<(), Skip>> = OnceLock::new();
    let trace = || Run::new("true").calls().map(drop);
    TRACED.get_or_init(trace).clone()
}

/// Compares what our command did with the expectations of its row.
fn unexpected(seen: &Observed, expected: &[String], build: impl Fn(&Tree)) -> String {
    let of = |mark: &str| -> Vec<&str> {
        let lines = expected.iter().filter_map(|line| line.strip_prefix(mark));
        lines.map(str::trim).collect()
    };
    let outcome = &seen.outcome;
    let lines = |stream: &[u8]| normal_lines(stream, &seen.program);
    let said = of("!")
        .into_iter()
        .map(|line| match line.strip_prefix('!') {
            _ if line == "try" => "Try 'CMD --help' for more information.".to_owned(),
            Some(line) => line.trim().to_owned(),
            None => format!("CMD: {line}"),
        });
    let said: Vec<String> = said.collect();
    let printed: Vec<String> = of(">").into_iter().map(str::to_owned).collect();
    let status = match of("?").first() {
        Some(status) => status.parse().expect("a status"),
        None => i32::from(!said.is_empty()),
    };
    let changed = Scratch::new();
    let tree = Tree::at(changed.path());
    build(&tree);
    for change in of("=") {
        for word in words::split(change) {
            match word.strip_prefix('-') {
                Some(path) => {
                    remove_for_sure(changed.path().join(path)).expect("it can be removed");
                }
                None => words::add(&tree, &word),
            }
        }
    }
    let after = Snapshot::of(changed.path(), Attributes::CONTENT);
    let after = after.with_targets(changed.path(), "$PWD");
    let trees = after.diff(&seen.tree);
    if trees.is_empty()
        && outcome.status == Status::Exit(status)
        && are_as_expected(lines(&outcome.stderr), &said)
        && are_as_expected(lines(&outcome.stdout), &printed)
    {
        return trees;
    }
    format!(
        "=== expected: status {status}\n--- stdout\n{}\n--- stderr\n{}\n=== ours: {outcome}--- trees: - expected, + ours\n{trees}",
        printed.join("\n"),
        said.join("\n")
    )
}

/// Compares lines in any order.
fn are_as_expected(mut lines: Vec<String>, expected: &[String]) -> bool {
    let mut expected = expected.iter();
    let has_each = expected.all(|pattern| {
        let found = lines.iter().position(|line| matches(line, pattern));
        found.map(|index| lines.swap_remove(index)).is_some()
    });
    has_each && lines.is_empty()
}

/// Returns `true` if a line is as expected. Three dots stand for anything.
fn matches(line: &str, pattern: &str) -> bool {
    let mut parts = pattern.split("...");
    let begin = parts.next().unwrap_or_default();
    let Some(mut rest) = line.trim().strip_prefix(begin) else {
        return false;
    };
    let mut is_open = false;
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
        is_open = part.is_empty();
    }
    is_open || rest.is_empty()
}

/// Returns the rows of a table.
fn rows(text: &str, names: &[&str; 2]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let (mut reason, mut base, mut tree) = (String::new(), String::new(), String::new());
    // The rows of the line before, to which expectations belong.
    let mut open: Vec<Row> = Vec::new();
    let mut is_after_tree = false;
    let is_row = |line: &str| {
        let first = words::alternatives(line).swap_remove(0);
        words::split(&first)
            .iter()
            .any(|word| names.contains(&&**word))
    };
    let text = words::with_repetitions(text);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.starts_with(['!', '>', '=', '?']) {
            assert!(!open.is_empty(), "BUG in a test: no row before {line}");
            open.iter_mut()
                .for_each(|row| row.expected.push(line.into()));
            continue;
        }
        rows.append(&mut open);
        let is_tree = match line.strip_prefix('#') {
            Some(text) => {
                reason = text.trim().into();
                false
            }
            None if is_row(line) => {
                let trees = words::alternatives(&tree);
                open = words::alternatives(line)
                    .iter()
                    .flat_map(|command| {
                        trees.iter().map(|tree| Row {
                            reason: reason.clone(),
                            tree: tree.clone(),
                            command: command.clone(),
                            expected: Vec::new(),
                        })
                    })
                    .collect();
                false
            }
            None => {
                match line.strip_prefix('+') {
                    Some(more) if is_after_tree => tree = format!("{tree} {more}"),
                    Some(more) => tree = format!("{base} {more}"),
                    None if is_after_tree => tree = format!("{tree} {line}"),
                    None => tree = line.into(),
                }
                if !line.starts_with('+') {
                    base.clone_from(&tree);
                }
                true
            }
        };
        is_after_tree = is_tree;
    }
    rows.append(&mut mem::take(&mut open));
    rows
}

#[cfg(test)]
mod tests;
