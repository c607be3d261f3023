//! `--fsync`: a copy survives a power cut.

use std::{fs, os::unix::fs::MetadataExt};

use testkit::{
    or_skip,
    probe::{Fs, FuseMount, Habits, LoopMount},
    run::{Call, Run, Status},
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree},
};

use crate::support::{CPZ, complaint, succeeds};

/// Builds a tree with a few files, so that each is written alone.
fn build_few(tree: &Tree) {
    tree.file("s/f", "content")
        .file("s/large", vec![1; 2 << 20]);
}

/// Builds a tree with so many files that the whole filesystem is written at once.
fn build_many(tree: &Tree) {
    for number in 0..50 {
        tree.file(format!("s/d{}/e/{number}", number % 7), vec![1; 9000]);
    }
    tree.symlink("s/link", "d1")
        .fifo("s/d1/fifo")
        .dir("s/d1/none");
}

/// Copies a tree to a filesystem, and cuts the power when cpz has ended. Returns the differences
/// between the source and what is left.
fn lost_by_power_cut(fs: Fs, options: &[&str], build: impl Fn(&Tree)) -> String {
    let scratch = Scratch::new();
    build(&Tree::at(scratch.path()));
    let mount = match LoopMount::new(fs, 64) {
        Ok(mount) => mount,
        Err(skip) => {
            skip.announce();
            return String::new();
        }
    };
    let dest = mount.path().join("d").display().to_string();
    succeeds(&scratch, &[options, &["-a", "s", &dest]].concat());
    let mount = mount.after_power_cut().unwrap();
    let kept = Attributes::ALL - Attributes::ATIME;
    let snapshot = |path| Snapshot::of(path, kept);
    match mount.path().join("d") {
        dest if dest.exists() => snapshot(scratch.path().join("s")).diff(&snapshot(dest)),
        _ => "- the whole copy".to_owned(),
    }
}

#[track_caller]
fn survives_power_cuts(fs: Fs) {
    for build in [build_few, build_many] {
        let lost = lost_by_power_cut(fs, &["--fsync"], build);
        assert!(lost.is_empty(), "{fs:?}\n{lost}");
    }
}

#[test]
fn a_copy_to_ext4_survives_a_power_cut() {
    survives_power_cuts(Fs::Ext4);
}

#[test]
fn a_copy_to_xfs_survives_a_power_cut() {
    survives_power_cuts(Fs::Xfs);
}

#[test]
fn a_copy_to_btrfs_survives_a_power_cut() {
    survives_power_cuts(Fs::Btrfs);
}

#[test]
fn without_the_option_a_power_cut_loses_the_copy() {
    or_skip!(LoopMount::new(Fs::Ext4, 64));
    // Otherwise these tests would show nothing.
    assert!(!lost_by_power_cut(Fs::Ext4, &[], build_many).is_empty());
}

/// Returns the calls that write to the disk, in their order.
fn sync_calls(calls: Vec<Call>) -> Vec<Call> {
    let is_sync = |call: &Call| matches!(&*call.name, "fsync" | "fdatasync" | "syncfs");
    calls.into_iter().filter(is_sync).collect()
}

fn names(calls: &[Call]) -> Vec<&str> {
    calls.iter().map(|call| &*call.name).collect()
}

#[test]
fn few_files_are_written_alone_and_many_at_once() {
    let scratch = Scratch::new();
    build_few(&Tree::at(scratch.path().join("few")));
    build_many(&Tree::at(scratch.path().join("many")));
    let run = Run::new(CPZ).args(["--threads=1"]).current_dir(&scratch);
    let calls = |args: &[&str]| run.clone().args(args).calls().map(sync_calls);
    // Two files, their directory, and the directory above it.
    let few = or_skip!(calls(&["--fsync", "few/s", "d1"]));
    assert_eq!(names(&few), ["fsync"; 4], "{few:?}");
    let many = or_skip!(calls(&["--fsync", "many/s", "d2"]));
    assert_eq!(names(&many), ["fsync", "fsync", "fsync", "fsync", "syncfs"]);
    assert!(or_skip!(calls(&["many/s", "d3"])).is_empty());
}

#[test]
fn every_file_is_written_alone_to_a_server() {
    let scratch = Scratch::new();
    build_many(&Tree::at(scratch.path()));
    let mount = or_skip!(FuseMount::with(Habits::default()));
    let dest = mount.path().join("d");
    let args = ["--threads=1", "--fsync", "s"];
    let run = Run::new(CPZ).args(args).arg(&dest).current_dir(&scratch);
    let calls = sync_calls(or_skip!(run.calls()));
    // Files, directories, and the directory above them.
    let number = 50 + (1 + 2 * 7 + 1) + 1;
    assert_eq!(names(&calls), vec!["fsync"; number]);
}

