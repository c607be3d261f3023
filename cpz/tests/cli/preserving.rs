//! Attributes that a copy preserves: owners, modes, ACLs, times, extended attributes.

use std::ffi::OsStr;
use std::time::Duration;

use testkit::{
    or_skip,
    probe::{Fs, LoopMount, NOBODY, has_calls_of, has_program, is_root, newest_gnu},
    run::{Parity, Run},
    skip,
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree},
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
    let tree = tree
        .file("s/plain", b"content")
        .file("s/empty", b"")
        .file("s/private", b"content")
        .mode(0o600)
        .file("s/set-id", b"content");
    let tree = owned(tree, 4000).mode(0o6755);
    let tree = tree.file("s/sticky", b"content").mode(0o1644);
    let tree = owned(tree.file("s/d/foreign", b"content"), 3000).mode(0o640);
    let tree = owned(tree.symlink("s/link", "plain"), 3000);
    let tree = tree
        .file("s/attributed", b"content")
        .xattr("user.one", b"1")
        .xattr("user.two", b"")
        .file("s/with-acl", b"content")
        .mode(0o640)
        .acl("u:1234:rwx,g:77:r");
    let tree = tree
        .dir("s/d/default")
        .acl("d:u:1234:rwx,d:g:77:r")
        .dir("s/d/closed")
        .mode(0o500);
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
const INHERITING_NOTHING: &str = r#"setfacl -k into || exit 9
    "$@"
    status=$?
    setfacl -m d:u:55:rwx,d:g:56:rwx into || exit 9
    exit "$status""#;

fn with(flags: &[&str]) -> Parity {
    CP.parity().args(flags)
}

/// Compares copies to a new dest, to one with other attributes, and both as an ordinary user.
#[track_caller]
fn keeps_as_cp_does(flags: &[&str]) {
    keeps_over(flags, with(flags));
}

/// Compares as [`keeps_as_cp_does`]. The flags preserve modes, so that ACLs of the dest are removed that the
/// source lacks. cp 9.10 leaves them, so the dest of cp has none.
#[track_caller]
fn keeps_modes_as_cp_does(flags: &[&str]) {
    if !has_program("setfacl") {
        skip!("there is no setfacl");
    }
    let without_acls = r#"setfacl -bk old/s/private old/s/d/closed || exit 9; exec "$@""#;
    keeps_over(flags, with(flags).in_scripts(PLAINLY, without_acls));
}

/// Compares as [`keeps_as_cp_does`]. `existing_dest` is the comparison with an existing dest.
#[track_caller]
fn keeps_over(flags: &[&str], existing_dest: Parity) {
    with(flags).args(["s", "new"]).check(some_of_everything);
    with(flags)
        .args([
            "s/plain",
            "s/set-id",
            "s/with-acl",
            "s/fifo",
            "s/d/closed",
            "into",
        ])
        .check(|tree| {
            some_of_everything(tree);
            tree.dir("into");
        });
    existing_dest.args(["s", "old"]).check(|tree| {
        some_of_everything(tree);
        existing(tree);
    });
    if !is_root() {
        skip!("only root can become another user");
    }
    with(flags)
        .args(["s", "new"])
        .uid(NOBODY)
        .check(some_of_everything);
}

fn existing(tree: &Tree) {
    let tree = tree
        .file("old/s/plain", b"longer than the source")
        .mode(0o4777)
        .file("old/s/with-acl", b"")
        .mode(0o666)
        .file("old/s/private", b"")
        .mode(0o666)
        .acl("u:99:rw")
        .file("old/s/attributed", b"")
        .xattr("user.two", b"other")
        .xattr("user.three", b"3")
        .dir("old/s/d/default")
        .mode(0o700)
        .dir("old/s/d/closed")
        .acl("d:u:99:rwx");
    owned(tree.select("old/s/plain"), 2000);
}

#[test]
fn keeps_the_usual() {
    keeps_modes_as_cp_does(&["-p"]);
}

#[test]
fn keeps_all() {
    keeps_modes_as_cp_does(&["-a"]);
}

#[test]
fn keeps_all_by_its_name() {
    keeps_modes_as_cp_does(&["--preserve=all"]);
}

#[test]
fn keeps_modes() {
    keeps_modes_as_cp_does(&["--preserve=mode"]);
}

