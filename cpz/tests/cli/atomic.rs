//! `--atomic`: an existing file is replaced when its copy is complete, and not before.

use std::{
    fs::{self, File},
    io::Read,
    os::unix::fs::MetadataExt,
    path::Path,
};

use testkit::{
    habits, or_skip,
    probe::{Errno, Fs, LoopMount, Numbering, is_root, supports_acls},
    run::{Run, Signal, Status},
    served,
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, noise},
};

use crate::support::{CP, CPZ, complaint, succeeds};
use crate::{
    interrupts::{BEFORE, interrupted, start_in_the_middle},
    support::cpz,
};

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn read(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap()
}

#[test]
fn readers_see_the_old_file_until_the_new_one_is_complete() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    Tree::at(dir).plant("fifo<fifo> old=old");
    let mut opened = File::open(dir.join("old")).unwrap();
    let run = cpz(dir, "--atomic -L --copy-contents fifo old");
    let (live, fifo) = start_in_the_middle(&run, dir);
    assert_eq!(read(dir, "old"), "old");
    assert_eq!(names(dir).len(), 3, "the new file lies elsewhere");
    drop(fifo);
    let outcome = live.finish();
    outcome.assert_status(0);
    assert_eq!(fs::metadata(dir.join("old")).unwrap().len(), BEFORE as u64);
    assert_eq!(names(dir), ["fifo", "old"]);
    let mut seen = String::new();
    opened.read_to_string(&mut seen).unwrap();
    assert_eq!(seen, "old", "an open file changes");
}

#[test]
fn a_signal_leaves_the_old_file() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    Tree::at(dir).plant("fifo<fifo> old=old");
    let args = "--atomic -L --copy-contents fifo old";
    let outcome = interrupted(dir, args, &[Signal::TERM]);
    assert_eq!(outcome.status, Status::Signal(15));
    assert_eq!(
        complaint(&outcome),
        "cpz: interrupted: 0 entries copied, 1 incomplete file removed\n"
    );
    assert_eq!(names(dir), ["fifo", "old"]);
    assert_eq!(read(dir, "old"), "old");
}

/// cp removes these dests first.
#[test]
fn a_failure_leaves_dests_with_several_names_and_links_too() {
    for way in [
        &["-aT"][..],
        &["-aT", "--delete"],
        &["-aT", "--resume", "--delete"],
    ] {
        let full = or_skip!(LoopMount::new(Fs::Tmpfs, 1));
        let scratch = Scratch::new();
        Tree::at(&scratch)
            .file("s/linked", noise(3 << 20))
            .file("s/link", noise(3 << 20))
            .symlink("full", full.path());
        Tree::at(full.path()).plant("d/linked=old other==d/linked d/link->../other");
        let outcome = Run::new(CPZ)
            .arg("--atomic")
            .args(way)
            .words("s full/d")
            .current_dir(&scratch)
            .output();
        assert_eq!(outcome.status, Status::Exit(1), "{way:?}: {outcome}");
        let dir = full.at("d");
        assert_eq!(names(&dir), ["link", "linked"], "{way:?}");
        assert_eq!(read(&dir, "linked"), "old", "{way:?}");
        assert!(dir.join("link").is_symlink(), "{way:?}");
        assert_eq!(fs::metadata(dir.join("linked")).unwrap().nlink(), 2);
    }
}

/// The new file is a new one, and takes over nothing of the old one.
#[test]
#[ignore = "slow"]
fn a_file_is_what_a_removal_before_the_copy_would_have_left() {
    let build = |tree: &Tree| {
        tree.plant(
            "s/f=new %664 s/set-id=new %4755 s/empty= %640 s/l->nowhere s/fifo<fifo> s/one=1
            s/two==s/one d/one=old d/two=old d/empty=old d/l=old d/fifo=old d/f=old %602
            d/set-id=old %6777",
        );
        if is_root() {
            tree.owner(12, 34);
        }
    };
    let acls = supports_acls(Scratch::new().path());
    for options in [
        &["-r"][..],
        &["-a"],
        &["-rp"],
        &["-r", "--preserve=mode"],
        &["-a", "--fsync"],
    ] {
        for inherits in [false, true] {
            let [atomic, removing] = ["--atomic", "--remove-destination"].map(|way| {
                let scratch = Scratch::new();
                let tree = Tree::at(&scratch);
                build(&tree);
                if inherits && acls {
                    tree.plant("d acl:d:u:5:rw");
                }
                let args = [options, &[way, "-T", "s", "d"]].concat();
                succeeds(&scratch, &args);
                let kept = Attributes::ALL - Attributes::ATIME - Attributes::MTIME;
                Snapshot::of(scratch.at("d"), kept)
            });
            let difference = removing.diff(&atomic);
            assert!(
                difference.is_empty(),
                "{options:?} {inherits}\n{difference}"
            );
        }
    }
}

