//! The difference between what two commands did.

use std::collections::BTreeSet;

use testkit::run::replaced;

use crate::{
    case::{Called, Case, Pair},
    run::{Observed, Status},
};

/// The lines that describe a difference. `-` marks what only GNU's command did, and `+` what only ours did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference(pub(crate) Vec<String>);

/// The order of lines that a comparison asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Exact,
    /// Lines about the same operand come in any order.
    FreeWithinOperands,
    Free,
}

/// The beginning of a line of `--debug` about the way in which content was copied. It may differ.
const METHOD: &str = "copy offload: ";
/// The end of a prompt.
const PROMPT_END: &str = "? ";

impl Difference {
    /// Compares what both commands did in `case`.
    pub(crate) fn between(case: &Case, gnu: &Observed, ours: &Observed) -> Self {
        let mut lines = Vec::new();
        if (gnu.status, ours.status) == (Status::Hung, Status::Hung) {
            // Both wait for the same FIFO. How far they have come by then is left to chance.
            return Self(lines);
        }
        if gnu.status != ours.status {
            lines.push(format!("status - {:?}, + {:?}", gnu.status, ours.status));
        }
        let order = match (case.asks_in_order(), case.has_plain_names()) {
            (true, _)
                if messages(&gnu.stderr)
                    .filter(|it| it.ends_with(PROMPT_END))
                    .count()
                    > 1 =>
            {
                Order::Exact
            }
            // Other threads of rmz go on while one asks.
            (false, _) if case.pair == Pair::Rm => Order::Free,
            (_, true) => Order::FreeWithinOperands,
            (_, false) => Order::Free,
        };
        let renamed = |stream: &[u8]| match case.called {
            Called::Own => replaced(
                stream,
                case.pair.ours().as_bytes(),
                case.pair.gnu().as_bytes(),
            ),
            Called::Gnus(_) => stream.to_vec(),
        };
        for (name, gnu, ours) in [
            ("stdout", &gnu.stdout, &ours.stdout),
            ("stderr", &gnu.stderr, &ours.stderr),
        ] {
            let of_stream = compare(gnu, &renamed(ours), order, &case.dests());
            lines.extend(of_stream.iter().map(|line| format!("{name} {line}")));
        }
        let trees = gnu.tree.diff(&ours.tree);
        lines.extend(trees.lines().map(|line| format!("tree {line}")));
        Self(lines)
    }

    /// Returns the kinds of the lines: everything but names and numbers. Two lines of one kind probably have one cause.
    pub(crate) fn kinds(&self) -> BTreeSet<String> {
        let kind = |line: &String| {
            let (mark, text) = line.split_once(": ").unwrap_or((line, ""));
            let mark: String = mark.split_inclusive(' ').take(2).collect();
            let is_quote = |c| ['\'', '"', '‘', '’'].contains(&c);
            let begin = text.split(is_quote).next().unwrap_or_default();
            let end = text.rsplit(is_quote).next().unwrap_or_default();
            let text = if begin == end {
                begin.to_owned()
            } else {
                format!("{begin}N{end}")
            };
            mark + &text.replace(|c: char| c.is_ascii_digit(), "")
        };
        self.0.iter().map(kind).collect()
    }
}

/// Describes how two streams differ.
fn compare(gnu: &[u8], ours: &[u8], order: Order, dests: &[Vec<u8>]) -> Vec<String> {
    let [gnu, ours] = [gnu, ours].map(|stream| messages(stream).collect::<Vec<_>>());
    let without = |lines: &[String], others: &[String]| {
        let mut others = others.to_vec();
        let mut lines = lines.to_vec();
        lines.retain(|line| {
            let found = others.iter().position(|other| other == line);
            found.map(|at| others.swap_remove(at)).is_none()
        });
        lines
    };
    let (only_gnu, only_ours) = (without(&gnu, &ours), without(&ours, &gnu));
    let is_same_order = match order {
        Order::Exact => gnu == ours,
        Order::FreeWithinOperands => operands(&gnu, dests) == operands(&ours, dests),
        Order::Free => true,
    };
    if only_gnu.is_empty() && only_ours.is_empty() && !is_same_order {
        return vec!["order: the order of lines differs".to_owned()];
    }
    let gnu = only_gnu.iter().map(|line| format!("- {line}"));
    let ours = only_ours.iter().map(|line| format!("+ {line}"));
    gnu.chain(ours).collect()
}

