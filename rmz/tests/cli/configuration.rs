//! `RMZ_CONFIG`: options of a user's own for every run.

use testkit::run::{Parity, Table};

use crate::support::{RM, RMZ};

/// Starts a table whose rows have this file of options.
fn with<'a>(config: &'a str) -> Table<'a> {
    let table = RM
        .table()
        .build(move |tree| _ = tree.file("config", config));
    table.setting(|parity: Parity| parity.env("RMZ_CONFIG", "config"))
}

#[test]
fn options_that_suit_every_run() {
    // Options of the file take effect, and those of the command line win.
    with("# always\n\n  \n--threads=1\n--progress=always").rows(
        r"
        f=
        rmz f
        !! 1 entry removed in ...
        ? 0
        = -f
        (rmz --progress=never|rmz --no-config|rm) f
        = -f
        rm --no-config f
        ! ...
        ! try",
    );
    with("--progress=never\n--threads=2\n--exclude=a\n--exclude-from=patterns\n--stats=json\n")
        .rows(
            r#"
        patterns='b\n' t/{a,b,c}=
        rmz t
        > {"version":2,...
        = -t/c"#,
        );
    with("--stats\n").rows(
        r"
        # A conflict with the command line is explained.
        f=
        rmz --detach f
        ! cannot combine --stats with --detach or --reap; the file that RMZ_CONFIG names sets an option, and --no-config leaves it out
        ! try
        rmz --detach --dry-run f
        ! cannot combine --dry-run with --detach or --reap
        ! try",
    );
}

#[test]
fn only_extensions_are_accepted() {
    for line in [
        "--recursive",
        "-f",
        "-rf",
        "g",
        "--",
        "--progres",
        " --progress",
        "--no-config",
        "--help",
        // These make a run do something else.
        "--dry-run",
        "--detach",
        "--reap",
        "--files0-from=list",
        "--exclude-from=-",
        "--exclude-from=/dev/stdin",
        "--exclude-from=/dev//fd/0",
        "--exclude-from=/proc/self/fd/0",
    ] {
        let refusal = format!("config:2: '{line}' is not an extension that can be set here");
        with(&format!("#\n{line}\n")).rows(&format!("f= \n rmz f \n ! {refusal}"));
    }
    for (line, quoted, hint) in [
        ("--exclude *.o", "--exclude *.o", "; write '--exclude=*.o'"),
        (
            "--threads\t 2 ",
            "--threads'$'\\t'' 2 ",
            "; write '--threads=2'",
        ),
        ("--threads = 2", "--threads = 2", "; write '--threads=2'"),
        ("--stats --unlock", "--stats --unlock", ""),
        ("--interactive never", "--interactive never", ""),
        ("--no-such 1", "--no-such 1", ""),
    ] {
        let refusal =
            format!("config:1: '{quoted}' is not an extension that can be set here{hint}");
        with(line).rows(&format!("f= \n rmz f \n ! {refusal}"));
    }
}

#[test]
fn values_are_checked_and_taken_byte_for_byte() {
    for (config, message) in [
        (
            "#\n--threads\n",
            "config:2: option '--threads' requires an argument",
        ),
        ("--threads=0\n", "config:1: invalid number of threads: '0'"),
        (
            "--threads=4 \n",
            "config:1: invalid number of threads: '4 '",
        ),
        (
            "--threads=4\r\n",
            r"config:1: invalid number of threads: '4\r'",
        ),
        (
            "--threads='4'",
            r"config:1: '--threads='\''4'\''': no shell removes the quotes, so leave them out",
        ),
        (
            "--exclude=\"a\" ",
            "config:1: '--exclude=\"a\" ': no shell removes the quotes, so leave them out",
        ),
        (
            "--progress=ne\0ver",
            "config:1: the line contains a NUL byte",
        ),
        (
            "--progress\n--exclude=./a\n",
            "config:2: invalid pattern './a': it is relative to each operand, where nothing is called '.' or '..'",
        ),
        (
            "--exclude-from=missing\n",
            "config:1: cannot open 'missing' for reading: No such file or directory",
        ),
        (
            "--exclude=f/keep\n",
            "invalid pattern 'f/keep': it is relative to './f'; write '/keep'",
        ),
    ] {
        with(config).rows(&format!("f= \n rmz ./f \n ! {message}"));
    }
}

#[test]
fn files_that_cannot_be_read() {
    RM.rows(
        r"
        # One ends the run before any work. An empty variable names no file.
        f= config/
        RMZ_CONFIG=config rmz f
        ! cannot read 'config', which RMZ_CONFIG names: Is a directory
        RMZ_CONFIG=none rmz f
        ! cannot read 'none', which RMZ_CONFIG names: No such file or directory
        RMZ_CONFIG= rmz f
        = -f",
    );
    let help = testkit::run::Run::new(RMZ)
        .arg("--help")
        .env("RMZ_CONFIG", "/");
    let help = help.output().assert_success().stdout_text();
    assert!(help.contains("--no-config"), "{help}");
}
