//! Under the name `rm`, rmz has the defaults of rm.

use std::path::Path;

use testkit::{
    or_skip,
    probe::newest_gnu,
    run::{Run, normal_lines},
    tree::{Scratch, Tree},
};

use crate::support::{RM, RMZ, rmz};

#[test]
fn a_link_called_rm_is_rm() {
    RM.rows(
        r"
        # It takes no directory, also by force, and refuses dots and roots like directories.
        d/f= f= e/ l->d
        rm d f
        rm d
        ! cannot remove 'd': Is a directory
        rm -f d f e l/
        rm . d/.. d/. d/
        # It is recursive if told to.
        rm (-r|-Rf|--recur) d
        # It knows no extension.
        rm (--threads=2|--no-config|--no-recursive|--stats|--progress|--dry-run|--exclude=x|--exclude-from=x) f
        rm (--gitignore|-r --detach|-r --reap|-h) f
        rm --files0-from=- << f\0
        rmz --gitignore f
        ! unrecognized option '--gitignore'
        ! try
        # It obeys the environment as to threads, and reads no configuration.
        RMZ_THREADS=3 rm -r d
        RMZ_CONFIG=config rm f",
    );
}

#[test]
fn a_link_of_another_name_is_rmz_and_speaks_under_it() {
    let (link, scratch) = (RM.link("purge"), Scratch::new());
    scratch.plant("d/f=");
    let run = Run::new(link.path()).words("--threads=2 d missing");
    let outcome = run.current_dir(&scratch).output();
    let lines = normal_lines(&outcome.stderr, &link.path());
    let expected = "CMD: cannot remove 'missing': No such file or directory";
    assert_eq!(lines, [expected]);
    outcome.assert_status(1);
    assert!(!scratch.at("d").exists());
}

#[test]
fn messages_name_a_command_called_by_a_path_as_rm_does() {
    let rm = or_skip!(newest_gnu("rm"));
    let said = |program: &Path, args: &[&str]| {
        let scratch = Scratch::new();
        Tree::at(&scratch).symlink("bin/rm", program).plant("f=");
        let run = Run::new("sh").args(["-c", r#"exec ./bin/rm "$@""#, "sh"]);
        let run = run.args(args).stdin("n\n").current_dir(&scratch);
        let outcome = run.output();
        (outcome.status, outcome.stderr_text())
    };
    for args in [
        &["missing"][..],
        &[],
        &["--bogus"],
        &["-x"],
        &["--interactive=x"],
        &["--preserve-root=x"],
        &["--no-preserve-roo"],
        &["-ri", "f", "."],
    ] {
        assert_eq!(said(RMZ.as_ref(), args), said(&rm, args), "{args:?}");
    }
}

#[test]
fn help_and_version_go_to_stdout() {
    let scratch = Scratch::with("f=");
    for (option, text) in [
        ("--help", "Usage: "),
        ("--version", env!("CARGO_PKG_VERSION")),
    ] {
        let run = rmz(&scratch, ["f", option]);
        let shown = run.output().assert_success().stdout_text();
        assert!(shown.contains(text), "{shown}");
        assert!(scratch.at("f").exists());
    }
}
