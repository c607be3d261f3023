//! Tests of messages, and of lines about a whole run.

use super::*;

/// The tests of cpz compare all other messages with those of cp.
#[test]
fn messages_about_rare_failures_are_those_of_cp() {
    let failed = |operation| Cause::Failed(operation, Errno::ACCESS.raw_os_error());
    for (cause, text) in [
        (
            failed(Operation::ReadLink),
            "cannot read symbolic link 'a': Permission denied",
        ),
        (
            failed(Operation::OpenTarget),
            "target directory 'a': Permission denied",
        ),
        (
            failed(Operation::Close),
            "failed to close 'a': Permission denied",
        ),
        (
            failed(Operation::SetMode),
            "setting permissions for 'a': Permission denied",
        ),
        (
            Cause::Refused(Refusal::SourceReplaced),
            "skipping file 'a', as it was replaced while being copied",
        ),
        (
            Cause::Refused(Refusal::HomeNotReached),
            "cannot copy to 'a': the machine that copies all its hard links does not see the directory yet",
        ),
    ] {
        let wording = Wording {
            tool: Tool::Copy,
            charset: Charset::Ascii,
            path: Path::new("a"),
            other: None,
        };
        assert_eq!(wording.describe(cause), text);
    }
}

#[test]
fn an_interrupt_says_how_much_was_done() {
    for (tool, entries, discarded, failures, line) in [
        (Tool::Remove, 0, 0, 0, "interrupted: 0 entries removed"),
        (
            Tool::Remove,
            1,
            0,
            1,
            "interrupted: 1 entry removed, 1 failure",
        ),
        (
            Tool::Copy,
            1_234_567,
            0,
            0,
            "interrupted: 1,234,567 entries copied",
        ),
        (
            Tool::Copy,
            28_826,
            2,
            1_000,
            "interrupted: 28,826 entries copied, 2 incomplete files removed, 1,000 failures",
        ),
        (
            Tool::Copy,
            100,
            1,
            0,
            "interrupted: 100 entries copied, 1 incomplete file removed",
        ),
    ] {
        let mut summary = Summary::default();
        (summary.entries, summary.discarded, summary.failures) = (entries, discarded, failures);
        assert_eq!(interrupted(tool, &summary), line);
    }
}

/// The tests of the commands have singular numbers.
#[test]
fn the_last_line_of_a_dry_run_says_how_much_would_be_done() {
    let mut summary = Summary::default();
    (summary.entries, summary.bytes, summary.deleted) = (28_826, 2 << 30, 1_000);
    assert_eq!(
        planned(Tool::Copy, &summary),
        "would copy 28,826 entries, 2.0 GiB, and delete 1,000"
    );
}
