//! `--dry-run`, which GNU's cp does not have: what a real run would print, and nothing is touched.

use testkit::{
    probe::{NOBODY, is_root},
    run::{Outcome, Run, Status, as_done, check_dry_run},
    skip,
    tree::{Scratch, Tree},
};

use crate::support::CPZ;

#[test]
fn ends_with_the_entries_and_the_bytes_that_would_be_copied() {
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .file("s/a", "12345")
        .file("s/d/b", "123")
        .dir("t");
    let total = Run::new(CPZ).args(["--dry-run=total", "s", "t"]);
    let total = total.current_dir(&scratch).output();
    assert_eq!(
        total.assert_success().stdout_text(),
        "would copy 4 entries, 8 B\n"
    );
    let dry = Run::new(CPZ)
        .args(["--dry-run", "s", "t"])
        .current_dir(&scratch)
        .output();
    assert_eq!(dry.status, Status::Exit(0));
    assert_eq!(dry.stderr, b"");
    let told = dry.stdout_text();
    let mut lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.pop(), Some("would copy 4 entries, 8 B"));
    lines.sort_unstable();
    let expected = [
        "would copy 's' -> 't/s'",
        "would copy 's/a' -> 't/s/a'",
        "would copy 's/d' -> 't/s/d'",
        "would copy 's/d/b' -> 't/s/d/b'",
    ];
    assert_eq!(lines, expected);
    assert!(!scratch.path().join("t/s").exists());
}

/// Runs cpz as another user on two equal trees: in earnest, and as a dry run, which must report the same.
#[track_caller]
fn as_nobody(args: &[&str], build: impl Fn(&Tree)) -> [Outcome; 2] {
    let [real, dry] = [&[][..], &["--dry-run"]].map(|option| {
        let scratch = Scratch::new();
        build(&Tree::at(scratch.path()));
        let run = Run::new(CPZ).args(option).args(args);
        run.uid(NOBODY).current_dir(&scratch).output()
    });
    assert_eq!(dry.stderr_text(), real.stderr_text(), "{args:?}");
    [real, dry]
}

#[test]
fn sees_each_operand_as_if_no_other_one_had_been_copied() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    tree.file("a/f", "1").file("b/f", "2").dir("t");
    let dry = Run::new(CPZ).args(["--dry-run", "-n", "a/.", "b/.", "t"]);
    let dry = dry.current_dir(&scratch).output();
    let told = "would copy 'a/./f' -> 't/./f'
would copy 'b/./f' -> 't/./f'
would copy 4 entries, 2 B
";
    assert_eq!(dry.assert_success().stdout_text(), told);
}

#[test]
fn refuses_two_sources_that_would_have_one_dest() {
    let told = check_dry_run(CPZ, &["a/x", "b/x", "d"], |tree| {
        tree.file("a/x", "1").file("b/x", "2").dir("d");
    });
    assert_eq!(told.status, Status::Exit(1));
    let message = "will not overwrite just-created 'd/x' with 'b/x'";
    assert!(told.stderr_text().contains(message), "{told}");
}

#[test]
fn obeys_the_rules_about_dests_that_exist() {
    for option in [
        "-n",
        "-u",
        "-b",
        "--backup=numbered",
        "-f",
        "--remove-destination",
        "-al",
    ] {
        check_dry_run(CPZ, &[option, "s/.", "t"], |tree| {
            tree.file("s/a", "new")
                .file("s/b", "new")
                .file("s/d/c", "new");
            tree.file("t/a", "old")
                .file("t/b", "old")
                .file("t/b~", "older")
                .dir("t/d");
        });
    }
}

#[test]
fn foresees_how_dests_with_unusual_names_fail() {
    for args in [
        ["-s", "f", ""],
        ["d", "to-file", ""],
        ["-s", "f", "dangling/"],
        ["-T", "d", "dangling/"],
        ["-sf", "f", "dangling/"],
        ["-b", "d", "dangling/"],
        ["-u", "to-file", "dangling/"],
        ["--parents", "d/sub/.", "t"],
    ] {
        check_dry_run(CPZ, &args, |tree| {
            tree.file("f", "x").dir("d/sub").dir("t");
            tree.symlink("dangling", "nowhere").symlink("to-file", "f");
        });
    }
}

