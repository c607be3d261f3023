//! A command whose three streams are a terminal.

use std::ffi::OsStr;

use super::Run;
use crate::probe::{Skip, has_program};

impl Run {
    /// Returns a run of this command at a pseudo-terminal, which the program `script` makes. Both streams of output
    /// come on stdout, with `\r\n` after each line.
    ///
    /// # Errors
    /// Skips if `script` is missing.
    ///
    /// # Panics
    /// If an argument is not UTF-8.
    pub fn at_terminal(&self) -> Result<Self, Skip> {
        if !has_program("script") {
            return Err(Skip("script is missing".into()));
        }
        let words = [&self.program].into_iter().chain(&self.args);
        let words: Vec<String> = words.map(|word| quoted(word)).collect();
        let line = format!("exec {}", words.join(" "));
        let mut run = self.clone().env("SHELL", "/bin/sh");
        run.program = "script".into();
        run.args = ["-qec", &line, "/dev/null"].map(Into::into).into();
        Ok(run)
    }
}

/// Quotes a word for a shell.
fn quoted(word: &OsStr) -> String {
    let word = word.to_str().expect("a word in UTF-8");
    format!("'{}'", word.replace('\'', r"'\''"))
}
