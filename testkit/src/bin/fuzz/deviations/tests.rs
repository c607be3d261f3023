//! Tests of the table: each row explains what its deviation causes, and not what a fault causes beside it.

use std::{fs, path::Path};

use testkit::{
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree},
};

use super::*;
use crate::{
    case::{Called, Case, Descriptors, Entry, Names, Operand, Slots, Target, User, What, Word},
    difference::Difference,
    run::{ABOVE, Observed, Status, WORKING},
};

mod reruns;

#[test]
fn each_deviation_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let rows = TABLES.iter().copied().flatten();
    let lines = rows.map(|row| (row.readme, row.line));
    for (readme, line) in lines.chain(super::reruns::LINES) {
        let text = fs::read_to_string(root.join(readme)).unwrap();
        assert!(
            text.lines().any(|l| l.contains(line)),
            "{readme} has no line with: {line}"
        );
    }
}

/// The results of one command: its status, its two streams, and the entries below the working directory.
///
/// `a/` is a directory, `a=text` a file, `a>b` a symbolic link, and `a|` a FIFO. `:755` at the end is a mode, and `^` an
/// extended attribute. All times are equal.
#[derive(Clone, Copy)]
struct Run {
    status: i32,
    stdout: &'static str,
    stderr: &'static str,
    tree: &'static [&'static str],
}

/// A case, and the facts of it that nothing explains.
struct Row {
    about: &'static str,
    /// Long options without their hyphens, and other words.
    words: &'static [&'static str],
    gnu: Run,
    ours: Run,
    rest: &'static [&'static str],
}

const SAME: Run = Run {
    status: 0,
    stdout: "",
    stderr: "",
    tree: &["a/", "a/f=x"],
};

fn failed(stderr: &'static str, tree: &'static [&'static str]) -> Run {
    Run {
        status: 1,
        stderr,
        tree,
        ..SAME
    }
}

fn done(tree: &'static [&'static str]) -> Run {
    Run { tree, ..SAME }
}

fn word(text: &'static str) -> Word {
    match text.strip_prefix("--") {
        Some(name) => Word::Long { name, cut: 0 },
        None if text.starts_with('-') => Word::Text(text),
        None => Word::Operand(Operand::Text(text)),
    }
}

fn entry(what: What) -> Entry {
    Entry {
        at: Slots(vec![0]),
        what,
        attributes: crate::case::Attributes::plain(),
    }
}

