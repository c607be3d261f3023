//! `--progress`, which GNU's rm does not have.

use std::{path::Path, process::Command};

use testkit::{
    or_skip,
    probe::{Fs, LoopMount, Skip},
    run::{Live, Outcome, Run, Status, Stream},
    tree::{Scratch, Tree},
};

use crate::support::{RM, RMZ};

/// Clears the line.
const CLEAR: &str = "\r\x1b[2K";

fn two_trees() -> Scratch {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("t/a", "").file("u/b", "");
    scratch
}

#[track_caller]
fn run(scratch: &Scratch, args: &[&str]) -> Outcome {
    Run::new(RMZ).args(args).current_dir(scratch).output()
}

/// Returns `stderr` after the last line of progress was cleared.
///
/// # Panics
/// If there was none.
#[track_caller]
fn after_drawing(stderr: &str) -> &str {
    let (drawn, rest) = stderr.rsplit_once(CLEAR).expect("a line that was cleared");
    assert!(drawn.contains(" removed, "), "{stderr:?}");
    rest
}

#[test]
fn draws_and_clears_a_line() {
    let scratch = two_trees();
    let outcome = run(&scratch, &["--progress=always", "t", "u"]);
    assert_eq!(outcome.status, Status::Exit(0));
    assert_eq!(outcome.stdout, b"");
    assert_eq!(after_drawing(&outcome.stderr_text()), "");
    assert!(!scratch.path().join("t").exists());
}

#[test]
fn leaves_messages_whole() {
    let scratch = two_trees();
    let outcome = run(&scratch, &["--progress=always", "-v", "none", "t"]);
    assert_eq!(outcome.status, Status::Exit(1));
    let complaint = "rmz: cannot remove 'none': No such file or directory\n";
    assert!(
        after_drawing(&outcome.stderr_text().replace(complaint, "")).is_empty(),
        "{outcome}"
    );
    assert!(
        outcome
            .stderr_text()
            .contains(&format!("{CLEAR}{complaint}"))
    );
    assert_eq!(
        outcome.stdout_text(),
        "removed 't/a'\nremoved directory 't'\n"
    );
}

/// A small filesystem on which removals wait, until it is thawed.
struct Frozen {
    mount: LoopMount,
    is_frozen: bool,
}

impl Frozen {
    /// Makes the filesystem with `files`, and freezes it.
    fn with_files(files: &[&str]) -> Result<Self, Skip> {
        let mut new = Self {
            mount: LoopMount::new(Fs::Ext4, 1)?,
            is_frozen: false,
        };
        for file in files {
            Tree::at(new.path()).file(file, "");
        }
        new.freeze();
        Ok(new)
    }

    fn path(&self) -> &Path {
        self.mount.path()
    }

    fn freeze(&mut self) {
        self.fsfreeze("--freeze");
        self.is_frozen = true;
    }

    fn thaw(&mut self) {
        self.fsfreeze("--unfreeze");
        self.is_frozen = false;
    }

    fn fsfreeze(&self, flag: &str) {
        let status = Command::new("fsfreeze").arg(flag).arg(self.path()).status();
        assert!(status.is_ok_and(|s| s.success()), "fsfreeze {flag} failed");
    }

    #[track_caller]
    fn start(&self, args: &[&str]) -> Live {
        Run::new(RMZ).args(args).current_dir(self.path()).start()
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        // After a failure the filesystem is still frozen, and cannot be unmounted.
        if self.is_frozen {
            self.thaw();
        }
    }
}

#[test]
fn leaves_questions_whole() {
    let mut held = or_skip!(Frozen::with_files(&["t/a", "t/b"]));
    held.thaw();
    let mut live = held.start(&["-i", "--progress=always", "t"]);
    let question = |words: &str| format!("{CLEAR}{RMZ}: {words} ");
    live.wait_for(Stream::Stderr, &question("descend into directory 't'?"));
    live.write("y\n");
    live.wait_for(Stream::Stderr, "remove regular empty file 't/");
    live.wait_for(Stream::Stderr, "'? ");
    held.freeze();
    live.write("y\n");
    // The line is not on that of the question, although a pipe echoes no newline.
    live.wait_for(Stream::Stderr, "\n0 removed, ");
    held.thaw();
    live.wait_for(Stream::Stderr, &question("remove regular empty file"));
    live.write("y\n");
    live.wait_for(Stream::Stderr, "remove directory 't'? ");
    live.write("y\n");
    let outcome = live.finish();
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    let shown = outcome.stderr_text();
    // The line of progress neither replaces a question nor follows it on its line.
    let is_whole =
        |after: &str| after.is_empty() || after.starts_with('\n') || after.starts_with(RMZ);
    assert!(shown.split("? ").skip(1).all(is_whole), "{shown:?}");
    assert!(!held.path().join("t").exists());
}

