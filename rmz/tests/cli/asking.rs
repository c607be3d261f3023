//! Prompts: their words, their order, and the effects of answers.

use testkit::{
    needs,
    probe::NOBODY,
    run::{Input, Parity, Run},
    tree::{Scratch, Tree, plant},
};

use crate::support::{RM, RMZ, rmz};

const KINDS: &str = "d/empty-file= d/file=content d/link->file d/fifo<fifo> d/socket<socket> d/empty/ d/full/a= d/full/b/c=";

#[test]
fn questions_about_all_types() {
    RM.table().build(plant(KINDS)).rows(
        r"
        # Everything is asked about, and yes removes it.
        rmz -i d << y y y y y y y y y y y y y y y y y y y y
        rmz --interactive d << Yes Yes Yes Yes Yes Yes Yes Yes Yes Yes Yes Yes Yes Yes Yes
        rmz --interactive=always d << Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y
        # A directory stays that is not entered.
        rmz -i d << n
        # The end of input and anything else is a no.
        rmz -i d (|<< y y y\c)
        rmz -i d << y '' ' y' x 0 no n ok
        # Nothing is asked after force.
        rmz (-if|-i --interactive=never|-i --interactive=none) d
        # One question comes before directories.
        rmz -I d << (y|n)
        rmz --interactive=once d x
        # The last word counts.
        rmz -iI d << y
        rmz -Ii d << y n
        rmz -If d
        # Values that mean nothing are refused.
        rmz (--interactive=x|--interactive=) d
        rmz --interactive=o d << n
        bare LC_ALL=C.UTF-8 rmz -r --interactive=it\'s d",
    );
}

#[test]
fn questions_about_some_entries() {
    RM.rows(
        r"
        # The ancestors of a directory stay that is not entered.
        d/a/b/c/f=
        rmz -i d << y y n
        # The directory of a declined file is tried if told to, and may be declined itself.
        d/a/f=
        rmz -i d << (y y n y|y y n n y|y y y n n)
        # Operands are asked about in their order.
        a= d/f= z=
        rmz -iv z d missing a << y y n n y
        # Missing operands are reported even after force.
        .
        rmz (-fi|-if) missing
        rmz -f --interactive=once missing << y
        # One question comes before more than three files.
        a= b= c= d=
        rm -I a b c
        rm -I a b c d << (n|y)
        rm -Iv a b c missing << y
        # Odd paths are quoted.
        'd/new\nline=' 'd/it\'s $x=' 'd/ /'
        rmz -i d << y y y y y y y y y
        # Links are asked about before they lead to nothing.
        d/f= link->d dangling->nowhere
        rmz -i link dangling link/ << y y y y y
        # An answer is read up to a NUL.
        d/a=
        rmz -i d << y\0n n\0
        # The first line ends the input of a terminal. What is typed after it belongs to another process.
        a= b= c=
        tty bare rmz -r -i a b c << \x04y y",
    );
}

#[test]
fn questions_at_a_terminal() {
    RM.rows(
        r"
        # A link called rm asks about write-protected files at a terminal. Several workers would ask in another order.
        d/a=x %444 d/b= %400 d/c=free d/l->a d/locked/f= d/locked-empty/ %555 d/locked %555
        user RMZ_THREADS=1 tty rm -r d << (y y y y y y y y y|y n y)
        user RMZ_THREADS=1 tty rm -rv d << n n n n n n n n n
        user RMZ_THREADS=1 tty rm d/a d/c d/b d/l << y n
        # It asks nothing if forced.
        user RMZ_THREADS=1 tty rm (-rf|-r --interactive=never) d
        # It asks about empty directories.
        user RMZ_THREADS=1 tty rm -d d/locked-empty << (n|y)
        # It asks once, and about write-protected files.
        user RMZ_THREADS=1 tty rm -rI d << (y y y y y y y y y|n)
        user RMZ_THREADS=1 tty rm -I d/a d/b << n y
        # It presumes a terminal if told to, and asks nothing without one.
        user RMZ_THREADS=1 rm ---presume-input-tty -r d << y n y n
        user rm -r d << n
        # It asks whether to try unreadable directories if empty ones may go.
        d/empty/ %0 d/full/f= d/full %0 d/other/ %311
        newest user RMZ_THREADS=1 (rmz|rm) -di d/empty d/full d/other << (n n n|y y y)
        newest user RMZ_THREADS=1 (rmz|rm) (-d|-dr) ---presume-input-tty -I d/empty d/full d/other << y y y
        newest user RMZ_THREADS=1 (rmz|rm) -dri d/empty d/full d/other << n y n
        # It keeps them if it would have to ask.
        newest user RMZ_THREADS=1 (rmz|rm) (-i|-ri) d/empty d/full d/other << y y y
        newest user RMZ_THREADS=1 (rmz|rm) -rI ---presume-input-tty d/empty d/full d/other << y y y y
        newest user RMZ_THREADS=1 (rmz|rm) -rdI ---presume-input-tty d/empty d/full d/other << y n n n",
    );
}

