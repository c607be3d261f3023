//! `--fsync`: a copy survives a power cut.

use std::{fs, os::unix::fs::MetadataExt};

use testkit::{
    needs, or_skip,
    probe::{Fs, LoopMount, NOBODY, Skip},
    run::{Call, Run},
    served,
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree},
};

use crate::support::{complaint, cpz, succeeds};

/// Builds a tree with a few files, so that each is written alone.
fn build_few(tree: &Tree) {
    tree.plant("s/f=content").file("s/large", vec![1; 2 << 20]);
}

/// Builds a tree with so many files that the whole filesystem is written at once.
fn build_many(tree: &Tree) {
    for number in 0..50 {
        tree.file(format!("s/d{}/e/{number}", number % 7), vec![1; 9000]);
    }
    tree.plant("s/link->d1 s/d1/fifo<fifo> s/d1/none/");
}

/// Copies a tree to a filesystem, and cuts the power when cpz has ended. Returns the differences
/// between the source and what is left.
fn lost_by_power_cut(fs: Fs, options: &[&str], build: impl Fn(&Tree)) -> String {
    let scratch = Scratch::new();
    build(&Tree::at(&scratch));
    let mount = match LoopMount::new(fs, 64) {
        Ok(mount) => mount,
        Err(skip) => {
            skip.announce();
            return String::new();
        }
    };
    let dest = mount.at("d").display().to_string();
    succeeds(&scratch, [options, &["-a", "s", &dest]].concat());
    let mount = mount.after_power_cut().unwrap();
    let kept = Attributes::ALL - Attributes::ATIME;
    let snapshot = |path| Snapshot::of(path, kept);
    match mount.at("d") {
        dest if dest.exists() => snapshot(scratch.at("s")).diff(&snapshot(dest)),
        _ => "- the whole copy".to_owned(),
    }
}

#[test]
#[ignore = "slow"]
fn a_copy_survives_a_power_cut() {
    for fs in [Fs::Ext4, Fs::Xfs, Fs::Btrfs] {
        for build in [build_few, build_many] {
            let lost = lost_by_power_cut(fs, &["--fsync"], build);
            assert!(lost.is_empty(), "{fs:?}\n{lost}");
        }
    }
}

#[test]
#[ignore = "slow"]
fn without_the_option_a_power_cut_loses_the_copy() {
    or_skip!(LoopMount::new(Fs::Ext4, 64));
    // Otherwise these tests would show nothing.
    assert!(!lost_by_power_cut(Fs::Ext4, &[], build_many).is_empty());
}

/// Returns the names of the calls by which a run writes to the disk, in their order.
fn sync_calls(run: &Run) -> Result<Vec<String>, Skip> {
    let names = run.calls()?.into_iter().map(|call| call.name);
    Ok(names
        .filter(|name| matches!(&**name, "fsync" | "fdatasync" | "syncfs"))
        .collect())
}

/// Two files, their directory, and the directory above it.
const ALONE: &[&str] = &["fsync"; 4];
/// Four files, and then everything else.
const AT_ONCE: &[&str] = &["fsync", "fsync", "fsync", "fsync", "syncfs"];

#[test]
fn few_files_are_written_alone_and_many_at_once() {
    let scratch = Scratch::new();
    build_few(&Tree::at(scratch.at("few")));
    build_many(&Tree::at(scratch.at("many")));
    scratch.plant("few/s/link->f few/s/fifo<fifo>");
    for (args, expected) in [
        ("--fsync few/s d1", ALONE),
        ("--fsync many/s d2", AT_ONCE),
        ("many/s d3", &[]),
        // Files that an update or another run keeps are written, too.
        ("-aT few/s d4", &[]),
        ("-auT --fsync few/s d4", ALONE),
        ("-auT few/s d4", &[]),
        ("-aT --resume --fsync many/s d5", AT_ONCE),
        ("-aT --resume --fsync many/s d5", AT_ONCE),
        // So is the content of linked files. In the second run the links are there already.
        ("-lP --fsync few/s d6", ALONE),
        ("-lPT --fsync few/s d6", ALONE),
        ("-lP --fsync many/s d7", AT_ONCE),
        ("-lP many/s d8", &[]),
    ] {
        let run = cpz(&scratch, "--threads=1").words(args);
        assert_eq!(or_skip!(sync_calls(&run)), expected, "{args}");
    }
}

/// Returns the calls on files of `d` by name, of these three: content is written, then the times are set.
fn order(args: &[&str], scratch: &Scratch) -> Result<Vec<String>, Skip> {
    let run = cpz(scratch, "--threads=1 -aT s d").args(args);
    let calls = run.calls()?;
    let ordered = ["ftruncate", "sync_file_range", "utimensat"];
    let is_of_file = |call: &Call| {
        let name = call.name.as_str();
        ordered.contains(&name) && (name != "utimensat" || call.shown.contains("/d/f"))
    };
    Ok(calls
        .into_iter()
        .filter(is_of_file)
        .map(|it| it.name)
        .collect())
}

