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
    run::normal_lines,
    tree::{Scratch, wide},
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
    wide(scratch.at("d"), 1_000);
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
        (output.status.code(), lines, scratch.at("d").exists())
    });
    assert_eq!(ours, gnu);
    assert_eq!(ours.1, ["CMD: write error: Broken pipe"]);
}

#[test]
fn head_ends_it() {
    let scratch = Scratch::new();
    // rmz prints more than a pipe holds, so it has to wait for head.
    wide(scratch.at("d"), 4_000);
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

#[test]
fn streams_that_are_full_closed_or_not_writable() {
    let with = |redirection: &str, rows: &str| {
        let script = format!(r#"exec "$@" {redirection}"#);
        let table = RM.table().setting(|parity| parity.in_script(&script));
        table.rows(&format!("d/f= f= g= \n {rows}"));
    };
    // A reason is given for lost lines only if the last write fails. The other operands are removed.
    for redirection in [">/dev/full", ">&-", "1</dev/null"] {
        with(
            redirection,
            "rmz (-v f none|-v f none g|-v f g|-v d|d|--help)",
        );
    }
    // No stdin is needed, and no stderr, on which errors are lost.
    for redirection in ["2>&-", "<&-", "2>/dev/full"] {
        with(redirection, "rmz missing d");
    }
}

#[test]
fn prompts_do_not_flush_the_lines_before_them() {
    let both = r#""$@" >both 2>&1; sed -E 's/rmz?: //g' both; unlink both"#;
    let table = RM.table().setting(|parity| parity.in_script(both));
    table.rows("f= d/f= \n rmz -iv f d << y y y y");
}

/// Before its own `main`, Rust's runtime looks at the streams, and would abort.
#[test]
fn a_filter_of_system_calls_that_refuses_to_look_at_the_streams_does_no_harm() {
    RM.rows(
        "d/f=
        fault:(poll,ppoll|fcntl):error=(EPERM|EACCES|ENOSYS) rmz none d
        ! cannot remove 'none': No such file or directory
        = -d",
    );
}
