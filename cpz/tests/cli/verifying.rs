//! `--verify`: copies are compared with their sources.
//!
//! A FIFO whose content is copied last holds cpz until a test has changed a file that was copied before.

use std::{
    fs::{self, File},
    io::Write,
    os::unix::fs::{FileExt, MetadataExt},
    path::Path,
};

use testkit::{
    or_skip,
    probe::{Fs, LoopMount},
    run::{Outcome, Run},
    tree::{Scratch, Tree},
};

use crate::support::{CPZ, complaint, cpz, succeeds};

/// Copies `sources` and a FIFO to `dest`, and calls `change` when the sources were copied.
fn changing(dir: &Path, options: &[&str], dest: &str, change: impl Fn()) -> Outcome {
    let run = Run::new(CPZ)
        .words("-L --copy-contents --verify")
        .args(options)
        .args(["fifo", dest]);
    let live = run.current_dir(dir).start();
    // Waits until cpz opens the other end, after the operands before it.
    let mut fifo = File::create(dir.join("fifo")).unwrap();
    change();
    fifo.write_all(b"x").unwrap();
    drop(fifo);
    live.finish()
}

#[test]
#[ignore = "slow"]
fn is_silent_about_equal_files() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.plant("s/empty= s/d/small=x")
        .file("s/d/large", vec![7; 3_000_001])
        .sparse("s/d/holes", 5 << 20, &[(1 << 20, b"x")])
        .plant("s/name==s/d/small s/link->d/small s/fifo<fifo>");
    for number in 0..1100 {
        tree.plant(format!("s/many/{number}={number}"));
    }
    for options in [
        &["-r"][..],
        &["-a"],
        &["-a", "--resume"],
        &["-a", "--threads=1"],
    ] {
        succeeds(&scratch, [options, &["--verify", "-T", "s", "d"]].concat());
    }
}

#[test]
fn reports_a_copy_that_differs() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.plant("a=content b=content c=content fifo<fifo> d/");
    let at = |name: &str| scratch.at(name);
    let outcome = changing(scratch.path(), &["a", "b", "c"], "d", || {
        fs::write(at("d/a"), "Content").unwrap();
        fs::write(at("c"), "longer content").unwrap();
    });
    outcome.assert_status(1);
    let complaint = complaint(&outcome);
    let mut lines: Vec<_> = complaint.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        ["cpz: 'd/a' differs from 'a'", "cpz: 'd/c' differs from 'c'"]
    );
    // Later runs take neither for complete.
    assert_eq!(fs::metadata(at("d/a")).unwrap().mtime(), 0);
    assert_ne!(fs::metadata(at("d/b")).unwrap().mtime(), 0);
}

#[test]
fn reports_a_copy_that_is_gone_or_is_no_file() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.plant("a=content b=content fifo<fifo> d/");
    let at = |name: &str| scratch.at(name);
    let outcome = changing(scratch.path(), &["a", "b"], "d", || {
        fs::remove_file(at("d/a")).unwrap();
        fs::remove_file(at("d/b")).unwrap();
        Tree::at(&scratch).fifo("d/b");
    });
    outcome.assert_status(1);
    let complaint = complaint(&outcome);
    let mut lines: Vec<_> = complaint.lines().collect();
    lines.sort_unstable();
    let gone = "cpz: error reading 'd/a': No such file or directory";
    assert_eq!(lines, ["cpz: 'd/b' differs from 'b'", gone]);
}

#[test]
fn reads_the_disk_and_not_the_cache() {
    let scratch = Scratch::new();
    let content = b"0123456789abcdef".repeat(4096);
    Tree::at(&scratch).file("a", &content).fifo("fifo");
    let mount = or_skip!(LoopMount::new(Fs::Ext4, 64));
    let dest = mount.path().to_str().unwrap();
    let outcome = changing(scratch.path(), &["a"], dest, || {
        Run::new("sync")
            .args(["-f", dest])
            .output()
            .assert_success();
        let image = mount.image().unwrap();
        let bytes = fs::read(&image).unwrap();
        let place = bytes
            .windows(content.len())
            .position(|part| part == content);
        let file = File::options().write(true).open(image).unwrap();
        file.write_at(b"X", place.expect("it is on the disk") as u64 + 7)
            .unwrap();
        // The cache still has what was written.
        assert_eq!(fs::read(mount.at("a")).unwrap(), content);
    });
    outcome.assert_status(1);
    let expected = format!("cpz: '{dest}/a' differs from 'a'\n");
    assert_eq!(complaint(&outcome), expected);
}

#[test]
fn a_resumed_copy_compares_files_that_it_keeps() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    let time = std::time::Duration::from_secs(1_000_000_000);
    tree.plant("s/a=content")
        .mtime(time)
        .plant("s/b=content")
        .mtime(time);
    succeeds(&scratch, "-aT s d");
    tree.plant("d/a=CONTENT").mtime(time);
    let run = Run::new(CPZ).words("-aT --resume --verify s d");
    let outcome = run.clone().current_dir(&scratch).fails();
    assert_eq!(complaint(&outcome), "cpz: 'd/a' differs from 's/a'\n");
    // It is copied now, because the last run has marked it.
    succeeds(&scratch, "-aT --resume --verify s d");
    assert_eq!(fs::read(scratch.at("d/a")).unwrap(), b"content");
}

#[test]
fn compares_no_dest_that_is_not_a_file() {
    let scratch = Scratch::with("f=content fifo<fifo>");
    let reader = Run::new("cat").words("fifo").current_dir(&scratch).start();
    succeeds(&scratch, "--verify f fifo");
    assert_eq!(reader.finish().stdout, b"content");
    succeeds(&scratch, "--verify f /dev/null");
}

#[test]
fn compares_a_copy_whose_attributes_could_not_be_set() {
    let scratch = Scratch::with("f=content %4711");
    let args = ["--threads=1", "-p", "--verify", "f", "d"];
    or_skip!(cpz(&scratch, args).calls());
    let traced = ["-f", "-o", "log", "-e", "inject=fchmod:error=EIO", CPZ];
    let run = Run::new("strace").args(traced).args(args);
    run.current_dir(&scratch).fails();
    let log = fs::read_to_string(scratch.at("log")).unwrap();
    assert_eq!(log.matches("O_DIRECT|").count(), 2, "{log}");
}
