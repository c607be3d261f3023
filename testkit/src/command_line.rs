//! Checks that a command finds the same errors in its arguments as GNU's.

use std::{ffi::OsString, os::unix::process::CommandExt as _, path::Path, process::Command};

/// A command and GNU's, which read the same arguments.
#[derive(Clone, Copy, Debug)]
pub struct Readers<'a> {
    /// GNU's command.
    pub gnu: &'a Path,
    /// The name under which it is run.
    pub name: &'a str,
    /// The beginnings of errors that our command reports in a later stage.
    pub later: &'a [&'a str],
    /// Returns the error of our command in arguments, none of which is an operand. Returns an empty string if there is none.
    pub ours: fn(&[OsString]) -> String,
}

impl Readers<'_> {
    /// Asserts that both report the same errors.
    ///
    /// # Panics
    /// If they differ.
    #[track_caller]
    pub fn agree(&self, arguments: &[&str]) {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let ours = (self.ours)(&arguments);
        assert_eq!(ours, self.theirs(&arguments), "{arguments:?}");
    }

    /// Asserts the same about all prefixes of these long options, and about all letters.
    ///
    /// # Panics
    /// If the commands differ.
    #[track_caller]
    pub fn agree_about_names(&self, long: &str) {
        for name in long.split_whitespace() {
            for end in 1..=name.len() {
                self.agree(&[&format!("--{}", &name[..end])]);
            }
            self.agree(&[&format!("--{name}=x")]);
            self.agree(&[&format!("--{name}x")]);
            self.agree(&[&format!("--{}=", &name[..2])]);
        }
        for letter in (b' '..=b'~').map(char::from) {
            self.agree(&[&format!("-{letter}")]);
            self.agree(&[&format!("-f{letter}")]);
        }
    }

    fn theirs(&self, arguments: &[OsString]) -> String {
        let output = Command::new(self.gnu)
            .arg0(self.name)
            .env("LC_ALL", "C")
            .env_remove("POSIXLY_CORRECT")
            .args(arguments)
            .output()
            .expect("GNU's command can be run");
        let stderr = String::from_utf8(output.stderr).expect("ASCII");
        let line = stderr.lines().next().unwrap_or_default();
        let start = format!("{}: ", self.name);
        let line = line.strip_prefix(&*start).unwrap_or_default();
        let is_of_later_stage = self.later.iter().any(|start| line.starts_with(start));
        match is_of_later_stage || line.contains(" argument '") {
            true => String::new(),
            false => line.into(),
        }
    }
}
