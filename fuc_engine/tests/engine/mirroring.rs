//! Copies that delete what their sources do not have, while the run is cancelled or another process changes the trees.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use fuc_engine::{Backup, Cancel, CopyOp, Deletion, Dereference, Event, Refusal, Summary};
use testkit::{
    or_skip, served,
    tree::{Scratch, Tree, wide},
};

use crate::kit::{Failure, Meddler, Person, can_exchange, copy_with, exactly, exchange, threads};

fn mirror() -> CopyOp<'static> {
    CopyOp::new().with(|copy| {
        copy.threads = threads(1);
        copy.delete = Some(Deletion::default());
    })
}

/// Makes `d` a mirror of `s`, and calls `act` at the first due event. Returns the summary and the failures.
fn mirrored(
    dir: &Path,
    copy: CopyOp<'static>,
    is_due: fn(&Event<'_>) -> bool,
    act: impl Fn() + Sync,
) -> (Summary, Vec<Failure>) {
    let is_done = AtomicBool::new(false);
    let meddler = Meddler::new(|event| {
        if is_due(&event) && !is_done.swap(true, Ordering::Relaxed) {
            act();
        }
    });
    let summary = copy.run([dir.join("s")], &exactly(dir.join("d")), &meddler);
    let told = meddler.told(summary);
    assert!(is_done.into_inner(), "nothing has happened");
    (summary, told.failures)
}

fn is_copied(event: &Event<'_>) -> bool {
    matches!(event, Event::Copied { source, .. } if source.is_file())
}

fn is_removed(event: &Event<'_>) -> bool {
    matches!(event, Event::Removed(_))
}

#[test]
fn a_cancelled_copy_deletes_nothing_more() {
    let scratch = Scratch::with("s/a= s/sub/b= d/sub/old= d/old=");
    let cancel = Cancel::new();
    let copy = mirror().cancelled_by(cancel.clone());
    let (summary, failures) = mirrored(scratch.path(), copy, is_copied, || cancel.cancel());
    assert!(summary.cancelled && failures.is_empty(), "{failures:?}");
    assert_eq!(summary.deleted, 1);
    assert!(scratch.at("d/sub/old").exists());
}

#[test]
fn a_run_that_is_cancelled_among_deletions_stops() {
    let scratch = Scratch::new();
    Tree::at(&scratch).dir("s");
    wide(scratch.at("d/old"), 500);
    let cancel = Cancel::new();
    let copy = mirror().cancelled_by(cancel.clone());
    let (summary, failures) = mirrored(scratch.path(), copy, is_removed, || cancel.cancel());
    assert!(summary.cancelled && failures.is_empty(), "{failures:?}");
    let left = fs::read_dir(scratch.at("d/old")).unwrap().count();
    assert_eq!(left as u64 + summary.deleted, 500);
    assert!(left > 400, "{left}");
}

#[test]
fn a_removed_source_directory_deletes_nothing() {
    let scratch = Scratch::with("s/a= s/sub/b= d/sub/old= d/sub/older=");
    let remove = || fs::remove_dir_all(scratch.at("s/sub")).unwrap();
    let (summary, failures) = mirrored(scratch.path(), mirror(), is_copied, remove);
    assert!(summary.failures > 0 && summary.deleted == 0, "{failures:?}");
    for name in ["old", "older"] {
        assert!(scratch.at("d/sub").join(name).exists(), "{name}");
    }
}

#[test]
fn a_dest_that_becomes_a_link_leads_nowhere() {
    let scratch = Scratch::new();
    or_skip!(can_exchange(&scratch));
    let at = |name: &str| scratch.at(name);
    scratch.plant(
        "s/sub/a= d/sub/old/deep/x= outside/precious= outside/old/deep/precious= link->outside",
    );
    let swap = || exchange(at("d/sub"), at("link")).unwrap();
    let (summary, failures) = mirrored(scratch.path(), mirror(), is_removed, swap);
    assert!(at("outside/precious").exists() && at("outside/old/deep/precious").exists());
    // The directory that was entered is now at the other name.
    assert!(
        !at("link/old").exists() && at("link/a").exists(),
        "{summary:?} {failures:?}"
    );
}

#[test]
fn the_names_in_a_mirror_are_not_followed_while_they_are_deleted() {
    let scratch = Scratch::new();
    or_skip!(can_exchange(&scratch));
    let at = |name: &str| scratch.at(name);
    scratch.plant("s/ d/old/first= d/old/sub/x= outside/x=precious link->outside");
    let swap = || exchange(at("d/old/sub"), at("link")).unwrap();
    mirrored(scratch.path(), mirror(), is_removed, swap);
    assert_eq!(fs::read(at("outside/x")).unwrap(), b"precious");
}

#[test]
fn an_entry_that_another_process_removes_is_no_failure() {
    let scratch = Scratch::new();
    let at = |name: &str| scratch.at(name);
    scratch.plant("s/ d/a= d/b= d/c=");
    let remove = || {
        ["a", "b", "c"]
            .iter()
            .for_each(|name| drop(fs::remove_file(at("d").join(name))));
    };
    let (summary, failures) = mirrored(scratch.path(), mirror(), is_removed, remove);
    assert!(failures.is_empty() && summary.deleted == 1, "{failures:?}");
}

#[test]
fn a_mirror_on_a_filesystem_that_skips_entries_has_no_more_names_than_its_source() {
    let mount = served!(skipping_lists: true);
    let source = Scratch::new();
    Tree::at(source.path()).plant("a=");
    let dest = mount.stored_at("d");
    fs::create_dir(&dest).unwrap();
    for number in 0..3_000 {
        fs::write(dest.join(format!("old-{number}")), "").unwrap();
    }
    let operands = [source.path().to_path_buf()];
    let summary = mirror().run(operands, &exactly(mount.at("d")), &Person::default());
    assert_eq!(summary.deleted, 3_000);
    assert_eq!(fs::read_dir(&dest).unwrap().count(), 1);
}

#[test]
fn a_mirror_has_no_backups_and_follows_no_links() {
    let scratch = Scratch::with("s/ d/old=");
    let with_backups = mirror().with(|copy| copy.rules.backup = Some(Backup::Simple));
    let with_links = mirror().with(|copy| copy.rules.follow_links_to_directories = true);
    let following = mirror().with(|copy| copy.dereference = Dereference::Always);
    for copy in [with_backups, with_links, following] {
        let dest = scratch.at("d");
        let told = copy_with(copy, [scratch.at("s")], &exactly(&dest));
        assert_eq!(
            told.failures,
            [Failure::refused(Refusal::CannotMirror, &dest)]
        );
        assert!(dest.join("old").exists());
    }
}
