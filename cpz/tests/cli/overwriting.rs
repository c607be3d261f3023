//! Entries of each type over dests of each type.

use testkit::{
    or_skip,
    probe::{Errno, FuseMount, Habits},
    snapshot::{Attributes, assert_same_tree},
    tree::{Scratch, Tree},
};

use crate::support::{CP, cpz};

const FILE: &str = "S/dest=content";
const DIR: &str = "S/dest/f=content S/dest/l->f";
const SYMLINK_OR_FIFO: &str = "(S/dest->target S/target=target|S/dest<fifo> %600)";
const DIRS: &str = "D/dest/kept=old|D/dest/dest/kept=old D/dest/f=old";
const OTHERS: &str = "D/dest=old|D/dest=~100000 %600|D/dest=old %444|D/other='older and longer' D/dest->other|\
                      D/dest->nowhere|D/dest<socket>";
const LINK_TO_DIR: &str = "D/other/kept=old D/dest->other";
const FIFO: &str = "D/dest<fifo>";

/// Compares copies over other types: plain, with -f, of a tree, and as an ordinary user.
#[track_caller]
fn copies_over(setting: &str, source: &str, dests: &[&str]) {
    let trees = format!("{source} ({})", dests.join("|"));
    let in_place = |source, dest| trees.replace("S/", source).replace("D/", dest);
    CP.rows(&format!(
        "{}
        {setting} cpz (|-T|-fv) s/dest dest
        user {setting} cpz -f s/dest dest
        {}
        {setting} cpz -T s d
        user {setting} cpz -fT s d",
        in_place("s/", ""),
        in_place("s/", "d/"),
    ));
}

#[test]
fn a_file_goes_over_others() {
    copies_over("", FILE, &[OTHERS]);
    // Older releases do not name the source in this refusal.
    copies_over("newest", FILE, &[DIRS, LINK_TO_DIR]);
}

#[test]
fn a_directory_goes_over_others() {
    copies_over("", DIR, &[OTHERS, DIRS, LINK_TO_DIR, FIFO]);
}

#[test]
fn a_symlink_and_a_fifo_go_over_others() {
    copies_over("", SYMLINK_OR_FIFO, &[OTHERS, LINK_TO_DIR, FIFO]);
    copies_over("newest", SYMLINK_OR_FIFO, &[DIRS]);
}

#[test]
fn dests_that_may_not_be_written_to() {
    CP.rows(
        r"
        # A second name of the dest is written through.
        f=new old=old twin==old
        cpz f old
        # Force makes another file of a dest that may not be written to.
        f=new %640 old=old %400 twin==old
        user cpz -fv f old
        # A directory is refused as a dest before the source is opened.
        f=content %0 into/f/
        newest user cpz -v f into
        # A file is refused as a dest before the directory is listed.
        into/d=old d/ %0
        user cpz -v d into
        # Force does not help in a directory without w.
        f=new d/old=old %400 d %555
        user cpz -f f d/old
        # Force does not follow a symlink to a file that may not be written to.
        f=new old=old %400 l->old
        user cpz -f f l
        # A file is written to in a directory without w, and no other type is replaced there.
        f=new d/f=older d %555
        user cpz f d
        l->x fifo<fifo> d/l->y d/fifo<fifo> d %555
        user cpz l fifo d",
    );
}

#[test]
fn a_file_for_which_no_worker_waits_wakes_none() {
    const FILES: usize = 200;
    let scratch = Scratch::in_memory();
    for number in 0..FILES {
        Tree::at(&scratch).plant(format!("s/{number}=new d/{number}=old"));
    }
    let args = ["-rT", "--threads=2", "s", "d"];
    let calls = cpz(&scratch, args).calls();
    let calls = or_skip!(calls);
    let wakes = calls.iter().filter(|call| call.name == "futex").count();
    assert!(wakes < FILES / 2, "{wakes} calls for {FILES} files");
}

#[test]
fn rights_that_an_older_copy_has_already_are_not_set_again() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    for (mode, sets) in [(0o640, false), (0o600, true), (0o644, true)] {
        tree.plant("s=new %640 d=old").mode(mode);
        let run = cpz(&scratch, "-a s d");
        let calls = or_skip!(run.calls());
        let is_about_rights = |name: &str| ["fchmod", "fchown", "fremovexattr"].contains(&name);
        let set = calls.iter().filter(|call| is_about_rights(&call.name));
        let set: Vec<_> = set.map(|call| &call.name).collect();
        assert_eq!(!set.is_empty(), sets, "{mode:o}: {set:?}");
        let at = |name: &str| scratch.at(name);
        assert_same_tree(at("s"), at("d"), Attributes::ALL - Attributes::ATIME);
    }
}

#[test]
fn rights_are_not_set_again_if_a_server_shows_each_mode_as_an_acl() {
    let mount = or_skip!(FuseMount::with(Habits {
        mode_as_acl: true,
        chmod: Some(Errno::PERM),
        ..Habits::default()
    }));
    Tree::at(mount.stored()).plant("s=new %640 d=old %640");
    cpz(mount.path(), "-a s d").output().assert_success();
    let attributes = Attributes::ALL - Attributes::ATIME;
    let at = |name: &str| mount.stored().join(name);
    assert_same_tree(at("s"), at("d"), attributes);
}
