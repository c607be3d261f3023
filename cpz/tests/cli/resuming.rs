//! `--resume`: an interrupted copy goes on.

use std::{
    fs,
    os::unix::fs::{MetadataExt, lchown},
    time::Duration,
};

use testkit::{
    or_skip,
    probe::{Skip, is_root},
    run::{Call, Run},
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ, after_boot, complaint, inode, succeeds, wait_for_boot};

const AT: Duration = Duration::from_nanos(1_000_000_001);

fn build(tree: &Tree) {
    tree.plant("s/a=1 @1.1 s/b=2 @1.1 s/c==s/b s/link->a @1.1 s/fifo<fifo> @1.1 s @1.1");
}

#[test]
fn what_is_kept_gets_the_mode_and_the_owner_of_its_source() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    build(&tree);
    tree.plant("s/program=1 %644 @1.1");
    succeeds(&scratch, "-aT s d");
    let kept = |name: &str| inode(scratch.at("d").join(name));
    let before = ["a", "fifo", "link", "program"].map(kept);
    if is_root() {
        for name in ["s/a", "s/fifo", "s/link", "s/program"] {
            lchown(scratch.at(name), Some(1), Some(2)).unwrap();
        }
    }
    tree.plant("s/a %4600 s/fifo %640 s/program %711");
    // Another user may have written a file that is to run with the rights of its owner.
    tree.plant("d/a=x @1.1");
    let run = Run::new(CPZ).words("-aT --resume --dry-run s d");
    run.current_dir(&scratch).output().assert_success();
    let program = fs::metadata(scratch.at("d/program")).unwrap();
    assert_eq!(program.mode() & 0o7777, 0o644, "a dry run has set a mode");
    succeeds(&scratch, "-aT --resume s d");
    assert_eq!(["a", "fifo", "link", "program"].map(kept), before);
    let trusted = if is_root() { "1" } else { "x" };
    assert_eq!(fs::read_to_string(scratch.at("d/a")).unwrap(), trusted);
    let all = Attributes::ALL - Attributes::ATIME - Attributes::CONTENT;
    let [source, dest] = ["s", "d"].map(|name| Snapshot::of(scratch.at(name), all));
    let difference = source.diff(&dest);
    assert!(difference.is_empty(), "{difference}");
}

#[test]
#[ignore = "slow"]
fn copies_files_again_from_which_a_power_cut_has_taken_content() {
    or_skip!(after_boot("true"));
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    let data = vec![7; 300_000];
    let holes = [(0, &data[..9000]), (200_000, &data[..9000])];
    let lost = ["all", "end", "middle", "sparse"];
    for name in ["all", "end", "middle"] {
        tree.file(format!("s/{name}"), &data).mtime(AT);
    }
    tree.sparse("s/sparse", 300_000, &holes).mtime(AT);
    // These have the holes of their source, or holes for its zeros, or zeros for its holes.
    tree.sparse("s/kept/same", 300_000, &holes).mtime(AT);
    tree.sparse("s/kept/holes", 300_000, &holes).mtime(AT);
    tree.file("s/kept/zeros", vec![0; 300_000])
        .mtime(AT)
        .file("s/kept/full", &data)
        .mtime(AT)
        .plant("s/kept/empty= @1.1");
    succeeds(&scratch, "-aT s d");
    tree.sparse("d/all", 300_000, &[]).mtime(AT);
    tree.sparse("d/end", 300_000, &[(0, &data[..150_000])])
        .mtime(AT);
    let ends = [(0, &data[..100_000]), (200_000, &data[..100_000])];
    tree.sparse("d/middle", 300_000, &ends).mtime(AT);
    tree.sparse("d/sparse", 300_000, &holes[1..]).mtime(AT);
    let mut full = vec![0; 300_000];
    full[..9000].fill(7);
    full[200_000..209_000].fill(7);
    tree.file("d/kept/holes", full).mtime(AT);
    tree.sparse("d/kept/zeros", 300_000, &[]).mtime(AT);
    let args = ["-aT", "--resume", "--stats=json", "s", "d"];
    let kept = |run: Run, number: usize| {
        let outcome = run.args(args).current_dir(&scratch).output();
        let text = outcome.assert_success().stdout_text();
        assert!(text.contains(&format!("\"kept\":{number},")), "{text}");
    };
    // The files were changed since the boot, so a signal has ended the copy, and no power cut.
    kept(Run::new(CPZ), 9);
    assert_eq!(fs::read(scratch.at("d/all")).unwrap(), [0; 300_000]);
    wait_for_boot();
    kept(after_boot(CPZ).unwrap(), 5);
    for name in lost {
        let [copy, source] = ["d", "s"].map(|dir| scratch.at(dir).join(name));
        assert!(
            fs::read(copy).unwrap() == fs::read(source).unwrap(),
            "{name}"
        );
    }
    wait_for_boot();
    kept(after_boot(CPZ).unwrap(), 9);
}

