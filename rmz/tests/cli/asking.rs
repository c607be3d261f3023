//! Prompts: their words, their order, and the effects of answers.

use testkit::{
    probe::{NOBODY, is_root},
    run::{Input, Parity, Run, Status},
    skip,
    tree::{Scratch, Tree},
};

use crate::support::{RM, RMZ};

/// Makes a directory with one entry of each kind, an empty directory and a full one.
fn kinds(tree: &Tree) {
    tree.file("d/empty-file", "")
        .file("d/file", "content")
        .symlink("d/link", "file")
        .fifo("d/fifo")
        .socket("d/socket")
        .dir("d/empty")
        .file("d/full/a", "")
        .file("d/full/b/c", "");
}

#[track_caller]
fn asked(args: &[&str], answers: &str, build: impl Fn(&Tree)) {
    RM.parity().args(args).stdin(answers).check(build);
}

/// Compares a link called rm with rm, both at a terminal.
#[track_caller]
fn at_a_terminal(args: &[&str], answers: &str, build: impl Fn(&Tree)) {
    if !is_root() {
        skip!("only root can become another user");
    }
    RM.strict()
        .args(args)
        .stdin(answers)
        .input(Input::Terminal)
        // Several workers would ask in another order.
        .env("RMZ_THREADS", "1")
        .uid(NOBODY)
        .check(build);
}

fn protected(tree: &Tree) {
    tree.file("d/a", "x")
        .mode(0o444)
        .file("d/b", "")
        .mode(0o400)
        .file("d/c", "free")
        .symlink("d/l", "a")
        .file("d/locked/f", "")
        .dir("d/locked-empty")
        .mode(0o555)
        .select("d/locked")
        .mode(0o555);
}

#[test]
fn asks_about_everything_and_yes_removes_it() {
    asked(&["-i", "d"], &"y\n".repeat(20), kinds);
    asked(&["--interactive", "d"], &"Yes\n".repeat(20), kinds);
    asked(&["--interactive=always", "d"], &"Y\n".repeat(20), kinds);
}

#[test]
fn keeps_a_directory_that_is_not_entered() {
    asked(&["-i", "d"], "n\n", kinds);
}

#[test]
fn reads_the_end_of_input_as_no() {
    asked(&["-i", "d"], "", kinds);
    asked(&["-i", "d"], "y\ny\ny", kinds);
}

#[test]
fn reads_anything_but_yes_as_no() {
    asked(&["-i", "d"], "y\n\n y\nx\n0\nno\nn\nok\n", kinds);
}

#[test]
fn keeps_the_ancestors_of_a_directory_that_is_not_entered() {
    let build = |tree: &Tree| {
        tree.file("d/a/b/c/f", "");
    };
    asked(&["-i", "d"], "y\ny\nn\n", build);
}

#[test]
fn tries_the_directory_of_a_declined_file_if_told_to() {
    let build = |tree: &Tree| {
        tree.file("d/a/f", "");
    };
    asked(&["-i", "d"], "y\ny\nn\ny\n", build);
    asked(&["-i", "d"], "y\ny\nn\nn\ny\n", build);
}

#[test]
fn keeps_an_emptied_directory_that_is_declined() {
    let build = |tree: &Tree| {
        tree.file("d/a/f", "");
    };
    asked(&["-i", "d"], "y\ny\ny\nn\nn\n", build);
}

#[test]
fn asks_about_operands_in_their_order() {
    let build = |tree: &Tree| {
        tree.file("a", "").file("d/f", "").file("z", "");
    };
    asked(&["-iv", "z", "d", "missing", "a"], "y\ny\nn\nn\ny\n", build);
}

