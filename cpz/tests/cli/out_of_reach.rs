//! ACLs of entries that are not opened, when neither /proc nor a system call gives access to them.

use std::{os::unix::fs::MetadataExt, path::Path};

use testkit::{
    probe::{has_calls_of, has_program, is_root},
    run::Run,
    skip,
    tree::Scratch,
};

use crate::support::{CPZ, complaint};

/// The error of a kernel before Linux 6.13, and of some filters.
const ENOSYS: &str = "38";
/// The error of other filters for unknown system calls.
const EPERM: &str = "1";

/// The number of the system call `prctl`, which sets a filter.
const PRCTL: Option<&str> = if cfg!(target_arch = "x86_64") {
    Some("157")
} else if cfg!(target_arch = "aarch64") {
    Some("167")
} else {
    None
};

/// Runs a command with an empty /proc and a filter by which the system calls 463 to 466 (setxattrat and its
/// relatives) fail with `$1`.
const CONFINED: &str = r#"exec unshare -m sh -c '
    mount -t tmpfs none /proc || exit 99
    exec "$@"' sh perl -e '
        my ($errno, $prctl) = (shift, shift);
        my $filter = pack("(SCCL)*",
            0x20, 0, 0, 0,
            0x35, 0, 2, 463,
            0x25, 1, 0, 466,
            0x06, 0, 0, 0x50000 + $errno,
            0x06, 0, 0, 0x7fff0000);
        my $program = pack("S x![P] P", 5, $filter);
        syscall($prctl + 0, 22, 2, $program) == 0 or exit 99;
        exec @ARGV or exit 99;
    ' "$@""#;

#[track_caller]
fn keeps_the_safe_part_of_modes(errno: &str) {
    let Some(prctl) = PRCTL else {
        skip!("prctl has another number here");
    };
    if !is_root() || !has_program("unshare") || !has_program("perl") || !has_calls_of(6, 6) {
        skip!("confining takes root, unshare and perl, and setting modes Linux 6.6");
    }
    let scratch = Scratch::new();
    scratch.plant(
        "s/fifo<fifo> %664 s/with-acl<fifo> %604 acl:u:1234:rwx,g:77:r into/
        acl:d:u:55:rwx,d:g:56:rwx",
    );
    let outcome = Run::new("sh")
        .args(["-c", CONFINED, "sh", errno, prctl, CPZ])
        .words("-rp s into")
        .current_dir(&scratch)
        .fails();
    let mut said: Vec<_> = complaint(&outcome).lines().map(str::to_owned).collect();
    said.sort();
    assert_eq!(
        said,
        ["fifo", "with-acl"].map(|name| format!(
            "cpz: preserving permissions for 'into/s/{name}': Operation not supported"
        ))
    );
    let into = scratch.at("into/s");
    let mode = |path: &Path| path.symlink_metadata().unwrap().mode() & 0o7777;
    // With an ACL the group bits are its mask, and would give the group the rights of named users.
    assert_eq!(mode(&into.join("fifo")), 0o604);
    assert_eq!(mode(&into.join("with-acl")), 0o604);
}

#[test]
fn keeps_the_safe_part_of_modes_if_the_kernel_is_too_old() {
    keeps_the_safe_part_of_modes(ENOSYS);
}

#[test]
fn keeps_the_safe_part_of_modes_if_a_sandbox_refuses() {
    keeps_the_safe_part_of_modes(EPERM);
}
