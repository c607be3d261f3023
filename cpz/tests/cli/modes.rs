//! Permission bits of copies.

use testkit::{
    probe::{self, NOBODY},
    skip,
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree},
};

use crate::support::{CP, succeeds};

fn files_of_all_modes(tree: &Tree) {
    let modes = [
        0o644, 0o600, 0o755, 0o777, 0o666, 0o444, 0o400, 0o000, 0o111, 0o640, 0o4755, 0o2755,
        0o6777, 0o1644, 0o7777, 0o2644,
    ];
    for mode in modes {
        // Set the owner first, because a later chown would drop the set-id bits.
        let tree = tree.file(format!("d/{mode:04o}"), b"content");
        owned(tree).mode(mode);
    }
}

fn dirs_of_all_modes(tree: &Tree) {
    let modes = [
        0o755, 0o700, 0o777, 0o555, 0o500, 0o2755, 0o1777, 0o4755, 0o7777, 0o2555, 0o711,
    ];
    for mode in modes {
        let name = format!("d/dir-{mode:04o}");
        let tree = tree.file(format!("{name}/sub/f"), b"content");
        owned(tree.select(&name)).mode(mode);
    }
}

fn owned(tree: &Tree) -> &Tree {
    match probe::is_root() {
        true => tree.owner(NOBODY, NOBODY),
        false => tree,
    }
}

fn all_modes(tree: &Tree) {
    files_of_all_modes(tree);
    dirs_of_all_modes(tree);
    tree.fifo("d/fifo")
        .mode(0o666)
        .fifo("d/private-fifo")
        .mode(0o600);
}

