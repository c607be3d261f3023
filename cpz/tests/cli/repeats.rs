//! Failures with one reason. At a terminal, cpz writes ten of them and counts the others.

use std::{fs::File, io::Write};

use testkit::{
    or_skip,
    run::{Outcome, Run, Stream},
    tree::{Scratch, Tree, wide_dirs},
};

use crate::support::{CP, CPZ, with_few_inodes};

/// Twelve sources that do not exist, and twelve that are their own dest.
fn two_reasons() -> Vec<String> {
    let missing = (0..12).map(|number| format!("none{number}"));
    let same = (0..12).map(|number| format!("into/d{number}/.."));
    missing.chain(same).collect()
}

fn tree() -> Scratch {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    for number in 0..12 {
        tree.dir(format!("into/d{number}"));
    }
    scratch
}

/// Returns how many lines contain `text`.
fn count(outcome: &Outcome, text: &str) -> usize {
    let all = outcome.stdout_text() + &outcome.stderr_text();
    all.lines().filter(|line| line.contains(text)).count()
}

#[test]
fn a_terminal_shows_ten_failures_with_each_reason_and_counts_the_others() {
    let scratch = tree();
    let run = Run::new(CPZ).args(two_reasons()).arg("into");
    let outcome = or_skip!(run.current_dir(&scratch).at_terminal()).fails();
    let text = outcome.stdout_text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(count(&outcome, "cannot stat"), 10, "{outcome}");
    assert_eq!(count(&outcome, "' are the same file"), 10, "{outcome}");
    let expected = [
        "cpz: 2 more failures: No such file or directory",
        "cpz: 2 more failures: source and dest are the same file",
        "cpz: 24 failures; 0 entries copied",
    ];
    assert_eq!(lines[20..], expected, "{outcome}");
}

#[test]
fn one_failure_too_many_is_counted_in_the_singular() {
    let scratch = tree();
    let names = &two_reasons()[..11];
    let run = Run::new(CPZ).args(names).arg("into");
    let outcome = or_skip!(run.current_dir(&scratch).at_terminal()).output();
    let counted = "cpz: 1 more failure: No such file or directory";
    assert_eq!(outcome.stdout_text().lines().nth(10), Some(counted));
}

#[test]
fn a_pipe_gets_each_failure() {
    let scratch = tree();
    let run = Run::new(CPZ).args(two_reasons()).arg("into");
    let outcome = run.current_dir(&scratch).fails();
    assert_eq!(outcome.stderr_text().lines().count(), 24, "{outcome}");
    assert_eq!(count(&outcome, "more failure"), 0, "{outcome}");
}

#[test]
fn a_file_gets_each_failure_although_stdout_is_a_terminal() {
    let scratch = tree();
    let run = Run::new("sh")
        .args(["-c", r#"exec "$@" 2>log"#, "sh", CPZ])
        .args(two_reasons())
        .arg("into");
    or_skip!(run.current_dir(&scratch).at_terminal()).fails();
    let log = std::fs::read_to_string(scratch.at("log")).expect("a log");
    assert_eq!(log.lines().count(), 24, "{log}");
}

#[test]
fn a_link_called_cp_writes_each_failure_at_a_terminal() {
    let scratch = tree();
    let link = CP.link("cp");
    let run = Run::new(link.path()).args(two_reasons()).arg("into");
    let outcome = or_skip!(run.current_dir(&scratch).at_terminal()).fails();
    assert_eq!(outcome.stdout_text().lines().count(), 24, "{outcome}");
}

#[test]
fn totals_include_the_failures_that_were_only_counted() {
    let scratch = tree();
    let run = Run::new(CPZ)
        .arg("--stats=json")
        .args(two_reasons())
        .arg("into");
    let outcome = or_skip!(run.current_dir(&scratch).at_terminal()).output();
    assert_eq!(count(&outcome, r#""failures":24,"#), 1, "{outcome}");
}

#[test]
fn warnings_are_never_only_counted() {
    let scratch = Scratch::with("f= into/");
    let run = Run::new(CPZ).args(["f"; 20]).arg("into");
    let outcome = or_skip!(run.current_dir(&scratch).at_terminal()).output();
    outcome.assert_status(0);
    assert_eq!(count(&outcome, "more than once"), 19, "{outcome}");
    assert_eq!(outcome.stdout_text().lines().count(), 19, "{outcome}");
}

#[test]
#[ignore = "slow"]
fn a_full_filesystem_is_reported_in_a_few_lines() {
    let full = or_skip!(with_few_inodes());
    let scratch = Scratch::new();
    wide_dirs(scratch.at("d"), 2_000);
    let run = Run::new(CPZ).arg("d").arg(full.path());
    let outcome = or_skip!(run.current_dir(&scratch).at_terminal()).fails();
    assert_eq!(count(&outcome, "cannot create directory"), 10, "{outcome}");
    let text = outcome.stdout_text();
    let lines: Vec<&str> = text.lines().collect();
    let [.., counted, last] = lines[..] else {
        panic!("{outcome}");
    };
    assert_eq!(lines.len(), 12, "{outcome}");
    let number = |line: &str, text: &str| -> u64 {
        let number = line
            .strip_prefix("cpz: ")
            .and_then(|line| line.strip_suffix(text));
        let number = number.unwrap_or_else(|| panic!("{line:?}"));
        number.replace(',', "").parse().expect("a number")
    };
    let more = number(counted, " more failures: No space left on device");
    let (failures, _) = last.split_once(';').expect("a list");
    assert_eq!(number(failures, " failures"), more + 10, "{outcome}");
}

#[test]
fn a_prompt_is_asked_and_answered_after_failures_that_are_only_counted() {
    let scratch = tree();
    scratch.plant("f=new into/f=old");
    let run = Run::new(CPZ).arg("-i").args(two_reasons()).words("f into");
    let mut live = or_skip!(run.current_dir(&scratch).at_terminal()).start();
    live.wait_for(Stream::Stdout, "overwrite 'into/f'? ");
    live.write("y\n");
    live.wait_for(Stream::Stdout, "2 more failures: No such file or directory");
    let outcome = live.finish();
    outcome.assert_status(1);
    let dest = std::fs::read(scratch.at("into/f")).expect("a dest");
    assert_eq!(dest, b"new");
}

#[test]
fn counts_follow_an_interrupt() {
    let scratch = tree();
    Tree::at(&scratch).fifo("fifo");
    let run = Run::new(CPZ)
        .arg("--copy-contents")
        .args(two_reasons())
        .words("fifo into");
    let mut live = or_skip!(run.current_dir(&scratch).at_terminal()).start();
    // Waits until cpz opens the other end, and then until it has read nearly everything.
    let mut fifo = File::create(scratch.at("fifo")).expect("a reader");
    fifo.write_all(&vec![1; 9 << 20]).expect("a reader");
    live.write("\x03");
    let piece = vec![1; 1 << 20];
    while fifo.write_all(&piece).is_ok() {}
    live.wait_for(Stream::Stdout, "2 more failures: No such file or directory");
    live.wait_for(Stream::Stdout, "cpz: interrupted: ");
    let outcome = live.finish();
    assert_eq!(count(&outcome, "cannot stat"), 10, "{outcome}");
}
