//! Reads the paths that messages quote.
//!
//! Most messages quote a path for a shell, as `'a'`, `"it's"` or `'a'$'\n''b'`. A few use the quotes of the locale, as
//! `‘a\nb’`. A path comes back as text in which `U+FFFD` stands for what is not UTF-8, as in the compared trees.

/// The message that names its path without quotes, if it is plain.
const UNQUOTED: &[u8] = b": can make relative symbolic links only";
/// Stands between two paths. If they have no quotes, the line is about a directory that `--parents` has made.
const ARROW: &[u8] = b" -> ";
/// Messages that use the quotes of the locale, which are `'` in the C locale.
const OF_LOCALE: &[u8] = b"setting attribute";
const OPENING: &[u8] = "‘".as_bytes();
const CLOSING: &[u8] = "’".as_bytes();

/// Returns the paths that a line quotes, which [`legible`](crate::difference::legible) has made.
pub(crate) fn paths(line: &str) -> Vec<String> {
    let message = unescaped(line);
    let text = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    if let Some(end) = position(&message, UNQUOTED) {
        let before = &message[..end];
        let begin = position(before, b": ").map_or(0, |at| at + 2);
        let path = &before[begin..];
        let quoted = of_shell(path).map(|(path, _)| path);
        return vec![text(&quoted.unwrap_or_else(|| path.to_vec()))];
    }
    let is_quoted = message.starts_with(b"'") || message.starts_with(b"\"");
    if let Some(end) = position(&message, ARROW).filter(|_| !is_quoted) {
        return vec![text(&message[..end]), text(&message[end + ARROW.len()..])];
    }
    let closing_of_locale: &[u8] = match position(&message, OF_LOCALE) {
        Some(_) => b"'",
        None => b"",
    };
    let mut paths = Vec::new();
    let mut at = 0;
    while at < message.len() {
        let may_begin = at == 0 || b" (".contains(&message[at - 1]);
        let rest = &message[at..];
        let quoted = match rest.strip_prefix(OPENING) {
            _ if !may_begin => None,
            Some(inside) => {
                of_locale(inside, CLOSING).map(|(path, len)| (path, OPENING.len() + len))
            }
            None if !closing_of_locale.is_empty() && rest[0] == b'\'' => {
                of_locale(&rest[1..], closing_of_locale).map(|(path, len)| (path, 1 + len))
            }
            None => of_shell(rest),
        };
        match quoted {
            Some((path, len)) => {
                paths.push(text(&path));
                at += len;
            }
            None => at += 1,
        }
    }
    paths
}

/// Reads a word that is quoted for a shell, and begins with a quote. Returns it and the length of its quoted form.
fn of_shell(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    if !text.starts_with(b"'") && !text.starts_with(b"\"") {
        return None;
    }
    let mut word = Vec::new();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        at += if let Some(inside) = rest.strip_prefix(b"$'") {
            let (part, len) = of_locale(inside, b"'")?;
            word.extend(part);
            2 + len
        } else if let Some(inside) = rest.strip_prefix(b"'") {
            let len = position(inside, b"'")?;
            word.extend(&inside[..len]);
            len + 2
        } else if let Some(inside) = rest.strip_prefix(b"\"") {
            let len = position(inside, b"\"")?;
            word.extend(&inside[..len]);
            len + 2
        } else if rest.starts_with(b"\\'") {
            word.push(b'\'');
            2
        } else {
            return Some((word, at));
        };
    }
}

/// Reads text with escapes up to a closing quote. Returns it and the length of its quoted form with that quote.
fn of_locale(text: &[u8], closing: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut read = Vec::new();
    let mut at = 0;
    while !text[at..].starts_with(closing) {
        let (byte, len) = match text.get(at)? {
            b'\\' => escape(&text[at + 1..])?,
            &byte => (byte, 0),
        };
        read.push(byte);
        at += 1 + len;
    }
    Some((read, at + closing.len()))
}

