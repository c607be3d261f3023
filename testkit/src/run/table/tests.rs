use std::panic;

use super::*;

/// A command that runs GNU's under another name, and without `-r` or `--recursive` fails.
fn rm() -> Pair {
    Pair::new("/bin/rm", "rm")
}

#[test]
fn rows_are_independent_and_each_one_that_fails_is_named() {
    // Nothing differs from itself.
    rm().rows("d/f=1 l->d \n rm (-r|-rv) (d|l) missing \n + e/ \n rm -d e");
    let failing = "
        # the first reason
        f=1 g=2
        rm f
        = -f
        rm f
        # the second reason
        rm g
        ! cannot remove 'g': Is a directory
        rm x
        ! cannot remove 'x'...
        rm -v g
        > removed 'f'
        = -g";
    let failed = panic::catch_unwind(|| rm().rows(failing)).unwrap_err();
    let message = failed.downcast_ref::<String>().expect("a text");
    assert!(message.starts_with("2 of 5 rows fail\n"), "{message}");
    for part in [
        "*** rm g\n    in: f=1 g=2\n    # the second reason\n",
        "*** rm -v g\n",
        "- g: RegularFile",
        "> removed 'f'",
    ] {
        let part = part.trim_start_matches("> ");
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!message.contains("*** rm x"), "{message}");
}

#[test]
fn a_tree_that_changes_unexpectedly_fails() {
    for row in [
        "rm f \n ? 0",
        "rm f \n ! x",
        "rm g \n ! cannot remove 'g'... \n = -f",
    ] {
        let failed = panic::catch_unwind(|| rm().rows(&format!("f= \n {row}")));
        assert!(failed.is_err(), "{row}");
    }
    rm().rows("f= \n rm f \n = -f \n rm g \n ! cannot remove 'g': No such file or directory");
}

#[test]
fn settings_come_before_a_command_and_answers_after_it() {
    rm().rows("f= g= \n LC_ALL=C rm -i f g << y n \n ! remove regular empty file 'f'? \n ! remove regular empty file 'g'? \n ? 0 \n = -f");
    rm().rows("f= \n umask:077 rm f \n = -f");
}

#[test]
fn lines_are_expanded() {
    let rows = rows("a\n+ b\n+ c\nrm (x|y z) w\nd (e|f)\nrm (x)", &["rmz", "rm"]);
    let seen: Vec<_> = rows.iter().map(|row| (&*row.tree, &*row.command)).collect();
    let expected = [
        ("a  b  c", "rm x w"),
        ("a  b  c", "rm y z w"),
        ("d e", "rm x"),
        ("d f", "rm x"),
    ];
    assert_eq!(seen, expected);
    let words = words::split(r"a{b,c}{1..2} 'd e' '' f\n '{x,y}'");
    assert_eq!(words::with_repetitions("{x*3}~ {a,b} {c"), "xxx~ {a,b} {c");
    assert_eq!(
        words,
        ["ab1", "ab2", "ac1", "ac2", "d e", "", "f\n", "{x,y}"]
    );
}
