//! Filesystems whose servers refuse some operations, or say what is not true. The result is that of GNU cp.

use std::time::Duration;

use testkit::{
    or_skip,
    probe::{Errno, FuseMount, Habits},
    run::{Run, Status},
    snapshot::{Attributes, assert_same_tree},
    tree::{Scratch, Tree, noise},
};

use crate::support::{CPZ, NEWEST_CP, succeeds};

const AT: Duration = Duration::from_secs(1_000_000_000);

fn build(tree: &Tree) {
    tree.file("s/d/large", noise((2 << 20) + 3))
        .file("s/empty", "")
        .file("s/a:b", "1")
        .file("s/read-only", "2")
        .mode(0o444)
        .dir("s/c:d")
        .fifo("s/pipe")
        .symlink("s/link", "empty")
        .file("s/twin", "3")
        .hardlink("s/twin", "s/other-twin")
        .sparse("s/holes", 3 << 20, &[(1 << 20, &noise(1 << 16))]);
    for name in ["s/d/large", "s/empty", "s/twin", "s/d", "s"] {
        tree.select(name).mtime(AT);
    }
}

#[test]
#[ignore = "slow"]
fn copies_to_a_server_that_refuses_or_lies_are_those_of_gnu() {
    let none = Habits::default;
    #[rustfmt::skip]
    let rows = [
        Habits { symlink: Some(Errno::PROTO), ..none() },
        Habits { mknod: Some(Errno::ROFS), ..none() },
        Habits { link: Some(Errno::PERM), ..none() },
        Habits { colon: Some(Errno::INVAL), ..none() },
        Habits { statfs: Some(Errno::IO), ..none() },
        Habits { fsync: Some(Errno::IO), ..none() },
        Habits { close_sets_time: true, ..none() },
        Habits { zero_links: true, ..none() },
        Habits { zero_blocks: true, ..none() },
        Habits { block_bytes: Some(1), ..none() },
        Habits { block_bytes: Some(1 << 24), ..none() },
    ];
    let local = Scratch::new();
    build(&Tree::at(local.path()));
    let source = local.path().join("s").display().to_string();
    for habits in rows {
        let mount = or_skip!(FuseMount::with(habits));
        let parity = NEWEST_CP.parity().on(mount.path());
        for option in ["-r", "-a", "-ab"] {
            parity.clone().args([option, &source, "d"]).check(|_| {});
        }
        let twice = parity.args(["-auT", &source, "d"]);
        twice.in_script(r#""$@"; "$@""#).check(|_| {});
    }
}

#[test]
#[ignore = "slow"]
fn copies_from_a_server_that_refuses_or_lies_are_those_of_gnu() {
    let none = Habits::default;
    #[rustfmt::skip]
    let rows = [
        Habits { read: Some(Errno::DEADLK), ..none() },
        Habits { readdir: Some(Errno::IO), ..none() },
        Habits { zero_links: true, ..none() },
        Habits { zero_blocks: true, ..none() },
        Habits { block_bytes: Some(3000), ..none() },
    ];
    for habits in rows {
        let mount = or_skip!(FuseMount::with(habits));
        let tree = Tree::at(mount.stored());
        build(tree.file("s/bad/f", "").file("s/e/bad/f", ""));
        let source = mount.path().join("s").display().to_string();
        // A file that could not be read gets a time that makes the next update copy it.
        let parity = NEWEST_CP.parity().attributes(Attributes::CONTENT);
        parity.args([&source, "d"]).check(|_| {});
    }
}

#[test]
#[ignore = "slow"]
fn files_that_could_not_be_read_are_copied_by_the_next_update() {
    let mount = or_skip!(FuseMount::with(Habits {
        read: Some(Errno::DEADLK),
        ..Habits::default()
    }));
    let local = Scratch::new();
    build(&Tree::at(mount.stored()));
    let [served, stored] = [mount.path(), mount.stored()].map(|dir| dir.join("s"));
    let run = Run::new(CPZ).arg("-aT").arg(served).arg("d");
    let outcome = run.current_dir(&local).output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    succeeds(&local, &["-auT", stored.to_str().unwrap(), "d"]);
    let attributes = Attributes::CONTENT | Attributes::MODE | Attributes::MTIME;
    assert_same_tree(stored, local.path().join("d"), attributes);
}
