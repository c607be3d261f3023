//! Modes, owners and ACLs on filesystems that refuse them or only pretend to set them.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use testkit::{
    or_skip,
    probe::{Errno, FuseMount, Habits, has_program},
    run::{Run, Status},
    skip,
    snapshot::Attributes,
    tree::{Scratch, Tree},
};

use crate::support::{CPZ, NEWEST_CP, complaint, succeeds};

const REFUSALS: [Errno; 4] = [Errno::ACCESS, Errno::IO, Errno::NOTSUP, Errno::NOSYS];

/// The ACL `u::rw-,u:1:r--,g::---,m::r--,o::---`.
const ACL: [u8; 44] = [
    2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0, 1, 0, 0, 0, 4, 0, 0, 0, 255, 255, 255,
    255, 16, 0, 4, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255,
];

fn mount(habits: Habits) -> Result<FuseMount, testkit::probe::Skip> {
    FuseMount::with(habits)
}

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn build(tree: &Tree) {
    tree.file("s/f", "new")
        .mode(0o640)
        .file("s/d/g", "new")
        .mode(0o4755)
        .fifo("s/p")
        .mode(0o622)
        .select("s/d")
        .mode(0o2751)
        .select("s")
        .mode(0o755);
}

/// Compares copies into new directories and over existing dests with those of cp.
#[track_caller]
fn compare_modes(place: &FuseMount) {
    let table = NEWEST_CP.table().build(build);
    table.setting(|parity| parity.on(place.path())).rows(
        "cpz (-a|-rp|-r|--preserve=mode) s new
        old/f=old %666 old/d/g=old %600
        cpz (-a|-rp|-r|--preserve=mode) s/. old
        old/
        cpz (-a|-rp|-r|--preserve=mode) --parents s/d/g old",
    );
}

#[test]
#[ignore = "slow"]
fn modes_are_right_if_acls_have_no_meaning() {
    let place = or_skip!(mount(Habits {
        meaningless_xattrs: true,
        ..Habits::default()
    }));
    compare_modes(&place);
}

#[test]
#[ignore = "slow"]
fn modes_are_right_if_acls_cannot_be_set() {
    for errno in REFUSALS {
        let place = or_skip!(mount(Habits {
            set_acl: Some(errno),
            ..Habits::default()
        }));
        compare_modes(&place);
    }
}

#[test]
#[ignore = "slow"]
fn modes_are_right_if_acls_cannot_be_read() {
    for errno in [Errno::IO, Errno::ACCESS] {
        let place = or_skip!(mount(Habits {
            get_system_xattr: Some(errno),
            ..Habits::default()
        }));
        compare_modes(&place);
    }
}