#[test]
fn a_dest_stays_if_its_filesystem_renames_nothing() {
    for removal in [None, Some(Errno::PERM)] {
        let place = served!(rename: Some(Errno::XDEV),
            unlink_readonly: removal);
        let scratch = Scratch::new();
        let tree = Tree::at(&scratch);
        for (name, content) in [("f", b"new".to_vec()), ("large", noise(2 << 20))] {
            tree.file(name, content).mode(0o444);
        }
        for name in ["f", "large"] {
            Tree::at(place.stored()).file(name, "old");
            let dest = place.at(name).display().to_string();
            let run = Run::new(CPZ).args(["--atomic", name, &dest]);
            let outcome = run.current_dir(&scratch).fails();
            let said = complaint(&outcome);
            let reason =
                format!("cpz: cannot create regular file '{dest}': Invalid cross-device link\n");
            assert!(said.ends_with(&reason), "{said}");
            assert_eq!(read(place.stored(), name), "old");
            let hidden: Vec<_> = names(place.stored())
                .into_iter()
                .filter(|name| name.starts_with(".cpz-"))
                .collect();
            // The messages name the file that cannot be removed.
            assert_eq!(hidden.len(), usize::from(removal.is_some()), "{hidden:?}");
            assert_eq!(said.lines().count(), 1 + hidden.len(), "{said}");
            for name in hidden {
                let path = place.at(&name).display().to_string();
                let left = format!("cpz: cannot remove '{path}': Operation not permitted\n");
                assert!(said.starts_with(&left), "{said}");
                fs::remove_file(place.stored_at(name)).unwrap();
            }
        }
    }
}

#[test]
fn a_file_is_replaced_where_open_files_are_not_renamed_and_no_mode_is_set() {
    for numbering in [Numbering::True, Numbering::Lasting, Numbering::Fresh] {
        let place = served!(numbering,
            busy: Some(Errno::TXTBSY),
            chmod: Some(Errno::PERM));
        let scratch = Scratch::new();
        Tree::at(&scratch)
            .plant("s/a=new s/b==s/a")
            .file("s/large", noise(2 << 20));
        let tree = Tree::at(place.stored());
        tree.plant("a=old b=old large=old");
        let dest = place.path().display().to_string();
        for options in [&["-r"][..], &["-r", "--preserve=links,timestamps"]] {
            // Another thread would keep a copy of the descriptor.
            let args = [options, &["--threads=1", "--atomic", "-T", "s", &dest]].concat();
            succeeds(&scratch, &args);
            let source = scratch.at("s");
            let kept = Attributes::CONTENT - Attributes::LINKS;
            testkit::snapshot::assert_same_tree(&source, place.stored(), kept);
        }
    }
}

#[test]
fn nothing_is_left_in_a_directory_to_which_names_can_only_be_added() {
    let place = or_skip!(LoopMount::new(Fs::Ext4, 16));
    let scratch = Scratch::with("new=new");
    Tree::at(place.path()).plant("d/old=old");
    let chattr = |change: &str| {
        let run = Run::new("chattr").arg(change).arg(place.at("d"));
        run.output().assert_success();
    };
    chattr("+a");
    let dest = place.at("d/old").display().to_string();
    let run = Run::new(CPZ).args(["--atomic", "new", &dest]);
    let outcome = run.current_dir(&scratch).output();
    let left = names(&place.at("d"));
    chattr("-a");
    outcome.assert_status(1);
    let reason = format!("cpz: cannot create regular file '{dest}': Operation not permitted\n");
    assert_eq!(complaint(&outcome), reason);
    assert_eq!(left, ["old"]);
    assert_eq!(read(place.path(), "d/old"), "old");
}

