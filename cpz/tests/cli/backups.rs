//! `--backup`, `-b` and `-S`: an existing dest gets another name.

use testkit::{
    or_skip,
    probe::{FuseMount, Habits},
    run::{Parity, Run, Status},
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ, NEWEST_CP, complaint};

fn two_files(tree: &Tree) {
    tree.file("a", "new").file("b", "old").symlink("l", "b");
}

fn in_directory(tree: &Tree) {
    two_files(tree);
    tree.file("d/a", "older")
        .file("d/a.~7~", "seven")
        .dir("e")
        .file("e/a", "another");
}

#[test]
fn appends_a_tilde() {
    CP.check(["-b", "-v", "a", "b"], two_files);
    CP.check(["--backup", "a", "b"], two_files);
    CP.check(["--backup=", "-v", "a", "b"], two_files);
    CP.check(["-b", "a", "new"], two_files);
}

#[test]
fn appends_a_suffix() {
    CP.check(["-S", ".o", "-v", "a", "b"], two_files);
    CP.check(["--suffix=.o", "--backup=never", "-v", "a", "b"], two_files);
    CP.check(["-S", "", "-v", "a", "b"], two_files);
}

#[test]
fn ignores_a_suffix_that_would_lead_elsewhere() {
    for suffix in ["x/y", "/x", "/"] {
        CP.check(["-S", suffix, "-v", "a", "b"], two_files);
    }
}

#[test]
fn makes_no_backup_by_a_suffix_that_ends_in_a_slash() {
    for suffix in ["x/", "x//"] {
        NEWEST_CP.check(["-S", suffix, "-v", "a", "b"], two_files);
    }
}

#[test]
fn numbers_backups() {
    CP.check(["--backup=numbered", "-v", "a", "b"], two_files);
    CP.check(["--backup=t", "-v", "a", "d"], in_directory);
    CP.check(["--backup=nil", "-v", "a", "d"], in_directory);
    CP.check(["--backup=num", "-v", "a", "e/a", "d"], in_directory);
}

#[test]
fn makes_no_backup_if_none_is_wanted() {
    CP.check(["--backup=none", "-v", "a", "b"], two_files);
    CP.check(["-b", "--backup=off", "a", "b"], two_files);
    CP.check(["--backup=off", "-b", "a", "b"], two_files);
}

#[test]
fn refuses_words_that_are_no_control() {
    CP.check(["--backup=x", "a", "b"], two_files);
    CP.check(["--backup=n", "a", "b"], two_files);
}

fn with_variable(name: &str, value: &str, args: &[&str]) {
    let parity = CP.parity().args(args);
    parity.env(name, value).check(two_files);
}

#[test]
fn obeys_the_environment_without_flags() {
    with_variable("VERSION_CONTROL", "t", &["-bv", "a", "b"]);
    with_variable("VERSION_CONTROL", "t", &["--backup=simple", "a", "b"]);
    with_variable("VERSION_CONTROL", "t", &["a", "b"]);
    with_variable("VERSION_CONTROL", "zz", &["-b", "a", "b"]);
    with_variable("VERSION_CONTROL", "n", &["-b", "a", "b"]);
    with_variable("VERSION_CONTROL", "zz", &["a", "b"]);
    with_variable("SIMPLE_BACKUP_SUFFIX", ".o", &["-bv", "a", "b"]);
    with_variable("SIMPLE_BACKUP_SUFFIX", "x/y", &["-bv", "a", "b"]);
    with_variable("SIMPLE_BACKUP_SUFFIX", ".o", &["-S", ".q", "a", "b"]);
    with_variable("SIMPLE_BACKUP_SUFFIX", ".o", &["-S", "", "-v", "a", "b"]);
}

#[test]
fn renames_a_link_itself() {
    CP.check(["-bv", "a", "l"], two_files);
    CP.check(["-bv", "-T", "l", "b"], two_files);
    CP.check(["-bv", "a", "dangling"], |tree| {
        two_files(tree);
        tree.symlink("dangling", "nowhere");
    });
}

#[test]
fn replaces_special_files() {
    CP.check(["-bv", "p", "b"], |tree| {
        two_files(tree);
        tree.fifo("p");
    });
}

#[test]
fn keeps_directories_where_they_are() {
    NEWEST_CP.check(["-bvT", "a", "d"], in_directory);
    CP.check(["--backup=t", "-v", "e", "-T", "d"], in_directory);
}

#[test]
fn gives_a_file_back_its_name_if_the_copy_fails() {
    CP.check_as_nobody(["-bv", "a", "b"], |tree| {
        tree.file("a", "new").mode(0).file("b", "old");
    });
}

#[test]
fn does_not_back_up_over_the_source() {
    let build = |tree: &Tree| {
        two_files(tree);
        tree.file("b~", "backup").file("c", "");
    };
    CP.check(["-b", "b~", "b"], build);
    CP.check(["-b", "./b~", "$PWD/b"], build);
    CP.check(["--backup=t", "b~", "b"], build);
    CP.check(["-b", "b~", "c"], build);
}

