//! The dest: a directory, a name, or -t and -T.

use testkit::tree::{Tree, plant};

use crate::support::CP;

const SMALL: &str =
    "a/b/f=content a/g=more a/l->g f=file old=old dir/ to-dir->dir to-old->old dangling->nowhere";

fn small(tree: &Tree) {
    plant(SMALL)(tree);
}

#[test]
fn dests_of_all_kinds() {
    CP.table().build(small).rows(
        r"
        # A missing dest is made, with a slash after it only if it is a directory.
        cpz (a|f) new
        cpz a (new/|new//|new/.)
        cpz f (new/|old/|dangling/)
        cpz (a|f) (dir|dir/|dir/.|to-dir|to-dir/)
        # A dangling link with a slash after it is not replaced.
        cpz (-f|-lf|-sf|-b|-bf) (f|to-old|a) dangling/
        # A file goes over an existing file, and a directory does not.
        cpz f (old|to-old)
        cpz a (old|to-old|old/)
        # A dot after a directory stands for its content.
        cpz (a/.|a/./) dir
        cpz a/. new
        cpz a/ dir
        cpz a/// new
        cpz -v a//b// dir//
        cpz -v a/b/.. (dir|new)
        cpz a/b .
        cpz a/g a/b/f ./
        cpz -v $PWD/a $PWD/dir
        cpz -v $PWD/f $PWD/new
        # Several go into a directory only.
        cpz a f old dir
        cpz a f (to-dir|old|new|dangling|old/)
        # No parents of the dest are made.
        cpz f (new|old)/f
        cpz a (new|old)/new
        cpz -t dir a f
        cpz --target-directory=to-dir a
        cpz a -tdir/
        # The target directory must be one.
        cpz -t (old|new|dangling|'') a
        cpz -t dir -t to-dir a
        cpz -t dir -T a new
        # With -T, the dest is the copy itself.
        cpz -T a (dir|new|to-dir)
        cpz -T f old
        cpz -T a/ dir/
        newest cpz -T f (dir|to-dir|dir/)
        cpz -T a f dir
        cpz -T a
        # Missing sources are reported.
        cpz missing (new|dir)
        cpz f missing a dir
        cpz missing/x f/x f/ dangling/x dir
        # Empty names are reported.
        cpz '' new
        cpz '' f dir
        cpz f a ''
        # Nothing goes through a dangling link.
        cpz (f|a|-T f|-f f) dangling",
    );
}

#[test]
fn directories_are_merged() {
    CP.rows(
        r"
        # Directories that exist are merged.
        a/b/f=new a/g=new dir/a/b/f='older and longer' dir/a/b/kept=kept dir/a/c/ %700
        cpz -v a dir
        # They keep their modes.
        a/b/f=new a/b %777 a %777 dir/b/ %700 dir %711
        cpz -T a dir
        # No directory is merged through a link below the dest.
        a/b/f=new other/ dir/a/ dir/a/b->../../other
        cpz a dir
        # A link below the dest that leads to a file is written through.
        a/f=new other='older and longer' dir/a/ dir/a/f->../../other
        cpz a dir
        # A directory is not merged with a file.
        a/b/f=new a/c=new dir/a/b=file dir/a/c/
        newest cpz a dir
        # The target of a dangling link with a slash after it is not made.
        d/ l->x dest->nowhere
        cpz (d|l) dest/",
    );
}

#[test]
fn posix_demands_writing_through_a_dangling_link() {
    let posix = CP.table().build(small);
    let posix = posix.setting(|parity| parity.env("POSIXLY_CORRECT", "1"));
    posix.rows(
        r"
        # Content is written through a dangling link.
        x/f=newer %640 dir/f->../made dir/x/f->away far->no/where slash->nowhere/ loop->loop twice->dangling p<fifo>
        cpz (|-n|-u|--attributes-only) f dangling
        cpz -v f dir
        cpz f twice
        cpz (-p|--no-preserve=mode) x/f dangling
        cpz --parents x/f dir
        cpz f f dir
        # The link is replaced if nothing is written.
        cpz (-b|--remove-destination) f dangling
        cpz (a/l|p|a) dangling
        # The reason is reported why the target cannot be made.
        cpz f (far|slash|loop)
        # The link stays if its target cannot be cloned.
        cpz --reflink=always /proc/version dangling
        ! failed to clone ...
        = nowhere= %444
        # Nothing is made through a link below an operand.
        dir/g->../made
        cpz -T a dir
        ! not writing through dangling symlink 'dir/g'
        = dir/b/f=content dir/l->g",
    );
}

#[test]
fn an_empty_dest_is_not_the_working_directory() {
    CP.table().build(small).rows(
        r"
        # Directories are copied without being told to.
        cpz a b
        = b/b/f=content b/g=more b/l->g
        # An empty dest is not the working directory.
        (cpz|cp -r) (a|-T a|-a a/.|-b a|-n a|-s a) ''
        ! cannot create directory '': No such file or directory
        (cpz|cp -r) (f|-T f|--remove-destination f) ''
        ! cannot create regular file '': No such file or directory
        (cpz|cp -r) dangling ''
        ! cannot create symbolic link '': No such file or directory
        (cpz|cp -r) -l f ''
        ! cannot create hard link '' to 'f': No such file or directory
        (cpz|cp -r) a f ''
        ! target '': No such file or directory
        (cpz|cp -r) -t '' a
        ! target directory '': No such file or directory
        (cpz|cp -r) '' ''
        ! cannot stat '': No such file or directory",
    );
}
