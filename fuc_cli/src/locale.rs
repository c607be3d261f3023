//! The charset of the user's locale, which decides which bytes of a file name can be shown as they are.
//!
//! It is derived from the name of the locale in the environment. `setlocale` would read files for
//! the same answer.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// How bytes of text map to characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "distribute", derive(serde::Serialize, serde::Deserialize))]
pub enum Charset {
    /// The locale's codeset is UTF-8.
    Utf8,
    /// The C locale, or a codeset that is not UTF-8: bytes above 127 are not printable.
    Ascii,
}

impl Charset {
    /// Returns the charset of the environment's locale: that of `LC_ALL`, else of `LC_CTYPE`, else
    /// of `LANG`. An empty variable counts as unset.
    #[must_use]
    pub fn from_environment() -> Self {
        ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .filter_map(std::env::var_os)
            .find(|value| !value.is_empty())
            .map_or(Self::Ascii, |locale| Self::of_locale(&locale))
    }

    /// Returns the charset of a locale such as `en_US.UTF-8`, `C.utf8` or `de_DE.UTF-8@euro`.
    ///
    /// A name without a codeset counts as not UTF-8, as do `C` and `POSIX`.
    #[must_use]
    pub fn of_locale(locale: &OsStr) -> Self {
        let name = locale.as_bytes();
        let name = name.split(|&byte| byte == b'@').next().unwrap_or(name);
        let Some(dot) = name.iter().position(|&byte| byte == b'.') else {
            return Self::Ascii;
        };
        let letters = name[dot + 1..]
            .iter()
            .filter(|byte| byte.is_ascii_alphanumeric());
        if letters.map(u8::to_ascii_lowercase).eq(*b"utf8") {
            Self::Utf8
        } else {
            Self::Ascii
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(locale: &str) -> Charset {
        Charset::of_locale(OsStr::new(locale))
    }

    #[test]
    fn recognises_utf8_by_any_spelling_of_the_codeset() {
        for name in ["C.UTF-8", "C.utf8", "en_US.UTF8", "de_DE.UTF-8@euro"] {
            assert_eq!(of(name), Charset::Utf8, "{name}");
        }
    }

    #[test]
    fn treats_every_other_locale_as_ascii() {
        for name in [
            "",
            "C",
            "POSIX",
            "en_US",
            "en_US.ISO-8859-1",
            "utf8",
            "a@.UTF-8",
        ] {
            assert_eq!(of(name), Charset::Ascii, "{name}");
        }
    }
}
