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
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::iter;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

use fuc_engine::{Candidate, EnteredDirectory, Filter, Verdict};

use self::gitignore::Gitignore;
use self::pattern::{Pattern, Subject};
use crate::console::Console;
use crate::flags::UsageError;
use crate::input;
use crate::locale::Charset;
use crate::quote;
use crate::streams;
use crate::sync::lock;
use crate::wording::errno_text;

mod gitignore;
mod glob;
mod pattern;

/// The marks of the encoding at the beginning of a file, which git ignores.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The exclusions that the user asks for, in the order of the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "distribute", derive(serde::Serialize, serde::Deserialize))]
pub struct Exclusions {
    sources: Vec<Source>,
    /// The `.gitignore` files of all directories count, too.
    pub reads_gitignore: bool,
    /// Everything is left alone in a directory whose `.gitignore` file cannot be read.
    pub stops_at_unread: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "distribute", derive(serde::Serialize, serde::Deserialize))]
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

    /// Adds the value of `--exclude-from`.
    pub fn add_file(&mut self, file: &OsStr) {
        self.sources.push(Source::File(file.to_owned()));
    }

    /// Returns `true` if patterns are read from stdin, which then cannot hold answers to prompts.
    #[must_use]
    pub fn reads_stdin(&self) -> bool {
        let mut sources = self.sources.iter();
        sources.any(|source| matches!(source, Source::File(file) if streams::is_stdin(file)))
    }

    /// Reads the files and makes a filter. Returns `None` if nothing is excluded.
    ///
    /// # Errors
    /// If a file cannot be read, or if a pattern can match nothing.
    pub fn filter(&self, console: &Console) -> Result<Option<ExcludeFilter>, UsageError> {
        if self.sources.is_empty() && !self.reads_gitignore {
            return Ok(None);
        }
        let mut shared = FilterState {
            texts: Vec::new(),
            patterns: Vec::new(),
            working_directory: env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            reads_gitignore: self.reads_gitignore,
            stops_at_unread: self.stops_at_unread,
            unread: Mutex::default(),
        };
        for source in &self.sources {
            match source {
                Source::Pattern(text) => shared.add_value(text, console)?,
                Source::Read(text) => shared.add(text, None, text, console)?,
                Source::File(file) => shared.add_file(file, console)?,
            }
        }
        Ok(Some(ExcludeFilter {
            shared: Arc::new(shared),
            gitignore: None,
        }))
    }
}

/// A pattern as the user wrote it.
#[derive(Debug)]
struct Text {
    text: OsString,
    /// The file that holds the pattern, and the line, as messages show them.
    location: Option<String>,
    /// The pattern with a slash, read as a path.
    misreading: Option<Misreading>,
}

/// Returns the error about a pattern that was `given` in this form.
fn invalid(location: Option<&str>, given: &OsStr, reason: &str, console: &Console) -> UsageError {
    let location = location.map(|location| format!("{location}: "));
    let location = location.unwrap_or_default();
    let given = console.quoted(given);
    UsageError::plain(format!("{location}invalid pattern {given}: {reason}"))
}

fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    let content = content.strip_prefix(BYTE_ORDER_MARK).unwrap_or(content);
    content.split(|byte| *byte == b'\n')
}

/// A filter that leaves excluded entries alone. Clones share the list of files that could not be read.
#[derive(Clone, Debug)]
pub struct ExcludeFilter {
    shared: Arc<FilterState>,
    /// The `.gitignore` files above the entries, the nearest first.
    gitignore: Option<Arc<Gitignore>>,
}

/// The part of a filter that its clones share.
#[derive(Debug)]
struct FilterState {
    /// The patterns of the user, relative to the operand.
    patterns: Vec<Pattern>,
    /// The texts of these patterns.
    texts: Vec<Text>,
    /// Is `/` if it cannot be found.
    working_directory: PathBuf,
    reads_gitignore: bool,
    stops_at_unread: bool,
    /// The `.gitignore` files that could not be read.
    unread: Mutex<BTreeMap<PathBuf, io::Error>>,
}

impl FilterState {
    /// Adds the value of `--exclude`.
    fn add_value(&mut self, given: &OsStr, console: &Console) -> Result<(), UsageError> {
        if pattern::has_alternatives(given.as_bytes()) {
            let reason =
                "braces are not expanded; give one option for each alternative, or write '\\{'";
            return Err(invalid(None, given, reason, console));
        }
        let text = OsStr::from_bytes(pattern::trimmed(given.as_bytes()));
        self.add(text, None, given, console)
    }

    /// Adds the patterns in a file.
    fn add_file(&mut self, file: &OsStr, console: &Console) -> Result<(), UsageError> {
        let mut content = Vec::new();
        let read = input::open(file, console)?.read_to_end(&mut content);
        read.map_err(|error| {
            let (file, reason) = (console.quoted(file), errno_text(&error));
            UsageError::plain(format!("error reading {file}: {reason}"))
        })?;
        let file = quote::if_needed(file, console.charset());
        for (index, line) in lines(&content).enumerate() {
            if let Some(pattern) = pattern::in_line(line) {
                let location = Some(format!("{file}:{}", index + 1));
                let pattern = OsStr::from_bytes(pattern);
                self.add(pattern, location, pattern, console)?;
            }
        }
        Ok(())
    }

