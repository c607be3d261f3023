//! The difference between what two commands did.

use std::{collections::BTreeSet, fmt};

use crate::{
    case::{Called, Case, PWD, replaced},
    run::{Observed, Status},
};

/// A difference between GNU's command and ours. All parts are empty if they did the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The status of GNU's command and that of ours.
    pub(crate) status: Option<(Status, Status)>,
    pub(crate) stdout: Lines,
    pub(crate) stderr: Lines,
    /// The differences between the trees, one line for each entry, as [`testkit::snapshot`] writes it.
    pub(crate) tree: Vec<String>,
}

/// The difference between two streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) only_gnu: Vec<String>,
    pub(crate) only_ours: Vec<String>,
    /// The lines are the same, but their order differs, and it is not free.
    pub(crate) order: bool,
}

/// The order of lines that a comparison asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Exact,
    /// Lines about the same operand come in any order, and so do lines about the dest.
    FreeWithinOperands,
}

impl Difference {
    /// Compares what both commands did in `case`.
    pub(crate) fn between(case: &Case, gnu: &Observed, ours: &Observed) -> Self {
        if (gnu.status, ours.status) == (Status::Hung, Status::Hung) {
            // Both wait for the same FIFO. How far they have come by then is left to chance.
            return Self::default();
        }
        let order = match case.asks_in_order() && prompts(&gnu.stderr) > 1 {
            true => Order::Exact,
            false => Order::FreeWithinOperands,
        };
        let dests = case.dests();
        // In messages, a path begins with the real working directory.
        let path = |dest: &Vec<u8>| legible(&replaced(dest, PWD.as_bytes(), ""));
        let dests: Vec<String> = dests.iter().map(|dest| component(&path(dest))).collect();
        let lines = |gnu: &[u8], ours: &[u8]| match case.called {
            Called::Own => {
                let (name, other) = (case.pair.ours(), case.pair.gnu());
                Lines::between(gnu, &replaced(ours, name.as_bytes(), other), order, &dests)
            }
            Called::Gnus(_) => Lines::between(gnu, ours, order, &dests),
        };
        Self {
            status: (gnu.status != ours.status).then_some((gnu.status, ours.status)),
            stdout: lines(&gnu.stdout, &ours.stdout),
            stderr: lines(&gnu.stderr, &ours.stderr),
            tree: gnu
                .tree
                .diff(&ours.tree)
                .lines()
                .map(str::to_owned)
                .collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns `true` if ours, a dry run, only fails where GNU's removes a directory. The dry run cannot know
    /// that a directory is empty if it may not be read.
    pub(crate) fn is_of_unreadable_directories(&self) -> bool {
        let denied = |line: &String| line.ends_with(": Permission denied");
        let (stdout, stderr) = (&self.stdout, &self.stderr);
        let removed = |line: &String| line.starts_with("removed directory ");
        self.tree.is_empty()
            && stdout.only_ours.is_empty()
            && stdout.only_gnu.iter().all(removed)
            && stderr.only_gnu.is_empty()
            && !stderr.only_ours.is_empty()
            && stderr.only_ours.iter().all(denied)
    }

    /// Returns `true` if only stdout differs.
    pub(crate) fn is_of_stdout(&self) -> bool {
        self.without_stdout().is_empty()
    }

    /// Returns the rest of the difference.
    pub(crate) fn without_stdout(&self) -> Self {
        Self {
            stdout: Lines::default(),
            ..self.clone()
        }
    }

    /// Returns the difference without the lines of stdout that contain `text`, or `None` if there are none.
    pub(crate) fn without_stdout_about(&self, text: &str) -> Option<Self> {
        let mut rest = self.clone();
        for lines in [&mut rest.stdout.only_gnu, &mut rest.stdout.only_ours] {
            lines.retain(|line| !line.contains(text));
        }
        (rest != *self).then_some(rest)
    }

    /// Returns `true` if only stderr differs.
    pub(crate) fn is_of_stderr(&self) -> bool {
        Self {
            stderr: Lines::default(),
            ..self.clone()
        }
        .is_empty()
    }

    /// Returns the kinds of what differs: everything but names and numbers. Two differences of one kind probably have
    /// one cause.
    pub(crate) fn kinds(&self) -> BTreeSet<String> {
        let mut parts = BTreeSet::new();
        if let Some((gnu, ours)) = self.status {
            parts.insert(format!("status {gnu:?} != {ours:?}"));
        }
        for (name, lines) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            let signed = |sign, lines: &[String]| -> Vec<String> {
                let lines = lines.iter();
                lines
                    .map(|line| format!("{name} {sign} {}", template(line)))
                    .collect()
            };
            parts.extend(signed('-', &lines.only_gnu));
            parts.extend(signed('+', &lines.only_ours));
            if lines.order {
                parts.insert(format!("{name} order"));
            }
        }
        parts.extend(self.tree.iter().map(|line| labels(line)));
        parts
    }
}

impl Lines {
    fn between(gnu: &[u8], ours: &[u8], order: Order, dests: &[String]) -> Self {
        if gnu == ours {
            return Self::default();
        }
        let (gnu, ours) = (messages(gnu), messages(ours));
        let mut only_ours = ours.clone();
        let mut only_gnu = gnu.clone();
        only_gnu.retain(
            |line| match only_ours.iter().position(|other| other == line) {
                Some(found) => {
                    only_ours.remove(found);
                    false
                }
                None => true,
            },
        );
        let same_order = match order {
            Order::Exact => false,
            Order::FreeWithinOperands => operands(&gnu, dests) == operands(&ours, dests),
        };
        Self {
            order: only_gnu.is_empty() && only_ours.is_empty() && !same_order,
            only_gnu,
            only_ours,
        }
    }

