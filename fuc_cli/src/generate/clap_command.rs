//! The table as a [`clap::Command`], from which clap's generators make completions and a synopsis.

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgAction, Command, ValueHint};

use super::Manual;
use crate::flags::{Accepts, Flag, Meaning, Table, Value};

/// Describes the command of a manual page, with the flags, operands and usage that the table has for it.
///
/// Flags whose long name begins with a third dash are left out, because clap has no such names, and so are second
/// spellings. All of these are hidden anyway.
pub(super) fn clap_command<I: Copy>(table: &Table<I>, manual: &Manual) -> Command {
    let has_name = |flag: &&Flag<I>| !flag.long.starts_with('-') && flag.spelling_of == flag.long;
    let usages: Vec<String> = table
        .usage
        .iter()
        .map(|usage| format!("{} {usage}", manual.name))
        .collect();
    let mut command = Command::new(manual.name)
        .version(manual.version)
        .about(manual.summary)
        .override_usage(usages.join("\n       "))
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(table.flags.iter().filter(has_name).map(arg))
        .arg(operands_arg(table));
    command.build();
    command
}

fn operands_arg<I: Copy>(table: &Table<I>) -> Arg {
    Arg::new("operands")
        .value_name(table.operands.name)
        .help(table.operands.help)
        .num_args(0..)
        .value_parser(ValueParser::os_string())
        .value_hint(ValueHint::AnyPath)
}

fn arg<I: Copy>(flag: &Flag<I>) -> Arg {
    let mut arg = Arg::new(id(flag))
        .help(flag.help.replace('\n', " "))
        .hide(flag.is_hidden);
    if !flag.long.is_empty() {
        arg = arg.long(flag.long);
    }
    let mut shorts = flag.shorts.chars();
    if let Some(short) = shorts.next() {
        arg = arg.short(short).visible_short_aliases(shorts);
    }
    match (flag.meaning, flag.value) {
        (Meaning::Help, _) => arg.action(ArgAction::Help),
        (Meaning::Version, _) => arg.action(ArgAction::Version),
        (Meaning::Sets(_), Value::None) => arg.action(ArgAction::SetTrue),
        (Meaning::Sets(_), Value::Optional(word)) => {
            with_value(arg.num_args(0..=1).require_equals(true), word, flag.accepts)
        }
        (Meaning::Sets(_), Value::Required(word)) => {
            with_value(arg.allow_hyphen_values(true), word, flag.accepts)
        }
    }
}

/// Returns the name by which clap knows the flag.
fn id<I>(flag: &Flag<I>) -> &'static str {
    if flag.long.is_empty() {
        &flag.shorts[..1]
    } else {
        flag.long
    }
}

fn with_value(arg: Arg, word: &'static str, accepts: Accepts) -> Arg {
    let arg = arg.value_name(word);
    let hint = match accepts {
        Accepts::Text => ValueHint::Other,
        Accepts::File => ValueHint::FilePath,
        Accepts::Directory => ValueHint::DirPath,
        Accepts::OneOf(words) => return arg.value_parser(PossibleValuesParser::new(words)),
        // Each list adds to those before it.
        Accepts::ListOf(words) => {
            return arg
                .value_parser(PossibleValuesParser::new(words))
                .value_delimiter(',')
                .action(ArgAction::Append);
        }
    };
    arg.value_parser(ValueParser::os_string()).value_hint(hint)
}
