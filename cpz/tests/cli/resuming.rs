//! `--resume`: an interrupted copy goes on.

use std::{
    fs,
    os::unix::fs::{MetadataExt, lchown},
    path::Path,
    time::Duration,
};

use testkit::{
    probe::is_root,
    run::{Run, Status},
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ, complaint, succeeds};

const AT: Duration = Duration::from_nanos(1_000_000_001);

fn build(tree: &Tree) {
    tree.file("s/a", "1")
        .mtime(AT)
        .file("s/b", "2")
        .mtime(AT)
        .hardlink("s/b", "s/c")
        .symlink("s/link", "a")
        .mtime(AT)
        .fifo("s/fifo")
        .mtime(AT)
        .select("s")
        .mtime(AT);
}

fn inode(path: impl AsRef<Path>) -> u64 {
    fs::symlink_metadata(path).unwrap().ino()
}

#[test]
fn keeps_what_is_complete_and_copies_the_rest() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    build(&tree);
    succeeds(&scratch, &["-aT", "s", "d"]);
    let at = |name: &str| scratch.path().join("d").join(name);
    let kept = ["a", "b", "link", "fifo"].map(|name| (at(name), inode(at(name))));
    // Other content with the same size and time is trusted, and shows that nothing was copied.
    tree.file("d/a", "x").mtime(AT);
    // These are incomplete: they have another time, another size, or do not exist.
    tree.file("d/b", "y").mtime(AT * 2);
    fs::remove_file(at("c")).unwrap();
    let run = Run::new(CPZ).args(["-aTv", "--resume", "--verify", "--stats=json"]);
    let run = run.args(["--progress=always", "s", "d"]);
    // The content of one file differs, as above.
    let outcome = run.current_dir(&scratch).output();
    let lines = outcome.stdout_text();
    assert!(!lines.contains("s/a") && lines.contains("s/b"), "{lines}");
    assert!(lines.contains(r#","kept":3,"compared":2,"#), "{lines}");
    let totals = outcome.stderr_text();
    assert!(totals.ends_with(", 3 kept, 2 compared\n"), "{totals}");
    for (path, inode_before) in &kept {
        assert_eq!(inode(path), *inode_before, "{path:?}");
    }
    assert_eq!(fs::read(at("a")).unwrap(), b"x");
    assert_eq!(fs::read(at("b")).unwrap(), b"2");
    assert_eq!(inode(at("b")), inode(at("c")));

    tree.file("d/a", "longer").mtime(AT);
    succeeds(&scratch, &["-aT", "--resume", "s", "d"]);
    let all = Attributes::ALL - Attributes::ATIME;
    let [source, dest] = ["s", "d"].map(|name| Snapshot::of(scratch.path().join(name), all));
    let difference = source.diff(&dest);
    assert!(difference.is_empty(), "{difference}");
}

#[test]
fn what_is_kept_gets_the_mode_and_the_owner_of_its_source() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    build(&tree);
    tree.file("s/program", "1").mode(0o644).mtime(AT);
    succeeds(&scratch, &["-aT", "s", "d"]);
    let kept = |name: &str| inode(scratch.path().join("d").join(name));
    let before = ["a", "fifo", "link", "program"].map(kept);
    if is_root() {
        for name in ["s/a", "s/fifo", "s/link", "s/program"] {
            lchown(scratch.path().join(name), Some(1), Some(2)).unwrap();
        }
    }
    tree.select("s/a").mode(0o4600);
    tree.select("s/fifo").mode(0o640);
    tree.select("s/program").mode(0o711);
    // Another user may have written a file that is to run with the rights of its owner.
    tree.file("d/a", "x").mtime(AT);
    let run = Run::new(CPZ).args(["-aT", "--resume", "--dry-run", "s", "d"]);
    run.current_dir(&scratch).output().assert_success();
    let program = fs::metadata(scratch.path().join("d/program")).unwrap();
    assert_eq!(program.mode() & 0o7777, 0o644, "a dry run has set a mode");
    succeeds(&scratch, &["-aT", "--resume", "s", "d"]);
    assert_eq!(["a", "fifo", "link", "program"].map(kept), before);
    let trusted = if is_root() { "1" } else { "x" };
    assert_eq!(
        fs::read_to_string(scratch.path().join("d/a")).unwrap(),
        trusted
    );
    let all = Attributes::ALL - Attributes::ATIME - Attributes::CONTENT;
    let [source, dest] = ["s", "d"].map(|name| Snapshot::of(scratch.path().join(name), all));
    let difference = source.diff(&dest);
    assert!(difference.is_empty(), "{difference}");
}

