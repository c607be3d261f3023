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

fn scan(arguments: &[&str]) -> Scan<Id> {
    let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    Scan::of(&TABLE, &arguments, Personality::Extended, ArgOrder::Any)
}

fn given(arguments: &[&str]) -> Vec<(Id, Option<String>)> {
    let scan = scan(arguments);
    assert_eq!(scan.stop, None);
    scan.matched
        .into_iter()
        .map(|flag| {
            (
                flag.id,
                flag.value.map(|value| value.into_string().unwrap()),
            )
        })
        .collect()
}

fn with(value: &str) -> Option<String> {
    Some(value.into())
}

fn error_message(scan: &Scan<Id>) -> &str {
    match &scan.stop {
        Some(Stop::Error(error)) => str::from_utf8(&error.message).unwrap(),
        other => panic!("no usage error but {other:?}"),
    }
}

#[test]
fn finds_flags_among_operands() {
    let scan = scan(&["a", "-f", "b", "-", "--backup", "c"]);
    assert_eq!(scan.operands, ["a", "b", "-", "c"]);
    assert_eq!(scan.matched.len(), 2);
}

#[test]
fn treats_everything_after_two_dashes_as_operands() {
    let scan = scan(&["-f", "--", "-f", "--", "--help"]);
    assert_eq!(scan.operands, ["-f", "--", "--help"]);
    assert_eq!(scan.stop, None);
}

#[test]
fn ends_flags_at_the_first_operand_under_posixly_correct() {
    let arguments = ["-f", "a", "--help", "--"].map(OsString::from);
    let scan = Scan::of(
        &TABLE,
        &arguments,
        Personality::Extended,
        ArgOrder::OptionsFirst,
    );
    assert_eq!(scan.operands, ["a", "--help", "--"]);
    assert_eq!(scan.matched.len(), 1);
}

#[test]
fn accepts_values_attached_and_apart() {
    for arguments in [
        &["-tx"][..],
        &["-t", "x"],
        &["--target-directory=x"],
        &["--target-directory", "x"],
        &["--targ=x"],
    ] {
        assert_eq!(given(arguments), [(Target, with("x"))]);
    }
    assert_eq!(given(&["-t", "--"]), [(Target, with("--"))]);
    assert_eq!(given(&["-fbt=x"])[2], (Target, with("=x")));
}

#[test]
fn distinguishes_no_value_from_an_empty_one() {
    assert_eq!(given(&["--backup"]), [(Backup, None)]);
    assert_eq!(given(&["--backup="]), [(Backup, with(""))]);
    assert_eq!(given(&["--target-directory="]), [(Target, with(""))]);
}

#[test]
fn keeps_the_order_in_which_flags_were_given() {
    let ids: Vec<Id> = given(&["-b", "-t", "x", "-Fb", "--backup=y", "-ty", "--force"])
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    assert_eq!(ids, [Bare, Target, Force, Bare, Backup, Target, Force]);
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
fn stops_at_the_first_error_and_keeps_what_came_before() {
    let scan = scan(&["-f", "-bx", "--help", "a"]);
    assert_eq!(error_message(&scan), "invalid option -- 'x'");
    assert_eq!(scan.matched.len(), 2);
}

#[test]
fn stops_at_help_and_version_by_any_prefix() {
    assert_eq!(scan(&["a", "--he", "--nonsense"]).stop, Some(Stop::Help));
    assert_eq!(scan(&["--v"]).stop, Some(Stop::Version));
}

#[test]
fn accepts_an_optional_value_only_with_the_long_name() {
    assert_eq!(given(&["--upd=x"]), [(Update, with("x"))]);
    assert_eq!(given(&["-u", "x"]), [(Update, None)]);
    assert_eq!(error_message(&scan(&["-ux"])), "invalid option -- 'x'");
}

#[test]
fn two_spellings_of_one_option_are_not_ambiguous() {
    assert_eq!(given(&["--pa"]), [(Parents, None)]);
}

#[test]
fn an_extension_is_never_abbreviated_or_offered_as_a_possibility() {
    assert_eq!(given(&["--threads=3"]), [(Threads, with("3"))]);
    assert_eq!(given(&["--threads", "3"]), [(Threads, with("3"))]);
    assert_eq!(given(&["--t=3"]), [(Target, with("3"))]);
    assert_eq!(
        error_message(&scan(&["--thread=3"])),
        "unrecognized option '--thread=3'"
    );
}

#[test]
fn extensions_are_unknown_to_the_strict_personality() {
    let arguments = ["--threads=3".into()];
    let scan = Scan::of(&TABLE, &arguments, Personality::Strict, ArgOrder::Any);
    assert_eq!(error_message(&scan), "unrecognized option '--threads=3'");
}

fn suggestion(argument: &str, personality: Personality) -> Option<String> {
    let scan = Scan::of(&TABLE, &[argument.into()], personality, ArgOrder::Any);
    match scan.stop {
        Some(Stop::Error(error)) => error.suggestion,
        other => panic!("no usage error but {other:?}"),
    }
}

#[test]
fn a_misspelt_option_is_answered_with_the_most_similar_one() {
    for (argument, suggested) in [
        ("--bakcup=x", Some("did you mean '--backup'?")),
        (
            "--target-dirctory",
            Some("did you mean '--target-directory'?"),
        ),
        ("--treads=3", Some("did you mean '--threads'?")),
        ("--xyz", None),
        ("--bwlimit=1M", None),
        // A hidden spelling is not suggested.
        ("--ppath", None),
    ] {
        let given = suggestion(argument, Personality::Extended);
        assert_eq!(given.as_deref(), suggested, "{argument}");
    }
}

#[test]
fn a_shortened_extension_is_answered_with_the_reason_for_its_refusal() {
    let reason = "did you mean '--threads'? (extensions cannot be shortened)";
    for argument in ["--thread=3", "--th"] {
        let given = suggestion(argument, Personality::Extended);
        assert_eq!(given.as_deref(), Some(reason), "{argument}");
    }
}

#[test]
fn the_strict_personality_only_says_where_an_extension_is() {
    for argument in ["--bakcup", "--thread"] {
        assert_eq!(suggestion(argument, Personality::Strict), None);
    }
    let suggestion = suggestion("--threads=2", Personality::Strict);
    let expected = "'--threads' is an option of tool";
    assert_eq!(suggestion.as_deref(), Some(expected));
}

#[test]
fn some_names_cannot_be_abbreviated() {
    assert_eq!(
        error_message(&scan(&["--no-preserve-roo"])),
        "you may not abbreviate the --no-preserve-root option"
    );
    assert_eq!(given(&["--no-preserve-root"]), [(Force, None)]);
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