#[test]
fn asks_in_the_order_of_the_listing() {
    let scratch = Scratch::new();
    kinds(&Tree::at(scratch.path()));
    let outcome = Run::new(RMZ)
        .args(["-i", "d"])
        .stdin("y\n".repeat(20))
        .current_dir(&scratch)
        .output();
    let text = outcome.stderr_text();
    let full = text.find("into directory 'd/full'").expect("it is asked");
    let child = text.find("'d/full/b/c'").expect("it is asked");
    let emptied = text
        .find("remove directory 'd/full'")
        .expect("it is asked again");
    assert!(full < child && child < emptied, "{text}");
    // No other question comes between the two about a directory.
    assert_eq!(text[full..emptied].matches("'d/full").count(), 5, "{text}");
    assert_eq!(outcome.status, Status::Exit(0));
}

#[test]
fn reports_missing_operands_even_after_force() {
    asked(&["-fi", "missing"], "", |_| {});
    asked(&["-f", "--interactive=once", "missing"], "y\n", |_| {});
    asked(&["-if", "missing"], "", |_| {});
}

#[test]
fn asks_nothing_after_force() {
    asked(&["-if", "d"], "", kinds);
    asked(&["-i", "--interactive=never", "d"], "", kinds);
    asked(&["-i", "--interactive=none", "d"], "", kinds);
}

#[test]
fn asks_once_before_directories() {
    asked(&["-I", "d"], "y\n", kinds);
    asked(&["-I", "d"], "n\n", kinds);
    asked(&["--interactive=once", "d", "x"], "", kinds);
}

#[test]
fn asks_once_before_more_than_three_files() {
    let build = |tree: &Tree| {
        tree.file("a", "").file("b", "").file("c", "").file("d", "");
    };
    let strict = |args: &[&str], answers: &str| {
        RM.strict().args(args).stdin(answers).check(build);
    };
    strict(&["-I", "a", "b", "c"], "");
    strict(&["-I", "a", "b", "c", "d"], "n\n");
    strict(&["-I", "a", "b", "c", "d"], "y\n");
    strict(&["-Iv", "a", "b", "c", "missing"], "y\n");
}

#[test]
fn asks_once_as_the_last_word_says() {
    asked(&["-iI", "d"], "y\n", kinds);
    asked(&["-Ii", "d"], "y\nn\n", kinds);
    asked(&["-If", "d"], "", kinds);
}

#[test]
fn refuses_values_of_interactive_that_mean_nothing() {
    asked(&["--interactive=x", "d"], "", kinds);
    asked(&["--interactive=", "d"], "", kinds);
    asked(&["--interactive=o", "d"], "n\n", kinds);
    Parity::new(RMZ, "rm")
        .args(["-r", "--interactive=it's", "d"])
        .env("LC_ALL", "C.UTF-8")
        .check(kinds);
}

#[test]
fn names_odd_paths_in_questions_as_rm_does() {
    asked(&["-i", "d"], &"y\n".repeat(9), |tree| {
        tree.file("d/new\nline", "")
            .file("d/it's $x", "")
            .dir("d/ ");
    });
}

#[test]
fn asks_before_following_nothing() {
    asked(
        &["-i", "link", "dangling", "link/"],
        &"y\n".repeat(9),
        |tree| {
            tree.file("d/f", "")
                .symlink("link", "d")
                .symlink("dangling", "nowhere");
        },
    );
}

#[test]
fn asks_at_a_terminal_about_write_protected_files() {
    at_a_terminal(&["-r", "d"], &"y\n".repeat(9), protected);
    at_a_terminal(&["-rv", "d"], &"n\n".repeat(9), protected);
    at_a_terminal(&["-r", "d"], "y\nn\ny\n", protected);
    at_a_terminal(&["d/a", "d/c", "d/b", "d/l"], "y\nn\n", protected);
}

#[test]
fn asks_nothing_at_a_terminal_if_forced() {
    at_a_terminal(&["-rf", "d"], "", protected);
    at_a_terminal(&["-r", "--interactive=never", "d"], "", protected);
}

#[test]
fn asks_about_empty_directories_at_a_terminal() {
    at_a_terminal(&["-d", "d/locked-empty"], "n\n", protected);
    at_a_terminal(&["-d", "d/locked-empty"], "y\n", protected);
}