/// Cuts a stream into its messages. A prompt ends without a newline.
fn messages(stream: &[u8]) -> impl Iterator<Item = String> {
    let lines = stream.split_inclusive(|&byte| byte == b'\n');
    let messages = lines.flat_map(|line| {
        let text = String::from_utf8_lossy(line);
        let text = match text.strip_suffix('\n') {
            Some(text) => text.to_owned(),
            // Another message may follow this prompt in another order.
            None if text.ends_with(PROMPT_END) => text.into_owned(),
            None => format!("{text}(no newline)"),
        };
        let messages = text.split_inclusive(PROMPT_END).map(str::to_owned);
        messages.collect::<Vec<_>>()
    });
    messages.filter(|message| !message.starts_with(METHOD))
}

/// Returns the first component of the first path that each message quotes, except of paths in `dests`. All messages
/// about one operand have the same.
fn operands<'a>(messages: &'a [String], dests: &[Vec<u8>]) -> Vec<&'a str> {
    let component = |path: &'a str| path.split('/').next();
    let quoted = messages.iter().filter_map(|it| it.split('\'').nth(1));
    let mut operands: Vec<&str> = quoted.filter_map(component).collect();
    let is_dest = |operand: &str| {
        let dests = dests.iter().filter_map(|dest| str::from_utf8(dest).ok());
        let mut tops = dests.filter_map(|dest| dest.split('/').next());
        tops.any(|top| top == operand || top == crate::case::PWD && operand.is_empty())
    };
    operands.retain(|operand| !is_dest(operand));
    operands.dedup();
    operands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(gnu: &str, ours: &str, order: Order) -> Vec<String> {
        compare(gnu.as_bytes(), ours.as_bytes(), order, &[b"d".to_vec()])
    }

    #[test]
    fn the_order_is_free_within_operands_only() {
        let gnu = "removed 'a/b'\nremoved 'a'\nremoved 'd/x'\nremoved 'c'\n";
        let within = "removed 'a'\nremoved 'a/b'\nremoved 'c'\nremoved 'd/x'\n";
        let across = "removed 'c'\nremoved 'd/x'\nremoved 'a/b'\nremoved 'a'\n";
        assert!(compared(gnu, within, Order::FreeWithinOperands).is_empty());
        assert_eq!(compared(gnu, across, Order::FreeWithinOperands).len(), 1);
        assert_eq!(compared(gnu, within, Order::Exact).len(), 1);
        assert!(compared(gnu, across, Order::Free).is_empty());
    }

    #[test]
    fn lines_count_as_often_as_they_come() {
        let lines = compared("x\nx\ny\n", "x\ny\nz\n", Order::Free);
        assert_eq!(lines, ["- x", "+ z"]);
    }

    #[test]
    fn a_prompt_may_come_last() {
        let first = "cp: overwrite 'a/b'? cp: cannot open 'a/c'\n";
        let last = "cp: cannot open 'a/c'\ncp: overwrite 'a/b'? ";
        assert!(compared(first, last, Order::FreeWithinOperands).is_empty());
        assert_ne!(compared("x\n", "x", Order::Free).len(), 0);
    }

    #[test]
    fn names_and_numbers_do_not_matter_for_the_kind() {
        let lines = [
            "stderr - rm: cannot remove 'a'$'\\001''/b': x",
            "stderr - rm: cannot remove 'c': x",
            "tree ~ a/b: mode 644 != mode 600",
            "tree ~ c: mode 755 != mode 700",
        ];
        let difference = Difference(lines.map(str::to_owned).to_vec());
        assert_eq!(difference.kinds().len(), 2, "{:?}", difference.kinds());
    }
}
