//! `--progress`, which GNU's rm does not have.

use testkit::{
    or_skip,
    run::{Run, Signal, Status, Stream},
    tree::Scratch,
};

use crate::support::{RM, RMZ, rmz};

/// Clears the line.
const CLEAR: &str = "\r\x1b[2K";

#[test]
fn totals_of_a_short_run() {
    RM.rows(
        r"
        # They are shown only if told to, after messages. An option overrides the environment.
        t/a= u/b=
        rmz --progress=always t u
        !! 4 entries removed in .../s)
        ? 0
        = -t -u
        rmz --progress=always -v none t
        ! cannot remove 'none': No such file or directory
        !! 2 entries removed in .../s)
        > removed 't/a'
        > removed directory 't'
        = -t
        RMZ_PROGRESS=always rmz t
        !! 2 entries removed in .../s)
        ? 0
        = -t
        RMZ_PROGRESS=always rmz --progress=never t
        = -t
        RMZ_PROGRESS=(auto|never|) rmz t
        = -t
        RMZ_PROGRESS=often rmz --progress=never t
        = -t
        RMZ_PROGRESS=(always|often) rm -r t
        # The last value counts. Other words are refused, and abbreviations.
        rmz --progress=always --progress=never t
        = -t
        rmz --progress=often t
        ! invalid argument 'often' for '--progress'
        !! Valid arguments are:
        !! - 'auto'
        !! - 'always'
        !! - 'never'
        ! try
        RMZ_PROGRESS=often rmz t
        ! invalid argument 'often' for 'RMZ_PROGRESS'
        !! Valid arguments are:
        !! - 'auto'
        !! - 'always'
        !! - 'never'
        ! try
        rmz --progres t
        ! unrecognized option '--progres'
        ! ...
        ! try",
    );
}

#[test]
fn a_line_shows_the_portion_until_an_interrupt() {
    or_skip!(Run::new(RMZ).arg("-f").calls());
    // Two entries are gone before they could be counted.
    let scratch = Scratch::with("a= b= t/{0..30}=");
    let run = rmz(&scratch, "--progress --threads=1 a b t");
    let run = run.with_faults("unlinkat:delay_enter=1000000:when=3+");
    let mut live = or_skip!(run.at_terminal()).env("TERM", "xterm").start();
    for part in ["%  ", " of 34 entries, "] {
        live.wait_for(Stream::Stdout, part);
    }
    live.write("\x03");
    let shown = live.finish().stdout_text();
    let (_, last) = shown.rsplit_once(CLEAR).expect("a cleared line");
    // If the call takes long, the number of removed entries is left out.
    assert!(last.starts_with("rmz: interrupted"), "{shown:?}");
}

#[test]
#[ignore = "slow"]
fn a_background_job_draws_nothing_over_what_the_user_types() {
    let scratch = Scratch::with("t/{0..2}=");
    // With job control, the shell stays in the foreground. The line is due after one second.
    let script =
        format!("set -m; {RMZ} --max-rate=1/s --progress t & sleep 2; echo typed; wait $!");
    let run = Run::new("bash").args(["-c", &script]);
    let run = or_skip!(run.at_terminal()).env("TERM", "xterm");
    let outcome = run.current_dir(&scratch).output();
    outcome.assert_status(0);
    let shown = outcome.stdout_text();
    assert!(
        shown.starts_with("typed\r\n") && !shown.contains("entr"),
        "{shown:?}"
    );
    assert!(!scratch.at("t").exists());
}

#[test]
fn sigusr1_is_answered_at_each_prompt_and_ends_rm() {
    for (args, answered, count) in [
        ("-I a b", 0, "0 entries"),
        ("--dry-run -i a b", 0, "0 entries"),
        ("-i a b", 1, "1 entry"),
    ] {
        let scratch = Scratch::with("a= b=");
        let mut live = rmz(&scratch, args).start();
        live.wait_for(Stream::Stderr, "? ");
        for _ in 0..answered {
            live.write("y\n");
            live.wait_for(Stream::Stderr, "'b'? ");
        }
        live.signal(Signal::USR1);
        let answer = format!("\n{count} removed so far in ");
        live.wait_for(Stream::Stderr, &answer);
        live.wait_for(Stream::Stderr, "/s)\n");
        live.write("y\n");
        assert_eq!(live.finish().status, Status::Exit(0), "{args}");
        let is_left = args.starts_with("--dry-run");
        assert_eq!(scratch.at("b").exists(), is_left, "{args}");
    }

    let rm = RM.link("rm");
    let scratch = Scratch::with("a=");
    let run = Run::new(rm.path()).words("-i a");
    let mut live = run.current_dir(&scratch).start();
    live.wait_for(Stream::Stderr, "'a'? ");
    live.signal(Signal::USR1);
    assert_eq!(live.finish().status, Status::Signal(10));
}
