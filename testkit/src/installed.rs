//! Checks of what the package of a command installs beside it: the manual page, and the completions.

use std::path::Path;

use crate::{
    completion::{SHELLS, complete},
    probe::{Skip, need_program},
    run::Run,
    tree::{Scratch, Tree},
};

/// The sections that the manual page of each command has.
const SECTIONS: [&str; 6] = [
    "NAME",
    "SYNOPSIS",
    "OPTIONS",
    "PATTERNS",
    "STATISTICS",
    "SIGNALS",
];

/// A command and its package.
#[derive(Clone, Copy, Debug)]
pub struct Installed<'a> {
    /// The name of the command.
    pub name: &'a str,
    /// The root of the package, with `man/` and `completions/`.
    pub package: &'a str,
    /// The program.
    pub program: &'a str,
}

impl Installed<'_> {
    /// Asserts that `man` shows the page without a warning, with these words in it, and without the hidden option.
    ///
    /// # Errors
    /// If `man` is not installed.
    ///
    /// # Panics
    /// If the page is otherwise.
    pub fn page_has(&self, words: &[&str]) -> Result<(), Skip> {
        need_program("man")?;
        let page = format!("{}/man/{}.1", self.package, self.name);
        let man = Run::new("man").args(["--warnings", "-l", &page]);
        let outcome = man.env("MANWIDTH", "80").output();
        assert_eq!(outcome.stderr_text(), "");
        let text = outcome.assert_success().stdout_text();
        for section in SECTIONS {
            assert!(text.contains(&format!("\n{section}\n")), "{text}");
        }
        for word in words {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert!(!text.contains("presume"), "{text}");
        Ok(())
    }

    /// Asserts that each shell completes each line to these words, in a directory with `dir` and `some-file`.
    ///
    /// # Errors
    /// If a shell is not installed.
    ///
    /// # Panics
    /// If it offers other words.
    pub fn completes(&self, lines: &[(&str, &[&str])]) -> Result<(), Skip> {
        let scratch = Scratch::new();
        Tree::at(scratch.path()).dir("dir").file("some-file", "");
        let scripts = Path::new(self.package).join("completions");
        for shell in SHELLS {
            for (line, expected) in lines {
                let candidates = complete(shell, &scripts, line, scratch.path())?;
                assert_eq!(candidates, *expected, "{shell} completes {line:?}");
            }
        }
        Ok(())
    }

    /// Asserts that the help fits a terminal of 80 columns.
    ///
    /// # Panics
    /// Panics with the widest line if it does not.
    pub fn help_fits(&self) {
        // By its name, because the help repeats the path that the command was called by.
        let programs = Path::new(self.program).parent().expect("a path");
        let help = Run::new(self.name).arg("--help").env("PATH", programs);
        let text = help.output().assert_success().stdout_text();
        let width = |line: &&str| line.chars().count();
        let widest = text.lines().max_by_key(width).expect("some lines");
        assert!(width(&widest) <= 80, "{widest:?}");
    }
}
