//! The difference between what two commands did.

use crate::{
    case::{Called, Case, PWD, replaced},
    fact::{Fact, Side, Stream},
    quoting,
    run::{Observed, Status},
};

/// A difference between GNU's command and ours: all facts in which they differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) facts: Vec<Fact>,
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
        let path = |dest: &Vec<u8>| replaced(dest, PWD.as_bytes(), "");
        let component = |dest| component(&String::from_utf8_lossy(&path(dest)));
        let dests: Vec<String> = dests.iter().map(component).collect();
        let lines = |stream, gnu: &[u8], ours: &[u8]| match case.called {
            Called::Own => {
                let (name, other) = (case.pair.ours(), case.pair.gnu());
                let ours = replaced(ours, name.as_bytes(), other);
                lines(stream, gnu, &ours, order, &dests)
            }
            Called::Gnus(_) => lines(stream, gnu, ours, order, &dests),
        };
        let mut facts = Vec::new();
        if gnu.status != ours.status {
            let (gnu, ours) = (gnu.status, ours.status);
            facts.push(Fact::Status { gnu, ours });
        }
        facts.extend(lines(Stream::Stdout, &gnu.stdout, &ours.stdout));
        facts.extend(lines(Stream::Stderr, &gnu.stderr, &ours.stderr));
        facts.extend(gnu.tree.changes(&ours.tree).into_iter().map(Fact::Tree));
        Self { facts }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }
}

/// Compares two streams.
fn lines(stream: Stream, gnu: &[u8], ours: &[u8], order: Order, dests: &[String]) -> Vec<Fact> {
    if gnu == ours {
        return Vec::new();
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
    if only_gnu.is_empty() && only_ours.is_empty() {
        let is_same_order = match order {
            Order::Exact => false,
            Order::FreeWithinOperands => operands(&gnu, dests) == operands(&ours, dests),
        };
        return match is_same_order {
            true => Vec::new(),
            false => vec![Fact::Order(stream)],
        };
    }
    let printed = |side, lines: Vec<String>| {
        let lines = lines.into_iter();
        lines.map(move |line| Fact::Line(stream, side, line))
    };
    printed(Side::Gnu, only_gnu)
        .chain(printed(Side::Ours, only_ours))
        .collect()
}

/// The end of a prompt.
const PROMPT_END: &[u8] = b"? ";

/// Counts the prompts in a stream.
pub(crate) fn prompts(stderr: &[u8]) -> usize {
    let is_end = |bytes: &&[u8]| *bytes == PROMPT_END;
    stderr.windows(PROMPT_END.len()).filter(is_end).count()
}

/// Cuts a stream into its messages. A prompt ends without a newline.
pub(crate) fn messages(stream: &[u8]) -> Vec<String> {
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
pub(crate) fn legible(line: &[u8]) -> String {
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
        let path = quoting::paths(message).into_iter().next();
        component(&path.unwrap_or_default())
    };
    let mut operands: Vec<String> = messages.iter().map(path).collect();
    operands.retain(|operand| !dests.contains(operand));
    operands.dedup();
    operands
}

fn component(path: &str) -> String {
    path.split('/').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(gnu: &str, ours: &str, order: Order) -> Vec<Fact> {
        lines(Stream::Stdout, gnu.as_bytes(), ours.as_bytes(), order, &[])
    }

    #[test]
    fn the_order_is_free_within_operands_only() {
        let gnu = "removed 'a/b'\nremoved 'a'\nremoved 'c'\n";
        let within = "removed 'a'\nremoved 'a/b'\nremoved 'c'\n";
        let across = "removed 'c'\nremoved 'a/b'\nremoved 'a'\n";
        let free = Order::FreeWithinOperands;
        assert_eq!(compared(gnu, within, free), []);
        let order = [Fact::Order(Stream::Stdout)];
        let relative = "can make relative symbolic links only in current directory";
        let unquoted = format!("cp: a/b: {relative}\ncp: cannot open 'a/c'\n");
        let other_way = format!("cp: cannot open 'a/c'\ncp: a/b: {relative}\n");
        assert_eq!(compared(&unquoted, &other_way, free), []);
        assert_eq!(compared(gnu, across, free), order);
        assert_eq!(compared(gnu, within, Order::Exact), order);
    }

    #[test]
    fn lines_count_as_often_as_they_come() {
        let line = |side, text: &str| Fact::Line(Stream::Stdout, side, text.to_owned());
        assert_eq!(
            compared("x\nx\ny\n", "x\ny\nz\n", Order::FreeWithinOperands),
            [line(Side::Gnu, "x"), line(Side::Ours, "z")]
        );
    }

    #[test]
    fn a_prompt_may_come_last() {
        let first = "cp: overwrite 'a/b'? cp: cannot open 'a/c'\n";
        let last = "cp: cannot open 'a/c'\ncp: overwrite 'a/b'? ";
        let free = Order::FreeWithinOperands;
        assert_eq!(compared(first, last, free), []);
        assert_ne!(compared("x\n", "x", free), []);
    }
}
