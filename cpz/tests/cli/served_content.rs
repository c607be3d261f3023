//! Content on filesystems whose servers refuse calls, or tell something that is not true.

use std::{fs, os::unix::fs::MetadataExt, path::Path, time::Duration};

use testkit::{
    or_skip,
    probe::{Errno, FileType, FuseMount, Habits},
    run::{Run, Status},
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, noise},
};

use crate::support::{CPZ, complaint, succeeds};

/// The time of files that are to stay.
const AT: Duration = Duration::from_secs(1_000_000_000);

const OPTIONS: [&[&str]; 5] = [
    &["-a"],
    &["-r"],
    &["-r", "--sparse=always"],
    &["-r", "--sparse=never"],
    &["-a", "--verify"],
];

/// Makes files with and without holes.
fn files(tree: &Tree) {
    let data = noise(70_000);
    tree.file("empty", "")
        .file("small", "1")
        .file("d/large", noise((4 << 20) + 5))
        .sparse("d/end", 1 << 20, &[(0, &data)])
        .sparse(
            "d/middle",
            1 << 20,
            &[(1 << 19, &data), ((1 << 20) - 5, b"tail!")],
        )
        .sparse("d/hole", 1 << 20, &[]);
}

/// Copies files to a filesystem with these habits, from it, and within it, with each of [`OPTIONS`].
#[track_caller]
fn copies_all(habits: Habits) {
    let mount = or_skip!(FuseMount::with(habits));
    let local = Scratch::in_memory();
    files(&Tree::at(local.path().join("s")));
    files(&Tree::at(mount.stored().join("s")));
    let expected = Snapshot::of(local.path().join("s"), Attributes::CONTENT);
    let served = |name: &str| mount.path().join(name).display().to_string();
    for (number, options) in OPTIONS.into_iter().enumerate() {
        let [to, within, from] = ["to", "within", "from"].map(|way| format!("{way}{number}"));
        let copies = [
            ("s".to_owned(), served(&to), mount.stored().join(&to)),
            (served("s"), served(&within), mount.stored().join(&within)),
            (served("s"), from.clone(), local.path().join(&from)),
        ];
        for (source, dest, stored) in copies {
            let args = [options, &["-T", &source, &dest]].concat();
            succeeds(&local, &args);
            let difference = expected.diff(&Snapshot::of(stored, Attributes::CONTENT));
            assert!(difference.is_empty(), "{args:?}\n{difference}");
        }
    }
}

#[test]
#[ignore = "slow"]
fn content_is_read_and_written_if_the_server_cannot_copy() {
    for errno in [Errno::FBIG, Errno::IO] {
        copies_all(Habits {
            copy_file_range: Some(errno),
            ..Habits::default()
        });
    }
}

#[test]
#[ignore = "slow"]
fn files_get_their_size_if_the_server_extends_none() {
    for errno in [Errno::PERM, Errno::NOSYS] {
        copies_all(Habits {
            truncate: Some(errno),
            ..Habits::default()
        });
    }
}

#[test]
#[ignore = "slow"]
fn holes_are_filled_with_zeros_if_the_server_takes_content_in_order_only() {
    copies_all(Habits {
        nonseekable: true,
        ..Habits::default()
    });
    copies_all(Habits {
        nonseekable: true,
        truncate: Some(Errno::PERM),
        ..Habits::default()
    });
}

#[test]
#[ignore = "slow"]
fn a_source_whose_server_knows_no_holes_is_read() {
    for errno in [Errno::IO, Errno::NOSYS] {
        copies_all(Habits {
            seek: Some(errno),
            ..Habits::default()
        });
    }
}

#[test]
#[ignore = "slow"]
fn files_are_copied_if_the_server_refuses_to_open_without_waiting() {
    for errno in [Errno::INVAL, Errno::PERM] {
        copies_all(Habits {
            open_nonblocking: Some(errno),
            ..Habits::default()
        });
    }
}

#[test]
#[ignore = "slow"]
fn files_are_copied_if_the_server_refuses_to_read_without_waiting() {
    copies_all(Habits {
        read_nonblocking: Some(Errno::AGAIN),
        ..Habits::default()
    });
}

#[test]
#[ignore = "slow"]
fn files_are_compared_if_the_server_refuses_direct_reads() {
    copies_all(Habits {
        direct_read: Some(Errno::INVAL),
        ..Habits::default()
    });
}

#[test]
#[ignore = "slow"]
fn all_of_a_file_is_copied_if_its_size_is_said_to_be_0() {
    copies_all(Habits {
        hidden_sizes: true,
        ..Habits::default()
    });
}

#[test]
#[ignore = "slow"]
fn all_of_a_file_is_copied_if_the_server_takes_few_bytes_at_a_time() {
    copies_all(Habits {
        longest_write: Some(10_000),
        ..Habits::default()
    });
}

#[test]
#[ignore = "slow"]
fn a_file_that_cannot_be_read_to_its_end_is_reported() {
    let mount = or_skip!(FuseMount::with(Habits {
        unreadable_from: Some(50_000),
        ..Habits::default()
    }));
    let tree = Tree::at(mount.stored());
    tree.file("s/bad", noise(60_000))
        .file("s/good", noise(40_000));
    for dest in ["d", "/dev/shm"] {
        let scratch = Scratch::in_memory();
        let dest = match dest {
            "d" => mount.path().join("d"),
            _ => scratch.path().join("d"),
        };
        let run = Run::new(CPZ).args(["-rT", "s"]).args([&dest]);
        let outcome = run.current_dir(mount.path()).output();
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        let expected = "cpz: error reading 's/bad': Input/output error\n";
        assert_eq!(complaint(&outcome), expected);
        assert_eq!(fs::read(dest.join("good")).unwrap(), noise(40_000));
        let bad = dest.join("bad").metadata().unwrap();
        assert_eq!(bad.mtime(), 0, "it looks complete to a later run");
    }
}

