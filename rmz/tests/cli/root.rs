//! Refusals of `/`. Tests run in a chroot, so that without the refusal only a scratch tree is removed.

use std::{path::Path, process::Command};

use testkit::{
    probe::{gnu, has_program, is_root},
    run::{Outcome, Run, Status, normal_lines},
    skip,
    tree::Scratch,
};

use crate::support::RMZ;

/// Makes a small tree with both programs, to be `/` in a chroot. Returns `None` if that is impossible here.
fn small_root() -> Option<Scratch> {
    if !is_root() || !has_program("chroot") || !has_program("unshare") {
        return None;
    }
    let rm = gnu("rm").ok()?;
    let scratch = Scratch::with("etc/kept=content mount/ link->/");
    furnish_root(scratch.path(), &rm);
    Some(scratch)
}

/// Runs a program with the small root as `/`, in a mount namespace of its own, after the commands `before`.
fn run_in(root: &Scratch, before: &str, program: &str, args: &[&str]) -> Outcome {
    // Exit unless the new root differs from the real one.
    let script = format!(
        r#"root=$1; shift
        test "$(stat -c %d:%i "$root")" != "$(stat -c %d:%i /)" || exit 98
        {before}
        exec chroot "$root" "$@""#
    );
    Run::new("unshare")
        .args(["-m", "sh", "-c", &script, "sh"])
        .arg(root.path())
        .arg(program)
        .args(args)
        .current_dir(root)
        .output()
}

/// Asserts that both programs, run in a chroot, refuse with the same messages and keep `/etc/kept`.
#[track_caller]
fn refused(before: &str, args: &[&str]) {
    let [ours, gnu] = ["/rmz", "/rm"].map(|program| {
        let root = small_root()?;
        let outcome = run_in(&root, before, program, args);
        let lines = normal_lines(&outcome.stderr, program.as_ref());
        let kept = root.at("etc/kept").exists();
        Some((outcome.status, outcome.stdout, lines, kept))
    });
    let (Some(ours), Some(gnu)) = (ours, gnu) else {
        skip!("a chroot takes root, chroot, unshare and GNU rm");
    };
    assert_eq!(ours, gnu);
    assert!(ours.3, "it did something to /: {ours:?}");
    assert_eq!(ours.0, Status::Exit(1));
}

#[test]
fn refuses_the_root() {
    for args in [
        &["-r", "/"][..],
        &["-rf", "/"],
        &["-r", "//", "///", "/etc/../", "/..", "/.", "/link/"],
        &["-r", "--no-preserve-root", "--preserve-root", "/"],
        &["-r", "--preserve-root=all", "/"],
    ] {
        refused("", args);
    }
    let bind = r#"mount --bind "$root" "$root/mount" || exit 99"#;
    refused(bind, &["-r", "/mount", "/mount/"]);
    refused("mkdir $root/gone", &["-rv", "/", "/gone"]);
}

#[test]
fn refuses_the_root_by_default() {
    let Some(root) = small_root() else {
        skip!("a chroot takes root, chroot, unshare and GNU rm");
    };
    let outcome = run_in(&root, "", "/rmz", &["/"]);
    outcome.assert_status(1);
    assert_eq!(
        normal_lines(&outcome.stderr, "/rmz".as_ref()),
        [
            "CMD: it is dangerous to operate recursively on '/'",
            "CMD: use --no-preserve-root to override this failsafe",
        ]
    );
    assert!(root.at("etc/kept").exists());
}

#[test]
fn refuses_mount_points_with_preserve_root_all() {
    let before = r#"mount -t tmpfs tmpfs "$root/mount" || exit 99; : >"$root/mount/f""#;
    refused(before, &["-r", "--preserve-root=all", "/mount"]);
    refused(
        before,
        &["-rf", "--preserve-root=all", "/mount", "/mount/f"],
    );
}

/// Copies `rm`, rmz and their libraries into `dir`, so that both run when `dir` is `/`.
fn furnish_root(dir: &Path, rm: &Path) {
    let script = r#"
        set -e
        for program in "$1" "$(command -v "$3")"; do
            cp -L "$program" "$2/"
            for library in $(ldd "$program" | grep -o '/[^ )]*'); do
                mkdir -p "$2${library%/*}"
                cp -L "$library" "$2$library"
            done
        done"#;
    let status = Command::new("sh")
        .args(["-c", script, "sh", RMZ])
        .args([dir, rm])
        .status();
    assert!(status.is_ok_and(|s| s.success()), "no programs in a chroot");
}
