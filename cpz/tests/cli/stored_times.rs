//! `-au` and `--resume` on filesystems that do not store the times of the sources.
//!
//! A file that is kept is told by its content: it was changed, and then got its old time again.

use std::{
    fs::{self, File},
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use testkit::{
    needs, or_skip,
    probe::{Fs, LoopMount, NOBODY},
    run::{Run, Status},
    served,
    tree::{Scratch, Tree, place},
};

use crate::support::{CPZ, NEWEST_CP, inode};

const COPIES: [&[&str]; 2] = [&["-auT"], &["-aT", "--resume"]];

/// Size of the files: a change of the content does not change it.
const BYTES: usize = 3;

fn whole_seconds() -> Result<LoopMount, testkit::probe::Skip> {
    LoopMount::new_in(&place(), Fs::Ext4, 32, &["-I", "128"])
}

fn until_2038() -> Result<LoopMount, testkit::probe::Skip> {
    LoopMount::new_in(&place(), Fs::Xfs, 300, &["-m", "bigtime=0"])
}

fn at(seconds: i64, nanoseconds: u32) -> SystemTime {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    let second = match seconds {
        0.. => UNIX_EPOCH + distance,
        _ => UNIX_EPOCH - distance,
    };
    second + Duration::from_nanos(nanoseconds.into())
}

fn write(path: &Path, content: &str, time: SystemTime) {
    assert_eq!(content.len(), BYTES);
    fs::write(path, content).unwrap();
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

/// A source on a filesystem that stores nanoseconds, and its dest.
struct Pair<'a> {
    source: Scratch,
    dest: &'a Path,
}

impl<'a> Pair<'a> {
    fn to(dest: &'a Path) -> Self {
        Self {
            source: Scratch::in_memory(),
            dest,
        }
    }

    /// Makes `f` at both sides: `old`, copied from a source of this time.
    fn begin(&self, time: SystemTime) {
        self.set_source("old", time);
        self.copy(&["-aT"]);
        assert_eq!(self.content(), "old");
    }

    fn set_source(&self, content: &str, time: SystemTime) {
        write(&self.source.at("f"), content, time);
    }

    /// Returns a run that copies the source.
    fn run(&self, options: &[&str]) -> Run {
        let run = Run::new(CPZ).args(options);
        run.arg(self.source.path()).arg(self.dest)
    }

    fn copy(&self, options: &[&str]) {
        let outcome = self.run(options).output();
        outcome.assert_success();
        assert_eq!(outcome.stdout, b"");
    }

    fn content(&self) -> String {
        fs::read_to_string(self.dest.join("f")).unwrap()
    }

    fn dest_time(&self) -> SystemTime {
        fs::metadata(self.dest.join("f"))
            .unwrap()
            .modified()
            .unwrap()
    }

    /// Asserts that a file of this time is copied once, and then kept.
    #[track_caller]
    fn copies_once(&self, options: &[&str], time: SystemTime) {
        self.begin(time);
        let stored = self.dest_time();
        write(&self.dest.join("f"), "kep", time);
        assert_eq!(self.dest_time(), stored);
        for _ in 0..2 {
            self.copy(options);
            assert_eq!(self.content(), "kep", "{options:?} {time:?}");
            assert_eq!(self.dest_time(), stored, "{options:?} {time:?}");
        }
    }

    /// Asserts that a source that has changed is copied.
    #[track_caller]
    fn copies_change(&self, options: &[&str], before: SystemTime, after: SystemTime) {
        self.begin(before);
        self.set_source("new", after);
        self.copy(options);
        assert_eq!(self.content(), "new", "{options:?} {before:?} {after:?}");
    }
}

#[test]
#[ignore = "slow"]
fn whole_seconds_are_neither_copied_again_nor_left_out() {
    let mount = or_skip!(whole_seconds());
    let pair = Pair::to(mount.path());
    for options in COPIES {
        for second in [1_000_000_000, 1_000_000_001] {
            pair.copies_once(options, at(second, 123_456_789));
            pair.copies_once(options, at(second, 0));
            pair.copies_change(options, at(second, 0), at(second + 1, 0));
            pair.copies_change(options, at(second, 5), at(second + 1, 5));
            pair.copies_change(options, at(second, 0), at(second + 9, 0));
        }
    }
}

#[test]
#[ignore = "slow"]
fn cp_decides_the_same() {
    let mount = or_skip!(whole_seconds());
    let source = Scratch::in_memory();
    let tree = Tree::at(source.path());
    let second = Duration::from_secs(1_000_000_000);
    let times = [
        second,
        second + Duration::from_nanos(1),
        second + Duration::from_millis(500),
        second + Duration::from_secs(1),
        second + Duration::from_millis(1500),
        second + Duration::from_secs(60),
        second - Duration::from_nanos(1),
        Duration::from_secs(4_102_444_800),
    ];
    // A file, a symbolic link, and a file with two names.
    let plant = |tree: &Tree, dir: &str, content: &str, number: usize, time: Duration| {
        tree.plant(format!("{dir}/{number}={content}"))
            .mtime(time)
            .plant(format!("{dir}/l{number}->{content}"))
            .mtime(time)
            .plant(format!("{dir}/h{number}={content}"))
            .mtime(time)
            .plant(format!("{dir}/i{number}=={dir}/h{number}"));
    };
    for (number, time) in times.into_iter().enumerate() {
        plant(&tree, "s", "new", number, time);
    }
    let from = source.at("s").display().to_string();
    for options in [&["-au"][..], &["-pu"], &["-u"]] {
        let parity = NEWEST_CP.parity().args(options).args(["-T", &from, "d"]);
        parity.on(mount.path()).check(|tree| {
            for number in 0..times.len() {
                plant(tree, "d", "old", number, second);
            }
        });
    }
}

#[test]
#[ignore = "slow"]
fn nanoseconds_are_neither_copied_again_nor_left_out() {
    let mount = or_skip!(LoopMount::new(Fs::Ext4, 32));
    let pair = Pair::to(mount.path());
    for options in COPIES {
        for nanoseconds in [0, 120_000_000, 100, 1] {
            let before = at(1_000_000_000, nanoseconds);
            pair.copies_once(options, before);
            for later in [1, 99, 1_000, 1_000_000_000, 1_999_999_999, 90_000_000_000] {
                pair.copies_change(options, before, before + Duration::from_nanos(later));
            }
        }
    }
}

#[test]
#[ignore = "slow"]
fn times_that_are_limited_are_not_copied_again() {
    let mount = or_skip!(until_2038());
    let pair = Pair::to(mount.path());
    const LAST: i64 = i32::MAX as i64;
    for options in COPIES {
        for seconds in [4_102_444_800, LAST + 2, LAST + 1, LAST - 1, -2_524_521_600] {
            pair.copies_once(options, at(seconds, 0));
            pair.copies_once(options, at(seconds, 5));
        }
        pair.copies_change(options, at(1_000_000_000, 0), at(4_102_444_800, 0));
        pair.copies_change(options, at(LAST - 100, 0), at(4_102_444_800, 0));
    }
    pair.copies_change(COPIES[1], at(4_102_444_800, 0), at(LAST - 10, 0));
}

#[test]
#[ignore = "slow"]
fn servers_may_cut_and_limit_times() {
    let steps = [1, 2, 0];
    let ranges = [
        None,
        Some(0..=i64::from(i32::MAX)),
        Some(315_532_800..=4_354_819_198),
        Some(1_100_000_000..=1_500_000_000),
    ];
    for (time_step_seconds, time_range) in steps
        .into_iter()
        .flat_map(|step| ranges.clone().map(|range| (step, range)))
    {
        let last = time_range.as_ref().map_or(0, |range| *range.end());
        let first = time_range.as_ref().map_or(0, |range| *range.start());
        let mount = served!(time_step_seconds, time_range);
        let pair = Pair::to(mount.path());
        for options in COPIES {
            for seconds in [
                1_200_000_000,
                1_200_000_001,
                last + 4,
                6_000_000_000,
                first + 9,
            ] {
                pair.copies_once(options, at(seconds, 0));
                pair.copies_once(options, at(seconds, 123_456_789));
            }
            for later in [2, 3, 100] {
                let before = at(1_200_000_000, 5);
                pair.copies_change(options, before, before + Duration::from_secs(later));
            }
        }
        pair.copies_once(COPIES[1], at(-1_000_000_000, 0));
    }
}

#[test]
#[ignore = "slow"]
fn a_failed_copy_is_older_than_its_source_even_if_times_are_set_only_in_pairs() {
    let from = served!(unreadable_from: Some(1 << 17));
    let to = served!(lone_times_ignored: true);
    let [source, dest] = [from.path(), to.path()].map(|dir| dir.join("f"));
    fs::write(&source, vec![1; 1 << 20]).unwrap();
    fs::write(&dest, "old").unwrap();
    Run::new(CPZ).arg(&source).arg(&dest).fails();
    let [source, dest] = [source, dest].map(|path| fs::metadata(path).unwrap().modified().unwrap());
    assert!(dest < source, "{dest:?} {source:?}");
}

#[test]
#[ignore = "slow"]
fn the_times_of_links_are_cut_too() {
    let mount = or_skip!(whole_seconds());
    let pair = Pair::to(mount.path());
    let (link, tree) = (pair.dest.join("l"), Tree::at(&pair.source));
    for options in COPIES {
        let time = Duration::new(1_000_000_000, 5);
        tree.plant("l->one").mtime(time);
        pair.copy(&["-aT"]);
        let before = inode(&link);
        pair.copy(options);
        assert_eq!(inode(&link), before, "{options:?}");
        fs::remove_file(pair.source.at("l")).unwrap();
        tree.plant("l->two").mtime(time + Duration::from_secs(1));
        pair.copy(options);
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("two"));
        fs::remove_file(pair.source.at("l")).unwrap();
    }
}