#[test]
fn copies_a_file_over_itself_to_its_backup() {
    CP.check(["-fbv", "b", "b"], two_files);
    CP.check(["-f", "--backup=t", "-v", "b", "b"], two_files);
    CP.check_strict(["-fbv", "l", "l"], two_files);
    CP.check(["-fbv", "b", "./b"], two_files);
    CP.check(["-bv", "b", "b"], two_files);
}

#[test]
fn lets_only_numbered_backups_replace_dests_just_created() {
    CP.check(["--backup=t", "-v", "a", "e/a", "d"], in_directory);
    CP.check(["-b", "-v", "a", "e/a", "new"], |tree| {
        in_directory(tree);
        tree.dir("new");
    });
    CP.check(["--backup=t", "-v", "a", "a", "d"], in_directory);
}

fn run(dir: &Scratch, args: &[&str]) -> testkit::run::Outcome {
    Run::new(CPZ).args(args).current_dir(dir).output()
}

fn text(dir: &Scratch, name: &str) -> String {
    std::fs::read_to_string(dir.path().join(name)).expect("a file")
}

#[test]
fn keeps_a_simple_backup_in_the_directory_of_the_dest() {
    // GNU 9.1 leaves it in the working directory.
    NEWEST_CP.check(["-v", "--backup=simple", "a", "d"], in_directory);
}

#[test]
fn backs_up_a_file_that_a_directory_replaces() {
    NEWEST_CP.check(["-bT", "from", "to"], |tree| {
        tree.file("from/f", "new").file("to", "old");
    });
}

#[test]
fn backs_up_a_name_of_the_backup_itself() {
    // GNU fails here: rename does nothing between two names of one file.
    let dir = Scratch::new();
    Tree::at(dir.path())
        .file("a", "new")
        .file("b", "old")
        .hardlink("b", "b~");
    run(&dir, &["--backup=simple", "a", "b"]).assert_success();
    assert_eq!(
        (text(&dir, "b"), text(&dir, "b~")),
        ("new".into(), "old".into())
    );
}

#[test]
fn numbers_the_backups_of_a_whole_tree() {
    CP.check(["--backup=t", "-T", "from", "to"], |tree| {
        for number in 0..40 {
            tree.file(format!("from/{}/{number}", number % 3), "new")
                .file(format!("to/{}/{number}", number % 3), "old");
        }
        tree.file("to/1/4.~9~", "")
            .file("to/1/4.~09~", "")
            .file("to/1/4.~x~", "");
    });
}

#[test]
fn counts_on_after_any_number() {
    for number in [
        "18446744073709551614",
        "18446744073709551615",
        "18446744073709551616",
    ] {
        CP.check(["--backup=numbered", "-v", "a", "b"], |tree| {
            two_files(tree);
            tree.file(format!("b.~{number}~"), "");
        });
    }
}

#[test]
fn fails_after_the_last_number() {
    let dir = Scratch::new();
    let last = format!("b.~{}~", u128::MAX);
    Tree::at(dir.path())
        .file("a", "new")
        .file("b", "old")
        .file(&last, "backup");
    let outcome = run(&dir, &["--backup=numbered", "a", "b"]);
    assert_eq!(
        complaint(&outcome),
        "cpz: cannot backup 'b': Value too large for defined data type\n"
    );
    assert_eq!(outcome.status, Status::Exit(1));
    assert_eq!(
        (text(&dir, "b"), text(&dir, &last)),
        ("old".into(), "backup".into())
    );
}

/// Makes a name of this many bytes.
fn long(len_bytes: usize) -> String {
    "x".repeat(len_bytes)
}

/// Copies over a name of this many bytes. An existing file may have the same name with a longer end.
fn over_long_name(args: &[&str], len_bytes: usize, neighbour: Option<(usize, &str)>) {
    let dest = long(len_bytes);
    CP.check(args.iter().copied().chain(["-v", "a", &dest]), |tree| {
        let tree = tree.file("a", "new").file(&dest, "old");
        if let Some((len_bytes, tail)) = neighbour {
            tree.file(long(len_bytes) + tail, "a backup");
        }
    });
}

#[test]
fn shortens_names_that_are_too_long_for_a_number() {
    over_long_name(&["--backup=numbered"], 250, None);
    over_long_name(&["--backup=numbered"], 251, None);
    over_long_name(&["--backup=numbered"], 254, None);
    over_long_name(&["--backup=numbered"], 255, None);
    over_long_name(&["--backup=numbered"], 250, Some((250, ".~1~")));
    over_long_name(&["--backup=numbered"], 250, Some((250, ".~9~")));
    over_long_name(&["--backup=numbered"], 251, Some((251, ".~1~")));
    over_long_name(&["--backup=numbered"], 240, Some((240, ".~9999999999~")));
    over_long_name(&["--backup=numbered"], 240, Some((240, ".~99999999999~")));
}

