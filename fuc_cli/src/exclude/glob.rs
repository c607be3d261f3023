//! Globs of git, which match bytes.
//!
//! | in a glob | matches |
//! |---|---|
//! | `?` | a byte other than a slash |
//! | `*` | any number of these |
//! | `[a-c]`, `[!a]`, `[[:digit:]]` | one of the bytes, or one that is not listed, but never a slash |
//! | `\*` | the byte after the backslash |
//! | `**/` after a slash, or first | no directory, or any number of them |
//! | `**` after a slash, and last | everything |
//!
//! Two or more stars in any other place mean the same as one.

use std::fmt;

/// A glob that may match something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Glob {
    tokens: Vec<Token>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Byte(u8),
    /// Any byte but a slash.
    AnyByte,
    /// The bytes that are `true` here. A slash never is.
    OneOf(Box<[bool; 256]>),
    /// Any number of bytes other than slashes.
    Star,
    /// Any number of bytes.
    Anything,
    /// Nothing, or any number of bytes of which the last one is a slash.
    Directories,
}

/// The reason why a pattern matches nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    Empty,
    EmptyComponent,
    DotComponent,
    Nul,
    DanglingEscape,
    UnclosedClass,
    UnknownClass,
    EmptyClass,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "it is empty",
            Self::EmptyComponent => "nothing is between two slashes",
            Self::DotComponent => {
                "it is relative to each operand, where nothing is called '.' or '..'"
            }
            Self::Nul => "no name contains a NUL byte",
            Self::DanglingEscape => "nothing follows the last backslash",
            Self::UnclosedClass => "no ']' follows '['",
            Self::UnknownClass => "'[:' begins no known class",
            Self::EmptyClass => "nothing matches the brackets",
        })
    }
}

impl Glob {
    /// Parses a glob.
    ///
    /// # Errors
    /// If the glob can match nothing.
    pub(super) fn parse(text: &[u8]) -> Result<Self, Problem> {
        if text.contains(&0) {
            return Err(Problem::Nul);
        }
        let mut components = text.split(|&byte| byte == b'/');
        if components.any(|component| matches!(component, [b'.'] | [b'.', b'.'])) {
            return Err(Problem::DotComponent);
        }
        let mut parser = Parser { text, at: 0 };
        let mut tokens = Vec::with_capacity(text.len());
        let mut is_after_slash = true;
        while let Some(byte) = parser.next() {
            let token = match byte {
                b'?' => Token::AnyByte,
                b'*' => parser.stars(),
                b'[' => parser.class()?,
                b'\\' => Token::Byte(parser.next().ok_or(Problem::DanglingEscape)?),
                byte => Token::Byte(byte),
            };
            if token == Token::Byte(b'/') && is_after_slash {
                return Err(Problem::EmptyComponent);
            }
            is_after_slash = matches!(token, Token::Byte(b'/') | Token::Directories);
            tokens.push(token);
        }
        match (tokens.is_empty(), is_after_slash) {
            (true, _) => Err(Problem::Empty),
            (false, true) => Err(Problem::EmptyComponent),
            (false, false) => Ok(Self { tokens }),
        }
    }

    pub(super) fn matches_every_name(&self) -> bool {
        self.tokens
            .iter()
            .all(|token| matches!(token, Token::Star | Token::Anything))
    }

