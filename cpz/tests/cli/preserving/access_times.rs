//! Times of access, which the copy itself must not change.

use super::*;

/// Starts a table in which they count. Each tree has these entries, of which some have old times.
fn table<'a>(entries: &'a str, old: &'a [&str]) -> Table<'a> {
    let table = CP.table().build(move |tree| {
        tree.plant(entries);
        for name in old {
            tree.select(name).mtime(PAST).atime(EARLIER);
        }
    });
    table.setting(|parity| parity.attributes(Attributes::ALL))
}

#[test]
fn times_of_access_are_kept() {
    table("f=content", &["f"]).rows("cpz -p f new");
    table(
        "into/ link->nowhere linked->nowhere too==linked",
        &["link", "linked"],
    )
    .rows(
        "# Copying a link reads it, which would change its atime.
        cpz (-a|-dp|-P --preserve=timestamps) link linked too into",
    );
    table(
        "s/d/f=x s/fifo<fifo>",
        &["s/d/f", "s/fifo", "s/d", "s"],
    )
    .rows(
        r#"# A container may give its root the right to change owners, and not to change what belongs to others.
        root sh:'chown -hR 5:5 s; exec setpriv --bounding-set -fowner --inh-caps -fowner "$@"' cpz (-a|-p) s new"#,
    );
    table(
        "s/d/f=x s/e/f=y into/ %777",
        &["s/d", "s/e", "s"],
    )
    .rows(
        r#"# Only the owner of a directory can list it without changing its atime.
        root sh:'exec setpriv --reuid 65534 --clear-groups "$@"' cpz (-a|-p|--preserve=timestamps) s into"#,
    );
}
