//! Attributes that a copy preserves: owners, modes, ACLs, times, extended attributes.

use std::{path::Path, time::Duration};

use testkit::{
    needs, or_skip,
    probe::{Fs, LoopMount, is_root, newest_gnu},
    run::{Run, Table},
    skip,
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, memory},
};

use crate::support::{CP, CPZ, NEWEST_CP};

mod access_times;
mod missing;
mod without_proc;

const PAST: Duration = Duration::new(1_000_000_000, 123_456_789);
const EARLIER: Duration = Duration::new(900_000_000, 987_654_321);

/// Makes entries of all types with attributes.
fn some_of_everything(tree: &Tree) {
    let specials = owned(tree.fifo("s/fifo"), 3000).mode(0o620);
    let specials = specials.mtime(PAST).atime(EARLIER);
    owned(specials.socket("s/socket"), 3000).mode(0o705);
    some_of_all_that_opens(tree);
}

/// Makes files and directories with attributes, and links, which have no mode. All others are copied unopened.
fn some_of_all_that_opens(tree: &Tree) {
    let tree = tree.plant("s/plain=content s/empty= s/private=content %600 s/set-id=content");
    let tree = owned(tree, 4000).mode(0o6755);
    let tree = tree.plant("s/sticky=content %1644");
    let tree = owned(tree.plant("s/d/foreign=content"), 3000).mode(0o640);
    let tree = owned(tree.plant("s/link->plain"), 3000);
    let tree = tree
        .plant("s/attributed=content xattr:user.one=1")
        .xattr("user.two", b"")
        .plant("s/with-acl=content %640 acl:u:1234:rwx,g:77:r");
    let tree = tree.plant("s/d/default/ acl:d:u:1234:rwx,d:g:77:r s/d/closed/ %500");
    let tree = owned(tree.dir("s/d/set-id"), 3000).mode(0o2775);
    for path in ["s/plain", "s/empty", "s/link", "s/d/default", "s/d", "s"] {
        tree.select(path).mtime(PAST).atime(EARLIER);
    }
}

fn owned(tree: &Tree, id: u32) -> &Tree {
    if is_root() {
        tree.owner(id, id + 1)
    } else {
        tree
    }
}

/// A script that does nothing else.
const PLAINLY: &str = r#"exec "$@""#;

/// A script that hides the default ACL of `into` during the copy: cp 9.10 leaves ACLs that new entries inherit,
/// and cpz removes those that the source lacks.
const INHERITING_NOTHING: &str = r#"setfacl -k into || exit 99
    "$@"
    status=$?
    setfacl -m d:u:55:rwx,d:g:56:rwx into || exit 99
    exit "$status""#;

/// Compares copies to a new dest, to one with other attributes, and by an ordinary user. `script` prepares the old dest
/// of cp.
#[track_caller]
fn keeps_as_cp_does(flags: &str, script: &str) {
    CP.table().build(some_of_everything).rows(&format!(
        "into/
        (|user) cpz ({flags}) s new
        cpz ({flags}) s/plain s/set-id s/with-acl s/fifo s/d/closed into"
    ));
    let old = CP.table().build(|tree| {
        some_of_everything(tree);
        existing(tree);
    });
    let old = old.setting(|parity| parity.in_scripts(PLAINLY, script));
    old.rows(&format!("cpz ({flags}) s old"));
}

fn existing(tree: &Tree) {
    let tree = tree.plant(
        "old/s/plain='longer than the source' %4777 old/s/with-acl= %666 old/s/private= %666
        acl:u:99:rw old/s/attributed= xattr:user.two=other xattr:user.three=3 old/s/d/default/
        %700 old/s/d/closed/ acl:d:u:99:rwx",
    );
    owned(tree.plant("old/s/plain"), 2000);
}

#[test]
fn keeps_what_was_asked_for_and_not_left_out() {
    keeps_as_cp_does(
        "--preserve=ownership|--preserve=timestamps|--preserve=xattr|-a --no-preserve=mode|--no-preserve=mode|--attributes-only",
        PLAINLY,
    );
}

/// These flags preserve modes, so that ACLs of the dest are removed that the source lacks. cp 9.10 leaves them, so the
/// dest of cp has none.
#[track_caller]
fn keeps_modes_as_cp_does(flags: &str) {
    needs!("setfacl");
    let without_acls = r#"setfacl -bk old/s/private old/s/d/closed || exit 99; exec "$@""#;
    keeps_as_cp_does(flags, without_acls);
}

#[test]
fn keeps_modes() {
    keeps_modes_as_cp_does(
        "-p|-a|--preserve=all|--preserve=mode|-a --no-preserve=ownership,timestamps|--no-preserve=all --preserve=m,t",
    );
}

#[test]
fn copies_all_attributes_only() {
    // For an ordinary user, older releases leave set-id bits.
    or_skip!(newest_gnu("cp"));
    keeps_modes_as_cp_does("--attributes-only -a");
}

/// The layout says on which servers Lustre has put the file.
#[test]
fn keeps_layouts_only_on_the_same_filesystem() {
    needs!(root);
    let mount = or_skip!(LoopMount::new(Fs::Tmpfs, 1));
    let (scratch, other) = (Scratch::in_memory(), Tree::at(mount.path()));
    let tree = Tree::at(&scratch);
    tree.plant("s=x xattr:trusted.lov=layout xattr:trusted.t=t");
    other.plant("whole=x xattr:trusted.t=t");
    let whole = Snapshot::of(other.path().join("whole"), Attributes::XATTRS);
    for (dest, expected) in [
        (
            tree.path().join("d"),
            Snapshot::of(tree.path().join("s"), Attributes::XATTRS),
        ),
        (other.path().join("d"), whole),
    ] {
        let run = Run::new(CPZ).words("-a s").arg(&dest);
        run.current_dir(&scratch).output().assert_success();
        let copied = Snapshot::of(&dest, Attributes::XATTRS);
        assert_eq!(expected.diff(&copied), "");
    }
}

