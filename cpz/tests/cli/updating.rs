//! `-u`, `--update`, `-n`, `--remove-destination`: which dests are replaced, and by what means.

use testkit::tree::{Tree, plant};

use crate::support::{CP, NEWEST_CP};

#[test]
fn dests_are_replaced_by_their_times() {
    const DATED: &str = "old=old @1.1 new=new @1.2 same=same @1.1 l->old @5 dangling->nowhere
        d/new=other @1.1 d/old=other @1.2 dir/";
    CP.table().build(plant(DATED)).rows(
        r"
        # Dests are replaced that are older by a nanosecond.
        cpz -uv (new old|old new|same old)
        cpz --update -v new old d
        # Missing dests are made.
        cpz (-uv|-nv|--remove-destination -v) old fresh
        # The files count that links lead to.
        cpz -uv (new l|l new)
        cp -uv l new
        cpz (-u|-n) new dangling
        # With -n, whatever exists stays.
        cpz -nv new old
        cpz -nv new old l d
        cpz -nvT new d
        cpz (-nf|-un) new old
        cpz -n --remove-destination new dangling
        cpz -n old old
        # A source is not opened for that.
        + secret= %0
        user cpz -nv secret old
        # A file is refused as its own dest although it is not older.
        +
        cpz -u old (old|l)
        # A file is updated twice in one run only if it is newer.
        cpz (-uv|-nv|--remove-destination -v) new d/new dir
        # The dest is removed first if asked for.
        cpz --remove-destination -v new (old|l|dangling)
        newest cpz --remove-destination -v -T new dir
        cpz --remove-destination -v -T dir new
        cpz --remove-destination -v l new
        # Dests that cannot be removed are reported.
        + a=new locked/a= locked %555
        user cpz --remove-destination -v a locked/a
        # Older releases lack these words.
        +
        newest cpz --update=(all|o) -v old new
        newest cpz --update=(older|none|none-fail) -v new old
        # Other words are listed.
        newest cpz --update=(non|x) -v new old
        # A power cut has emptied the dest, or a program has written to it, if times are preserved.
        s/{full,emptied,long}=content d/full=content d/emptied= d/long='content, and more'
        s/full @9 s/emptied @9 s/long @9 d/full @9 d/emptied @9 d/long @9
        cpz -auTv s d
        > 's/emptied' -> 'd/emptied'
        > 's/long' -> 'd/long'
        = d/emptied=content d/long=content
        cpz -uTv s d",
    );
}

#[test]
fn updates_a_tree() {
    let build = |tree: &Tree| {
        let seconds = std::time::Duration::from_secs;
        for number in 0..60 {
            tree.file(format!("from/{}/{number}", number % 7), "new")
                .mtime(seconds(100 + number % 3))
                .file(format!("to/{}/{number}", number % 7), "old content")
                .mtime(seconds(101));
        }
        plant("from/1/l->x to/1/l->y from/2/dir= to/2/dir/ to/3/other= from/3/other/")(tree);
    };
    let table = NEWEST_CP.table().build(build);
    table.rows("cpz (-uv|-nv|--remove-destination -v) -T from to");
}
