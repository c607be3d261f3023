//! `-v`: a whole line for each copied entry.

use testkit::tree::{Scratch, Tree};

use crate::support::{CP, cpz};

#[test]
fn each_copied_entry_is_reported() {
    CP.rows(
        r"
        # Entries of all types are reported.
        f=content d/f=content d/e/ l->d fifo<fifo> e/ into/
        cpz -v f d l fifo e/ into
        # Paths are reported as they were given.
        d/f= e/f/x= g/f= into/
        cpz -v .//d e//f/ $PWD/g into//
        d/f= d/e/f= into/
        cpz -v d/. into
        cpz -v d// new/
        # Entries that exist are reported, too.
        d/f=new d/l->new d/p<fifo> d/e/ old/f=old old/l->old old/p<fifo> old/e/
        cpz -vT d old
        # Entries that are not copied are not reported.
        f=content d/f=content into/f/ into/d=old
        newest cpz -v missing f d into
        # Files that cannot be read are reported as by cp.
        d/locked=content %0 d/f=content d/locked-dir/f=content d/locked-dir %0
        user cpz -v d new
        # A dest that is removed by force is reported.
        d/f=content into/d/f=old %0
        user cpz -vf d into",
    );
}

#[test]
fn tells_a_directory_before_its_children() {
    let scratch = Scratch::with("d/e/f= d/g=");
    let outcome = cpz(&scratch, "-v d new").output();
    let told = outcome.assert_success().stdout_text();
    let line = |text| told.lines().position(|l| l == text).expect(text);
    assert!(line("'d' -> 'new'") < line("'d/g' -> 'new/g'"), "{told}");
    assert!(line("'d' -> 'new'") < line("'d/e' -> 'new/e'"), "{told}");
    assert!(
        line("'d/e' -> 'new/e'") < line("'d/e/f' -> 'new/e/f'"),
        "{told}"
    );
}

#[test]
fn writes_lines_whole_that_are_longer_than_a_pipe_takes_at_once() {
    let scratch = Scratch::new();
    // Each line has 14 names of 250 bytes twice, and quoting makes them longer.
    let deep = format!("d/{}", format!("{}'\"/", "n".repeat(248)).repeat(14));
    let tree = Tree::at(&scratch);
    for i in 0..40 {
        tree.plant(format!("{deep}{i}/f="));
    }
    let outcome = cpz(&scratch, "-v --threads=8 d e").output();
    let told = outcome.assert_success().stdout_text();
    let mut lines: Vec<&str> = told.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 1 + 14 + 40 + 40);
    let whole = |line: &&str| {
        line.starts_with('\'') && line.ends_with('\'') && line.matches(" -> ").count() == 1
    };
    assert!(lines.iter().all(whole));
}
