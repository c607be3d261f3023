//! `--progress`, which GNU's cp does not have.
//!
//! A source that is a FIFO blocks a run until the test has seen the expected text on stderr.

use std::{fs::File, thread, time::Duration};

use testkit::{
    or_skip,
    probe::{FuseMount, Habits},
    run::{Input, Live, Outcome, Run, Signal, Status, Stream},
    tree::{Scratch, Tree},
};

use crate::support::{CPZ, cpz};

/// Clears the line.
const CLEAR: &str = "\r\x1b[2K";

/// The totals of a run that copies a file of five bytes and an empty FIFO.
const TOTALS: &str = "2 entries copied, 5 B in ";

/// A tree with a FIFO that blocks a copy.
struct Held {
    scratch: Scratch,
}

impl Held {
    fn new() -> Self {
        Self::with("")
    }

    /// Adds entries to the tree.
    fn with(words: &str) -> Self {
        let scratch = Scratch::with("fifo<fifo> f=12345 g= d/");
        scratch.plant(words);
        Self { scratch }
    }

    #[track_caller]
    fn start(&self, args: &str) -> Live {
        self.run(args).start()
    }

    fn run(&self, args: &str) -> Run {
        cpz(&self.scratch, "--copy-contents").words(args)
    }

    /// Starts cpz with a terminal as all three streams. Its output appears on stdout, and the files `tty` and `pid`
    /// name the terminal and the process.
    #[track_caller]
    fn start_at_a_terminal(&self, columns: u16, term: &str, args: &str) -> Live {
        let line = format!(
            "stty cols {columns}; tty >tty; echo $$ >pid; exec {CPZ} --copy-contents {args}"
        );
        let run = Run::new("script").args(["-qec", &line, "/dev/null"]);
        run.env("TERM", term).current_dir(&self.scratch).start()
    }

    /// Waits until the first file is copied.
    #[track_caller]
    fn wait_for_first(&self, live: &mut Live) {
        live.wait_for_effect(|| self.scratch.at("d/f").exists());
    }

    /// Lets the run go on by opening and closing a FIFO.
    fn release(&self, fifo: &str) {
        let fifo = self.scratch.at(fifo);
        // Use a thread, because opening waits until the run opens the FIFO too, and a failed run never does.
        thread::spawn(move || File::options().write(true).open(fifo).map(drop));
    }

    #[track_caller]
    fn finish(&self, live: Live) -> Outcome {
        self.release("fifo");
        live.finish()
    }
}

/// Returns the drawings of a line among the output of a terminal.
fn drawings(shown: &str) -> Vec<&str> {
    let starts = shown.split('\r').skip(1);
    starts
        .filter_map(|rest| Some(rest.split_once("\x1b[K")?.0))
        .filter(|line| !line.contains(['\n', '\x1b']))
        .collect()
}

#[test]
fn a_line_fits_the_terminal_before_and_after_it_is_resized() {
    let held = Held::new();
    let mut live = held.start_at_a_terminal(30, "xterm", "--progress f fifo d");
    live.wait_for(Stream::Stdout, "50%  5 of 5 B, ETA 0:0");
    let tty = std::fs::read_to_string(held.scratch.at("tty")).unwrap();
    let resize = |columns: &str| {
        let args = ["-F", tty.trim(), "cols", columns];
        Run::new("stty").args(args).output().assert_success();
    };
    resize("80");
    live.wait_for(Stream::Stdout, "] 50%  1 entry, 5 of 5 B, ");
    resize("200");
    live.wait_for(Stream::Stdout, "[============>           ] 50%  ");
    resize("30");
    live.wait_for(Stream::Stdout, "\r50%  5 of 5 B, ETA ");
    let outcome = held.finish(live);
    outcome.assert_status(0);
    let shown = outcome.stdout_text();
    let drawings = drawings(&shown);
    let widths: Vec<_> = drawings.iter().map(|line| line.len()).collect();
    assert!(
        widths[0] < 30 && widths.iter().all(|&width| width < 200),
        "{shown:?}"
    );
    let (before, totals) = shown.rsplit_once(CLEAR).expect("a cleared line");
    assert!(before.ends_with("\x1b[K"), "{shown:?}");
    assert!(
        totals.starts_with(TOTALS) && totals.ends_with("/s)\r\n"),
        "{shown:?}"
    );
    let copy = held.scratch.at("d/f");
    assert_eq!(std::fs::read(copy).unwrap(), b"12345");
}

#[test]
fn a_line_names_the_source_directory_in_which_a_worker_is() {
    let held = Held::with("s/fifo<fifo>");
    let mut live = held.start_at_a_terminal(80, "xterm", "--progress fifo s d");
    // The line asks for a directory, and then one is entered.
    live.wait_for(Stream::Stdout, "]  0%  ");
    held.release("fifo");
    live.wait_for(Stream::Stdout, "  s\x1b[K");
    held.release("s/fifo");
    assert_eq!(live.finish().status, Status::Exit(0));
}

