//! Closed pipes and full streams.

use std::{
    io::{self, PipeWriter},
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Command, Output, Stdio},
};

use testkit::{
    or_skip,
    probe::gnu,
    run::{Run, Status, normal_lines},
    tree::{Scratch, Tree, wide},
};

use crate::support::{RM, RMZ};

const SIGPIPE: i32 = 13;

fn closed_pipe() -> PipeWriter {
    let (reader, writer) = io::pipe().expect("a pipe");
    drop(reader);
    writer
}

/// Runs a shell script with `"$0"` for the program, in a directory that holds 1 000 files in `d`.
fn run_into_closed_pipe(script: &str, program: &Path) -> (Output, Scratch) {
    let scratch = Scratch::new();
    wide(scratch.path().join("d"), 1_000);
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(program)
        .current_dir(&scratch)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(closed_pipe())
        .stderr(Stdio::piped())
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .expect("sh runs");
    (output, scratch)
}

#[test]
fn dies_by_sigpipe_as_rm_does() {
    let script = r#"exec "$0" -rv d"#;
    for program in [RMZ.into(), or_skip!(gnu("rm"))] {
        let (output, _) = run_into_closed_pipe(script, &program);
        let program = program.display();
        assert_eq!(
            output.status.signal(),
            Some(SIGPIPE),
            "{program}: {output:?}"
        );
        assert_eq!(output.stderr, b"", "{program}");
    }
}

#[test]
fn reports_a_broken_pipe_if_sigpipe_is_ignored() {
    let script = r#"trap '' PIPE; exec "$0" -rv d"#;
    let [ours, gnu] = [RMZ.into(), or_skip!(gnu("rm"))].map(|program| {
        let (output, scratch) = run_into_closed_pipe(script, &program);
        let lines = normal_lines(&output.stderr, &program);
        (
            output.status.code(),
            lines,
            scratch.path().join("d").exists(),
        )
    });
    assert_eq!(ours, gnu);
    assert_eq!(ours.1, ["CMD: write error: Broken pipe"]);
}

#[test]
fn head_ends_it() {
    let scratch = Scratch::new();
    // rmz prints more than a pipe holds, so it has to wait for head.
    wide(scratch.path().join("d"), 10_000);
    let output = Command::new("sh")
        .args(["-c", r#"{ "$0" -v d; echo "$?" >&2; } | head -n 1"#, RMZ])
        .current_dir(&scratch)
        .output()
        .expect("sh runs");
    assert_eq!(output.stdout.iter().filter(|&&b| b == b'\n').count(), 1);
    assert!(output.stdout.starts_with(b"removed 'd/f"));
    let status = String::from_utf8_lossy(&output.stderr);
    assert_eq!(status, "141\n", "the status after SIGPIPE");
}

fn some(tree: &Tree) {
    tree.file("d/f", "");
}

#[test]
fn help_to_a_full_device_fails() {
    let wrapped = RM.parity().in_script(r#"exec "$@" >/dev/full"#);
    wrapped.args(["--help"]).check(some);
}

#[test]
fn needs_no_stdout_if_there_is_nothing_to_print() {
    let wrapped = RM.parity().in_script(r#"exec "$@" >&-"#);
    wrapped.args(["d"]).check(some);
}

#[test]
fn reports_a_closed_stdout_as_rm_does() {
    let wrapped = RM.parity().in_script(r#"exec "$@" >&-"#);
    wrapped.args(["-v", "d"]).check(some);
}

#[test]
fn needs_no_stderr() {
    let wrapped = RM.parity().in_script(r#"exec "$@" 2>&-"#);
    wrapped.args(["missing", "d"]).check(some);
}

#[test]
fn needs_no_stdin() {
    let wrapped = RM.parity().in_script(r#"exec "$@" <&-"#);
    wrapped.args(["missing", "d"]).check(some);
}

#[test]
fn loses_errors_on_a_full_stderr() {
    let wrapped = RM.parity().in_script(r#"exec "$@" 2>/dev/full"#);
    wrapped.args(["missing", "d"]).check(some);
}

#[test]
fn gives_a_reason_for_lost_lines_only_if_the_last_write_fails() {
    let build = |tree: &Tree| {
        tree.file("f", "").file("g", "");
    };
    for redirection in [">/dev/full", ">&-", "1</dev/null"] {
        for operands in [&["f", "none"][..], &["f", "none", "g"], &["f", "g"]] {
            RM.parity()
                .in_script(&format!(r#"exec "$@" {redirection}"#))
                .args(["-v"])
                .args(operands)
                .check(build);
        }
    }
}

#[test]
fn prompts_do_not_flush_the_lines_before_them() {
    let both = r#""$@" >both 2>&1; sed -E 's/rmz?: //g' both; unlink both"#;
    RM.parity()
        .in_script(both)
        .args(["-iv", "f", "d"])
        .stdin("y\n".repeat(4))
        .check(|tree| {
            tree.file("f", "").file("d/f", "");
        });
}

#[test]
fn reports_a_stdout_that_cannot_be_written_to() {
    let build = |tree: &Tree| {
        tree.file("d/f", "");
    };
    let parity = RM.parity().in_script(r#"exec "$@" 1</dev/null"#);
    parity.clone().args(["-v", "d"]).check(build);
    parity.args(["d"]).check(build);
}

/// Before its own `main`, Rust's runtime looks at the streams, and would abort.
#[test]
fn a_filter_of_system_calls_that_refuses_to_look_at_the_streams_does_no_harm() {
    or_skip!(Run::new(RMZ).arg("-f").calls());
    for refused in ["poll,ppoll", "fcntl"] {
        for error in ["EPERM", "EACCES", "ENOSYS"] {
            let scratch = Scratch::new();
            Tree::at(scratch.path()).file("d/f", "");
            let inject = format!("inject={refused}:error={error}");
            let outcome = Run::new("strace")
                .args(["-f", "-o", "/dev/null", "-e", &inject, RMZ, "none", "d"])
                .current_dir(&scratch)
                .output();
            assert_eq!(outcome.status, Status::Exit(1), "{refused} {error}");
            let expected = "rmz: cannot remove 'none': No such file or directory\n";
            assert_eq!(outcome.stderr_text().replace(RMZ, "rmz"), expected);
            assert!(!scratch.path().join("d").exists(), "{refused} {error}");
        }
    }
}