    /// Returns `true` if the glob matches all of `text`.
    ///
    /// A token of variable length first matches as little as possible. If a later token does not match, the last
    /// token of variable length takes more. Earlier ones need not be tried again: whatever they could take in
    /// addition, the last one can take, too.
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        // Most globs end in a byte, and most names in another one.
        if let Some(Token::Byte(last)) = self.tokens.last()
            && text.last() != Some(last)
        {
            return false;
        }
        let mut here = Position { token: 0, byte: 0 };
        // The positions after the last tokens of variable length: one that ends before a slash, and one of the
        // others before that.
        let mut after_star: Option<Position> = None;
        let mut after_deep: Option<Position> = None;
        loop {
            let byte = text.get(here.byte).copied();
            match (self.tokens.get(here.token), byte) {
                (None, None) => return true,
                (Some(Token::Star), _) => {
                    here.token += 1;
                    after_star = Some(here);
                    continue;
                }
                (Some(Token::Anything | Token::Directories), _) => {
                    here.token += 1;
                    (after_star, after_deep) = (None, Some(here));
                    continue;
                }
                (Some(token), Some(byte)) if token.matches(byte) => {
                    if byte == b'/' {
                        // A star before the slash cannot take it.
                        after_star = None;
                    }
                    here.token += 1;
                    here.byte += 1;
                    continue;
                }
                _ => {}
            }
            if let Some(after) = &mut after_star
                && text.get(after.byte).is_some_and(|byte| *byte != b'/')
            {
                after.byte += 1;
                here = *after;
                continue;
            }
            let Some(after) = &mut after_deep else {
                return false;
            };
            let rest = &text[after.byte..];
            let more = match self.tokens[after.token - 1] {
                Token::Directories => rest.iter().position(|byte| *byte == b'/').map(|at| at + 1),
                _ => (!rest.is_empty()).then_some(1),
            };
            let Some(more) = more else {
                return false;
            };
            after.byte += more;
            here = *after;
            after_star = None;
        }
    }
}

/// A token, and the byte that it must match next.
#[derive(Clone, Copy)]
struct Position {
    token: usize,
    byte: usize,
}

impl Token {
    /// Returns `true` if the token matches this one byte.
    fn matches(&self, byte: u8) -> bool {
        match self {
            Self::Byte(expected) => byte == *expected,
            Self::AnyByte => byte != b'/',
            Self::OneOf(set) => set[usize::from(byte)],
            Self::Star | Self::Anything | Self::Directories => false,
        }
    }
}

/// Returns `true` for the bytes of a class.
type IsMember = fn(&u8) -> bool;

struct Parser<'a> {
    text: &'a [u8],
    /// The number of bytes that were read.
    at: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &[u8] {
        &self.text[self.at..]
    }

    fn next(&mut self) -> Option<u8> {
        let next = self.text.get(self.at).copied()?;
        self.at += 1;
        Some(next)
    }

    /// Reads stars, of which the first was read.
    fn stars(&mut self) -> Token {
        let before = &self.text[..self.at - 1];
        let first = self.at - 1;
        while self.rest().starts_with(b"*") {
            self.at += 1;
        }
        let is_after_slash = matches!(before, [] | [.., b'/']);
        match self.rest() {
            _ if self.at - first < 2 || !is_after_slash => Token::Star,
            [] | [b'\\', b'/', ..] => Token::Anything,
            [b'/', ..] => {
                self.at += 1;
                Token::Directories
            }
            _ => Token::Star,
        }
    }

    /// Reads a class, of which `[` was read.
    fn class(&mut self) -> Result<Token, Problem> {
        let is_negated = matches!(self.rest(), [b'!' | b'^', ..]);
        if is_negated {
            self.at += 1;
        }
        let mut set = Box::new([false; 256]);
        // The member before, with which a range may begin.
        let mut previous = None;
        let mut is_first = true;
        loop {
            let member = self.next().ok_or(Problem::UnclosedClass)?;
            if member == b']' && !is_first {
                break;
            }
            is_first = false;
            if member == b'['
                && let Some(is_member) = self.named_class()?
            {
                add(&mut set, is_member);
                previous = None;
                continue;
            }
            let is_range = member == b'-' && !self.rest().starts_with(b"]");
            if let (true, Some(low)) = (is_range, previous) {
                let high = self.next().ok_or(Problem::UnclosedClass)?;
                let range = low..=self.member(high)?;
                add(&mut set, |byte| range.contains(byte));
                previous = None;
                continue;
            }
            let member = self.member(member)?;
            set[usize::from(member)] = true;
            previous = Some(member);
        }
        if is_negated {
            set.iter_mut().for_each(|is_member| *is_member ^= true);
        }
        set[usize::from(b'/')] = false;
        match set[1..].contains(&true) {
            true => Ok(Token::OneOf(set)),
            false => Err(Problem::EmptyClass),
        }
    }

    /// Returns the member that begins with `first`, which was read and may be a backslash.
    fn member(&mut self, first: u8) -> Result<u8, Problem> {
        match first {
            b'\\' => self.next().ok_or(Problem::UnclosedClass),
            member => Ok(member),
        }
    }

    /// Reads a class such as `[:alpha:]`, of which `[` was read. Returns `None` and reads nothing if there is none.
    fn named_class(&mut self) -> Result<Option<IsMember>, Problem> {
        let Some(rest) = self.rest().strip_prefix(b":") else {
            return Ok(None);
        };
        let end = rest.iter().position(|byte| *byte == b']');
        let end = end.ok_or(Problem::UnclosedClass)?;
        let Some(name) = rest[..end].strip_suffix(b":") else {
            return Ok(None);
        };
        let is_member: IsMember = match name {
            b"alnum" => u8::is_ascii_alphanumeric,
            b"alpha" => u8::is_ascii_alphabetic,
            b"blank" => |byte| matches!(byte, b' ' | b'\t'),
            b"cntrl" => u8::is_ascii_control,
            b"digit" => u8::is_ascii_digit,
            b"graph" => u8::is_ascii_graphic,
            b"lower" => u8::is_ascii_lowercase,
            b"print" => |byte| matches!(byte, b' '..=b'~'),
            b"punct" => u8::is_ascii_punctuation,
            // Not the vertical tab and the form feed, as in git.
            b"space" => |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
            b"upper" => u8::is_ascii_uppercase,
            b"xdigit" => u8::is_ascii_hexdigit,
            _ => return Err(Problem::UnknownClass),
        };
        self.at += 1 + end + 1;
        Ok(Some(is_member))
    }
}

