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

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::locale::Charset;
use crate::sys::is_printable;

/// A part of a name that is shown or escaped as a whole.
#[derive(Clone, Copy)]
enum Symbol {
    /// A character that can be shown.
    Shown(char),
    /// A byte of a control character, of invalid UTF-8, or of a character that is not printable.
    Escaped(u8),
}

/// Returns `name` in quotes, even if it needs none.
#[must_use]
pub fn always(name: impl AsRef<OsStr>, charset: Charset) -> String {
    let name = name.as_ref().as_bytes();
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'\'';
    // Nearly all names are plain, and a plain name needs no decoding.
    if name.iter().all(is_plain)
        && let Ok(name) = str::from_utf8(name)
    {
        return ["'", name, "'"].concat();
    }
    // Double quotes are the more readable choice if nothing is special to a shell or a C compiler.
    let fits_double_quotes = |index, character: char| match character {
        '#' | '~' => index == 0,
        _ if character.is_ascii() => {
            character.is_ascii_alphanumeric() || " %'+,-./:@]_".contains(character)
        }
        _ => true,
    };
    match shown(name, charset, fits_double_quotes) {
        Some(text) if text.contains('\'') => ["\"", &text, "\""].concat(),
        _ => single_quoted(name, charset),
    }
}

/// Returns `name` without quotes if a shell reads it unchanged, else as [`always`].
#[must_use]
pub fn if_needed(name: impl AsRef<OsStr>, charset: Charset) -> String {
    let name = name.as_ref();
    let is_plain = |index, character| match character {
        '#' | '~' => index > 0,
        _ => !" !\"$&'()*;<=>?[\\^`|".contains(character),
    };
    shown(name.as_bytes(), charset, is_plain)
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| always(name, charset))
}

/// Returns `text` between the locale's quotation marks, with C's backslash escapes.
#[must_use]
pub fn locale(text: impl AsRef<OsStr>, charset: Charset) -> String {
    let (open, close) = match charset {
        Charset::Utf8 => ('‘', '’'),
        Charset::Ascii => ('\'', '\''),
    };
    let mut quoted = String::from(open);
    for symbol in symbols(text.as_ref().as_bytes(), charset) {
        match symbol {
            Symbol::Shown(character) => {
                if character == '\\' || character == close {
                    quoted.push('\\');
                }
                quoted.push(character);
            }
            Symbol::Escaped(byte) => push_escape(&mut quoted, byte),
        }
    }
    quoted.push(close);
    quoted
}

/// Returns the name as text if each character can be shown and, at its index, `is_plain`.
fn shown(name: &[u8], charset: Charset, is_plain: impl Fn(usize, char) -> bool) -> Option<String> {
    let symbols = symbols(name, charset).into_iter().enumerate();
    symbols
        .map(|(index, symbol)| match symbol {
            Symbol::Shown(character) if is_plain(index, character) => Some(character),
            _ => None,
        })
        .collect()
}

fn single_quoted(name: &[u8], charset: Charset) -> String {
    // The state is inside '...' or inside $'...'; both end with the same character.
    let mut in_escapes = false;
    let mut quoted = String::from('\'');
    for symbol in symbols(name, charset) {
        let was_in_escapes =
            std::mem::replace(&mut in_escapes, matches!(symbol, Symbol::Escaped(_)));
        match (symbol, was_in_escapes) {
            (Symbol::Shown('\''), _) => quoted.push_str(r"'\''"),
            (Symbol::Shown(character), was_in_escapes) => {
                if was_in_escapes {
                    quoted.push_str("''");
                }
                quoted.push(character);
            }
            (Symbol::Escaped(byte), was_in_escapes) => {
                if !was_in_escapes {
                    quoted.push_str("'$'");
                }
                push_escape(&mut quoted, byte);
            }
        }
    }
    quoted.push('\'');
    quoted
}

fn push_escape(quoted: &mut String, byte: u8) {
    let letter = match byte {
        b'\x07' => 'a',
        b'\x08' => 'b',
        b'\t' => 't',
        b'\n' => 'n',
        b'\x0b' => 'v',
        b'\x0c' => 'f',
        b'\r' => 'r',
        _ => return quoted.push_str(&format!("\\{byte:03o}")),
    };
    quoted.extend(['\\', letter]);
}

fn symbols(name: &[u8], charset: Charset) -> Vec<Symbol> {
    let mut symbols = Vec::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            let is_shown = match character {
                ' '..='~' => true,
                _ if character.is_ascii() => false,
                _ => charset == Charset::Utf8 && is_printable(character),
            };
            match is_shown {
                true => symbols.push(Symbol::Shown(character)),
                false => {
                    symbols.extend(
                        character
                            .encode_utf8(&mut [0; 4])
                            .bytes()
                            .map(Symbol::Escaped),
                    );
                }
            }
        }
        symbols.extend(chunk.invalid().iter().copied().map(Symbol::Escaped));
    }
    symbols
}

#[cfg(test)]
mod tests;