#[test]
fn a_power_cut_during_the_copy_leaves_no_file_with_its_time_but_without_its_content() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    for number in 0..7 {
        tree.sparse(format!("s/f{number}"), 1 << 18, &[(0, b"content")]);
    }
    let without = or_skip!(order(&[], &scratch));
    assert_eq!(without, ["ftruncate", "utimensat"].repeat(7));
    fs::remove_dir_all(scratch.at("d")).unwrap();
    let with = or_skip!(order(&["--fsync"], &scratch));
    assert_eq!(
        with,
        ["ftruncate", "sync_file_range", "utimensat"].repeat(7)
    );
}

#[test]
fn a_kept_file_that_may_not_be_read_is_written_with_its_filesystem() {
    needs!(root);
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.plant("s/f=new s/f @1000000000 d/f=newer %200 d %777");
    let run = cpz(&scratch, "--threads=1 -uT --fsync s d").uid(NOBODY);
    let outcome = run.output();
    assert_eq!(outcome.assert_success().stderr_text(), "");
}

#[test]
fn every_file_is_written_alone_to_a_server() {
    let scratch = Scratch::new();
    build_many(&Tree::at(&scratch));
    let mount = served!();
    let run = cpz(&scratch, "--threads=1 --fsync s").arg(mount.at("d"));
    let calls = or_skip!(sync_calls(&run));
    // Files, directories, and the directory above them.
    let number = 50 + (1 + 2 * 7 + 1) + 1;
    assert_eq!(calls, vec!["fsync"; number]);
}

#[test]
fn an_error_of_the_disk_is_reported() {
    let scratch = Scratch::new();
    build_few(&Tree::at(scratch.at("few")));
    build_many(&Tree::at(scratch.at("many")));
    for (source, fault, culprit) in [
        ("few/s", "fsync:error=EIO:when=1", "'d/"),
        ("few/s", "fsync:error=EIO:when=3", "'d'"),
        ("few/s", "fsync:error=EIO:when=4", "'d'"),
        ("many/s", "syncfs:error=EIO:when=1", "'d'"),
    ] {
        let run = cpz(&scratch, ["--threads=1", "--fsync", source, "d"]);
        or_skip!(run.calls());
        fs::remove_dir_all(scratch.at("d")).unwrap();
        let outcome = run.with_faults(fault).fails();
        let complaint = complaint(&outcome);
        let expected = format!("cpz: error syncing {culprit}");
        assert!(complaint.starts_with(&expected), "{complaint}");
        assert!(complaint.ends_with(": Input/output error\n"), "{complaint}");
        fs::remove_dir_all(scratch.at("d")).unwrap();
    }
}

#[test]
fn files_on_a_server_do_not_keep_others_from_the_disk() {
    let scratch = Scratch::new();
    let mount = served!();
    let tree = Tree::at(&scratch);
    tree.plant("f{10..29}=x z=x d/")
        .symlink("d/z", mount.at("z"));
    fs::write(mount.at("z"), "old").unwrap();
    let run = cpz(&scratch, "--threads=1 --fsync f{10..29} z d");
    // The file on the server is written alone before everything else.
    let expected = [&AT_ONCE[..4], &["fsync", "syncfs"]].concat();
    assert_eq!(or_skip!(sync_calls(&run)), expected);
}

#[test]
#[ignore = "slow"]
fn filesystems_that_several_threads_find_are_written() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    let mut mounts = Vec::new();
    for number in 0..8 {
        for file in 0..40 {
            tree.plant(format!("s/{number}/{file}=content"));
        }
        let mount = or_skip!(LoopMount::new(Fs::Tmpfs, 1));
        let outside = mount.at("z");
        fs::write(&outside, "old").unwrap();
        tree.plant(format!("s/{number}/z=new"))
            .symlink(format!("d/{number}/z"), outside);
        mounts.push(mount);
    }
    succeeds(&scratch, "--fsync --threads=8 -T s d");
    for mount in mounts {
        assert_eq!(fs::read(mount.at("z")).unwrap(), b"new");
    }
}

#[test]
fn an_error_of_the_disk_marks_the_file_behind_a_link() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.plant("f=new target=old d->target");
    let run = cpz(&scratch, "--threads=1 -L --fsync f d");
    or_skip!(run.calls());
    run.with_faults("fsync:error=EIO:when=1").fails();
    let mtime = |name: &str| fs::symlink_metadata(scratch.at(name)).unwrap().mtime();
    assert_eq!(mtime("target"), 0);
    assert_ne!(mtime("d"), 0);
}