#[test]
fn a_terminal_without_a_cursor_gets_whole_lines() {
    let held = Held::new();
    let mut live = held.start_at_a_terminal(30, "dumb", "--progress f fifo d");
    live.wait_for(Stream::Stdout, "1 entry, 5 ");
    live.wait_for(Stream::Stdout, "\r\n");
    let shown = held.finish(live).stdout_text();
    assert!(!shown.contains('\x1b'), "{shown:?}");
    assert!(
        shown.lines().last().unwrap().starts_with(TOTALS),
        "{shown:?}"
    );
}

#[test]
#[ignore = "slow"]
fn an_interrupt_removes_the_line() {
    for releases in [true, false] {
        let held = Held::new();
        let mut live = held.start_at_a_terminal(80, "xterm", "--progress f fifo g d");
        live.wait_for(Stream::Stdout, "] 33%  ");
        live.write("\x03");
        live.wait_for(Stream::Stdout, "^C");
        let outcome = match releases {
            true => held.finish(live),
            // The run is stuck in a call, and the signal ends it after a while.
            false => live.finish(),
        };
        let shown = outcome.stdout_text();
        let (_, last) = shown.rsplit_once(CLEAR).expect("a cleared line");
        let expected = "cpz: interrupted: ";
        match releases {
            true => assert!(last.starts_with(expected), "{shown:?}"),
            false => assert_eq!(last, "cpz: interrupted\r\n", "{shown:?}"),
        }
    }
}

#[test]
fn nothing_is_drawn_at_a_terminal_if_told_not_to_and_in_a_file_unless_told_to() {
    let runs = [Held::new(), Held::new(), Held::new()];
    let [at_terminal, in_file, control] = &runs;
    let mut lives = [
        at_terminal.start_at_a_terminal(80, "xterm", "--progress=never none fifo d"),
        in_file.start("--progress none fifo f d"),
    ];
    let complaint = "cpz: cannot stat 'none': No such file or directory\n";
    for (live, stream) in lives.iter_mut().zip([Stream::Stdout, Stream::Stderr]) {
        live.wait_for(stream, complaint.trim_end());
    }
    // A run that begins now draws its line after the usual delay. So one that began earlier would have drawn one, too.
    let mut later = control.start("--progress=always f fifo d");
    later.wait_for(Stream::Stderr, "1 entry, 5 ");
    control.finish(later);
    for (held, live) in runs.iter().zip(lives) {
        let outcome = held.finish(live);
        let shown = outcome.stdout_text().replace('\r', "") + &outcome.stderr_text();
        assert_eq!(shown, complaint);
    }
}

#[test]
fn messages_and_lines_of_a_log_are_whole() {
    let held = Held::new();
    let mut live = held.start("--progress=always f none fifo d");
    live.wait_for(Stream::Stderr, "1 entry, 5 ");
    live.wait_for(Stream::Stderr, "\n");
    let outcome = held.finish(live);
    outcome.assert_status(1);
    let shown = outcome.stderr_text();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines[0],
        "cpz: cannot stat 'none': No such file or directory"
    );
    let line = without_percentage(lines[1]);
    assert!(line.starts_with("1 entry, 5 "), "{shown:?}");
    assert!(lines.last().unwrap().starts_with(TOTALS), "{shown:?}");
    assert!(!shown.contains(['\x1b', '\r']), "{shown:?}");
}

#[test]
fn sources_that_are_skipped_count_as_done() {
    let held = Held::with("d/f=");
    let mut live = held.start_at_a_terminal(80, "xterm", "--progress -n f fifo d");
    live.wait_for(Stream::Stdout, "] 50%  0 entries, 0 of 5 B, ");
    held.finish(live);
}

#[test]
fn sigusr1_is_answered_with_and_without_progress() {
    let answer = "1 entry copied so far, 5 B in ";
    for args in ["f fifo d", "--progress=always f fifo d"] {
        let held = Held::new();
        let mut live = held.start(args);
        held.wait_for_first(&mut live);
        // The file exists a moment before it is counted.
        let mut is_counted = false;
        while !is_counted {
            live.signal(Signal::USR1);
            let counted = std::cell::Cell::new(false);
            live.wait_until(Stream::Stderr, |new| {
                let end = new.iter().position(|&byte| byte == b'\n')? + 1;
                counted.set(new.starts_with(answer.as_bytes()));
                Some(end)
            });
            is_counted = counted.get();
        }
        // The FIFO was being opened, and that call goes on.
        let outcome = held.finish(live);
        outcome.assert_status(0);
        assert!(held.scratch.at("d/fifo").exists());
    }
}

#[test]
fn sigusr1_is_answered_while_a_list_is_read() {
    let scratch = Scratch::with("a= d/");
    let mut live = cpz(&scratch, "--files0-from=- d").start();
    // The message shows that cpz is reading.
    live.write("a\0\0");
    live.wait_for(Stream::Stderr, "zero-length file name\n");
    live.signal(Signal::USR1);
    live.wait_for(Stream::Stderr, "0 entries copied so far, 0 B in ");
    let outcome = live.finish();
    outcome.assert_status(1);
    assert!(scratch.at("d/a").exists());
}

