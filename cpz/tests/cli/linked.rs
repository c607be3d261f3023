//! Hard links among the sources.

use std::{fs, os::unix::fs::MetadataExt, thread, time::Duration};

use testkit::{
    habits, needs, or_skip,
    probe::{Numbering, Skip},
    run::{Outcome, Status},
    tree::{Scratch, plant, remove_for_sure},
};

use crate::support::{CP, complaint, cpz};

const LINKED: &str =
    "s/one=content s/two==s/one s/deep/er/three==s/one t/four==s/one s/empty= t/empty==s/empty
    s/link->one t/link==s/link s/fifo<fifo> t/fifo==s/fifo s/alone=x into/";

#[test]
fn names_of_one_file() {
    CP.table().build(plant(LINKED)).rows(
        r"
        # They stay linked in one directory and across operands.
        cpz --preserve=links s new
        cpz -a (s t|s/one s/two t/four) into
        cpz -av t/link s/deep s/fifo t/four into
        # They come apart when not asked for.
        cpz (-p|-a --no-preserve=links) s t into
        # They are linked to the target of a link at the dest.
        into/one->old into/old=old
        cp --preserve=links s/one s/two t/four into
        cpz (-L --preserve=links|--preserve=links|-a) s/one s/two t/four into
        cpz -aH s/one s/deep t/four into
        # They replace existing dests, and no directory.
        into/two=old into/four->two
        cpz -av s/one s/two t/four into
        into/s/one=old into/s/two==into/s/one into/s/deep/er/three==into/s/one into/t/four==into/s/one
        cpz -av s t into
        into/two/
        newest cpz -av s/one s/two into
        # They let go of other names of the dest.
        into/alone=old into/other==into/alone
        cpz (--preserve=links|) -v s/alone into
        # They are not linked to their own source.
        into/two==s/one
        cpz -a s/one s/two into
        # They are copied once more if the first could not be.
        into/one/in-the-way/
        newest cpz -a s/one s/two t/four into
        # They become links if symbolic links are followed.
        s/to-alone->alone s/to-dir->../t
        (cpz -L|cp) --preserve=links s/alone s/to-alone into
        cpz --preserve=links -L s/alone s/to-alone s/link into
        cpz -a -H s/to-alone s/alone into
        s/to-alone->alone
        cpz -aL s new",
    );
}

#[test]
fn dests_and_links() {
    CP.rows(
        r"
        # A source that is its own dest gets no links.
        link->nowhere s/link==link into/link==link
        cpz -a link s into
        # Links of the source that are removed at the dest do not matter.
        s/a=1 s/b==s/a s/c==s/a d/a==s/a d/b==s/a d/c==s/a
        cpz -aT --remove-destination s d
        # A dest is replaced that leads to a file of several names.
        new=new two=old names==two to-two->two one=old to-one->one link-of-two-names==to-one
        cpz (-a|-d|--preserve=links) new (two|to-two|to-one)
        # Names become links to a newer dest.
        s/one=content @5000 s/two==s/one into/one=newer @6000
        cpz (-auv|-auv --no-preserve=links) s/one s/two into
        # They replace dests that are newer than their copy.
        cpz (-auv|-auvL|-aubv) s/two s/one into
        + into/two=older @4000
        cpz -auv s/one s/two into
        + into/two==into/one
        cpz -auv s/two s/one into
        # They become links to a link to a newer dest.
        + s/three=x @5000 s/four==s/three into/three->one
        cpz -auv s/three s/four into
        # They replace newer dests that are links, and not directories.
        s/one=content @5000 s/two==s/one into/two=older @4000 (into/one/|into/one/ @3000|into/dir/ into/one->dir|into/one->nowhere)
        newest cpz -auv s/two s/one into
        # The directory counts as the first copy.
        s/one=content @5000 s/two==s/one into/two=older @4000 into/one/
        newest cpz -auv s/one s/two into",
    );
}

#[test]
#[ignore = "slow"]
fn stay_linked_in_many_threads() {
    let table = CP.table().build(plant(LINKED));
    for _ in 0..20 {
        table.rows("CPZ_THREADS=8 cpz -a s t into");
    }
}

