//! `--link-dest` links to the unchanged files of an older copy, and `--itemize` says what happened to each dest.

use std::{fs, path::Path};

use testkit::{
    snapshot::{Attributes, Snapshot, assert_same_tree},
    tree::{Scratch, Tree, plant},
};

use crate::support::{CP, cpz, inode, succeeds};

const SOURCE: &str = "s/sub/ s/file=1 @1.1 s/sub/below=2 @1.1 s/empty= @1.1 s/link->file @1.1";

fn build(tree: &Tree) {
    tree.plant(SOURCE);
}

/// Runs cpz in `scratch`, and returns its sorted lines.
fn lines(scratch: &Scratch, args: &[&str]) -> Vec<String> {
    let outcome = cpz(scratch, args).output();
    let text = outcome.assert_success().stdout_text();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn everything(path: impl AsRef<Path>) -> Snapshot {
    Snapshot::of(path, Attributes::ALL - Attributes::ATIME)
}

#[test]
fn unchanged_files_become_links_to_the_older_copy() {
    let scratch = Scratch::new();
    build(&Tree::at(&scratch));
    succeeds(&scratch, "-aT s old");
    let before = everything(scratch.at("old"));
    let args = ["-aT", "--link-dest=old", "--itemize", "s", "new"];
    let expected = [
        "linked 'new/empty' (unchanged)",
        "linked 'new/file' (unchanged)",
        "linked 'new/sub/below' (unchanged)",
        "new 'new'",
        "new 'new/link'",
        "new 'new/sub'",
    ];
    let planned = lines(&scratch, &[&args[..], &["--dry-run"]].concat());
    assert_eq!(planned[..6], expected);
    assert_eq!(planned[6..], ["would copy 6 entries, 0 B"]);
    assert!(!scratch.at("new").exists());
    assert_eq!(
        lines(&scratch, &[&args[..], &["--verify", "--fsync"]].concat()),
        expected
    );
    for name in ["file", "sub/below", "empty"] {
        let [old, new] = ["old", "new"].map(|copy| inode(scratch.at(copy).join(name)));
        assert_eq!(old, new, "{name}");
    }
    let all = Attributes::ALL - Attributes::ATIME;
    assert_same_tree(scratch.at("s"), scratch.at("new"), all);
    let difference = before.diff(&everything(scratch.at("old")));
    assert!(difference.is_empty(), "{difference}");
}

/// The older copy has the same inodes, so neither content nor attributes may be changed in place.
#[test]
fn a_second_run_does_not_change_the_older_copy() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    build(&tree);
    succeeds(&scratch, "-aT s old");
    succeeds(&scratch, "-aT --link-dest=old s new");
    let before = everything(scratch.at("old"));
    tree.plant("s/file=changed @2.2 s/sub/below %600");
    for rules in [
        &["--resume"][..],
        &["-u"],
        &["--no-preserve=links"],
        &["--atomic"],
    ] {
        let args = [&["-aT", "--link-dest=old"][..], rules, &["s", "new"]].concat();
        succeeds(&scratch, &args);
        let difference = before.diff(&everything(scratch.at("old")));
        assert!(difference.is_empty(), "{rules:?}: {difference}");
        assert_eq!(fs::read(scratch.at("new/file")).unwrap(), b"changed");
    }
    let all = Attributes::ALL - Attributes::ATIME;
    assert_same_tree(scratch.at("s"), scratch.at("new"), all);
}

