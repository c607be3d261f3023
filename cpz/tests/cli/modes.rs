//! Permission bits of copies.

use testkit::{
    needs,
    probe::{self, NOBODY},
    tree::Tree,
};

use crate::support::CP;

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
        let tree = tree.plant(format!("{name}/sub/f=content"));
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
    tree.plant("d/fifo<fifo> %666 d/private-fifo<fifo> %600");
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
        # Copies belong to the user.
        d/f=content :1:2 %6755 d/l->f :1:2 d/sub/ :1:2 %2755
        root cpz d new
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
    needs!(root);
    CP.check("d into", |tree| {
        all_modes(tree);
        setgid_parent(tree);
    });
}

// The tree has no directories that their owner can't write to. GNU makes such directories writable during the copy,
// by a chmod that drops the set-gid bit, so that their entries get another group.
#[test]
fn inherits_the_group_of_a_setgid_directory_as_an_ordinary_user() {
    CP.check_as_nobody("d into", |tree| {
        files_of_all_modes(tree);
        setgid_parent(tree.plant("d/sub/sub/f=content d/private/ %700"));
    });
}

// Makes no directories that their group can write to. GNU makes such directories without that bit, and restores it
// only as far as the umask allows. cpz grants what the ACL grants, to which the umask does not apply.
fn default_acl(tree: &Tree) {
    files_of_all_modes(tree);
    tree.plant(
        "d/sub/sub/f=content d/private/ %700 d/read-only/ %555 d/setgid/ %2755 d/sticky/ %1755
        d/fifo<fifo> %666 into/ acl:d:u:1:rwx,d:g:2:rx,d:o::-",
    );
}

#[test]
fn obeys_a_default_acl_of_the_dest_whatever_the_umask() {
    CP.table().build(default_acl).rows(
        "acls cpz d into
        acls umask:077 cpz d into
        acls user umask:077 cpz d into",
    );
}

#[test]
fn acls_of_source_and_dest() {
    CP.rows(
        r#"
        # A directory gets the rights of a default ACL, unlike by cp.
        d/sub/ %777 into/ acl:d:u:1:rwx,d:g:2:rx,d:o::-
        acls cpz d into
        = into/d/sub/ %770 into/d %750
        # No ACLs of the source are kept.
        d/f=content acl:u:1:rwx d/sub/ acl:u:1:rwx,d:u:2:r d/sub/f=
        acls cpz d new
        # A dest with the mode of a source with an ACL is closed until it is complete: the bits for the group are those of
        # its mask.
        s=new %660 acl:u:1:rw,g::- d=old %660
        acls strace sh:'strace -f -qq -o /dev/null -e inject=copy_file_range,write:signal=KILL "$@" 2>/dev/null; exit 0' cpz -a s d
        = d= %600"#,
    );
}
