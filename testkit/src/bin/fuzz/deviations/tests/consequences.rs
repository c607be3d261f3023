//! Tests of the facts that follow from others.

use super::*;

#[test]
fn statuses_differ_only_with_errors() {
    let warning = "cp: warning: source directory 'a' specified more than once\n";
    let refused = "cp: will not create hard link 'd/b' to directory 'd/a/b'\n";
    check(&[
        Row {
            about: "a directory is copied twice",
            words: &["-r", "a", "a/b", "d"],
            gnu: failed(refused, &["d/", "d/a/"]),
            ours: done(&["d/", "d/a/", "d/b/"]),
            rest: &[],
        },
        Row {
            about: "another directory is copied, too",
            words: &["-r", "a", "a/b", "d"],
            gnu: failed(refused, &["d/", "d/a/"]),
            ours: done(&["d/", "d/a/", "d/b/", "d/c/"]),
            rest: &["tree + Directory"],
        },
        Row {
            about: "a warning is not an error",
            words: &["-r", "a", "a", "d"],
            gnu: failed(warning, &["a/"]),
            ours: done(&["a/"]),
            rest: &["status Exit(1) != Exit(0)"],
        },
        Row {
            about: "only the status differs",
            words: &["-r", "a", "d"],
            gnu: done(&["a/"]),
            ours: failed("", &["a/"]),
            rest: &["status Exit(0) != Exit(1)"],
        },
        Row {
            about: "ours is killed",
            words: &["-r", "a", "a/b", "d"],
            gnu: failed(refused, &["d/"]),
            ours: Run {
                status: -1,
                ..done(&["d/", "d/b/"])
            },
            rest: &["status Exit(1) != Hung"],
        },
    ]);
}

#[test]
fn another_name_of_an_explained_file_needs_hard_links_and_the_same_difference() {
    let row = |about, ours, rest| Row {
        about,
        words: &["-a", "a", "a"],
        gnu: failed(INTO_ITSELF, &["a/", "a/f=x:644", "b=x:644"]),
        ours: failed(INTO_ITSELF, ours),
        rest,
    };
    let both: &[&str] = &["a/", "a/f=x:666", "b=x:666", "a/a/"];
    let linked = |case: &mut Case| {
        let link = What::HardLink(Slots(vec![0]));
        case.entries.push(entry(link));
    };
    check_with(
        linked,
        &[
            row("the file has another name", both, &[]),
            row(
                "the other file has another mode",
                &["a/", "a/f=x:666", "b=x:600", "a/a/"],
                &["tree ~ mode"],
            ),
        ],
    );
    check(&[row("no file has another name", both, &["tree ~ mode"])]);
}

#[test]
fn a_missing_source_follows_only_from_its_own_place() {
    let refused = "cp: cannot copy a directory, 'a', into itself, 'a/a'\n";
    let missing = "cp: cannot copy a directory, 'a', into itself, 'a/a'\n\
                   cp: cannot stat 'a/a/f': No such file or directory\n";
    let other_missing = "cp: cannot copy a directory, 'a', into itself, 'a/a'\n\
                         cp: cannot stat 'b/f': No such file or directory\n";
    let words = &["-r", "a", "a/a/f", "b/f", "a"];
    check(&[
        Row {
            about: "cp does not find what only ours has made",
            words,
            gnu: failed(missing, &["a/"]),
            ours: failed(refused, &["a/", "a/a/", "a/a/f=x"]),
            rest: &[],
        },
        Row {
            about: "ours does not find what both have",
            words,
            gnu: failed(refused, &["a/", "b/", "b/f=x"]),
            ours: failed(other_missing, &["a/", "b/", "b/f=x"]),
            rest: &["stderr + cannot stat N: No such file or directory"],
        },
        Row {
            about: "cp fails elsewhere",
            words,
            gnu: failed(other_missing, &["a/"]),
            ours: failed(refused, &["a/", "a/a/", "a/a/f=x"]),
            rest: &["stderr - cannot stat N: No such file or directory"],
        },
    ]);
}

#[test]
fn another_reason_follows_only_from_a_dest_in_the_way() {
    let refused = "cp: will not create hard link 'd/b' to directory 'd/a/b'\n";
    let in_the_way = "cp: cannot overwrite directory 'd/b' with non-directory 'c/b'\n";
    let unopened = "cp: will not create hard link 'd/b' to directory 'd/a/b'\n\
                    cp: cannot open 'c/b' for reading: Permission denied\n";
    let other_unopened = "cp: will not create hard link 'd/b' to directory 'd/a/b'\n\
                          cp: cannot open 'c/g' for reading: Permission denied\n";
    let words = &["-r", "a", "a/b", "c/b", "c/g", "d"];
    check(&[
        Row {
            about: "cp meets no directory, and cannot read the source",
            words,
            gnu: failed(unopened, &["d/"]),
            ours: failed(in_the_way, &["d/", "d/b/"]),
            rest: &[],
        },
        Row {
            about: "cp cannot read another source",
            words,
            gnu: failed(other_unopened, &["d/"]),
            ours: failed(in_the_way, &["d/", "d/b/"]),
            rest: &["stderr - cannot open N for reading: Permission denied"],
        },
        Row {
            about: "ours does not report that source, although nothing is in its way",
            words,
            gnu: failed(unopened, &["d/"]),
            ours: failed(refused, &["d/"]),
            rest: &["stderr - cannot open N for reading: Permission denied"],
        },
    ]);
}