/// Returns a case in which a path may be taken for an option. So GNU's command does not run once for each source, and
/// the rows explain what that would settle.
fn case(words: &[&'static str]) -> Case {
    let mut case = case_in_turn(words);
    case.words.push(Word::Operand(Operand::Text("-v")));
    case.words.rotate_right(1);
    case
}

/// Returns a case that runs as the user `nobody`, in a tree that has a FIFO.
fn case_in_turn(words: &[&'static str]) -> Case {
    Case {
        pair: Pair::Cp,
        called: Called::Gnus(""),
        names: Names::new([const { None }; crate::case::SLOTS]),
        entries: vec![entry(What::Fifo)],
        words: words.iter().copied().map(word).collect(),
        answers: Vec::new(),
        variables: Vec::new(),
        threads: 1,
        umask: 0o022,
        user: User::Nobody,
        descriptors: Descriptors::Unlimited,
    }
}

fn observed(run: Run) -> Observed {
    let scratch = Scratch::new();
    let top = scratch.path().join("t");
    let tree = Tree::at(scratch.path().join(ABOVE).join(WORKING));
    for entry in run.tree {
        let (entry, has_xattr) = match entry.strip_suffix('^') {
            Some(entry) => (entry, true),
            None => (*entry, false),
        };
        let (entry, mode) = match entry.split_once(':') {
            Some((entry, mode)) => (entry, u32::from_str_radix(mode, 8).ok()),
            None => (entry, None),
        };
        let path = entry.split(['=', '>', '|']).next().unwrap_or_default();
        let path = path.trim_end_matches('/');
        if let Some((_, content)) = entry.split_once('=') {
            tree.file(path, content);
        } else if let Some((_, target)) = entry.split_once('>') {
            tree.symlink(path, target);
        } else if entry.ends_with('|') {
            tree.fifo(path);
        } else {
            tree.dir(path);
        }
        if has_xattr {
            tree.select(path).xattr("user.x", "x");
        }
        if let Some(mode) = mode {
            tree.select(path).mode(mode);
        }
    }
    Observed {
        status: match run.status {
            -1 => Status::Hung,
            status => Status::Exit(status),
        },
        stdout: run.stdout.as_bytes().to_vec(),
        stderr: run.stderr.as_bytes().to_vec(),
        tree: Snapshot::of(
            &top,
            Attributes::ALL - Attributes::ATIME - Attributes::MTIME,
        ),
    }
}

fn check(rows: &[Row]) {
    check_with(|_| {}, rows);
}

/// Checks cases that are changed first.
fn check_with(change: impl Fn(&mut Case), rows: &[Row]) {
    for row in rows {
        let mut case = case(row.words);
        if row.gnu.tree.iter().any(|entry| entry.contains('>')) {
            let target = Target::Text("nowhere");
            case.entries.push(entry(What::Symlink(target)));
        }
        change(&mut case);
        let (gnu, ours) = (observed(row.gnu), observed(row.ours));
        let difference = Difference::between(&case, &gnu, &ours);
        let explanation = explain(&Comparison::new(&case, &gnu, &ours, &difference.facts));
        let rest: Vec<String> = explanation.kinds().into_iter().collect();
        assert_eq!(rest, row.rest, "{}: {:#?}", row.about, difference.facts);
    }
}

const INTO_ITSELF: &str = "cp: cannot copy a directory, 'a', into itself, 'a/a'\n";

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
fn a_link_that_is_its_own_removed_dest_is_missing_or_cannot_be_linked() {
    let unlinked = "cp: cannot create hard link 'd/a' to 'd/a': No such file or directory\n";
    let missing = "cp: cannot stat 'd/a': No such file or directory\n";
    let words: &[&str] = &["-rl", "--remove-destination", "d/a", "d"];
    let row = |about, words, gnu, rest| Row {
        about,
        words,
        gnu,
        ours: failed(missing, &["d/"]),
        rest,
    };
    check(&[
        row(
            "both have removed it",
            words,
            failed(unlinked, &["d/"]),
            &[],
        ),
        row(
            "another option",
            &["-rl", "d/a", "d"],
            failed(unlinked, &["d/"]),
            &[
                "stderr + cannot stat N: No such file or directory",
                "stderr - cannot create hard link N to N: No such file or directory",
            ],
        ),
    ]);
}

#[test]
fn a_backup_is_announced_only_of_a_dest_that_is_its_own_source() {
    let ours = failed("cp: 'a/' and 'a/../a' are the same file\n", &["a/"]);
    let row = |about, stdout, rest| Row {
        about,
        words: &["-rv", "--backup", "a/", "a/.."],
        gnu: Run {
            stdout,
            ..failed(
                "cp: cannot read symbolic link 'a/a': No such file or directory\n",
                &["a/"],
            )
        },
        ours,
        rest,
    };
    check(&[
        row(
            "cp makes the backup and takes it back",
            "'a/a' -> 'a/../a/a' (backup: 'a/../a/a~')\n'a/../a/a~' -> 'a/../a/a' (unbackup)\n",
            &[],
        ),
        row(
            "cp makes another backup",
            "'c' -> 'd/c' (backup: 'd/c~')\n",
            &["stdout - N)"],
        ),
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

#[test]
fn single_rows_reject_near_misses() {
    let exists = "cp: cannot create directory 'a/f': File exists\n";
    let unbackup = "cp: cannot un-backup 'a/f': No such file or directory\n";
    let just_created = "cp: will not overwrite just-created 'c/d' with 'd'\n";
    let denied = "cp: cannot create regular file 'd/a/f': Permission denied\n";
    let relative = "cp: d/f: can make relative symbolic links only in current directory\n";
    let no_reader = "cp: cannot create regular file 'd/./f': No such device or address\n";
    check(&[
        Row {
            about: "ours backs up the dest of a directory",
            words: &["-rb", "a/.", "d"],
            gnu: done(&["a/", "d/"]),
            ours: done(&["a/", "d/", "d~=x"]),
            rest: &[],
        },
        Row {
            about: "cp cannot make a directory that is not the dest",
            words: &["-rb", "a/.", "d"],
            gnu: failed(exists, &["a/"]),
            ours: done(&["a/"]),
            rest: &[
                "status Exit(1) != Exit(0)",
                "stderr - cannot create directory N: File exists",
            ],
        },
        Row {
            about: "cp cannot take a backup back, without a link that could cause it",
            words: &["-rb", "a", "d"],
            gnu: failed(unbackup, &["a/"]),
            ours: done(&["a/"]),
            rest: &[
                "status Exit(1) != Exit(0)",
                "stderr - cannot un-backup N: No such file or directory",
            ],
        },
        Row {
            about: "a dest that is a hard link is kept",
            words: &["-a", "e", "d", "c"],
            gnu: done(&["c/", "c/d=new"]),
            ours: failed(just_created, &["c/", "c/d=old"]),
            rest: &[],
        },
        Row {
            about: "another dest is kept, too",
            words: &["-a", "e", "d", "c"],
            gnu: done(&["c/", "c/d=new", "c/f=new"]),
            ours: failed(just_created, &["c/", "c/d=old", "c/f=old"]),
            rest: &["tree ~ content"],
        },
        Row {
            about: "a dest is kept without preserved links",
            words: &["-r", "e", "d", "c"],
            gnu: done(&["c/", "c/d=new"]),
            ours: failed(just_created, &["c/", "c/d=old"]),
            rest: &[
                "status Exit(0) != Exit(1)",
                "stderr + will not overwrite just-created N with N",
                "tree ~ content",
            ],
        },
        Row {
            about: "--parents gives a parent its mode at the end",
            words: &["-r", "--parents", "a/f", "a/g", "d"],
            gnu: failed(denied, &["d/", "d/a/:500"]),
            ours: done(&["d/", "d/a/:700", "d/a/f=x"]),
            rest: &[],
        },
        Row {
            about: "--parents gives a mode to a directory that is not a parent",
            words: &["-r", "--parents", "a/f", "a/g", "d"],
            gnu: done(&["d/", "d/a/", "d/a/f/:500"]),
            ours: done(&["d/", "d/a/", "d/a/f/:700"]),
            rest: &["tree ~ mode"],
        },
        Row {
            about: "--parents gives another mode to a file",
            words: &["-r", "--parents", "a/f", "a/g", "d"],
            gnu: done(&["d/", "d/a/", "d/a/f=x:500"]),
            ours: done(&["d/", "d/a/", "d/a/f=x:700"]),
            rest: &["tree ~ mode"],
        },
        Row {
            about: "--parents without the mode drops a bit that a parent inherits",
            words: &["-r", "--parents", "--no-preserve", "a/f", "d"],
            gnu: done(&["d/", "d/a/:2755"]),
            ours: done(&["d/", "d/a/:755"]),
            rest: &[],
        },
        Row {
            about: "another directory loses the bit",
            words: &["-r", "--parents", "--no-preserve", "a/f", "d"],
            gnu: done(&["d/", "d/a/:2755", "d/b/:2755"]),
            ours: done(&["d/", "d/a/:755", "d/b/:755"]),
            rest: &["tree ~ mode"],
        },
        Row {
            about: "--parents without the mode drops another bit",
            words: &["-r", "--parents", "--no-preserve", "a/f", "d"],
            gnu: done(&["d/", "d/a/:6755"]),
            ours: done(&["d/", "d/a/:755"]),
            rest: &["tree ~ mode"],
        },
        Row {
            about: "a parent of a single source has another mode",
            words: &["-r", "--parents", "a/f", "d"],
            gnu: done(&["d/", "d/a/:500"]),
            ours: done(&["d/", "d/a/:700"]),
            rest: &["tree ~ mode"],
        },
        Row {
            about: "-s does not remove the dest",
            words: &["-rs", "a/f", "d"],
            gnu: failed(relative, &["d/"]),
            ours: failed(relative, &["d/", "d/f=x"]),
            rest: &[],
        },
        Row {
            about: "-s does not remove another file",
            words: &["-rs", "a/f", "d"],
            gnu: failed(relative, &["d/"]),
            ours: failed(relative, &["d/", "d/g=x"]),
            rest: &["tree + File"],
        },
        Row {
            about: "cp waits for a reader",
            words: &["-r", "a/.", "d"],
            gnu: Run {
                status: -1,
                ..done(&["d/", "d/f|"])
            },
            ours: failed(no_reader, &["d/", "d/f|", "d/g=x"]),
            rest: &[],
        },
        Row {
            about: "cp waits for a reader, and ours loses the FIFO",
            words: &["-r", "a/.", "d"],
            gnu: Run {
                status: -1,
                ..done(&["d/", "d/f|"])
            },
            ours: failed(no_reader, &["d/"]),
            rest: &["tree - Fifo"],
        },
        Row {
            about: "the dest of a directory's entries has another mode",
            words: &["-a", "a/.", "."],
            gnu: done(&["a/", "a/f=x:644"]),
            ours: done(&["a/", "a/f=x:600"]),
            rest: &["tree ~ mode"],
        },
        Row {
            about: "cp cannot give a directory its mode, after it has forbidden the way to it",
            words: &["-a", "a/a", "a"],
            gnu: failed(
                "cp: preserving permissions for 'a': Permission denied\n",
                &["a/:755", "b/"],
            ),
            ours: done(&["a/:700", "b/"]),
            rest: &[],
        },
        Row {
            about: "another directory has another mode, too",
            words: &["-a", "a/a", "a"],
            gnu: failed(
                "cp: preserving permissions for 'a': Permission denied\n",
                &["a/", "b/:755"],
            ),
            ours: done(&["a/", "b/:700"]),
            rest: &["tree ~ mode"],
        },
        Row {
            about: "a directory that is a dest is copied before or after its entries",
            words: &["-r", "a/f", "a", "."],
            gnu: done(&["a/", "f=x"]),
            ours: done(&["a/", "f>x"]),
            rest: &[],
        },
        Row {
            about: "an entry elsewhere differs, too",
            words: &["-r", "a/f", "a/b", "a"],
            gnu: done(&["a/", "f=x"]),
            ours: done(&["a/", "f=y"]),
            rest: &["tree ~ content"],
        },
        Row {
            about: "a link to a directory is kept instead of a backup",
            words: &["-rb", "--keep-directory-symlink", "e", "d"],
            gnu: done(&["d/", "d/e/", "d/e~>x"]),
            ours: done(&["d/", "d/e>x"]),
            rest: &[],
        },
        Row {
            about: "a link is kept without a backup",
            words: &["-r", "--keep-directory-symlink", "e", "d"],
            gnu: done(&["d/", "d/e/"]),
            ours: done(&["d/", "d/e>x"]),
            rest: &["tree ~ mode", "tree ~ target", "tree ~ type"],
        },
        Row {
            about: "ours follows a link that it has backed up, and cp does not find it",
            words: &["-rLb", "a", "d"],
            gnu: failed(
                "cp: cannot stat 'a/l': No such file or directory\n",
                &["a/", "a/l>x", "d/"],
            ),
            ours: done(&["a/", "a/l>x", "d/", "d/l=x"]),
            rest: &[],
        },
        Row {
            about: "ours makes a file outside of the dest",
            words: &["-rLb", "a", "d"],
            gnu: failed(
                "cp: cannot stat 'a/l': No such file or directory\n",
                &["a/", "a/l>x", "d/"],
            ),
            ours: done(&["a/", "a/l>x", "b=x", "d/"]),
            rest: &["tree + File"],
        },
        Row {
            about: "ours loses a file of the dest",
            words: &["-rLb", "a", "d"],
            gnu: failed(
                "cp: cannot stat 'a/l': No such file or directory\n",
                &["a/", "a/l>x", "d/", "d/f=x"],
            ),
            ours: done(&["a/", "a/l>x", "d/"]),
            rest: &["tree - File"],
        },
        Row {
            about: "a link below the dest of a directory dangles for cp only",
            words: &["-r", "a", "b", "d"],
            gnu: failed(
                "cp: not writing through dangling symlink 'd/b/l'\n",
                &["d/", "d/b/", "d/b/l>x"],
            ),
            ours: done(&["d/", "d/b/", "d/b/l>x"]),
            rest: &[],
        },
        Row {
            about: "a dest of an operand dangles for ours only",
            words: &["-r", "a", "l", "d"],
            gnu: done(&["d/", "d/l>x"]),
            ours: failed(
                "cp: not writing through dangling symlink 'd/l'\n",
                &["d/", "d/l>x"],
            ),
            rest: &[
                "status Exit(0) != Exit(1)",
                "stderr + not writing through dangling symlink N",
            ],
        },
        Row {
            about: "ours does not find the target of a link that leads to a dest",
            words: &["-r", "--dereference", "a/.", "d"],
            gnu: done(&["a/", "a/l>x", "d/", "d/l/"]),
            ours: failed(
                "cp: cannot stat 'a/./l': No such file or directory\n",
                &["a/", "a/l>x", "d/"],
            ),
            rest: &[],
        },
        Row {
            about: "ours does not find a source, of which cp makes no copy",
            words: &["-r", "--dereference", "a/.", "d"],
            gnu: done(&["a/", "a/l>x", "d/"]),
            ours: failed(
                "cp: cannot stat 'a/./l': No such file or directory\n",
                &["a/", "a/l>x", "d/"],
            ),
            rest: &[
                "status Exit(0) != Exit(1)",
                "stderr + cannot stat N: No such file or directory",
            ],
        },
        Row {
            about: "the sticky bit is not that of an unfinished directory",
            words: &["-r", "a", "d"],
            gnu: done(&["d/:1755"]),
            ours: done(&["d/:755"]),
            rest: &["tree ~ mode"],
        },
        Row {
            about: "a file differs, without any deviation",
            words: &["-r", "a", "d"],
            gnu: done(&["d=x"]),
            ours: done(&["d=y"]),
            rest: &["tree ~ content"],
        },
    ]);
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

#[test]
fn rm_keeps_only_directories_that_it_cannot_look_into() {
    let unseen = "rm: cannot remove 'a/b': Permission denied\n";
    let presumes = |case: &mut Case| {
        (case.pair, case.called) = (Pair::Rm, Called::Own);
        let name = crate::case::PRESUME_TERMINAL;
        case.words.push(Word::Long { name, cut: 0 });
    };
    check_with(
        presumes,
        &[
            Row {
                about: "rm cannot look into a directory before it asks",
                words: &["a/b"],
                gnu: failed(unseen, &["a/", "a/b/"]),
                ours: done(&["a/"]),
                rest: &[],
            },
            Row {
                about: "ours removes another directory, too",
                words: &["a/b"],
                gnu: failed(unseen, &["a/", "a/b/", "a/c/"]),
                ours: done(&["a/"]),
                rest: &["tree - Directory"],
            },
            Row {
                about: "ours removes a file",
                words: &["a/b"],
                gnu: failed(unseen, &["a/", "a/b=x"]),
                ours: done(&["a/"]),
                rest: &["tree - File"],
            },
            Row {
                about: "ours keeps what rm removes",
                words: &["a/b"],
                gnu: done(&["a/"]),
                ours: failed(unseen, &["a/", "a/b/"]),
                rest: &["tree + Directory"],
            },
        ],
    );
    let strict = |case: &mut Case| {
        presumes(case);
        case.called = Called::Gnus("");
    };
    check_with(
        strict,
        &[Row {
            about: "ours asks, too, under the name of rm",
            words: &["a/b"],
            gnu: failed(unseen, &["a/", "a/b/"]),
            ours: done(&["a/"]),
            rest: &[
                "status Exit(1) != Exit(0)",
                "stderr - cannot remove N: Permission denied",
                "tree - Directory",
            ],
        }],
    );
}

#[test]
fn a_dest_that_s_has_kept_is_not_another_one() {
    let kept = "cp: d/f: can make relative symbolic links only in current directory\n";
    check(&[
        Row {
            about: "a later directory is copied to the dest that cp has removed",
            words: &["-rs", "f", "a/f", "d"],
            gnu: failed(kept, &["d/", "d/f/"]),
            ours: failed(kept, &["d/", "d/f=x"]),
            rest: &[],
        },
        Row {
            about: "another dest is a directory in one tree only",
            words: &["-rs", "f", "a/f", "d"],
            gnu: failed(kept, &["d/", "d/f/", "d/g/"]),
            ours: failed(kept, &["d/", "d/f=x", "d/g=x"]),
            rest: &[
                "tree ~ content",
                "tree ~ mode",
                "tree ~ size",
                "tree ~ type",
            ],
        },
    ]);
}