#[test]
fn keeps_owners() {
    keeps_as_cp_does(&["--preserve=ownership"]);
}

#[test]
fn keeps_times() {
    keeps_as_cp_does(&["--preserve=timestamps"]);
}

#[test]
fn keeps_extended_attributes() {
    keeps_as_cp_does(&["--preserve=xattr"]);
}

#[test]
fn keeps_all_but_modes() {
    keeps_as_cp_does(&["-a", "--no-preserve=mode"]);
}

#[test]
fn keeps_all_but_owners_and_times() {
    keeps_modes_as_cp_does(&["-a", "--no-preserve=ownership,timestamps"]);
}

#[test]
fn keeps_nothing_of_the_mode() {
    keeps_as_cp_does(&["--no-preserve=mode"]);
}

#[test]
fn the_later_list_wins() {
    keeps_modes_as_cp_does(&["--no-preserve=all", "--preserve=m,t"]);
}

#[test]
fn copies_attributes_only() {
    keeps_as_cp_does(&["--attributes-only"]);
}

#[test]
fn copies_all_attributes_only() {
    // For an ordinary user, older releases leave set-id bits.
    or_skip!(newest_gnu("cp"));
    keeps_modes_as_cp_does(&["--attributes-only", "-a"]);
}

#[test]
fn keeps_trusted_attributes() {
    if !is_root() {
        skip!("trusted attributes are root's");
    }
    with(&["-a"]).args(["s", "new"]).check(|tree| {
        tree.file("s/f", b"x")
            .xattr("trusted.t", b"t")
            .symlink("s/l", "f")
            .xattr("trusted.l", b"l");
    });
}

/// The layout says on which servers Lustre has put the file.
#[test]
fn keeps_layouts_only_on_the_same_filesystem() {
    if !is_root() {
        skip!("trusted attributes are root's");
    }
    let mount = or_skip!(LoopMount::new(Fs::Tmpfs, 1));
    let (scratch, other) = (Scratch::in_memory(), Tree::at(mount.path()));
    let tree = Tree::at(scratch.path());
    tree.file("s", b"x")
        .xattr("trusted.lov", b"layout")
        .xattr("trusted.t", b"t");
    other.file("whole", b"x").xattr("trusted.t", b"t");
    let whole = Snapshot::of(other.path().join("whole"), Attributes::XATTRS);
    for (dest, expected) in [
        (
            tree.path().join("d"),
            Snapshot::of(tree.path().join("s"), Attributes::XATTRS),
        ),
        (other.path().join("d"), whole),
    ] {
        let run = Run::new(CPZ).args(["-a", "s"]).arg(&dest);
        run.current_dir(&scratch).output().assert_success();
        let copied = Snapshot::of(&dest, Attributes::XATTRS);
        assert_eq!(expected.diff(&copied), "");
    }
}

#[test]
fn keeps_times_of_access() {
    let only_files = |tree: &Tree| {
        tree.file("f", b"content").atime(EARLIER).mtime(PAST);
    };
    with(&["-p"])
        .args(["f", "new"])
        .attributes(Attributes::ALL)
        .check(only_files);
}

#[test]
fn keeps_all_if_a_default_acl_grants_more() {
    if !has_program("setfacl") {
        skip!("there is no setfacl");
    }
    with(&["-a"])
        .in_scripts(PLAINLY, INHERITING_NOTHING)
        .args(["s", "into"])
        .check(|tree| {
            some_of_everything(tree);
            tree.dir("into").acl("d:u:55:rwx,d:g:56:rwx");
        });
}

#[test]
fn keeps_no_mode_if_a_default_acl_grants_more() {
    with(&["--no-preserve=mode"])
        .args(["s", "into"])
        .check(|tree| {
            some_of_everything(tree);
            tree.dir("into").acl("d:u:55:rwx,d:g:56:rwx");
        });
}

