//! Tests of further runs: they explain two deviations that meet, and no fault beside them.

use super::*;
use crate::deviations::reruns::{How, reruns};

/// A case with two sources, which ends as the row says, and what a further run would do.
struct Rerun {
    row: Row,
    how: How,
    other: Run,
}

fn check_reruns(tests: &[Rerun]) {
    for Rerun { row, how, other } in tests {
        let case = case_in_turn(row.words);
        let (gnu, ours) = (observed(row.gnu), observed(row.ours));
        let difference = Difference::between(&case, &gnu, &ours);
        let it = Comparison::new(&case, &gnu, &ours, &difference.facts);
        let mut explanation = explain(&it);
        let others = Difference::between(&case, &observed(*other), &ours).facts;
        for (meant, line) in reruns(&it) {
            assert_eq!(meant, *how, "{}", row.about);
            explanation.settle(line, &others);
            explanation.add_consequences(&it);
        }
        let rest: Vec<String> = explanation.kinds().into_iter().collect();
        assert_eq!(rest, row.rest, "{}: {:#?}", row.about, difference.facts);
    }
}

#[test]
fn a_run_for_each_source_explains_only_what_it_does_itself() {
    let warning = "cp: warning: source directory 'b' specified more than once\n";
    let warned = Run {
        stderr: warning,
        ..done(&["a/", "a/b/", "a/b/f=x"])
    };
    let backup: &[&str] = &["a/", "a/b/", "a/b/f=x", "a/b/f~=x"];
    let in_turn = |about, ours, other, rest| Rerun {
        row: Row {
            about,
            words: &["-rb", "--parents", "./b", "b", "a"],
            gnu: warned,
            ours,
            rest,
        },
        how: How::InTurn,
        other,
    };
    check_reruns(&[
        in_turn(
            "the second copy makes a backup",
            done(backup),
            done(backup),
            &[],
        ),
        in_turn(
            "only ours makes a backup",
            done(backup),
            done(&["a/", "a/b/", "a/b/f=x"]),
            &["tree + File"],
        ),
        in_turn(
            "ours loses the copy, and makes a backup",
            done(&["a/", "a/b/", "a/b/f~=x"]),
            done(backup),
            &["tree - File"],
        ),
        in_turn(
            "the copy and its backup have another content",
            done(&["a/", "a/b/", "a/b/f=y", "a/b/f~=y"]),
            done(backup),
            &["tree + File", "tree ~ content"],
        ),
    ]);
}

#[test]
fn no_run_for_each_source_is_made_without_a_reason() {
    for words in [&["-r", "a", "b", "d"][..], &["-r", "--parents", "a", "d"]] {
        let case = case_in_turn(words);
        let (gnu, ours) = (observed(SAME), observed(done(&["a/"])));
        let difference = Difference::between(&case, &gnu, &ours);
        let it = Comparison::new(&case, &gnu, &ours, &difference.facts);
        assert_eq!(reruns(&it), [], "{words:?}");
    }
}

#[test]
fn a_refused_dest_explains_only_what_ours_leaves_alone() {
    let refused = "cp: cannot create directory '': No such file or directory\n";
    let untouched = done(&["c>a", "e/", "e/c|"]);
    let refusal = |about, ours, rest| Rerun {
        row: Row {
            about,
            words: &["-r", "e", ""],
            gnu: done(&["c|", "e/", "e/c|"]),
            ours,
            rest,
        },
        how: How::Untouched,
        other: untouched,
    };
    check_reruns(&[
        refusal(
            "cp replaces a link",
            failed(refused, &["c>a", "e/", "e/c|"]),
            &[],
        ),
        refusal(
            "ours replaces it, too",
            failed(refused, &["c=x", "e/", "e/c|"]),
            &["tree ~ content", "tree ~ size", "tree ~ type"],
        ),
        refusal(
            "ours removes the source",
            failed(refused, &["c>a", "e/"]),
            &["tree - Fifo"],
        ),
    ]);
}

/// Explains a case of which the parts end so: GNU's run first, then ours.
fn rest_with_parts(gnu: Run, ours: Run, parts: &[(Run, Run)]) -> Vec<String> {
    let explained = |gnu, ours| {
        let case = case_in_turn(&["-r", "d", "b", "d"]);
        let (gnu, ours) = (observed(gnu), observed(ours));
        let difference = Difference::between(&case, &gnu, &ours);
        explain(&Comparison::new(&case, &gnu, &ours, &difference.facts))
    };
    let mut explanation = explained(gnu, ours);
    let parts: Vec<Explanation> = parts
        .iter()
        .map(|&(gnu, ours)| explained(gnu, ours))
        .collect();
    explanation.settle_by_parts(&parts);
    explanation.kinds().into_iter().collect()
}

#[test]
fn parts_explain_a_case_only_if_each_is_explained_and_one_leaves_another_tree() {
    let into_itself = "cp: cannot copy a directory, 'd', into itself, 'd/d'\n";
    let gnu = failed(into_itself, &["d/", "c=x"]);
    let ours = failed(into_itself, &["d/", "d/d/", "c=y"]);
    let deviating = (
        failed(into_itself, &["d/"]),
        failed(into_itself, &["d/", "d/d/"]),
    );
    let same = (done(&["d/", "c=x"]), done(&["d/", "c=x"]));
    let only_content = ["tree ~ content"];
    assert_eq!(
        rest_with_parts(gnu, ours, &[deviating, same]),
        [""; 0],
        "a deviation and a later source meet"
    );
    let faulty = (done(&["d/", "c=x"]), done(&["d/", "c=y"]));
    assert_eq!(
        rest_with_parts(gnu, ours, &[deviating, faulty]),
        only_content,
        "a fault shows without the deviation, too"
    );
    assert_eq!(
        rest_with_parts(gnu, ours, &[same, same]),
        only_content,
        "no part deviates"
    );
    let warning = "cp: warning: source directory 'a' specified more than once\n";
    let printing = Run {
        stderr: warning,
        ..done(&["d/"])
    };
    assert_eq!(
        rest_with_parts(gnu, ours, &[(printing, done(&["d/"])), same]),
        only_content,
        "the deviation leaves the same tree"
    );
}