/// Reads what comes after a backslash. Returns the byte for which it stands, and its length.
fn escape(text: &[u8]) -> Option<(u8, usize)> {
    let number = |digits: &[u8], radix| {
        let digits = str::from_utf8(digits).ok()?;
        u8::from_str_radix(digits, radix).ok()
    };
    Some(match text.first()? {
        b'a' => (7, 1),
        b'b' => (8, 1),
        b't' => (b'\t', 1),
        b'n' => (b'\n', 1),
        b'v' => (11, 1),
        b'f' => (12, 1),
        b'r' => (b'\r', 1),
        b'x' => (number(text.get(1..3)?, 16)?, 3),
        b'0'..=b'7' => (number(text.get(..3)?, 8)?, 3),
        &byte => (byte, 1),
    })
}

/// Undoes the escapes of [`legible`](crate::difference::legible).
fn unescaped(line: &str) -> Vec<u8> {
    let line = line.as_bytes();
    let mut bytes = Vec::new();
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        at += 1;
        match byte {
            b'\\' => {
                let (byte, len) = escape(&line[at..]).unwrap_or((byte, 0));
                bytes.push(byte);
                at += len;
            }
            byte => bytes.push(byte),
        }
    }
    bytes
}

/// Undoes the escapes of a path in the compared trees.
pub(crate) fn path_of_tree(path: &str) -> String {
    let mut plain = String::new();
    let mut rest = path;
    while let Some((before, escape)) = rest.split_once('\\') {
        plain.push_str(before);
        let (c, after) = match escape
            .strip_prefix("u{")
            .and_then(|code| code.split_once('}'))
        {
            Some((code, after)) => {
                let code = u32::from_str_radix(code, 16).ok();
                (code.and_then(char::from_u32), after)
            }
            None => {
                let mut chars = escape.chars();
                let c = chars.next().map(|c| match c {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    '0' => '\0',
                    c => c,
                });
                (c, chars.as_str())
            }
        };
        plain.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
        rest = after;
    }
    plain.push_str(rest);
    plain
}

fn position(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|part| part == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::legible;

    #[test]
    fn paths_are_read_in_every_style() {
        for (message, quoted) in [
            (
                "cp: cannot copy a directory, 'a', into itself, 'it'\\''s/b'",
                &["a", "it's/b"][..],
            ),
            ("cp: cannot stat 'a'$'\\n''b/c': x", &["a\nb/c"]),
            (
                "''$'\\372\\263'';/a' -> \"it's\"",
                &["\u{fffd}\u{fffd};/a", "it's"],
            ),
            ("cp: setting permissions for ‘a\\n\\\\b’: x", &["a\n\\b"]),
            (
                "cp: setting attribute 'user.x' for 'it\\'s'",
                &["user.x", "it's"],
            ),
            ("'a' -> 'b' (backup: 'c~')", &["a", "b", "c~"]),
            ("rm: skipping 'a', since it's on a different device", &["a"]),
            (
                "cp: a/b: can make relative symbolic links only in",
                &["a/b"],
            ),
            (
                "cp: 'a:b/c': can make relative symbolic links only in",
                &["a:b/c"],
            ),
            ("\"it's\" -> \"b/it's\"", &["it's", "b/it's"]),
            ("a -> b/a b", &["a", "b/a b"]),
            ("cp: overwrite 'caf\u{e9}'? ", &["caf\u{e9}"]),
        ] {
            assert_eq!(paths(&legible(message.as_bytes())), quoted, "{message}");
        }
    }

    #[test]
    fn paths_of_trees_are_those_of_messages() {
        for name in [
            "it's",
            "a\nb",
            "\u{200b}",
            "\u{1}",
            "\\",
            "caf\u{e9}",
            "\"",
            "\u{fffd};",
        ] {
            let escaped = name.escape_debug().to_string();
            assert_eq!(path_of_tree(&escaped), name);
        }
    }
}