/// Returns the rates of all drawings in `shown`.
fn rates(shown: &str) -> Vec<&str> {
    shown
        .split(" removed, ")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once("/s, ")?.0))
        .collect()
}

#[test]
fn shows_whole_numbers() {
    let mut held = or_skip!(Frozen::with_files(&["f"]));
    let scratch = Scratch::new();
    // Use operands, because each of them is counted at once.
    let operands: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    for operand in &operands {
        Tree::at(scratch.path()).file(operand, "");
    }
    let mut live = Run::new(RMZ)
        .args(["--progress=always", "--threads=1"])
        .args(&operands)
        .arg(held.path().join("f"))
        .current_dir(&scratch)
        .start();
    live.wait_until(Stream::Stderr, |new| {
        let shown = String::from_utf8_lossy(new);
        let has_rate = rates(&shown).iter().any(|&rate| rate != "0");
        has_rate.then_some(new.len())
    });
    held.thaw();
    let outcome = live.finish();
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    let is_whole = |rate: &&str| rate.chars().all(|c| c.is_ascii_digit() || c == ',');
    let shown = outcome.stderr_text();
    assert!(rates(&shown).iter().all(is_whole), "{shown:?}");
}

#[test]
fn draws_only_at_a_terminal_unless_told_otherwise() {
    for flag in ["--progress", "--progress=auto", "--progress=never"] {
        let mut held = or_skip!(Frozen::with_files(&["f", "g"]));
        let mut live = held.start(&[flag, "none/none", "f"]);
        // The kernel finds that this operand is missing before it waits for the filesystem to be
        // thawed.
        let complaint = "rmz: cannot remove 'none/none': No such file or directory\n";
        live.wait_for(Stream::Stderr, complaint);
        // A run that begins later draws, and draws again.
        let mut control = held.start(&["--progress=always", "g"]);
        control.wait_for(Stream::Stderr, "0 removed, ");
        control.wait_for(Stream::Stderr, "0 removed, ");
        held.thaw();
        control.finish();
        assert_eq!(live.finish().stderr_text(), complaint, "{flag}");
    }
}

#[test]
fn the_last_value_wins() {
    let outcome = run(
        &two_trees(),
        &["--progress=always", "--progress=never", "t"],
    );
    outcome.assert_success();
}

#[test]
fn refuses_other_words() {
    let outcome = run(&two_trees(), &["--progress=often", "t"]);
    assert_eq!(outcome.status, Status::Exit(1));
    let words = format!(
        "rmz: invalid argument 'often' for '--progress'\n\
         Valid arguments are:\n  - 'auto'\n  - 'always'\n  - 'never'\n\
         Try '{RMZ} --help' for more information.\n"
    );
    assert_eq!(outcome.stderr_text(), words);
}

#[test]
fn is_unknown_to_rm() {
    let (rm, scratch) = (RM.link("rm"), two_trees());
    let outcome = Run::new(rm.path())
        .args(["--progress", "t"])
        .current_dir(&scratch)
        .output();
    assert_eq!(outcome.status, Status::Exit(1));
    let stderr = outcome.stderr_text();
    assert!(
        stderr.contains(": unrecognized option '--progress'\n"),
        "{stderr}"
    );
}

#[test]
fn cannot_be_abbreviated() {
    let outcome = run(&two_trees(), &["--progres", "t"]);
    let stderr = outcome.stderr_text();
    assert!(
        stderr.contains(": unrecognized option '--progres'\n"),
        "{stderr}"
    );
}
