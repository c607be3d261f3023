//! `--parents`, which makes the source's whole path below the target. Also `--strip-trailing-slashes` and
//! `--keep-directory-symlink`.
//!
//! The comparisons leave out two sources below a directory that its owner may not write to. GNU sets the mode of
//! the copied directory after the first source, and fails at the second.

use testkit::{needs, probe::is_root, tree::plant};

use crate::support::CP;

const NESTED: &str = "a/b/f=content a/b/g= f= l->a/b d/ a/b %3500 a %777";

#[test]
fn the_whole_path_of_a_source_is_made() {
    CP.table().build(plant(NESTED)).rows(
        r"
        # The directories on the way are made.
        cpz --parents -v (a/b/f d|-t d ./a//b/f|a/../a/b/f d)
        cp --parents -v l/f d
        # They get the modes of the directories of the source.
        user cpz --parents -v a/b/f d
        # Directories are copied below them.
        cpz --parents -v (a/b|a/b// l) d
        # Directories that are there stay as they are.
        d/a/ %700 e/ d/l->../e
        cpz --parents -v (a/b/f|l/f) d
        # Files in place of parents are reported.
        d/a=
        cpz --parents -v a/b/f f d
        d/a->nowhere
        cpz --parents -v a/b/f d
        # A link that leads through a file is not taken for a file.
        s/f= d/g= d/s->g/x
        cpz --parents s/f d
        # Missing sources are reported.
        .
        cpz --parents -v a/zz/f a/b/zz f/x '' d
        # A directory is needed.
        cpz --parents f (g|a/b/f)
        cpz --parents -T f d
        cpz --parents f f g
        cpz --parents f
        # Other rules apply as well.
        d/a/b/f=old
        cpz --parents (-nv a/b/f a/b/g|--backup=t -v a/b/f|--remove-destination -v a/b/f|-v a/b/f a/b/f) d
        # Links between directories are kept.
        a/linked==a/b/g d/other==a/b/g
        cpz --preserve=links --parents (a/b/g a/linked|a/linked a/b) d
        cp -l --parents a/b/g a/linked d
        cpz -s --parents a/b/g d
        # Slashes are stripped from sources that go into a directory.
        .
        cpz --strip-trailing-slashes -v (f///|l/) d
        cpz --strip-trailing-slashes --parents -v a/b/f/ d
        cpz --strip-trailing-slashes -v (f/ g|f g/)
        cp --strip-trailing-slashes -v // d",
    );
    // cp gives each directory its mode at once, so that its owner cannot add the second file.
    if is_root() {
        let table = CP.table().build(plant(NESTED));
        table.rows("cpz --path -v a/b/f a/b/g f d/");
    }
}

#[test]
fn parents_get_attributes() {
    needs!(root);
    CP.rows(
        r"
        # Parents keep special bits without the owner.
        a/b/f=x a/b :1234 %(7755|2755|1777|6711) a :1234 %7755 d/ :65534 e/a/ :65534 %711 e :65534
        newest user cp -r (-a|-p|--preserve=mode,ownership|--preserve=ownership) --parents a/b/f (d|e)
        # A parent is named whose attributes cannot be preserved.
        a/b/f=x a/f=x d/a/ :1234 %777 d :1234 %777
        newest user cp -r (-a|-p|--preserve=timestamps|--preserve=mode|--preserve=ownership) --parents (a/b/f|./a/f) d
        # Parents get no sticky bit without the mode.
        a/b/f=x c/d/ %1777 e/ a %1755 a/b %3755 c %1700
        newest cp (-a|-r) --no-preserve=mode --parents a/b/f c/d e
        # The first source directory is reported whose attributes are missing.
        (a=|a->nowhere) (d/a<fifo>|d/a/|d/a/b->nowhere|d/a/b=)
        newest cp (-r|-a|-p|--preserve=mode|--preserve=xattr) --parents a/b/f d",
    );
}

#[test]
fn links_in_place_of_directories_are_followed_if_asked_for() {
    CP.rows(
        r"
        # A link is kept only with --keep-directory-symlink. cp 9.10 needs --copy-contents, too.
        from/sub/f=new from/sub/deep/g=new elsewhere/ to/sub->../elsewhere
        cpz --keep-directory-symlink -T from to
        = elsewhere/f=new elsewhere/deep/g=new
        cpz -T from to
        ! cannot overwrite non-directory 'to/sub' with directory 'from/sub'",
    );
    needs!(root);
    CP.rows(
        r"
        # A link of another user in place of a parent is followed only if asked for.
        a/b/f=new elsewhere/b/f=old d/a->../elsewhere :1234
        cpz --parents a/b/f d (|--remove-destination|-f)
        ! 'd/a' exists but is not a directory
        cpz --parents --keep-directory-symlink a/b/f d
        = elsewhere/b/f=new",
    );
}

#[test]
fn deep_directories_are_found_again_with_few_descriptors() {
    // Another thread may have a descriptor that is not yet closed on exec.
    let limit = r#"ulimit -n 20; exec "$@" 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-"#;
    let table = CP.table().setting(|parity| parity.in_script(limit));
    table.rows(
        "a/b/{d/*60}last= a/b/d/beside= d/
        cpz -a --parents a/b/ d
        = d/a/b/{d/*60}last= d/a/b/d/beside=
        # A link that is kept is found again. cp 9.10 follows it only if --copy-contents is given, too.
        elsewhere/ to/d->../elsewhere from/{d/*60}last= from/d/beside= from/d/d/beside=
        cpz --keep-directory-symlink -T from to
        = elsewhere/{d/*59}last= elsewhere/beside= elsewhere/d/beside=",
    );
}