/// Copies two names of one source with an error of the look at the first copy. Returns the outcome, and
/// the number of links of the second copy.
fn with_an_unseen_first_copy(names: &str) -> Result<(Outcome, u64), Skip> {
    let scratch = Scratch::with(names);
    let run = cpz(&scratch, "-a one two into");
    scratch.plant("into/");
    let calls = run.calls()?;
    // The first look finds nothing there.
    let last_look = calls.iter().rfind(|call| {
        let is_first_copy = call.shown.contains(r#", "one", "#) && !call.shown.contains("AT_FDCWD");
        call.name == "newfstatat" && is_first_copy
    });
    remove_for_sure(scratch.at("into")).unwrap();
    scratch.plant("into/");
    let look = last_look.expect("cpz looks at the first copy");
    let outcome = run.with_fault(look, "error=EIO").output();
    let second = fs::symlink_metadata(scratch.at("into/two"));
    Ok((outcome, second.expect("a second copy").nlink()))
}

#[test]
fn are_kept_or_reported_if_the_first_copy_cannot_be_looked_at() {
    let (outcome, links) = or_skip!(with_an_unseen_first_copy("one=content two==one"));
    assert_eq!((outcome.status, links), (Status::Exit(0), 2), "{outcome}");
    for first in ["one->nowhere", "one<fifo>"] {
        let (outcome, _) = or_skip!(with_an_unseen_first_copy(&format!("{first} two==one")));
        outcome.assert_status(1);
        assert_eq!(
            complaint(&outcome),
            "cpz: cannot stat 'into/one': Input/output error\n"
        );
    }
}

#[test]
#[ignore = "slow"]
fn a_dest_stays_if_another_process_replaces_the_first_copy() {
    needs!("strace");
    let scratch = Scratch::new();
    let at = |name: &str| scratch.at(name);
    scratch.plant("s/first=1 s/sub/second==s/first d/first=old d/sub/second=old new=new");
    thread::scope(|scope| {
        scope.spawn(|| {
            while fs::read(at("d/first")).unwrap() != b"1" {
                thread::sleep(Duration::from_millis(10));
            }
            fs::rename(at("new"), at("d/first")).unwrap();
        });
        let run = cpz(&scratch, "-aT s d");
        run.with_faults("linkat:delay_enter=500000:when=1").fails();
    });
    assert_eq!(fs::read(at("d/first")).unwrap(), b"new");
    assert_eq!(fs::read(at("d/sub/second")).unwrap(), b"old");
}

#[test]
#[ignore = "slow"]
fn are_reported_and_missing_if_the_kernel_refuses_the_link() {
    CP.table().build(plant(LINKED)).rows(
        "# Over an existing file, too.
        into/four=old
        fault:link,linkat:error=(EMLINK|ENOENT|ESTALE|ENOTDIR|ELOOP|EACCES|EPERM|EIO|ENOMEM|EXDEV) cpz -a (s/one|t/four) s/two into",
    );
}

#[test]
fn are_told_by_more_than_inode_numbers() {
    CP.table().served("m", habits!(numbering: Numbering::Equal)).rows(
        r#"
        # Different files with one number are not linked. The last two differ only in the time at which their status changed.
        m/a=1 @7 m/b=22 @7 m/c=333 @7 m/d=444 @7
        sh:'"$@" 2>/dev/null; "$@"' cpz (-aT|-auT|-aT --resume) m new
        ! warning: 'm/...' has the inode number of another source file but differs from it: not linked
        ! warning: 'm/...' has the inode number of another source file but differs from it: not linked
        ! warning: 'm/...' has the inode number of another source file but differs from it: not linked
        ? 0
        = new/a=1 new/b=22 new/c=333 new/d=444
        # Links are made at dests that have one number.
        s/a=new s/b==s/a s/c=other m/a=old m/b=older
        sh:'"$@" && "$@"' cpz -aT s m
        = m/a=new -m/b m/b==m/a m/c=other"#,
    );
}
