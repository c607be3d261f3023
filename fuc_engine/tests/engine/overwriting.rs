//! Copies to dests that exist, and refusals.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Mutex;

use fuc_engine::{CopyOp, Dest, Error, Observer, Operation, Refusal};
use rustix::io::Errno;
use testkit::or_skip;
use testkit::probe::{FuseMount, Habits};
use testkit::snapshot::{Kind, Snapshot, assert_same_tree};
use testkit::tree::{Scratch, Tree};

use crate::kit::{
    Failure, Told, all_but_atime, assert_unchanged, copy, copy_with, exactly, paths, plain, threads,
};

#[test]
fn a_file_is_not_copied_onto_itself() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.file("f", "content")
        .hardlink("f", "twin")
        .symlink("link", "f");
    let before = Snapshot::of(&scratch, all_but_atime());
    let file = tree.path().join("f");
    for alias in ["f", "twin", "link"] {
        let dest = tree.path().join(alias);
        let failure = Failure::refused(Refusal::SameFile, &file).and(&dest);
        assert_eq!(copy(&file, &dest), Told::complete(0, 0).with([failure]));
        assert_unchanged(&before, &scratch, all_but_atime());
    }
}

#[test]
fn a_link_is_not_copied_over_its_own_target() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.file("f", "content").symlink("link", "f");
    let before = Snapshot::of(&scratch, all_but_atime());
    let [link, file] = ["link", "f"].map(|name| tree.path().join(name));
    let failure = Failure::refused(Refusal::SameFile, &link).and(&file);
    assert_eq!(copy(&link, &file), Told::complete(0, 0).with([failure]));
    assert_unchanged(&before, &scratch, all_but_atime());
}

#[test]
fn a_directory_is_not_copied_onto_itself() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.file("s/f", "content");
    let before = Snapshot::of(&scratch, all_but_atime());
    let source = tree.path().join("s");
    let dest = tree.path().join("s/../s");
    let failure = Failure::refused(Refusal::SameFile, &source).and(&dest);
    assert_eq!(copy(&source, &dest), Told::complete(0, 0).with([failure]));
    assert_unchanged(&before, &scratch, all_but_atime());
}

#[test]
fn a_directory_copied_into_itself_ends() {
    let scratch = Scratch::new();
    let source = Tree::at(scratch.path().join("s"));
    source.file("a/f", "1").file("z", "2");
    let dest = source.path().join("a/copy");
    let failure = Failure::refused(Refusal::IntoItself, source.path()).and(&dest);
    let told = copy(source.path(), &dest);
    assert_eq!(told, Told::complete(4, 2).with([failure]));
    let expected = Tree::at(scratch.path().join("e"));
    expected.file("a/f", "1").file("z", "2");
    assert_same_tree(expected.path(), &dest, plain());
}

#[test]
fn a_directory_is_not_replaced_by_a_file() {
    let scratch = Scratch::new();
    let source = Tree::at(scratch.path().join("s"));
    source
        .file("file", "content")
        .symlink("link", "x")
        .fifo("pipe")
        .file("z", "fine");
    let dest = Tree::at(scratch.path().join("d"));
    dest.dir("file").dir("link").dir("pipe");
    let told = copy(source.path(), dest.path()).sorted();
    let refused = |name| {
        let dest = dest.path().join(name);
        Failure::refused(Refusal::DirectoryByNonDirectory, dest).and(source.path().join(name))
    };
    let failures = ["file", "link", "pipe"].map(refused);
    assert_eq!(told, Told::complete(2, 4).with(failures));
    let there = Snapshot::of(dest.path(), plain());
    assert_eq!(there.len(), 5);
    assert_eq!(there.kind("file"), Some(Kind::Directory));
}

#[test]
fn a_file_is_not_replaced_by_a_directory() {
    let scratch = Scratch::new();
    let source = Tree::at(scratch.path().join("s"));
    source
        .file("sub/f", "content")
        .file("to-dir/f", "content")
        .file("z", "fine");
    let outside = Tree::at(scratch.path().join("outside"));
    let dest = Tree::at(scratch.path().join("d"));
    dest.file("sub", "a file").symlink("to-dir", outside.path());
    let told = copy(source.path(), dest.path()).sorted();
    let refused = |name| {
        let dest = dest.path().join(name);
        Failure::refused(Refusal::NonDirectoryByDirectory, dest).and(source.path().join(name))
    };
    assert_eq!(
        told,
        Told::complete(2, 4).with(["sub", "to-dir"].map(refused))
    );
    crate::kit::assert_nothing_in(outside.path());
    assert_eq!(fs::read(dest.path().join("sub")).unwrap(), b"a file");
}

#[test]
fn a_link_to_a_file_is_written_through_and_a_dangling_one_is_not() {
    let scratch = Scratch::new();
    let outside = Tree::at(scratch.path().join("outside"));
    outside.file("f", "longer than that");
    let source = Tree::at(scratch.path().join("s"));
    source.file("through", "content").file("dangling", "lost");
    let dest = Tree::at(scratch.path().join("d"));
    dest.symlink("through", "../outside/f")
        .symlink("dangling", "../outside/new");
    let told = copy(source.path(), dest.path());
    let failure = Failure::refused(Refusal::DanglingDest, dest.path().join("dangling"))
        .and(source.path().join("dangling"));
    assert_eq!(told, Told::complete(2, 7).with([failure]));
    let expected = Tree::at(scratch.path().join("e"));
    expected.file("f", "content");
    assert_same_tree(expected.path(), outside.path(), plain());
}

