//! How a file name looks in a message: on one line, unmistakable, and ready to be pasted into a shell.
//!
//! There are three styles, all read off GNU rm:
//!
//! | style | used for | `a b` | `it's` | `it's $x` | `a⏎b` |
//! |---|---|---|---|---|---|
//! | [`always`] | names in diagnostics and `-v` lines | `'a b'` | `"it's"` | `'it'\''s $x'` | `'a'$'\n''b'` |
//! | [`if_needed`] | a suggested command | `'a b'` | `"it's"` | `'it'\''s $x'` | `'a'$'\n''b'` |
//! | [`locale`] | option arguments in usage errors | `‘a b’` | `‘it's’` | `‘it's $x’` | `‘a\nb’` |
//!
//! For plain words they give `'x'`, `x` and `‘x’`. In the C locale the last style uses `'` for quotes,
//! and puts a backslash before a `'` in the text.
//!
//! The invariant: a quoted name holds no control character, and in a UTF-8 locale no invalid UTF-8.
//! Names are any bytes, so both occur.

use crate::locale::Charset;
use crate::sys::is_printable;

/// One step through a name: a character that can be shown, or bytes that need an escape.
#[derive(Clone, Copy)]
enum Piece<'a> {
    /// A printable ASCII character.
    Ascii(u8),
    /// A printable character of several bytes.
    Wide(&'a str),
    /// Bytes to be escaped: a control character, invalid UTF-8, a character that is not printable.
    Escaped(&'a [u8]),
}

/// Returns `name` in quotes, even if it needs none.
#[must_use]
pub fn always(name: &[u8], charset: Charset) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(name.len() + 2);
    // The fast path for nearly every name, because `-v` quotes one for each line.
    let is_plain = |&byte: &u8| matches!(byte, b' '..=b'~') && byte != b'\'';
    if name.iter().all(is_plain) {
        quoted.push(b'\'');
        quoted.extend_from_slice(name);
        quoted.push(b'\'');
    } else if fits_double_quotes(name, charset) {
        quoted.push(b'"');
        quoted.extend_from_slice(name);
        quoted.push(b'"');
    } else {
        push_single_quoted(&mut quoted, name, charset);
    }
    quoted
}

/// Returns `name` without quotes if a shell reads it unchanged, else as [`always`].
#[must_use]
pub fn if_needed(name: &[u8], charset: Charset) -> Vec<u8> {
    let plain = !name.is_empty()
        && !matches!(name[0], b'#' | b'~')
        && pieces(name, charset).all(|piece| match piece {
            Piece::Ascii(byte) => !b" !\"$&'()*;<=>?[\\^`|".contains(&byte),
            Piece::Wide(_) => true,
            Piece::Escaped(_) => false,
        });
    if plain {
        name.to_vec()
    } else {
        always(name, charset)
    }
}

/// Returns `text` between the locale's quotation marks, with C's backslash escapes.
#[must_use]
pub fn locale(text: &[u8], charset: Charset) -> Vec<u8> {
    let (open, close) = match charset {
        Charset::Utf8 => ("‘", "’"),
        Charset::Ascii => ("'", "'"),
    };
    let mut quoted = open.as_bytes().to_vec();
    for piece in pieces(text, charset) {
        match piece {
            Piece::Ascii(byte) => {
                if byte == b'\\' || [byte] == close.as_bytes() {
                    quoted.push(b'\\');
                }
                quoted.push(byte);
            }
            Piece::Wide(character) => {
                if character == close {
                    quoted.push(b'\\');
                }
                quoted.extend_from_slice(character.as_bytes());
            }
            Piece::Escaped(bytes) => push_escapes(&mut quoted, bytes),
        }
    }
    quoted.extend_from_slice(close.as_bytes());
    quoted
}

/// Returns `true` if double quotes are the more readable choice: `name` holds a `'`, and no character
/// that is special to a shell or a C compiler.
fn fits_double_quotes(name: &[u8], charset: Charset) -> bool {
    name.contains(&b'\'')
        && pieces(name, charset)
            .enumerate()
            .all(|(index, piece)| match piece {
                Piece::Ascii(b'#' | b'~') => index == 0,
                Piece::Ascii(byte) => {
                    byte.is_ascii_alphanumeric() || b" %'+,-./:@]_".contains(&byte)
                }
                Piece::Wide(_) => true,
                Piece::Escaped(_) => false,
            })
}

fn push_single_quoted(quoted: &mut Vec<u8>, name: &[u8], charset: Charset) {
    // The state is inside '...' or inside $'...'; both end with the same character.
    let mut in_escapes = false;
    quoted.push(b'\'');
    for piece in pieces(name, charset) {
        match piece {
            Piece::Escaped(bytes) => {
                if !in_escapes {
                    quoted.extend_from_slice(b"'$'");
                }
                in_escapes = true;
                push_escapes(quoted, bytes);
            }
            Piece::Ascii(b'\'') => {
                in_escapes = false;
                quoted.extend_from_slice(br"'\''");
            }
            Piece::Ascii(_) | Piece::Wide(_) => {
                if in_escapes {
                    quoted.extend_from_slice(b"''");
                }
                in_escapes = false;
                push_shown(quoted, piece);
            }
        }
    }
    quoted.push(b'\'');
}

fn push_shown(quoted: &mut Vec<u8>, piece: Piece<'_>) {
    match piece {
        Piece::Ascii(byte) => quoted.push(byte),
        Piece::Wide(character) => quoted.extend_from_slice(character.as_bytes()),
        Piece::Escaped(bytes) => push_escapes(quoted, bytes),
    }
}

fn push_escapes(quoted: &mut Vec<u8>, bytes: &[u8]) {
    for &byte in bytes {
        let letter = match byte {
            b'\x07' => b'a',
            b'\x08' => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            b'\x0b' => b'v',
            b'\x0c' => b'f',
            b'\r' => b'r',
            _ => {
                let digit = |shift: u8| b'0' + (byte >> shift & 7);
                quoted.extend_from_slice(&[b'\\', digit(6), digit(3), digit(0)]);
                continue;
            }
        };
        quoted.extend_from_slice(&[b'\\', letter]);
    }
}

fn pieces(name: &[u8], charset: Charset) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let (&first, after) = rest.split_first()?;
        let piece = match first {
            b' '..=b'~' => Piece::Ascii(first),
            0..=127 => Piece::Escaped(&rest[..1]),
            _ => match (charset, first_character(rest)) {
                (Charset::Utf8, Some(character)) => {
                    rest = &rest[character.len()..];
                    return Some(shown_or_escaped(character));
                }
                (Charset::Utf8, None) | (Charset::Ascii, _) => Piece::Escaped(&rest[..1]),
            },
        };
        rest = after;
        Some(piece)
    })
}

fn shown_or_escaped(character: &str) -> Piece<'_> {
    if character.chars().all(is_printable) {
        Piece::Wide(character)
    } else {
        Piece::Escaped(character.as_bytes())
    }
}

/// Returns the multi-byte character at the start of `bytes`, if it is valid UTF-8.
fn first_character(bytes: &[u8]) -> Option<&str> {
    let window = &bytes[..bytes.len().min(4)];
    let valid = window.utf8_chunks().next()?.valid();
    let character = valid.chars().next()?;
    Some(&valid[..character.len_utf8()])
}

#[cfg(test)]
mod tests;
