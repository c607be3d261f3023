//! `--exclude`, `--exclude-from` and `--gitignore`: which entries a run leaves alone.
//!
//! ```text
//! flags ──▶ Exclusions ── read files, parse patterns ──▶ ExcludeFilter ──▶ engine
//!                                                              │ --gitignore
//!                                                              ▼
//!                                   for each directory with a .gitignore: one more filter
//! ```
//!
//! The last of the user's patterns that matches decides. If none does, the nearest `.gitignore` decides of which a
//! pattern matches, as in git. Patterns with a slash are relative to each operand. Those without one match operands,
//! too: `rmz --exclude=keep *` must not remove `keep`.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fuc_engine::{Candidate, EnteredDirectory, Filter, Verdict};

use self::gitignore::Gitignore;
use self::pattern::{Decision, Pattern, Subject};
use crate::console::Console;
use crate::flags::UsageError;
use crate::input;
use crate::locale::Charset;
use crate::quote;
use crate::wording::errno_text;

mod gitignore;
mod glob;
mod pattern;

/// The marks of the encoding at the beginning of a file, which git ignores.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The exclusions that the user asks for, in the order of the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exclusions {
    sources: Vec<Source>,
    reads_gitignore: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// The value of `--exclude`.
    Pattern(OsString),
    /// A pattern that was read before.
    Read(OsString),
    /// The path of a file, or `-` for stdin.
    File(OsString),
}

impl Exclusions {
    /// Adds the value of `--exclude`.
    pub fn add_pattern(&mut self, pattern: &OsStr) {
        self.sources.push(Source::Pattern(pattern.to_owned()));
    }

    /// Adds a pattern that another process has read: one of [`patterns`](Self::patterns).
    pub fn add_read_pattern(&mut self, pattern: OsString) {
        self.sources.push(Source::Read(pattern));
    }

    /// Adds the value of `--exclude-from`.
    pub fn add_file(&mut self, file: &OsStr) {
        self.sources.push(Source::File(file.to_owned()));
    }

    /// Adds the `.gitignore` files of all directories.
    pub fn add_gitignore(&mut self) {
        self.reads_gitignore = true;
    }

    /// Returns `true` if patterns are read from stdin, which then cannot hold answers to prompts.
    #[must_use]
    pub fn reads_stdin(&self) -> bool {
        self.sources.iter().any(|source| match source {
            Source::Pattern(_) | Source::Read(_) => false,
            Source::File(file) => input::is_stdin(file),
        })
    }

    /// Returns the patterns that need no file, in order.
    pub fn patterns(&self) -> impl Iterator<Item = &OsStr> {
        self.sources.iter().filter_map(|source| match source {
            Source::Pattern(pattern) | Source::Read(pattern) => Some(&**pattern),
            Source::File(_) => None,
        })
    }

    /// Returns `true` if the `.gitignore` files of all directories are read.
    #[must_use]
    pub fn reads_gitignore(&self) -> bool {
        self.reads_gitignore
    }

    fn read(&self, console: &Console) -> Result<Vec<Parsed>, UsageError> {
        let mut patterns = Vec::new();
        for source in &self.sources {
            match source {
                Source::Pattern(text) => patterns.push(parse_value(text, console)?),
                Source::Read(text) => patterns.push(parse(text.as_bytes(), text, console)?),
                Source::File(file) => read_patterns(file, console, &mut patterns)?,
            }
        }
        Ok(patterns)
    }

    /// Reads the files and makes a filter. Returns `None` if nothing is excluded.
    ///
    /// # Errors
    /// If a file cannot be read, or if a pattern can match nothing.
    pub fn filter(&self, console: &Console) -> Result<Option<ExcludeFilter>, UsageError> {
        if self.sources.is_empty() && !self.reads_gitignore {
            return Ok(None);
        }
        let parsed = self.read(console)?.into_iter();
        let (texts, patterns) = parsed.map(|it| (it.text, it.pattern)).unzip();
        let shared = Shared {
            texts,
            patterns,
            reads_gitignore: self.reads_gitignore,
            unread: Mutex::default(),
        };
        Ok(Some(ExcludeFilter {
            shared: Arc::new(shared),
            gitignore: None,
        }))
    }
}

/// A pattern, and its text.
struct Parsed {
    text: OsString,
    pattern: Pattern,
}

/// Parses the value of `--exclude`.
fn parse_value(value: &OsStr, console: &Console) -> Result<Parsed, UsageError> {
    let text = value.as_bytes();
    if pattern::has_alternatives(text) {
        let reason =
            b"braces are not expanded; give one option for each alternative, or write '\\{'";
        return Err(invalid(text, reason, console));
    }
    parse(pattern::trimmed(text), value, console)
}

