//! `--stats`, and the line that counts many failures at a terminal.

use std::path::Path;

use testkit::{
    or_skip,
    run::{Outcome, Run, Status},
    tree::{Scratch, Tree},
};

use crate::support::{RM, RMZ};

fn tree() -> Scratch {
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .file("t/a", "1234")
        .file("t/sub/b", "5")
        .symlink("t/link", "a")
        .fifo("t/fifo");
    scratch
}

fn run(scratch: &Scratch, args: &[&str]) -> Outcome {
    Run::new(RMZ).args(args).current_dir(scratch).output()
}

/// Returns the beginning of a line of JSON, before the values that depend on time.
fn counts(line: &str) -> &str {
    line.split(r#","wall_seconds":"#).next().unwrap_or_default()
}

#[test]
fn a_table_on_stderr_counts_what_was_removed() {
    for flag in ["--stats", "--stats=text"] {
        let outcome = run(&tree(), &[flag, "t"]);
        assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
        assert_eq!(outcome.stdout, b"");
        let stderr = outcome.stderr_text();
        let rows: Vec<(&str, &str)> = stderr
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(label, value)| (label, value.trim()))
            .collect();
        let expected = [
            ("entries", "6"),
            ("files", "2"),
            ("directories", "2"),
            ("symbolic links", "1"),
            ("other types", "1"),
            ("size", "5 B"),
        ];
        let is_timed = |label: &str| label.contains("second");
        let counted: Vec<_> = rows
            .into_iter()
            .filter(|(label, _)| !is_timed(label))
            .collect();
        assert_eq!(counted, expected, "{outcome}");
    }
}

#[test]
fn json_is_the_last_line_of_stdout() {
    let outcome = run(&tree(), &["--stats=json", "-v", "t", "none"]);
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let stdout = outcome.stdout_text();
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines.len(), 7, "{outcome}");
    let expected = concat!(
        r#"{"version":1,"entries":6,"files":2,"directories":2,"symlinks":1,"hard_links":0,"other":1,"#,
        r#""unknown":0,"bytes":5,"reflinked_bytes":0,"kept":0,"compared":0,"deleted":0,"not_deleted":0,"failures":1,"declined":0,"discarded":0,"#,
        r#""cancelled":false,"dry_run":false"#
    );
    assert_eq!(counts(lines[6]), expected);
    let message = "rmz: cannot remove 'none': No such file or directory\n";
    assert_eq!(outcome.stderr_text(), message);
}

