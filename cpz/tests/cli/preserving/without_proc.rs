//! Attributes of entries that are copied unopened, without /proc.

use super::*;
use testkit::{needs, probe::has_calls_of};

/// Runs cpz without /proc, and cp with it, because cp depends on it.
#[track_caller]
fn without_proc(flags: &[&str], build: impl Fn(&Tree)) {
    compare_without_proc(flags, PLAINLY, build);
}

/// Runs cpz without /proc, and cp by `script` with it.
#[track_caller]
fn compare_without_proc(flags: &[&str], script: &str, build: impl Fn(&Tree)) {
    needs!(root, "unshare");
    const NOWHERE: &str = r#"exec unshare -m sh -c '
        mount -t tmpfs none /proc || exit 9
        exec "$@"' sh "$@""#;
    CP.parity()
        .in_scripts(NOWHERE, script)
        .args(flags)
        .words("s into")
        .check(build);
}

#[test]
fn keeps_all_without_proc() {
    let build = |tree: &Tree| {
        some_of_all_that_opens(tree);
        tree.plant("s/d/attributed/ xattr:user.one=1 acl:u:1234:rwx,g:77:r into/");
    };
    without_proc(&["-a"], build);
    without_proc(&["-p"], build);
    without_proc(&["--preserve=mode"], build);
    needs!("setfacl");
    compare_without_proc(&["-a"], INHERITING_NOTHING, |tree| {
        build(tree);
        tree.plant("into acl:d:u:55:rwx,d:g:56:rwx");
    });
}

#[test]
fn keeps_no_mode_and_knows_the_umask_without_proc() {
    without_proc(&["--no-preserve=mode"], |tree| {
        // Setting a mode without /proc takes fchmodat2.
        if has_calls_of(6, 6) {
            some_of_everything(tree);
        } else {
            some_of_all_that_opens(tree);
        }
        tree.dir("into");
    });
}

#[test]
fn sets_no_attributes_through_a_directory_that_poses_as_proc() {
    needs!(root, "unshare");
    const POSING: &str = r#"exec unshare -m sh -c '
        victim=$PWD/victim
        mount -t tmpfs none /proc && mkdir -p /proc/thread-self/fd || exit 9
        for number in $(seq 3 99); do ln -s "$victim" /proc/thread-self/fd/$number; done
        exec "$@"' sh "$@""#;
    CP.parity()
        .in_scripts(POSING, PLAINLY)
        .words("-a s into")
        .check(plant(
            "s/attributed/ xattr:user.one=1 acl:u:1234:rwx,d:u:77:rwx into/ victim/ %700",
        ));
}
