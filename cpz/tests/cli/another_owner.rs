//! Dests in a directory whose owner, another user, exchanges what a run has just created there.

use std::{fs, os::unix::fs::MetadataExt, path::Path, thread, time::Duration};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use testkit::{
    needs,
    run::Outcome,
    tree::{Scratch, Tree, plant},
};

use crate::support::{complaint, cpz};

const ANOTHER_USER: u32 = 65_534;

/// Copies by `command`, and exchanges `d/NAME` with `d/own` before anything else happens to it. `call` creates it.
#[track_caller]
fn copy_beside_its_exchange(tree: &Tree, call: &str, command: &[&str], name: &str) -> Outcome {
    let (root, own) = (tree.path(), tree.path().join("d/own"));
    let new = root.join("d").join(name);
    tree.plant("d")
        .owner(ANOTHER_USER, ANOTHER_USER)
        .mode(0o777)
        .plant("d/own")
        .owner(ANOTHER_USER, ANOTHER_USER);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !new.exists() {
                thread::sleep(Duration::from_millis(5));
            }
            exchange(&new, &own);
        });
        let faults = format!("{call}:delay_exit=700000");
        cpz(root, command).with_faults(&faults).output()
    })
}

fn exchange(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

#[track_caller]
fn leaves_what_another_user_put_there(
    call: &str,
    flags: &str,
    [source, name]: [&str; 2],
    build: impl Fn(&Tree),
) {
    needs!(root, "strace");
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    build(&tree);
    let outcome = copy_beside_its_exchange(&tree, call, &[flags, source, "d"], name);
    let expected = format!("cpz: cannot stat 'd/{name}': Stale file handle\n");
    assert_eq!(complaint(&outcome), expected, "{outcome}");
    outcome.assert_status(1);
    let dest = scratch.at("d").join(name);
    let found = fs::symlink_metadata(&dest).unwrap();
    assert_eq!((found.uid(), found.mode() & 0o777), (ANOTHER_USER, 0o755));
    if found.is_dir() {
        assert_eq!(fs::read_dir(&dest).unwrap().count(), 0);
    }
}

#[test]
#[ignore = "slow"]
fn nothing_is_copied_into_a_directory_that_another_user_exchanges_with_the_new_one() {
    for flags in ["-r", "-a"] {
        leaves_what_another_user_put_there(
            "mkdirat",
            flags,
            ["s/dir", "dir"],
            plant("s/dir/secret=secret d/own/ %755"),
        );
    }
}

#[test]
#[ignore = "slow"]
fn nothing_is_copied_into_a_directory_that_another_user_exchanges_with_a_new_parent() {
    leaves_what_another_user_put_there(
        "mkdirat",
        "--parents",
        ["s/secret", "s"],
        plant("s/secret=secret d/own/ %755"),
    );
}

#[test]
#[ignore = "slow"]
fn a_special_file_of_another_user_that_takes_the_place_of_the_new_one_keeps_its_attributes() {
    leaves_what_another_user_put_there(
        "mknodat",
        "-a",
        ["s/fifo", "fifo"],
        plant("s/fifo<fifo> %600 d/own<fifo> %755"),
    );
}
