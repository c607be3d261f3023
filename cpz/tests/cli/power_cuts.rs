//! A power cut at any time leaves what the manual promises under SIGKILL AND POWER CUTS.

use std::{fs, path::Path, time::Duration};

use testkit::{
    or_skip,
    probe::{FailingDisk, Fs, Others, Skip},
    run::Run,
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, noise},
};

use crate::support::{CPZ, after_boot, succeeds, wait_for_boot};

/// How many power cuts a test tries on each filesystem. Each takes about half a second.
const CUTS: u64 = 12;

/// Builds `s` with files of many sizes, with holes and links.
fn build() -> Scratch {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    let content = noise(1 << 20);
    let sizes = [0, 1, 700, 4096, 5000, 20_000, 65_536, 100_000, 300_000];
    let at = |number: usize| Duration::new(1_000_000_000 + number as u64, 5);
    for number in 0..54 {
        let content = &content[number..][..sizes[number % sizes.len()]];
        tree.file(format!("s/d{}/f{number}", number % 7), content)
            .mtime(at(number));
    }
    tree.file("s/large", &content).mtime(at(60));
    tree.sparse("s/end", 400_000, &[(0, &content[..70_000])])
        .mtime(at(61));
    tree.sparse("s/middle", 400_000, &[(300_000, &content[..100_000])])
        .mtime(at(62));
    tree.plant("s/link==s/d1/f8 s/symlink->d1").mtime(at(63));
    scratch
}

/// Returns the differences between the source and its copy.
fn difference(scratch: &Scratch, disk: &Path) -> String {
    let kept = Attributes::ALL - Attributes::ATIME;
    let snapshot = |path| Snapshot::of(path, kept);
    match disk.join("d") {
        dest if dest.exists() => snapshot(scratch.at("s")).diff(&snapshot(dest)),
        _ => "- the whole copy".to_owned(),
    }
}

fn copy(scratch: &Scratch, options: &[&str], disk: &Path) {
    let dest = disk.join("d").display().to_string();
    succeeds(scratch, [&["-aT"], options, &["s", &dest]].concat());
}

fn complete_copies_survive(fs: Fs) {
    let scratch = build();
    let disk = or_skip!(FailingDisk::new(fs));
    let recording = disk.record(Others::Idle, |disk| copy(&scratch, &["--fsync"], disk));
    disk.cut_at_end(&recording, |disk, cut| {
        let lost = difference(&scratch, disk);
        assert!(lost.is_empty(), "{cut}\n{lost}");
    });
}

#[test]
#[ignore = "slow"]
fn a_complete_copy_to_ext4_survives() {
    complete_copies_survive(Fs::Ext4);
}

#[test]
#[ignore = "slow"]
fn a_complete_copy_to_xfs_survives() {
    complete_copies_survive(Fs::Xfs);
}

/// Cuts the power during a copy, and continues it by the command that `resume` returns.
fn interrupted_copies_go_on(fs: Fs, options: &[&str], resume: impl Fn(&str) -> Result<Run, Skip>) {
    or_skip!(resume(CPZ));
    let scratch = build();
    let disk = or_skip!(FailingDisk::new(fs));
    let recording = disk.record(Others::Sync, |disk| copy(&scratch, options, disk));
    wait_for_boot();
    let mut incomplete = 0;
    disk.cut_during(&recording, CUTS, |disk, cut| {
        incomplete += usize::from(!difference(&scratch, disk).is_empty());
        let run = resume(CPZ)
            .unwrap()
            .words("-aT --resume s")
            .arg(disk.join("d"));
        let outcome = run.current_dir(&scratch).output();
        assert_eq!(outcome.assert_success().stderr_text(), "", "{cut}");
        let wrong = difference(&scratch, disk);
        assert!(wrong.is_empty(), "{cut}, {options:?}\n{wrong}");
    });
    // Otherwise, this test would show nothing.
    assert!(incomplete > 2, "{incomplete} of {CUTS}");
}

#[test]
#[ignore = "slow"]
fn an_interrupted_copy_to_ext4_goes_on() {
    interrupted_copies_go_on(Fs::Ext4, &[], after_boot);
}

#[test]
#[ignore = "slow"]
fn an_interrupted_copy_to_xfs_goes_on() {
    interrupted_copies_go_on(Fs::Xfs, &[], after_boot);
}

// The order of the calls is enough here. The time of the boot does not matter.
#[test]
#[ignore = "slow"]
fn an_interrupted_durable_copy_to_ext4_goes_on() {
    interrupted_copies_go_on(Fs::Ext4, &["--fsync"], |cpz| Ok(Run::new(cpz)));
}

#[test]
#[ignore = "slow"]
fn an_interrupted_durable_copy_to_xfs_goes_on() {
    interrupted_copies_go_on(Fs::Xfs, &["--fsync"], |cpz| Ok(Run::new(cpz)));
}

fn atomic_copies_replace_whole_files(fs: Fs) {
    let scratch = build();
    let disk = or_skip!(FailingDisk::new(fs));
    let names: Vec<_> = (0..54)
        .map(|number| format!("d{}/f{number}", number % 7))
        .collect();
    let old = noise(100_100);
    let old = |number: usize| &old[number..][..9000 + 1000 * number];
    disk.mounted(|disk| {
        let tree = Tree::at(disk);
        for (number, name) in names.iter().enumerate() {
            tree.file(Path::new("d").join(name), old(number));
        }
    });
    let options = ["--atomic", "--fsync"];
    let recording = disk.record(Others::Sync, |disk| copy(&scratch, &options, disk));
    let mut replaced = [0; 2];
    disk.cut_during(&recording, CUTS, |disk, cut| {
        for (number, name) in names.iter().enumerate() {
            let found = fs::read(disk.join("d").join(name)).expect("old or new");
            let is_new = found == fs::read(scratch.at("s").join(name)).unwrap();
            assert!(is_new || found == old(number), "{cut}: {name}");
            replaced[usize::from(is_new)] += 1;
        }
    });
    // Otherwise, this test would show nothing.
    assert!(replaced.iter().all(|&number| number > 0), "{replaced:?}");
}

#[test]
#[ignore = "slow"]
fn an_atomic_copy_to_ext4_replaces_whole_files() {
    atomic_copies_replace_whole_files(Fs::Ext4);
}

#[test]
#[ignore = "slow"]
fn an_atomic_copy_to_xfs_replaces_whole_files() {
    atomic_copies_replace_whole_files(Fs::Xfs);
}
