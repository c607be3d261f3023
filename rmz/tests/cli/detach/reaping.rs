//! `--reap`: which containers it removes, and which it leaves alone.

use super::*;

/// Returns a text with the names of containers in place of `C1` to `C8`.
fn named(text: &str) -> String {
    (1..=8).fold(text.to_owned(), |text, number| {
        text.replace(&format!("C{number}"), &format!(".rmz-{number:032x}"))
    })
}

#[test]
#[ignore = "slow"]
fn only_containers_are_reaped() {
    RM.rows(&named(
        "
        # Leftovers are reaped in any state.
        C1/C1= C1/d/f= C1 %700 C2/C2= C2 %700 C3/ %700 C4/ %300
        rmz --reap -v .
        > removed './C1/d/f'
        > removed directory './C1/d'
        > removed directory './C1'
        > removed directory './C2'
        > removed directory './C3'
        > removed directory './C4'
        = -C1 -C2 -C3 -C4
        # Nothing else is a container.
        precious/f= C1->precious C2= .rmz-x/f= sub/C3/f= C4/C4= C4/d/f= C4 %755
        rmz --reap .
        =
        # A directory with entries and the mode of a new container is reported and stays.
        C7/C7= C7/d/f= C7 %300
        rmz --reap .
        ! skipping './C7', whose mode is not 0700
        # So is a private directory without its mark.
        C7/d/f= (C7|C7/C8=) C7 %700
        rmz --reap .
        ! skipping './C7', which has no mark of rmz
        # Containers of other users are left alone. An ordinary user cannot even open them.
        C1/C1= C1/d/f= C1 %700 :1:1
        (root|user) rmz --reap .
        =
        # Directories that cannot be listed are reported.
        f= C1/C1= C1 %700
        rmz --reap missing f .
        ! cannot open directory 'missing': No such file or directory
        ! cannot open directory 'f': Not a directory
        = -C1
        rmz --reap -f missing
        =
        # The question says what is removed.
        C1/C1= C1/d/f= C1 %700
        rmz -I --reap . << n
        ! remove the hidden directories of --detach in 1 argument?
        ? 0
        rmz -I --reap . << y
        ! remove the hidden directories of --detach in 1 argument?
        ? 0
        = -C1",
    ));
}

#[test]
#[ignore = "slow"]
fn two_runs_may_reap_at_once() {
    let scratch = Scratch::new();
    for _ in 0..20 {
        for number in 1..=8 {
            let words = "C/C= C/d/a/f= C %700".replace('C', &format!("C{number}"));
            scratch.plant(named(&words));
        }
        for outcome in twice_at_once(&rmz(&scratch, "--reap .")) {
            outcome.assert_success();
        }
        assert_empty(&scratch);
    }
}

#[test]
#[ignore = "slow"]
fn an_error_of_the_filesystem_is_not_taken_for_a_foreign_directory() {
    let scratch = Scratch::with(named("C1/C1= C1/d/f= C1 %700"));
    let run = rmz(&scratch, "--reap .");
    let calls = or_skip!(run.calls());
    let look = calls
        .iter()
        .find(|call| call.name.contains("stat") && call.shown.contains(&named("C1")))
        .expect("the container is looked at");
    scratch.plant(named("C1/C1= C1/d/f= C1 %700"));
    let before = snapshot(&scratch);
    let outcome = run.with_fault(look, "error=EIO").fails();
    let message = "rmz: cannot remove './C1': Input/output error\n";
    assert_eq!(outcome.stderr_text(), named(message));
    assert!(before.diff(&snapshot(&scratch)).is_empty());
}
