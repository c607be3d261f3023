//! Trees on a filesystem whose server lists wrong types, or does not open directories.

use testkit::{
    or_skip,
    probe::{Errno, FileType, FuseMount, Habits, has_program},
    run::{Run, Status},
    skip,
    snapshot::Attributes,
    tree::Tree,
};

use crate::support::{RM, RMZ};

const KINDS: [FileType; 5] = [
    FileType::RegularFile,
    FileType::Directory,
    FileType::Symlink,
    FileType::NamedPipe,
    FileType::CharDevice,
];

#[test]
#[ignore = "slow"]
fn a_tree_is_removed_whatever_types_are_listed() {
    for listed_type in KINDS {
        let mount = or_skip!(FuseMount::with(Habits {
            listed_type: Some(listed_type),
            ..Habits::default()
        }));
        for dir in ["s", "s/d", "s/odd-directory"] {
            Tree::at(mount.stored().join(dir))
                .file("odd-file", "content")
                .file("odd-directory/odd-directory/odd-file", "")
                .symlink("odd-link", "odd-directory")
                .fifo("odd-fifo");
        }
        Tree::at(mount.stored()).file("kept", "");
        let outcome = Run::new(RMZ).arg("s").current_dir(mount.path()).output();
        assert_eq!(
            outcome.status,
            Status::Exit(0),
            "{listed_type:?}: {outcome}"
        );
        assert!(outcome.stderr.is_empty(), "{listed_type:?}: {outcome}");
        assert!(!mount.stored().join("s").exists(), "{listed_type:?}");
        assert!(mount.stored().join("kept").exists());
    }
}

#[test]
#[ignore = "slow"]
fn a_directory_in_one_that_may_not_be_changed_is_emptied_whatever_type_is_listed() {
    if !has_program("setpriv") {
        skip!("there is no setpriv");
    }
    for listed_type in KINDS {
        let mount = or_skip!(FuseMount::with(Habits {
            listed_type: Some(listed_type),
            ..Habits::default()
        }));
        let tree = Tree::at(mount.stored());
        tree.file("s/odd-directory/f", "").select("s").mode(0o555);
        let owned = Run::new("chown").args(["-R", "65534:65534", "s"]);
        owned.current_dir(mount.stored()).output().assert_success();
        let user = ["--reuid=65534", "--regid=65534", "--clear-groups", RMZ, "s"];
        let run = Run::new("setpriv").args(user);
        let outcome = run.current_dir(mount.path()).output();
        assert_eq!(
            outcome.status,
            Status::Exit(1),
            "{listed_type:?}: {outcome}"
        );
        let expected = "rmz: cannot remove 's/odd-directory': Permission denied\n";
        assert_eq!(outcome.stderr_text(), expected, "{listed_type:?}");
        let left = mount.stored().join("s/odd-directory").read_dir().unwrap();
        assert_eq!(left.count(), 0, "{listed_type:?}");
    }
}

#[test]
#[ignore = "slow"]
fn an_empty_directory_is_removed_whatever_opening_it_says() {
    for errno in [
        Errno::IO,
        Errno::PERM,
        Errno::STALE,
        Errno::NOTDIR,
        Errno::LOOP,
        Errno::INTR,
    ] {
        let mount = or_skip!(FuseMount::with(Habits {
            opendir: Some(errno),
            ..Habits::default()
        }));
        for operand in ["t", "t/bad", "t/"] {
            let stored = Tree::at(mount.stored());
            stored.file("t/f", "").dir("t/bad");
            let outcome = Run::new(RMZ)
                .arg(operand)
                .current_dir(mount.path())
                .output();
            assert_eq!(outcome.status, Status::Exit(0), "{errno} {outcome}");
            assert!(outcome.stderr.is_empty(), "{errno} {outcome}");
            assert!(!mount.stored().join(operand).exists(), "{errno} {operand}");
        }
    }
}

#[test]
#[ignore = "slow"]
fn a_directory_that_cannot_be_opened_stays_if_it_is_not_empty() {
    // Some of these errors usually say that a name is missing, or that it is another type.
    for errno in [
        Errno::IO,
        Errno::NOENT,
        Errno::INVAL,
        Errno::ILSEQ,
        Errno::NOTDIR,
        Errno::LOOP,
    ] {
        let mount = or_skip!(FuseMount::with(Habits {
            opendir: Some(errno),
            ..Habits::default()
        }));
        Tree::at(mount.stored()).file("t/sub/bad/f", "");
        for args in [
            &["t"][..],
            &["-f", "t"],
            &["-f", "--exclude=kept", "t"],
            &["-f", "--dry-run", "--exclude=kept", "t"],
            &["-f", "t/sub/bad"],
            &["-f", "t/sub/bad/"],
        ] {
            Tree::at(mount.stored()).file("t/g", "");
            let outcome = Run::new(RMZ).args(args).current_dir(mount.path()).output();
            let name = format!("{errno} {args:?}: {outcome}");
            assert_eq!(outcome.status, Status::Exit(1), "{name}");
            let reason = errno_text(errno);
            let end = if args.ends_with(&["t/sub/bad/"]) {
                "/"
            } else {
                ""
            };
            let expected = format!("rmz: cannot remove 't/sub/bad{end}': {reason}\n");
            assert_eq!(outcome.stderr_text(), expected, "{name}");
            assert!(mount.stored().join("t/sub/bad/f").exists(), "{name}");
        }
    }
}

/// Returns the text that messages show for an error.
fn errno_text(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    let (text, _) = text.split_once(" (os error").expect("a system error");
    text.to_owned()
}

#[test]
#[ignore = "slow"]
fn removals_on_a_server_that_refuses_or_lies_are_those_of_gnu() {
    let none = Habits::default;
    #[rustfmt::skip]
    let rows = [
        Habits { implicit_directories: true, ..none() },
        Habits { after_unlink: Some(Errno::NOENT), ..none() },
        Habits { zero_links: true, ..none() },
    ];
    for habits in rows {
        let mount = or_skip!(FuseMount::with(habits));
        for options in [&["-f", "s"][..], &["s/file", "s/missing"]] {
            let parity = RM.parity().on(mount.path()).args(options);
            parity.attributes(Attributes::CONTENT).check(|tree| {
                // Without it, the directory of the test would vanish, too.
                tree.file("kept", "")
                    .file("s/file", "")
                    .file("s/read-only", "")
                    .mode(0o444)
                    .file("s/d/e/file", "")
                    .symlink("s/link", "file");
            });
        }
    }
}