#[test]
fn keeps_all_if_a_default_acl_grants_more() {
    needs!("setfacl");
    let table = CP.table().build(some_of_everything);
    let table = table.setting(|parity| parity.in_scripts(PLAINLY, INHERITING_NOTHING));
    table.rows("into/ acl:d:u:55:rwx,d:g:56:rwx \n cpz -a s into");
}

#[test]
fn keeps_all_in_memory_and_on_ext4() {
    let on = |place: &Path| {
        let table = CP.table().build(some_of_everything);
        table
            .setting(|parity| parity.on(place))
            .rows("cpz -a s new");
    };
    on(&memory());
    on(or_skip!(LoopMount::new(Fs::Ext4, 16)).path());
}

/// The user may write to a file of root.
#[test]
fn names_the_times_that_it_may_not_set() {
    needs!(root);
    let script =
        "chown 0 theirs; chmod 666 theirs; exec setpriv --reuid 65534 --clear-groups \"$@\"";
    let table = CP.table().setting(|parity| parity.in_script(script));
    table.rows(
        "f=new %640 theirs=old . %777
        cpz (-p|-a|--preserve=mode|--preserve=ownership) f theirs",
    );
}

#[test]
fn words_of_lists() {
    CP.rows(
        "# Words are refused that cpz does not know.
        f=x
        bare cpz (--preserve=bogus|--preserve=|--preserve=mode,,links|--no-preserve=all,bogus|--no-preserve) f g
        # Words may be abbreviated.
        bare cpz --preserve=m,o,t,l,x f g",
    );
}

#[test]
fn speaks_of_contexts_as_cp_does() {
    if std::path::Path::new("/sys/fs/selinux/enforce").exists() {
        skip!("this kernel has SELinux");
    }
    CP.rows(
        "f=x
        bare cpz (-Z|--context|--context=c|--preserve=context|-a --context=c) f g
        bare cpz --preserve=context (--no-preserve=context|--no-preserve=all|--context=c) f g
        bare cpz --no-preserve=context --preserve=context f g
        bare cpz --preserve=context
        bare cpz --context=c (--context= --preserve=context|--bogus|--preserve=bogus) f g
        bare cpz --bogus --context=c f g",
    );
}

#[test]
fn links_targets_parents_and_modes() {
    CP.table().build(some_of_everything).rows(
        r"
        # The umask changes no mode that is kept, and a default ACL changes none that is not kept.
        into/ acl:d:u:55:rwx,d:g:56:rwx
        umask:027 cpz (--preserve=ownership|--no-preserve=mode) s new
        cpz --no-preserve=mode s into
        # The attributes of the targets of links are kept.
        s/to-fifo->fifo s/to-file->set-id s/to-dir->d/set-id
        cpz (-pL|-aL) s new
        cpz -aH s/to-dir s/to-fifo s/to-file .
        # No links are followed with -a and -d.
        .
        cpz -La s new
        cpz (-Hd|-dL) s/link new
        # Parents keep attributes, also the set-id bit that they inherit.
        into/ s/d %2551 @1000000000.123456789
        cpz (-p|-a|--preserve=timestamps|--preserve=ownership) --parents s/d/foreign into
        into/ %2755
        cpz --preserve=ownership --parents s/d/foreign into",
    );
}

/// The user may read the files of root but not change their owner, and may give files to the group of a file and of a
/// link.
#[test]
fn drops_set_id_bits_with_the_owner() {
    needs!(root);
    let script = "chown -hR 0:0 s; chmod 6755 s/set-id s/fifo; chmod 7755 s/d s/all; mkdir -m 777 into; \
        chown -h 0:65533 s/all s/link; \
        exec setpriv --reuid 65534 --groups 65533 \"$@\"";
    let table = NEWEST_CP.table().setting(|parity| parity.in_script(script));
    table.rows(
        "s/set-id=x s/all=x s/d/f=x s/fifo<fifo> s/link->all s/with-acl=x acl:u:1234:rwx . %777
        cpz (-a|-p|--preserve=ownership|-p --no-preserve=mode) s into",
    );
}

#[test]
fn dests_that_may_not_be_written_to() {
    CP.rows(
        r#"# Setting an attribute takes the permission to write to the file, which its owner can grant.
        s/f=content xattr:user.one=1 xattr:user.two=2 %555 s/empty= xattr:user.one=1 acl:u:1234:r %444
        s/d/ xattr:user.d=d %555
        user cpz (-a|--preserve=xattr|--preserve=mode,xattr|--preserve=all|-a --attributes-only) s new
        user cpz --no-preserve=mode --preserve=xattr s new
        # A dest with several names keeps its content if only attributes are copied.
        s=new dest=old other==dest link->nowhere fifo<fifo>
        cpz --attributes-only (-a s|-d s|-a link|-P link|-a fifo|-af s) dest
        # A link is left as it is when it is copied onto another name of it.
        l1->x l2==l1 . %777
        root sh:'exec setpriv --reuid 65534 --clear-groups "$@"' cpz -a l1 l2
        # Attributes that only root may see are kept.
        s/f=x xattr:trusted.t=t s/l->f xattr:trusted.l=l
        root cpz -a s new"#,
    );
}
