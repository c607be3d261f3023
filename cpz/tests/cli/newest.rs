//! Behaviour of cp that differs between its releases, or that the newest one defines. Older ones are not compared.

use std::{fs, os::unix::fs::MetadataExt};

use testkit::{
    or_skip,
    probe::{Fs, LoopMount, supports_acls},
    run::Run,
    tree::{Scratch, Tree},
};

use crate::support::{CPZ, NEWEST_CP};

#[test]
fn directories() {
    NEWEST_CP.rows(
        r"
        # A directory does not replace a file that was just created.
        x/c=new c/f=sub d/ (|d/c=precious)
        cp -r (-b|--backup=simple|--backup=t|-bu|-f) x/c c d
        x/c->y c/f=sub d/
        cp -r (-b|--backup=simple|--backup=t|-bu|-f) x/c c d
        # A directory that is named through a link is copied once.
        c/f=x x/c->../c d/
        cp (-rL|-rH|-rLb) c x/c d
        cp -r c x/c/ d
        # A directory is not merged into itself if nothing would change.
        f/x=1 f/l->x f/p<fifo>
        cp (-l|-n|--update=none|--update=none-fail|-al|-an) (-rvT f f|-r f .)
        cp -rT (-u|-f|-b|-s|--remove-destination|-a) f f
        # A directory in the way of a device is reported as for a file.
        d/null/ d/a/ a=x s/a<socket>
        cp (-b|-S.o|-bf|--backup=t) (/dev/null|a|s/a|-r --copy-contents /dev/null) d
        cp /dev/null d
        # Parents get attributes if one was missing.
        a/b/d/foo=x e/a/b/ (|e/a/b/d/) a/b/d %2700 @9 a/b %705 @9 a %751 @9
        cp (-p|-a|--preserve=timestamps|--preserve=mode|) --parents a/b/d/foo e
        # A directory loses special bits that its source lacks.
        b/sticky/ %1755 b/plain/ b %755 (d/ %777 d/b/plain/ %7777 d/b %7777|d/ %2777 d/b/plain/ %1755 d/b %1755|d/ %2777)
        cp (-rp|-a|-r --preserve=mode|-rp --no-preserve=mode) b d",
    );
}

#[test]
fn unreadable_directories() {
    NEWEST_CP.rows(
        r"
        # One takes the place of a file that is backed up, and is printed.
        a=x e/ %0
        user cp (-rb|-rvb) e a
        # One is neither copied nor linked to itself.
        a/ %311
        user cp -r a $PWD
        user cp (-rl|-rlb|-rn|-rln) a .
        # The copy of one in itself gets the times from before.
        e/ :65534 %311 @9
        user cp -rp e e
        # One loses the set-group-id bit of another group.
        a/ %(311|0) b/ :65534:1 %2777
        user cp -r (-r|-p|-l|--preserve=timestamps|--preserve=ownership) a b
        # One loses the sticky bit of another owner.
        a/ :1234 %1230
        user cp -a a b
        # One does not replace a dangling link.
        a/ %311 b->c
        user cp -r a (b/|b)
        # A dest that cannot be looked at is reported before an unreadable source.
        a=x %0 loop->loop nowhere->missing hidden->secret/f closed->a/f secret/f=y d/a->a secret :0 %700
        user cp -r (-r|-f|-b|-u|-n|-p|--remove-destination) a (loop|closed|hidden|nowhere|d)
        # The copies of the root are named after the dest. It cannot be written to, so nothing is copied.
        b/ %555
        user cp -r / b",
    );
}

