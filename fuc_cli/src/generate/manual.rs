//! The manual page, by `clap_mangen` and with its library for roff.
//!
//! The options have a section of our own, because `clap_mangen` shows one short name of each.

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

use crate::flags::{Accepts, EXTENSIONS, Flag, Table, Value};

/// The prose of both commands' pages. A `# NAME` begins each part.
const SHARED: &str = include_str!("shared.txt");

/// The prose of a manual page.
///
/// Blank lines separate its blocks. `# TITLE` begins a section, and `## TITLE` a part of one. `- TERM` is followed by
/// the lines that explain the term. `+ --FLAG` is followed by the lines that the options have below the help of that
/// flag. All other blocks are paragraphs. A line `@NAME` stands for a part of the shared prose. Words in backquotes are
/// printed in bold.
#[derive(Clone, Copy, Debug)]
pub struct Manual {
    /// The name of the command, which stands for `{name}` in the prose.
    pub name: &'static str,
    /// The version of the command.
    pub version: &'static str,
    /// The purpose of the command, in a few words.
    pub summary: &'static str,
    /// The blocks after the synopsis. The flags follow the title of the section `OPTIONS`.
    pub prose: &'static str,
    /// The words of the command for those of the shared prose, such as `rm` for `{gnu}`.
    pub words: &'static [(&'static str, &'static str)],
}

impl Manual {
    /// Returns the page in roff.
    pub(super) fn page<I: Copy>(&self, table: &Table<I>, command: &Command) -> String {
        let source = format!("{} {}", self.name, self.version);
        let man = Man::new(command.clone())
            .title(self.name.to_uppercase())
            .source(source)
            .manual("User Commands");
        // A date would change without reason. An empty one must be quoted, or the next field takes its place.
        let mut page = Vec::new();
        let rendered = man
            .render_title(&mut page)
            .and_then(|()| man.render_name_section(&mut page))
            .and_then(|()| man.render_synopsis_section(&mut page));
        rendered.expect("BUG: memory can be written");
        let page = String::from_utf8(page).expect("BUG: the table is in UTF-8");
        page.replacen(" 1  ", " 1 \"\" ", 1) + &self.own_sections(table)
    }

    fn own_sections<I: Copy>(&self, table: &Table<I>) -> String {
        let prose = self.full_prose();
        let mut roff = Roff::new();
        for block in prose.split("\n\n").map(str::trim) {
            let (first, rest) = block.split_once('\n').unwrap_or((block, ""));
            if let Some(title) = block.strip_prefix("# ") {
                roff.control("SH", [title]);
                if title == "OPTIONS" {
                    push_options(&mut roff, table, &details(&prose));
                }
            } else if block.starts_with("+ ") {
                // The flag has it already.
            } else if let Some(title) = block.strip_prefix("## ") {
                roff.control("SS", [title]);
            } else if let Some(term) = first.strip_prefix("- ") {
                roff.control("TP", []).text([bold(term)]);
                roff.text(inlines(rest));
            } else {
                roff.control("PP", []).text(inlines(block));
            }
        }
        roff.to_roff()
    }

    /// Returns the prose of the command with the shared one.
    fn full_prose(&self) -> String {
        let lines = self.prose.lines().map(|line| match line.strip_prefix('@') {
            Some(name) => shared(name),
            None => line,
        });
        let prose = lines.collect::<Vec<_>>().join("\n");
        let prose = prose.replace("{name}", self.name);
        let words = self.words.iter();
        words.fold(prose, |prose, (word, own)| prose.replace(word, own))
    }
}

/// Returns a part of the shared prose.
///
/// # Panics
/// Panics if no part has this name.
fn shared(name: &str) -> &'static str {
    let mut parts = SHARED
        .split("\n# ")
        .filter_map(|part| part.split_once('\n'));
    let part = parts.find(|(title, _)| *title == name);
    part.unwrap_or_else(|| panic!("no shared prose is called {name}"))
        .1
        .trim()
}

/// Returns the details of flags: a spelling of each, and the text.
fn details(prose: &str) -> Vec<(&str, &str)> {
    let blocks = prose.split("\n\n").map(str::trim);
    blocks
        .filter_map(|block| block.strip_prefix("+ ")?.split_once('\n'))
        .collect()
}

/// Adds the flags in the order of the table, and a heading before the first extension.
///
/// # Panics
/// Panics if details belong to no flag.
fn push_options<I: Copy>(roff: &mut Roff, table: &Table<I>, details: &[(&str, &str)]) {
    let mut has_heading = false;
    let mut explained = 0;
    for flag in table.flags.iter().filter(|flag| !flag.is_hidden) {
        if flag.is_extension && !has_heading {
            has_heading = true;
            roff.control("SS", [EXTENSIONS]);
        }
        let spellings = flag.spellings(flag.shorts);
        roff.control("TP", []).text(names(flag, &spellings));
        let help = flag.help.replace('\n', " ");
        roff.text([roman(&help)]);
        if let Accepts::OneOf(words) | Accepts::ListOf(words) = flag.accepts
            && !words.iter().all(|word| help.contains(word))
        {
            roff.control("br", []);
            roff.text([roman(format!("Values: {}", words.join(", ")))]);
        }
        let is_own = |detail: &&(&str, &str)| spellings.iter().any(|name| name == detail.0);
        if let Some((_, text)) = details.iter().find(is_own) {
            roff.control("br", []).text(inlines(text));
            explained += 1;
        }
    }
    assert_eq!(explained, details.len(), "not all details have a flag");
}

/// Returns all spellings of a flag and the name of its value: `-S, --suffix=SUFFIX`.
fn names<I>(flag: &Flag<I>, spellings: &[String]) -> Vec<Inline> {
    let mut line = Vec::new();
    for spelling in spellings {
        if !line.is_empty() {
            line.push(roman(", "));
        }
        line.push(bold(spelling));
    }
    if flag.value != Value::None {
        let [before, word, after] = flag.value.parts();
        line.extend([roman(before), italic(word), roman(after)]);
    }
    line
}

/// Prints the words in backquotes in bold.
fn inlines(text: &str) -> Vec<Inline> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let text = lines.join(" ");
    let parts = text.split('`').enumerate();
    parts
        .map(|(index, part)| match index % 2 {
            0 => roman(part),
            _ => bold(part),
        })
        .collect()
}
