//! Links instead of copies: -l and -s.

use testkit::{
    needs, or_skip,
    probe::{Fs, LoopMount},
    tree::plant,
};

use crate::support::CP;

const SOURCES: &str =
    "d/f=content %640 d/sub/g=more d/link->f link->d/f to-dir->d/sub f=content twin==f
    other=other dangling->nowhere into/";

#[test]
fn hard_links() {
    CP.table().build(plant(SOURCES)).rows(
        r"
        # Files and the files of directories get links.
        cp -l f new
        cp -lv f d/f other into
        cpz -l (f|d) new
        cpz -lv d into
        cp -l d new
        # Symbolic links get hard links only if asked.
        cp (-l|-lP|-lL) link new
        cp -l dangling new
        cpz (-lP|-l) to-dir new
        cpz (-lP|-lL|-lH) d new
        # A dest is replaced only with force.
        cp (-lv|-lfv) f other
        cp (-l|-lf) f dangling
        cp (-l|-lf) d/f link
        newest cp (-lT|-lfT) f into
        # A link that is there is enough.
        cp -lv f (twin|f)
        cp -lfv f f
        cp -lP link link
        # Special files get links, too.
        d/p<fifo> d/s<socket> p<fifo>
        cpz -l d new
        cp -l p new",
    );
    let other = or_skip!(LoopMount::new(Fs::Tmpfs, 1));
    let dest = other.at("new");
    let table = CP.table().build(plant(SOURCES));
    table.rows(&format!("cp -lv f {}", dest.display()));
}

#[test]
fn symbolic_links() {
    CP.table().build(plant(SOURCES)).rows(
        r"
        # Files get symbolic links.
        cp -s d/f new
        cp -sv d/f ./new
        cp -s ./d/f into/../new
        cp -s $PWD/f $PWD/d/f into
        cp -s f $PWD/new
        # The files of directories get them, too.
        cpz (-s|-sL) $PWD/d new
        cpz -s d/. .
        # Relative links are made in the working directory only.
        cp -sv f into
        cp -s d/f 'into/with a space'
        cp -s f missing/new
        cpz -s d new
        # They lead to links as to files.
        cp (-s|-sP) (link|dangling) new
        # A dest is replaced only with force.
        cp (-sv|-sfv) f other
        cp (-s|-sf) f dangling
        cp (-s|-sf) d/f link
        newest cp -sT f into
        # No file is lost to a link to itself.
        cp (-s|-sf) f f
        cp -sf f twin
        cp -sf link d/f
        # Links are either hard or symbolic.
        cp -ls f new
        cp -sl
        cp -slt missing f",
    );
}

#[test]
fn links_replace_other_entries() {
    CP.rows(
        r"
        # Links replace symbolic links and special files.
        d/l->f d/p<fifo> d/f=content into/d/l->x into/d/p=old
        cpz (-sv|-sLv) $PWD/d into
        cpz (-lPv|-lv) d into
        # An ordinary user makes links.
        d/f=content %0 locked/d/f=old locked/d %555
        user bare cpz -R (-lv|-sfv) $PWD/d locked
        # One of several names is replaced if links are kept.
        s/f=new s/alone=new d/f=old d/other==d/f d/alone=old d/to-f->f
        cpz -v (-dl|-al|-dlf|-l --preserve=links|-dl --attributes-only|-dlb|-dln|-alu|-l) (s/f d/f|s/f d/to-f|s/. d)",
    );
    needs!(root);
    CP.rows(
        r"
        # Symbolic links get the times of their sources if asked to.
        d/f= :1:2 @99.7
        bare cpz (-as|-psr|-sr|-dsr) $PWD/d new",
    );
}