/// Parses a pattern. An error shows it as it was `given`.
fn parse(text: &[u8], given: &OsStr, console: &Console) -> Result<Parsed, UsageError> {
    let parsed = pattern::parse(text);
    let pattern = parsed.map_err(|problem| {
        let reason = problem.to_string();
        invalid(given.as_bytes(), reason.as_bytes(), console)
    })?;
    let text = OsString::from_vec(text.to_vec());
    Ok(Parsed { text, pattern })
}

fn invalid(pattern: &[u8], reason: &[u8], console: &Console) -> UsageError {
    let quoted = console.quoted(pattern);
    UsageError::plain([b"invalid pattern ", &quoted[..], b": ", reason].concat())
}

/// Adds the patterns in a file.
fn read_patterns(
    file: &OsStr,
    console: &Console,
    patterns: &mut Vec<Parsed>,
) -> Result<(), UsageError> {
    let mut content = Vec::new();
    let read = input::open(file, console)?.read_to_end(&mut content);
    read.map_err(|error| {
        let quoted = console.quoted(file.as_bytes());
        let reason = format!(": {}", errno_text(&error));
        UsageError::plain([b"error reading ", &quoted[..], reason.as_bytes()].concat())
    })?;
    for (number, line) in lines(&content).enumerate() {
        let Some(text) = pattern::in_line(line) else {
            continue;
        };
        let pattern = pattern::parse(text).map_err(|problem| {
            let file = quote::if_needed(file.as_bytes(), console.charset());
            let place = format!(":{}: invalid pattern ", number + 1);
            let pattern = console.quoted(text);
            let reason = format!(": {problem}");
            let parts = [&file, place.as_bytes(), &pattern, reason.as_bytes()];
            UsageError::plain(parts.concat())
        })?;
        let text = OsString::from_vec(text.to_vec());
        patterns.push(Parsed { text, pattern });
    }
    Ok(())
}

fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    let content = content.strip_prefix(BYTE_ORDER_MARK).unwrap_or(content);
    content.split(|byte| *byte == b'\n')
}

/// A filter that leaves excluded entries alone. Clones share the list of files that could not be read.
#[derive(Clone, Debug)]
pub struct ExcludeFilter {
    shared: Arc<Shared>,
    /// The `.gitignore` files above the entries, the nearest first.
    gitignore: Option<Arc<Gitignore>>,
}

#[derive(Debug)]
struct Shared {
    /// The patterns as the user wrote them.
    texts: Vec<OsString>,
    /// The patterns of the user, relative to the operand.
    patterns: Vec<Pattern>,
    reads_gitignore: bool,
    /// The `.gitignore` files that could not be read.
    unread: Mutex<BTreeMap<PathBuf, io::Error>>,
}

impl ExcludeFilter {
    /// Returns the same exclusions, but with the patterns instead of the files that hold them.
    #[must_use]
    pub fn exclusions(&self) -> Exclusions {
        let texts = self.shared.texts.iter().cloned();
        Exclusions {
            sources: texts.map(Source::Read).collect(),
            reads_gitignore: self.shared.reads_gitignore,
        }
    }

    /// Reports the `.gitignore` files that could not be read, and returns their number. Call it after the run.
    #[must_use = "each unread file is a failure"]
    pub fn report_unread(&self, console: &Console) -> u64 {
        let lines = self.take_unread(console.charset());
        let unread = lines.len() as u64;
        lines
            .into_iter()
            .for_each(|line| console.error(&line.into()));
        unread
    }

    /// Returns a diagnostic for each `.gitignore` file that could not be read, and forgets these files. Call it after
    /// the run.
    #[must_use = "each unread file is a failure"]
    pub fn take_unread(&self, charset: Charset) -> Vec<Vec<u8>> {
        let unread = &self.shared.unread;
        let unread = std::mem::take(&mut *unread.lock().unwrap_or_else(PoisonError::into_inner));
        let lines = unread.iter().map(|(path, error)| {
            let quoted = quote::always(path.as_os_str().as_bytes(), charset);
            input::not_opened(&quoted, error)
        });
        lines.collect()
    }
}

