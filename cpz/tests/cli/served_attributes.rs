//! Modes, owners and ACLs on filesystems that refuse them or only pretend to set them.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use testkit::{
    habits, needs, or_skip,
    probe::{Errno, FuseMount, Habits},
    run::Run,
    served, skip,
    snapshot::Attributes,
    tree::{Scratch, Tree},
};

use crate::support::{CPZ, NEWEST_CP, complaint, succeeds};

/// The ACL `u::rw-,u:1:r--,g::---,m::r--,o::---`.
const ACL: [u8; 44] = [
    2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0, 1, 0, 0, 0, 4, 0, 0, 0, 255, 255, 255,
    255, 16, 0, 4, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255,
];

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn build(tree: &Tree) {
    tree.plant("s/f=new %640 s/d/g=new %4755 s/p<fifo> %622 s/d %2751 s %755");
}

/// Compares copies into new directories and over existing dests with those of cp.
#[track_caller]
fn compare_modes(habits: Habits) {
    let place = or_skip!(FuseMount::with(habits));
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
fn modes_are_right_whatever_becomes_of_acls() {
    compare_modes(habits!(meaningless_xattrs: true));
    for errno in [Errno::ACCESS, Errno::IO, Errno::NOTSUP, Errno::NOSYS] {
        compare_modes(habits!(set_acl: Some(errno)));
    }
    for errno in [Errno::IO, Errno::ACCESS] {
        compare_modes(habits!(get_system_xattr: Some(errno)));
    }
}

#[test]
#[ignore = "slow"]
fn an_acl_that_cannot_be_set_is_a_failure_and_grants_nothing_else() {
    let source = Scratch::new();
    let tree = Tree::at(source.path());
    tree.plant("f=x").xattr("system.posix_acl_access", ACL);
    for errno in [Errno::ACCESS, Errno::IO, Errno::NOTSUP] {
        let place = served!(set_acl: Some(errno));
        let dest = place.at("f");
        let outcome = Run::new(CPZ)
            .words("-p f")
            .arg(&dest)
            .current_dir(&source)
            .fails();
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
    Tree::at(source.path()).plant("f=x %640");
    let place = served!(set_acl: Some(Errno::ACCESS));
    let stored = Tree::at(place.stored());
    stored.dir("d").xattr("system.posix_acl_default", ACL);
    let outcome = Run::new(CPZ)
        .words("-p f")
        .arg(place.at("d"))
        .current_dir(&source)
        .output();
    if mode(place.stored_at("d/f")) == 0o640 {
        skip!("the server gives no default ACLs to new files");
    }
    outcome.assert_status(1);
    assert_eq!(mode(place.stored_at("d/f")), 0o600);
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
    let place = served!(meaningless_xattrs: true);
    let parity = NEWEST_CP.parity().on(place.path());
    let local = Scratch::new();
    let local = local.path().display().to_string();
    for (who, is_of_mode) in [("bob@example.org", false), ("EVERYONE@", true)] {
        let build = |tree: &Tree| {
            tree.plant("f=x")
                .xattr("system.nfs4_acl", nfs4_acl(who))
                .mode(0o644);
        };
        for option in ["-a", "-p"] {
            parity.clone().args([option, "f", "copy"]).check(build);
            let outcome = parity.clone().args([option, "f", &local]).check(build);
            if let Some(outcome) = outcome {
                let status = if is_of_mode { 0 } else { 1 };
                outcome.assert_status(status);
            }
        }
        parity.clone().words("-r f copy").check(build);
    }
}

#[test]
#[ignore = "slow"]
fn the_rules_of_the_system_about_attributes_are_obeyed() {
    needs!("unshare");
    let conf = Scratch::new();
    let path = conf.at("conf");
    let lines = "user.one skip\nuser.one permissions\nuser.t* skip # both\nuser.[a-c]? skip\n";
    fs::write(&path, lines).unwrap();
    let mounted = format!(
        "exec unshare -m sh -c 'mount --bind {} /etc/xattr.conf && exec \"$@\"' sh \"$@\"",
        path.display()
    );
    let build = |tree: &Tree| {
        let tree = tree.plant("f=x");
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
        let place = served!(chown: Some(errno));
        let source = local.at("s").display().to_string();
        NEWEST_CP
            .parity()
            .on(place.path())
            .words("-p s/f f")
            .check(build);
        succeeds(place.path(), ["-a", &source, "new"]);
        assert_eq!(mode(place.at("new/f")), 0o640);
        assert_eq!(mode(place.at("new/d")), 0o2751);
        // Another owner is still a failure.
        Tree::at(local.path()).plant("other=x :7:7");
        let other = local.at("other");
        let outcome = Run::new(CPZ).arg("-p").arg(other).arg(place.path()).fails();
        assert!(complaint(&outcome).contains("failed to preserve ownership for"));
        Tree::at(local.path()).plant("other=x :0:0");
    }
}

#[test]
#[ignore = "slow"]
fn special_files_whose_mode_cannot_be_set_keep_their_hard_links() {
    for errno in [Errno::PERM, Errno::ACCESS] {
        let table = NEWEST_CP.table().served("m", habits!(chmod: Some(errno)));
        table.rows(
            "s/p<fifo> s/q==s/p m/
            cpz -a s/p s/q m
            s/p<fifo> s/q==s/p m/p=old
            cpz (-a|-ab) s/p s/q m",
        );
    }
}

/// Each call that changes an attribute is a request, and cp makes it only for the second file.
#[test]
#[ignore = "slow"]
fn an_owner_that_is_right_is_not_set_again_on_a_server() {
    let place = served!();
    let local = Scratch::with("s/own=x s/other=x :7:8");
    let run = Run::new(CPZ).words("-aT s").arg(place.at("new"));
    let calls = or_skip!(run.current_dir(&local).calls());
    let set: Vec<_> = calls.iter().filter(|call| call.name == "fchown").collect();
    assert_eq!(set.len(), 1, "{set:?}");
    let kept = Attributes::ALL - Attributes::ATIME;
    testkit::snapshot::assert_same_tree(local.at("s"), place.at("new"), kept);
}

#[test]
#[ignore = "slow"]
fn modes_of_the_umask_are_right_whatever_becomes_of_acls() {
    for (meaningless_xattrs, set_acl) in [(true, None), (false, Some(Errno::ACCESS))] {
        let place = served!(meaningless_xattrs, set_acl);
        build(&Tree::at(place.path()));
        succeeds(place.path(), "--no-preserve=mode s new");
        let new = place.at("new");
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
    tree.plant("s/ro/f=x s/ro %555");
    let place = served!(chmod: Some(Errno::PERM));
    // Root needs no permission to fill the directory. Unlike cpz, cp leaves it empty.
    let dest = place.at("t").display().to_string();
    succeeds(source.path(), ["s", &dest]);
    let kept = Attributes::CONTENT;
    testkit::snapshot::assert_same_tree(source.at("s"), place.at("t"), kept);
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
        let place = served!(chmod, utimens);
        let run = Run::new(CPZ).words("-a s/f").arg(place.path());
        let outcome = run.current_dir(&local).fails();
        let said = complaint(&outcome);
        let begin = format!("cpz: preserving {what} for ");
        assert!(said.starts_with(&begin), "{said}");
        assert!(said.ends_with(": Interrupted system call\n"), "{said}");
    }
}
