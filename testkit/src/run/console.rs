//! Runs the examples of a page: each block of `console` in its Markdown, as a reader would type it.
//!
//! ```text
//! Markdown ─▶ blocks ─▶ steps (a command, the output that the page shows) ─▶ bash ─▶ compare
//! ```

use std::{fs, path::Path};

use super::{Run, Status};

/// A command of a page.
#[derive(Debug, PartialEq, Eq)]
struct Step<'a> {
    /// The number of its line in the page, from 1.
    line: usize,
    command: &'a str,
    /// The lines below it. If there are none, the page does not show the output.
    output: Vec<&'a str>,
}

/// Runs each console block of `page`, and returns how many commands ran.
///
/// The commands of a page run one after the other in `dir`, which is made, and in which `fixture` makes the files.
/// There, `HOME` is `home`, and `PATH` begins with `HOME/.local/bin` and `programs`. A command must have the output that the
/// page shows below it, if the page shows one, and end with status 0 unless that output is a diagnostic. Commands
/// whose first word is one of `left_out` do not run.
///
/// # Panics
/// If a command of the page does not do what the page says.
pub fn run_examples(
    page: &Path,
    programs: &Path,
    left_out: &[&str],
    dir: &Path,
    fixture: impl FnOnce(&Path),
) -> usize {
    let text = fs::read_to_string(page).unwrap_or_else(|error| panic!("{page:?}: {error}"));
    let home = dir.join("home");
    fs::create_dir_all(&home).expect("a directory can be made");
    fixture(dir);
    let mut ran = 0;
    for step in steps(&text) {
        let first = step.command.split_whitespace().next();
        if first.is_some_and(|first| left_out.contains(&first)) {
            continue;
        }
        let outcome = Run::new("bash")
            .args(["-c", &format!("exec 2>&1\n{}", step.command)])
            .current_dir(dir)
            .env("HOME", &home)
            .with_programs([home.join(".local/bin"), programs.to_owned()])
            .env("LC_ALL", "C.UTF-8")
            .output();
        let place = format!("{}:{}: {}", page.display(), step.line, step.command);
        let has_succeeded = outcome.status == Status::Exit(0);
        let is_diagnostic = step.output.iter().any(|line| is_diagnostic(line));
        assert_eq!(has_succeeded, !is_diagnostic, "{place}: {outcome}");
        if !step.output.is_empty() {
            let expected = step.output.join("\n");
            assert_eq!(outcome.stdout_text().trim_end(), expected, "{place}");
        }
        ran += 1;
    }
    ran
}

/// Returns `true` for a line such as `rmz: cannot remove 'a': Permission denied`.
fn is_diagnostic(line: &str) -> bool {
    ["rmz: ", "cpz: ", "rm: ", "cp: "]
        .iter()
        .any(|name| line.starts_with(name))
}

/// Returns the commands of all console blocks, in order.
fn steps(text: &str) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut is_inside = false;
    for (i, line) in text.lines().enumerate() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            is_inside = !is_inside && info == "console";
        } else if !is_inside {
            continue;
        } else if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                line: i + 1,
                command,
                output: Vec::new(),
            });
        } else if let Some(step) = steps.last_mut() {
            step.output.push(line);
        } else {
            panic!("line {}: a console block must begin with a command", i + 1);
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result of running a page with this text, with a file `a` in the directory.
    fn run(text: &str) -> std::thread::Result<usize> {
        let dir = tempfile::tempdir().unwrap();
        let page = dir.path().join("page.md");
        fs::write(&page, text).unwrap();
        std::panic::catch_unwind(|| {
            let tree = dir.path().join("tree");
            run_examples(&page, Path::new("/nowhere"), &["cargo"], &tree, |tree| {
                fs::write(tree.join("a"), "").unwrap();
            })
        })
    }

    #[test]
    fn the_commands_of_console_blocks_run_in_order_in_one_directory() {
        let text = "text\n```console\n$ mkdir d && mv a d   # a comment\n$ ls d\na\n```\n\n```rust\n$ false\n```\n\
                    ```console\n$ ls\nd\nhome\n$ cargo no-such-command\n```\n";
        assert_eq!(run(text).unwrap(), 3);
    }

    #[test]
    fn a_page_that_shows_another_output_or_a_failing_command_is_refused() {
        for commands in [
            "$ ls a\nb",
            "$ false",
            "$ ls missing",
            "$ echo rm: no\nrm: no",
        ] {
            let text = format!("```console\n{commands}\n```\n");
            assert!(run(&text).is_err(), "{commands}");
        }
    }

    #[test]
    fn a_command_that_the_page_shows_with_a_diagnostic_must_fail() {
        let text = "```console\n$ echo rm: no; false\nrm: no\n```\n";
        assert_eq!(run(text).unwrap(), 1);
    }
}
