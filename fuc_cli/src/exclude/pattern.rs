//! Patterns in gitignore's syntax, and the verdict of a list of them.
//!
//! Most patterns match a name. So a path is built only for those that do not, and only if no later pattern matches the
//! name.

use fuc_engine::Verdict;

use super::glob::{Glob, Problem};

/// A pattern that may match files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    glob: Glob,
    matches: Matches,
    /// The verdict about the files that match. They are taken if the pattern begins with `!`.
    verdict: Verdict,
    /// The pattern ends with a slash.
    only_directories: bool,
}

/// The part of a path that a pattern matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Matches {
    /// The last component.
    Name,
    /// The whole path, relative to the directory to which the pattern belongs.
    Path,
}

/// A file that patterns decide about.
pub(super) struct Subject<'a> {
    pub(super) name: &'a [u8],
    pub(super) is_directory: bool,
}

/// Returns the pattern in a line of a file, or `None` for a comment or an empty line.
pub(super) fn in_line(line: &[u8]) -> Option<&[u8]> {
    let pattern = trimmed(line);
    (!pattern.is_empty() && !line.starts_with(b"#")).then_some(pattern)
}

/// Returns the text without a carriage return at its end and the spaces before, except an escaped one.
pub(super) fn trimmed(text: &[u8]) -> &[u8] {
    let line = text.strip_suffix(b"\r").unwrap_or(text);
    let mut end = 0;
    let mut bytes = line.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b' ' => {}
            b'\\' => end = bytes.next().map_or(at, |(escaped, _)| escaped) + 1,
            _ => end = at + 1,
        }
    }
    &line[..end]
}

/// Returns `true` if the text has braces that a shell would expand. In a pattern they stand for themselves.
pub(super) fn has_alternatives(text: &[u8]) -> bool {
    let mut expected = b"{,}".iter().peekable();
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        if *byte == b'\\' {
            bytes.next();
        } else if expected.peek() == Some(&byte) {
            expected.next();
        }
    }
    expected.peek().is_none()
}

/// Parses a pattern.
///
/// # Errors
/// If the pattern can match nothing.
pub(super) fn parse(pattern: &[u8]) -> Result<Pattern, Problem> {
    let (verdict, rest) = match pattern {
        [b'!', rest @ ..] => (Verdict::Take, rest),
        rest => (Verdict::Prune, rest),
    };
    let (only_directories, rest) = match rest {
        [rest @ .., b'/'] => (true, rest),
        rest => (false, rest),
    };
    let matches = match rest.contains(&b'/') {
        true => Matches::Path,
        false => Matches::Name,
    };
    Ok(Pattern {
        glob: Glob::parse(rest.strip_prefix(b"/").unwrap_or(rest))?,
        matches,
        verdict,
        only_directories,
    })
}

impl Pattern {
    /// Returns `true` if the pattern has a slash before its end, and excludes this path.
    pub(super) fn excludes_path(&self, path: &[u8]) -> bool {
        self.matches == Matches::Path && self.verdict == Verdict::Prune && self.glob.matches(path)
    }
}

/// Returns the verdict of the last pattern that matches. `path` returns the path relative to the directory of the
/// patterns.
pub(super) fn decide<'p>(
    patterns: &[Pattern],
    subject: &Subject<'_>,
    path: impl Fn() -> &'p [u8],
) -> Option<Verdict> {
    last_match(patterns, |pattern| {
        let may_match = subject.is_directory || !pattern.only_directories;
        may_match
            && match pattern.matches {
                Matches::Name => pattern.glob.matches(subject.name),
                Matches::Path => pattern.glob.matches(path()),
            }
    })
}

/// Returns the verdict about an operand: that of the last pattern without a slash that matches. A pattern that
/// matches every name says nothing about an operand: `--exclude=* --exclude=!*.c src` is about the files in `src`.
pub(super) fn decide_operand(
    patterns: &[Pattern],
    name: &[u8],
    is_directory: impl Fn() -> bool,
) -> Option<Verdict> {
    last_match(patterns, |pattern| {
        pattern.matches == Matches::Name
            && !pattern.glob.matches_every_name()
            && pattern.glob.matches(name)
            && (!pattern.only_directories || is_directory())
    })
}

fn last_match(patterns: &[Pattern], is_match: impl Fn(&Pattern) -> bool) -> Option<Verdict> {
    let mut latest_first = patterns.iter().rev();
    let deciding = latest_first.find(|pattern| is_match(pattern));
    deciding.map(|pattern| pattern.verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_with_a_comma_are_alternatives() {
        for text in ["{a,b}", "x/{,a}", "{a,b"] {
            let expected = text.ends_with('}');
            assert_eq!(has_alternatives(text.as_bytes()), expected, "{text}");
        }
        for text in ["{a}", "\\{a,b}", "{a\\,b}", "a,b", "},{"] {
            assert!(!has_alternatives(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn no_path_is_built_for_a_pattern_that_matches_names() {
        let patterns = [&b"/a/b"[..], b"*.o"].map(|text| parse(text).unwrap());
        let subject = Subject {
            name: b"x.o",
            is_directory: false,
        };
        let decided = decide(&patterns, &subject, || panic!("a path was built"));
        assert_eq!(decided, Some(Verdict::Prune));
    }
}