#[test]
fn asks_in_the_order_of_the_listing() {
    let scratch = Scratch::new();
    plant(KINDS)(&Tree::at(&scratch));
    let outcome = Run::new(RMZ)
        .words("-i d")
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
    outcome.assert_status(0);
}

#[test]
fn loses_no_answer_with_several_workers() {
    needs!(root);
    let build = |tree: &Tree| {
        for i in 0..40 {
            let tree = tree.plant(format!("d/{i}/f= %444"));
            tree.plant(format!("d/{i}/free="));
        }
    };
    // All questions are declined, so their order does not matter.
    RM.strict()
        .words("---presume-input-tty -r d")
        .stdin("n\n".repeat(40))
        .env("RMZ_THREADS", "4")
        .uid(NOBODY)
        .check(build);
}

#[test]
fn never_asks_at_a_terminal_unless_told_to_when_called_rmz() {
    needs!(root);
    let scratch = Scratch::new();
    Tree::at(&scratch).mode(0o777);
    let made = Run::new("sh")
        .words("-c 'mkdir d && : >d/f && chmod 444 d/f'")
        .current_dir(&scratch)
        .uid(NOBODY)
        .output();
    made.assert_success();
    let outcome = rmz(&scratch, "d")
        .input(Input::Terminal)
        .uid(NOBODY)
        .output();
    assert_eq!(outcome.assert_success().stdout, b"");
    assert!(!scratch.at("d").exists());
}

#[test]
fn questions_of_which_a_stream_is_odd() {
    let with = |script: &str, rows: &str| {
        let table = RM.table().setting(|parity| parity.in_script(script));
        table.rows(rows);
    };
    for redirection in ["2>/dev/full", "2>&-", "2</dev/null"] {
        let lost = format!(r#"exec "$@" {redirection}"#);
        with(&lost, "# Questions are lost. \n a= \n rmz -i a << y");
    }
    for redirection in ["<&-", "<.", "0>/dev/null"] {
        let unread = format!(r#"exec "$@" {redirection}"#);
        with(&unread, "# No answer can be read. \n a= d/f= \n rmz -i a d");
    }
    with(r#"exec "$@" <&-"#, "# No answer is needed. \n a= \n rmz a");
    with(
        r#"printf 'y\nn\nrest\n' >answers; { "$@" a; "$@" b; cat; } <answers"#,
        "# The rest of the input is left to the next command. \n a= b= c= \n rmz -i",
    );
    needs!(root);
    with(
        r#"chattr +i d/a; "$@"; status=$?; chattr -i d/a; exit $status"#,
        "# The superuser is asked about entries that cannot be removed.
        d/a= d/b=
        rmz (-i|-I ---presume-input-tty) d << y y y y y",
    );
    with(
        r#"mknod d/c c 1 3 && mknod d/b b 7 9 && exec "$@""#,
        "# Devices are named. \n d/ \n rmz -i d << y y y y",
    );
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
        .words("-r -i d")
        .stdin(answers)
        .on(testkit::tree::memory())
        .check(build);
}