#[test]
fn files_that_are_linked_or_copied() {
    CP.table().build(plant(SOURCE)).rows(
        r#"
        # A file that would be another one is copied.
        old/file=1 @1.1
        cpz -a --link-dest=old --itemize -t. s/file
        > linked './file' (unchanged)
        = file==old/file
        old/file=1 @1.1 s/file @2.2
        cpz -a --link-dest=old --itemize -t. s/file
        > new './file'
        = file=1
        old/file=1 @1.1 s/file %600
        cpz -a --link-dest=old --itemize -t. s/file
        > new './file'
        = file=1 %600
        old/file=1 @1.1 s/file=12 @1.1
        cpz -a --link-dest=old --itemize -t. s/file
        > new './file'
        = file=12
        # It has what only the older file has, or what a copy would have.
        old/file=1 @1.1 (s/file :1:1|old/file :1:1)
        root cpz -a --link-dest=old --itemize -t. s/file
        > new './file'
        = file=1
        old/file=1 @1.1 (s/file xattr:user.a=1|old/file xattr:user.a=1)
        xattrs cpz -a --link-dest=old --itemize -t. s/file
        > new './file'
        = file=1
        old/file=1 @1.1 xattr:user.a=1 s/file xattr:user.a=1
        xattrs cpz -p --link-dest=old --itemize -t. s/file
        > new './file'
        = file=1
        old/file=1 @1.1 s/file acl:u:1:r
        acls cpz -a --link-dest=old --itemize -t. s/file
        > new './file'
        = file=1
        # Another type is at the older path.
        (old/file->../s/file|old/file<fifo>|old/file/|old/)
        cpz -a --link-dest=old --itemize -t. s/file
        > new './file'
        = file=1
        # No link in the older copy is followed.
        elsewhere/below=2 @1.1 old/sub->../elsewhere
        cpz -a --link-dest=old --itemize s/sub -t.
        > new './sub'
        > new './sub/below'
        = sub/below=2
        # The older copy stands for the directory that is copied into.
        old/ into/
        sh:'cpz -a -t old s s/file s/sub/.; "$@"' cpz -a --link-dest=old --itemize -t into s s/file s/sub/.
        > new 'into/s'
        > new 'into/s/link'
        > new 'into/s/sub'
        > linked 'into/s/file' (unchanged)
        > linked 'into/s/empty' (unchanged)
        > linked 'into/s/sub/below' (unchanged)
        > linked 'into/file' (unchanged)
        > linked 'into/./below' (unchanged)
        = old/s/file=1 old/s/empty= old/s/sub/below=2 old/s/link->file old/file=1 old/below=2 into/s/link->file into/s/sub/
        = into/s/file==old/s/file into/s/empty==old/s/empty into/s/sub/below==old/s/sub/below into/file==old/file
        = into/below==old/below
        old/s/sub/below=2 @1.1 into/
        cpz -a --parents --link-dest=old --itemize s/sub/below into
        > new 'into/s'
        > new 'into/s/sub'
        > linked 'into/s/sub/below' (unchanged)
        = into/s/sub/below==old/s/sub/below
        # Without an older copy, all is copied with a warning.
        cpz -aT --link-dest=missing s/sub new
        ! warning: nothing is linked to files in 'missing': No such file or directory
        ? 0
        = new/below=2
        # An older copy on another filesystem is of no use.
        other/
        root sh:'mount -t tmpfs none other; cpz -a s/sub/below other; "$@"; s=$?; umount other; exit $s' cpz -a --link-dest=other --itemize s/sub/below -t.
        ! warning: ...: Invalid cross-device link
        > new './below'
        ? 0
        = below=2
        # The older copy is neither deleted nor written to.
        backup/.old/file=1 @1.1
        cpz -aT --delete --link-dest=backup/.old s backup
        ! ...backup...
        old/file=1 @1.1
        cpz -a --link-dest=old s/file old
        ! ...are the same file...
        old/file=1 @1.1 new/file->../old/file s/file=changed @2.2
        cpz -a --link-dest=old s/file new
        = -new/file new/file=changed
        # A file of it has lost its content, but neither its size nor its time.
        old/below=x @1.1
        cpz -a --verify --link-dest=old s/sub/below -t.
        ! ...differs from...
        # A file of it that is the source is copied, as is a device.
        cpz -aT --link-dest=s --itemize s/sub new
        > new 'new'
        > new 'new/below'
        = new/below=2
        null<null> old/null<null> new/
        root cpz -a --link-dest=old --itemize null new
        > new 'new/null'
        = new/null<null>
        # Another user cannot give a copy what the older file has.
        old/below=2 @1.1 theirs/ theirs %777
        root sh:'exec setpriv --reuid=65534 --clear-groups "$@"' cpz -a --link-dest=old --itemize s/sub/below -t theirs
        > new 'theirs/below'
        = theirs/below=2
        # Options that make no copies exclude it.
        cpz --link-dest=old a b
        ! --link-dest needs -a or -p
        ! try
        cpz -al --link-dest=old a b
        ! --link-dest is mutually exclusive with -l, -s and --attributes-only
        ! try
        # Each dest has a line that says why.
        d/sub/below=2 @2.2 d/file=longer @1.1 d/empty= @1.1 d/extra= d/gone/ d/link='no link' s/added=
        cpz -aT --resume --delete --itemize s d
        > deleted 'd/extra'
        > deleted 'd/gone'
        > deleted 'd/link'
        > kept 'd/empty' (same size and time)
        > new 'd/added'
        > new 'd/link'
        > updated 'd/file' (other size)
        > updated 'd/sub/below' (other time)
        = -d/extra -d/gone -d/link d/link->file d/added= d/file=1
        cpz -aT --resume --delete --itemize --dry-run s d
        > deleted 'd/extra'
        > deleted 'd/gone'
        > deleted 'd/link'
        > kept 'd/empty' (same size and time)
        > new 'd/added'
        > new 'd/link'
        > updated 'd/file' (other size)
        > updated 'd/sub/below' (other time)
        > would copy 4 entries, 2 B, and delete 3
        d/file=1 @1.1
        cpz -a -u --itemize s/file d
        > kept 'd/file' (not older)
        cpz -a -n --itemize s/file d
        > kept 'd/file' (exists)
        cpz -a -f --itemize s/file d
        > updated 'd/file' (same size and time)
        cpz -a -i --itemize s/file d << n
        ! overwrite 'd/file'?
        > kept 'd/file' (declined)"#,
    );
}
