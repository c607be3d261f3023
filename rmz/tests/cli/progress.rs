//! `--progress`, which GNU's rm does not have.

use std::{path::Path, process::Command};

use testkit::{
    or_skip,
    probe::{Fs, LoopMount, Skip},
    run::{Run, Signal, Status, Stream},
    tree::{Scratch, Tree},
};

use crate::support::{RM, RMZ, rmz};

/// Clears the line.
const CLEAR: &str = "\r\x1b[2K";

fn two_trees() -> Scratch {
    Scratch::with("t/a= u/b=")
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
fn totals_of_a_short_run() {
    RM.rows(
        r"
        # They are shown only if told to, after messages. An option overrides the environment.
        t/a= u/b=
        rmz --progress=always t u
        !! 4 entries removed in .../s)
        ? 0
        = -t -u
        rmz --progress=always -v none t
        ! cannot remove 'none': No such file or directory
        !! 2 entries removed in .../s)
        > removed 't/a'
        > removed directory 't'
        = -t
        RMZ_PROGRESS=always rmz t
        !! 2 entries removed in .../s)
        ? 0
        = -t
        RMZ_PROGRESS=always rmz --progress=never t
        = -t
        RMZ_PROGRESS=(auto|never|) rmz t
        = -t
        RMZ_PROGRESS=often rmz --progress=never t
        = -t
        RMZ_PROGRESS=(always|often) rm -r t
        # The last value counts. Other words are refused, and abbreviations.
        rmz --progress=always --progress=never t
        = -t
        rmz --progress=often t
        ! invalid argument 'often' for '--progress'
        !! Valid arguments are:
        !! - 'auto'
        !! - 'always'
        !! - 'never'
        ! try
        RMZ_PROGRESS=often rmz t
        ! invalid argument 'often' for 'RMZ_PROGRESS'
        !! Valid arguments are:
        !! - 'auto'
        !! - 'always'
        !! - 'never'
        ! try
        rmz --progres t
        ! unrecognized option '--progres'
        ! ...
        ! try",
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
    outcome.assert_status(0);
    let shown = outcome.stdout_text().replace("\r\n", "\n");
    let (before, text) = totals(&shown);
    assert!(before.ends_with(CLEAR), "{shown:?}");
    assert_eq!(text, "6 entries removed");
}

#[test]
#[ignore = "slow"]
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
    outcome.assert_status(0);
    let shown = outcome.stdout_text();
    assert!(
        shown.starts_with("typed\r\n") && !shown.contains("entr"),
        "{shown:?}"
    );
    assert!(!held.path().join("f").exists());
}

#[test]
fn sigusr1_is_answered_before_a_run_and_in_a_dry_run() {
    let scratch = Scratch::with("a=");
    for args in [&["-I", "a"][..], &["--dry-run", "-i", "a"]] {
        let mut live = rmz(&scratch, args).start();
        live.wait_for(Stream::Stderr, "? ");
        live.signal(Signal::USR1);
        live.wait_for(Stream::Stderr, "0 entries removed so far in ");
        live.write("n\n");
        assert_eq!(live.finish().status, Status::Exit(0));
    }
}

#[test]
fn sigusr1_is_answered_at_a_prompt_and_ends_rm() {
    let scratch = Scratch::with("a= b=");
    let run = rmz(&scratch, "-i a b");
    let mut live = run.start();
    live.wait_for(Stream::Stderr, "'a'? ");
    live.write("y\n");
    live.wait_for(Stream::Stderr, "'b'? ");
    live.signal(Signal::USR1);
    live.wait_for(Stream::Stderr, "\n1 entry removed so far in 0.");
    live.wait_for(Stream::Stderr, "/s)\n");
    live.write("y\n");
    assert_eq!(live.finish().status, Status::Exit(0));
    assert!(!scratch.at("b").exists());

    scratch.plant("a=");
    let rm = RM.link("rm");
    let run = Run::new(rm.path()).words("-i a");
    let mut live = run.current_dir(&scratch).start();
    live.wait_for(Stream::Stderr, "'a'? ");
    live.signal(Signal::USR1);
    assert_eq!(live.finish().status, Status::Signal(10));
}
