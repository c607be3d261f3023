//! Tests of reading argv, by a table with rows of each kind.
//!
//! The commands' own tests compare their tables with the installed tools.

use super::*;
use crate::invocation::Personality;
use Id::{Backup, Bare, Force, Parents, Target, Threads, Update};
use std::ffi::OsString;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    Force,
    Bare,
    Backup,
    Parents,
    Target,
    Threads,
    Update,
}

static TABLE: Table<Id> = Table {
    name: "tool",
    usage: &["[OPTION]... FILE", "-t DIR"],
    about: "Does things.\n",
    own_about: "Better.\n",
    operands: OperandHelp {
        name: "FILE",
        help: "a thing",
    },
    flags: &[
        Flag::gnu(Force, "fF", "force", "by force"),
        Flag::gnu(Bare, "b", "", "has no long name"),
        Flag::gnu(Backup, "", "backup", "with a backup,\nor none")
            .optional("HOW", Accepts::OneOf(&["well", "badly"])),
        Flag::gnu(Target, "t", "target-directory", "into DIR").required("DIR", Accepts::Directory),
        Flag::gnu(Update, "u", "", "only if older"),
        Flag::gnu(Update, "", "update", "only these")
            .optional("WHEN", Accepts::ListOf(&["older", "newer"])),
        Flag::gnu(Force, "", "no-preserve-root", "").in_full(),
        Flag::gnu(Parents, "", "parents", ""),
        Flag::gnu(Parents, "", "path", "")
            .spelling_of("parents")
            .hidden(),
        Flag::help(),
        Flag::version(),
        Flag::extension(Threads, "threads", "many").required("N", Accepts::Text),
    ],
    notes: "That is all.\n",
    own_notes: "Not quite.\n",
};

/// Reads words, and returns the flags and operands, and why it stopped: an error comes with its suggestion.
fn read(words: &str, personality: Personality, order: ArgOrder) -> String {
    let arguments: Vec<OsString> = words.split(' ').map(OsString::from).collect();
    let scan = Scan::of(&TABLE, &arguments, personality, order);
    let flags = scan.matched.iter().map(|flag| match &flag.value {
        Some(value) => format!("{:?}={}", flag.id, value.display()),
        None => format!("{:?}", flag.id),
    });
    let operands = scan.operands.iter().map(|it| it.display().to_string());
    let mut read: Vec<String> = flags.chain(operands).collect();
    match scan.stop {
        Some(Stop::Error(error)) => {
            read.push(format!("! {}", String::from_utf8_lossy(&error.message)));
            read.extend(error.suggestion);
        }
        Some(stop) => read.push(format!("! {stop:?}")),
        None => {}
    }
    read.join(" ")
}

#[test]
fn words_are_flags_values_and_operands() {
    let shortened = "did you mean '--threads'? (extensions cannot be shortened)";
    for (words, expected) in [
        // Flags may be among operands, and what follows two dashes is none.
        ("a -f b - --backup c", "Force Backup a b - c"),
        ("-f -- -f -- --help", "Force -f -- --help"),
        // Values are attached or apart. None differs from an empty one.
        ("-tx", "Target=x"),
        ("-t x", "Target=x"),
        ("--target-directory=x", "Target=x"),
        ("--target-directory x", "Target=x"),
        ("--targ=x", "Target=x"),
        ("-t --", "Target=--"),
        ("-fbt=x", "Force Bare Target==x"),
        ("--backup", "Backup"),
        ("--backup=", "Backup="),
        ("--target-directory=", "Target="),
        // An optional value goes with the long name only.
        ("--upd=x", "Update=x"),
        ("-u x", "Update x"),
        ("-ux", "Update ! invalid option -- 'x'"),
        // Flags keep their order, and stay if an error comes after them.
        (
            "-b -t x -Fb --backup=y -ty --force",
            "Bare Target=x Force Bare Backup=y Target=y Force",
        ),
        ("-f -bx --help a", "Force Bare ! invalid option -- 'x'"),
        ("a --he --nonsense", "a ! Help"),
        ("--v", "! Version"),
        // Two spellings of one option are not ambiguous, and some names cannot be abbreviated.
        ("--pa", "Parents"),
        ("--no-preserve-root", "Force"),
        (
            "--no-preserve-roo",
            "! you may not abbreviate the --no-preserve-root option",
        ),
        // Nor can extensions.
        ("--threads=3", "Threads=3"),
        ("--threads 3", "Threads=3"),
        ("--t=3", "Target=3"),
        (
            "--thread=3",
            &format!("! unrecognized option '--thread=3' {shortened}"),
        ),
        ("--th", &format!("! unrecognized option '--th' {shortened}")),
        // The most similar option is suggested, unless it is hidden.
        (
            "--bakcup=x",
            "! unrecognized option '--bakcup=x' did you mean '--backup'?",
        ),
        (
            "--target-dirctory",
            "! unrecognized option '--target-dirctory' did you mean '--target-directory'?",
        ),
        (
            "--treads=3",
            "! unrecognized option '--treads=3' did you mean '--threads'?",
        ),
        ("--xyz", "! unrecognized option '--xyz'"),
        ("--bwlimit=1M", "! unrecognized option '--bwlimit=1M'"),
        ("--ppath", "! unrecognized option '--ppath'"),
    ] {
        assert_eq!(read(words, Personality::Extended, ArgOrder::Any), expected);
    }
    // Under POSIXLY_CORRECT, flags end at the first operand.
    let posix = read(
        "-f a --help --",
        Personality::Extended,
        ArgOrder::OptionsFirst,
    );
    assert_eq!(posix, "Force a --help --");
    // The strict personality knows no extensions, and only says where one is.
    for (words, suggestion) in [
        ("--threads=3", " '--threads' is an option of tool"),
        ("--bakcup", ""),
        ("--thread", ""),
    ] {
        let expected = format!("! unrecognized option '{words}'{suggestion}");
        assert_eq!(read(words, Personality::Strict, ArgOrder::Any), expected);
    }
}

#[test]
fn keeps_bytes_that_are_not_utf8() {
    use std::os::unix::ffi::OsStringExt;
    let value = OsString::from_vec(b"\xff=\xfe".to_vec());
    let arguments = ["-t".into(), value.clone(), value.clone()];
    let scan = Scan::of(&TABLE, &arguments, Personality::Extended, ArgOrder::Any);
    assert_eq!(scan.operands.as_slice(), std::slice::from_ref(&value));
    assert_eq!(scan.matched[0].value.clone(), Some(value));
}

#[test]
fn help_lists_every_row_that_is_not_hidden() {
    let help = String::from_utf8(TABLE.help(b"./x", Personality::Extended)).unwrap();
    let expected = "\
Usage: ./x [OPTION]... FILE
  or:  ./x -t DIR
Does things.
Better.

  -f, -F, --force             by force
  -b                          has no long name
      --backup[=HOW]          with a backup,
                                or none
  -t, --target-directory=DIR  into DIR
  -u                          only if older
      --update[=WHEN]         only these
";
    assert!(help.starts_with(expected), "{help}");
    assert!(!help.contains("--path"));
    assert!(help.contains("      --threads=N             many\n"));
}

#[test]
fn help_of_the_strict_personality_lists_no_extension() {
    let help = String::from_utf8(TABLE.help(b"x", Personality::Strict)).unwrap();
    assert!(!help.contains("threads") && !help.contains("xtension"));
    assert!(!help.contains("Better") && help.ends_with("That is all.\n"));
}
