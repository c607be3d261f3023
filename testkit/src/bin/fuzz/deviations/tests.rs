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

mod attributes;
mod consequences;
mod operands;
mod overwriting;
mod parents;
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

/// Returns a case that runs without privileges. Its tree has a FIFO.
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
            about: "cp waits for a reader of a FIFO that it has made twice",
            words: &["-r", "a/f", "a/.", "f", "d"],
            gnu: Run {
                status: -1,
                ..done(&["d/", "d/f|"])
            },
            ours: failed(
                "cp: will not overwrite just-created 'd/f' with 'f'\n",
                &["d/", "d/f|"],
            ),
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
            about: "a file differs, without any deviation",
            words: &["-r", "a", "d"],
            gnu: done(&["d=x"]),
            ours: done(&["d=y"]),
            rest: &["tree ~ content"],
        },
    ]);
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
