//! The text of `--help`, made from the table.

use super::{EXTENSIONS, Flag, Table};
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
        let own = |lines: &'static str| match personality {
            Personality::Strict => "",
            Personality::Extended => lines,
        };
        for lines in [self.about, own(self.own_about), "\n"] {
            text.extend_from_slice(lines.as_bytes());
        }
        let shown = self.flags.iter().filter(|flag| !flag.is_hidden);
        let (extensions, flags_of_gnu): (Vec<_>, _) = shown.partition(|flag| flag.is_extension);
        push_flags(&mut text, &flags_of_gnu, personality);
        if personality == Personality::Extended {
            text.extend_from_slice(format!("\n{EXTENSIONS}:\n").as_bytes());
            push_flags(&mut text, &extensions, personality);
        }
        text.extend_from_slice(self.notes.as_bytes());
        text.extend_from_slice(own(self.own_notes).as_bytes());
        text
    }
}

fn push_flags<I: Copy>(text: &mut Vec<u8>, flags: &[&Flag<I>], personality: Personality) {
    for flag in flags {
        text.extend_from_slice(entry(flag, personality).as_bytes());
    }
}

fn entry<I: Copy>(flag: &Flag<I>, personality: Personality) -> String {
    let shorts = flag.shorts_of(personality);
    let names = flag.spellings(shorts).join(", ");
    let value = flag.value.parts().concat();
    let indent = match shorts {
        "" => "    ",
        _ => "",
    };
    // The names and the value end two columns before the explanation, or more.
    let width = COLUMN - 4;
    let indented = flag
        .help
        .replace('\n', &format!("\n{}", " ".repeat(COLUMN + 2)));
    format!(
        "  {:width$}  {indented}\n",
        [indent, &names, &value].concat()
    )
}
