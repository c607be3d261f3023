//! Symlinks in a source: -P, -H, -L and the default. Also -x and --copy-contents.

use std::process::Command;

use testkit::{
    needs, or_skip,
    probe::{Fs, LoopMount},
    run::Run,
    skip,
    tree::{Scratch, Tree, chain, plant},
};

use crate::support::{CP, CPZ};

#[test]
fn symlinks_in_a_source_are_followed_or_not() {
    CP.rows(
        r"
        # -L follows all links.
        d/f=content d/sub/ e/x=elsewhere e/deep/y=deeper d/link->f d/to-dir->../e d/again->../e dir-link->d
        file-link->d/f dangling->nowhere into/
        cpz -L d new
        cpz -Lv dir-link new
        cpz -L dir-link d file-link into
        cp -RL d new
        # -H follows links among the sources.
        cpz -H dir-link new
        cpz -Hv dir-link file-link d into
        cp -H file-link new
        cp -RH dir-link new
        # -P follows none.
        cp -P file-link new
        cp -P dir-link dangling into
        cp -RP dir-link new
        cpz -P d new
        # The last of these flags wins.
        cpz (-HLP|-PLH) dir-link new
        cpz (-L --no-dereference|-P --dereference) d new
        cp -LP -R file-link new
        # Directories behind links are refused without -r.
        cp (-L|-H) dir-link new
        # Links that lead nowhere are named.
        d/dangling->nowhere d/loop->loop d/a->b d/b->a d/f=content dangling->nowhere loop->loop
        cpz -Lv d new
        cpz -L dangling new
        cpz -H (loop|d) new
        # Links that lead back up are refused.
        d/self->. d/sub/up->.. d/sub/sub/top->../.. d/sub/back->../../e e/there->../d/sub d/sub/f=content
        cpz -Lv d new
        # An obstacle is reported before a looping link.
        d/f= d/loop->../d dest/d/loop='in the way'
        cpz -L d dest
        # Links to FIFOs are followed, and the FIFOs made.
        d/p<fifo> d/link->p
        cpz -L d new
        # A special file of the dest stays if links are followed.
        d/p<fifo> d/l->f d/f=new into/d/p=old into/d/l->gone
        cpz (-Lv|-Lfv|-Hv) d into
        cpz -H d/p into/d
        # Nothing is followed that is not the user's to follow.
        locked/f=content d/link->../locked d/file->../locked/f locked %(0|555)
        user cpz -L d new
        d/shadow->/etc/shadow d/f=content
        user bare cpz -RL d new
        # Sockets are not read.
        d/socket<socket> d/f=content
        cpz --copy-contents d new",
    );
}

#[test]
fn follows_links_into_deep_trees_with_few_descriptors() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.plant("far/ d/one->../far far/d/d/d/two->../../../../deep deep/f=content");
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
    Tree::at(inner.path()).plant("sub/f=inside g=inside");
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
    tree.plant("s/f=content s/point/ %750 s/sub/f=content s/link->point s/file->point/g");
    with_mount(&tree, "s/point", || {
        let source = tree.path().join("s").display().to_string();
        let args = args.iter().map(|arg| arg.replace('@', &source));
        CP.check(args.collect::<Vec<_>>(), |_| {});
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
    needs!(root);
    CP.rows(
        "d/null<null> null<null> d/f=content old=old
        cpz --copy-contents (d|null) new
        cpz (-v|-Lv) --copy-contents null old",
    );
}

#[test]
fn reads_fifos_with_copy_contents() {
    CP.parity()
        .in_script(r#"printf content >d/p & "$@"; status=$?; wait; exit "$status""#)
        .words("--copy-contents d new")
        .check(plant("d/p<fifo> d/f=content"));
}

/// Opening it would mount what autofs has not mounted yet, and could wait for a dead server.
#[test]
fn a_mount_point_that_is_left_empty_is_not_opened() {
    needs!(root, "unshare", "strace");
    for args in [
        &["-rx"][..],
        &["-ax"],
        &["-rxL"],
        &["-rx", "--dry-run=total"],
        &["-rx", "--progress"],
        &["-ax", "--delete", "--max-delete=9"],
    ] {
        let scratch = Scratch::new();
        let tree = Tree::at(&scratch);
        tree.plant("s/a/f= s/a/inside/ s/a/link->inside d/old/f= d/old/there/ d/there/ d/a/");
        let script = r#"
            mount -t tmpfs none s/a/inside && : >s/a/inside/f && touch -d @1 s/a/inside
            mount -t tmpfs none d/there && mount -t tmpfs none d/old/there
            strace -fyo log "$@" --threads=1 -T s d || exit
            grep -E 'open.*(s/a>, "(inside|link)|"there)' log | grep -Ev 'O_PATH\)|ENOTDIR' >opens; :"#;
        let run = Run::new("unshare").args(["-m", "sh", "-c", script, "sh", CPZ]);
        let outcome = run.args(args).current_dir(&scratch).output();
        outcome.assert_success();
        let opens = std::fs::read_to_string(scratch.at("opens"));
        assert_eq!(opens.expect("grep writes it"), "", "{args:?} {outcome}");
    }
}
