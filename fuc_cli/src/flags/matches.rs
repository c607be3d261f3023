//! clap's part: from flags in canonical form to what was given, last one winning.
//!
//! The clap command holds just the rows that were met: with none, clap is not asked at all.
//! `rmz FILE` is the commonest call there is, and its cost is start-up.

use std::ffi::OsString;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, Command};

use super::{Flag, Given, Meaning, Scan, Table};

/// Stands for "no value", which to `--backup` is something else than the empty one. argv cannot hold it.
const NO_VALUE: &str = "\0";

impl<I: Copy> Scan<I> {
    /// The flags that were given, in the order of argv.
    ///
    /// Whoever folds them, later over earlier, gets "the last of conflicting flags wins".
    #[must_use]
    pub fn given(&mut self) -> Vec<Given<I>> {
        if self.met.is_empty() {
            return Vec::new();
        }
        let mut rows: Vec<&'static Flag<I>> = Vec::new();
        for &(flag, _) in &self.met {
            if rows.iter().all(|row| row.canonical() != flag.canonical()) {
                rows.push(flag);
            }
        }
        let arguments = self.met.drain(..).map(|(flag, value)| spell(flag, value));
        let matches = command("", rows.iter().copied())
            .try_get_matches_from(arguments)
            .expect("BUG: clap refuses what the scan has passed");

        let mut given = Vec::new();
        for flag in rows {
            let Meaning::Sets(id) = flag.meaning else {
                continue;
            };
            let indices = matches.indices_of(flag.canonical());
            let values = matches.get_many::<OsString>(flag.canonical());
            for (index, value) in indices
                .into_iter()
                .flatten()
                .zip(values.into_iter().flatten())
            {
                let value = Some(value.clone()).filter(|value| value != NO_VALUE);
                given.push((index, Given { id, value }));
            }
        }
        given.sort_by_key(|&(index, _)| index);
        given.into_iter().map(|(_, given)| given).collect()
    }
}

impl<I: Copy> Table<I> {
    /// clap's view of the whole table, for what is generated from it: completions, manuals.
    #[must_use]
    pub fn clap_command(&self, name: &'static str) -> Command {
        let operands = Arg::new("operands")
            .num_args(0..)
            .value_parser(ValueParser::os_string());
        command(name, self.flags.iter())
            .no_binary_name(false)
            .arg(operands)
    }
}

fn command<'a, I: Copy + 'static>(
    name: &'static str,
    flags: impl Iterator<Item = &'a Flag<I>>,
) -> Command {
    Command::new(name)
        .no_binary_name(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(flags.map(arg))
}

fn arg<I: Copy>(flag: &Flag<I>) -> Arg {
    let mut shorts = flag.shorts.chars();
    let mut arg = Arg::new(flag.canonical())
        .action(ArgAction::Append)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value(NO_VALUE)
        .value_parser(ValueParser::os_string())
        .help(flag.help);
    if !flag.long.is_empty() {
        arg = arg.long(flag.canonical());
    }
    if let Some(short) = shorts.next() {
        arg = arg.short(short);
    }
    arg.visible_short_aliases(shorts)
}

fn spell<I: Copy>(flag: &Flag<I>, value: Option<OsString>) -> OsString {
    let mut argument = OsString::from(if flag.long.is_empty() { "-" } else { "--" });
    argument.push(flag.canonical());
    if let Some(value) = value {
        argument.push("=");
        argument.push(value);
    }
    argument
}
