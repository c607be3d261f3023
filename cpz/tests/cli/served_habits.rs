//! Filesystems whose servers refuse some operations, or say what is not true. The result is that of GNU cp.

use std::time::Duration;

use testkit::{
    habits, or_skip,
    probe::{Errno, FuseMount},
    run::Run,
    served,
    snapshot::{Attributes, assert_same_tree},
    tree::{Scratch, Tree, noise},
};

use crate::support::{CP, CPZ, NEWEST_CP, succeeds};

const AT: Duration = Duration::from_secs(1_000_000_000);

fn build(tree: &Tree) {
    tree.file("s/d/large", noise((2 << 20) + 3))
        .plant(
            "s/empty= s/a:b=1 s/read-only=2 %444 s/c:d/ s/pipe<fifo> s/link->empty s/twin=3
        s/other-twin==s/twin",
        )
        .sparse("s/holes", 3 << 20, &[(1 << 20, &noise(1 << 16))]);
    for name in ["s/d/large", "s/empty", "s/twin", "s/d", "s"] {
        tree.select(name).mtime(AT);
    }
}

#[test]
#[ignore = "slow"]
fn copies_to_a_server_that_refuses_or_lies_are_those_of_gnu() {
    let rows = [
        habits!(symlink: Some(Errno::PROTO)),
        habits!(mknod: Some(Errno::ROFS)),
        habits!(link: Some(Errno::PERM)),
        habits!(colon: Some(Errno::INVAL)),
        habits!(statfs: Some(Errno::IO)),
        habits!(fsync: Some(Errno::IO)),
        habits!(close_sets_time: true),
        habits!(zero_links: true),
        habits!(zero_blocks: true),
        habits!(block_bytes: Some(1)),
        habits!(block_bytes: Some(1 << 24)),
    ];
    let local = Scratch::new();
    build(&Tree::at(local.path()));
    let source = local.at("s").display().to_string();
    for habits in rows {
        let mount = or_skip!(FuseMount::with(habits));
        let parity = NEWEST_CP.parity().on(mount.path());
        for option in ["-r", "-a", "-ab"] {
            parity.clone().args([option, &source, "d"]).check(|_| {});
        }
        let twice = parity.args(["-auT", &source, "d"]);
        twice.in_script(r#""$@"; "$@""#).check(|_| {});
    }
}

#[test]
#[ignore = "slow"]
fn copies_from_a_server_that_refuses_or_lies_are_those_of_gnu() {
    let rows = [
        habits!(read: Some(Errno::DEADLK)),
        habits!(readdir: Some(Errno::IO)),
        habits!(zero_links: true),
        habits!(zero_blocks: true),
        habits!(block_bytes: Some(3000)),
    ];
    for habits in rows {
        let mount = or_skip!(FuseMount::with(habits));
        let tree = Tree::at(mount.stored());
        build(tree.plant("s/bad/f= s/e/bad/f="));
        let source = mount.at("s").display().to_string();
        // A file that could not be read gets a time that makes the next update copy it.
        let parity = NEWEST_CP.parity().attributes(Attributes::CONTENT);
        parity.args([&source, "d"]).check(|_| {});
    }
}

#[test]
#[ignore = "slow"]
fn files_that_could_not_be_read_are_copied_by_the_next_update() {
    let mount = served!(read: Some(Errno::DEADLK));
    let local = Scratch::new();
    build(&Tree::at(mount.stored()));
    let [served, stored] = [mount.path(), mount.stored()].map(|dir| dir.join("s"));
    let run = Run::new(CPZ).arg("-aT").arg(served).arg("d");
    run.current_dir(&local).fails();
    succeeds(&local, ["-auT", stored.to_str().unwrap(), "d"]);
    let attributes = Attributes::CONTENT | Attributes::MODE | Attributes::MTIME;
    assert_same_tree(stored, local.at("d"), attributes);
}

#[test]
#[ignore = "slow"]
fn a_dest_that_another_machine_has_removed_is_created() {
    let remembers = habits!(client_caches: Duration::from_secs(3600));
    CP.table().served("m", remembers).rows(
        r#"
        s/f=new s/d/large=~2M m/f=old m/d/large=old
        sh:'stat m/f m/d/large >/dev/null; rm $PWD.stored/f $PWD.stored/d/large; "$@"' cpz (|-a|--remove-destination) -T s m
        = m/f=new m/d/large=~2M"#,
    );
}
