//! What counts as yes: in the C locale an answer that begins with `y` or `Y`, elsewhere what people there say.

use std::ffi::CStr;

/// Whether `answer` says yes in the language that the environment names.
///
/// Only this thread's locale is changed, and only meanwhile.
pub fn is_affirmative(answer: &CStr) -> bool {
    matches_locale(answer).unwrap_or_else(|| begins_with_y(answer))
}

fn begins_with_y(answer: &CStr) -> bool {
    matches!(answer.to_bytes().first(), Some(b'y' | b'Y'))
}

/// musl knows no other languages.
#[cfg(target_env = "musl")]
fn matches_locale(_answer: &CStr) -> Option<bool> {
    None
}

/// `None` if the environment names what is not installed.
#[cfg(not(target_env = "musl"))]
fn matches_locale(answer: &CStr) -> Option<bool> {
    use std::ffi::{c_char, c_int, c_void};
    use std::ptr;
    use std::sync::{Mutex, PoisonError};

    // Of the C library; rustix has only the kernel's calls.
    unsafe extern "C" {
        fn newlocale(mask: c_int, locale: *const c_char, base: *mut c_void) -> *mut c_void;
        fn uselocale(locale: *mut c_void) -> *mut c_void;
        fn freelocale(locale: *mut c_void);
        fn rpmatch(response: *const c_char) -> c_int;
    }
    /// The categories by whose rules glibc reads an answer: LC_CTYPE (0), LC_COLLATE (3), LC_MESSAGES (5).
    const CATEGORIES: c_int = 1 << 0 | 1 << 3 | 1 << 5;
    /// `rpmatch` keeps the expression that it has compiled in a place that threads share.
    static MATCHING: Mutex<()> = Mutex::new(());

    let _one_at_a_time = MATCHING.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the name is a C string, no locale is modified, and what is
    // returned is either null or a locale of our own.
    let locale = unsafe { newlocale(CATEGORIES, c"".as_ptr(), ptr::null_mut()) };
    if locale.is_null() {
        return None;
    }
    // SAFETY: `locale` is valid until it is freed; before that this thread goes
    // back to the locale that it had. `answer` is a C string. The lock keeps
    // other threads out of `rpmatch`, which is not thread-safe.
    unsafe {
        let before = uselocale(locale);
        let says_yes = rpmatch(answer.as_ptr()) == 1;
        uselocale(before);
        freelocale(locale);
        Some(says_yes)
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
        // Whatever else they say, all accept these two.
        assert!(is_affirmative(c"y\n"));
        assert!(!is_affirmative(c"n\n"));
    }
}