#[test]
fn shortens_a_simple_name_only_if_there_might_be_numbers() {
    over_long_name(&["-b"], 253, None);
    over_long_name(&["-b"], 254, None);
    over_long_name(&["-b"], 255, None);
    over_long_name(&["-b", "-S.suffix"], 247, None);
    over_long_name(&["-b", "-S.suffix"], 248, None);
    over_long_name(&["-b", "-S.suffix"], 255, None);
    over_long_name(&["--backup=simple"], 254, None);
    over_long_name(&["--backup=simple"], 255, None);
    over_long_name(&["--backup=simple", "-S.suffix"], 249, None);
}

#[test]
fn believes_no_limit_that_the_name_itself_exceeds() {
    let mount = or_skip!(FuseMount::with(Habits {
        zero_statfs: true,
        ..Habits::default()
    }));
    let dir = Scratch::new();
    let names = ["m", "n"].map(|name| name.repeat(200));
    for options in [&["-b"][..], &["-b"], &["--backup=numbered"]] {
        for name in &names {
            let path = format!("s/{name}");
            Tree::at(dir.path()).file(&path, format!("{name}{options:?}"));
        }
        let dest = mount.path().to_str().unwrap();
        let outcome = run(&dir, &[&["-rT", "s", dest], options].concat());
        assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    }
    for name in names {
        for end in ["", "~", ".~1~"] {
            let path = mount.path().join(format!("{name}{end}"));
            let content = std::fs::read_to_string(path).expect("a file");
            assert!(content.starts_with(&name), "{content}");
        }
    }
}

#[test]
fn replaces_no_file_that_has_the_shortened_name() {
    // GNU does that under -b, even if it is the backup of another file that it has just made.
    let dir = Scratch::new();
    let tree = Tree::at(dir.path());
    let ends = ["1", "2"];
    for end in ends {
        tree.file(format!("s/{}{end}", long(254)), format!("new {end}"))
            .file(format!("d/{}{end}", long(254)), format!("old {end}"));
    }
    let outcome = run(&dir, &["-bT", "s", "d"]);
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let backup = text(&dir, &format!("d/{}~", long(253)));
    let [kept, replaced] = match &*backup {
        "old 1" => ["2", "1"],
        "old 2" => ["1", "2"],
        other => panic!("{other}"),
    };
    let dest = |end| format!("d/{}{end}", long(254));
    let words = format!("cpz: cannot backup '{}': File exists\n", dest(kept));
    assert_eq!(complaint(&outcome), words);
    assert_eq!(text(&dir, &dest(kept)), format!("old {kept}"));
    assert_eq!(text(&dir, &dest(replaced)), format!("new {replaced}"));
}

#[test]
fn takes_a_shortened_name_in_use_as_it_would_a_whole_one() {
    over_long_name(&["--backup=numbered"], 255, Some((253, "~")));
    over_long_name(&["--backup=numbered"], 251, Some((251, "~")));
}

#[test]
fn does_not_lose_a_source_that_has_the_shortened_name() {
    // GNU renames the dest over it.
    let dir = Scratch::new();
    let (source, dest) = (long(253) + "~", long(255));
    Tree::at(dir.path()).file(&source, "new").file(&dest, "old");
    let outcome = run(&dir, &["-b", &source, &dest]);
    let words = format!("cpz: backing up '{dest}' might destroy source;  '{source}' not copied\n");
    assert_eq!(
        (outcome.status, complaint(&outcome)),
        (Status::Exit(1), words)
    );
    assert_eq!(
        (text(&dir, &source), text(&dir, &dest)),
        ("new".into(), "old".into())
    );
}

#[test]
fn does_not_take_a_file_for_its_own_backup() {
    let dir = Scratch::new();
    let dest = long(253) + "~";
    Tree::at(dir.path())
        .file("a", "new")
        .file(&dest, "old")
        .hardlink(&dest, "other");
    let outcome = run(&dir, &["-b", "a", &dest]);
    let words = format!("cpz: cannot backup '{dest}': File exists\n");
    assert_eq!(
        (outcome.status, complaint(&outcome)),
        (Status::Exit(1), words)
    );
    assert_eq!(text(&dir, &dest), "old");
}

#[test]
fn never_copies_a_file_over_a_numbered_backup() {
    // GNU overwrites a shortened name that is in use.
    let dir = Scratch::new();
    let (dest, backup) = (long(255), long(253) + "~");
    Tree::at(dir.path()).file(&dest, "new").file(&backup, "old");
    let outcome = run(&dir, &["-f", "--backup=numbered", &dest, &dest]);
    assert_eq!(outcome.status, Status::Exit(1));
    assert_eq!(text(&dir, &backup), "old");
}

#[test]
fn is_the_same_called_as_cp() {
    let cp = CP.link("cp");
    Parity::new(cp.path(), "cp")
        .args(["-bv", "a", "l"])
        .check(two_files);
}