#[test]
#[ignore = "slow"]
fn a_filesystem_is_asked_rarely() {
    let mount = or_skip!(whole_seconds());
    let pair = Pair::to(mount.path());
    for number in 0..400_u32 {
        let time = at(1_000_000_000 + i64::from(number * 7919 % 400), number + 1);
        write(&pair.source.at(number.to_string()), "abc", time);
    }
    pair.copy(&["-aT"]);
    for options in COPIES {
        // Several workers would find the same new first or last time at once.
        let calls = or_skip!(pair.run(options).arg("--threads=1").calls());
        let calls = calls.iter().filter(|call| call.name == "utimensat").count();
        // Each new first or last time costs two calls, and the order of a listing says how many there are.
        assert!(calls < 60, "{calls}");
    }
}

#[test]
#[ignore = "slow"]
fn a_run_that_is_killed_while_it_asks_leaves_no_file_that_looks_complete() {
    let mount = or_skip!(whole_seconds());
    needs!("strace");
    let pair = Pair::to(mount.path());
    let mut killed = 0;
    for options in COPIES {
        for later in [1, 90] {
            for (call, most) in [("utimensat", 4), ("fstat", 12)] {
                for when in 1..=most {
                    pair.begin(at(1_000_000_000, 0));
                    pair.set_source("new", at(1_000_000_000 + later, 0));
                    let kill = format!("{call}:signal=SIGKILL:when={when}");
                    let outcome = pair.run(options).with_faults(&kill).output();
                    killed += usize::from(outcome.status != Status::Exit(0));
                    pair.copy(options);
                    assert_eq!(pair.content(), "new", "{options:?} {later} {kill}");
                }
            }
        }
    }
    assert!(killed > 0);
}

