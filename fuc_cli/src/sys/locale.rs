//! The C library's locales decide which answers mean yes, and which characters can be shown.

use std::ffi::{CStr, c_int};
use std::ptr;
use std::sync::OnceLock;

/// Returns `true` if GNU's tools show `character` as it is in a UTF-8 locale. Control characters, separators of lines
/// and, to glibc, unassigned code points are not printable. Private use, soft hyphens and characters without width are.
pub(crate) fn is_printable(character: char) -> bool {
    // The `libc` crate does not declare this function of POSIX. Its first argument is a `wint_t`.
    unsafe extern "C" {
        fn iswprint_l(character: u32, locale: libc::locale_t) -> c_int;
    }
    /// The address of a locale that lives as long as the process. 0: no UTF-8 locale is installed.
    static UTF_8: OnceLock<usize> = OnceLock::new();

    let locale = *UTF_8.get_or_init(|| {
        // SAFETY: the names are C strings, no locale is modified, and the result is either null or a locale of our own.
        let of = |name: &CStr| unsafe {
            libc::newlocale(libc::LC_CTYPE_MASK, name.as_ptr(), ptr::null_mut())
        };
        // All UTF-8 locales agree. The first is missing in glibc before 2.35.
        let locale = of(c"C.UTF-8");
        if locale.is_null() {
            of(c"") as usize
        } else {
            locale as usize
        }
    });
    // SAFETY: `locale` is never freed, and the function takes any code point.
    locale != 0 && unsafe { iswprint_l(u32::from(character), locale as libc::locale_t) } != 0
}

/// Returns `true` if `answer` means yes in the language that the environment names.
///
/// Only the locale of this thread changes, and only until the function returns.
pub(crate) fn is_affirmative(answer: &CStr) -> bool {
    matches_locale(answer).unwrap_or_else(|| begins_with_y(answer))
}

fn begins_with_y(answer: &CStr) -> bool {
    matches!(answer.to_bytes().first(), Some(b'y' | b'Y'))
}

/// Returns `None`, as musl has the C locale only.
#[cfg(target_env = "musl")]
fn matches_locale(_answer: &CStr) -> Option<bool> {
    None
}

/// Returns `true` if the locale of the environment takes `answer` for yes. Returns `None` if that locale is not
/// installed.
#[cfg(not(target_env = "musl"))]
fn matches_locale(answer: &CStr) -> Option<bool> {
    use std::ffi::c_char;
    use std::sync::Mutex;

    use libc::{LC_COLLATE_MASK, LC_CTYPE_MASK, LC_MESSAGES_MASK};

    use crate::sync::lock;

    // The `libc` crate does not declare this function of the C library.
    unsafe extern "C" {
        fn rpmatch(response: *const c_char) -> c_int;
    }
    /// The locale categories that glibc uses to judge an answer.
    const CATEGORIES: c_int = LC_CTYPE_MASK | LC_COLLATE_MASK | LC_MESSAGES_MASK;
    /// `rpmatch` keeps its compiled expression in memory that threads share.
    static MATCHING: Mutex<()> = Mutex::new(());

    let _one_at_a_time = lock(&MATCHING);
    // SAFETY: the name is a C string, no locale is modified, and the result is
    // either null or a locale of our own.
    let locale = unsafe { libc::newlocale(CATEGORIES, c"".as_ptr(), ptr::null_mut()) };
    if locale.is_null() {
        return None;
    }
    // SAFETY: `locale` is valid until it is freed. Before that, this thread goes
    // back to the locale that it had. `answer` is a C string. The lock keeps
    // other threads out of `rpmatch`, which is not thread-safe.
    unsafe {
        let before = libc::uselocale(locale);
        let is_yes = rpmatch(answer.as_ptr()) == 1;
        libc::uselocale(before);
        libc::freelocale(locale);
        Some(is_yes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yes_begins_with_y() {
        assert!(begins_with_y(c"y"));
        assert!(begins_with_y(c"Yes, please\n"));
        for no in [c"", c"n", c" y", c"1", c"\n", c"ok"] {
            assert!(!begins_with_y(no), "{no:?}");
        }
    }

    #[test]
    fn yes_is_yes_and_no_is_no_in_any_language_that_may_be_set() {
        // All locales accept these two, whatever else they accept.
        assert!(is_affirmative(c"y\n"));
        assert!(!is_affirmative(c"n\n"));
    }
}
