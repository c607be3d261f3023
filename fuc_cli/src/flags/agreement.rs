//! Checks for tests of a flag table: whether clap's description of it agrees with the scan, and with the code that
//! resolves the options.

use std::ffi::OsString;
use std::fmt::Debug;

use clap::builder::{PossibleValue, Str};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command, ValueHint};

use super::{
    Accepts, Flag, Listing, Meaning, Occurrence, Operands, Order, Scan, Stop, Table, Value,
};
use crate::invocation::Personality;

const PERSONALITIES: [Personality; 2] = [Personality::Strict, Personality::Extended];

/// How a parser reads a command line: the last occurrence of each flag, in the order of the table.
#[derive(Debug, PartialEq)]
enum Reading<I> {
    Run {
        flags: Vec<(I, Option<OsString>)>,
        operands: Vec<OsString>,
    },
    Help,
    Version,
    Refused,
}

/// A table under test.
#[derive(Debug)]
pub struct Agreement<'a, I: 'static>(pub &'a Table<I>);

impl<I: Copy + Debug + PartialEq> Agreement<'_, I> {
    /// Asserts that clap has each row with all its properties, and nothing else.
    ///
    /// # Panics
    /// If a property differs.
    pub fn clap_has_the_rows(&self) {
        for personality in PERSONALITIES {
            let command = self.0.clap_command("x", "1", personality);
            command.clone().debug_assert();
            for flag in self.0.flags {
                match find(&command, flag) {
                    Some(arg) => assert_row(arg, flag),
                    None => {
                        let left_out = !flag.is_known_to(personality) || flag.long.starts_with('-');
                        assert!(left_out, "clap lacks {flag:?}");
                    }
                }
            }
            for arg in command.get_arguments().filter(|arg| !arg.is_positional()) {
                let mut rows = self.0.flags.iter();
                let row = rows.find(|flag| find(&command, flag).is_some_and(|found| found == arg));
                let row = row.unwrap_or_else(|| panic!("clap alone has {arg:?}"));
                assert!(row.is_known_to(personality), "{personality:?} has {arg:?}");
            }
            assert_operands(&command, self.0.operands);
        }
    }

    /// Asserts that the command accepts each word that the table has for a flag's value, and no
    /// other word. `resolves` returns `true` if a flag with a value is not a usage error.
    ///
    /// # Panics
    /// If the command and the table differ.
    pub fn words_are_accepted(&self, resolves: impl Fn(Occurrence<I>) -> bool) {
        for flag in self.0.flags {
            let (words, list) = match flag.accepts {
                Accepts::Text | Accepts::Directory | Accepts::File => continue,
                Accepts::OneOf(words) => (words, None),
                Accepts::ListOf(words) => (words, Some(words.join(","))),
            };
            let Meaning::Sets(id) = flag.meaning else {
                panic!("{flag:?} takes a value");
            };
            let accepts = |value: &str| {
                resolves(Occurrence {
                    id,
                    value: Some(value.into()),
                })
            };
            for word in words.iter().copied().chain(list.as_deref()) {
                assert!(accepts(word), "--{}={word} is refused", flag.long);
                let other = format!("{word}?");
                assert!(!accepts(&other), "--{}={other} is accepted", flag.long);
            }
        }
    }

    /// Asserts that clap reads each spelling of each flag as the scan does, with a value and
    /// without, and these `lines` too.
    ///
    /// # Panics
    /// If a line is read in two ways.
    pub fn clap_reads_as_the_scan(&self, lines: &[&[&str]]) {
        let generated = self.0.flags.iter().flat_map(lines_with);
        let lines = lines
            .iter()
            .map(|line| line.iter().map(ToString::to_string).collect());
        for line in generated.chain(lines) {
            for personality in PERSONALITIES {
                let line: Vec<OsString> = line.iter().map(OsString::from).collect();
                let by_clap = self.read_by_clap(&line, personality);
                let by_scan = self.read_by_scan(&line, personality);
                assert_eq!(by_clap, by_scan, "{personality:?}: {line:?}");
            }
        }
    }

    fn read_by_scan(&self, line: &[OsString], personality: Personality) -> Reading<I> {
        let scan = Scan::of(self.0, line, personality, Order::Any);
        match scan.stop {
            Some(Stop::Help) => return Reading::Help,
            Some(Stop::Version) => return Reading::Version,
            Some(Stop::Error(_)) => return Reading::Refused,
            None => {}
        }
        let last = |id: I| scan.matched.iter().rev().find(|flag| flag.id == id);
        let flags = self.ids().into_iter().filter_map(last);
        Reading::Run {
            flags: flags.map(|flag| (flag.id, flag.value.clone())).collect(),
            operands: scan.operands,
        }
    }

    fn read_by_clap(&self, line: &[OsString], personality: Personality) -> Reading<I> {
        let command = self
            .0
            .clap_command("x", "1", personality)
            .no_binary_name(true);
        let matches = match command.clone().try_get_matches_from(line) {
            Ok(matches) => matches,
            Err(error) => {
                return match error.kind() {
                    ErrorKind::DisplayHelp => Reading::Help,
                    ErrorKind::DisplayVersion => Reading::Version,
                    _ => Reading::Refused,
                };
            }
        };
        let read = |flag: &Flag<I>| {
            let (Meaning::Sets(id), Some(arg)) = (flag.meaning, find(&command, flag)) else {
                return None;
            };
            let arg_id = arg.get_id().as_str();
            let raw = matches.get_raw_occurrences(arg_id);
            let last = raw.and_then(|mut occurrences| occurrences.next_back());
            let is_given = match flag.value {
                Value::None => matches.get_flag(arg_id),
                Value::Optional(_) | Value::Required(_) => matches.contains_id(arg_id),
            };
            let values: Vec<_> = last.into_iter().flatten().collect();
            let value = match flag.value {
                Value::None => None,
                Value::Optional(_) | Value::Required(_) if values.is_empty() => None,
                Value::Optional(_) | Value::Required(_) => Some(values.join(",".as_ref())),
            };
            is_given.then_some((id, value))
        };
        let given: Vec<(I, Option<OsString>)> = self.0.flags.iter().filter_map(read).collect();
        let find_id = |id: I| given.iter().find(|(given, _)| *given == id).cloned();
        let operands = matches.get_many("operands").into_iter().flatten();
        Reading::Run {
            flags: self.ids().into_iter().filter_map(find_id).collect(),
            operands: operands.cloned().collect(),
        }
    }

    /// Returns each id once.
    fn ids(&self) -> Vec<I> {
        let mut ids = Vec::new();
        for flag in self.0.flags {
            match flag.meaning {
                Meaning::Sets(id) if !ids.contains(&id) => ids.push(id),
                Meaning::Sets(_) | Meaning::Help | Meaning::Version => {}
            }
        }
        ids
    }
}