#[test]
#[ignore = "slow"]
fn content_that_the_kernel_cannot_write_later_is_reported_and_replaces_nothing() {
    for errno in [Errno::IO, Errno::NOSPC, Errno::DQUOT, Errno::PERM] {
        let mount = or_skip!(FuseMount::with(Habits {
            write_back: Some(errno),
            ..Habits::default()
        }));
        let local = Scratch::in_memory();
        Tree::at(local.path()).file("f", noise(60_000)).mode(0o444);
        let dest = mount.path().join("f");
        for options in [
            &["-r"][..],
            &["-a"],
            &["-p"],
            &["--preserve=ownership"],
            &["--preserve=mode"],
            &["--preserve=timestamps"],
            &["-a", "--atomic"],
        ] {
            Tree::at(mount.stored()).file("f", "old").mtime(AT);
            let run = Run::new(CPZ).args(options).args(["f"]).arg(&dest);
            let outcome = run.current_dir(&local).output();
            let row = format!("{errno} {options:?}: {outcome}");
            assert_eq!(outcome.status, Status::Exit(1), "{row}");
            assert_eq!(complaint(&outcome).lines().count(), 1, "{row}");
            let stored = mount.stored().join("f");
            let is_atomic = options.contains(&"--atomic");
            assert_eq!(fs::read(&stored).unwrap() == b"old", is_atomic, "{row}");
            let time = stored.metadata().unwrap().mtime();
            assert_eq!(time == AT.as_secs() as i64, is_atomic, "{row}");
            let entries = mount.stored().read_dir().unwrap().count();
            assert_eq!(entries, 1, "{row}");
        }
    }
}

#[test]
#[ignore = "slow"]
fn an_entry_is_copied_by_its_type_whatever_the_listing_says() {
    let kinds = [
        FileType::RegularFile,
        FileType::Directory,
        FileType::Symlink,
        FileType::NamedPipe,
        FileType::Socket,
        FileType::CharDevice,
    ];
    for listed_type in kinds {
        let mount = or_skip!(FuseMount::with(Habits {
            listed_type: Some(listed_type),
            ..Habits::default()
        }));
        for dir in ["s", "s/d", "s/odd-directory"] {
            Tree::at(mount.stored().join(dir))
                .file("odd-file", "content")
                .file("odd-empty", "")
                .hardlink("odd-file", "odd-name")
                .dir("odd-directory")
                .symlink("odd-link", "odd-file")
                .symlink("odd-way", "odd-directory")
                .fifo("odd-fifo")
                .file("plain", "plain");
        }
        Tree::at(mount.stored()).file("s/odd-directory/odd-directory/f", "2");
        let expected = mount.stored().join("s");
        let source = mount.path().join("s").display().to_string();
        let scratch = Scratch::in_memory();
        for options in [&["-r"][..], &["-a"], &["-ru"], &["-a", "--backup"]] {
            let kept = match options.contains(&"-a") {
                true => Attributes::ALL - Attributes::ATIME - Attributes::XATTRS,
                false => Attributes::CONTENT - Attributes::LINKS,
            };
            let dest = scratch.path().join("d");
            succeeds(&scratch, &[options, &["-T", &source, "d"]].concat());
            let [expected, copy] = [&expected, &dest].map(|at| Snapshot::of(at, kept));
            let difference = expected.diff(&copy);
            assert!(
                difference.is_empty(),
                "{listed_type:?} {options:?}\n{difference}"
            );
            testkit::tree::remove_for_sure(&dest).unwrap();
        }
        // Links are made to everything but directories.
        let directories = |at: &Path| {
            let find = Run::new("find").args(["-type", "d", "-printf", "%P\n"]);
            let mut names: Vec<_> = find
                .current_dir(at)
                .output()
                .stdout_text()
                .lines()
                .map(str::to_owned)
                .collect();
            names.sort();
            names
        };
        let made = [
            ("-rs", scratch.path().join("d"), scratch.path().join("d")),
            ("-al", mount.path().join("d"), mount.stored().join("d")),
        ];
        for (option, dest, stored) in made {
            let dest = dest.display().to_string();
            succeeds(&scratch, &[option, "-T", &source, &dest]);
            let message = format!("{listed_type:?} {option}");
            assert_eq!(directories(&stored), directories(&expected), "{message}");
        }
    }
}

/// The client of a server may show a name that another client has removed.
#[test]
#[ignore = "slow"]
fn a_dest_that_is_gone_when_it_is_removed_is_replaced() {
    let place = or_skip!(FuseMount::with(Habits {
        after_unlink: Some(Errno::NOENT),
        ..Habits::default()
    }));
    let source = Scratch::new();
    Tree::at(source.path())
        .file("s/file", "new")
        .symlink("s/link", "nowhere")
        .fifo("s/fifo");
    let dest = place.path().join("d").display().to_string();
    for options in [
        &["-r", "--remove-destination"][..],
        &["-a"],
        &["-af"],
        &["-a", "-b"],
    ] {
        Tree::at(place.stored().join("d"))
            .file("file", "old")
            .file("link", "old")
            .file("fifo", "old");
        let args = [options, &["-T", "s", &dest]].concat();
        succeeds(&source, &args);
        let [expected, copy] = [source.path().join("s"), place.stored().join("d")];
        for name in ["file", "link", "fifo"] {
            let [expected, copy] =
                [&expected, &copy].map(|dir| Snapshot::of(dir.join(name), Attributes::CONTENT));
            let difference = expected.diff(&copy);
            assert!(difference.is_empty(), "{options:?} {difference}");
        }
        testkit::tree::remove_for_sure(&copy).unwrap();
    }
}
