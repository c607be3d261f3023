//! Copies to filesystems that programs serve by FUSE. Each has limits and habits of its own, and the result is
//! that of GNU cp: the same tree, the same messages and the same status.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path, thread, time::Duration};

use testkit::{
    or_skip,
    probe::{Mounted, Program},
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, noise},
};

use crate::support::{NEWEST_CP, succeeds};

/// A time with odd seconds, which not every filesystem can store.
const AT: Duration = Duration::from_nanos(1_000_000_001_987_654_321);

/// Builds a part of the tree `s`.
type Part = fn(&Tree);

const ALL: &[Part] = &[plain, sparse, twins, special, symlinks];

/// Builds what every filesystem can store.
fn plain(tree: &Tree) {
    tree.file("s/large", noise((2 << 20) + 3)).mtime(AT);
    small(tree);
}

/// Builds the part without a large file. rclone sometimes fails to store one that comes in several requests at once.
fn small(tree: &Tree) {
    tree.file("s/a/content", noise(10_000))
        .mode(0o751)
        .mtime(AT)
        .plant("s/a/empty= %440")
        .mtime(AT)
        .dir("s/empty-dir")
        .mtime(AT)
        .plant("s/a %555")
        .mtime(AT);
    for number in 0..40 {
        tree.plant(format!("s/many/{number}={number}")).mtime(AT);
    }
}

fn sparse(tree: &Tree) {
    tree.sparse("s/holes", 3 << 20, &[(1 << 20, &noise(1 << 16))])
        .mtime(AT)
        .sparse("s/hole", 1 << 20, &[])
        .mtime(AT);
}

fn twins(tree: &Tree) {
    tree.file("s/twin", noise(100))
        .xattr("user.note", "value")
        .mtime(AT)
        .plant("s/other-twin==s/twin");
}

fn special(tree: &Tree) {
    tree.plant("s/pipe<fifo>")
        .mtime(AT)
        .socket("s/socket")
        .mtime(AT)
        .char_device("s/null", 1, 3)
        .mtime(AT)
        .plant("s/owned=content :1000:1000 %4755")
        .mtime(AT);
}

fn symlinks(tree: &Tree) {
    tree.plant("s/link->a/content s/dangling->nowhere");
}

/// A filesystem, and what is compared on it.
struct Place {
    mount: Mounted,
    attributes: Attributes,
}

impl Place {
    fn with(program: Program, options: &[&str]) -> Result<Self, testkit::probe::Skip> {
        let unlisted = match program {
            // It fails to list attributes.
            Program::Rclone => Attributes::ATIME | Attributes::XATTRS,
            _ => Attributes::ATIME,
        };
        Ok(Self {
            mount: program.mount(options)?,
            attributes: Attributes::ALL - unlisted,
        })
    }

    /// Compares what both commands do on the filesystem, each in its script.
    #[track_caller]
    fn check(&self, scripts: [&str; 2], args: &[&str], build: impl Fn(&Tree)) {
        let [ours, gnus] = scripts;
        let parity = NEWEST_CP.parity().in_scripts(ours, gnus).args(args);
        let parity = parity.attributes(self.attributes).on(&self.mount);
        parity.check(build);
    }
}

const ONCE: &str = r#""$@""#;
const TWICE: &str = r#""$@"; "$@""#;

