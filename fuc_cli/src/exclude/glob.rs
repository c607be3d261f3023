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
pub(super) type Problem = &'static str;

pub(super) const EMPTY: Problem = "it is empty";
pub(super) const EMPTY_COMPONENT: Problem = "nothing is between two slashes";
const DOT_COMPONENT: Problem =
    "it is relative to each operand, where nothing is called '.' or '..'";
const NUL: Problem = "no name contains a NUL byte";
const DANGLING_ESCAPE: Problem = "nothing follows the last backslash";
const UNCLOSED_CLASS: Problem = "no ']' follows '['";
const UNKNOWN_CLASS: Problem = "'[:' begins no known class";
const EMPTY_CLASS: Problem = "nothing matches the brackets";

impl Glob {
    /// Parses a glob.
    ///
    /// # Errors
    /// If the glob can match nothing.
    pub(super) fn parse(text: &[u8]) -> Result<Self, Problem> {
        if text.contains(&0) {
            return Err(NUL);
        }
        let mut components = text.split(|&byte| byte == b'/');
        if components.any(|component| matches!(component, [b'.'] | [b'.', b'.'])) {
            return Err(DOT_COMPONENT);
        }
        let mut parser = Parser { rest: text };
        let mut tokens = Vec::with_capacity(text.len());
        let mut is_after_slash = true;
        while let Some(byte) = parser.next() {
            let token = match byte {
                b'?' => Token::AnyByte,
                b'*' => parser.stars(is_after_slash),
                b'[' => parser.class()?,
                b'\\' => Token::Byte(parser.next().ok_or(DANGLING_ESCAPE)?),
                byte => Token::Byte(byte),
            };
            if token == Token::Byte(b'/') && is_after_slash {
                return Err(EMPTY_COMPONENT);
            }
            is_after_slash = matches!(token, Token::Byte(b'/') | Token::Directories);
            tokens.push(token);
        }
        match (tokens.is_empty(), is_after_slash) {
            (true, _) => Err(EMPTY),
            (false, true) => Err(EMPTY_COMPONENT),
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
        let (mut tokens, mut text) = (&self.tokens[..], text);
        // The last tokens of variable length, and the text behind what they match: one that ends before a slash, without
        // the token itself, and one of the others before that.
        let mut star: Option<(&[Token], &[u8])> = None;
        let mut deep: Option<(&[Token], &[u8])> = None;
        loop {
            match (tokens, text) {
                ([], []) => return true,
                ([Token::Star, later @ ..], _) => {
                    star = Some((later, text));
                    tokens = later;
                    continue;
                }
                ([Token::Anything | Token::Directories, later @ ..], _) => {
                    (star, deep) = (None, Some((tokens, text)));
                    tokens = later;
                    continue;
                }
                ([token, later @ ..], [byte, rest @ ..]) if token.matches(*byte) => {
                    if *byte == b'/' {
                        // A star before the slash cannot take it.
                        star = None;
                    }
                    (tokens, text) = (later, rest);
                    continue;
                }
                _ => {}
            }
            if let Some((later, [byte, rest @ ..])) = star
                && *byte != b'/'
            {
                star = Some((later, rest));
                (tokens, text) = (later, rest);
                continue;
            }
            let Some((from, behind)) = deep else {
                return false;
            };
            let more = match from[0] {
                Token::Directories => behind.iter().position(|byte| *byte == b'/'),
                _ => (!behind.is_empty()).then_some(0),
            };
            let Some(more) = more else {
                return false;
            };
            text = &behind[more + 1..];
            tokens = &from[1..];
            (star, deep) = (None, Some((from, text)));
        }
    }
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
    /// The bytes that were not read yet.
    rest: &'a [u8],
}

impl Parser<'_> {
    fn next(&mut self) -> Option<u8> {
        let (&next, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(next)
    }

    /// Reads stars, of which the first was read.
    fn stars(&mut self, is_after_slash: bool) -> Token {
        let others = self.rest.iter().take_while(|byte| **byte == b'*').count();
        self.rest = &self.rest[others..];
        match self.rest {
            _ if others == 0 || !is_after_slash => Token::Star,
            [] | [b'\\', b'/', ..] => Token::Anything,
            [b'/', rest @ ..] => {
                self.rest = rest;
                Token::Directories
            }
            _ => Token::Star,
        }
    }

    /// Reads a class, of which `[` was read.
    fn class(&mut self) -> Result<Token, Problem> {
        let is_negated = matches!(self.rest, [b'!' | b'^', ..]);
        self.rest = &self.rest[usize::from(is_negated)..];
        let mut set = Box::new([false; 256]);
        // The member before, with which a range may begin.
        let mut previous = None;
        let mut is_first = true;
        loop {
            let member = self.next().ok_or(UNCLOSED_CLASS)?;
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
            let is_range = member == b'-' && !self.rest.starts_with(b"]");
            if let (true, Some(low)) = (is_range, previous) {
                let high = self.next().ok_or(UNCLOSED_CLASS)?;
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
            false => Err(EMPTY_CLASS),
        }
    }

    /// Returns the member that begins with `first`, which was read and may be a backslash.
    fn member(&mut self, first: u8) -> Result<u8, Problem> {
        match first {
            b'\\' => self.next().ok_or(UNCLOSED_CLASS),
            member => Ok(member),
        }
    }

    /// Reads a class such as `[:alpha:]`, of which `[` was read. Returns `None` and reads nothing if there is none.
    fn named_class(&mut self) -> Result<Option<IsMember>, Problem> {
        let Some(rest) = self.rest.strip_prefix(b":") else {
            return Ok(None);
        };
        let end = rest.iter().position(|byte| *byte == b']');
        let end = end.ok_or(UNCLOSED_CLASS)?;
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
            _ => return Err(UNKNOWN_CLASS),
        };
        self.rest = &rest[end + 1..];
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
            ("", EMPTY),
            ("a\\", DANGLING_ESCAPE),
            ("/a", EMPTY_COMPONENT),
            ("a//b", EMPTY_COMPONENT),
            ("a\\//b", EMPTY_COMPONENT),
            ("a/", EMPTY_COMPONENT),
            ("**/", EMPTY_COMPONENT),
            ("**//a", EMPTY_COMPONENT),
            ("a\0", NUL),
            ("[a", UNCLOSED_CLASS),
            ("[]", UNCLOSED_CLASS),
            ("[\\", UNCLOSED_CLASS),
            ("[a-", UNCLOSED_CLASS),
            ("[[:alpha:", UNCLOSED_CLASS),
            ("[[:foo:]]", UNKNOWN_CLASS),
            ("[[::]]", UNKNOWN_CLASS),
            ("[/]", EMPTY_CLASS),
            ("[!\u{1}-\\\u{7f}", UNCLOSED_CLASS),
        ] {
            assert_eq!(Glob::parse(text.as_bytes()), Err(problem), "{text:?}");
        }
        assert_eq!(Glob::parse(b"[!\x01-\xff]"), Err(EMPTY_CLASS));
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