#[test]
fn names_of_a_list_that_cannot_be_read_count_as_failures() {
    let scratch = tree();
    let run = Run::new(RMZ).args(["--stats=json", "--files0-from=-"]);
    let outcome = run.stdin("t/a\0\0").current_dir(&scratch).output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let stdout = outcome.stdout_text();
    assert!(stdout.contains(r#""entries":1,"#), "{outcome}");
    assert!(stdout.contains(r#""failures":1,"#), "{outcome}");
}

#[test]
fn a_run_without_work_has_totals_too() {
    for (args, status, failures, declined) in [
        (&["-f", "--stats=json"][..], 0, 0, 0),
        (&["-I", "--stats=json", "t"], 0, 0, 1),
        (&["--stats=json", "--files0-from=none"], 1, 1, 0),
        (&["--stats=json", "--exclude-from=none", "t"], 1, 1, 0),
    ] {
        let outcome = run(&tree(), args);
        assert_eq!(outcome.status, Status::Exit(status), "{outcome}");
        let expected = format!(
            r#"{{"version":1,"entries":0,"files":0,"directories":0,"symlinks":0,"hard_links":0,"other":0,"unknown":0,"bytes":0,"reflinked_bytes":0,"kept":0,"compared":0,"deleted":0,"not_deleted":0,"failures":{failures},"declined":{declined},"discarded":0,"cancelled":false,"dry_run":false"#
        );
        assert_eq!(counts(&outcome.stdout_text()), expected, "{outcome}");
    }
    let outcome = run(&tree(), &["--stats=json"]);
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    assert_eq!(outcome.stdout_text(), "", "the command line is wrong");
}

#[test]
fn answers_of_no_are_counted() {
    for (answers, declined) in [("y\nn\nn\nn\nn\n", 4), ("n\n", 1), ("", 1)] {
        let scratch = tree();
        let run = Run::new(RMZ).args(["-i", "--stats=json", "t"]);
        let outcome = run.stdin(answers).current_dir(&scratch).output();
        let expected = format!(r#","declined":{declined},"#);
        assert!(outcome.stdout_text().contains(&expected), "{outcome}");
    }
}

#[test]
fn totals_of_a_dry_run_say_so() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("f", "12345");
    let outcome = run(&scratch, &["--dry-run", "--stats=json", "f"]);
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    let stdout = outcome.stdout_text();
    assert!(stdout.contains(r#""bytes":5,"#), "{outcome}");
    assert!(stdout.contains(r#""dry_run":true,"#), "{outcome}");
}

/// After the failures, the line says that nothing was removed.
#[test]
fn failures_of_a_dry_run_are_counted_without_removals() {
    let names: Vec<String> = (0..11).map(|number| format!("none{number}")).collect();
    let scratch = tree();
    let run = Run::new(RMZ).args(["--dry-run", "t/a"]).args(&names);
    let outcome = or_skip!(run.current_dir(&scratch).at_terminal()).output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let stdout = outcome.stdout_text();
    let last = stdout.lines().last();
    assert_eq!(
        last,
        Some("rmz: 11 failures; 0 entries removed"),
        "{outcome}"
    );
}

#[test]
fn many_failures_are_counted_at_a_terminal() {
    let names: Vec<String> = (0..11).map(|number| format!("none{number}")).collect();
    for (failures, last) in [
        (11, "rmz: 11 failures; 1 entry removed"),
        (10, "rmz: cannot remove 'none9': No such file or directory"),
    ] {
        let scratch = tree();
        let run = Run::new(RMZ).args(["t/a"]).args(&names[..failures]);
        let outcome = or_skip!(run.current_dir(&scratch).at_terminal()).output();
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        assert_eq!(outcome.stdout_text().lines().last(), Some(last));
    }
}

#[test]
fn a_terminal_shows_ten_failures_with_one_reason() {
    let names: Vec<String> = (0..30).map(|number| format!("none{number}")).collect();
    for (program, lines) in [(Path::new(RMZ), 12), (&RM.link("rm").path(), 30)] {
        let scratch = tree();
        let run = Run::new(program).args(&names).current_dir(&scratch);
        let outcome = or_skip!(run.at_terminal()).output();
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        let counted = "rmz: 20 more failures: No such file or directory";
        let text = outcome.stdout_text();
        assert_eq!(text.lines().count(), lines, "{outcome}");
        let is_counted = text.lines().any(|line| line == counted);
        assert_eq!(is_counted, lines == 12, "{outcome}");
    }
}

#[test]
fn a_script_gets_no_line_that_counts_failures() {
    let names: Vec<String> = (0..11).map(|number| format!("none{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let outcome = run(&tree(), &names);
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    assert_eq!(outcome.stderr_text().lines().count(), 11, "{outcome}");
}

#[test]
fn a_link_called_rm_has_no_stats_and_counts_no_failures() {
    RM.check_strict(["--stats", "f"], |tree| {
        tree.file("f", "");
    });
    let (rm, scratch) = (RM.link("rm"), tree());
    let names: Vec<String> = (0..11).map(|number| format!("none{number}")).collect();
    let run = Run::new(rm.path()).args(&names).current_dir(&scratch);
    let outcome = or_skip!(run.at_terminal()).output();
    assert_eq!(outcome.stdout_text().lines().count(), 11, "{outcome}");
}
