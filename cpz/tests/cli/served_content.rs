//! Content on filesystems whose servers refuse calls, or tell something that is not true.

use std::{fs, os::unix::fs::MetadataExt, path::Path, time::Duration};

use testkit::{
    habits, or_skip,
    probe::{Errno, FileType, FuseMount, Habits},
    run::{Run, Status},
    served,
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, noise},
};

use crate::support::{CP, CPZ, complaint, succeeds};

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
    tree.plant("empty= small=1")
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
    let mount = or_skip!(FuseMount::with(habits.clone()));
    let local = Scratch::in_memory();
    files(&Tree::at(local.at("s")));
    files(&Tree::at(mount.stored_at("s")));
    let expected = Snapshot::of(local.at("s"), Attributes::CONTENT);
    let served = |name: &str| mount.at(name).display().to_string();
    for (number, options) in OPTIONS.into_iter().enumerate() {
        let [to, within, from] = ["to", "within", "from"].map(|way| format!("{way}{number}"));
        let copies = [
            ("s".to_owned(), served(&to), mount.stored_at(&to)),
            (served("s"), served(&within), mount.stored_at(&within)),
            (served("s"), from.clone(), local.at(&from)),
        ];
        for (source, dest, stored) in copies {
            let args = [options, &["-T", &source, &dest]].concat();
            succeeds(&local, &args);
            let difference = expected.diff(&Snapshot::of(stored, Attributes::CONTENT));
            assert!(difference.is_empty(), "{habits:?} {args:?}\n{difference}");
        }
    }
}

#[test]
#[ignore = "slow"]
fn content_is_complete_whatever_the_server_refuses() {
    for errno in [Errno::IO, Errno::FBIG] {
        copies_all(habits!(copy_file_range: Some(errno)));
    }
    for errno in [Errno::PERM, Errno::NOSYS] {
        copies_all(habits!(truncate: Some(errno)));
        copies_all(habits!(nonseekable: true, truncate: Some(errno)));
    }
    for errno in [Errno::IO, Errno::NOSYS] {
        copies_all(habits!(seek: Some(errno)));
    }
    for errno in [Errno::INVAL, Errno::PERM] {
        copies_all(habits!(open_nonblocking: Some(errno)));
    }
    copies_all(habits!(read_nonblocking: Some(Errno::AGAIN)));
    copies_all(habits!(direct_read: Some(Errno::INVAL)));
    copies_all(habits!(nonseekable: true));
    copies_all(habits!(hidden_sizes: true));
    copies_all(habits!(longest_write: Some(10_000)));
}

#[test]
#[ignore = "slow"]
fn a_file_that_cannot_be_read_to_its_end_is_reported() {
    let mount = served!(unreadable_from: Some(50_000));
    let tree = Tree::at(mount.stored());
    tree.file("s/bad", noise(60_000))
        .file("s/good", noise(40_000));
    for dest in ["d", "/dev/shm"] {
        let scratch = Scratch::in_memory();
        let dest = match dest {
            "d" => mount.at("d"),
            _ => scratch.at("d"),
        };
        let run = Run::new(CPZ).words("-rT s").args([&dest]);
        let outcome = run.current_dir(mount.path()).fails();
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
        let mount = served!(write_back: Some(errno));
        let local = Scratch::in_memory();
        Tree::at(local.path()).file("f", noise(60_000)).mode(0o444);
        let dest = mount.at("f");
        for options in [
            &["-r"][..],
            &["-a"],
            &["-p"],
            &["--preserve=ownership"],
            &["--preserve=mode"],
            &["--preserve=timestamps"],
            &["-a", "--atomic"],
        ] {
            Tree::at(mount.stored()).plant("f=old @1000000000");
            let run = Run::new(CPZ).args(options).words("f").arg(&dest);
            let outcome = run.current_dir(&local).output();
            let row = format!("{errno} {options:?}: {outcome}");
            assert_eq!(outcome.status, Status::Exit(1), "{row}");
            assert_eq!(complaint(&outcome).lines().count(), 1, "{row}");
            let stored = mount.stored_at("f");
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
        let mount = served!(listed_type: Some(listed_type));
        for dir in ["s", "s/d", "s/odd-directory"] {
            Tree::at(mount.stored_at(dir)).plant(
                "odd-file=content odd-empty= odd-name==odd-file odd-directory/ odd-link->odd-file
                odd-way->odd-directory odd-fifo<fifo> plain=plain",
            );
        }
        Tree::at(mount.stored()).plant("s/odd-directory/odd-directory/f=2");
        let expected = mount.stored_at("s");
        let source = mount.at("s").display().to_string();
        let scratch = Scratch::in_memory();
        for options in [&["-r"][..], &["-a"], &["-ru"], &["-a", "--backup"]] {
            let kept = match options.contains(&"-a") {
                true => Attributes::ALL - Attributes::ATIME - Attributes::XATTRS,
                false => Attributes::CONTENT - Attributes::LINKS,
            };
            let dest = scratch.at("d");
            succeeds(&scratch, [options, &["-T", &source, "d"]].concat());
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
            ("-rs", scratch.at("d"), scratch.at("d")),
            ("-al", mount.at("d"), mount.stored_at("d")),
        ];
        for (option, dest, stored) in made {
            let dest = dest.display().to_string();
            succeeds(&scratch, [option, "-T", &source, &dest]);
            let message = format!("{listed_type:?} {option}");
            assert_eq!(directories(&stored), directories(&expected), "{message}");
        }
    }
}

/// The client of a server may show a name that another client has removed.
#[test]
#[ignore = "slow"]
fn a_dest_that_is_gone_when_it_is_removed_is_replaced() {
    let habits = habits!(after_unlink: Some(Errno::NOENT));
    CP.table().served("m", habits).rows(
        "s/file=new s/link->nowhere s/fifo<fifo> m/file=old m/link=old m/fifo=old
        cpz (-r --remove-destination|-a|-af) -T s m
        = m/file=new -m/link m/link->nowhere -m/fifo m/fifo<fifo>
        cpz -abT s m
        = m/file~=old m/link~=old m/fifo~=old m/file=new -m/link m/link->nowhere -m/fifo m/fifo<fifo>",
    );
}