#[test]
#[ignore = "slow"]
fn an_acl_that_cannot_be_set_is_a_failure_and_grants_nothing_else() {
    let source = Scratch::new();
    let tree = Tree::at(source.path());
    tree.file("f", "x").xattr("system.posix_acl_access", ACL);
    for errno in [Errno::ACCESS, Errno::IO, Errno::NOTSUP] {
        let place = or_skip!(mount(Habits {
            set_acl: Some(errno),
            ..Habits::default()
        }));
        let dest = place.path().join("f");
        let outcome = Run::new(CPZ)
            .args(["-p", "f"])
            .arg(&dest)
            .current_dir(&source)
            .output();
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        let said = complaint(&outcome);
        assert!(
            said.starts_with("cpz: preserving permissions for "),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
        // In the mode of the source, the bits for the group are the mask of the ACL.
        assert_eq!(mode(dest), 0o600);
    }
}

#[test]
#[ignore = "slow"]
fn an_inherited_acl_that_cannot_be_removed_grants_nothing() {
    let source = Scratch::new();
    Tree::at(source.path()).file("f", "x").mode(0o640);
    let place = or_skip!(mount(Habits {
        set_acl: Some(Errno::ACCESS),
        ..Habits::default()
    }));
    let stored = Tree::at(place.stored());
    stored.dir("d").xattr("system.posix_acl_default", ACL);
    let outcome = Run::new(CPZ)
        .args(["-p", "f"])
        .arg(place.path().join("d"))
        .current_dir(&source)
        .output();
    if mode(place.stored().join("d/f")) == 0o640 {
        skip!("the server gives no default ACLs to new files");
    }
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    assert_eq!(mode(place.stored().join("d/f")), 0o600);
}

/// Returns an ACL of NFSv4 with an entry for the owner and an entry for `name`.
fn nfs4_acl(name: &str) -> Vec<u8> {
    let mut acl = 2_u32.to_be_bytes().to_vec();
    for name in ["OWNER@", name] {
        let length = name.len() as u32;
        acl.extend([0, 0, 0x0012_0089, length].map(u32::to_be_bytes).concat());
        acl.extend(name.as_bytes());
        acl.resize(acl.len().next_multiple_of(4), 0);
    }
    acl
}

#[test]
#[ignore = "slow"]
fn nfs4_acls_are_copied_or_their_loss_is_a_failure() {
    let place = or_skip!(mount(Habits {
        meaningless_xattrs: true,
        ..Habits::default()
    }));
    let parity = NEWEST_CP.parity().on(place.path());
    let local = Scratch::new();
    let local = local.path().display().to_string();
    for (who, is_of_mode) in [("bob@example.org", false), ("EVERYONE@", true)] {
        let build = |tree: &Tree| {
            tree.file("f", "x")
                .xattr("system.nfs4_acl", nfs4_acl(who))
                .mode(0o644);
        };
        for option in ["-a", "-p"] {
            parity.clone().args([option, "f", "copy"]).check(build);
            let outcome = parity.clone().args([option, "f", &local]).check(build);
            if let Some(outcome) = outcome {
                let status = if is_of_mode { 0 } else { 1 };
                assert_eq!(outcome.status, Status::Exit(status), "{outcome}");
            }
        }
        parity.clone().args(["-r", "f", "copy"]).check(build);
    }
}

#[test]
#[ignore = "slow"]
fn the_rules_of_the_system_about_attributes_are_obeyed() {
    if !has_program("unshare") {
        skip!("there is no unshare");
    }
    let conf = Scratch::new();
    let path = conf.path().join("conf");
    let lines = "user.one skip\nuser.one permissions\nuser.t* skip # both\nuser.[a-c]? skip\n";
    fs::write(&path, lines).unwrap();
    let mounted = format!(
        "exec unshare -m sh -c 'mount --bind {} /etc/xattr.conf && exec \"$@\"' sh \"$@\"",
        path.display()
    );
    let build = |tree: &Tree| {
        let tree = tree.file("f", "x");
        for name in ["one", "two", "three", "b1", "d1", "Beagle.x"] {
            tree.xattr(format!("user.{name}"), "1");
        }
    };
    for option in ["-a", "-p", "--preserve=xattr", "--preserve=all"] {
        let parity = NEWEST_CP.parity().in_script(&mounted);
        parity.args([option, "f", "copy"]).check(build);
    }
}

#[test]
#[ignore = "slow"]
fn an_owner_that_cannot_be_set_is_no_failure_if_it_is_right() {
    let local = Scratch::new();
    build(&Tree::at(local.path()));
    for errno in [Errno::PERM, Errno::NOSYS, Errno::ACCESS, Errno::IO] {
        let place = or_skip!(mount(Habits {
            chown: Some(errno),
            ..Habits::default()
        }));
        let source = local.path().join("s").display().to_string();
        NEWEST_CP
            .parity()
            .on(place.path())
            .args(["-p", "s/f", "f"])
            .check(build);
        succeeds(place.path(), &["-a", &source, "new"]);
        assert_eq!(mode(place.path().join("new/f")), 0o640);
        assert_eq!(mode(place.path().join("new/d")), 0o2751);
        // Another owner is still a failure.
        Tree::at(local.path()).file("other", "x").owner(7, 7);
        let other = local.path().join("other");
        let outcome = Run::new(CPZ)
            .arg("-p")
            .arg(other)
            .arg(place.path())
            .output();
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        assert!(complaint(&outcome).contains("failed to preserve ownership for"));
        Tree::at(local.path()).file("other", "x").owner(0, 0);
    }
}

#[test]
#[ignore = "slow"]
fn modes_of_the_umask_are_right_whatever_becomes_of_acls() {
    for (meaningless_xattrs, set_acl) in [(true, None), (false, Some(Errno::ACCESS))] {
        let place = or_skip!(mount(Habits {
            meaningless_xattrs,
            set_acl,
            ..Habits::default()
        }));
        build(&Tree::at(place.path()));
        succeeds(place.path(), &["--no-preserve=mode", "s", "new"]);
        let new = place.path().join("new");
        for (name, expected) in [("f", 0o644), ("d/g", 0o644), ("d", 0o755), ("p", 0o644)] {
            assert_eq!(mode(new.join(name)), expected, "{name}");
        }
    }
}

#[test]
#[ignore = "slow"]
fn directories_have_their_last_mode_even_if_no_mode_can_be_set() {
    let source = Scratch::new();
    let tree = Tree::at(source.path());
    tree.file("s/ro/f", "x").select("s/ro").mode(0o555);
    let place = or_skip!(mount(Habits {
        chmod: Some(Errno::PERM),
        ..Habits::default()
    }));
    // Root needs no permission to fill the directory. Unlike cpz, cp leaves it empty.
    let dest = place.path().join("t").display().to_string();
    succeeds(source.path(), &["s", &dest]);
    let kept = Attributes::CONTENT;
    testkit::snapshot::assert_same_tree(source.path().join("s"), place.path().join("t"), kept);
}

#[test]
#[ignore = "slow"]
fn attributes_are_reported_if_the_server_always_interrupts_the_call() {
    let local = Scratch::new();
    build(&Tree::at(local.path()));
    let interrupted = Some(Errno::INTR);
    for (chmod, utimens, what) in [
        (interrupted, None, "permissions"),
        (None, interrupted, "times"),
    ] {
        let place = or_skip!(mount(Habits {
            chmod,
            utimens,
            ..Habits::default()
        }));
        let run = Run::new(CPZ).args(["-a", "s/f"]).arg(place.path());
        let outcome = run.current_dir(&local).output();
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        let said = complaint(&outcome);
        let begin = format!("cpz: preserving {what} for ");
        assert!(said.starts_with(&begin), "{said}");
        assert!(said.ends_with(": Interrupted system call\n"), "{said}");
    }
}
