//! Completes command lines in real shells, by their scripts for completion.
//!
//! bash and zsh are interactive: a key inserts all candidates into the line, and the command is a function that
//! writes its arguments to a file.

use std::{fs, path::Path};

use crate::{
    probe::{Skip, need_program},
    run::{Run, Stream},
    tree::{Scratch, Tree},
};

/// The shells that complete command lines.
pub(crate) const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// The prompt of bash and zsh.
const PROMPT: &str = "ready> ";

/// The key that inserts all candidates.
const INSERT_ALL: &str = "\x18m";

/// Returns the candidates for the last word of `line`, sorted, by the script in `scripts` for the first word.
/// The shell works in `dir`. Of `--name=VALUE` only the value is returned, and a slash at the end is left out.
///
/// # Errors
/// If the shell is not installed.
///
/// # Panics
/// If the shell fails.
pub(crate) fn complete(
    shell: &str,
    scripts: &Path,
    line: &str,
    dir: &Path,
) -> Result<Vec<String>, Skip> {
    need_program(shell)?;
    let home = Scratch::new();
    let candidates = match shell {
        "fish" => complete_in_fish(home.path(), scripts, line, dir),
        _ => complete_at_terminal(shell, home.path(), scripts, line, dir)?,
    };
    let value = |word: &str| match word.split_once('=') {
        Some((_, value)) if !value.is_empty() => value.to_owned(),
        _ => word.trim_end_matches(['=', '/']).to_owned(),
    };
    let mut candidates: Vec<String> = candidates.iter().map(|word| value(word)).collect();
    candidates.sort();
    candidates.dedup();
    Ok(candidates)
}

/// Returns the words that the candidates have become, without those before the last word of `line`.
fn complete_at_terminal(
    shell: &str,
    home: &Path,
    scripts: &Path,
    line: &str,
    dir: &Path,
) -> Result<Vec<String>, Skip> {
    let command = command(line);
    let out = home.join("out");
    let common = format!(
        "{command}() {{ printf '%s\\n' \"$@\" >'{}'; }}\nPS1='{PROMPT}'\n",
        out.display()
    );
    let scripts = scripts.display();
    let run = Run::new(shell);
    let (file, settings, run) = match shell {
        "zsh" => (
            ".zshrc",
            format!(
                "fpath=('{scripts}' $fpath)\nautoload -Uz compinit\ncompinit -u -D\n\
                     zle -C all-matches complete-word _generic\n\
                     zstyle ':completion:all-matches::::' completer _all_matches _complete\n\
                     zstyle ':completion:all-matches:*' insert true\n\
                     bindkey '^Xm' all-matches\n"
            ),
            run.args(["-d", "-i"]),
        ),
        _ => (
            ".bashrc",
            format!("source '{scripts}/{command}.bash'\nbind '\"\\C-xm\": insert-completions'\n"),
            run.args(["--noprofile", "--rcfile"])
                .arg(home.join(".bashrc"))
                .arg("-i"),
        ),
    };
    Tree::at(home).file(file, settings + &common);
    let mut live = run
        .at_terminal()?
        .env("ZDOTDIR", home)
        .env("INPUTRC", "/dev/null")
        .env("TERM", "dumb")
        .current_dir(dir)
        .start();
    live.wait_for(Stream::Stdout, PROMPT);
    live.write(format!("{line}{INSERT_ALL}\r"));
    live.wait_for(Stream::Stdout, PROMPT);
    live.write("exit\r");
    live.finish();
    let words = fs::read_to_string(&out).unwrap_or_else(|e| panic!("no words of {shell}: {e}"));
    let before = line.split(' ').count() - 2;
    let words = words.lines().skip(before).filter(|word| !word.is_empty());
    // Without candidates the last word stays as it is.
    let typed = line.rsplit(' ').next();
    let inserted = words.filter(|word| Some(*word) != typed);
    Ok(inserted.map(str::to_owned).collect())
}

fn complete_in_fish(home: &Path, scripts: &Path, line: &str, dir: &Path) -> Vec<String> {
    let script = format!("{}/{}.fish", scripts.display(), command(line));
    let outcome = Run::new("fish")
        .args(["--no-config", "-c", "source $argv[1]; complete -C $argv[2]"])
        .args([&script, line])
        .env("HOME", home)
        .current_dir(dir)
        .output();
    let lines = outcome.assert_success().stdout_text();
    let word = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
    lines.lines().map(word).collect()
}

fn command(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}
