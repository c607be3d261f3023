//! Compares the outputs of two commands, apart from their names and the order of lines.

use std::{ffi::OsStr, path::Path};

use super::{Observed, Status};

/// Cuts an output into sorted lines, with `CMD` in place of the command's own name.
///
/// The name is replaced at the beginning of a message, and after `Try '` and `Usage: `. A message begins at
/// the start of a line, or after a prompt, which ends without a newline. If `name` is a path, its last
/// component is replaced too, because a command may use either.
#[must_use]
pub fn normal_lines(output: &[u8], name: &Path) -> Vec<String> {
    let mut text = format!("\n{}", String::from_utf8_lossy(output));
    let last = name.file_name().unwrap_or(name.as_os_str());
    for name in [name.as_os_str(), last].map(OsStr::to_string_lossy) {
        for (own, common) in [
            (format!("\n{name}: "), "\nCMD: "),
            (format!("? {name}: "), "? \nCMD: "),
            (format!("\nTry '{name} "), "\nTry 'CMD "),
            (format!("\nUsage: {name} "), "\nUsage: CMD "),
        ] {
            text = text.replace(&own, common);
        }
    }
    let mut lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Replaces each `pattern` in `text`.
pub(super) fn replaced(text: &[u8], pattern: &[u8], by: &[u8]) -> Vec<u8> {
    let mut rest = text;
    let mut replaced = Vec::with_capacity(text.len());
    while let [first, later @ ..] = rest {
        if let Some(later) = rest.strip_prefix(pattern) {
            replaced.extend(by);
            rest = later;
        } else {
            replaced.push(*first);
            rest = later;
        }
    }
    replaced
}

/// Describes all that two commands did, or returns an empty string if that is equal, apart from their names and the
/// order of lines.
#[must_use]
pub fn difference(ours: &Observed, gnu: &Observed) -> String {
    let trees = gnu.tree.diff(&ours.tree);
    if trees.is_empty() && told(ours) == told(gnu) {
        return trees;
    }
    let mut report = String::new();
    for (name, Observed { outcome, tree, .. }) in [("gnu", gnu), ("ours", ours)] {
        report += &format!("\n=== {name}: {outcome}--- tree\n{tree:?}");
    }
    report + "--- trees: - gnu, + ours\n" + &trees
}

fn told(
    Observed {
        program, outcome, ..
    }: &Observed,
) -> (Status, [Vec<String>; 2]) {
    let streams = [&outcome.stdout, &outcome.stderr];
    let lines = streams.map(|stream| normal_lines(stream, program));
    (outcome.status, lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        run::Outcome,
        snapshot::{Attributes, Snapshot},
        tree::Scratch,
    };

    #[test]
    fn names_of_commands_and_the_order_of_lines_do_not_matter() {
        for (ours, gnus, is_same) in [
            (
                "rmz: b\nrmz: a\nTry 'rmz --help' for more\n",
                "rm: a\nTry 'rm --help' for more\nrm: b\n",
                true,
            ),
            ("/x/rmz: a", "rm: a", true),
            // Prompts are on one line.
            (
                "rmz: remove 'b'? rmz: remove 'a'? ",
                "rm: remove 'a'? rm: remove 'b'? ",
                true,
            ),
            (
                "rmz: cannot remove 'rmz: '",
                "rm: cannot remove 'rm: '",
                false,
            ),
            ("rmz: no", "rm: yes", false),
            ("rmz: no\nrmz: no", "rm: no", false),
        ] {
            let lines = |output: &str, name: &str| normal_lines(output.as_bytes(), name.as_ref());
            let [ours, gnus] = [lines(ours, "/x/rmz"), lines(gnus, "rm")];
            assert_eq!(ours == gnus, is_same, "{ours:?} {gnus:?}");
        }
    }

    #[test]
    fn outcomes_differ_in_each_part() {
        let scratch = Scratch::new();
        let observed = |program: &str, (code, stdout, stderr): (i32, &str, &str)| Observed {
            program: program.into(),
            outcome: Outcome {
                status: Status::Exit(code),
                stdout: stdout.into(),
                stderr: stderr.into(),
            },
            tree: Snapshot::of(&scratch, Attributes::NAMES),
        };
        let same =
            |ours, gnus| difference(&observed("rmz", ours), &observed("rm", gnus)).is_empty();
        assert!(same((1, "x", "rmz: y"), (1, "x", "rm: y")));
        assert!(!same((1, "", ""), (0, "", "")));
        assert!(!same((0, "x", ""), (0, "y", "")));
        assert!(!same((0, "", "x"), (0, "", "y")));
    }
}
