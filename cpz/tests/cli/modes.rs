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

#[test]
fn obeys_the_umask() {
    CP.table().build(all_modes).rows(
        r"
        into/
        umask:(000|022|027|077|0777|0277) cpz d new
        umask:(000|022|027|077|0777|0277) cpz d/dir-0755/sub/f d/4755 d/dir-7777 into
        user umask:(000|022|027|077|0777|0277) cpz d new",
    );
}

#[test]
fn dests_and_their_modes() {
    CP.rows(
        r"
        # A file that exists keeps its mode.
        f=new %4755 old=old %604
        cpz f old
        # It loses set-id bits when it is written to.
        f=new old=old :65534 %6755
        user cpz f old
        # A directory that others may write to loses the set-group-id bit of another group.
        a/s/f=x b/ :65534:1 %2777 (a/s %777 a %777|a/s %3757 a %3757|a/s %733 a %733|a/s %500 a %500|a/s %177 a %177)
        user newest umask:(0|22) cp -r (-r|-p|-l|--preserve=ownership|--parents) a b",
    );
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
