//! Filesystems on which a removal may fail for a moment: until others have made room, or until a server has seen them.

use std::time::Duration;

use testkit::{
    habits, or_skip,
    probe::{Errno, FileType, Fs, LoopMount, Removal},
    run::{Run, Status},
    served,
    tree::{Tree, plant},
};

use crate::support::{RM, RMZ};

#[test]
fn an_empty_subvolume_waits_for_room() {
    let mount = or_skip!(LoopMount::new(Fs::Btrfs, 300));
    or_skip!(Run::new(RMZ).arg("-f").calls());
    for when in ["1", "1..5"] {
        let script = format!(
            r#"mkdir d && btrfs -q subvolume create d/s &&
            yes | strace -f -o /dev/null -e inject=unlinkat:error=ENOSPC:when={when} {RMZ} -i --one-file-system d"#
        );
        let run = Run::new("sh").args(["-c", &script]);
        let outcome = run.current_dir(mount.path()).output();
        assert_eq!(outcome.status, Status::Exit(0), "{when}: {outcome}");
        assert!(!mount.at("d").exists());
    }
}

/// Counts the attempts to remove a directory that is busy, `d/busy`, after `prepare` has filled it.
fn attempts(dir: &std::path::Path, prepare: &str) -> usize {
    let script = format!(
        "{prepare} && : >d/busy/f && strace -f -o trace -e trace=unlinkat,unlink,rmdir {RMZ} d"
    );
    let run = Run::new("unshare").args(["-m", "sh", "-c", &script]);
    let outcome = run.current_dir(dir).fails();
    let stderr = outcome.stderr_text();
    assert!(stderr.ends_with("cannot remove 'd/busy': Device or resource busy\n"));
    let trace = std::fs::read_to_string(dir.join("trace")).unwrap();
    let is_attempt = |line: &&str| line.contains("\"busy\"");
    trace.lines().filter(is_attempt).count()
}

#[test]
fn a_mount_point_is_tried_once() {
    or_skip!(Run::new(RMZ).arg("-f").calls());
    let mount = served!();
    Tree::at(mount.stored()).dir("d/busy");
    assert_eq!(attempts(mount.path(), "mount -t tmpfs none d/busy"), 1);
    let bound = "mkdir of && mount --bind of d/busy";
    assert_eq!(attempts(mount.path(), bound), 1);
}

const TREE: &str =
    "t/a/1= t/a/2= t/a/link->1 t/a/fifo<fifo> t/a/empty/ t/b/c/d/1= t/b/2= t/1= empty/ file=";

#[test]
fn names_that_fail_for_a_moment() {
    RM.table().build(plant(TREE)).rows(
        r#"
        # They are removed once others are.
        fault:unlinkat:error=ENOSPC:when=(1|1+2|2+2|1..14|3..40) rmz -v --threads=(1|4) t empty file
        > removed 't/a/1'
        > removed 't/a/2'
        > removed 't/a/link'
        > removed 't/a/fifo'
        > removed directory 't/a/empty'
        > removed directory 't/a'
        > removed 't/b/c/d/1'
        > removed directory 't/b/c/d'
        > removed directory 't/b/c'
        > removed 't/b/2'
        > removed directory 't/b'
        > removed 't/1'
        > removed directory 't'
        > removed directory 'empty'
        > removed 'file'
        = -t -empty -file
        # They are counted once.
        fault:unlinkat:error=EDQUOT:when=(1|1+2|1000) rmz --stats=json t empty file
        > ..."entries":15,...
        = -t -empty -file
        # Those that fail until the end are reported once, and their directories stay.
        fault:unlinkat:error=EDQUOT:when=1+ rmz t empty file
        ! cannot remove 'empty': Disk quota exceeded
        ! cannot remove 'file': Disk quota exceeded
        ! cannot remove 't/1': Disk quota exceeded
        ! cannot remove 't/a/1': Disk quota exceeded
        ! cannot remove 't/a/2': Disk quota exceeded
        ! cannot remove 't/a/empty': Disk quota exceeded
        ! cannot remove 't/a/fifo': Disk quota exceeded
        ! cannot remove 't/a/link': Disk quota exceeded
        ! cannot remove 't/b/2': Disk quota exceeded
        ! cannot remove 't/b/c/d/1': Disk quota exceeded
        # An operand that must be empty waits for room.
        fault:unlinkat:error=ENOSPC:when=1..3 rm -d file empty
        = -file -empty
        # So does one that cannot be listed.
        strace sh:'exec strace -f -qq -o /dev/null -e inject=getdents64:error=EIO:when=1 -e inject=unlinkat:error=ENOSPC:when=1..2 "$@"' rmz empty
        = -empty
        strace sh:'exec strace -f -qq -o /dev/null -e inject=getdents64:error=EIO:when=1 -e inject=unlinkat:error=ENOSPC:when=1+ "$@"' rmz empty
        ! cannot remove 'empty': No space left on device"#,
    );
}

#[test]
fn names_that_fail_for_a_moment_on_a_server() {
    let served = |removal| RM.table().served("m", habits!(removal));
    for error in [Errno::NOSPC, Errno::DQUOT] {
        served(Removal::Pausing(error, Duration::from_millis(20))).rows(
            "# All fail for a moment after each removal.
            m/t/{0..4}/f= m/t/{0..4}/d/
            rmz m/t
            = -m/t",
        );
    }
    let is_listed_as_directory = habits!(removal: Removal::Hesitant(Errno::NOSPC),
        listed_type: Some(FileType::Directory));
    RM.table().served("m", is_listed_as_directory).rows(
        "# A file is listed as a directory.
        m/t/odd=
        rmz -v m/t
        > removed 'm/t/odd'
        > removed directory 'm/t'
        = -m/t",
    );
    for error in [Errno::NOTEMPTY, Errno::BUSY, Errno::EXIST] {
        served(Removal::Settling(error, Duration::from_millis(30))).rows(
            "# The server sees the last removal later.
            m/t/{0..2}/sub/f= m/t/{0..2}/f=
            rmz --threads=(1|4) m/t
            = -m/t",
        );
    }
    for error in [Errno::NOTEMPTY, Errno::BUSY] {
        served(Removal::Settling(error, Duration::from_secs(3600))).rows(&format!(
            "# Directories that are never empty are reported at the end.
            m/t/{{0..1}}/sub/f= m/t/{{0..1}}/f=
            rmz m/t
            ! cannot remove 'm/t/0/sub': {0}
            ! cannot remove 'm/t/1/sub': {0}
            = -m/t/0/f -m/t/1/f -m/t/0/sub/f -m/t/1/sub/f",
            match error {
                Errno::BUSY => "Device or resource busy",
                _ => "Directory not empty",
            }
        ));
    }
}
