//! Parses one pattern in gitignore's syntax, and translates it to a glob of the crate `globset`.
//!
//! Git compares bytes, and its globs differ from those of `globset`:
//!
//! | pattern | git | globset |
//! |---|---|---|
//! | `{a,b}` | these five characters | `a` or `b` |
//! | `[[:digit:]]`, `[\]]` | a class, an escape | not supported |
//! | `[!a]` | never a slash | any other byte |
//! | `a**`, `***/a` | as `a*`, `**/a` | as `a*`, as `*/a` |
//!
//! So a pattern is first read by git's rules. Then each part is written in the way in which `globset` means the same.

use std::fmt;

/// A pattern that may match names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) glob: String,
    /// The pattern begins with `!`.
    pub(super) is_negated: bool,
    /// The pattern ends with a slash.
    pub(super) only_directories: bool,
    pub(super) matches: Matches,
}

/// The part of a path that a pattern matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Matches {
    /// The last component.
    Name,
    /// The whole path, relative to the directory to which the pattern belongs.
    Path,
}

/// The reason why a pattern matches nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    Empty,
    EmptyComponent,
    NotUtf8,
    DanglingEscape,
    UnclosedClass,
    UnknownClass,
    NotAsciiInClass,
    EmptyClass,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "it is empty",
            Self::EmptyComponent => "nothing is between two slashes",
            Self::NotUtf8 => "it is not UTF-8; use '?' for a byte",
            Self::DanglingEscape => "nothing follows the last backslash",
            Self::UnclosedClass => "no ']' follows '['",
            Self::UnknownClass => "'[:' begins no known class",
            Self::NotAsciiInClass => "brackets may contain only ASCII characters",
            Self::EmptyClass => "nothing matches the brackets",
        })
    }
}

/// Returns the pattern in a line of a file, or `None` for a comment or an empty line. Removes spaces at the end, except
/// an escaped one.
pub(super) fn in_line(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.starts_with(b"#") {
        return None;
    }
    let mut end = 0;
    let mut bytes = line.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b' ' => {}
            b'\\' => end = bytes.next().map_or(at, |(escaped, _)| escaped) + 1,
            _ => end = at + 1,
        }
    }
    (end > 0).then_some(&line[..end])
}

