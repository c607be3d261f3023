//! SIGINT, SIGTERM and SIGHUP: cpz cleans up, and ends by the same signal.
//!
//! A FIFO whose content is copied shows how far a run has come: a write to it returns when cpz has
//! read nearly all of the written bytes.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
};

use testkit::{
    habits, or_skip,
    probe::{Errno, FuseMount},
    run::{Live, Outcome, Run, Signal, Status, Stream, Words},
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ, complaint, cpz};

const SIGNALS: [(Signal, i32); 3] = [(Signal::INT, 2), (Signal::TERM, 15), (Signal::HUP, 1)];

/// Bytes that cpz copies before a test sends a signal: more than one piece.
pub(crate) const BEFORE: usize = 9 << 20;

/// Starts `run`, which copies the FIFO `fifo`, and returns when it has copied a part.
pub(crate) fn start_in_the_middle(run: &Run, dir: &Path) -> (Live, File) {
    let live = run.start();
    // Waits until cpz opens the other end.
    let mut fifo = File::create(dir.join("fifo")).unwrap();
    fifo.write_all(&vec![1; BEFORE]).unwrap();
    (live, fifo)
}

/// Runs cpz, which copies the FIFO `fifo` in `dir`, and sends it signals when it has copied a part.
pub(crate) fn interrupted(dir: impl AsRef<Path>, args: impl Words, signals: &[Signal]) -> Outcome {
    signalled(&cpz(&dir, args), dir.as_ref(), signals)
}

fn signalled(run: &Run, dir: &Path, signals: &[Signal]) -> Outcome {
    let (live, mut fifo) = start_in_the_middle(run, dir);
    for &signal in signals {
        live.signal(signal);
    }
    // Write until cpz closes the FIFO.
    let piece = vec![1; 1 << 20];
    while fifo.write_all(&piece).is_ok() {}
    live.finish()
}

#[test]
fn an_incomplete_file_is_removed_and_the_signal_ends_cpz() {
    for (signal, number) in SIGNALS {
        let scratch = Scratch::with("fifo<fifo> a=1 d/");
        let outcome = interrupted(&scratch, "--copy-contents a fifo d", &[signal]);
        assert_eq!(outcome.status, Status::Signal(number));
        assert_eq!(
            complaint(&outcome),
            "cpz: interrupted: 1 entry copied, 1 incomplete file removed\n"
        );
        assert!(!scratch.at("d/fifo").exists());
        assert_eq!(fs::read(scratch.at("d/a")).unwrap(), b"1");
    }
}

#[test]
#[ignore = "slow"]
fn a_terminal_shows_the_command_that_goes_on() {
    for (args, shown) in [
        (&["-a", "s dir", "d"][..], "--resume -T -a 's dir' d"),
        (&["-aT", "--resume", "s dir", "d"], "-aT --resume 's dir' d"),
        (&["-r", "s dir", "d"], ""),
        (&["-ab", "s dir", "d"], ""),
    ] {
        let scratch = Scratch::new();
        Tree::at(&scratch).file("s dir/f", vec![b'x'; 1 << 20]);
        // At this rate, the copy takes longer than any test.
        let run = Run::new("timeout")
            .args(["--foreground", "-s", "INT", "1", CPZ, "--max-rate=1K"])
            .args(args);
        let outcome = or_skip!(run.current_dir(&scratch).at_terminal()).output();
        let text = outcome.stdout_text().replace(CPZ, "cpz");
        let found: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("cpz: to go on: cpz "))
            .collect();
        let shown = shown.replacen("-a", "'--max-rate=1K' -a", 1);
        let expected: Vec<&str> = Some(&*shown)
            .filter(|line| !line.is_empty())
            .into_iter()
            .collect();
        assert_eq!(found, expected, "{text}");
    }
}

/// `timeout` signals its child and then the process group of the child.
#[test]
fn signals_that_come_together_are_one_request() {
    let scratch = Scratch::with("fifo<fifo> d/");
    let signals = SIGNALS.map(|(signal, _)| signal);
    let outcome = interrupted(&scratch, "--copy-contents fifo d", &signals);
    assert_eq!(
        complaint(&outcome),
        "cpz: interrupted: 0 entries copied, 1 incomplete file removed\n"
    );
    assert!(!scratch.at("d/fifo").exists());
}

#[test]
fn a_dest_that_existed_stays_and_its_backup_gets_its_name_back() {
    let scratch = Scratch::with("fifo<fifo> old=1 saved=2");
    let outcome = interrupted(&scratch, "-L --copy-contents fifo old", &[Signal::TERM]);
    assert_eq!(
        complaint(&outcome),
        "cpz: 'old' is incomplete\n\
         cpz: interrupted: 0 entries copied, 1 failure\n"
    );
    assert!(scratch.at("old").exists());

    let args = "--backup=simple --copy-contents fifo saved";
    let outcome = interrupted(&scratch, args, &[Signal::TERM]);
    assert_eq!(outcome.status, Status::Signal(15));
    assert_eq!(fs::read(scratch.at("saved")).unwrap(), b"2");
    assert!(!scratch.at("saved~").exists());
}