#[test]
#[ignore = "slow"]
fn reports_files_that_may_have_lost_content_but_cannot_be_compared() {
    or_skip!(after_boot("true"));
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    tree.file("s/f", vec![7; 300_000]).mtime(AT);
    succeeds(&scratch, "-aT s d");
    tree.sparse("d/f", 300_000, &[]).mtime(AT);
    tree.plant("s/f %0");
    wait_for_boot();
    let run = after_boot("setpriv").unwrap();
    let run = run.args([
        "--reuid=65534",
        "--clear-groups",
        CPZ,
        "-rpT",
        "--resume",
        "s",
        "d",
    ]);
    let outcome = run.current_dir(&scratch).fails();
    let words = "cpz: cannot open 's/f' for reading: Permission denied\n";
    assert!(complaint(&outcome).starts_with(words), "{outcome}");
}

#[test]
#[ignore = "slow"]
fn looks_at_the_content_only_after_a_boot() {
    or_skip!(after_boot("true"));
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    for number in 0..5 {
        tree.plant(format!("s/f{number}=content")).mtime(AT);
    }
    succeeds(&scratch, "-aT s d");
    wait_for_boot();
    let looks = |run: Run| {
        let run = run.words("--threads=1 -aT --resume s d");
        let calls = run.current_dir(&scratch).calls()?;
        let of_file = |call: &&Call| call.shown.contains("/d/f");
        let looks = ["fadvise64", "lseek", "close"];
        let names = calls.iter().filter(of_file).map(|call| call.name.clone());
        Ok(names
            .filter(|name| looks.contains(&&**name))
            .collect::<Vec<_>>())
    };
    let before: Result<_, Skip> = looks(Run::new(CPZ));
    assert!(or_skip!(before).is_empty());
    let after = or_skip!(looks(after_boot(CPZ).unwrap()));
    assert_eq!(after, ["fadvise64", "lseek", "close"].repeat(5));
}

#[test]
fn dests_that_are_kept_or_not() {
    CP.rows(
        r#"
        # What is complete is kept: other content with the same size and time is trusted. The rest has another time, another
        # size, or does not exist.
        s/a=1 @1.1 s/b=2 @1.1 s/c= s/link->a @1.1 s/fifo<fifo> @1.1 d/a=x @1.1 d/b=y @2.2 d/link->a @1.1 d/fifo<fifo> @1.1
        cpz -aTv --resume --stats=json s d
        > 's/b' -> 'd/b'
        > 's/c' -> 'd/c'
        > ..."kept":3,...
        = d/b=2 d/c=
        s/a=1 @1.1 s/b=2 @1.1 s/c==s/b s/link->a @1.1 s/fifo<fifo> @1.1
        d/a=x @1.1 d/b=y @2.2 d/link->a @1.1 d/fifo<fifo> @1.1
        cpz -aT --resume --verify --progress=always s d
        ! 'd/a' differs from 's/a'...
        !! ..., 3 kept, 2 compared
        = d/b=2 d/c==d/b
        s/a=1 @1.1 d/a=longer @1.1
        cpz -aT --resume s d
        = d/a=1
        # Names that are complete are linked.
        s/b=2 @1.1 s/c==s/b d/b=2 @1.1
        cpz -aT --resume s d
        = d/c==d/b
        s/b=2 @1.1 s/c==s/b d/c=2 @1.1
        cpz -aT --resume s d
        = d/b==d/c
        # The targets of links are compared, and the numbers of devices.
        s/l->two @1.1 d/l->one @1.1
        cpz -aT --resume s d
        = -d/l d/l->two
        s/n<zero> @1.1 d/n<null> @1.1
        root cpz -aT --resume s d
        = -d/n d/n<zero>
        # A kept dest counts as made, also if the second source has its size and time.
        A/f=1 @1.1 (B/f=22 @2|B/f=2 @1.1) d/
        cpz -a --resume A/f B/f d
        ! will not overwrite just-created 'd/f' with 'B/f'
        = d/f=1
        A/f=1 @1.1 (B/f=22 @2|B/f=2 @1.1) d/f=1 @1.1
        cpz -a --resume A/f B/f d
        ! will not overwrite just-created 'd/f' with 'B/f'
        # A dest that is newer does not count as made under -u.
        A/f=1 @1 B/f=22 @2 d/f=1 @1
        cpz -au A/f B/f d
        # An entry of another type is replaced.
        s/a=1 @1.1 s/link->a @1.1 d/a->b @1.1 d/link=1 @1.1
        cpz -aT --resume --remove-destination s d
        = -d/a -d/link d/a=1 d/link->a
        # Without preserved times, or with another rule about dests, it is refused.
        s/a=1
        cpz (|-a --no-preserve=timestamps) --resume s d
        ! --resume needs -a, -p or --preserve=timestamps
        ! try
        cpz (-au|-ab) --resume s d
        ! --resume is mutually exclusive with -i, -n, --update and --backup
        ! try
        cpz -as --resume s d
        ! --resume is mutually exclusive with -l and -s
        ! try"#,
    );
}
