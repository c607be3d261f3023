//! The table as a [`clap::Command`], which generators of completions and manual pages read.
//!
//! No run uses it, so that release builds of the commands do not contain clap.

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgAction, Command, ValueHint};

use super::{Accepts, Flag, Meaning, Origin, Table, Value};
use crate::invocation::Personality;

/// The heading of the flags that GNU's tool does not have.
const EXTENSIONS: &str = "Extensions, which cannot be abbreviated";

impl<I: Copy> Table<I> {
    /// Describes the command `name` of this personality, with the flags, operands and usage that
    /// the table has for it.
    ///
    /// An occurrence of a flag overrides an earlier one. Flags whose long name begins with a third
    /// dash are left out, because clap has no such names; these are hidden anyway.
    #[must_use]
    pub fn clap_command(
        &self,
        name: &'static str,
        version: &'static str,
        personality: Personality,
    ) -> Command {
        let has_name = |flag: &&Flag<I>| !flag.long.starts_with('-');
        let known = self
            .flags
            .iter()
            .filter(|flag| flag.is_known_to(personality))
            .filter(has_name);
        let main_spellings = known.filter(|flag| flag.spelling_of == flag.long);
        let usages: Vec<String> = self
            .usage
            .iter()
            .map(|usage| format!("{name} {usage}"))
            .collect();
        Command::new(name)
            .version(version)
            .about(self.about.trim())
            .after_help(self.notes.trim())
            .override_usage(usages.join("\n       "))
            .disable_help_flag(true)
            .disable_version_flag(true)
            .args_override_self(true)
            .args(main_spellings.map(|flag| self.arg(flag, personality)))
            .arg(self.operands_arg())
    }

    fn operands_arg(&self) -> Arg {
        Arg::new("operands")
            .value_name(self.operands.name)
            .help(self.operands.help)
            .num_args(0..)
            .value_parser(ValueParser::os_string())
            .value_hint(ValueHint::AnyPath)
    }

    fn arg(&self, flag: &Flag<I>, personality: Personality) -> Arg {
        let mut arg = Arg::new(id(flag))
            .help(flag.help.replace('\n', " "))
            .hide(flag.is_hidden);
        if flag.origin == Origin::Extension {
            arg = arg.help_heading(EXTENSIONS);
        }
        if !flag.long.is_empty() {
            arg = arg.long(flag.long);
        }
        let mut shorts = flag.shorts_of(personality).chars();
        if let Some(short) = shorts.next() {
            arg = arg.short(short).visible_short_aliases(shorts);
        }
        for spelling in self.other_spellings(flag) {
            arg = match spelling.is_hidden {
                false => arg.visible_alias(spelling.long),
                true => arg.alias(spelling.long),
            };
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

    fn other_spellings(&self, flag: &Flag<I>) -> impl Iterator<Item = &'static Flag<I>> {
        let long = flag.long;
        self.flags
            .iter()
            .filter(move |row| row.spelling_of == long && row.long != long)
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
