//! Tests of the rows about dests that exist.

use super::*;

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

#[test]
fn a_dest_that_an_operand_between_has_replaced_is_still_just_created() {
    let words: &[&str] = &["-rv", "--backup", "a/f", "a/.", "f", "d"];
    let refused = "cp: will not overwrite just-created 'd/f' with 'f'\n";
    let row = |about, words, stdout, rest| Row {
        about,
        words,
        gnu: Run {
            stdout,
            ..failed("", &["d/", "d/f=y"])
        },
        ours: failed(refused, &["d/", "d/f=x"]),
        rest,
    };
    check(&[
        row("cp overwrites it", words, "'f' -> 'd/f'\n", &[]),
        row(
            "cp overwrites another file",
            words,
            "'f' -> 'd/g'\n",
            &["stdout - N -> N"],
        ),
        row(
            "no operand comes between",
            &["-rv", "--backup", "a/f", "f", "d"],
            "'f' -> 'd/f'\n",
            &[
                "stderr + will not overwrite just-created N with N",
                "stdout - N -> N",
                "tree ~ content",
            ],
        ),
    ]);
}

#[test]
fn the_entries_of_a_directory_are_copied_to_itself_only_by_cp() {
    let same = "cp: 'a/.' and 'd/.' are the same file\n";
    let row = |about, words, gnu, rest| Row {
        about,
        words,
        gnu: done(gnu),
        ours: failed(same, &["d/", "d/f>.."]),
        rest,
    };
    let words: &[&str] = &["-rL", "--backup", "a/.", "d"];
    let copied: &[&str] = &["d/", "d/f/", "d/f~>.."];
    check(&[
        row("cp makes a backup and a copy", words, copied, &[]),
        row(
            "cp makes another file",
            words,
            &["d/", "d/f>..", "e=x"],
            &["tree - File"],
        ),
        row(
            "no backup is made",
            &["-rL", "a/.", "d"],
            copied,
            &[
                "tree - Symlink",
                "tree ~ mode",
                "tree ~ target",
                "tree ~ type",
            ],
        ),
    ]);
}
