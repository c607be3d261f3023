//! Symlinks in a source: -P, -H, -L and the default. Also -x and --copy-contents.

use std::process::Command;

use testkit::{
    or_skip,
    probe::{self, Fs, LoopMount, NOBODY, has_program, is_root},
    run::{Parity, Run},
    skip,
    tree::{Scratch, Tree, chain},
};

use crate::support::{CP, CPZ};

fn links(tree: &Tree) {
    tree.file("d/f", b"content")
        .dir("d/sub")
        .file("e/x", b"elsewhere")
        .file("e/deep/y", b"deeper")
        .symlink("d/link", "f")
        .symlink("d/to-dir", "../e")
        .symlink("d/again", "../e")
        .symlink("dir-link", "d")
        .symlink("file-link", "d/f")
        .symlink("dangling", "nowhere")
        .dir("into");
}

#[test]
fn follows_all_links_with_capital_l() {
    CP.check(["-L", "d", "new"], links);
    CP.check(["-Lv", "dir-link", "new"], links);
    CP.check(["-L", "dir-link", "d", "file-link", "into"], links);
    CP.check_strict(["-RL", "d", "new"], links);
}

#[test]
fn follows_links_among_the_sources_with_capital_h() {
    CP.check(["-H", "dir-link", "new"], links);
    CP.check(["-Hv", "dir-link", "file-link", "d", "into"], links);
    CP.check_strict(["-H", "file-link", "new"], links);
    CP.check_strict(["-RH", "dir-link", "new"], links);
}

#[test]
fn follows_no_links_with_capital_p() {
    CP.check_strict(["-P", "file-link", "new"], links);
    CP.check_strict(["-P", "dir-link", "dangling", "into"], links);
    CP.check_strict(["-RP", "dir-link", "new"], links);
    CP.check(["-P", "d", "new"], links);
}

#[test]
fn lets_the_last_of_these_flags_win() {
    CP.check(["-HLP", "dir-link", "new"], links);
    CP.check(["-PLH", "dir-link", "new"], links);
    CP.check(["-L", "--no-dereference", "d", "new"], links);
    CP.check(["-P", "--dereference", "d", "new"], links);
    CP.check_strict(["-LP", "-R", "file-link", "new"], links);
}

#[test]
fn refuses_directories_behind_links_without_r() {
    CP.check_strict(["-L", "dir-link", "new"], links);
    CP.check_strict(["-H", "dir-link", "new"], links);
}

#[test]
fn names_links_that_lead_nowhere() {
    fn lost(tree: &Tree) {
        tree.symlink("d/dangling", "nowhere")
            .symlink("d/loop", "loop")
            .symlink("d/a", "b")
            .symlink("d/b", "a")
            .file("d/f", b"content")
            .symlink("dangling", "nowhere")
            .symlink("loop", "loop");
    }
    CP.check(["-Lv", "d", "new"], lost);
    CP.check(["-L", "dangling", "new"], lost);
    CP.check(["-H", "loop", "new"], lost);
    CP.check(["-H", "d", "new"], lost);
}

#[test]
fn refuses_links_that_lead_back_up() {
    CP.check(["-Lv", "d", "new"], |tree| {
        tree.symlink("d/self", ".")
            .symlink("d/sub/up", "..")
            .symlink("d/sub/sub/top", "../..")
            .symlink("d/sub/back", "../../e")
            .symlink("e/there", "../d/sub")
            .file("d/sub/f", b"content");
    });
}

#[test]
fn follows_links_to_fifos_and_recreates_them() {
    CP.check(["-L", "d", "new"], |tree| {
        tree.fifo("d/p").symlink("d/link", "p");
    });
}

#[test]
fn leaves_special_files_alone_if_links_are_followed() {
    fn taken(tree: &Tree) {
        tree.fifo("d/p")
            .symlink("d/l", "f")
            .file("d/f", b"new")
            .file("into/d/p", b"old")
            .symlink("into/d/l", "gone");
    }
    CP.check(["-Lv", "d", "into"], taken);
    CP.check(["-Lfv", "d", "into"], taken);
    CP.check(["-Hv", "d", "into"], taken);
    CP.check(["-H", "d/p", "into/d"], taken);
}

#[test]
fn follows_links_as_an_ordinary_user() {
    CP.check_as_nobody(["-L", "d", "new"], |tree| {
        tree.file("locked/f", b"content")
            .symlink("d/link", "../locked")
            .symlink("d/file", "../locked/f")
            .select("locked")
            .mode(0);
    });
    CP.check_as_nobody(["-L", "d", "new"], |tree| {
        tree.file("locked/f", b"content")
            .symlink("d/link", "../locked")
            .select("locked")
            .mode(0o555);
    });
}

#[test]
fn follows_links_into_deep_trees_with_few_descriptors() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    tree.dir("far")
        .symlink("d/one", "../far")
        .symlink("far/d/d/d/two", "../../../../deep")
        .file("deep/f", b"content");
    chain(tree.path().join("far/d/d/d/d"), 60);
    chain(tree.path().join("deep/d"), 60);
    let script = r#"ulimit -n 20; "$@" && diff -r d new"#;
    Run::new("sh")
        .args(["-c", script, "sh", CPZ, "-L", "d", "new"])
        .current_dir(&scratch)
        .output()
        .assert_success();
}

