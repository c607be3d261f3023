//! Writes a case as a bash script that builds the tree and runs one command.

use std::fmt::Write as _;

use testkit::probe::NOBODY;

use crate::{
    case::{Called, Case, PWD, User},
    plan::plan,
    run::{ABOVE, WORKING},
};

/// Returns the script. Its argument is the command to run: `cp` or `target/debug/cpz`.
pub(crate) fn script(case: &Case) -> String {
    let mut script = format!(
        "#!/bin/bash\n\
         # Run it as root: bash THIS PROGRAM, with {} or target/debug/{} as PROGRAM.\n\
         program=$(realpath \"$(type -P \"$1\")\")\n\
         umask 022; top=$(mktemp -d); chmod 755 \"$top\"; cd \"$top\"\n\
         mkdir -p {ABOVE}/{WORKING}; cd {ABOVE}/{WORKING}\n",
        case.pair.gnu(),
        case.pair.ours()
    );
    let mut line = |text: &str| writeln!(script, "{text}").expect("BUG: a string can't fail");
    for step in plan(case) {
        line(&step.shell());
    }
    line(&format!("set -- {}", line_of(case.symbolic_arguments())));
    match case.called {
        Called::Own => {
            line("name=${program##*/}");
            line(&format!(
                "[ \"$name\" != {} ] || set -- -r \"$@\"",
                case.pair.gnu()
            ));
        }
        Called::Gnus(_) => line(&format!("name={}", case.called_names()[0])),
    }
    let variables = case.environment();
    let variables = variables
        .iter()
        .map(|(name, value)| format!("{name}={} ", quoted(value.as_bytes())));
    let stdin = case.stdin();
    let answers = match stdin.is_empty() {
        true => "true".to_owned(),
        false => format!("printf '%s\\n' {}", line_of(stdin)),
    };
    line(&format!(
        "{answers} | env -i {}{} \"$name\" \"$program\" \"$@\"",
        variables.collect::<String>(),
        line_of(launch(case)),
    ));
    line("echo \"status $?\"");
    line(
        "cd \"$top\"; find . -printf '%P %y %m %U:%G %s %n %t -> %l\\n' | sort; getfattr -dhR -m - .",
    );
    script
}

/// Returns the words of a command that runs a program in the circumstances of `case`. The name for the program, the
/// program itself, and its arguments come after them.
pub(crate) fn launch(case: &Case) -> Vec<String> {
    let user = match case.user {
        User::Root => String::new(),
        User::Nobody => format!("setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups "),
    };
    let limit = case.descriptors.map(|limit| format!("ulimit -n {limit}; "));
    let limit = limit.unwrap_or_default();
    let become_program = r#"name=$1; shift; exec -a "$name" "$@""#;
    let script = format!("umask {:04o}; {limit}{become_program}", case.umask);
    let words = format!("{user}bash -c");
    let words = words.split(' ').map(str::to_owned);
    words.chain([script, "bash".to_owned()]).collect()
}

/// Quotes words for bash.
fn line_of(words: impl IntoIterator<Item = impl AsRef<[u8]>>) -> String {
    let words = words.into_iter().map(|word| quoted(word.as_ref()));
    words.collect::<Vec<_>>().join(" ")
}

/// Quotes bytes for bash. `$PWD` at the beginning stays a variable.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    if let Some(rest) = bytes.strip_prefix(PWD.as_bytes()) {
        return match rest {
            [] => format!("\"{PWD}\""),
            rest => format!("\"{PWD}\"{}", quoted(rest)),
        };
    }
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"./-_=,:".contains(byte);
    if !bytes.is_empty() && bytes.iter().all(is_plain) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let escaped = bytes.iter().map(|byte| match byte {
        b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
        b' '..=b'~' => char::from(*byte).to_string(),
        byte => format!("\\{byte:03o}"),
    });
    format!("$'{}'", escaped.collect::<String>())
}

/// Quotes a path that a command must not take for an option.
pub(crate) fn quoted_path(path: &[u8]) -> String {
    quoted(&[b"./", path].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_quoted_for_bash() {
        assert_eq!(quoted(b"a/b"), "a/b");
        assert_eq!(quoted(b""), "$''");
        assert_eq!(quoted(b"it's\n\xff"), r"$'it\'s\012\377'");
        assert_eq!(quoted(b"$PWD/a"), "\"$PWD\"/a");
        assert_eq!(quoted_path(b"-v"), "./-v");
    }
}