#[test]
fn foresees_that_a_directory_is_in_the_way_of_a_hard_link_that_is_not_permitted() {
    if !is_root() {
        skip!("only root can become another user");
    }
    let [real, _dry] = as_nobody(&["-l", "-b", "f", "t"], |tree| {
        tree.file("f", "").dir("t").dir("t/f").mode(0o777);
    });
    assert!(real.stderr_text().contains("File exists"), "{real}");
}

#[test]
fn fails_as_a_real_run_does() {
    let cases: [&[&str]; 11] = [
        &["-u", "f", "dangling"],
        &["-bT", "f", "d"],
        &["f", "none/"],
        &["f", "none/./"],
        &["none", "d"],
        &["d", "f"],
        &["f", "d/sub"],
        &["f", "f"],
        &["d", "d/new"],
        &["-T", "f", "d"],
        &["f", "dangling"],
    ];
    for args in cases {
        let told = check_dry_run(CPZ, args, |tree| {
            tree.file("f", "")
                .file("d/g", "")
                .dir("d/sub/f")
                .symlink("dangling", "none");
        });
        assert_eq!(told.status, Status::Exit(1), "{args:?}");
    }
}

#[test]
fn makes_the_parents_of_dests_only_in_the_plan() {
    check_dry_run(CPZ, &["--parents", "a/b/c", "a/b/d", "a/e", "t"], |tree| {
        tree.file("a/b/c", "")
            .file("a/b/d/f", "")
            .file("a/e", "")
            .dir("t");
    });
}

#[test]
fn a_read_only_directory_gets_no_copies() {
    use testkit::probe::{NOBODY, Skip, is_root};
    if !is_root() {
        return Skip("only root can become another user".into()).announce();
    }
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    tree.file("s/a", "")
        .dir("t")
        .select("t")
        .owner(NOBODY, NOBODY)
        .mode(0o555);
    tree.file("secret", "").mode(0o600);
    let run = |first| {
        let run = Run::new(CPZ).args([first, "s", "secret", "t"]).uid(NOBODY);
        run.current_dir(&scratch).output()
    };
    let (dry, real) = (run("--dry-run"), run("--verbose"));
    assert_eq!(dry.status, Status::Exit(1));
    assert_eq!(dry.stderr_text(), real.stderr_text());
    let told = dry.stdout_text();
    assert!(told.starts_with("would fail to copy 'secret'"), "{told}");
    assert!(told.ends_with("would copy 0 entries, 0 B\n"), "{told}");
    assert_eq!(as_done(&dry.stdout), real.stdout);
}

#[test]
fn makes_no_call_that_could_change_anything() {
    use testkit::probe::Skip;
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .file("s/a", "x")
        .file("s/d/b", "x")
        .symlink("s/l", "a")
        .file("t/s/a", "old")
        .file("big", vec![1; 5 << 20]);
    let calls = "trace=open,openat,creat,unlink,unlinkat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,\
                 symlink,symlinkat,mknod,mknodat,chmod,fchmod,fchmodat,chown,fchown,fchownat,lchown,utimensat,\
                 setxattr,lsetxattr,fsetxattr,removexattr,truncate,ftruncate,fallocate,copy_file_range,sendfile,rmdir";
    let traced = Run::new("strace")
        .args([
            "-f",
            "-o",
            "log",
            "-e",
            calls,
            CPZ,
            "--dry-run",
            "-ab",
            "s",
            "big",
            "t",
        ])
        .current_dir(&scratch);
    let Ok(outcome) = std::panic::catch_unwind(|| traced.output()) else {
        return Skip("strace cannot be run".into()).announce();
    };
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    let log = std::fs::read_to_string(scratch.path().join("log")).unwrap();
    let changes = |line: &&str| {
        let opens = line.contains("open(") || line.contains("openat(");
        let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_TMPFILE"];
        // A call that another thread interrupts in the log is continued in a line without its arguments.
        let is_call = !["+++", "---", "<... "]
            .iter()
            .any(|mark| line.contains(mark));
        is_call && (!opens || writes.iter().any(|flag| line.contains(flag)))
    };
    let changing: Vec<&str> = log.lines().filter(changes).collect();
    assert_eq!(changing, [""; 0], "{log}");
    assert!(log.contains("openat("), "{log}");
}
