//! Shared blocks and holes: `--reflink` and `--sparse`, and `--debug`, which reports them.

use std::{ffi::OsStr, fs::File, os::unix::fs::MetadataExt as _, path::Path, process::Command};

use testkit::{
    needs, or_skip,
    probe::{Fs, LoopMount, gnu},
    run::{Outcome, Run},
    tree::{Scratch, Tree, memory, noise},
};

use crate::support::{CP, CPZ, NEWEST_CP};

fn run(program: impl AsRef<OsStr>, dir: &Path, args: &[&str]) -> Outcome {
    let run = Run::new(program).args(args).current_dir(dir);
    run.output()
}

/// Returns `true` if the file shares blocks with another.
fn shares(path: &Path) -> bool {
    File::open(path).unwrap().sync_all().unwrap();
    let output = Command::new("filefrag").arg("-v").arg(path).output();
    String::from_utf8_lossy(&output.unwrap().stdout).contains("shared")
}

/// Makes a copy with `flag` on a filesystem of this kind, and asserts that it shares blocks if
/// `expected` is `true`, and otherwise does not.
fn copies_on(fs: Fs, flag: &str, expected: bool) {
    needs!("filefrag");
    let mount = or_skip!(LoopMount::new(fs, 300));
    let tree = Tree::at(mount.path());
    tree.file("d/small", noise(5_000))
        .file("d/large", noise((9 << 20) + 5))
        .sparse("d/holes", 2 << 20, &[(1 << 20, &noise(1 << 16))]);
    run(CPZ, tree.path(), &[flag, "d", "new"]).assert_success();
    for name in ["small", "large", "holes"] {
        let [source, dest] = ["d", "new"].map(|dir| tree.path().join(dir).join(name));
        assert_eq!(shares(&dest), expected, "{name}");
        let blocks = |path: &Path| path.metadata().unwrap().blocks();
        if name == "holes" {
            assert_eq!(blocks(&dest), blocks(&source));
        }
        assert!(std::fs::read(&source).unwrap() == std::fs::read(&dest).unwrap());
    }
}

#[test]
#[ignore = "slow"]
fn blocks_are_shared_if_that_is_wanted() {
    for fs in [Fs::Xfs, Fs::Btrfs] {
        copies_on(fs, "--reflink=auto", true);
        copies_on(fs, "--reflink", true);
        copies_on(fs, "--reflink=never", false);
    }
}

#[test]
fn shares_all_blocks_or_says_which_file_shares_none() {
    let in_memory = NEWEST_CP.table().setting(|parity| parity.on(memory()));
    // cp 9.1 leaves empty files.
    in_memory.rows("d/f=content d/empty= \n cpz --reflink=always d new");
    CP.rows("f=content old=old \n cpz --reflink=always f old");
    let other = or_skip!(LoopMount::new(Fs::Tmpfs, 1));
    Tree::at(other.path()).plant("old=old");
    CP.rows(&format!(
        "f=content \n cp --reflink f {}",
        other.at("old").display()
    ));
}

#[test]
fn shares_and_makes_holes_not_at_once() {
    CP.rows(
        "f=content
        cp (--reflink --sparse=always|--reflink=x|--reflink=a|--sparse=a|--sparse=) f new
        cp --reflink=always --sparse=never
        cp --sparse=n --reflink=au f new",
    );
}

/// Makes files with zeros and holes of several kinds.
fn zeros(tree: &Tree) {
    let data = noise(1 << 16);
    let with = |zeros: usize, end: &[u8]| [&data[..], &vec![0; zeros], end].concat();
    tree.file("d/zeros", vec![0; 200_000])
        .file("d/middle", with(1 << 16, b"end"))
        .file("d/unaligned", with(50_001, b"end"))
        .file("d/end", with(77_777, b""))
        .file("d/small", [0; 100])
        .file("d/large", with(6 << 20, &data))
        .plant("d/empty=")
        .sparse(
            "d/holes",
            3 << 20,
            &[(1 << 20, &data), (2 << 20, &[0; 1 << 16])],
        )
        .sparse("d/hole", 5 << 20, &[]);
}

