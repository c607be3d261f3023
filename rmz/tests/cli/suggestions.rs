//! Suggestions for options that rmz does not know.

use std::{path::Path, process::Command};

use testkit::{
    or_skip,
    probe::{Fs, LoopMount},
    run::{Link, Run},
    tree::{Scratch, Tree},
};

use crate::support::{RM, RMZ, rmz};

#[test]
fn a_misspelt_option_is_answered_at_a_terminal() {
    let rm = RM.link("rm");
    let ours = Path::new(RMZ);
    for (program, option, answer) in [
        (ours, "--recursve", "rmz: did you mean '--recursive'?\n"),
        (ours, "--xyz", ""),
        (&rm.path(), "--recursve", ""),
        (&rm.path(), "--stats", "rm: '--stats' is an option of rmz\n"),
    ] {
        let scratch = Scratch::with("f=");
        let run = Run::new(program).args([option, "f"]);
        let run = run.current_dir(&scratch);
        let outcome = or_skip!(run.at_terminal()).output();
        outcome.assert_status(1);
        let name = program.file_name().unwrap().display().to_string();
        let shown = outcome.stdout_text().replace("\r\n", "\n");
        let shown = shown.replace(&program.display().to_string(), &name);
        let expected = format!(
            "{name}: unrecognized option '{option}'\n{answer}Try '{name} --help' for more information.\n"
        );
        assert_eq!(shown, expected);
        assert!(scratch.at("f").exists());
    }
}

#[test]
fn a_log_gets_an_answer_unless_the_command_is_called_rm() {
    RM.rows(
        r"
        f= json= always=
        rmz --progres f
        ! unrecognized option '--progres'
        ! did you mean '--progress'? (extensions cannot be shortened)
        ! try
        rm --stats f
        ! unrecognized option '--stats'
        ! try
        # A value that is not attached is not an operand.
        rmz f --stats json
        ! write '--stats=json', or './json' for a file of that name
        ! try
        rmz f --progress always
        ! write '--progress=always', or './always' for a file of that name
        ! try",
    );
}

#[test]
fn the_letter_h_asks_for_help_unless_the_command_is_called_rm() {
    let help = |option| Run::new(RMZ).arg(option).output().stdout_text();
    assert_eq!(help("-vh"), help("--help"));
    assert!(help("--help").contains("\n  -h, --help "));
    RM.check_strict("-h", |_| {});
    let rm = Link::named("rm", RMZ);
    let strict = Run::new(rm.path()).arg("--help").output().stdout_text();
    assert!(strict.contains("\n      --help "), "{strict}");
}

#[test]
fn a_terminal_shows_a_hint_once() {
    let ext4 = or_skip!(LoopMount::new(Fs::Ext4, 8));
    Tree::at(ext4.path()).plant("d/f= d/g=");
    let chattr = |attribute| {
        let mut chattr = Command::new("chattr");
        let ran = chattr.args([attribute, "d/f", "d/g"]).current_dir(&ext4);
        assert!(ran.status().is_ok_and(|status| status.success()));
    };
    chattr("+i");
    let run = rmz(&ext4, "d");
    let shown = or_skip!(run.at_terminal()).output().stdout_text();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 3, "{shown}");
    let hint = "rmz: hint: 'chattr -R -i -a FILE', run by root, makes immutable files removable";
    assert_eq!(lines[2], hint);
    assert_eq!(run.output().stderr_text().lines().count(), 2);
    chattr("-i");
}
