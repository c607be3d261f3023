//! Failures with one reason. At a terminal, cpz writes ten of them and counts the others.

use std::{fs::File, io::Write};

use testkit::{
    or_skip,
    run::{Outcome, Run, Stream},
    tree::{Scratch, wide_dirs},
};

use crate::support::{CP, CPZ, cpz, with_few_inodes};

/// Twelve sources that do not exist, and twelve that are their own dest.
const TWO_REASONS: &str = "none{0..11} into/d{0..11}/..";

fn tree() -> Scratch {
    Scratch::with("into/d{0..11}/")
}

/// Returns how many lines contain `text`.
fn count(outcome: &Outcome, text: &str) -> usize {
    let all = outcome.stdout_text() + &outcome.stderr_text();
    all.lines().filter(|line| line.contains(text)).count()
}

#[test]
fn a_terminal_shows_ten_failures_with_each_reason_and_counts_the_others() {
    let scratch = tree();
    let run = cpz(&scratch, TWO_REASONS).words("into --stats=json");
    let outcome = or_skip!(run.at_terminal()).fails();
    let text = outcome.stdout_text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(count(&outcome, "cannot stat"), 10, "{outcome}");
    assert_eq!(count(&outcome, "' are the same file"), 10, "{outcome}");
    let expected = [
        "cpz: 2 more failures: No such file or directory",
        "cpz: 2 more failures: source and dest are the same file",
    ];
    assert_eq!(lines[20..22], expected, "{outcome}");
    assert!(lines[22].contains(r#""failures":24,"#), "{outcome}");
    assert_eq!(lines[23..], ["cpz: 24 failures; 0 entries copied"]);
}

#[test]
fn one_failure_too_many_is_counted_in_the_singular() {
    let scratch = tree();
    let run = cpz(&scratch, "none{0..10} into");
    let outcome = or_skip!(run.at_terminal()).output();
    let counted = "cpz: 1 more failure: No such file or directory";
    assert_eq!(outcome.stdout_text().lines().nth(10), Some(counted));
}

#[test]
fn a_pipe_a_file_and_a_link_called_cp_show_each_failure() {
    let (scratch, link) = (tree(), CP.link("cp"));
    let all = |run: Run| run.words(TWO_REASONS).arg("into").current_dir(&scratch);
    let to_pipe = all(Run::new(CPZ)).fails().stderr_text();
    // Stdout is a terminal.
    let to_file = all(Run::new("sh").args(["-c", r#"exec "$@" 2>log"#, "sh", CPZ]));
    or_skip!(to_file.at_terminal()).fails();
    let to_file = std::fs::read_to_string(scratch.at("log")).expect("a log");
    let by_link = or_skip!(all(Run::new(link.path())).at_terminal()).fails();
    for text in [to_pipe, to_file, by_link.stdout_text()] {
        assert_eq!(text.lines().count(), 24, "{text}");
        assert!(!text.contains("more failure"), "{text}");
    }
}

#[test]
fn warnings_are_never_only_counted() {
    let scratch = Scratch::with("f= into/");
    let run = cpz(&scratch, ["f"; 20]).arg("into");
    let outcome = or_skip!(run.at_terminal()).output();
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
    let run = cpz(&scratch, "d").arg(full.path());
    let outcome = or_skip!(run.at_terminal()).fails();
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
    let run = cpz(&scratch, "-i").words(TWO_REASONS).words("f into");
    let mut live = or_skip!(run.at_terminal()).start();
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
    scratch.plant("fifo<fifo>");
    let run = cpz(&scratch, "--copy-contents").words(TWO_REASONS);
    let mut live = or_skip!(run.words("fifo into").at_terminal()).start();
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
