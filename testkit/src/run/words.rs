//! The arguments of commands, as words of one text or as a list.

use std::ffi::{OsStr, OsString};

use crate::tree::words::split;

/// The arguments of a command: a text, which is split at white space as the lines of tables are, or a list.
pub trait Words {
    /// Returns the arguments.
    fn words(self) -> Vec<OsString>;
}

impl Words for &str {
    fn words(self) -> Vec<OsString> {
        split(self).into_iter().map(OsString::from).collect()
    }
}

impl Words for &String {
    fn words(self) -> Vec<OsString> {
        self.as_str().words()
    }
}

impl<T: AsRef<OsStr>> Words for &[T] {
    fn words(self) -> Vec<OsString> {
        self.iter().map(|arg| arg.as_ref().to_owned()).collect()
    }
}

impl<T: AsRef<OsStr>, const N: usize> Words for &[T; N] {
    fn words(self) -> Vec<OsString> {
        self.as_slice().words()
    }
}

impl<T: AsRef<OsStr>, const N: usize> Words for [T; N] {
    fn words(self) -> Vec<OsString> {
        self.as_slice().words()
    }
}

impl<T: AsRef<OsStr>> Words for Vec<T> {
    fn words(self) -> Vec<OsString> {
        self.as_slice().words()
    }
}

impl<T: AsRef<OsStr>> Words for &Vec<T> {
    fn words(self) -> Vec<OsString> {
        self.as_slice().words()
    }
}