    /// Adds a pattern. An error shows it as it was `given`.
    fn add(
        &mut self,
        text: &OsStr,
        location: Option<String>,
        given: &OsStr,
        console: &Console,
    ) -> Result<(), UsageError> {
        let pattern = pattern::parse(text.as_bytes())
            .map_err(|problem| invalid(location.as_deref(), given, problem, console))?;
        self.patterns.push(pattern);
        self.texts.push(Text {
            text: text.to_owned(),
            location,
            misreading: Misreading::of(text, &self.working_directory),
        });
        Ok(())
    }
}

impl ExcludeFilter {
    /// Returns the same exclusions, but with the patterns instead of the files that hold them.
    #[must_use]
    pub fn exclusions(&self) -> Exclusions {
        let texts = self.shared.texts.iter();
        Exclusions {
            sources: texts.map(|it| Source::Read(it.text.clone())).collect(),
            reads_gitignore: self.shared.reads_gitignore,
            stops_at_unread: self.shared.stops_at_unread,
        }
    }

    /// Returns a diagnostic for each `.gitignore` file that could not be read, and forgets these files. Call it after
    /// the run.
    #[must_use = "each unread file is a failure"]
    pub fn take_unread(&self, charset: Charset) -> Vec<String> {
        let unread = &self.shared.unread;
        let unread = std::mem::take(&mut *lock(unread));
        let unread = unread.iter();
        unread
            .map(|(path, error)| input::not_opened(path, error, charset))
            .collect()
    }
}

/// Returns the operands that the filter, if there is one, does not exclude themselves.
///
/// # Errors
/// As [`is_taken`].
pub fn taken_operands<C: FromIterator<OsString>>(
    filter: Option<&ExcludeFilter>,
    operands: impl IntoIterator<Item = OsString>,
    console: &Console,
) -> Result<C, UsageError> {
    let taken = |operand: OsString| match is_taken(filter, &operand, console) {
        Ok(is_taken) => is_taken.then_some(Ok(operand)),
        Err(error) => Some(Err(error)),
    };
    operands.into_iter().filter_map(taken).collect()
}

/// Returns `true` if the filter, if there is one, does not exclude an operand itself.
///
/// # Errors
/// As [`check_patterns`].
pub fn is_taken(
    filter: Option<&ExcludeFilter>,
    operand: &OsStr,
    console: &Console,
) -> Result<bool, UsageError> {
    let Some(filter) = filter else {
        return Ok(true);
    };
    check_patterns(filter, operand, console)?;
    Ok(!excludes_operand(filter, operand))
}

/// Checks that each pattern may be meant for entries of an operand.
///
/// # Errors
/// If a pattern is probably meant as a path beside the operand. It then begins with the path of the operand or with the last
/// names of that path, or matches the operand or a directory above. Each pattern is looked up below the operand, and
/// so would exclude nothing that the user means.
pub fn check_patterns(
    filter: &ExcludeFilter,
    operand: &OsStr,
    console: &Console,
) -> Result<(), UsageError> {
    let shared = &filter.shared;
    let path = normal(&shared.working_directory.join(operand));
    for (text, pattern) in shared.texts.iter().zip(&shared.patterns) {
        let Some(misreading) = &text.misreading else {
            continue;
        };
        let reason = if let Some(meant) = misreading.meant(&path, &text.text) {
            let [operand, meant] = [operand, &meant].map(|name| console.quoted(name));
            format!("it is relative to {operand}; write {meant}")
        } else if misreading.is_about(&path, pattern) {
            let operand = console.quoted(operand);
            format!("it is relative to each operand, and so does not exclude {operand}")
        } else {
            continue;
        };
        return Err(invalid(
            text.location.as_deref(),
            &text.text,
            &reason,
            console,
        ));
    }
    Ok(())
}

/// A pattern with a slash, read as a path that does not begin in an operand.
#[derive(Debug)]
struct Misreading {
    path: PathBuf,
    /// The directory in which the path begins.
    base: PathBuf,
    /// `true` if the path has several names, and is not about all entries of each operand or of each directory in it.
    is_specific: bool,
}

impl Misreading {
    /// Returns `None` if the pattern has no slash.
    fn of(text: &OsStr, working_directory: &Path) -> Option<Self> {
        let text = text.as_bytes();
        let path = Path::new(OsStr::from_bytes(text.strip_prefix(b"!").unwrap_or(text)));
        if !text.contains(&b'/') {
            return None;
        }
        let base = match path.is_absolute() {
            true => PathBuf::from("/"),
            false => working_directory.to_path_buf(),
        };
        let path = normal(&working_directory.join(path));
        let is_of_stars = |name: &OsStr| name.as_bytes().iter().all(|&byte| byte == b'*');
        let is_specific = path
            .strip_prefix(&base)
            .is_ok_and(|names| names.iter().count() > 1 && !names.iter().all(is_of_stars));
        Some(Self {
            path,
            base,
            is_specific,
        })
    }

