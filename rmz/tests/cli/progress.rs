//! `--progress`, which GNU's rm does not have.

use std::{path::Path, process::Command};

use testkit::{
    or_skip,
    probe::{Fs, LoopMount, Skip},
    run::{Live, Outcome, Run, Signal, Status, Stream},
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

/// Returns the totals at the end of `stderr`, without the time and the rate, and the text before them.
///
/// # Panics
/// If there are none.
#[track_caller]
fn totals(stderr: &str) -> (&str, &str) {
    let lines = stderr.strip_suffix("/s)\n").expect("totals with a rate");
    let start = lines.rfind(['\n', '\r', 'K']).map_or(0, |end| end + 1);
    let (totals, _) = lines[start..].split_once(" in ").expect("totals");
    (&stderr[..start], totals)
}

#[test]
fn a_short_run_shows_only_totals_and_only_if_told_to() {
    let scratch = two_trees();
    let outcome = run(&scratch, &["--progress=always", "t", "u"]);
    assert_eq!(outcome.status, Status::Exit(0));
    assert_eq!(outcome.stdout, b"");
    assert_eq!(totals(&outcome.stderr_text()), ("", "4 entries removed"));
    assert!(!scratch.path().join("t").exists());
}

#[test]
fn totals_follow_messages() {
    let scratch = two_trees();
    let outcome = run(&scratch, &["--progress=always", "-v", "none", "t"]);
    assert_eq!(outcome.status, Status::Exit(1));
    let complaint = "rmz: cannot remove 'none': No such file or directory\n";
    assert_eq!(
        totals(&outcome.stderr_text()),
        (complaint, "2 entries removed")
    );
    assert_eq!(
        outcome.stdout_text(),
        "removed 't/a'\nremoved directory 't'\n"
    );
}

#[test]
fn the_environment_chooses_for_rmz_and_an_option_overrides_it() {
    let run = |program: &std::path::Path, value: &str, args: &[&str]| {
        let scratch = two_trees();
        let run = Run::new(program).args(args).arg("t");
        run.env("RMZ_PROGRESS", value)
            .current_dir(&scratch)
            .output()
    };
    let (rm, rmz) = (RM.link("rm"), std::path::Path::new(RMZ));
    let always = run(rmz, "always", &[]).stderr_text();
    assert_eq!(totals(&always), ("", "2 entries removed"));
    run(rmz, "always", &["--progress=never"]).assert_success();
    run(rmz, "often", &["--progress=never"]).assert_success();
    for value in ["auto", "never", ""] {
        run(rmz, value, &[]).assert_success();
    }
    for value in ["always", "often"] {
        run(&rm.path(), value, &["-r"]).assert_success();
    }
    let outcome = run(rmz, "often", &[]);
    assert_eq!(outcome.status, Status::Exit(1));
    let complaint = "rmz: invalid argument 'often' for 'RMZ_PROGRESS'\n";
    assert!(outcome.stderr_text().starts_with(complaint), "{outcome}");
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

/// A shell command that runs rmz at a terminal of this width, and its environment.
fn at_a_terminal(columns: u16, term: &str, args: &str) -> Run {
    let line = format!("stty cols {columns}; exec {RMZ} {args}");
    Run::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", term)
}

#[test]
fn a_line_shows_the_directory_and_the_portion_and_totals_stay() {
    let mut held = or_skip!(Frozen::with_files(&["t/a"]));
    held.thaw();
    let scratch = two_trees();
    let t = held.path().join("t").display().to_string();
    held.freeze();
    let args = format!("--progress t u {t}");
    let mut live = at_a_terminal(100, "xterm", &args)
        .current_dir(&scratch)
        .start();
    // Four entries are gone, and two are left.
    live.wait_for(Stream::Stdout, "] 66%  4 of 6 entries, ");
    held.thaw();
    let outcome = live.finish();
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    let shown = outcome.stdout_text().replace("\r\n", "\n");
    let (before, text) = totals(&shown);
    assert!(before.ends_with(CLEAR), "{shown:?}");
    assert_eq!(text, "6 entries removed");
}

#[test]
fn a_background_job_draws_nothing_over_what_the_user_types() {
    let mut held = or_skip!(Frozen::with_files(&["f"]));
    // With job control, the shell stays in the foreground. The line is due after one second.
    let script = format!("set -m; {RMZ} --progress f & sleep 2; echo typed; wait $!");
    let line = format!("bash -c '{script}'");
    let mut live = Run::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm")
        .current_dir(held.path())
        .start();
    live.wait_for(Stream::Stdout, "typed\r\n");
    held.thaw();
    let outcome = live.finish();
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    let shown = outcome.stdout_text();
    assert!(
        shown.starts_with("typed\r\n") && !shown.contains("entr"),
        "{shown:?}"
    );
    assert!(!held.path().join("f").exists());
}

#[test]
fn leaves_questions_whole() {
    let mut held = or_skip!(Frozen::with_files(&["t/a", "t/b"]));
    held.thaw();
    let mut live = held.start(&["-i", "--progress=always", "t"]);
    let question = |words: &str| format!("{RMZ}: {words} ");
    live.wait_for(Stream::Stderr, &question("descend into directory 't'?"));
    live.write("y\n");
    live.wait_for(Stream::Stderr, "remove regular empty file 't/");
    live.wait_for(Stream::Stderr, "'? ");
    held.freeze();
    live.write("y\n");
    // The line is not on that of the question, although a pipe echoes no newline.
    live.wait_for(Stream::Stderr, "entries, 0/s");
    live.wait_for(Stream::Stderr, "\n");
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
    let (questions, _) = shown.rsplit_once("? ").unwrap();
    assert!(questions.split("? ").skip(1).all(is_whole), "{shown:?}");
    assert!(!held.path().join("t").exists());
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
        // A run that begins later writes a line.
        let mut control = held.start(&["--progress=always", "g"]);
        control.wait_for(Stream::Stderr, ", 0/s");
        held.thaw();
        control.finish();
        assert_eq!(live.finish().stderr_text(), complaint, "{flag}");
    }
}

#[test]
fn sigusr1_is_answered_before_a_run_and_in_a_dry_run() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("a", "");
    for args in [&["-I", "a"][..], &["--dry-run", "-i", "a"]] {
        let mut live = Run::new(RMZ).args(args).current_dir(&scratch).start();
        live.wait_for(Stream::Stderr, "? ");
        live.signal(Signal::USR1);
        live.wait_for(Stream::Stderr, "0 entries removed so far in ");
        live.write("n\n");
        assert_eq!(live.finish().status, Status::Exit(0));
    }
}

#[test]
fn sigusr1_is_answered_at_a_prompt_and_ends_rm() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("a", "").file("b", "");
    let run = Run::new(RMZ).args(["-i", "a", "b"]).current_dir(&scratch);
    let mut live = run.start();
    live.wait_for(Stream::Stderr, "'a'? ");
    live.write("y\n");
    live.wait_for(Stream::Stderr, "'b'? ");
    live.signal(Signal::USR1);
    live.wait_for(Stream::Stderr, "\n1 entry removed so far in 0.");
    live.wait_for(Stream::Stderr, "/s)\n");
    live.write("y\n");
    assert_eq!(live.finish().status, Status::Exit(0));
    assert!(!scratch.path().join("b").exists());

    Tree::at(scratch.path()).file("a", "");
    let rm = RM.link("rm");
    let run = Run::new(rm.path()).args(["-i", "a"]);
    let mut live = run.current_dir(&scratch).start();
    live.wait_for(Stream::Stderr, "'a'? ");
    live.signal(Signal::USR1);
    assert_eq!(live.finish().status, Status::Signal(10));
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