/// Finds the argument that has the first name of `flag`, as clap would.
fn find<'a, I: Copy>(command: &'a Command, flag: &Flag<I>) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| {
        if flag.long.is_empty() {
            arg.get_short() == flag.shorts.chars().next()
        } else {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            arg.get_long() == Some(flag.long) || aliases.contains(&flag.long)
        }
    })
}

fn assert_operands(command: &Command, operands: Operands) {
    let args: Vec<&Arg> = command.get_positionals().collect();
    let [arg] = args[..] else {
        panic!("operands are one argument: {args:?}");
    };
    assert_eq!(arg.get_value_names(), Some(&[operands.name.into()][..]));
    assert_eq!(
        arg.get_help().map(ToString::to_string).as_deref(),
        Some(operands.help)
    );
    assert_eq!(arg.get_value_hint(), ValueHint::AnyPath);
}

fn assert_row<I: Copy + Debug>(arg: &Arg, flag: &Flag<I>) {
    let is_main = flag.spelling_of == flag.long;
    let visible: Vec<&str> = arg.get_visible_aliases().unwrap_or_default();
    let is_listed = flag.listing == Listing::Shown;
    if !is_main {
        assert_eq!(visible.contains(&flag.long), is_listed, "{flag:?}");
        return;
    }
    assert_eq!(
        arg.get_long(),
        Some(flag.long).filter(|long| !long.is_empty())
    );
    let shorts: String = arg
        .get_short_and_visible_aliases()
        .unwrap_or_default()
        .iter()
        .collect();
    assert_eq!(shorts, flag.shorts, "{flag:?}");
    assert_eq!(arg.is_hide_set(), !is_listed, "{flag:?}");
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    assert_eq!(help, flag.help.replace('\n', " "), "{flag:?}");
    assert_value(arg, flag);
}