/// Compares copies of these parts to a filesystem, and of plain files within it and from it.
#[track_caller]
fn compare(program: Program, options: &[&str], parts: &[Part]) {
    let place = or_skip!(Place::with(program, options));
    let [local, local_plain] = [(); 2].map(|()| Scratch::new());
    for part in parts {
        part(&Tree::at(local.path()));
    }
    plain(&Tree::at(local_plain.path()));
    let [all, plain_files] = [&local, &local_plain].map(|dir| dir.path().join("s"));
    let [all, plain_files] = [&all, &plain_files].map(|source| source.to_str().unwrap());
    place.check([ONCE; 2], &[all, "d"], |_| {});
    place.check([ONCE; 2], &["-a", all, "d"], |_| {});
    place.check([r#""$@" --resume"#, ONCE], &["-a", all, "d"], |_| {});
    let verify = r#""$@" --verify --fsync"#;
    place.check([verify, ONCE], &["-a", all, "d"], |_| {});
    place.check([TWICE; 2], &["-auT", all, "d"], |_| {});
    // Our second run would name what it copies. GNU's says nothing.
    let names = r#""$@"; "$@" -v"#;
    place.check([names, TWICE], &["-auT", plain_files, "d"], |_| {});
    let interrupted = r#""$@"; rm d/large; "$@" --resume"#;
    place.check([interrupted, ONCE], &["-aT", plain_files, "d"], |_| {});
    let stored: Part = match program {
        Program::Rclone => small,
        _ => plain,
    };
    place.check([ONCE; 2], &["-a", "s", "d"], stored);
    place.check([ONCE; 2], &["-p", "s", "d"], stored);

    stored(&Tree::at(place.mount.path()));
    let served = place.mount.at("s");
    let back = NEWEST_CP.parity().attributes(place.attributes);
    back.args(["-a", served.to_str().unwrap(), "d"])
        .check(|_| {});
}

#[test]
#[ignore = "slow"]
fn copies_to_bindfs_are_those_of_gnu() {
    compare(Program::Bindfs, &[], ALL);
}

#[test]
#[ignore = "slow"]
fn copies_to_bindfs_that_sets_no_xattrs_are_those_of_gnu() {
    compare(Program::Bindfs, &["--xattr-ro"], ALL);
}

#[test]
#[ignore = "slow"]
fn copies_to_bindfs_that_ignores_modes_are_those_of_gnu() {
    compare(Program::Bindfs, &["--chmod-ignore"], ALL);
}

#[test]
#[ignore = "slow"]
fn copies_to_mergerfs_are_those_of_gnu() {
    compare(Program::Mergerfs, &[], ALL);
}

#[test]
#[ignore = "slow"]
fn copies_to_mergerfs_without_xattrs_are_those_of_gnu() {
    compare(Program::Mergerfs, &["-o", "xattr=noattr"], ALL);
}

#[test]
#[ignore = "slow"]
fn copies_to_unionfs_are_those_of_gnu() {
    compare(Program::Unionfs, &[], ALL);
}

#[test]
#[ignore = "slow"]
fn copies_to_gocryptfs_are_those_of_gnu() {
    compare(Program::Gocryptfs, &[], ALL);
}

#[test]
#[ignore = "slow"]
fn copies_to_sshfs_are_those_of_gnu() {
    compare(Program::Sshfs, &[], &[plain, sparse, twins, special]);
    // With -a, it sets the owner and the times of what a symlink points to, which may not be there yet.
    let place = or_skip!(Place::with(Program::Sshfs, &[]));
    let local = Scratch::new();
    symlinks(&Tree::at(local.path()));
    let source = local.at("s").display().to_string();
    place.check([ONCE; 2], &[&source, "d"], |_| {});
}

#[test]
#[ignore = "slow"]
fn copies_to_rclone_are_those_of_gnu() {
    // Sparse files cannot be extended there, and what is left of a failed copy depends on the command. It has no hard links, and
    // which name of a file is copied depends on the order of the listing.
    compare(Program::Rclone, &[], &[plain, special, symlinks]);
}

#[test]
#[ignore = "slow"]
fn copies_to_ntfs_are_those_of_gnu() {
    compare(Program::Ntfs3g, &[], ALL);
}

#[test]
#[ignore = "slow"]
fn copies_to_ntfs_with_permissions_are_those_of_gnu() {
    compare(Program::Ntfs3g, &["-o", "permissions"], ALL);
}

#[test]
#[ignore = "slow"]
fn copies_to_exfat_are_those_of_gnu() {
    // As with rclone.
    compare(Program::ExfatFuse, &[], &[plain, sparse, special, symlinks]);
}

#[test]
#[ignore = "slow"]
fn copies_to_juicefs_are_those_of_gnu() {
    compare(Program::Juicefs, &[], ALL);
}

/// Makes names and depths that a database or a store of objects might not take.
fn odd(tree: &Tree) {
    for name in [
        &b"new\nline"[..],
        b" space ",
        b"\xff\xfe",
        b"*?[",
        b"a:b",
        b"trail.",
        b"...",
        &[b'n'; 255],
    ] {
        let name = OsStr::from_bytes(name);
        tree.file(Path::new("s/names").join(name), name.as_bytes())
            .mtime(AT);
    }
    tree.file(format!("s/{}end", "d/".repeat(200)), "deep")
        .mtime(AT);
    for (name, bytes) in [("1", 1), ("4k", 4 << 10), ("1m", 1 << 20), ("5m", 5 << 20)] {
        tree.file(format!("s/sizes/{name}"), noise(bytes)).mtime(AT);
    }
}

#[test]
#[ignore = "slow"]
fn another_client_of_juicefs_sees_the_whole_copy() {
    let writer = or_skip!(Program::Juicefs.mount(&[]));
    let reader = or_skip!(Program::Juicefs.mount_again(&writer));
    let local = Scratch::new();
    for part in [plain, sparse, twins, special, symlinks, odd] {
        part(&Tree::at(local.path()));
    }
    let source = local.at("s").display().to_string();
    let ways: [&[&str]; 5] = [
        &["-aT"],
        &["-auT"],
        &["-aT", "--resume"],
        &["-aT", "--verify", "--fsync"],
        &["-aT", "--delete"],
    ];
    for (number, way) in ways.iter().enumerate() {
        let dest = writer.at(number.to_string());
        let args = [*way, &[&source, dest.to_str().unwrap()]].concat();
        succeeds(&writer, &args);
        // The second run finds a dest that is older, and perhaps one that the source lacks.
        let tree = Tree::at(&dest);
        tree.plant("large=older @1");
        if way.contains(&"--delete") {
            tree.plant("old/stray=");
        }
        succeeds(&writer, &args);
    }
    // Caches of the other client have expired by then, and the first one has deleted what it holds for unused.
    thread::sleep(Duration::from_secs(2));
    for (number, way) in ways.iter().enumerate() {
        // It shows no holes.
        let attributes = Attributes::ALL - Attributes::ATIME - Attributes::HOLES;
        let [expected, copy] = [Path::new(&source), &reader.at(number.to_string())]
            .map(|at| Snapshot::of(at, attributes));
        let difference = expected.diff(&copy);
        assert!(difference.is_empty(), "{way:?}\n{difference}");
    }
}
