//! Tests of the rows about `--parents`.

use super::*;

#[test]
fn operands_with_parents_are_refused_in_other_words_only_by_both() {
    let exists = "cp: cannot create symbolic link 'd/a': File exists\n";
    let refused = "cp: will not overwrite just-created 'd/a' with 'a'\n";
    let words = &["-r", "--parents", "a", "a", "d"];
    let row = |about, words, gnu, ours, rest| Row {
        about,
        words,
        gnu,
        ours,
        rest,
    };
    let tree = &["d/", "d/a>b"];
    // Without the path that may be taken for an option.
    let in_turn = |case: &mut Case| drop(case.words.remove(0));
    check_with(
        in_turn,
        &[
            row(
                "both refuse the second copy",
                words,
                failed(exists, tree),
                failed(refused, tree),
                &[],
            ),
            row(
                "ours refuses another one",
                words,
                failed(exists, tree),
                failed("cp: will not overwrite just-created 'd/c' with 'c'\n", tree),
                &[
                    "stderr + will not overwrite just-created N with N",
                    "stderr - cannot create symbolic link N: File exists",
                ],
            ),
            row(
                "only ours refuses it",
                words,
                done(tree),
                failed(refused, tree),
                &[
                    "status Exit(0) != Exit(1)",
                    "stderr + will not overwrite just-created N with N",
                ],
            ),
            row(
                "without --parents the words are the same",
                &["-r", "a", "a", "d"],
                failed(exists, tree),
                failed(refused, tree),
                &[
                    "stderr + will not overwrite just-created N with N",
                    "stderr - cannot create symbolic link N: File exists",
                ],
            ),
        ],
    );
}

#[test]
fn operands_with_parents_explain_only_their_own_places() {
    let exists = "cp: cannot create directory 'd/a': File exists\n";
    let unseen = "cp: cannot stat 'd/c': Permission denied\n";
    let unopened = "cp: cannot open 'c' for reading: Permission denied\n";
    let parents = &["-r", "--parents", "a/b", "a", "d"];
    check(&[
        Row {
            about: "cp takes the dest for a new one, and ours copies into it",
            words: parents,
            gnu: failed(exists, &["d/", "d/a/"]),
            ours: done(&["d/", "d/a/", "d/a/f=x"]),
            rest: &[],
        },
        Row {
            about: "ours makes another file",
            words: parents,
            gnu: failed(exists, &["d/", "d/a/"]),
            ours: done(&["d/", "d/a/", "d/g=x"]),
            rest: &["tree + File"],
        },
        Row {
            about: "ours loses a file below the dest",
            words: parents,
            gnu: failed(exists, &["d/", "d/a/", "d/a/f=x"]),
            ours: done(&["d/", "d/a/"]),
            rest: &["tree - File"],
        },
        Row {
            about: "cp does not look at the dest of a later operand",
            words: &["-r", "--parents", "a/b", "c", "d"],
            gnu: failed(unopened, &["d/"]),
            ours: failed(unseen, &["d/"]),
            rest: &[],
        },
        Row {
            about: "the parents of a directory that is named by dots are made for itself",
            words: &["-r", "--parents", "a/.", "d"],
            gnu: failed(
                "cp: cannot create directory 'd/a/.': File exists\n",
                &["d/"],
            ),
            ours: done(&["d/"]),
            rest: &[],
        },
        Row {
            about: "ours cannot read an entry of such a directory",
            words: &["-r", "--parents", "a/..", "d"],
            gnu: failed(
                "cp: cannot create directory 'd/a/..': File exists\n",
                &["d/"],
            ),
            ours: failed(
                "cp: cannot open 'a/../c' for reading: Permission denied\n",
                &["d/"],
            ),
            rest: &[],
        },
        Row {
            about: "ours cannot read an entry elsewhere",
            words: &["-r", "--parents", "a/..", "d"],
            gnu: failed(
                "cp: cannot create directory 'd/a/..': File exists\n",
                &["d/"],
            ),
            ours: failed(unopened, &["d/"]),
            rest: &["stderr + cannot open N for reading: Permission denied"],
        },
        Row {
            about: "a single operand is not a later one",
            words: &["-r", "--parents", "c", "d"],
            gnu: failed(unopened, &["d/"]),
            ours: failed(unseen, &["d/"]),
            rest: &[
                "stderr + cannot stat N: Permission denied",
                "stderr - cannot open N for reading: Permission denied",
            ],
        },
    ]);
}
