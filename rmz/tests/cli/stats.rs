//! `--stats`, and the line that counts many failures at a terminal.

use std::path::Path;

use testkit::{
    or_skip,
    run::{Outcome, Run},
    tree::Scratch,
};

use crate::support::{RM, RMZ, rmz};

fn tree() -> Scratch {
    Scratch::with("t/a=1234 t/sub/b=5 t/link->a t/fifo<fifo>")
}

fn run(scratch: &Scratch, args: &[&str]) -> Outcome {
    rmz(scratch, args).output()
}

#[test]
fn totals_as_json() {
    RM.rows(
        r#"
        # They are the last line of stdout.
        t/a=1234 t/sub/b=5 t/link->a t/fifo<fifo>
        rmz --stats=json t none
        > {"version":1,"entries":6,"files":2,"directories":2,"symlinks":1,"hard_links":0,"other":1,"unknown":0,"bytes":5,"reflinked_bytes":0,"kept":0,"compared":0,"merged":0,"deleted":0,"not_deleted":0,"failures":1,"declined":0,...
        ! cannot remove 'none': No such file or directory
        = -t
        # A run without work has totals, too.
        rmz -f --stats=json
        > {"version":1,"entries":0,..."failures":0,"declined":0,...
        rmz -I --stats=json t
        > {"version":1,"entries":0,..."failures":0,"declined":1,...
        ! remove 1 argument recursively?
        ? 0
        rmz --stats=json --files0-from=none
        > {"version":1,"entries":0,..."failures":1,"declined":0,...
        ! cannot open 'none' for reading: No such file or directory
        rmz --stats=json --exclude-from=none t
        > {"version":1,"entries":0,..."failures":1,"declined":0,...
        ! cannot open 'none' for reading: No such file or directory
        # A wrong command line has none.
        rmz --stats=json
        ! missing operand
        ! try
        # Names of a list that cannot be read are failures.
        rmz --stats=json --files0-from=- << t/a\0\0\c
        > {"version":1,"entries":1,..."bytes":4,..."failures":1,...
        ! -:2: invalid zero-length file name
        = -t/a
        # Answers of no are counted.
        f=12345
        rmz -i --stats=json f << n
        > {"version":1,"entries":0,..."failures":0,"declined":1,...
        ! remove regular file 'f'?
        ? 0
        # Those of a dry run say so.
        rmz --dry-run --stats=json f
        > would remove 'f'
        > would remove 1 entry, 5 B
        > {"version":1,"entries":1,..."bytes":5,..."dry_run":true,..."#,
    );
}

#[test]
fn a_table_on_stderr_counts_what_was_removed() {
    for flag in ["--stats", "--stats=text"] {
        let outcome = run(&tree(), &[flag, "t"]);
        outcome.assert_status(0);
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

/// After the failures, the line says that nothing was removed.
#[test]
fn failures_of_a_dry_run_are_counted_without_removals() {
    let names: Vec<String> = (0..11).map(|number| format!("none{number}")).collect();
    let scratch = tree();
    let run = Run::new(RMZ).words("--dry-run t/a").args(&names);
    let outcome = or_skip!(run.current_dir(&scratch).at_terminal()).fails();
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
        let run = Run::new(RMZ).words("t/a").args(&names[..failures]);
        let outcome = or_skip!(run.current_dir(&scratch).at_terminal()).fails();
        assert_eq!(outcome.stdout_text().lines().last(), Some(last));
    }
}

#[test]
fn a_terminal_shows_ten_failures_with_one_reason() {
    let names: Vec<String> = (0..30).map(|number| format!("none{number}")).collect();
    for (program, lines) in [(Path::new(RMZ), 12), (&RM.link("rm").path(), 30)] {
        let scratch = tree();
        let run = Run::new(program).args(&names).current_dir(&scratch);
        let outcome = or_skip!(run.at_terminal()).fails();
        let counted = "rmz: 20 more failures: No such file or directory";
        let text = outcome.stdout_text();
        assert_eq!(text.lines().count(), lines, "{outcome}");
        let is_counted = text.lines().any(|line| line == counted);
        assert_eq!(is_counted, lines == 12, "{outcome}");
    }
}

#[test]
fn a_link_called_rm_counts_no_failures() {
    let (rm, scratch) = (RM.link("rm"), tree());
    let names: Vec<String> = (0..11).map(|number| format!("none{number}")).collect();
    let run = Run::new(rm.path()).args(&names).current_dir(&scratch);
    let outcome = or_skip!(run.at_terminal()).output();
    assert_eq!(outcome.stdout_text().lines().count(), 11, "{outcome}");
}