/// The content is behind the time of its source then, so that `-u` copies it again.
#[test]
fn an_incomplete_file_that_cannot_be_removed_is_reported_and_looks_old() {
    let busy = habits!(busy: Some(Errno::TXTBSY));
    let readonly = habits!(unlink_readonly: Some(Errno::PERM));
    for (habits, stays) in [(busy, false), (readonly, true)] {
        let place = or_skip!(FuseMount::with(habits));
        let scratch = Scratch::with("fifo<fifo> %444");
        let dest = place.at("new").display().to_string();
        let args = ["-L", "--copy-contents", "fifo", &dest];
        let outcome = interrupted(&scratch, args, &[Signal::INT]);
        assert_eq!(outcome.status, Status::Signal(2), "{outcome}");
        let said = complaint(&outcome);
        let stored = place.stored_at("new");
        if !stays {
            let expected = "cpz: interrupted: 0 entries copied, 1 incomplete file removed\n";
            assert_eq!(said, expected);
            assert!(!stored.exists());
            continue;
        }
        let expected = format!(
            "cpz: '{dest}' is incomplete\n\
             cpz: interrupted: 0 entries copied, 1 failure\n"
        );
        assert_eq!(said, expected);
        let source = fs::metadata(scratch.at("fifo")).unwrap();
        let left = fs::metadata(stored).unwrap();
        assert!(left.modified().unwrap() < source.modified().unwrap());
    }
}

#[test]
fn a_link_called_cp_says_nothing() {
    let scratch = Scratch::with("fifo<fifo> old=");
    let link = CP.link("cp");
    for dest in ["new", "old"] {
        let run = Run::new(link.path())
            .args(["fifo", dest])
            .current_dir(&scratch);
        let outcome = signalled(&run, scratch.path(), &[Signal::INT]);
        assert_eq!(outcome.status, Status::Signal(2));
        assert_eq!(outcome.stderr_text(), "");
        assert_eq!(scratch.at(dest).exists(), dest == "old");
    }
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let scratch = Scratch::new();
    Tree::at(&scratch).fifo("fifo");
    let script = format!("trap '' HUP; exec {CPZ} --copy-contents fifo d");
    let run = Run::new("sh").args(["-c", &script]).current_dir(&scratch);
    let (live, mut fifo) = start_in_the_middle(&run, scratch.path());
    live.signal(Signal::HUP);
    fifo.write_all(&vec![1; BEFORE]).unwrap();
    drop(fifo);
    let outcome = live.finish();
    outcome.assert_status(0);
    let bytes = scratch.at("d").metadata().unwrap().len();
    assert_eq!(bytes, 2 * BEFORE as u64);
}

#[test]
fn a_signal_ends_a_run_that_hangs_in_a_call() {
    let scratch = Scratch::with("fifo<fifo> d/ a=1");
    // Nothing ever opens the other end of the FIFO.
    let run = cpz(&scratch, "-v --copy-contents a fifo d");
    for signals in [&[Signal::TERM][..], &[Signal::INT, Signal::TERM]] {
        let live = run.start();
        while !scratch.at("d/a").exists() {
            std::thread::yield_now();
        }
        for &signal in signals {
            live.signal(signal);
        }
        let outcome = live.finish();
        // Which of two pending signals is handled first is up to the kernel.
        let possible = signals.iter().map(|signal| Status::Signal(signal.as_raw()));
        assert!(
            possible.into_iter().any(|status| status == outcome.status),
            "{outcome}"
        );
        fs::remove_file(scratch.at("d/a")).unwrap();
    }
}

#[test]
fn a_signal_at_a_prompt_is_the_last_answer() {
    let scratch = Scratch::with("a=1 b=2 d/a= d/b=");
    let run = cpz(&scratch, "-i a b d");
    let mut live = run.start();
    live.wait_for(Stream::Stderr, "overwrite 'd/a'? ");
    live.signal(Signal::INT);
    let outcome = live.finish();
    assert_eq!(outcome.status, Status::Signal(2), "{outcome}");
    assert!(!outcome.stderr_text().contains("d/b"), "{outcome}");
    assert_eq!(fs::read(scratch.at("d/a")).unwrap(), b"");
}

/// Without a limit, the copy would be complete long before.
#[test]
fn a_copy_that_waits_because_of_its_rate_ends_by_a_signal() {
    for rate in ["--max-rate=1/s", "--max-rate=1K"] {
        let scratch = Scratch::in_memory();
        let tree = Tree::at(&scratch);
        for number in 0..500 {
            tree.file(format!("s/{number}"), vec![1; 100 << 10]);
        }
        let copied = || fs::read_dir(scratch.at("d")).map_or(0, Iterator::count);
        let mut live = cpz(&scratch, [rate, "s", "d"]).start();
        live.wait_for_effect(|| copied() > 0);
        live.signal(Signal::INT);
        let outcome = live.finish();
        assert_eq!(outcome.status, Status::Signal(2), "{outcome}");
        assert!(copied() < 500, "{rate}");
    }
}

#[test]
fn a_run_that_is_ended_in_the_middle_says_so() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.file("a", vec![1; 1 << 20]).plant("b= d/");
    // SIGALRM comes when a system call has hung for two seconds. Its handler is bit 13 of the mask.
    // A run that is quicker has ended by then, and the shell may have noticed that.
    let script = r#""$0" --max-rate=1K a b d & while [ ! -e d/a ]; do :; done; kill -TERM $!
        until grep -qsE 'SigCgt:.*[2367abef]...$|State:.Z' /proc/$!/status || ! kill -0 $! 2>/dev/null; do :; done
        kill -ALRM $! 2>/dev/null; wait $!"#;
    let run = Run::new("sh").args(["-c", script, CPZ]);
    let outcome = run.current_dir(&scratch).output();
    assert_eq!(outcome.status, Status::Exit(128 + 15), "{outcome}");
    let said = complaint(&outcome);
    let is_last_word = said.starts_with("cpz: interrupted") && said.ends_with('\n');
    assert!(is_last_word, "{outcome}");
}
