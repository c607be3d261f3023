//! Messages and lines that are those of the newest cp.

use crate::support::NEWEST_CP;
use testkit::needs;

#[test]
fn refusals() {
    NEWEST_CP.rows(
        r"
        # A refusal names the directory and the source.
        f=content link->f dangling->nowhere fifo<fifo> d/
        cp -rT (|--remove-destination) (f|link|dangling|fifo) d
        # With backups, the copy over a directory is tried.
        cp -rbvT (-b|-S.o|-a|-l|-s|--attributes-only) (f|link|dangling|fifo) d
        cp -bvT (-f|-lf|-sf|-li|-si|-i) f d << y
        to-d->d d/
        cp -bvPT to-d d
        s/x=x s/y->x into/x/ into/y/
        cp -rbvT s into
        x/c/ c=content into/
        cp -rbv x/c c into
        # With backups, an unreadable source is reported first.
        f=content %0 d/
        user cp -bvT f d
        # A link to the directory in the way is the same file.
        d/ to-d->d
        cp -vT (-d|-a|-df|-ds|-dl|-dn|-du|-d --remove-destination) to-d d
        # A source directory is compared with the target of a link if no source is followed.
        d/f=content into/d->../d
        cp -r (-v|-L|-H|-a|-u|-n|-l|-s|--update=none-fail|--remove-destination) d into
        # A copy is named before its dest cannot be removed.
        f=new locked/f=old %400 locked %555
        user cp -v (-f|-fd|--remove-destination|-fp|-lf|-b) f locked/f
        # A colon in the name of a symbolic link is quoted.
        a:b= ./:= it:\'s= 'a b=' a= d/
        cp -s (a:b|:|it:\'s|'a b'|a) d",
    );
}

#[test]
fn wrong_options_and_help_come_before_checks_of_the_rules() {
    NEWEST_CP.rows(
        r"
        a=new b=old
        (|VERSION_CONTROL=x) cp (-n -b|--backup=x) --bogus
        (|VERSION_CONTROL=x) cp --backup=x (-t|-n)
        (|VERSION_CONTROL=x) cp -n -b (-l -s|--reflink --sparse=never)
        (|VERSION_CONTROL=x) cp --backup=x (--reflink --sparse=never|--preserve=context|-t missing a)
        (|VERSION_CONTROL=x) cp --update=none (-b|-S.o|--backup=off|-u -b) a b
        (|VERSION_CONTROL=x) cp (-b --update=none|--backup=none -n|--update=none-fail -b|-n -i --backup=x) a b",
    );
    // The text itself is our own.
    let quiet = NEWEST_CP.table();
    let quiet = quiet.setting(|parity| parity.in_script(r#""$@" >/dev/null"#));
    quiet.rows("cp (-n -b|--backup=x -b) (--help|--version)");
}

#[test]
fn debug_names_what_is_skipped_backed_up_and_copied() {
    NEWEST_CP.rows(
        r"
        # It names dests that are skipped.
        old=old @1 new=new @2 link->old other==link
        cp --debug (-u|-n|--update=none|--update=none-fail|-ub) old new
        cp --debug -i old new << n
        cp -vu old new
        cp --debug (-d|-dn) link other
        # It names backups, and only content that was copied.
        f=content old=old d/
        cp --debug (-b|--backup=t|-S.o|-p|-f|-l|-s) f old
        cp --debug --attributes-only (-p|-r|-b) f (old|d)",
    );
}

#[test]
fn permissions_that_cannot_be_set_are_reported_in_the_quotes_of_the_locale() {
    needs!(root);
    let script = "chown 0 \"it's theirs\"; chmod 666 \"it's theirs\"; chmod 777 .
        exec setpriv --reuid 65534 --clear-groups \"$@\"";
    let table = NEWEST_CP.table().setting(|parity| parity.in_script(script));
    table.rows(
        r"f=new %640 it\'s\ theirs=old
        LC_ALL=(C|C.UTF-8) cp --preserve=mode f it\'s\ theirs",
    );
}
