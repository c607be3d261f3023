//! Hard links on filesystems on which a file does not keep its inode number, such as sshfs.

use std::{fs, os::unix::fs::MetadataExt};

use testkit::{
    habits,
    probe::Numbering,
    served,
    snapshot::{Attributes, assert_same_tree},
    tree::{Scratch, Tree},
};

use crate::support::{CP, succeeds};

fn linked() -> (Scratch, String) {
    let source = Scratch::new();
    Tree::at(source.path()).plant(
        "d/a/one=content d/a/two==d/a/one d/b/three==d/a/one d/a/link->one d/b/link==d/a/link
        d/pipe<fifo> d/b/pipe==d/pipe",
    );
    let d = source.at("d").display().to_string();
    (source, d)
}

#[test]
#[ignore = "slow"]
fn are_kept_between_the_copies() {
    for numbering in [Numbering::Lasting, Numbering::Forgetful, Numbering::Fresh] {
        for threads in ["--threads=1", "--threads=8"] {
            let (source, d) = linked();
            let mount = served!(numbering);
            // In the second round all dests exist.
            for _ in 0..2 {
                succeeds(mount.path(), ["-a", threads, &d, "."]);
                let stored = mount.stored();
                assert_same_tree(source.path(), stored, Attributes::CONTENT);
                for (name, links) in [("a/one", 3), ("b/link", 2), ("b/pipe", 2)] {
                    let stat = fs::symlink_metadata(stored.join("d").join(name)).unwrap();
                    assert_eq!(stat.nlink(), links, "{numbering:?} {threads} {name}");
                }
            }
        }
    }
}

#[test]
#[ignore = "slow"]
fn a_directory_is_copied_where_all_have_one_number() {
    for numbering in [Numbering::Equal, Numbering::Zero] {
        let mount = served!(numbering);
        Tree::at(mount.stored()).plant("s/file=content");
        succeeds(mount.path(), "s d");
        let copied = fs::read_to_string(mount.stored_at("d/file"));
        assert_eq!(copied.unwrap(), "content", "{numbering:?}");
    }
}

#[test]
#[ignore = "slow"]
fn are_kept_on_kernels_that_link_no_open_files() {
    let habits = habits!(numbering: Numbering::Lasting);
    CP.table().served("m", habits).rows(
        "# The first call makes a link by the name, the second one by a descriptor.
        one=content two==one m/
        fault:linkat:error=ENOENT:when=2 cpz -a one two m
        = m/one=content m/two==m/one
        one->nowhere two==one m/
        fault:linkat:error=ENOENT:when=2 cpz -a one two m
        = m/one->nowhere m/two==m/one
        one<fifo> two==one m/
        fault:linkat:error=ENOENT:when=2 cpz -a one two m
        = m/one<fifo> m/two==m/one",
    );
}