#[test]
fn links_names_that_are_complete_but_not_linked() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    build(&tree);
    succeeds(&scratch, &["-aT", "s", "d"]);
    let at = |name: &str| scratch.path().join("d").join(name);
    for [gone, kept] in [["b", "c"], ["c", "b"]] {
        fs::remove_file(at(gone)).unwrap();
        succeeds(&scratch, &["-aT", "--resume", "s", "d"]);
        assert_eq!(inode(at(gone)), inode(at(kept)));
        assert_eq!(fs::read(at(gone)).unwrap(), b"2");
    }
}

#[test]
fn a_kept_dest_counts_as_made() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    tree.file("A/f", "1").mtime(AT).dir("d");
    // The second case has the size and the time of the first file.
    for (content, time) in [("22", AT * 2), ("2", AT)] {
        tree.file("B/f", content).mtime(time);
        let words = "cpz: will not overwrite just-created 'd/f' with 'B/f'\n";
        for _ in 0..3 {
            let run = Run::new(CPZ).args(["-a", "--resume", "A/f", "B/f", "d"]);
            let outcome = run.current_dir(&scratch).output();
            assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
            assert_eq!(complaint(&outcome), words);
            assert_eq!(fs::read(scratch.path().join("d/f")).unwrap(), b"1");
        }
    }
}

#[test]
fn a_dest_that_is_newer_does_not_count_as_made_under_update() {
    let both = |tree: &Tree| {
        tree.file("A/f", "1").mtime(AT).file("B/f", "22");
        tree.file("d/f", "1").mtime(AT).select("B/f").mtime(AT * 2);
    };
    CP.check(["-au", "A/f", "B/f", "d"], both);
}

#[test]
fn compares_the_targets_of_links_and_the_numbers_of_devices() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    tree.symlink("s/l", "one").mtime(AT);
    tree.symlink("s/same", "one").mtime(AT);
    if is_root() {
        tree.char_device("s/null", 1, 3).mtime(AT);
    }
    succeeds(&scratch, &["-aT", "s", "d"]);
    let at = |name: &str| scratch.path().join("d").join(name);
    let kept = inode(at("same"));
    for name in ["s/l", "s/null"] {
        let _ = fs::remove_file(scratch.path().join(name));
    }
    tree.symlink("s/l", "two").mtime(AT);
    if is_root() {
        tree.char_device("s/null", 1, 5).mtime(AT);
    }
    succeeds(&scratch, &["-aT", "--resume", "s", "d"]);
    assert_eq!(fs::read_link(at("l")).unwrap(), Path::new("two"));
    assert_eq!(inode(at("same")), kept);
    if is_root() {
        let number = |name| {
            fs::symlink_metadata(scratch.path().join(name))
                .unwrap()
                .rdev()
        };
        assert_eq!(number("d/null"), number("s/null"));
    }
}

#[test]
fn replaces_an_entry_of_another_type() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    build(&tree);
    tree.symlink("d/a", "b")
        .mtime(AT)
        .file("d/link", "1")
        .mtime(AT);
    let args = ["-aT", "--resume", "--remove-destination", "s", "d"];
    succeeds(&scratch, &args);
    assert_eq!(fs::read(scratch.path().join("d/a")).unwrap(), b"1");
    let link = fs::read_link(scratch.path().join("d/link")).unwrap();
    assert_eq!(link, Path::new("a"));
}

#[test]
fn needs_times_and_no_other_choice_of_dests() {
    let scratch = Scratch::new();
    build(&Tree::at(scratch.path()));
    for (args, message) in [
        (
            &["--resume", "s", "d"][..],
            "--resume needs -a, -p or --preserve=timestamps",
        ),
        (
            &["-a", "--no-preserve=timestamps", "--resume", "s", "d"],
            "--resume needs -a, -p or --preserve=timestamps",
        ),
        (
            &["-au", "--resume", "s", "d"],
            "--resume is mutually exclusive with -i, -n, --update and --backup",
        ),
        (
            &["-ab", "--resume", "s", "d"],
            "--resume is mutually exclusive with -i, -n, --update and --backup",
        ),
        (
            &["-as", "--resume", "s", "d"],
            "--resume is mutually exclusive with -l and -s",
        ),
    ] {
        let expected = format!("cpz: {message}\nTry 'cpz --help' for more information.\n");
        let outcome = Run::new(CPZ).args(args).current_dir(&scratch).output();
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        assert_eq!(complaint(&outcome), expected, "{args:?}");
        assert!(!scratch.path().join("d").exists());
    }
    CP.check_strict(["-a", "--resume", "s", "d"], build);
}