/// Otherwise a power cut could lose the old content and the new one.
#[test]
fn content_is_on_the_disk_before_it_replaces_a_file() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    for number in 0..9 {
        let name = format!("s/{number}");
        tree.file(&name, "new")
            .hardlink(&name, format!("s/{number}-linked"))
            .plant(format!(
                "d/{number}=old d/{number}-linked=old s/{number}-alone=new d/{number}-alone=old"
            ));
    }
    let run = Run::new(CPZ).words("--threads=1 -aT --atomic --fsync s d");
    let calls = or_skip!(run.current_dir(scratch.path()).calls());
    let mut unsynced = 0;
    let mut renamed = 0;
    for call in &calls {
        match &*call.name {
            // A hidden name is created, its content synced, and only then renamed.
            "openat" if call.shown.contains("O_CREAT") && !call.shown.contains("= -1") => {
                unsynced += 1;
            }
            "fsync" if unsynced > 0 => unsynced -= 1,
            "renameat" | "renameat2" | "rename" => {
                assert_eq!(unsynced, 0, "{call:?}");
                renamed += 1;
            }
            _ => {}
        }
    }
    assert_eq!(renamed, 27);
}

#[test]
fn names_of_the_source_and_ways_to_clear_a_dest() {
    CP.rows(
        r#"
        # Other names and targets of links keep the old content.
        s/f=new %600 @5 s/l=new s/empty= s/fresh=new s/special=new d/f=old %640 other==d/f
        target=old d/l->../target d/special<fifo> d/empty=old
        cpz --atomic -T s d
        = -d/f d/f=new %600 -d/l d/l=new -d/special d/special=new d/empty= d/fresh=new
        sh:'"$@"; stat -c %Y d/f' cpz --atomic -aT s d
        > 5
        = -d/f d/f=new %600 -d/l d/l=new -d/special d/special=new d/empty= d/fresh=new
        # A failure leaves the old file.
        s/big=~3M full/ kept=old
        root sh:'mount -t tmpfs -o size=1M none full; cp kept full/big; "$@"; s=$?; ls -A full; cat full/big; umount full; exit $s' cpz --atomic -T s full
        ! error writing 'full/big': No space left on device
        > big
        > old
        # A file that may not be written to is replaced only by force.
        new=new d/own=old %444
        user cpz --atomic new d/own
        ! cannot create regular file 'd/own': Permission denied
        user cpz --atomic -f new d/own
        = d/own=new %644
        new=new d/other=old %600 :1:1
        user cpz --atomic new d/other
        ! cannot create regular file 'd/other': Permission denied
        user cpz --atomic -f new d/other
        = -d/other d/other=new
        # A dry run foresees a directory that may not be changed.
        s/f=new d/f=old %666 d %755 :1:1
        user cpz (--atomic|--atomic --delete) -rT s d
        ! cannot create regular file 'd/f': Permission denied
        user cpz (--atomic|--atomic --delete) --dry-run=total -rT s d
        ! cannot create regular file 'd/f': Permission denied
        > would ...
        # As with --remove-destination, another name of the source becomes a copy.
        f=content g==f l->f
        cpz --atomic f g
        = -g g=content
        cpz --atomic f l
        = -l l=content
        cpz --atomic f ./f
        ! 'f' and './f' are the same file
        # Other ways to clear a dest are refused.
        cpz --atomic (-b|--remove-destination|-l|-s|--attributes-only) a b
        ! --atomic is mutually exclusive with ...
        ! try"#,
    );
}

#[test]
fn a_file_stays_if_its_server_stores_no_other_content() {
    CP.table()
        .served("m", habits!(flush: Some(Errno::DQUOT)))
        .rows(
            "new=new m/f=old
        cpz --atomic new m/f
        ! ...m/f...",
        );
}
