//! The C library's texts of error numbers, as GNU's tools print them.
//!
//! musl has other texts, so statically linked commands take these. They are those of glibc 2.36; a test
//! compares them with the installed one. On MIPS, SPARC and a few other architectures the numbers differ.

/// Returns the text of an error number of x86-64 and ARM.
pub(super) fn text(errno: i32) -> Option<&'static str> {
    let index = usize::try_from(errno).ok()?.checked_sub(1)?;
    TEXTS.lines().nth(index)
}

/// The texts, each on a line, beginning with that of 1.
const TEXTS: &str = include_str!("error_texts.txt");

#[cfg(all(
    test,
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod tests {
    use std::io;

    use super::text;

    #[test]
    fn the_texts_are_those_of_glibc() {
        for errno in 1..=133 {
            let of_system = io::Error::from_raw_os_error(errno).to_string();
            let (of_system, _) = of_system.rsplit_once(" (os error").unwrap();
            assert_eq!(text(errno), Some(of_system));
        }
        assert_eq!([text(0), text(-1), text(134)], [None; 3]);
    }
}
