//! Attributes of entries that are copied unopened, without /proc.

use super::*;

/// Runs cpz without /proc, and cp with it, because cp depends on it.
#[track_caller]
fn without_proc(flags: &[&str], build: impl Fn(&Tree)) {
    compare_without_proc(flags, PLAINLY, build);
}

/// Runs cpz without /proc, and cp by `script` with it.
#[track_caller]
fn compare_without_proc(flags: &[&str], script: &str, build: impl Fn(&Tree)) {
    if !is_root() || !has_program("unshare") {
        skip!("mounting takes root and unshare");
    }
    const NOWHERE: &str = r#"exec unshare -m sh -c '
        mount -t tmpfs none /proc || exit 9
        exec "$@"' sh "$@""#;
    CP.parity()
        .in_scripts(NOWHERE, script)
        .args(flags)
        .args(["s", "into"])
        .check(build);
}

/// Returns `true` if the kernel has `getxattrat`. Otherwise ACLs of unopened entries need /proc.
fn has_xattrat() -> bool {
    has_calls_of(6, 13)
}

#[test]
fn keeps_all_without_proc() {
    let build = |tree: &Tree| {
        if has_xattrat() {
            some_of_everything(tree);
            tree.symlink("s/attributed-link", "plain")
                .xattr("trusted.l", b"l")
                .fifo("s/fifo-with-acl")
                .acl("u:1234:rwx,g:77:r");
        } else {
            some_of_all_that_opens(tree);
        }
        tree.dir("s/d/attributed")
            .xattr("user.one", b"1")
            .acl("u:1234:rwx,g:77:r")
            .dir("into");
    };
    without_proc(&["-a"], build);
    without_proc(&["-p"], build);
    without_proc(&["--preserve=mode"], build);
    if !has_program("setfacl") {
        skip!("there is no setfacl");
    }
    compare_without_proc(&["-a"], INHERITING_NOTHING, |tree| {
        build(tree);
        tree.select("into").acl("d:u:55:rwx,d:g:56:rwx");
    });
}

#[test]
fn keeps_no_mode_and_knows_the_umask_without_proc() {
    without_proc(&["--no-preserve=mode"], |tree| {
        if has_xattrat() {
            some_of_everything(tree);
        } else {
            some_of_all_that_opens(tree);
        }
        tree.dir("into");
    });
}