#[track_caller]
fn with_umask(umask: &str) {
    let wrapped = CP
        .parity()
        .in_script(&format!(r#"umask {umask}; exec "$@""#));
    wrapped.clone().args(["d", "new"]).check(all_modes);
    wrapped
        .clone()
        .args(["d/dir-0755/sub/f", "d/4755", "d/dir-7777", "into"])
        .check(|tree| {
            all_modes(tree);
            tree.dir("into");
        });
    if !probe::is_root() {
        skip!("only root can become another user");
    }
    wrapped
        .clone()
        .args(["d", "new"])
        .uid(NOBODY)
        .check(all_modes);
}

#[test]
fn obeys_umask_000() {
    with_umask("000");
}

#[test]
fn obeys_umask_022() {
    with_umask("022");
}

#[test]
fn obeys_umask_027() {
    with_umask("027");
}

#[test]
fn obeys_umask_077() {
    with_umask("077");
}

#[test]
fn obeys_umask_0777() {
    with_umask("0777");
}

#[test]
fn obeys_umask_0277() {
    with_umask("0277");
}

#[test]
fn keeps_the_mode_of_a_file_that_exists() {
    CP.check(["f", "old"], |tree| {
        tree.file("f", b"new")
            .mode(0o4755)
            .file("old", b"old")
            .mode(0o604);
    });
}

#[test]
fn drops_set_id_bits_of_a_file_it_writes_to() {
    CP.check_as_nobody(["f", "old"], |tree| {
        owned(tree.file("f", b"new").file("old", b"old")).mode(0o6755);
    });
}

fn setgid_parent(tree: &Tree) {
    owned(tree.dir("into")).owner(NOBODY, 1).mode(0o2775);
}

#[test]
fn inherits_the_group_of_a_setgid_directory() {
    if !probe::is_root() {
        skip!("only root can give directories away");
    }
    CP.check(["d", "into"], |tree| {
        all_modes(tree);
        setgid_parent(tree);
    });
}

// The tree has no directories that their owner can't write to. GNU makes such directories writable during the copy,
// by a chmod that drops the set-gid bit, so that their entries get another group.
#[test]
fn inherits_the_group_of_a_setgid_directory_as_an_ordinary_user() {
    CP.check_as_nobody(["d", "into"], |tree| {
        files_of_all_modes(tree);
        setgid_parent(
            tree.file("d/sub/sub/f", b"content")
                .dir("d/private")
                .mode(0o700),
        );
    });
}

// Makes no directories that their group can write to. GNU makes such directories without that bit, and restores it
// only as far as the umask allows. cpz grants what the ACL grants, to which the umask does not apply.
fn default_acl(tree: &Tree) {
    files_of_all_modes(tree);
    tree.file("d/sub/sub/f", b"content")
        .dir("d/private")
        .mode(0o700)
        .dir("d/read-only")
        .mode(0o555)
        .dir("d/setgid")
        .mode(0o2755)
        .dir("d/sticky")
        .mode(0o1755)
        .fifo("d/fifo")
        .mode(0o666)
        .dir("into")
        .acl("d:u:1:rwx,d:g:2:rx,d:o::-");
}

#[test]
fn grants_a_directory_the_rights_of_a_default_acl_unlike_cp() {
    if !probe::supports_acls(&std::env::temp_dir()) {
        skip!("no ACLs here");
    }
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .dir("d/sub")
        .mode(0o777)
        .dir("into")
        .acl("d:u:1:rwx,d:g:2:rx,d:o::-");
    succeeds(&scratch, &["d", "into"]);
    let copied = Snapshot::of(scratch.path().join("into/d/sub"), Attributes::MODE);
    assert!(format!("{copied:?}").contains("mode 770"), "{copied:?}");
}

#[test]
fn obeys_a_default_acl_of_the_dest() {
    if !probe::supports_acls(&std::env::temp_dir()) {
        skip!("no ACLs here");
    }
    CP.check(["d", "into"], default_acl);
}

#[test]
fn obeys_a_default_acl_of_the_dest_whatever_the_umask() {
    if !probe::supports_acls(&std::env::temp_dir()) {
        skip!("no ACLs here");
    }
    let wrapped = CP.parity().in_script(r#"umask 077; exec "$@""#);
    wrapped.clone().args(["d", "into"]).check(default_acl);
    wrapped.args(["d", "into"]).uid(NOBODY).check(default_acl);
}

#[test]
fn keeps_no_acls_of_the_source() {
    if !probe::supports_acls(&std::env::temp_dir()) {
        skip!("no ACLs here");
    }
    CP.check(["d", "new"], |tree| {
        tree.file("d/f", b"content")
            .acl("u:1:rwx")
            .dir("d/sub")
            .acl("u:1:rwx,d:u:2:r")
            .file("d/sub/f", b"");
    });
}

#[test]
fn owns_its_copies() {
    if !probe::is_root() {
        skip!("only root can give files away");
    }
    CP.check(["d", "new"], |tree| {
        tree.file("d/f", b"content")
            .owner(1, 2)
            .mode(0o6755)
            .symlink("d/l", "f")
            .owner(1, 2)
            .dir("d/sub")
            .owner(1, 2)
            .mode(0o2755);
    });
}

#[test]
fn a_directory_that_others_may_write_to_loses_the_set_group_id_bit_of_another_group() {
    if !probe::is_root() {
        skip!("only root can become another user");
    }
    let cp = CP.strict().only_newest().uid(NOBODY);
    for (umask, mode) in [
        (0, 0o777),
        (0, 0o775),
        (0, 0o3757),
        (0, 0o755),
        (0o22, 0o777),
        (2, 0o733),
        (0o22, 0o500),
        (0, 0o177),
    ] {
        let script = format!(r#"umask {umask:o}; exec "$@""#);
        for option in ["-r", "-p", "-l", "--preserve=ownership", "--parents"] {
            let cp = cp.clone().in_script(&script).args(["-r", option, "a", "b"]);
            cp.check(|tree| {
                tree.file("a/s/f", "x");
                tree.select("a/s").mode(mode).select("a").mode(mode);
                tree.dir("b").owner(NOBODY, 1).mode(0o2777);
            });
        }
    }
}