/// Mounts a tmpfs with a file at `point`, calls `run`, and unmounts it.
fn with_mount(tree: &Tree, point: &str, run: impl FnOnce()) {
    let inner = or_skip!(LoopMount::new(Fs::Tmpfs, 1));
    Tree::at(inner.path())
        .file("sub/f", b"inside")
        .file("g", b"inside");
    let point = tree.path().join(point);
    let mount = |program: &str, args: &[&std::path::Path]| {
        let status = Command::new(program).args(args).status();
        status.is_ok_and(|status| status.success())
    };
    if !mount("mount", &["--bind".as_ref(), inner.path(), &point]) {
        skip!("no bind mounts");
    }
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    assert!(mount("umount", &[&point]));
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

#[track_caller]
fn stays_on_one_filesystem(args: &[&str]) {
    let shared = Scratch::new();
    let tree = Tree::at(shared.path());
    tree.file("s/f", b"content")
        .dir("s/point")
        .mode(0o750)
        .file("s/sub/f", b"content")
        .symlink("s/link", "point")
        .symlink("s/file", "point/g");
    with_mount(&tree, "s/point", || {
        let source = tree.path().join("s").display().to_string();
        let args = args.iter().map(|arg| arg.replace('@', &source));
        CP.check(args, |_| {});
    });
}

#[test]
fn leaves_out_other_filesystems() {
    stays_on_one_filesystem(&["-xv", "@", "new"]);
    stays_on_one_filesystem(&["-axv", "@", "new"]);
    stays_on_one_filesystem(&["--one-file-system", "@/.", "new"]);
}

#[test]
fn copies_the_whole_filesystem_of_a_source() {
    stays_on_one_filesystem(&["-x", "@/point", "new"]);
    stays_on_one_filesystem(&["-xH", "@/link", "new"]);
}

#[test]
fn leaves_out_other_filesystems_behind_links() {
    stays_on_one_filesystem(&["-xL", "@", "new"]);
}

#[test]
fn reads_special_files_with_copy_contents() {
    if !probe::is_root() {
        skip!("only root can make devices");
    }
    fn devices(tree: &Tree) {
        tree.char_device("d/null", 1, 3)
            .char_device("null", 1, 3)
            .file("d/f", b"content")
            .file("old", b"old");
    }
    CP.check(["--copy-contents", "d", "new"], devices);
    CP.check(["--copy-contents", "null", "new"], devices);
    CP.check(["-v", "--copy-contents", "null", "old"], devices);
    CP.check(["-Lv", "--copy-contents", "null", "old"], devices);
}

#[test]
fn reads_fifos_with_copy_contents() {
    crate::support::CP
        .parity()
        .in_script(r#"printf content >d/p & "$@"; status=$?; wait; exit "$status""#)
        .args(["--copy-contents", "d", "new"])
        .check(|tree| {
            tree.fifo("d/p").file("d/f", b"content");
        });
}

#[test]
fn reads_no_sockets() {
    CP.check(["--copy-contents", "d", "new"], |tree| {
        tree.socket("d/socket").file("d/f", b"content");
    });
}

#[test]
fn follows_nothing_that_is_not_the_users_to_follow() {
    if !probe::is_root() {
        skip!("only root can become another user");
    }
    Parity::new(CPZ, "cp")
        .args(["-RL", "d", "new"])
        .uid(NOBODY)
        .check(|tree| {
            tree.symlink("d/shadow", "/etc/shadow")
                .file("d/f", b"content");
        });
}

#[test]
fn reports_an_obstacle_before_a_looping_link() {
    CP.check(["-L", "d", "dest"], |tree| {
        tree.file("d/f", b"")
            .symlink("d/loop", "../d")
            .file("dest/d/loop", b"in the way");
    });
}

/// Opening it would mount what autofs has not mounted yet, and could wait for a dead server.
#[test]
fn a_mount_point_that_is_left_empty_is_not_opened() {
    if !is_root() || !has_program("unshare") || !has_program("strace") {
        skip!("mounting takes root and unshare, and there may be no strace");
    }
    for args in [
        &["-rx"][..],
        &["-ax"],
        &["-rxL"],
        &["-rx", "--dry-run=total"],
        &["-rx", "--progress"],
        &["-ax", "--delete", "--max-delete=9"],
    ] {
        let scratch = Scratch::new();
        let tree = Tree::at(scratch.path());
        tree.file("s/a/f", "")
            .dir("s/a/inside")
            .symlink("s/a/link", "inside");
        tree.file("d/old/f", "")
            .dir("d/old/there")
            .dir("d/there")
            .dir("d/a");
        let script = r#"
            mount -t tmpfs none s/a/inside && : >s/a/inside/f && touch -d @1 s/a/inside
            mount -t tmpfs none d/there && mount -t tmpfs none d/old/there
            strace -fyo log "$@" --threads=1 -T s d || exit
            grep -E 'open.*(s/a>, "(inside|link)|"there)' log | grep -Ev 'O_PATH\)|ENOTDIR' >opens; :"#;
        let run = Run::new("unshare").args(["-m", "sh", "-c", script, "sh", CPZ]);
        let outcome = run.args(args).current_dir(&scratch).output();
        outcome.assert_success();
        let opens = std::fs::read_to_string(scratch.path().join("opens"));
        assert_eq!(opens.expect("grep writes it"), "", "{args:?} {outcome}");
    }
}
