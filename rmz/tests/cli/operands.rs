//! Operands of all kinds.

use testkit::needs;

use crate::support::RM;

#[test]
fn operands_of_all_kinds() {
    RM.rows(
        r#"
        # A tree of all types is removed, and nothing that links in it lead to.
        d/file=content d/empty/ d/sub/sub/file= target/kept= d/link->file d/dangling->nowhere d/link-to-dir->../target
        d/absolute->/etc d/loop->loop d/fifo<fifo> d/socket<socket> d/twin==d/file kept-twin==d/file
        rmz d
        # That needs no option.
        rmz d target
        = -d -target
        # Entries of all types are removed.
        f=content kept= l->kept dangling->nowhere fifo<fifo> socket<socket>
        rmz f l dangling fifo socket
        # A symlink is removed, and not what it leads to, also with a slash after it.
        d/f= l->d
        rmz (l|l/)
        d/file= d/self->.
        rmz d/self/ d/file
        l->nowhere f= p<fifo> lp->p
        rmz (l/|f/|p/ lp/)
        # Paths may have slashes, dots and links.
        d/f= d/e/f= e/f=
        rmz -v d///
        rmz -v $PWD/d $PWD//e//f
        d/e/x= d/f/y= d/g= l->d
        rmz -v ./d/../d/e l/f .//d//g
        # Several are removed, and those that are gone are missed.
        a/f= b= c->a kept=
        rmz a b c
        a/b/c= a/d=
        rmz (a a/b|-v a/b a)
        a/b/c= f= l->a
        rmz (a f a f|-f a f a f a/b|a ./a $PWD/a l/b)
        a/f= b/f=
        rmz a missing b
        # Names below missing names and files are reported, and by force only a loop is.
        f= dangling->nowhere loop->loop d/ link->d a/f=
        rmz missing/x f/x dangling/x loop/x loop/
        (user|) rm (-r|-ri|-d) ---presume-input-tty loop/x loop/ << y y
        rmz -f a missing f/x missing/x dangling/x
        rmz -f loop/x loop/ link/
        # An operand is needed, unless by force.
        .
        bare rmz
        rmz (|--|-f)
        # Options may come after operands, but not for POSIX.
        a/f= ./-v=
        rmz a -v missing -f
        POSIXLY_CORRECT=1 rmz a -v
        # Dots are refused, and the rest is removed.
        d/f= e= f=
        rmz .
        rmz -f . ./ d/. d/.. d/./ d/..//
        rmz d/. d/.. d/../ d/.// missing/. missing/..
        rmz . d d/.. e
        # The working directory is removed by its path, and neither it nor the one above by dots. It is `sub`, so that at worst
        # the tree is removed.
        sub/f= f=
        rmz $PWD/sub/../sub
        sh:'cd sub && exec "$@"' rmz (.. ../ ../..|$PWD/sub)"#,
    );
}

#[test]
fn removes_devices() {
    needs!(root);
    RM.check("null d", |tree| {
        tree.char_device("null", 1, 3)
            .char_device("d/zero", 1, 5)
            .block_device("d/loop", 7, 0);
    });
}

#[test]
fn a_stale_name_is_ignored_by_force_only_if_it_is_gone() {
    RM.rows(
        "
        # Each call fails that is about this name.
        'fault:unlinkat,openat:error=ESTALE -P gone' rmz -f d gone
        =
        there/
        'fault:unlinkat,openat:error=ESTALE -P there' rmz -f d there
        !! strace: ...
        ! cannot remove 'there': Stale...
        # The entry only seems to be gone.
        d/entry/
        'fault:unlinkat,openat:error=ESTALE -P entry -e inject=newfstatat:error=ENOENT' rmz -f d entry
        ! cannot remove 'd': Directory not empty",
    );
}
