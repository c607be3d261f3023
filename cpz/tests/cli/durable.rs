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

use crate::support::{CPZ, complaint, cpz, succeeds};

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
    build_few(&Tree::at(scratch.at("few")));
    build_many(&Tree::at(scratch.at("many")));
    let run = cpz(&scratch, "--threads=1");
    let calls = |args: &[&str]| run.clone().args(args).calls().map(sync_calls);
    // Two files, their directory, and the directory above it.
    let few = or_skip!(calls(&["--fsync", "few/s", "d1"]));
    assert_eq!(names(&few), ["fsync"; 4], "{few:?}");
    let many = or_skip!(calls(&["--fsync", "many/s", "d2"]));
    assert_eq!(names(&many), ["fsync", "fsync", "fsync", "fsync", "syncfs"]);
    assert!(or_skip!(calls(&["many/s", "d3"])).is_empty());
}

/// Returns the calls on files of `d` by name, of these three: content is written, then the times are set.
fn order(args: &[&str], scratch: &Scratch) -> Result<Vec<String>, Skip> {
    let run = Run::new(CPZ).words("--threads=1 -aT").args(args);
    let calls = run.words("s d").current_dir(scratch).calls()?;
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
fn files_that_an_update_keeps_are_written_too() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    build_few(&tree);
    succeeds(&scratch, "-aT s d");
    tree.plant("s/link->f d/link->f");
    let run = |args: &[&str]| {
        let run = Run::new(CPZ).words("--threads=1 -auT").args(args);
        run.words("s d").current_dir(&scratch).calls()
    };
    // Two files, their directory, and the directory above it.
    let with = sync_calls(or_skip!(run(&["--fsync"])));
    assert_eq!(names(&with), ["fsync"; 4], "{with:?}");
    assert!(sync_calls(or_skip!(run(&[]))).is_empty());
}

#[test]
fn the_content_of_linked_files_is_written() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    build_few(&tree);
    tree.plant("s/link->f s/fifo<fifo>");
    build_many(&Tree::at(scratch.at("many")));
    let run = |args: &[&str]| {
        let run = Run::new(CPZ).words("--threads=1 --link -P").args(args);
        run.current_dir(&scratch).calls().map(sync_calls)
    };
    let few = or_skip!(run(&["--fsync", "s", "d1"]));
    assert_eq!(names(&few), ["fsync"; 4], "{few:?}");
    // The links are there already.
    let again = or_skip!(run(&["--fsync", "-T", "s", "d1"]));
    assert_eq!(names(&again), ["fsync"; 4], "{again:?}");
    let many = or_skip!(run(&["--fsync", "many/s", "d2"]));
    assert_eq!(names(&many), ["fsync", "fsync", "fsync", "fsync", "syncfs"]);
    assert!(or_skip!(run(&["many/s", "d3"])).is_empty());
}

#[test]
fn a_kept_file_that_may_not_be_read_is_written_with_its_filesystem() {
    needs!(root);
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.plant("s/f=new s/f @1000000000 d/f=newer %200 d %777");
    let run = Run::new(CPZ).words("--threads=1 -uT --fsync s d");
    let outcome = run.current_dir(&scratch).uid(NOBODY).output();
    assert_eq!(outcome.assert_success().stderr_text(), "");
}

#[test]
fn every_file_is_written_alone_to_a_server() {
    let scratch = Scratch::new();
    build_many(&Tree::at(&scratch));
    let mount = served!();
    let dest = mount.at("d");
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
fn files_that_are_kept_are_written_too() {
    let scratch = Scratch::new();
    build_many(&Tree::at(&scratch));
    let run = Run::new(CPZ).words("--threads=1 -a --resume --fsync -T s d");
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
    let tree = Tree::at(&scratch);
    tree.dir("d");
    let mut args = vec!["--threads=1".to_owned(), "--fsync".to_owned()];
    for number in 10..30 {
        tree.plant(format!("f{number}=x"));
        args.push(format!("f{number}"));
    }
    let mount = served!();
    tree.plant("z=x").symlink("d/z", mount.at("z"));
    fs::write(mount.at("z"), "old").unwrap();
    args.extend(["z", "d"].map(str::to_owned));
    let run = cpz(&scratch, args);
    let calls = sync_calls(or_skip!(run.calls()));
    // Four files, the one on the server, and then everything else.
    assert_eq!(
        names(&calls),
        ["fsync", "fsync", "fsync", "fsync", "fsync", "syncfs"]
    );
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