#[test]
fn keeps_owners_under_an_umask() {
    CP.parity()
        .in_script(r#"umask 027; exec "$@""#)
        .args(["--preserve=ownership", "s", "new"])
        .check(some_of_everything);
}

#[test]
fn keeps_no_mode_under_an_umask() {
    CP.parity()
        .in_script(r#"umask 027; exec "$@""#)
        .args(["--no-preserve=mode", "s", "new"])
        .check(some_of_everything);
}

#[test]
fn keeps_all_on_ext4() {
    let mount = testkit::or_skip!(LoopMount::new(Fs::Ext4, 16));
    with(&["-a"])
        .args(["s", "new"])
        .on(mount.path())
        .check(some_of_everything);
}

#[test]
fn keeps_all_in_memory() {
    let build = some_of_everything;
    with(&["-a"])
        .args(["s", "new"])
        .on(testkit::tree::memory())
        .check(build);
}

#[test]
fn names_the_times_that_it_may_not_set() {
    if !is_root() {
        skip!("only root can make files of others");
    }
    for_others(&["-p", "f", "theirs"]);
    for_others(&["-a", "f", "theirs"]);
    for_others(&["--preserve=mode", "f", "theirs"]);
    for_others(&["--preserve=ownership", "f", "theirs"]);
}

/// Compares cpz with cp, run by a user that may write to a file of root.
#[track_caller]
fn for_others(args: &[&str]) {
    let script =
        "chown 0 theirs; chmod 666 theirs; exec setpriv --reuid 65534 --clear-groups \"$@\"";
    CP.parity().in_script(script).args(args).check(|tree| {
        tree.file("f", b"new").mode(0o640);
        tree.file("theirs", b"old").select(".").mode(0o777);
    });
}

#[track_caller]
fn refuses_as_cp_does(args: &[&str]) {
    Parity::new(CPZ, "cp")
        .args(args.iter().map(OsStr::new))
        .check(|tree| {
            tree.file("f", b"x");
        });
}

#[test]
fn refuses_words_that_it_does_not_know() {
    refuses_as_cp_does(&["--preserve=bogus", "f", "g"]);
    refuses_as_cp_does(&["--preserve=", "f", "g"]);
    refuses_as_cp_does(&["--preserve=mode,,links", "f", "g"]);
    refuses_as_cp_does(&["--no-preserve=all,bogus", "f", "g"]);
    refuses_as_cp_does(&["--no-preserve", "f", "g"]);
}

#[test]
fn takes_abbreviated_words() {
    refuses_as_cp_does(&["--preserve=m,o,t,l,x", "f", "g"]);
}

#[test]
fn speaks_of_contexts_as_cp_does() {
    if std::path::Path::new("/sys/fs/selinux/enforce").exists() {
        skip!("this kernel has SELinux");
    }
    refuses_as_cp_does(&["-Z", "f", "g"]);
    refuses_as_cp_does(&["--context", "f", "g"]);
    refuses_as_cp_does(&["--context=c", "f", "g"]);
    refuses_as_cp_does(&["--preserve=context", "f", "g"]);
    refuses_as_cp_does(&["--preserve=context", "--no-preserve=context", "f", "g"]);
    refuses_as_cp_does(&["--preserve=context"]);
    refuses_as_cp_does(&["-a", "--context=c", "f", "g"]);
    refuses_as_cp_does(&["--preserve=context", "--no-preserve=all", "f", "g"]);
    refuses_as_cp_does(&["--no-preserve=context", "--preserve=context", "f", "g"]);
    refuses_as_cp_does(&["--preserve=context", "--context=c", "f", "g"]);
    refuses_as_cp_does(&["--context=c", "--context=", "--preserve=context", "f", "g"]);
    refuses_as_cp_does(&["--context=c", "--bogus", "f", "g"]);
    refuses_as_cp_does(&["--context=c", "--preserve=bogus", "f", "g"]);
    refuses_as_cp_does(&["--bogus", "--context=c", "f", "g"]);
}

#[test]
fn keeps_the_attributes_of_the_targets_of_links() {
    let build = |tree: &Tree| {
        some_of_everything(tree);
        tree.symlink("s/to-fifo", "fifo")
            .symlink("s/to-file", "set-id")
            .symlink("s/to-dir", "d/set-id");
    };
    with(&["-pL"]).args(["s", "new"]).check(build);
    with(&["-aH"])
        .args(["s/to-dir", "s/to-fifo", "s/to-file", "."])
        .check(build);
    with(&["-aL"]).args(["s", "new"]).check(build);
}

#[test]
fn follows_no_links_with_a_and_d() {
    with(&["-La"]).args(["s", "new"]).check(some_of_everything);
    with(&["-Hd"])
        .args(["s/link", "new"])
        .check(some_of_everything);
    with(&["-dL"])
        .args(["s/link", "new"])
        .check(some_of_everything);
}

/// Compares cpz with cp, run by a user that may read the files of root but not change their owner. The user may give
/// files to the group of a file and of a link.
#[track_caller]
fn of_others(flags: &[&str]) {
    let script = "chown -hR 0:0 s; chmod 6755 s/set-id s/fifo; chmod 7755 s/d s/all; mkdir -m 777 into; \
        chown -h 0:65533 s/all s/link; \
        exec setpriv --reuid 65534 --groups 65533 \"$@\"";
    NEWEST_CP
        .parity()
        .in_script(script)
        .args(flags)
        .args(["s", "into"])
        .check(|tree| {
            tree.file("s/set-id", b"x")
                .file("s/all", b"x")
                .file("s/d/f", b"x")
                .fifo("s/fifo")
                .symlink("s/link", "all")
                .file("s/with-acl", b"x")
                .acl("u:1234:rwx")
                .select(".")
                .mode(0o777);
        });
}

#[test]
fn drops_set_id_bits_with_the_owner() {
    if !is_root() {
        skip!("only root can become another user");
    }
    of_others(&["-a"]);
    of_others(&["-p"]);
    of_others(&["--preserve=ownership"]);
    of_others(&["-p", "--no-preserve=mode"]);
}

#[test]
fn keeps_attributes_of_parents() {
    let build = |tree: &Tree| {
        some_of_everything(tree);
        tree.dir("into").select("s/d").mode(0o2551).mtime(PAST);
    };
    for_parents(&["-p"], build);
    for_parents(&["-a"], build);
    for_parents(&["--preserve=timestamps"], build);
    for_parents(&["--preserve=ownership"], build);
}

#[test]
fn leaves_parents_the_set_id_bit_that_they_inherit() {
    let build = |tree: &Tree| {
        some_of_everything(tree);
        tree.dir("into").mode(0o2755);
    };
    for_parents(&["--preserve=ownership"], build);
}

/// Compares cpz with cp on a single source. cp sets the times of parents after each source, and the next one changes
/// them.
#[track_caller]
fn for_parents(flags: &[&str], build: impl Fn(&Tree)) {
    with(flags)
        .args(["--parents", "s/d/foreign", "into"])
        .check(build);
}

/// Setting an attribute takes the permission to write to the file, which its owner can grant.
#[test]
fn keeps_the_attributes_of_files_that_may_not_be_written_to() {
    if !is_root() {
        skip!("only root can become another user");
    }
    for flag in [
        "-a",
        "--preserve=xattr",
        "--preserve=mode,xattr",
        "--preserve=all",
        "-a --attributes-only",
        "--no-preserve=mode --preserve=xattr",
    ] {
        CP.parity()
            .args(flag.split(' '))
            .args(["s", "new"])
            .uid(NOBODY)
            .check(|tree| {
                tree.file("s/f", b"content")
                    .xattr("user.one", b"1")
                    .xattr("user.two", b"2")
                    .mode(0o555)
                    .file("s/empty", b"")
                    .xattr("user.one", b"1")
                    .acl("u:1234:r")
                    .mode(0o444)
                    .dir("s/d")
                    .xattr("user.d", b"d")
                    .mode(0o555);
            });
    }
}

#[test]
fn leaves_the_content_of_a_dest_with_several_names_if_only_attributes_are_copied() {
    let build = |tree: &Tree| {
        tree.file("s", b"new")
            .file("dest", b"old")
            .hardlink("dest", "other")
            .symlink("link", "nowhere")
            .fifo("fifo");
    };
    for flags in [
        ["-a", "--attributes-only", "s", "dest"],
        ["-d", "--attributes-only", "s", "dest"],
        ["-a", "--attributes-only", "link", "dest"],
        ["-P", "--attributes-only", "link", "dest"],
        ["-a", "--attributes-only", "fifo", "dest"],
        ["-af", "--attributes-only", "s", "dest"],
    ] {
        CP.parity().args(flags).check(build);
    }
}
