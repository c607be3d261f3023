//! The manual page, by `clap_mangen` and with its library for roff.
//!
//! The options have a section of our own, because `clap_mangen` shows one short name of each.

use clap::builder::PossibleValue;
use clap::{Arg, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

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
    /// The purpose of the command, in a few words.
    pub summary: &'static str,
    /// The blocks after the synopsis. The flags follow the title of the section `OPTIONS`.
    pub prose: &'static str,
    /// The words of the command for those of the shared prose, such as `rmz` for `{name}`.
    pub words: &'static [(&'static str, &'static str)],
}

impl Manual {
    /// Returns the page in roff.
    pub(super) fn page(&self, command: &Command) -> String {
        let mut command = command.clone().about(self.summary);
        command.build();
        let version = command.get_version().unwrap_or_default();
        let source = format!("{} {version}", command.get_name());
        let man = Man::new(command.clone())
            .title(command.get_name().to_uppercase())
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
        page.replacen(" 1  ", " 1 \"\" ", 1) + &self.own_sections(&command)
    }

    fn own_sections(&self, command: &Command) -> String {
        let prose = self.full_prose();
        let mut roff = Roff::new();
        for block in prose.split("\n\n").map(str::trim) {
            let (first, rest) = block.split_once('\n').unwrap_or((block, ""));
            if let Some(title) = block.strip_prefix("# ") {
                roff.control("SH", [title]);
                if title == "OPTIONS" {
                    push_options(&mut roff, command, &details(&prose));
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

/// Adds the flags in the order of the table, and a heading before the first that has it.
///
/// # Panics
/// Panics if details belong to no flag.
fn push_options(roff: &mut Roff, command: &Command, details: &[(&str, &str)]) {
    let shown = |arg: &&Arg| !arg.is_positional() && !arg.is_hide_set();
    let mut heading = None;
    let mut explained = 0;
    for arg in command.get_arguments().filter(shown) {
        if heading != arg.get_help_heading() {
            heading = arg.get_help_heading();
            roff.control("SS", heading);
        }
        let spellings = spellings(arg);
        roff.control("TP", []).text(names(arg, &spellings));
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        roff.text([roman(&help)]);
        let possible = arg.get_possible_values();
        let words: Vec<&str> = possible.iter().map(PossibleValue::get_name).collect();
        if !words.iter().all(|word| help.contains(word)) {
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

/// Returns the spellings of a flag, with their dashes.
fn spellings(arg: &Arg) -> Vec<String> {
    let shorts = arg.get_short_and_visible_aliases().unwrap_or_default();
    let longs = arg.get_long_and_visible_aliases().unwrap_or_default();
    let shorts = shorts.into_iter().map(|short| format!("-{short}"));
    let longs = longs.into_iter().map(|long| format!("--{long}"));
    shorts.chain(longs).collect()
}

/// Returns all spellings of a flag and the name of its value: `-S, --suffix=SUFFIX`.
fn names(arg: &Arg, spellings: &[String]) -> Vec<Inline> {
    let mut line = Vec::new();
    for spelling in spellings {
        if !line.is_empty() {
            line.push(roman(", "));
        }
        line.push(bold(spelling));
    }
    let has_long = arg.get_long().is_some();
    let range = arg.get_num_args().expect("BUG: the command is built");
    if let Some([word]) = arg.get_value_names().filter(|_| range.takes_values()) {
        let (before, after) = match (range.min_values(), has_long) {
            (0, _) => ("[=", "]"),
            (_, true) => ("=", ""),
            (_, false) => (" ", ""),
        };
        line.extend([roman(before), italic(word.to_string()), roman(after)]);
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