    /// Returns `true` if each line that only one command printed contains `text`, and there is such a line.
    pub(crate) fn are_all_about(&self, text: &str) -> bool {
        let mut lines = self.only_gnu.iter().chain(&self.only_ours).peekable();
        lines.peek().is_some() && lines.all(|line| line.contains(text))
    }
}

/// The end of a prompt.
const PROMPT_END: &[u8] = b"? ";

/// Counts the prompts in a stream.
pub(crate) fn prompts(stderr: &[u8]) -> usize {
    let is_end = |bytes: &&[u8]| *bytes == PROMPT_END;
    stderr.windows(PROMPT_END.len()).filter(is_end).count()
}

/// Cuts a stream into its messages. A prompt ends without a newline.
fn messages(stream: &[u8]) -> Vec<String> {
    let mut messages = Vec::new();
    for line in stream.split_inclusive(|&byte| byte == b'\n') {
        let (line, end) = match line.strip_suffix(b"\n") {
            Some(line) => (line, ""),
            // Another message may follow this prompt in another order.
            None if line.ends_with(PROMPT_END) => (line, ""),
            None => (line, "(no newline)"),
        };
        let text = legible(line) + end;
        messages.extend(text.split_inclusive("? ").map(str::to_owned));
    }
    messages
}

/// Escapes what is not text, but no quotes.
fn legible(line: &[u8]) -> String {
    let text = line.escape_ascii().to_string();
    let quotes = [
        ("\\'", "'"),
        ("\\\"", "\""),
        ("\\xe2\\x80\\x98", "‘"),
        ("\\xe2\\x80\\x99", "’"),
    ];
    quotes
        .iter()
        .fold(text, |text, (escaped, quote)| text.replace(escaped, quote))
}

/// Returns the first component of the path in each message, except of paths in `dests`. All messages about one operand
/// have the same.
fn operands(messages: &[String], dests: &[String]) -> Vec<String> {
    let path = |message: &String| {
        let path = message.split_once(['\'', '"']).map_or("", |(_, path)| path);
        component(path)
    };
    let mut operands: Vec<String> = messages.iter().map(path).collect();
    operands.retain(|operand| !dests.contains(operand));
    operands.dedup();
    operands
}

/// Returns the letters of the first component of a path, which other text may follow.
fn component(path: &str) -> String {
    let component = path.split('/').next().unwrap_or_default();
    let letters = component.chars().filter(|c| !"'\"\\$".contains(*c));
    let letters: String = letters.collect();
    letters.split(' ').next().unwrap_or_default().to_owned()
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

/// Reduces a line about an entry to its sign and the words that begin each of its facts.
fn labels(line: &str) -> String {
    let Some((path, facts)) = line.split_once(": ") else {
        return line.to_owned();
    };
    let sign = path.get(..1).unwrap_or_default();
    let facts: Vec<&str> = match sign {
        "~" => facts
            .split("; ")
            .map(|fact| fact.split(' ').next().unwrap_or_default())
            .collect(),
        _ => facts.split(' ').take(1).collect(),
    };
    format!("tree {sign} {}", facts.join(","))
}

impl fmt::Display for Difference {
    /// Lists what differs: `-` marks what only GNU's command did, and `+` what only ours did.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((gnu, ours)) = self.status {
            writeln!(f, "status: - {gnu:?}, + {ours:?}")?;
        }
        for (name, lines) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            for line in &lines.only_gnu {
                writeln!(f, "{name}: - {line}")?;
            }
            for line in &lines.only_ours {
                writeln!(f, "{name}: + {line}")?;
            }
            if lines.order {
                writeln!(f, "{name}: the order of lines differs")?;
            }
        }
        for line in &self.tree {
            writeln!(f, "tree: {line}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(gnu: &str, ours: &str, order: Order) -> Lines {
        Lines::between(gnu.as_bytes(), ours.as_bytes(), order, &[])
    }

    #[test]
    fn the_order_is_free_within_operands_only() {
        let gnu = "removed 'a/b'\nremoved 'a'\nremoved 'c'\n";
        let within = "removed 'a'\nremoved 'a/b'\nremoved 'c'\n";
        let across = "removed 'c'\nremoved 'a/b'\nremoved 'a'\n";
        let free = Order::FreeWithinOperands;
        assert_eq!(lines(gnu, within, free), Lines::default());
        assert!(lines(gnu, across, free).order);
        assert!(lines(gnu, within, Order::Exact).order);
    }

    #[test]
    fn lines_count_as_often_as_they_come() {
        let difference = lines("x\nx\ny\n", "x\ny\nz\n", Order::FreeWithinOperands);
        assert_eq!(
            (difference.only_gnu, difference.only_ours),
            (vec!["x".to_owned()], vec!["z".to_owned()])
        );
    }

    #[test]
    fn a_prompt_may_come_last() {
        let first = "cp: overwrite 'a/b'? cp: cannot open 'a/c'\n";
        let last = "cp: cannot open 'a/c'\ncp: overwrite 'a/b'? ";
        let free = Order::FreeWithinOperands;
        assert_eq!(lines(first, last, free), Lines::default());
        assert_ne!(lines("x\n", "x", free), Lines::default());
    }

    #[test]
    fn names_do_not_matter_for_the_kind() {
        assert_eq!(
            template("rm: cannot remove 'a'$'\\001''/b': x"),
            "cannot remove N: x"
        );
        assert_eq!(
            labels("~ a/b: mode 1 != mode 2; 3 bytes != 4 bytes"),
            "tree ~ mode,3"
        );
    }
}