/// Asserts that copies have as many blocks as cp's copies.
#[track_caller]
fn takes_as_much_room(dir: &Path, flag: &str) {
    let cp = or_skip!(gnu("cp"));
    let tree = Tree::at(dir);
    zeros(&tree);
    run(CPZ, dir, &[flag, "--reflink=never", "d", "ours"]).assert_success();
    run(&cp, dir, &["-r", flag, "--reflink=never", "d", "gnu"]).assert_success();
    for entry in dir.join("d").read_dir().unwrap() {
        let name = entry.unwrap().file_name();
        let blocks = |dir: &str| {
            let file = File::open(tree.path().join(dir).join(&name)).unwrap();
            file.sync_all().unwrap();
            file.metadata().unwrap().blocks()
        };
        assert_eq!(blocks("ours"), blocks("gnu"), "{}", name.display());
        let read = |dir: &str| std::fs::read(tree.path().join(dir).join(&name)).unwrap();
        assert!(read("d") == read("ours"), "{}", name.display());
    }
}

#[test]
fn makes_as_many_holes_as_cp() {
    takes_as_much_room(Scratch::in_memory().path(), "--sparse=always");
    let disk = Scratch::new_in(&std::env::temp_dir());
    takes_as_much_room(disk.path(), "--sparse=always");
}

#[test]
#[ignore = "slow"]
fn makes_as_many_holes_as_cp_on_disks() {
    for fs in [Fs::Ext4, Fs::Xfs, Fs::Btrfs] {
        takes_as_much_room(or_skip!(LoopMount::new(fs, 300)).path(), "--sparse=always");
    }
}

#[test]
#[ignore = "slow"]
fn fills_holes_as_cp_does() {
    takes_as_much_room(Scratch::in_memory().path(), "--sparse=never");
    takes_as_much_room(
        or_skip!(LoopMount::new(Fs::Xfs, 300)).path(),
        "--sparse=never",
    );
}

#[test]
#[ignore = "slow"]
fn sparse_copies_share_blocks_as_those_of_cp_do() {
    let mount = or_skip!(LoopMount::new(Fs::Xfs, 300));
    zeros(&Tree::at(mount.path()));
    for (flag, shared) in [("--sparse=always", true), ("--sparse=never", false)] {
        run(CPZ, mount.path(), &[flag, "d/zeros", "new"]).assert_success();
        assert_eq!(shares(&mount.at("new")), shared, "{flag}");
    }
    run(CPZ, mount.path(), &["--sparse=never", "d/hole", "full"]).assert_success();
    let full = mount.at("full").metadata().unwrap();
    assert_eq!(full.blocks(), (5 << 20) / 512);
}

#[test]
fn makes_holes_in_files_only() {
    let table = CP.table().build(|tree| {
        tree.sparse("f", 100_000, &[(50_000, b"data\n")]);
    });
    table.rows(
        r#"p<fifo>
        sh:'cat p & "$@"; s=$?; wait; exit $s' cpz --sparse=always f p"#,
    );
}

#[test]
#[ignore = "slow"]
fn copies_trees_sparsely() {
    CP.table().build(zeros).rows(
        "cpz (--sparse=always|--sparse=never) d new
        cpz --sparse=auto --reflink=never d/hole d/large d/end .
        old/zeros=~300000
        cpz --sparse=always d/. old",
    );
}