#[test]
fn links_and_fifos_replace_all_but_directories() {
    let scratch = Scratch::new();
    let source = Tree::at(scratch.path().join("s"));
    source.symlink("a", "new").fifo("b");
    let dest = Tree::at(scratch.path().join("d"));
    dest.symlink("a", "old").file("b", "file");
    assert_eq!(copy(source.path(), dest.path()), Told::complete(3, 0));
    assert_same_tree(source.path(), dest.path(), plain());
}

#[test]
fn a_busy_program_is_replaced_by_force_only() {
    // The dest is a running program. ETXTBSY prevents even root from writing to it; a mode would
    // not.
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.file("new", "content").mode(0o755);
    let [new, busy] = ["new", "busy"].map(|name| tree.path().join(name));
    fs::copy("/bin/sleep", &busy).unwrap();
    let before = fs::metadata(&busy).unwrap();
    let mut sleeping = std::process::Command::new(&busy).arg("60").spawn().unwrap();
    let plainly = copy(&new, &busy);
    let unharmed = fs::metadata(&busy).unwrap();
    let options = CopyOp::new().with(|options| options.force = true);
    let forced = copy_with(options, [&new], &exactly(&busy));
    sleeping.kill().unwrap();
    sleeping.wait().unwrap();
    let failure = Failure::failed(Operation::CreateFile, &busy, Errno::TXTBSY);
    assert_eq!(plainly, Told::complete(0, 0).with([failure]));
    assert_eq!(
        (unharmed.ino(), unharmed.len()),
        (before.ino(), before.len())
    );
    assert_eq!(forced, Told::complete(1, 7));
    assert_same_tree(&new, &busy, plain());
}

#[test]
fn a_source_named_twice_is_copied_once_with_a_warning() {
    #[derive(Default)]
    struct Heard {
        failures: Mutex<Vec<Error>>,
        warnings: Mutex<Vec<Error>>,
    }

    impl Observer for Heard {
        fn failed(&self, error: Error) {
            self.failures.failed(error);
        }

        fn warned(&self, warning: Error) {
            self.warnings.failed(warning);
        }
    }

    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.file("f", "content").dir("d");
    let file = tree.path().join("f");
    let into = Dest::Into(tree.path().join("d"));
    let heard = Heard::default();
    let summary = CopyOp::new().run(paths([&file, &file]), &into, &heard);
    assert_eq!(
        (summary.entries, summary.bytes, summary.failures),
        (1, 7, 0)
    );
    assert!(heard.failures.into_inner().unwrap().is_empty());
    let warnings: Vec<_> = heard.warnings.into_inner().unwrap();
    let warnings: Vec<_> = warnings.iter().map(Failure::of).collect();
    assert_eq!(warnings, [Failure::refused(Refusal::FileNamedTwice, &file)]);
}

#[test]
fn a_warning_is_not_collected_as_a_failure() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.file("f", "content").dir("d");
    let file = tree.path().join("f");
    let into = Dest::Into(tree.path().join("d"));
    let told = copy_with(CopyOp::new(), [&file, &file], &into);
    assert_eq!(told, Told::complete(1, 7));
}

#[test]
fn a_file_just_made_is_not_overwritten_by_another_source() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.file("p/f", "first").file("q/f", "second").dir("d");
    let [p, q, made] = ["p/f", "q/f", "d/f"].map(|name| tree.path().join(name));
    let into = Dest::Into(tree.path().join("d"));
    let told = copy_with(CopyOp::new(), [&p, &q], &into);
    let failure = Failure::refused(Refusal::JustCreated, &made).and(&q);
    assert_eq!(told, Told::complete(1, 5).with([failure]));
    assert_same_tree(&p, &made, plain());
}

#[test]
fn sources_merged_into_one_dest_take_effect_in_order() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    for file in 0..20 {
        tree.file(format!("s/a/{file}"), "from a")
            .file(format!("s/b/{file}"), "from b");
    }
    for number in [1, 8] {
        let dest = tree.path().join(format!("d{number}"));
        let options = CopyOp::new().with(|options| options.threads = threads(number));
        let sources = ["s/a", "s/b"].map(|name| tree.path().join(name));
        let told = copy_with(options, &sources, &exactly(&dest));
        assert_eq!(told, Told::complete(42, 240));
        assert_same_tree(&sources[1], &dest, plain());
    }
}

#[test]
fn a_fifo_that_cannot_replace_a_file_says_why() {
    let mount = or_skip!(FuseMount::with(Habits {
        mknod: Some(Errno::PERM),
        ..Habits::default()
    }));
    let scratch = Scratch::new();
    Tree::at(&scratch).fifo("pipe");
    Tree::at(mount.stored()).file("f", "content");
    let dest = mount.path().join("f");
    let atomic = CopyOp::new().with(|copy| copy.rules.atomic = true);
    let failure = Failure::failed(Operation::CreateFifo, &dest, Errno::PERM);
    let told = copy_with(atomic, [scratch.path().join("pipe")], &exactly(&dest));
    assert_eq!(told, Told::complete(0, 0).with([failure]));
    assert_eq!(fs::read(&dest).unwrap(), b"content");
}