fn assert_value<I: Copy + Debug>(arg: &Arg, flag: &Flag<I>) {
    let names: Vec<&str> = arg
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .map(Str::as_str)
        .collect();
    let possible = arg.get_possible_values();
    let words: Vec<&str> = possible.iter().map(PossibleValue::get_name).collect();
    let action = arg.get_action();
    let (word, range) = match flag.value {
        Value::None => {
            assert!(!action.takes_values(), "{flag:?}: {action:?}");
            assert!(names.is_empty(), "{flag:?}: {names:?}");
            return;
        }
        Value::Optional(word) => (word, Some((0..=1).into())),
        Value::Required(word) => (word, None),
    };
    assert!(action.takes_values(), "{flag:?}: {action:?}");
    assert_eq!(names, [word], "{flag:?}");
    assert_eq!(arg.get_num_args(), range, "{flag:?}");
    let (expected, hint) = match flag.accepts {
        Accepts::Text => (&[][..], ValueHint::Other),
        Accepts::File => (&[][..], ValueHint::FilePath),
        Accepts::Directory => (&[][..], ValueHint::DirPath),
        Accepts::OneOf(words) => (words, ValueHint::Unknown),
        Accepts::ListOf(words) => (words, ValueHint::Unknown),
    };
    assert_eq!(words, expected, "{flag:?}");
    assert_eq!(arg.get_value_hint(), hint, "{flag:?}");
    let is_list = matches!(flag.accepts, Accepts::ListOf(_));
    assert_eq!(matches!(action, ArgAction::Append), is_list, "{flag:?}");
    assert_eq!(
        arg.get_value_delimiter(),
        is_list.then_some(','),
        "{flag:?}"
    );
}

/// Returns command lines with each spelling of a flag: alone, with an operand, and with a value.
fn lines_with<I: Copy>(flag: &Flag<I>) -> Vec<Vec<String>> {
    let value = match flag.accepts {
        Accepts::Text | Accepts::Directory | Accepts::File => "-v=".to_owned(),
        Accepts::OneOf(words) => words[0].to_owned(),
        Accepts::ListOf(words) => words.join(","),
    };
    let mut lines = Vec::new();
    let mut push = |line: &[&str]| lines.push(line.iter().map(ToString::to_string).collect());
    let shorts = flag.shorts.chars().map(|short| format!("-{short}"));
    let longs = Some(flag.long).filter(|long| !long.is_empty() && !long.starts_with('-'));
    for name in shorts.chain(longs.map(|long| format!("--{long}"))) {
        let separator = if name.starts_with("--") { "=" } else { "" };
        push(&[&name]);
        push(&["a", &name, &value]);
        push(&[&name, &value, "b", "--", &name]);
        // clap alone refuses "--" because it is not one of the words.
        let takes_words = matches!(flag.accepts, Accepts::OneOf(_) | Accepts::ListOf(_));
        if !takes_words || matches!(flag.value, Value::Optional(_)) {
            push(&[&name, "--", "b"]);
        }
        if name.starts_with("--") || flag.value != Value::None {
            push(&[&format!("{name}{separator}{value}"), "b"]);
        }
        push(&[&name, &value, &name, &value]);
    }
    lines
}