/// Parses a pattern.
///
/// # Errors
/// If the pattern can match nothing.
pub(super) fn parse(pattern: &[u8]) -> Result<Pattern, Problem> {
    let (is_negated, rest) = match pattern {
        [b'!', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (only_directories, rest) = match rest {
        [rest @ .., b'/'] => (true, rest),
        rest => (false, rest),
    };
    let matches = match rest.contains(&b'/') {
        true => Matches::Path,
        false => Matches::Name,
    };
    let rest = rest.strip_prefix(b"/").unwrap_or(rest);
    if rest.is_empty() {
        return Err(Problem::Empty);
    }
    let text = str::from_utf8(rest).map_err(|_| Problem::NotUtf8)?;
    Ok(Pattern {
        glob: Translation::of(text)?,
        is_negated,
        only_directories,
        matches,
    })
}

/// A glob of git's that is being translated.
struct Translation<'a> {
    text: &'a str,
    /// The number of bytes that were read.
    at: usize,
    glob: String,
}

impl<'a> Translation<'a> {
    fn of(text: &'a str) -> Result<String, Problem> {
        let mut translation = Self {
            text,
            at: 0,
            glob: String::with_capacity(text.len() + 8),
        };
        translation.run()?;
        Ok(translation.glob)
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn run(&mut self) -> Result<(), Problem> {
        let mut is_after_slash = true;
        while let Some(next) = self.next() {
            if next == '/' && is_after_slash {
                return Err(Problem::EmptyComponent);
            }
            is_after_slash = next == '/';
            match next {
                '?' => self.glob.push('?'),
                '*' => self.stars(),
                '[' => self.class()?,
                '\\' => match self.next() {
                    Some(escaped) => self.literal(escaped),
                    None => return Err(Problem::DanglingEscape),
                },
                other => self.literal(other),
            }
        }
        match is_after_slash {
            true => Err(Problem::EmptyComponent),
            false => Ok(()),
        }
    }

    fn literal(&mut self, literal: char) {
        if literal.is_ascii_punctuation() && literal != '/' {
            self.glob.push('\\');
        }
        self.glob.push(literal);
    }

    /// Translates stars, of which the first was read. Two or more match any number of components if there is nothing
    /// else between the slashes.
    fn stars(&mut self) {
        let first = self.at - 1;
        while self.peek() == Some('*') {
            self.at += 1;
        }
        let is_alone = matches!(self.text[..first].chars().next_back(), None | Some('/'))
            && matches!(self.peek(), None | Some('/'));
        let is_recursive = self.at - first > 1 && is_alone;
        self.glob.push_str(if is_recursive { "**" } else { "*" });
    }

    /// Translates a class, of which `[` was read.
    fn class(&mut self) -> Result<(), Problem> {
        let is_negated = matches!(self.peek(), Some('!' | '^'));
        if is_negated {
            self.at += 1;
        }
        let mut set = Set::default();
        let mut previous = None;
        let mut is_first = true;
        loop {
            let member = self.next().ok_or(Problem::UnclosedClass)?;
            if member == ']' && !is_first {
                break;
            }
            is_first = false;
            if member == '[' && self.peek() == Some(':') && self.named_class(&mut set)? {
                previous = None;
                continue;
            }
            let is_range = member == '-' && !matches!(self.peek(), None | Some(']'));
            if let (true, Some(low)) = (is_range, previous) {
                let high = self.next().ok_or(Problem::UnclosedClass)?;
                set.add_range(low, self.member(high)?);
                previous = None;
                continue;
            }
            let member = self.member(member)?;
            set.add_range(member, member);
            previous = Some(member);
        }
        set.write_to(is_negated, &mut self.glob)
    }

    /// Returns the member that begins with `first`, which was read and may be a backslash.
    fn member(&mut self, first: char) -> Result<u8, Problem> {
        let member = match first {
            '\\' => self.next().ok_or(Problem::UnclosedClass)?,
            member => member,
        };
        let is_ascii = member.is_ascii().then_some(member as u8);
        is_ascii.ok_or(Problem::NotAsciiInClass)
    }

    /// Reads a class such as `[:alpha:]`, of which `[` was read. Returns `false` and reads nothing if there is none.
    fn named_class(&mut self, set: &mut Set) -> Result<bool, Problem> {
        let rest = &self.text[self.at + 1..];
        let end = rest.find(']').ok_or(Problem::UnclosedClass)?;
        let Some(name) = rest[..end].strip_suffix(':') else {
            return Ok(false);
        };
        let is_member: fn(&u8) -> bool = match name {
            "alnum" => u8::is_ascii_alphanumeric,
            "alpha" => u8::is_ascii_alphabetic,
            "blank" => |byte| matches!(byte, b' ' | b'\t'),
            "cntrl" => u8::is_ascii_control,
            "digit" => u8::is_ascii_digit,
            "graph" => u8::is_ascii_graphic,
            "lower" => u8::is_ascii_lowercase,
            "print" => |byte| matches!(byte, b' '..=b'~'),
            "punct" => u8::is_ascii_punctuation,
            "space" => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
            "upper" => u8::is_ascii_uppercase,
            "xdigit" => u8::is_ascii_hexdigit,
            _ => return Err(Problem::UnknownClass),
        };
        set.add(is_member);
        self.at += 1 + end + 1;
        Ok(true)
    }
}

/// ASCII characters.
#[derive(Default)]
struct Set(u128);

impl Set {
    fn add_range(&mut self, low: u8, high: u8) {
        self.add(|byte| (low..=high).contains(byte));
    }

    fn add(&mut self, is_member: impl Fn(&u8) -> bool) {
        for byte in (0..128).filter(is_member) {
            self.0 |= 1 << byte;
        }
    }

    /// Writes the class as `globset` reads it: without escapes, `]` first, and `-` last. A class never matches a
    /// slash.
    fn write_to(&self, is_negated: bool, glob: &mut String) -> Result<(), Problem> {
        let slash = 1 << b'/';
        let bits = match is_negated {
            true => self.0 | slash,
            false => self.0 & !slash,
        };
        if bits == 0 {
            return Err(Problem::EmptyClass);
        }
        if !is_negated && bits & !(1 << b'!' | 1 << b'^') == 0 {
            // At the beginning of a class, each of these negates it.
            glob.push_str(match (bits & 1 << b'!', bits & 1 << b'^') {
                (0, _) => "\\^",
                (_, 0) => "\\!",
                _ => "{\\!,\\^}",
            });
            return Ok(());
        }
        let rank = |byte: u8| match byte {
            b']' => 0,
            b'!' | b'^' => 2,
            b'-' => 3,
            _ => 1,
        };
        let mut members: Vec<u8> = (0..128).filter(|byte| bits & 1 << byte != 0).collect();
        members.sort_by_key(|byte| rank(*byte));
        if matches!(members[0], b'!' | b'^') && !is_negated {
            // Only `-` is left. At the beginning it does not make a range.
            members.rotate_right(1);
        }
        glob.push('[');
        if is_negated {
            glob.push('!');
        }
        glob.extend(members.into_iter().map(char::from));
        glob.push(']');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(pattern: &str) -> Result<String, Problem> {
        parse(pattern.as_bytes()).map(|pattern| pattern.glob)
    }

    #[test]
    fn a_line_is_a_pattern_a_comment_or_empty() {
        for (line, expected) in [
            ("", None),
            ("   ", None),
            ("# comment", None),
            ("a", Some("a")),
            ("a \r", Some("a")),
            ("a\\  ", Some("a\\ ")),
            ("a\\\\ ", Some("a\\\\")),
            (" a b  ", Some(" a b")),
            ("a\t", Some("a\t")),
            ("\\#a", Some("\\#a")),
            ("a\\", Some("a\\")),
        ] {
            let pattern = in_line(line.as_bytes());
            assert_eq!(pattern, expected.map(str::as_bytes), "{line:?}");
        }
    }

    #[test]
    fn slashes_and_exclamation_marks_are_not_part_of_the_glob() {
        use Matches::{Name, Path};
        for (pattern, glob, is_negated, only_directories, matches) in [
            ("a", "a", false, false, Name),
            ("/a", "a", false, false, Path),
            ("a/", "a", false, true, Name),
            ("!a/b/", "a/b", true, true, Path),
            ("\\!a", "\\!a", false, false, Name),
        ] {
            let expected = Pattern {
                glob: glob.to_owned(),
                is_negated,
                only_directories,
                matches,
            };
            assert_eq!(parse(pattern.as_bytes()), Ok(expected), "{pattern}");
        }
    }

    #[test]
    fn globs_are_translated() {
        for (pattern, expected) in [
            ("*.o", "*\\.o"),
            ("{a,b}", "\\{a\\,b\\}"),
            ("a**b", "a*b"),
            ("***/a", "**/a"),
            ("a/**", "a/**"),
            ("[a-c]", "[abc]"),
            ("[]-]", "[]-]"),
            ("[!a]", "[!/a]"),
            ("[!!]", "[!/!]"),
            ("[\\^]", "\\^"),
            ("[\\^!]", "{\\!,\\^}"),
            ("[\\^-]", "[-^]"),
            ("[[:digit:]x]", "[0123456789x]"),
            ("[[:]", "[:[]"),
            ("[a-]", "[a-]"),
            ("[b-a]", "[b]"),
        ] {
            assert_eq!(glob(pattern).as_deref(), Ok(expected), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_that_matches_nothing_is_a_problem() {
        for (pattern, problem) in [
            ("", Problem::Empty),
            ("!", Problem::Empty),
            ("/", Problem::Empty),
            ("a\\", Problem::DanglingEscape),
            ("//a", Problem::EmptyComponent),
            ("a//b", Problem::EmptyComponent),
            ("a//", Problem::EmptyComponent),
            ("[a", Problem::UnclosedClass),
            ("[]", Problem::UnclosedClass),
            ("[[:foo:]]", Problem::UnknownClass),
            ("[é]", Problem::NotAsciiInClass),
            ("[/]", Problem::EmptyClass),
        ] {
            assert_eq!(glob(pattern), Err(problem), "{pattern}");
        }
        assert_eq!(parse(b"\xff"), Err(Problem::NotUtf8));
    }
}
