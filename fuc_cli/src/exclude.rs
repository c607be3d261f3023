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
    Pattern(OsString),
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

    /// Adds the `.gitignore` files of all directories.
    pub fn add_gitignore(&mut self) {
        self.reads_gitignore = true;
    }

    /// Returns `true` if patterns are read from stdin, which then cannot hold answers to prompts.
    #[must_use]
    pub fn read_stdin(&self) -> bool {
        self.sources.iter().any(|source| match source {
            Source::Pattern(_) => false,
            Source::File(file) => file == "-",
        })
    }

    /// Reads the files, and returns the same exclusions without them, each pattern by itself.
    ///
    /// # Errors
    /// As with [`filter`](Self::filter).
    pub fn without_files(&self, console: &Console) -> Result<Self, UsageError> {
        let patterns = self.read(console)?.into_iter();
        Ok(Self {
            sources: patterns.map(|it| Source::Pattern(it.text)).collect(),
            reads_gitignore: self.reads_gitignore,
        })
    }

    /// Returns the values of `--exclude`.
    pub fn patterns(&self) -> impl Iterator<Item = &OsStr> {
        self.sources.iter().filter_map(|source| match source {
            Source::Pattern(pattern) => Some(&**pattern),
            Source::File(_) => None,
        })
    }

    fn read(&self, console: &Console) -> Result<Vec<Parsed>, UsageError> {
        let mut patterns = Vec::new();
        for source in &self.sources {
            match source {
                Source::Pattern(text) => patterns.push(Parsed {
                    text: text.clone(),
                    pattern: parse(text, console)?,
                }),
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
        let patterns = parsed.map(|it| it.pattern).collect();
        let shared = Shared {
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

fn parse(pattern: &OsStr, console: &Console) -> Result<Pattern, UsageError> {
    pattern::parse(pattern.as_bytes()).map_err(|problem| {
        let quoted = console.quoted(pattern.as_bytes());
        let reason = format!(": {problem}");
        UsageError::plain([b"invalid pattern ", &quoted[..], reason.as_bytes()].concat())
    })
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
    /// The patterns of the user, relative to the operand.
    patterns: Vec<Pattern>,
    reads_gitignore: bool,
    /// The `.gitignore` files that could not be read.
    unread: Mutex<BTreeMap<PathBuf, io::Error>>,
}

impl ExcludeFilter {
    /// Returns `true` if an operand is excluded itself. Only patterns without a slash decide about operands, but not
    /// `*`, and none about an operand that does not end in a name, such as `..`.
    #[must_use]
    pub fn excludes_operand(&self, operand: &OsStr) -> bool {
        let Some(name) = operand
            .as_bytes()
            .split(|&byte| byte == b'/')
            .rfind(|name| !name.is_empty())
            .filter(|name| !matches!(name, [b'.'] | [b'.', b'.']))
        else {
            return false;
        };
        // A slash at the end makes the kernel follow a link.
        let is_directory = || {
            Path::new(operand)
                .symlink_metadata()
                .is_ok_and(|found| found.is_dir())
        };
        pattern::decide_operand(&self.shared.patterns, name, is_directory)
            == Some(Decision::Exclude)
    }

    /// Reports the `.gitignore` files that could not be read, and returns their number. Call it after the run.
    #[must_use = "each unread file is a failure"]
    pub fn report_unread(&self, console: &Console) -> u64 {
        let unread = &self.shared.unread;
        let unread = std::mem::take(&mut *unread.lock().unwrap_or_else(PoisonError::into_inner));
        for (path, error) in &unread {
            let quoted = console.quoted(path.as_os_str().as_bytes());
            console.error(&input::not_opened(&quoted, error).into());
        }
        unread.len() as u64
    }
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
