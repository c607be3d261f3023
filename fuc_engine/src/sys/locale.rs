//! What counts as yes: in the C locale an answer that begins with `y` or `Y`, elsewhere what people there say.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

// Of the C library; rustix has only the kernel's calls.
unsafe extern "C" {
    fn newlocale(mask: c_int, locale: *const c_char, base: *mut c_void) -> *mut c_void;
    fn uselocale(locale: *mut c_void) -> *mut c_void;
    fn freelocale(locale: *mut c_void);
    fn rpmatch(response: *const c_char) -> c_int;
}

/// The categories LC_CTYPE (0), LC_COLLATE (3) and LC_MESSAGES (5), by whose
/// rules an answer is read; their numbers are the same in glibc and in musl.
const CATEGORIES: c_int = 1 << 0 | 1 << 3 | 1 << 5;

/// Whether `answer` says yes in the language that the environment names.
///
/// Only this thread's locale is changed, and only meanwhile.
pub fn is_affirmative(answer: &CStr) -> bool {
    // SAFETY: the name is a C string, no locale is modified, and what is
    // returned is either null or a locale of our own.
    let locale = unsafe { newlocale(CATEGORIES, c"".as_ptr(), ptr::null_mut()) };
    if locale.is_null() {
        // The environment names what is not installed: the C locale it is.
        return matches!(answer.to_bytes().first(), Some(b'y' | b'Y'));
    }
    // SAFETY: `locale` is valid until it is freed; before that this thread goes
    // back to the locale that it had. `answer` is a C string.
    unsafe {
        let before = uselocale(locale);
        let says_yes = rpmatch(answer.as_ptr()) == 1;
        uselocale(before);
        freelocale(locale);
        says_yes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yes_begins_with_y() {
        assert!(is_affirmative(c"y"));
        assert!(is_affirmative(c"Yes, please\n"));
        for no in [c"", c"n", c" y", c"1", c"\n", c"ok"] {
            assert!(!is_affirmative(no), "{no:?}");
        }
    }
}