#[test]
#[ignore = "slow"]
fn a_dry_run_asks_nothing_and_predicts_a_copy() {
    let mount = or_skip!(whole_seconds());
    let pair = Pair::to(mount.path());
    pair.begin(at(1_000_000_000, 5));
    let changed = || {
        use std::os::unix::fs::MetadataExt;
        let stat = fs::metadata(pair.dest.join("f")).unwrap();
        (stat.ctime(), stat.ctime_nsec())
    };
    let before = changed();
    for options in COPIES {
        let outcome = pair.run(options).arg("--dry-run").output();
        assert!(outcome.stdout_text().contains("/f' -> '"), "{outcome}");
    }
    assert_eq!(changed(), before);
}

#[test]
#[ignore = "slow"]
fn a_dest_whose_time_may_not_be_set_is_copied() {
    needs!(root);
    let mount = or_skip!(whole_seconds());
    let pair = Pair::to(mount.path());
    let path = pair.dest.join("f");
    for options in COPIES {
        pair.begin(at(1_000_000_000, 5));
        write(&path, "old", at(1_000_000_000, 0));
        let tree = Tree::at(pair.dest);
        tree.plant("f :0:0 %666").select("").mode(0o777);
        pair.set_source("new", at(1_000_000_000, 5));
        Tree::at(pair.source.path()).mode(0o755);
        let run = Run::new(CPZ).args(options).arg("--no-preserve=all");
        let run = run.arg("--preserve=timestamps").uid(NOBODY);
        run.arg(pair.source.at("f")).arg(&path).output();
        assert_eq!(pair.content(), "new", "{options:?}");
    }
}
