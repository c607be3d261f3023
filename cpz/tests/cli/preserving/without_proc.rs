//! Attributes of entries that are copied unopened, without /proc.

use super::*;
use testkit::probe::has_calls_of;

/// Compares copies of what `build` makes. cpz runs without /proc, and cp by `script` with it, because cp depends on it.
#[track_caller]
fn without_proc(script: &str, build: impl Fn(&Tree), rows: &str) {
    needs!(root, "unshare");
    const NOWHERE: &str = r#"exec unshare -m sh -c '
        mount -t tmpfs none /proc || exit 99
        exec "$@"' sh "$@""#;
    let table = CP.table().build(build);
    let table = table.setting(|parity| parity.in_scripts(NOWHERE, script));
    table.rows(rows);
}

#[test]
fn keeps_all_without_proc() {
    let build = |tree: &Tree| {
        some_of_all_that_opens(tree);
        tree.plant("s/d/attributed/ xattr:user.one=1 acl:u:1234:rwx,g:77:r into/");
    };
    without_proc(PLAINLY, build, "cpz (-a|-p|--preserve=mode) s into");
    needs!("setfacl");
    let rows = "into acl:d:u:55:rwx,d:g:56:rwx \n cpz -a s into";
    without_proc(INHERITING_NOTHING, build, rows);
}

#[test]
fn keeps_no_mode_and_knows_the_umask_without_proc() {
    // Setting a mode without /proc takes fchmodat2.
    let build = match has_calls_of(6, 6) {
        true => some_of_everything,
        false => some_of_all_that_opens,
    };
    without_proc(PLAINLY, build, "into/ \n cpz --no-preserve=mode s into");
}

#[test]
fn sets_no_attributes_through_a_directory_that_poses_as_proc() {
    needs!(root, "unshare");
    const POSING: &str = r#"exec unshare -m sh -c '
        victim=$PWD/victim
        mount -t tmpfs none /proc && mkdir -p /proc/thread-self/fd || exit 99
        for number in $(seq 3 99); do ln -s "$victim" /proc/thread-self/fd/$number; done
        exec "$@"' sh "$@""#;
    let table = CP.table();
    let table = table.setting(|parity| parity.in_scripts(POSING, PLAINLY));
    table.rows(
        "s/attributed/ xattr:user.one=1 acl:u:1234:rwx,d:u:77:rwx into/ victim/ %700
        cpz -a s into",
    );
}