#[test]
fn links() {
    NEWEST_CP.rows(
        r"
        # A link to a directory is not replaced by a second name.
        c=x e==c d/c->.
        cp -a (c e|e c) d
        # A hard link to a link changes nothing if that leads to the dest.
        foo=x symlink->foo
        cp (-dl|-al|-lP|-lPf|-l|-lH) (symlink foo|foo symlink)
        # A hard link replaces a link to its source.
        c<fifo> d/c->../c
        cp (-al|-rl|-rlP|-rlL|-rlf|-a|-r) c d
        # Only a hard link replaces a dest after a question.
        c=1 e=2
        cp (-si|-li|-sif|-lif) c e << y
        # A link replaces a dest by force even without content.
        a->x (b->y|b=y|b<fifo>)
        cp (-a|-af|-df|-a --remove-destination|-ab) --attributes-only a b
        # A link that leads to its source or from it is the same file.
        d/to_file=x to_file->d/to_file d/to_fifo<fifo> to_fifo->d/to_fifo d/to_dir/ to_dir->d/to_dir
        fifo<fifo> d/fifo->../fifo linked->x d/linked==linked
        cp (-r|-a|-rf|-rl|-rlf|-al) --attributes-only (to_file|to_fifo|to_dir|fifo|linked) d
        cp (-rl|-r) (to_file|to_fifo|to_dir|fifo|linked) d
        # If the source is relative, cp removes the dest for nothing.
        cp (-rs|-rsf|-rs --attributes-only) (to_file|to_fifo|to_dir|linked) d
        cp (-r --attributes-only|-al --attributes-only|-rs|-rsf|-rl|-r) -v $PWD/fifo d
        # A second name of a link is not reported.
        c->x d==c
        cp -av c d
        # A link cannot replace a directory even if dests are backed up. cp changes the time of d in any case.
        file=x link->x fifo<fifo> d/link/ d/fifo/
        cp (-Prb|-Prbf|-ab|-abf) file (link|fifo) d
        b->x c==b d/c/
        cp (-Prb|-Prbf|-ab|-abf) b c d
        # A dest that cannot be looked at is reported before a link that was just created.
        a/d=x d->e/a e/e=
        cp -r d a/d e
        # A hard link that is there already is not just created.
        d/a=1 a=2
        cp -l d/a a d
        a=1 d/a->x
        cp -lf a d/a d
        d->x e/
        cp -al d e/d e
        a->x e/a->y d/ d/a==a
        cp -P a e/a d
        # A forced copy is refused at a link to itself that was just created.
        a/e->e e= b/
        cp (-r|-rf|-rfu|-rfn|-rbf) a/e e b",
    );
}

#[test]
fn special_files() {
    NEWEST_CP.rows(
        r"
        # A FIFO is not opened before its dest is checked.
        a<fifo> b==a l->a d/a/ s/a<fifo> e/s/a/
        cp (a a|-f a a|a b|l a|-r --copy-contents a b|a d|-r --copy-contents s e)
        # It is not opened for a dest that cannot be looked at.
        a<fifo> b/ %600
        user cp a b
        # It is not opened before its dest is removed.
        b=x a<fifo> (%555 e/a=old e :1234 %755|%333 e/a=old e :1234 %777|%333 e/a=old e :1234 %755)
        user cp (-d|-Pf|-Pv|-dbv|-du) b a e
        # A special file replaces no other if only attributes are copied.
        fifo<fifo> d/fifo<fifo>
        cp --attributes-only (-r|-rf|-a|-af|-rl|-rlf|-alf) fifo d
        # A special file replaces one name of several.
        a<fifo> b=x (|c==b)
        cp (-aL|-rL|-aLf|-a) a b",
    );
}

#[test]
fn a_failed_copy_leaves_the_permissions_of_its_dest() {
    NEWEST_CP.rows(
        "a=x %600 e=y %(666|4755|2640)
        cp (-p|-a|--preserve=ownership) --reflink=always a e",
    );
    if supports_acls(&testkit::tree::place()) {
        NEWEST_CP.rows("a=x %600 e=y %664 acl:u:1:rw,m::rw \n cp -p --reflink=always a e");
    }
}

#[test]
fn a_full_disk_leaves_the_permissions_of_the_dest() {
    let small = or_skip!(LoopMount::new(Fs::Tmpfs, 1));
    let source = Scratch::new();
    Tree::at(source.path())
        .file("a", vec![1; 3 << 20])
        .mode(0o600);
    Tree::at(small.path()).plant("e=y %664");
    let dest = small.at("e");
    let run = Run::new(CPZ).words("-p a").arg(&dest);
    let outcome = run.current_dir(&source).fails();
    assert!(outcome.stderr_text().contains("No space left"), "{outcome}");
    assert_eq!(fs::metadata(&dest).unwrap().mode() & 0o7777, 0o664);
}