#[test]
fn the_answer_to_sigusr1_takes_the_place_of_the_line() {
    let held = Held::new();
    let mut live = held.start_at_a_terminal(80, "xterm", "--progress f fifo d");
    live.wait_for(Stream::Stdout, "] 50%  ");
    let kill = Run::new("sh").words("-c 'kill -USR1 $(cat pid)'");
    let killed = kill.current_dir(&held.scratch).output();
    killed.assert_success();
    live.wait_for(
        Stream::Stdout,
        &format!("{CLEAR}1 entry copied so far, 5 B in "),
    );
    live.wait_for(Stream::Stdout, "/s)\r\n\r[");
    held.finish(live);
}

/// A test of rmz shows that the signal ends rm.
#[test]
fn a_sigusr1_that_was_ignored_stays_ignored() {
    let held = Held::new();
    let script = format!("trap '' USR1; exec {CPZ} --copy-contents f fifo d");
    let run = Run::new("sh").args(["-c", &script]);
    let mut live = run.current_dir(&held.scratch).start();
    held.wait_for_first(&mut live);
    live.signal(Signal::USR1);
    let outcome = held.finish(live);
    outcome.assert_success();
}

#[test]
fn leaves_questions_whole() {
    let held = Held::with("d/f= d/g=");
    let mut live = held.start("-i --progress=always f fifo g d");
    let question = |name: &str| format!("{CPZ}: overwrite 'd/{name}'? ");
    live.wait_for(Stream::Stderr, &question("f"));
    live.write("y\n");
    // The line is not on that of the question, although a pipe echoes no newline.
    live.wait_for(Stream::Stderr, "1 entry, 5 ");
    held.release("fifo");
    live.wait_for(Stream::Stderr, &format!("\n{}", question("g")));
    live.write("y\n");
    let outcome = live.finish();
    outcome.assert_status(0);
    let shown = outcome.stderr_text();
    let line = shown
        .strip_prefix(&*question("f"))
        .and_then(|rest| rest.strip_prefix('\n'));
    assert!(
        line.is_some_and(|line| without_percentage(line).starts_with("1 entry, 5 ")),
        "{shown:?}"
    );
}

/// Returns a line without the percentage, which it has only if everything is counted in time.
fn without_percentage(line: &str) -> &str {
    line.split_once("%  ").map_or(line, |(_, line)| line)
}

#[test]
fn the_first_line_has_a_percentage_if_counting_is_quick() {
    let has_one = || {
        let held = Held::new();
        let mut live = held.start("--progress=always f fifo d");
        live.wait_for(Stream::Stderr, "1 entry, 5 ");
        held.finish(live).stderr_text().starts_with("50%  1 entry")
    };
    // On a busy machine, counting two files may take longer.
    assert!((0..10).any(|_| has_one()));
}

#[test]
fn directories_that_exist_are_done_but_not_copied() {
    let held = Held::with("s/fifo<fifo> d/s/");
    let mut live = held.start_at_a_terminal(80, "xterm", "--progress s d");
    live.wait_for(Stream::Stdout, "] 50%  0 of 2 entries");
    held.release("s/fifo");
    assert_eq!(live.finish().status, Status::Exit(0));
}

#[test]
fn before_everything_is_counted_the_percentage_is_an_estimate() {
    let served = or_skip!(FuseMount::with(Habits::default()));
    let names: String = (0..30).map(|n| format!("{n}/a= {n}/b= ")).collect();
    Tree::at(served.path()).plant(names);
    served.set_latency(Duration::from_millis(10));
    let held = Held::new();
    let path = served.path().display();
    let mut live = held.start(&format!("--threads=1 --progress=always f fifo {path} d"));
    // All files together take 10 ms for each of 60 names, and more for their directories.
    live.wait_for(Stream::Stderr, "~0%  1 entry, 5 B");
    served.set_latency(Duration::ZERO);
    let outcome = held.finish(live);
    assert_eq!(outcome.status, Status::Exit(0));
    assert!(outcome.stderr_text().contains(" entries copied, "));
}

#[test]
fn the_line_is_below_a_question_whatever_was_typed() {
    // The second \u{4} ends a line without a newline. The terminal itself shows a typed newline.
    for (typed, newline) in [("\u{4}", "\n"), ("n\u{4}\u{4}", "\n"), ("n\n", "")] {
        let held = Held::with("d/f=");
        let run = held.run("-i --progress=always f fifo d");
        let mut live = run.input(Input::Terminal).start();
        let question = format!("{CPZ}: overwrite 'd/f'? ");
        live.wait_for(Stream::Stderr, &question);
        live.write(typed);
        live.wait_for(Stream::Stderr, "0 entries, ");
        let shown = held.finish(live).stderr_text();
        let (_, after) = shown.split_once(&question).expect("a question");
        let line = after.strip_prefix(newline).unwrap_or("\n");
        let is_line =
            !line.starts_with('\n') && without_percentage(line).starts_with("0 entries, ");
        assert!(is_line, "{typed:?}: {after:?}");
    }
}
