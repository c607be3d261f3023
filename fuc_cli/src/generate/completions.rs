//! Completions for bash, zsh and fish, by `clap_complete`.
//!
//! Its scripts are corrected, because they do not follow the rules of these commands and shells:
//!
//! - An optional value needs an equals sign. Otherwise the shells would offer values where the command
//!   expects an operand.
//! - In bash, an equals sign is a word of its own, and options with a value are offered with it, without a blank after it.
//! - In bash, operands are files.
//! - In zsh, options may follow operands.

use clap::Command;
use clap_complete::{Generator, Shell, generate};

use super::Generated;
use crate::flags::{Table, Value};

/// Returns the scripts for all three shells.
pub(super) fn all<I: Copy>(table: &Table<I>, mut command: Command) -> Vec<Generated> {
    let name = command.get_name().to_owned();
    [Shell::Bash, Shell::Zsh, Shell::Fish]
        .map(|shell| {
            let mut script = Vec::new();
            generate(shell, &mut command, &name, &mut script);
            let script = String::from_utf8(script).expect("BUG: flags are described in UTF-8");
            let content = match shell {
                Shell::Bash => {
                    // The name of the function is another one if that of the command contains a dash.
                    let end = format!(" -o default {name}\nfi\n");
                    assert!(script.ends_with(&end), "{script}");
                    corrected_bash(script, table)
                }
                Shell::Zsh => corrected_zsh(script, table),
                _ => corrected_fish(script, table),
            };
            Generated {
                path: format!("completions/{}", shell.file_name(&name)).into(),
                content,
            }
        })
        .into()
}

/// Replaces the only occurrence of `old`.
///
/// # Panics
/// If there is none, or another one: then `clap_complete` has changed.
fn replace_once(script: &str, old: &str, new: &str) -> String {
    let occurrences = script.matches(old).count();
    assert_eq!(occurrences, 1, "{old:?} is not there once:\n{script}");
    script.replace(old, new)
}

/// Returns the long names of the flags with a value, and whether it is optional.
fn long_names_with_value<I: Copy>(table: &Table<I>) -> impl Iterator<Item = (&'static str, bool)> {
    table.flags.iter().filter_map(|flag| match flag.value {
        Value::None => None,
        Value::Optional(_) => Some((flag.long, true)),
        Value::Required(_) => Some((flag.long, false)),
    })
}

const BASH_PREVIOUS_WORD: &str = r#"    prev="$3"
"#;

const BASH_PREVIOUS_WORD_WITH_EQUALS_SIGN: &str = r#"    prev="$3"
    if [[ "${COMP_WORDS[COMP_CWORD]}" == "=" ]]; then
        prev="${prev}="
        cur=""
    elif [[ "${prev}" == "=" ]]; then
        prev="${COMP_WORDS[COMP_CWORD-2]}="
    fi
"#;

const BASH_OPTIONS_AS_OPERANDS: &str = r#"            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
    esac
"#;

const BASH_OFFERED_OPTIONS: &str = r#"-- "${cur}") )
"#;

const BASH_OFFERED_WITHOUT_BLANK: &str = r#"-- "${cur}") )
                [[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace
"#;

fn corrected_bash<I: Copy>(script: String, table: &Table<I>) -> String {
    let script = replace_once(
        &script,
        BASH_PREVIOUS_WORD,
        BASH_PREVIOUS_WORD_WITH_EQUALS_SIGN,
    );
    let script = replace_once(&script, " || ${COMP_CWORD} -eq 1 ]]", " ]]");
    // Without sorting, file names come in the order of the directory.
    let script = replace_once(&script, " -o nosort", "");
    let script = replace_once(
        &script,
        BASH_OPTIONS_AS_OPERANDS,
        "            ;;\n    esac\n",
    );
    let script = replace_once(&script, BASH_OFFERED_OPTIONS, BASH_OFFERED_WITHOUT_BLANK);
    // Each option is then followed by a blank.
    let script = replace_once(&script, "\"\n            if", " \"\n            if");
    long_names_with_value(table).fold(script, |script, (name, is_optional)| {
        let (words, offered) = match is_optional {
            true => ("", format!(" --{name} --{name}= ")),
            false => (&*format!("--{name}|"), format!(" --{name}= ")),
        };
        let words = format!(" {words}--{name}=)\n");
        let script = replace_once(&script, &format!(" --{name})\n"), &words);
        replace_once(&script, &format!(" --{name} "), &offered)
    })
}

fn corrected_zsh<I: Copy>(script: String, table: &Table<I>) -> String {
    let script = replace_once(&script, "'*::operands ", "'*:operands ");
    long_names_with_value(table)
        .filter(|(_, is_optional)| *is_optional)
        .fold(script, |script, (name, _)| {
            replace_once(&script, &format!("--{name}=["), &format!("--{name}=-["))
        })
}

fn corrected_fish<I: Copy>(script: String, table: &Table<I>) -> String {
    let is_optional = |line: &str| {
        long_names_with_value(table)
            .any(|(name, is_optional)| is_optional && line.contains(&format!(" -l {name} ")))
    };
    let lines = script.lines().map(|line| {
        if is_optional(line) {
            replace_once(line, " -r -f", " -f") + "\n"
        } else {
            format!("{line}\n")
        }
    });
    lines.collect()
}
