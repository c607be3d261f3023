//! Several sources with one dest.

use std::path::Path;

use testkit::{or_skip, probe::gnu, run::Run, tree::Scratch};

use crate::support::{CP, CPZ};

#[test]
fn dests_that_were_just_created() {
    CP.rows(
        r"
        # A dest is not overwritten that was just created or written to.
        1/f=1 2/f=2 into/
        cpz 1/f 2/f into
        + into/f=old
        cpz 1/f 2/f into
        1/d/f=1 2/d/f=2 into/
        cpz 1/d 2/d into
        # Neither is a file replaced by a directory, nor a directory by a file.
        1/f=1 2/f/x=2 into/
        cpz 1/f 2/f into
        1/f/x=1 2/f=2 into/
        newest cpz 1/f 2/f into
        # A symlink that was just created is not written through.
        1/f->../other 2/f=2 other=old into/
        cpz 1/f 2/f into
        1/d/f->../../other 2/d/f=2 other=old into/
        cpz 1/d 2/d into
        1/f->f/ 2/f=2 into/
        cpz 1/f 2/f into
        1/f->.. 2/f=2 into/
        newest cpz 1/f 2/f into
        # No directory is merged through it.
        1/d->../other 2/d/f=2 other/ into/
        cpz 1/d 2/d into
        # Symlinks and FIFOs stay, too.
        1/l->1 2/l->2 into/
        cpz 1/l 2/l into
        1/p<fifo> 2/p<fifo> %600 into/
        cpz 1/p 2/p into",
    );
}

#[test]
fn sources_that_are_named_twice() {
    CP.rows(
        r"
        # A warning is enough.
        f=content d/f=content l->f into/
        cpz (f|d|l) (f|d|l) into
        cp f f f into
        cpz d d/ ./d $PWD/d into
        # A file that is named otherwise is another one.
        f=content here->. twin==f into/
        cpz (f ./f|f twin|f here/f|here/./f here/f|$PWD/f here/f|here/f here//f) into
        here->. into/
        cpz here -s $PWD/here/here into
        # A directory and its entries are copied.
        d/sub/f=content into/
        cpz d d/sub d/sub/f into
        # A directory is refused twice if it was not copied.
        d/f=content into/d='in the way'
        cpz d d into
        # GNU's cp fails: will not create hard link 'into/a/sub' to directory 'into/sub'.
        a/sub/f=content l->a into/
        cpz a/sub a l/ into
        = into/{a/sub,l/sub,sub}/f=content",
    );
}

#[test]
fn directories_of_one_name() {
    CP.rows(
        r"
        # Directories of one name are merged.
        1/d/a=1 1/d/sub/a=1 2/d/b=2 2/d/sub/b=2 into/
        cpz 1/d 2/d into
        cpz 1/d/. 2/d/. into
        # Other sources are copied after one that could not be.
        f=content d/f=content f2=content into/d='in the way'
        cpz missing f d f2 into
        # A symlink of the dest leads into the copy of an earlier source.
        a/b/f=new x/b/ c= f=2 d/c->a d/f->a/b/f d/b->a/g
        newest CPZ_THREADS=(1|8) cp (-r|-rv|-a|-rf|-ru) (a c|a f|a x/b|f a|c a) d",
    );
}

#[test]
fn copies_directories_in_their_order_on_one_thread() {
    let said = |program: &Path, args: &[&str]| {
        let scratch = Scratch::with("a/f= b/f= c/f= d/");
        let operands = ["-rv", "a", "b", "c", "d"];
        let run = Run::new(program).args(args).args(operands);
        run.current_dir(&scratch).output().stdout_text()
    };
    let cp = or_skip!(gnu("cp"));
    let ours = said(CPZ.as_ref(), &["--threads=1"]);
    assert_eq!(ours, said(&cp, &[]), "ours, GNU's");
}