#[test]
fn asks_once_and_about_write_protected_files_at_a_terminal() {
    at_a_terminal(&["-rI", "d"], &"y\n".repeat(9), protected);
    at_a_terminal(&["-rI", "d"], "n\n", protected);
    at_a_terminal(&["-I", "d/a", "d/b"], "n\ny\n", protected);
}

#[test]
fn presumes_a_terminal_if_told_to() {
    if !is_root() {
        skip!("only root can become another user");
    }
    RM.strict()
        .args(["---presume-input-tty", "-r", "d"])
        .stdin("y\nn\ny\nn\n")
        .env("RMZ_THREADS", "1")
        .uid(NOBODY)
        .check(protected);
}

#[test]
fn asks_nothing_about_write_protected_files_without_a_terminal() {
    if !is_root() {
        skip!("only root can become another user");
    }
    RM.strict()
        .args(["-r", "d"])
        .stdin("n\n")
        .uid(NOBODY)
        .check(protected);
}

#[test]
fn loses_no_answer_with_several_workers() {
    if !is_root() {
        skip!("only root can become another user");
    }
    let build = |tree: &Tree| {
        for i in 0..40 {
            let tree = tree.file(format!("d/{i}/f"), "").mode(0o444);
            tree.file(format!("d/{i}/free"), "");
        }
    };
    // All questions are declined, so their order does not matter.
    RM.strict()
        .args(["---presume-input-tty", "-r", "d"])
        .stdin("n\n".repeat(40))
        .env("RMZ_THREADS", "4")
        .uid(NOBODY)
        .check(build);
}

#[test]
fn never_asks_at_a_terminal_unless_told_to_when_called_rmz() {
    if !is_root() {
        skip!("only root can become another user");
    }
    let scratch = Scratch::new();
    Tree::at(scratch.path()).mode(0o777);
    let made = Run::new("sh")
        .args(["-c", "mkdir d && : >d/f && chmod 444 d/f"])
        .current_dir(&scratch)
        .uid(NOBODY)
        .output();
    made.assert_success();
    let outcome = Run::new(RMZ)
        .args(["d"])
        .current_dir(&scratch)
        .input(Input::Terminal)
        .uid(NOBODY)
        .output();
    assert_eq!(outcome.assert_success().stdout, b"");
    assert!(!scratch.path().join("d").exists());
}

/// Compares rmz with rm on an empty and a full directory, both unreadable.
#[track_caller]
fn with_inaccessible_directories(flags: &[&str], answers: &str) {
    if !is_root() {
        skip!("only root can become another user");
    }
    for ours in [RM.parity(), RM.strict()] {
        ours.only_newest()
            .args(flags)
            .args(["d/empty", "d/full", "d/other"])
            .stdin(answers)
            .env("RMZ_THREADS", "1")
            .uid(NOBODY)
            .check(|tree| {
                tree.dir("d/empty")
                    .mode(0)
                    .file("d/full/f", "")
                    .select("d/full")
                    .mode(0)
                    .dir("d/other")
                    .mode(0o311);
            });
    }
}

#[test]
fn asks_whether_to_try_unreadable_directories_if_empty_ones_may_go() {
    with_inaccessible_directories(&["-di"], "n\nn\nn\n");
    with_inaccessible_directories(&["-di"], "y\ny\ny\n");
    with_inaccessible_directories(&["-d", "---presume-input-tty", "-I"], "y\ny\ny\n");
    with_inaccessible_directories(&["-dri"], "n\ny\nn\n");
    with_inaccessible_directories(&["-drI", "---presume-input-tty"], "y\ny\ny\n");
}

#[test]
fn keeps_unreadable_directories_if_it_would_have_to_ask() {
    with_inaccessible_directories(&["-i"], "y\ny\ny\n");
    with_inaccessible_directories(&["-ri"], "y\ny\ny\n");
    with_inaccessible_directories(&["-rI", "---presume-input-tty"], "y\ny\ny\ny\n");
    with_inaccessible_directories(&["-rdI", "---presume-input-tty"], "y\nn\nn\nn\n");
}