    /// Returns the pattern that the user probably means if the path leads below the operand. `text` is the pattern.
    fn meant(&self, operand: &Path, text: &OsStr) -> Option<OsString> {
        // A pattern has the same meaning for a directory in which the paths of the user begin.
        if self.base.starts_with(operand) {
            return None;
        }
        let rest = match self.path.strip_prefix(operand) {
            Ok(rest) => rest,
            // The path may begin in the directory of the operand, as in rsync.
            Err(_) => self.after_last_names(operand)?,
        };
        let rest = rest.as_os_str();
        let text = text.as_bytes();
        let sign = &text[..usize::from(text.starts_with(b"!"))];
        let end = &text[text.len() - usize::from(text.ends_with(b"/"))..];
        let meant = [sign, b"/", rest.as_bytes(), end].concat();
        (!rest.is_empty()).then(|| OsString::from_vec(meant))
    }

    /// Returns what follows the last names of the operand, if a relative path begins with them.
    fn after_last_names(&self, operand: &Path) -> Option<&Path> {
        let names = self.path.strip_prefix(&self.base).ok()?;
        let is_relative = self.base.parent().is_some();
        let mut above = names.ancestors().skip(1);
        let last = above.find(|last| !last.as_os_str().is_empty() && operand.ends_with(last));
        names.strip_prefix(last.filter(|_| is_relative)?).ok()
    }

    /// Returns `true` if the path would exclude the operand, or a directory above it.
    fn is_about(&self, operand: &Path, pattern: &Pattern) -> bool {
        let below = operand.strip_prefix(&self.base);
        self.is_specific
            && below.is_ok_and(|below| {
                let mut above = below.ancestors().map(|path| path.as_os_str().as_bytes());
                above.any(|path| !path.is_empty() && pattern.excludes_path(path))
            })
    }
}

/// Returns an absolute path without `.` and `..`, as if none of its names were a link.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            component => normal.push(component),
        }
    }
    normal
}

/// Returns `true` if the filter excludes an operand itself. Only patterns without a slash decide about operands, but not
/// `*`, and none about an operand that does not end in a name, such as `..`.
fn excludes_operand(filter: &ExcludeFilter, operand: &OsStr) -> bool {
    let mut components = operand.as_bytes().split(|&byte| byte == b'/');
    let last = components.rfind(|name| !name.is_empty());
    let Some(name) = last.filter(|name| !matches!(name, [b'.'] | [b'.', b'.'])) else {
        return false;
    };
    // A slash at the end makes the kernel follow a link.
    let is_directory = || {
        Path::new(operand)
            .symlink_metadata()
            .is_ok_and(|found| found.is_dir())
    };
    pattern::decide_operand(&filter.shared.patterns, name, is_directory) == Some(Verdict::Prune)
}

impl Filter for ExcludeFilter {
    fn verdict(&self, entry: &Candidate<'_>) -> Verdict {
        let subject = Subject {
            name: entry.name().as_bytes(),
            is_directory: entry.is_directory(),
        };
        let path = OnceCell::new();
        let path = || path.get_or_init(|| entry.path_below_operand().into_os_string().into_vec());
        let verdict = pattern::decide(&self.shared.patterns, &subject, || path());
        let of_files = || {
            let mut files = iter::successors(self.gitignore.as_ref(), |file| file.above.as_ref());
            files.find_map(|file| file.decide(&subject, || path()))
        };
        verdict.or_else(of_files).unwrap_or(Verdict::Take)
    }

    fn for_directory(&self, directory: &EnteredDirectory<'_>) -> Option<Arc<dyn Filter>> {
        if !self.shared.reads_gitignore {
            return None;
        }
        match Gitignore::read(directory, self.gitignore.clone()) {
            Ok(None) => None,
            Ok(Some(gitignore)) => Some(Arc::new(Self {
                gitignore: Some(Arc::new(gitignore)),
                ..self.clone()
            })),
            Err(error) => {
                let unread = &self.shared.unread;
                let mut unread = lock(unread);
                unread.insert(directory.path().join(".gitignore"), error);
                // Nothing may be deleted that the file may exclude.
                let leave_all = |_: &Candidate<'_>| Verdict::Prune;
                self.shared
                    .stops_at_unread
                    .then(|| Arc::new(leave_all) as _)
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
        let again = filter.exclusions().filter(console).unwrap().unwrap();
        assert_eq!(again.shared.patterns, filter.shared.patterns);
        assert!(excludes_operand(&again, OsStr::new("{a,b}\r")));
    }
}
