//! Symlinks in a source: -P, -H, -L and the default. Also -x and --copy-contents.

use testkit::{
    needs,
    run::Run,
    tree::{Scratch, Tree, chain},
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

#[test]
fn other_filesystems_are_left_out() {
    needs!(root);
    let script = r#"mount -t tmpfs none s/point && mkdir s/point/sub || exit 99
        echo inside | tee s/point/g >s/point/sub/f
        "$@"; s=$?; umount s/point; exit $s"#;
    let table = CP.table().setting(|parity| parity.in_script(script));
    table.rows(
        "s/f=content s/point/ %750 s/sub/f=content s/link->point s/file->point/g
        cpz (-xv s|-axv s|--one-file-system s/.|-xL s) new
        # All of the filesystem of a source is copied.
        cpz (-x s/point|-xH s/link) new",
    );
}

#[test]
fn special_files_are_read_with_copy_contents() {
    CP.rows(
        r#"d/null<null> null<null> d/f=content old=old
        root cpz --copy-contents (d|null) new
        root cpz (-v|-Lv) --copy-contents null old
        d/p<fifo> d/f=content
        sh:'printf content >d/p & "$@"; s=$?; wait; exit $s' cpz --copy-contents d new"#,
    );
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