/// Returns the operands that the filter, if there is one, does not exclude themselves.
///
/// # Errors
/// If a pattern begins with the path of an operand. It would be looked up below that operand, and so exclude nothing
/// that the user means. The message shows the pattern that the user probably means.
pub fn taken_operands(
    filter: Option<&ExcludeFilter>,
    mut operands: Vec<OsString>,
    console: &Console,
) -> Result<Vec<OsString>, UsageError> {
    let texts = filter.map_or(&[][..], |filter| &filter.shared.texts);
    for text in texts {
        let text = text.as_bytes();
        let path = text.strip_prefix(b"!").unwrap_or(text);
        if !path.contains(&b'/') {
            continue;
        }
        let found = operands
            .iter()
            .find_map(|operand| Some((operand, below(operand, path)?)));
        if let Some((operand, rest)) = found {
            let sign = &text[..text.len() - path.len()];
            let meant = console.quoted(&[sign, b"/", rest].concat());
            let operand = console.quoted(operand.as_bytes());
            let reason: [&[u8]; 4] = [b"it is relative to ", &operand, b"; write ", &meant];
            return Err(invalid(text, &reason.concat(), console));
        }
    }
    operands.retain(|operand| !excludes_operand(filter, operand));
    Ok(operands)
}

/// Returns the rest of a pattern that begins with the path of an operand, as given or absolute.
fn below<'p>(operand: &OsStr, pattern: &'p [u8]) -> Option<&'p [u8]> {
    let rest = |prefix: &[u8]| {
        let end = prefix.iter().rposition(|&byte| byte != b'/')? + 1;
        let rest = pattern.strip_prefix(&prefix[..end])?.strip_prefix(b"/")?;
        (!rest.is_empty()).then_some(rest)
    };
    rest(operand.as_bytes()).or_else(|| {
        let absolute = std::path::absolute(operand).ok()?;
        rest(absolute.as_os_str().as_bytes())
    })
}

/// Returns `true` if the filter, if there is one, excludes an operand itself. Only patterns without a slash decide about
/// operands, but not `*`, and none about an operand that does not end in a name, such as `..`.
#[must_use]
pub fn excludes_operand(filter: Option<&ExcludeFilter>, operand: &OsStr) -> bool {
    let mut components = operand.as_bytes().split(|&byte| byte == b'/');
    let last = components.rfind(|name| !name.is_empty());
    let name = last.filter(|name| !matches!(name, [b'.'] | [b'.', b'.']));
    let (Some(filter), Some(name)) = (filter, name) else {
        return false;
    };
    // A slash at the end makes the kernel follow a link.
    let is_directory = || {
        Path::new(operand)
            .symlink_metadata()
            .is_ok_and(|found| found.is_dir())
    };
    pattern::decide_operand(&filter.shared.patterns, name, is_directory) == Some(Decision::Exclude)
}

impl Filter for ExcludeFilter {
    fn verdict(&self, entry: &Candidate<'_>) -> Verdict {
        let subject = Subject {
            name: entry.name().as_bytes(),
            is_directory: entry.is_directory(),
        };
        let path = OnceCell::new();
        let path = || path.get_or_init(|| entry.path_below_operand().into_os_string().into_vec());
        let decision = pattern::decide(&self.shared.patterns, &subject, || path());
        let nearest = std::iter::successors(self.gitignore.as_ref(), |file| file.above());
        let decision = decision.or_else(|| {
            let mut files = nearest;
            files.find_map(|file| file.decide(&subject, || path()))
        });
        match decision {
            Some(Decision::Exclude) => Verdict::Prune,
            Some(Decision::Include) | None => Verdict::Take,
        }
    }

    fn for_directory(&self, directory: &EnteredDirectory<'_>) -> Option<Arc<dyn Filter>> {
        if !self.shared.reads_gitignore {
            return None;
        }
        match Gitignore::read(directory, self.gitignore.clone()) {
            Ok(None) => None,
            Ok(Some(gitignore)) => Some(Arc::new(Self {
                shared: Arc::clone(&self.shared),
                gitignore: Some(Arc::new(gitignore)),
            })),
            Err(error) => {
                let unread = &self.shared.unread;
                let mut unread = unread.lock().unwrap_or_else(PoisonError::into_inner);
                unread.insert(directory.path().join(".gitignore"), error);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a file, braces stand for themselves, and only one carriage return at the end does not count.
    #[test]
    fn patterns_of_a_file_can_be_read_by_another_process() {
        let console = &Console::new(b"rmz".to_vec(), Charset::Utf8);
        let scratch = testkit::tree::Scratch::new();
        let file = scratch.path().join("patterns");
        std::fs::write(&file, "{a,b}\r\r\n").unwrap();
        let mut exclusions = Exclusions::default();
        exclusions.add_file(file.as_os_str());
        let filter = exclusions.filter(console).unwrap().unwrap();
        let mut again = Exclusions::default();
        for pattern in filter.exclusions().patterns() {
            again.add_read_pattern(pattern.to_owned());
        }
        let again = again.filter(console).unwrap().unwrap();
        assert_eq!(again.shared.patterns, filter.shared.patterns);
        assert!(excludes_operand(Some(&again), OsStr::new("{a,b}\r")));
    }
}
