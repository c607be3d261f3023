//! Times of access, which the copy itself must not change.

use super::*;
use testkit::needs;
use testkit::tree::plant;

/// Copying a link reads it, which would change its atime.
#[test]
fn keeps_times_of_access_of_links() {
    for flags in ["-a", "-dp", "-P --preserve=timestamps"] {
        with(&[])
            .args(flags.split(' '))
            .words("link linked too into")
            .attributes(Attributes::ALL)
            .check(|tree| {
                let tree = tree.plant("into/ link->nowhere");
                let tree = tree.mtime(PAST).atime(EARLIER);
                let tree = tree.plant("linked->nowhere too==linked");
                tree.mtime(PAST).atime(EARLIER);
            });
    }
}

#[test]
fn leaves_linked_links_as_they_are_when_one_is_copied_onto_the_other() {
    needs!(root);
    CP.parity()
        .in_script("exec setpriv --reuid 65534 --clear-groups \"$@\"")
        .words("-a l1 l2")
        .check(plant("l1->x l2==l1 . %777"));
}

/// A container may give its root the right to change owners, and not to change what belongs to others.
#[test]
fn sets_times_before_the_owner() {
    needs!(root);
    let script = "chown -hR 5:5 s; exec setpriv --bounding-set -fowner --inh-caps -fowner \"$@\"";
    for flags in ["-a", "-p"] {
        CP.parity()
            .in_script(script)
            .args([flags, "-r", "s", "new"])
            .attributes(Attributes::ALL)
            .check(|tree| {
                let tree = tree.plant("s/d/f=x s/fifo<fifo>");
                for name in ["s/d/f", "s/fifo", "s/d", "s"] {
                    tree.select(name).mtime(PAST).atime(EARLIER);
                }
            });
    }
}

/// Only the owner of a directory can list it without changing its atime.
#[test]
fn keeps_times_of_access_of_directories_of_others() {
    needs!(root);
    for flags in ["-a", "-p", "--preserve=timestamps"] {
        CP.parity()
            .in_script("exec setpriv --reuid 65534 --clear-groups \"$@\"")
            .args([flags, "s", "into"])
            .attributes(Attributes::ALL)
            .check(|tree| {
                let tree = tree.plant("s/d/f=x s/e/f=y");
                for dir in ["s/d", "s/e", "s"] {
                    tree.select(dir).mtime(PAST).atime(EARLIER);
                }
                tree.plant("into/ %777");
            });
    }
}
