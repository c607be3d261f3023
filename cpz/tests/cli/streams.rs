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
    run::{Link, normal_lines},
    tree::{Scratch, wide},
};

use crate::support::{CP, CPZ};

const SIGPIPE: i32 = 13;

fn closed_pipe() -> PipeWriter {
    let (reader, writer) = io::pipe().expect("a pipe");
    drop(reader);
    writer
}

/// Runs a shell script with `"$0"` for the program, in a directory that holds 300 files in `d`.
fn run_into_closed_pipe(script: &str, program: &Path) -> (Output, Scratch) {
    let scratch = Scratch::new();
    wide(scratch.at("d"), 300);
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
fn dies_by_sigpipe_as_cp_does() {
    let script = r#"exec "$0" -rv d new"#;
    for program in [CPZ.into(), or_skip!(gnu("cp"))] {
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
    let script = r#"trap '' PIPE; exec "$0" -rv d new"#;
    let [ours, gnu] = [CPZ.into(), or_skip!(gnu("cp"))].map(|program| {
        let (output, scratch) = run_into_closed_pipe(script, &program);
        let lines = normal_lines(&output.stderr, &program);
        let copied = std::fs::read_dir(scratch.at("new")).map(Iterator::count);
        (output.status.code(), lines, copied.ok())
    });
    assert_eq!(ours, gnu);
    assert_eq!(ours.1, ["CMD: write error: Broken pipe"]);
}

#[test]
fn streams_that_are_full_or_closed() {
    for (redirection, rows) in [
        (">/dev/full", "cpz (-v d new|--help)"),
        (">&-", "cpz d new"),
        ("2>&-", "cpz missing d ."),
        ("<&-", "cpz d new"),
    ] {
        let script = format!(r#"exec "$@" {redirection}"#);
        let table = CP.table().setting(|parity| parity.in_script(&script));
        table.rows(&format!("d/f=content \n {rows}"));
    }
}

#[test]
fn a_closed_stream_is_neither_copied_nor_written_to() {
    let cp = Link::named("cp", CPZ);
    for script in [
        r#""$0" /dev/stdin old <&-"#,
        r#""$0" -t . /dev/stdin <&-"#,
        r#""$0" new /dev/stdout >&-"#,
        r#""$0" new /proc/self/fd/2 2>&-"#,
    ] {
        let scratch = Scratch::with("old=old new=new");
        let status = Command::new("sh")
            .args(["-c", script])
            .arg(cp.path())
            .current_dir(&scratch)
            .stderr(Stdio::null())
            .status();
        assert_eq!(status.unwrap().code(), Some(1), "{script}");
        let kept = std::fs::read_to_string(scratch.at("old")).unwrap();
        assert_eq!(kept, "old", "{script}");
        assert!(!scratch.at("stdin").exists(), "{script}");
    }
}