#[test]
fn an_error_of_the_disk_is_reported() {
    let scratch = Scratch::new();
    build_few(&Tree::at(scratch.path().join("few")));
    build_many(&Tree::at(scratch.path().join("many")));
    for (source, name, number, culprit) in [
        ("few/s", "fsync", 1, "'d/"),
        ("few/s", "fsync", 3, "'d'"),
        ("few/s", "fsync", 4, "'d'"),
        ("many/s", "syncfs", 1, "'d'"),
    ] {
        let run = Run::new(CPZ).args(["--threads=1", "--fsync", source, "d"]);
        let call = Call {
            name: name.to_owned(),
            number,
            shown: String::new(),
        };
        let run = run.current_dir(&scratch);
        or_skip!(run.clone().calls());
        fs::remove_dir_all(scratch.path().join("d")).unwrap();
        let outcome = run.with_fault(&call, "error=EIO").output();
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        let complaint = complaint(&outcome);
        let expected = format!("cpz: error syncing {culprit}");
        assert!(complaint.starts_with(&expected), "{complaint}");
        assert!(complaint.ends_with(": Input/output error\n"), "{complaint}");
        fs::remove_dir_all(scratch.path().join("d")).unwrap();
    }
}

#[test]
fn files_that_are_kept_are_written_too() {
    let scratch = Scratch::new();
    build_many(&Tree::at(scratch.path()));
    let run = Run::new(CPZ).args(["--threads=1", "-a", "--resume", "--fsync", "-T", "s", "d"]);
    let run = run.current_dir(&scratch);
    or_skip!(run.calls());
    let again = sync_calls(run.calls().unwrap());
    assert_eq!(
        names(&again),
        ["fsync", "fsync", "fsync", "fsync", "syncfs"]
    );
}

#[test]
fn files_on_a_server_do_not_keep_others_from_the_disk() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    tree.dir("d");
    let mut args = vec!["--threads=1".to_owned(), "--fsync".to_owned()];
    for number in 10..30 {
        tree.file(format!("f{number}"), "x");
        args.push(format!("f{number}"));
    }
    let mount = or_skip!(FuseMount::with(Habits::default()));
    tree.file("z", "x").symlink("d/z", mount.path().join("z"));
    fs::write(mount.path().join("z"), "old").unwrap();
    args.extend(["z", "d"].map(str::to_owned));
    let run = Run::new(CPZ).args(args).current_dir(&scratch);
    let calls = sync_calls(or_skip!(run.calls()));
    // Four files, the one on the server, and then everything else.
    assert_eq!(
        names(&calls),
        ["fsync", "fsync", "fsync", "fsync", "fsync", "syncfs"]
    );
}

#[test]
fn filesystems_that_several_threads_find_are_written() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    let mut mounts = Vec::new();
    for number in 0..8 {
        for file in 0..40 {
            tree.file(format!("s/{number}/{file}"), "content");
        }
        let mount = or_skip!(LoopMount::new(Fs::Tmpfs, 1));
        let outside = mount.path().join("z");
        fs::write(&outside, "old").unwrap();
        tree.file(format!("s/{number}/z"), "new")
            .symlink(format!("d/{number}/z"), outside);
        mounts.push(mount);
    }
    succeeds(&scratch, &["--fsync", "--threads=8", "-T", "s", "d"]);
    for mount in mounts {
        assert_eq!(fs::read(mount.path().join("z")).unwrap(), b"new");
    }
}

#[test]
fn an_error_of_the_disk_marks_the_file_behind_a_link() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    tree.file("f", "new")
        .file("target", "old")
        .symlink("d", "target");
    let run = Run::new(CPZ).args(["--threads=1", "-L", "--fsync", "f", "d"]);
    let run = run.current_dir(&scratch);
    or_skip!(run.calls());
    let call = Call {
        name: "fsync".to_owned(),
        number: 1,
        shown: String::new(),
    };
    let outcome = run.with_fault(&call, "error=EIO").output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let mtime = |name: &str| {
        fs::symlink_metadata(scratch.path().join(name))
            .unwrap()
            .mtime()
    };
    assert_eq!(mtime("target"), 0);
    assert_ne!(mtime("d"), 0);
}