#[test]
fn takes_the_end_of_a_terminals_input_for_the_end() {
    let build = |tree: &Tree| {
        tree.file("a", "").file("b", "").file("c", "");
    };
    // The first line ends the input. Everything typed after it belongs to another process.
    Parity::new(RMZ, "rm")
        .args(["-r", "-i", "a", "b", "c"])
        .input(Input::Terminal)
        .stdin("\x04y\ny\n")
        .check(build);
}

#[test]
fn reads_an_answer_up_to_a_nul() {
    asked(&["-i", "d"], "y\0n\nn\0\n", |tree| {
        tree.file("d/a", "");
    });
}

#[test]
fn asks_the_superuser_about_entries_that_cannot_be_removed() {
    if !is_root() {
        skip!("only root can make a file immutable");
    }
    for flags in [&["-r", "-i"][..], &["-r", "-I", "---presume-input-tty"]] {
        Parity::new(RMZ, "rm")
            .args(flags)
            .args(["d"])
            .in_script(r#"chattr +i d/a; "$@"; status=$?; chattr -i d/a; exit $status"#)
            .stdin("y\n".repeat(5))
            .check(|tree| {
                tree.file("d/a", "").file("d/b", "");
            });
    }
}

#[test]
fn fails_if_its_questions_are_lost() {
    let build = |tree: &Tree| {
        tree.file("a", "");
    };
    for redirection in ["2>/dev/full", "2>&-", "2</dev/null"] {
        Parity::new(RMZ, "rm")
            .args(["-r", "-i", "a"])
            .in_script(&format!(r#"exec "$@" {redirection}"#))
            .stdin("y\n")
            .check(build);
    }
}

#[test]
fn leaves_the_rest_of_its_input_to_the_next_command() {
    let build = |tree: &Tree| {
        tree.file("a", "").file("b", "").file("c", "");
    };
    let from_a_file = r#"printf 'y\nn\nrest\n' >answers; { "$@" a; "$@" b; cat; } <answers"#;
    Parity::new(RMZ, "rm")
        .args(["-r", "-i"])
        .in_script(from_a_file)
        .check(build);
}

#[test]
fn fails_if_it_cannot_read_an_answer() {
    let build = |tree: &Tree| {
        tree.file("a", "").file("d/f", "");
    };
    let parity = Parity::new(RMZ, "rm").args(["-r", "-i", "a", "d"]);
    for redirection in ["<&-", "<.", "0>/dev/null"] {
        let script = format!(r#"exec "$@" {redirection}"#);
        parity.clone().in_script(&script).check(build);
    }
    Parity::new(RMZ, "rm")
        .args(["-r", "a"])
        .in_script(r#"exec "$@" <&-"#)
        .check(build);
}

#[test]
fn names_devices_as_rm_does() {
    if !is_root() {
        skip!("only root can make devices");
    }
    Parity::new(RMZ, "rm")
        .args(["-r", "-i", "d"])
        .in_script(r#"mknod d/c c 1 3 && mknod d/b b 7 9 && exec "$@""#)
        .stdin("y\n".repeat(4))
        .check(|tree| {
            tree.dir("d");
        });
}

#[test]
fn asks_about_more_than_a_buffer_of_directories_in_order() {
    let build = |tree: &Tree| {
        for number in 0..400 {
            tree.file(format!("d/{number:040}/file"), "")
                .file(format!("d/{number:040}-file"), "");
        }
    };
    let answers: String = (0..1600)
        .map(|number| if number % 7 == 3 { "n\n" } else { "y\n" })
        .collect();
    Parity::new(RMZ, "rm")
        .args(["-r", "-i", "d"])
        .stdin(answers)
        .on(testkit::tree::memory())
        .check(build);
}