/// Compares what `--debug` prints about all kinds of content that are copied below `dir` to `dest`, and about copies that
/// fail.
#[track_caller]
fn debugs(dir: &Path, dest: &str) {
    let build = |tree: &Tree| {
        tree.file("d/data", noise(5_000))
            .plant("d/empty=")
            .file("d/zeros", [0; 20_000])
            .sparse("d/hole", 100_000, &[])
            .sparse("d/holes", 100_000, &[(50_000, b"data")])
            .plant("dangling->nowhere");
    };
    let script = format!("rm -rf {dest}; mkdir {dest}; \"$@\"");
    let table = NEWEST_CP.table().build(build);
    let table = table.setting(|parity| parity.in_script(&script).on(dir));
    table.rows(&format!(
        "cpz --debug (--reflink=always|--sparse=auto|--sparse=always|--sparse=never) (d|d/. d/holes|/proc/version) {dest}
        cpz --debug --reflink=never --sparse=(auto|always|never) (d|/sys/kernel/fscaps) {dest}
        cpz --debug (--reflink=always|--sparse=auto) (--copy-contents /dev/null|--attributes-only d) {dest}
        cpz --debug (|--reflink=always|--reflink=never --sparse=always) (d/data|d/empty|d/hole|d/holes) /dev/null
        cpz --debug (|--reflink=never) d/data (dangling|missing/new|/dev/full)"
    ));
}

#[test]
#[ignore = "slow"]
fn debug_says_of_each_file_what_cp_says() {
    debugs(&memory(), "new");
    debugs(or_skip!(LoopMount::new(Fs::Xfs, 300)).path(), "new");
}

#[test]
#[ignore = "slow"]
fn debug_says_of_files_for_another_filesystem_what_cp_says() {
    let other = or_skip!(LoopMount::new(Fs::Tmpfs, 100));
    let dest = other.at("new").display().to_string();
    debugs(Scratch::new().path(), &dest);
}

#[test]
fn debug_says_of_a_dest_that_was_removed_by_force_what_cp_says() {
    NEWEST_CP.rows(
        "f=content old=old %444 secret=x %0
        user cpz --debug (f old|secret new|secret f|-f f old)",
    );
}

#[test]
fn debug_says_under_each_file_how_it_was_copied() {
    let scratch = Scratch::in_memory();
    scratch.plant("d/f=content d/empty= d/l->f");
    let outcome = run(CPZ, scratch.path(), &["--debug", "-v", "d", "new"]);
    let text = outcome.stdout_text();
    assert_eq!(text.lines().count(), 4 + 2, "{text}");
    for name in ["f", "empty"] {
        let line = format!("'d/{name}' -> 'new/{name}'\ncopy offload: ");
        assert!(text.contains(&line), "{text}");
    }
}

/// Returns how many bytes of the file are in the page cache.
fn cached(path: &Path) -> u64 {
    let output = Command::new("fincore")
        .args(["-bnr", "-o", "RES"])
        .arg(path)
        .output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    text.trim().parse().unwrap()
}

#[test]
#[ignore = "slow"]
fn no_cache_leaves_neither_source_nor_copy_in_the_page_cache() {
    needs!("fincore");
    for fs in [Fs::Ext4, Fs::Xfs] {
        let mount = or_skip!(LoopMount::new(fs, 300));
        let dir = mount.path();
        Tree::at(dir)
            .file("s/large", noise(40 << 20))
            .file("s/small", noise(5_000))
            .plant("s/empty=")
            .sparse("s/holes", 40 << 20, &[(30 << 20, &noise(1 << 20))]);
        for name in ["large", "small", "holes"] {
            File::open(dir.join("s").join(name))
                .unwrap()
                .sync_all()
                .unwrap();
        }
        run(CPZ, dir, &["s", "kept"]).assert_success();
        run(CPZ, dir, &["--no-cache", "--reflink=never", "s", "d"]).assert_success();
        for name in ["large", "small", "holes"] {
            let kept = cached(&dir.join("kept").join(name));
            let (source, copy) = ["s", "d"]
                .map(|top| cached(&dir.join(top).join(name)))
                .into();
            assert_eq!((source, copy), (0, 0), "{name} on {fs:?}");
            assert!(
                kept > 0 || fs == Fs::Xfs,
                "{name} on {fs:?}: nothing is ever cached"
            );
        }
        let same = Command::new("diff")
            .args(["-r", "s", "d"])
            .current_dir(dir)
            .status();
        assert!(same.unwrap().success(), "{fs:?}");
    }
}
