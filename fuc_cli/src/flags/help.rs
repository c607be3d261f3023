//! The text of `--help`, made from the table.

use super::{Flag, Origin, Table, Value};
use crate::invocation::Personality;

/// The column at which the explanations begin.
const COLUMN: usize = 30;

impl<I: Copy> Table<I> {
    /// Returns the text of `--help` for the command invoked as `program`.
    ///
    /// Lists every flag of GNU's that is not hidden, and the extensions if the personality has them.
    #[must_use]
    pub fn help(&self, program: &[u8], personality: Personality) -> Vec<u8> {
        let mut text = Vec::with_capacity(4096);
        let mut lead = "Usage: ";
        for usage in self.usage {
            text.extend([lead.as_bytes(), program, b" ", usage.as_bytes(), b"\n"].concat());
            lead = "  or:  ";
        }
        text.extend_from_slice(self.about.as_bytes());
        self.push_flags(&mut text, Origin::Gnu, personality);
        if personality == Personality::Extended {
            text.extend_from_slice(b"\nExtensions, which cannot be abbreviated:\n");
            self.push_flags(&mut text, Origin::Extension, personality);
        }
        text.extend_from_slice(self.notes.as_bytes());
        text
    }

    fn push_flags(&self, text: &mut Vec<u8>, origin: Origin, personality: Personality) {
        let shown = |flag: &&Flag<I>| flag.origin == origin && !flag.is_hidden;
        for flag in self.flags.iter().filter(shown) {
            text.extend_from_slice(entry(flag, personality).as_bytes());
        }
    }
}

fn entry<I: Copy>(flag: &Flag<I>, personality: Personality) -> String {
    let mut entry = String::from("  ");
    let shorts = flag.shorts_of(personality);
    for short in shorts.chars() {
        entry.push('-');
        entry.push(short);
        entry.push_str(", ");
    }
    if flag.long.is_empty() {
        entry.truncate(entry.len() - 2);
    } else {
        if shorts.is_empty() {
            entry.push_str("    ");
        }
        entry.push_str("--");
        entry.push_str(flag.long);
    }
    match flag.value {
        Value::None => {}
        Value::Optional(word) => entry.push_str(&format!("[={word}]")),
        Value::Required(word) => entry.push_str(&format!("={word}")),
    }
    let gap = COLUMN.saturating_sub(entry.len()).max(2);
    entry.push_str(&" ".repeat(gap));
    let indented = flag
        .help
        .replace('\n', &format!("\n{}", " ".repeat(COLUMN + 2)));
    entry.push_str(&indented);
    entry.push('\n');
    entry
}
