//! The words for trees, and how lines of words are split.

use std::time::Duration;

use super::{Tree, noise};

/// Returns a function that adds the entries that `words` name:
///
/// ```text
/// d/         a directory         l->t        a symlink to t       p<fifo>  a FIFO; s<socket>, n<null> and z<zero>
/// f=content  a file              h==f        a name of file f     f=~3M    3 MiB of noise
/// %600       mode                @5.1        time of the last modification: 5 s and 1 ns since 1970
/// :1:2       owner and group     acl:u:1:rw  entries of an ACL    xattr:user.a=1   an extended attribute
/// f          selects f, for the words about attributes after it, which are otherwise about the entry before
/// ```
///
/// `$PWD` stands for the path of the tree.
///
/// # Panics
/// Panics if an entry can't be made.
pub fn plant(words: &str) -> impl Fn(&Tree) {
    move |tree| _ = tree.plant(words)
}

impl Tree {
    /// Adds the entries that `words` name, as the function [`plant`] explains.
    #[track_caller]
    pub fn plant(&self, words: impl AsRef<str>) -> &Self {
        for word in split(words.as_ref()) {
            add(self, &word);
        }
        self
    }
}

/// Adds one entry, or changes an attribute of the last one.
#[track_caller]
pub(crate) fn add(tree: &Tree, word: &str) {
    let word = word.replace("$PWD", &tree.path().display().to_string());
    let begins = |mark: &str| word.strip_prefix(mark);
    if let Some(mode) = begins("%") {
        tree.mode(u32::from_str_radix(mode, 8).expect("an octal mode"));
    } else if let Some(time) = begins("@") {
        let (seconds, nanoseconds) = time.split_once('.').unwrap_or((time, "0"));
        let [seconds, nanoseconds] = [seconds, nanoseconds].map(|it| it.parse().expect("a time"));
        tree.mtime(Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds));
    } else if let Some(owner) = begins(":") {
        let (user, group) = owner.split_once(':').unwrap_or((owner, owner));
        tree.owner(
            user.parse().expect("a user"),
            group.parse().expect("a group"),
        );
    } else if let Some(entries) = begins("acl:") {
        tree.acl(entries);
    } else if let Some((name, value)) = begins("xattr:").and_then(|it| it.split_once('=')) {
        tree.xattr(name, value);
    } else {
        add_entry(tree, &word);
    }
}

fn add_entry(tree: &Tree, word: &str) {
    let link = word
        .split_once("->")
        .filter(|(path, _)| !path.contains('='));
    if let Some((path, target)) = link {
        tree.symlink(path, target);
    } else if let Some((path, existing)) = word.split_once("==") {
        tree.hardlink(existing, path);
    } else if let Some((path, content)) = word.split_once('=') {
        tree.file(path, content_of(content));
    } else if let Some((path, kind)) = word.strip_suffix('>').and_then(|it| it.rsplit_once('<')) {
        match kind {
            "fifo" => tree.fifo(path),
            "socket" => tree.socket(path),
            "null" => tree.char_device(path, 1, 3),
            "zero" => tree.char_device(path, 1, 5),
            _ => panic!("BUG in a test: no kind {kind}"),
        };
    } else if let Some(path) = word.strip_suffix('/') {
        tree.dir(path);
    } else {
        tree.select(word);
    }
}

/// Returns the content of a file: the word itself, or as much noise as it says.
fn content_of(word: &str) -> Vec<u8> {
    let Some(size) = word.strip_prefix('~') else {
        return word.into();
    };
    let (number, shift) = match size.strip_suffix('M') {
        Some(number) => (number, 20),
        None => (size, 0),
    };
    noise(number.parse::<usize>().expect("a size") << shift)
}

/// Stands for `\c`, which ends an answer without a newline.
pub(crate) const NO_NEWLINE: char = '\u{3}';

/// Splits a line into words, and each word with braces into several.
pub(crate) fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut is_quoted, mut is_word, mut has_quotes) =
        (String::new(), false, false, false);
    let mut chars = line.chars().chain([' ']);
    while let Some(char) = chars.next() {
        match char {
            '\'' => {
                is_quoted = !is_quoted;
                (is_word, has_quotes) = (true, true);
            }
            '\\' => {
                is_word = true;
                word.push(match chars.next() {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some('0') => '\0',
                    Some('c') => NO_NEWLINE,
                    Some('x') => {
                        let digits: String = chars.by_ref().take(2).collect();
                        u8::from_str_radix(&digits, 16).expect("two digits").into()
                    }
                    Some(other) => other,
                    None => '\\',
                });
            }
            char if char.is_whitespace() && !is_quoted => {
                match (is_word, has_quotes) {
                    (true, false) => words.extend(braces(&word)),
                    (true, true) => words.push(word),
                    (false, _) => {}
                }
                (word, is_word, has_quotes) = (String::new(), false, false);
            }
            char => {
                is_word = true;
                word.push(char);
            }
        }
    }
    assert!(!is_quoted, "BUG in a test: an open quote in {line}");
    words
}

/// Expands `{x,y}` and `{0..9}`.
fn braces(word: &str) -> Vec<String> {
    let found = word.split_once('{').and_then(|(before, rest)| {
        let (inner, after) = rest.split_once('}')?;
        let parts: Vec<String> = match inner.split_once("..") {
            Some((first, last)) => {
                let [first, last] = [first, last].map(|it| it.parse::<u32>().expect("a number"));
                (first..=last).map(|number| number.to_string()).collect()
            }
            None => inner.split(',').map(str::to_owned).collect(),
        };
        Some((before, parts, after))
    });
    let Some((before, parts, after)) = found else {
        return vec![word.to_owned()];
    };
    let ends = braces(after);
    let words = parts
        .iter()
        .flat_map(|part| ends.iter().map(move |end| format!("{before}{part}{end}")));
    words.collect()
}

/// Expands `(x|y)` in a line.
pub(crate) fn alternatives(line: &str) -> Vec<String> {
    let found = line.split_once('(').map(|(before, rest)| {
        let (inner, after) = rest
            .split_once(')')
            .expect("BUG in a test: an open parenthesis");
        (before, inner, after)
    });
    let Some((before, inner, after)) = found else {
        return vec![line.to_owned()];
    };
    let ends = alternatives(after);
    let lines = inner
        .split('|')
        .flat_map(|part| ends.iter().map(move |end| format!("{before}{part}{end}")));
    lines.collect()
}

/// Expands `{x*9}`.
pub(crate) fn with_repetitions(text: &str) -> String {
    let mut parts = text.split('{');
    let mut expanded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let found = part.split_once('}').and_then(|(inner, after)| {
            let (letters, number) = inner.split_once('*')?;
            Some(letters.repeat(number.parse().ok()?) + after)
        });
        expanded += &found.unwrap_or_else(|| format!("{{{part}"));
    }
    expanded
}
