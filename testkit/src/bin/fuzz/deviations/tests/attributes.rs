//! Tests of the rows about attributes.

use super::*;

#[test]
fn attributes_of_a_source_that_gets_its_own_copy_may_differ() {
    let of_parent = |about, dest, differing: [&'static [&'static str]; 2], rest| Row {
        about,
        words: dest,
        gnu: done(differing[0]),
        ours: done(differing[1]),
        rest,
    };
    let into_source = &["-a", "--parents", "e/a", "e"];
    check(&[
        of_parent(
            "the copy of a parent is in its source",
            into_source,
            [&["e/", "e/e/:755"], &["e/", "e/e/:700"]],
            &[],
        ),
        of_parent(
            "a file there has another mode",
            into_source,
            [&["e/", "e/a=x:755"], &["e/", "e/a=x:700"]],
            &["tree ~ mode"],
        ),
        of_parent(
            "the copy is elsewhere",
            &["-a", "--parents", "e/a", "d"],
            [&["d/", "d/e/:755"], &["d/", "d/e/:700"]],
            &["tree ~ mode"],
        ),
    ]);
}

#[test]
fn an_extended_attribute_may_be_lost_only_by_cp_and_where_writing_is_forbidden() {
    let lost_by_gnu = |about, rest| Row {
        about,
        words: &["-a", "a", "d"],
        gnu: done(&["d/", "d/f=x"]),
        ours: done(&["d/", "d/f=x^"]),
        rest,
    };
    let lost_by_ours = Row {
        about: "ours loses it",
        words: &["-a", "a", "d"],
        gnu: done(&["d/", "d/f=x^"]),
        ours: done(&["d/", "d/f=x"]),
        rest: &["tree ~ xattrs"],
    };
    let forbid = |case: &mut Case| case.umask = 0o277;
    check_with(forbid, &[lost_by_gnu("cp loses it", &[]), lost_by_ours]);
    let permit = |case: &mut Case| case.umask = 0o022;
    let lost = lost_by_gnu("cp loses it, although it may write", &["tree ~ xattrs"]);
    check_with(permit, &[lost]);
    let root = |case: &mut Case| (case.umask, case.user) = (0o277, User::Root);
    let lost = lost_by_gnu("cp loses it as root", &["tree ~ xattrs"]);
    check_with(root, &[lost]);
}