fn add(set: &mut [bool; 256], is_member: impl Fn(&u8) -> bool) {
    for (byte, is_set) in (0..=u8::MAX).zip(set) {
        *is_set |= is_member(&byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A glob, what it matches, and what it does not.
    type Case<'a> = (&'a [u8], &'a [&'a [u8]], &'a [&'a [u8]]);

    #[test]
    fn globs_match_as_in_git() {
        let cases: &[Case<'_>] = &[
            (b"a", &[b"a"], &[b"", b"b", b"aa", b"a/a"]),
            (b"*", &[b"", b"a", b"\xff\n"], &[b"a/b"]),
            (b"?", &[b"a", b"\xff"], &[b"", b"/", b"aa", "é".as_bytes()]),
            (b"*.o", &[b".o", b"a.o", b"a.o.o"], &[b"a.o.", b"d/a.o"]),
            (b"a*b*c", &[b"abc", b"abbcc", b"a-b-c"], &[b"acb", b"ab/c"]),
            (b"d/*/f", &[b"d/a/f"], &[b"d/f", b"d//a/f", b"d/a/b/f"]),
            (b"**/f", &[b"f", b"a/f", b"a/b/f"], &[b"af", b"a/bf", b"f/"]),
            (b"***/f", &[b"f", b"a/b/f"], &[b"af"]),
            (b"**\\/f", &[b"a/f", b"a/b/f", b"/f"], &[b"f", b"af"]),
            (b"d/**", &[b"d/a", b"d/a/b"], &[b"d", b"e/d/a"]),
            (
                b"d/**/f",
                &[b"d/f", b"d/a/f", b"d/a/f/f"],
                &[b"df", b"d/a", b"d/af"],
            ),
            (
                b"**/d/*/**/f?",
                &[b"d/a/fx", b"c/d/a/b/fx", b"d/d/d/fx"],
                &[b"d/fx", b"d/a/f"],
            ),
            (b"a**/f", &[b"a/f", b"aa/f"], &[b"f", b"a/b/f"]),
            (b"a/b**", &[b"a/b", b"a/bb"], &[b"a/b/c"]),
            (b"\\*\\?\\a", &[b"*?a"], &[b"aaa"]),
            (b"{a,b}", &[b"{a,b}"], &[b"a"]),
            (b"[a-c]", &[b"a", b"b", b"c"], &[b"d", b"-", b""]),
            (b"[b-a]", &[b"b"], &[b"a", b"-"]),
            (b"[a-b-d]", &[b"a", b"b", b"-", b"d"], &[b"c"]),
            (b"[]-]", &[b"]", b"-"], &[b"a"]),
            (b"[a-]", &[b"a", b"-"], &[b"b"]),
            (b"[\\]-a]", &[b"]", b"^", b"a"], &[b"\\", b"-"]),
            (b"[a-\\c]", &[b"b"], &[b"-", b"\\"]),
            (b"[!a]", &[b"b", b"\xff", b"!"], &[b"a", b"/", b"bb"]),
            (b"[^\\^]", &[b"b", b"!", b"\\"], &[b"^"]),
            (b"[!!]", &[b"a"], &[b"!"]),
            (b"a[a/]b", &[b"aab"], &[b"a/b"]),
            (b"[[:digit:]x-]", &[b"3", b"x", b"-"], &[b":", b"d"]),
            (b"[[:]", &[b"[", b":"], &[b"]"]),
            (b"[[:a]", &[b"[", b":", b"a"], &[b"]"]),
            (b"[\xc3\xa9]", &[b"\xc3", b"\xa9"], &["é".as_bytes()]),
            (b"[\xf0-\xff]", &[b"\xf7", b"\xff"], &[b"\xef"]),
            (b"\xff*", &[b"\xff", b"\xffa"], &[b"\xfe"]),
        ];
        for (text, matching, others) in cases {
            let shown = text.escape_ascii();
            let glob = Glob::parse(text).unwrap();
            for subject in *matching {
                let subject_shown = subject.escape_ascii();
                assert!(
                    glob.matches(subject),
                    "{shown} does not match {subject_shown}"
                );
            }
            for subject in *others {
                let subject_shown = subject.escape_ascii();
                assert!(!glob.matches(subject), "{shown} matches {subject_shown}");
            }
        }
    }

    #[test]
    fn a_glob_that_matches_nothing_is_a_problem() {
        for (text, problem) in [
            ("", Problem::Empty),
            ("a\\", Problem::DanglingEscape),
            ("/a", Problem::EmptyComponent),
            ("a//b", Problem::EmptyComponent),
            ("a\\//b", Problem::EmptyComponent),
            ("a/", Problem::EmptyComponent),
            ("**/", Problem::EmptyComponent),
            ("**//a", Problem::EmptyComponent),
            ("a\0", Problem::Nul),
            ("[a", Problem::UnclosedClass),
            ("[]", Problem::UnclosedClass),
            ("[\\", Problem::UnclosedClass),
            ("[a-", Problem::UnclosedClass),
            ("[[:alpha:", Problem::UnclosedClass),
            ("[[:foo:]]", Problem::UnknownClass),
            ("[[::]]", Problem::UnknownClass),
            ("[/]", Problem::EmptyClass),
            ("[!\u{1}-\\\u{7f}", Problem::UnclosedClass),
        ] {
            assert_eq!(Glob::parse(text.as_bytes()), Err(problem), "{text:?}");
        }
        assert_eq!(Glob::parse(b"[!\x01-\xff]"), Err(Problem::EmptyClass));
    }

    /// A matcher that tries every length of every star would not finish.
    #[test]
    fn many_stars_do_not_take_forever() {
        let name = [&[b'a'; 255][..], b"cb"].concat();
        let glob = Glob::parse(&[b"*a".repeat(100).as_slice(), b"b"].concat()).unwrap();
        assert!(!glob.matches(&name));
        let path = [b"a/".repeat(2_000), b"ab".to_vec()].concat();
        let glob = Glob::parse(&[b"**/a/*".as_slice(), &b"a/**/".repeat(200), b"b"].concat());
        assert!(!glob.unwrap().matches(&path));
    }
}
