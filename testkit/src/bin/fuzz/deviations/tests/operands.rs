//! Tests of the rows about operands that overlap.

use super::*;

#[test]
fn copies_into_themselves_explain_only_the_dest() {
    check(&[
        Row {
            about: "the rest is copied",
            words: &["-r", "a", "a"],
            gnu: failed(INTO_ITSELF, &["a/", "a/f=x"]),
            ours: failed(INTO_ITSELF, &["a/", "a/f=x", "a/a/", "a/a/f=x"]),
            rest: &[],
        },
        Row {
            about: "a file outside of the dest is lost",
            words: &["-r", "a", "a"],
            gnu: failed(INTO_ITSELF, &["a/", "b=x"]),
            ours: failed(INTO_ITSELF, &["a/"]),
            rest: &["tree - File"],
        },
        Row {
            about: "a file in the dest is lost",
            words: &["-r", "a", "a"],
            gnu: failed(INTO_ITSELF, &["a/", "a/f=x"]),
            ours: failed(INTO_ITSELF, &["a/"]),
            rest: &["tree - File"],
        },
        Row {
            about: "a file has another mode",
            words: &["-r", "a", "a"],
            gnu: failed(INTO_ITSELF, &["a/", "a/f=x:644"]),
            ours: failed(INTO_ITSELF, &["a/", "a/f=x:666", "a/a/"]),
            rest: &["tree ~ mode"],
        },
        Row {
            about: "an archive gives a file of the rest its mode",
            words: &["-a", "a", "a"],
            gnu: failed(INTO_ITSELF, &["a/", "a/f=x:644"]),
            ours: failed(INTO_ITSELF, &["a/", "a/f=x:666", "a/a/"]),
            rest: &[],
        },
        Row {
            about: "an archive gives a file outside of the dest another mode",
            words: &["-a", "a", "a"],
            gnu: failed(INTO_ITSELF, &["a/", "b=x:644"]),
            ours: failed(INTO_ITSELF, &["a/", "b=x:666", "a/a/"]),
            rest: &["tree ~ mode"],
        },
        Row {
            about: "the status is that of success",
            words: &["-r", "a", "a"],
            gnu: failed(INTO_ITSELF, &["a/"]),
            ours: Run {
                stderr: INTO_ITSELF,
                ..done(&["a/", "a/a/"])
            },
            rest: &["status Exit(1) != Exit(0)"],
        },
    ]);
}

#[test]
fn wide_rows_explain_only_their_own_places() {
    let refused = "cp: will not create hard link 'd/b' to directory 'd/a/b'\n";
    let same = "cp: 'a/f' and 'd/f' are the same file\n";
    let unopened = "cp: cannot open 'b/f' for reading: Permission denied\n";
    let rest_unopened = "cp: cannot copy a directory, 'a', into itself, 'a/a'\n\
                         cp: cannot open 'a/f' for reading: Permission denied\n";
    let other_unopened = "cp: cannot copy a directory, 'a', into itself, 'a/a'\n\
                          cp: cannot open 'b/f' for reading: Permission denied\n";
    check(&[
        Row {
            about: "ours reads the rest of a directory that is copied into itself",
            words: &["-r", "a", "a"],
            gnu: failed(INTO_ITSELF, &["a/", "a/f=x"]),
            ours: failed(rest_unopened, &["a/", "a/f=x", "a/a/"]),
            rest: &[],
        },
        Row {
            about: "ours cannot read a file elsewhere",
            words: &["-r", "a", "b", "a"],
            gnu: failed(INTO_ITSELF, &["a/", "b/", "b/f=x"]),
            ours: failed(other_unopened, &["a/", "b/", "b/f=x", "a/a/"]),
            rest: &["stderr + cannot open N for reading: Permission denied"],
        },
        Row {
            about: "ours loses an entry of the dest that cp does not copy",
            words: &["-r", "a", "a/b", "d"],
            gnu: failed(refused, &["d/", "d/a/", "d/b/", "d/b/old=x"]),
            ours: done(&["d/", "d/a/", "d/b/"]),
            rest: &["tree - File"],
        },
        Row {
            about: "ours cannot read a file that has nothing to do with the hard link",
            words: &["-r", "a", "a/b", "c", "d"],
            gnu: failed(refused, &["d/", "d/a/"]),
            ours: failed(
                "cp: cannot open 'c/f' for reading: x\n",
                &["d/", "d/a/", "d/b/"],
            ),
            rest: &["stderr + cannot open N for reading: x"],
        },
        Row {
            about: "ours refuses the same file, and cp reports something about it",
            words: &["-r", "a/f", "d"],
            gnu: failed("cp: cannot stat 'd/f': x\n", &["d/"]),
            ours: failed(same, &["d/"]),
            rest: &[],
        },
        Row {
            about: "ours refuses the same file, and misses an error about another one",
            words: &["-r", "a/f", "b/f", "d"],
            gnu: failed(unopened, &["d/"]),
            ours: failed(same, &["d/"]),
            rest: &["stderr - cannot open N for reading: Permission denied"],
        },
        Row {
            about: "ours refuses the same file, and has changed it",
            words: &["-r", "a/f", "d"],
            gnu: done(&["d/", "d/f=x"]),
            ours: failed(same, &["d/", "d/f="]),
            rest: &["tree ~ content", "tree ~ size"],
        },
    ]);
}
