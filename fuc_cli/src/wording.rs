//! Diagnostics and questions: the engine's facts, in the words of GNU rm or cp.
//!
//! The engine reports operations and paths, and only this module knows the tool. For an unreadable directory rm says
//! "cannot remove", and cp "cannot access". The words are those of coreutils 9.10.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fuc_engine::gnu::{CopyMethod, Kind, Mechanism};
use fuc_engine::{Cause, Error, Operation, Question, Refusal, RemovalTarget, Summary};
use rustix::io::Errno;

use crate::amounts::{Bytes, Count};
use crate::locale::Charset;
use crate::quote;

#[cfg(any(test, target_env = "musl"))]
mod error_texts;

/// The tool whose words are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// GNU rm.
    Remove,
    /// GNU cp.
    Copy,
}

/// A diagnostic, without the command's name before its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The line about the failure itself.
    pub line: Vec<u8>,
    /// The second line, if GNU has one.
    pub advice: Option<&'static str>,
}

impl From<Vec<u8>> for Diagnostic {
    fn from(line: Vec<u8>) -> Self {
        Self { line, advice: None }
    }
}

/// Returns the text of GNU's C library for an errno, without a number.
#[must_use]
pub fn errno_text(error: &io::Error) -> String {
    #[cfg(target_env = "musl")]
    if let Some(text) = error.raw_os_error().and_then(error_texts::text) {
        return text.to_owned();
    }
    let mut text = error.to_string();
    if let Some(at) = text.rfind(" (os error ") {
        text.truncate(at);
    }
    text
}

/// The circumstances of one failure, from which its diagnostic is made.
#[derive(Clone, Copy, Debug)]
pub struct Wording<'a> {
    /// The tool whose words are used.
    pub tool: Tool,
    /// The charset in which names are shown.
    pub charset: Charset,
    /// The path that failed.
    pub path: &'a Path,
    /// The other path, if the cause concerns two.
    pub other: Option<&'a Path>,
}

/// Returns the diagnostic for an error of the engine.
#[must_use]
pub fn describe(error: &Error, tool: Tool, charset: Charset) -> Diagnostic {
    let wording = Wording {
        tool,
        charset,
        path: error.path(),
        other: error.other_path(),
    };
    wording.describe(error.cause())
}

/// Returns the text of a question, without the command's name before it or a question mark after it.
///
/// Returns `None` for a question that only a newer engine asks.
#[must_use]
pub fn question(question: &Question<'_>, charset: Charset) -> Option<Vec<u8>> {
    let about = |target: &RemovalTarget<'_>, action: &str, kind: &str| {
        let protected = if target.is_write_protected {
            "write-protected "
        } else {
            ""
        };
        let path = quote::always(target.path.as_os_str().as_bytes(), charset);
        let words = format!("{action} {protected}{kind} ");
        [words.as_bytes(), &path].concat()
    };
    Some(match question {
        Question::Remove(target) => about(target, "remove", kind_name(target.kind)),
        Question::Descend(target) => about(target, "descend into", "directory"),
        Question::RemoveInaccessible(target) => {
            // In this question rm does not mention write protection.
            let path = quote::always(target.path.as_os_str().as_bytes(), charset);
            [b"attempt removal of inaccessible directory ", &path[..]].concat()
        }
        Question::Overwrite {
            path,
            mode,
            is_write_protected,
            is_removed_first,
            ..
        } => {
            let path = quote::always(path.as_os_str().as_bytes(), charset);
            let letters = letters(*mode);
            let (before, after) = match (is_write_protected, is_removed_first) {
                (false, _) => ("overwrite ", String::new()),
                (true, true) => (
                    "replace ",
                    format!(", overriding mode {mode:04o} ({letters})"),
                ),
                (true, false) => (
                    "unwritable ",
                    format!(" (mode {mode:04o}, {letters}); try anyway"),
                ),
            };
            [before.as_bytes(), &path, after.as_bytes()].concat()
        }
        _ => return None,
    })
}

/// Returns permission bits as `ls -l` shows them.
fn letters(mode: u32) -> String {
    let special = [(0o4000, 's', 'S'), (0o2000, 's', 'S'), (0o1000, 't', 'T')];
    let mut letters = String::with_capacity(9);
    for (shift, (bit, with_x, without_x)) in [6, 3, 0].into_iter().zip(special) {
        let triple = mode >> shift;
        letters.push(if triple & 4 == 0 { '-' } else { 'r' });
        letters.push(if triple & 2 == 0 { '-' } else { 'w' });
        letters.push(match (mode & bit != 0, triple & 1 != 0) {
            (true, true) => with_x,
            (true, false) => without_x,
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    letters
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "regular file",
        Kind::EmptyFile => "regular empty file",
        Kind::Directory => "directory",
        Kind::Symlink => "symbolic link",
        Kind::Fifo => "fifo",
        Kind::Socket => "socket",
        Kind::BlockDevice => "block special file",
        Kind::CharacterDevice => "character special file",
        _ => "weird file",
    }
}

/// The words around a directory on another filesystem.
const ELSEWHERE: [&str; 2] = ["skipping ", ", since it's on a different device"];

impl Wording<'_> {
    /// Returns the diagnostic for `cause`.
    #[must_use]
    pub fn describe(&self, cause: Cause) -> Diagnostic {
        match (cause, self.tool) {
            (Cause::Failed(Operation::StatParent, _), Tool::Remove) => self.unknown_parent().into(),
            (Cause::Failed(_, errno), Tool::Remove) => self.failed("cannot remove ", "", errno),
            (Cause::Failed(operation, errno), Tool::Copy) => {
                let reason = format!(": {}", errno_text(&errno.into()));
                let (before, between) = match operation {
                    Operation::Clone => ("failed to clone ", " from "),
                    Operation::CreateHardLink => ("cannot create hard link ", " to "),
                    Operation::CreateSymlink if self.other.is_some() => {
                        ("cannot create symbolic link ", " to ")
                    }
                    Operation::KeepMode => {
                        // In this message cp uses the quotes of the locale.
                        let path = quote::locale(self.path.as_os_str().as_bytes(), self.charset);
                        let before = b"preserving permissions for ";
                        return [&before[..], &path, reason.as_bytes()].concat().into();
                    }
                    _ => {
                        let (before, after) = around(operation);
                        return self.failed(before, after, errno);
                    }
                };
                self.around(&[before, between, &reason]).into()
            }
            (Cause::Refused(refusal), Tool::Remove) => self.refused_by_rm(refusal),
            (Cause::Refused(refusal), Tool::Copy) => self.refused_by_cp(refusal).into(),
        }
    }

    fn failed(&self, before: &str, after: &str, errno: impl Into<io::Error>) -> Diagnostic {
        let reason = errno_text(&errno.into());
        self.around(&[before, &format!("{after}: {reason}")]).into()
    }

    fn refused_by_rm(&self, refusal: Refusal) -> Diagnostic {
        match refusal {
            Refusal::DotOrDotDot => self
                .around(&["refusing to remove '.' or '..' directory: skipping ", ""])
                .into(),
            Refusal::Root => self.root(),
            Refusal::MountPoint => Diagnostic {
                line: self.around(&ELSEWHERE),
                advice: Some("and --preserve-root=all is in effect"),
            },
            Refusal::OtherFilesystem => self.around(&ELSEWHERE).into(),
            Refusal::NotRecursive => self.failed("cannot remove ", "", Errno::ISDIR),
            // rm has no words for cp's refusals or for those of a newer engine.
            _ => self.around(&["cannot remove ", ""]).into(),
        }
    }

    /// Returns rm's message for a parent whose attributes cannot be read. It does not name the reason.
    fn unknown_parent(&self) -> Vec<u8> {
        let path = self.path.as_os_str().as_bytes();
        let path = path.strip_suffix(b"/").unwrap_or(path);
        let parent = [path, b"/.."].concat();
        let parent = quote::always(&parent, self.charset);
        let skipping = self.around(&[": skipping ", ""]);
        [b"failed to stat ", &parent[..], &skipping].concat()
    }

    fn root(&self) -> Diagnostic {
        let after = if self.path == Path::new("/") && self.path.as_os_str().len() == 1 {
            ""
        } else {
            " (same as '/')"
        };
        Diagnostic {
            line: self.around(&["it is dangerous to operate recursively on ", after]),
            advice: Some("use --no-preserve-root to override this failsafe"),
        }
    }

    fn refused_by_cp(&self, refusal: Refusal) -> Vec<u8> {
        let parts: &[&str] = match refusal {
            Refusal::NotRecursive => &["-r not specified; omitting directory ", ""],
            Refusal::IntoItself => &["cannot copy a directory, ", ", into itself, ", ""],
            Refusal::SameFile => &["", " and ", " are the same file"],
            Refusal::DirectoryByNonDirectory => {
                &["cannot overwrite directory ", " with non-directory ", ""]
            }
            Refusal::NonDirectoryByDirectory => {
                &["cannot overwrite non-directory ", " with directory ", ""]
            }
            Refusal::JustCreated => &["will not overwrite just-created ", " with ", ""],
            Refusal::ThroughJustCreatedLink => {
                // This message alone names the source first.
                let swapped = Self {
                    path: self.other.unwrap_or(self.path),
                    other: Some(self.path),
                    ..*self
                };
                return swapped.around(&["will not copy ", " through just-created symlink ", ""]);
            }
            Refusal::DanglingDest => &["not writing through dangling symlink ", ""],
            Refusal::FileNamedTwice => &["warning: source file ", " specified more than once"],
            Refusal::DirectoryNamedTwice => {
                &["warning: source directory ", " specified more than once"]
            }
            Refusal::SharedInodeNumber => &[
                "warning: ",
                " has the inode number of another source file but differs from it: not linked",
            ],
            Refusal::NotReplacing => &["not replacing ", ""],
            Refusal::LeftIncomplete => &["", " is incomplete: the copy was interrupted"],
            Refusal::Different => &["", " differs from ", ""],
            Refusal::BackupOverSource => {
                &["backing up ", " might destroy source;  ", " not copied"]
            }
            Refusal::ParentNotDirectory => &["", " exists but is not a directory"],
            Refusal::CyclicSymlink => &["cannot copy cyclic symbolic link ", ""],
            Refusal::RelativeSymlink => {
                // cp quotes a colon, too, because a colon ends the name in this message.
                let name = self.path.as_os_str().as_bytes();
                let path = match name.contains(&b':') {
                    true => quote::always(name, self.charset),
                    false => quote::if_needed(name, self.charset),
                };
                let problem = b": can make relative symbolic links only in current directory";
                return [&path[..], problem].concat();
            }
            Refusal::HomeNotReached => &[
                "cannot copy to ",
                ": the machine that copies all its hard links does not see the directory yet",
            ],
            Refusal::CannotMirror => &[
                "cannot delete in ",
                ": a source is in it, several sources are copied to it, or it is unclear which names are copies",
            ],
            Refusal::MountPoint | Refusal::OtherFilesystem => &ELSEWHERE,
            Refusal::SourceReplaced => {
                &["skipping file ", ", as it was replaced while being copied"]
            }
            // cp has no words for rm's refusals or for those of a newer engine.
            _ => &["cannot copy ", ""],
        };
        self.around(parts)
    }

    /// Returns these parts with the path, or both paths, between them.
    fn around(&self, parts: &[&str]) -> Vec<u8> {
        let paths = [self.path, self.other.unwrap_or(self.path)];
        let mut text = parts[0].as_bytes().to_vec();
        for (path, after) in paths.iter().zip(&parts[1..]) {
            text.extend(self.quoted(path));
            text.extend_from_slice(after.as_bytes());
        }
        text
    }

    fn quoted(&self, path: &Path) -> Vec<u8> {
        quote::always(path.as_os_str().as_bytes(), self.charset)
    }
}

/// Returns cp's words before and after the path for an operation that failed.
fn around(operation: Operation) -> (&'static str, &'static str) {
    match operation {
        Operation::Remove => ("cannot remove ", ""),
        Operation::Stat => ("cannot stat ", ""),
        Operation::ReadDirectory => ("cannot access ", ""),
        Operation::OpenSource => ("cannot open ", " for reading"),
        Operation::Read => ("error reading ", ""),
        Operation::ReadLink => ("cannot read symbolic link ", ""),
        Operation::OpenTarget => ("target directory ", ""),
        Operation::CreateDirectory => ("cannot create directory ", ""),
        Operation::CreateFile => ("cannot create regular file ", ""),
        Operation::CreateSymlink => ("cannot create symbolic link ", ""),
        Operation::CreateFifo => ("cannot create fifo ", ""),
        Operation::CreateSpecial => ("cannot create special file ", ""),
        Operation::Write => ("error writing ", ""),
        Operation::Close => ("failed to close ", ""),
        Operation::Backup => ("cannot backup ", ""),
        Operation::RestoreBackup => ("cannot un-backup ", ""),
        Operation::StatSourceParent => ("failed to get attributes of ", ""),
        Operation::MakeParent => ("cannot make directory ", ""),
        Operation::SetMode => ("setting permissions for ", ""),
        Operation::Sync => ("error syncing ", ""),
        Operation::KeepOwner => ("failed to preserve ownership for ", ""),
        Operation::KeepTimes => ("preserving times for ", ""),
        Operation::KeepParentTimes => ("failed to preserve times for ", ""),
        Operation::KeepXattrs => ("setting attributes for ", ""),
        Operation::SetContext => ("failed to set the security context of ", ""),
        _ => ("cannot copy ", ""),
    }
}

/// Returns the reason of a failure without the entries that it concerns.
pub(crate) fn reason(cause: Cause) -> String {
    match cause {
        Cause::Failed(_, errno) => errno_text(&errno.into()),
        Cause::Refused(refusal) => refusal.to_string(),
    }
}

/// Returns the line about failures with one reason that were not written, without the command's name.
pub(crate) fn repeated(failures: u64, reason: &str) -> String {
    let failure = noun(failures, "failure", "failures");
    format!("{} more {failure}: {reason}", Count(failures))
}

/// Returns the line about a run that a signal has cancelled, without the command's name.
pub(crate) fn interrupted(tool: Tool, entries: u64, discarded: u64, failures: u64) -> String {
    let mut line = format!("interrupted: {}", done(tool, entries));
    if discarded > 0 {
        let file = noun(discarded, "file", "files");
        line.push_str(&format!(", {} incomplete {file} removed", Count(discarded)));
    }
    if failures > 0 {
        let failure = noun(failures, "failure", "failures");
        line.push_str(&format!(", {} {failure}", Count(failures)));
    }
    line
}

/// Returns the last line of a dry run: how much a real run would do.
pub(crate) fn planned(tool: Tool, summary: &Summary) -> String {
    let (entries, bytes) = (summary.entries, summary.bytes);
    let action = match tool {
        Tool::Remove => "remove",
        Tool::Copy => "copy",
    };
    let entry = noun(entries, "entry", "entries");
    let (entries, bytes) = (Count(entries), Bytes(bytes));
    let mut line = format!("would {action} {entries} {entry}, {bytes}");
    if summary.deleted > 0 {
        line.push_str(&format!(", and delete {}", Count(summary.deleted)));
    }
    line
}

/// Returns the line about a run with many failures, without the command's name.
pub(crate) fn failed(tool: Tool, entries: u64, failures: u64) -> String {
    let failure = noun(failures, "failure", "failures");
    format!("{} {failure}; {}", Count(failures), done(tool, entries))
}

fn done(tool: Tool, entries: u64) -> String {
    let action = match tool {
        Tool::Remove => "removed",
        Tool::Copy => "copied",
    };
    let entry = noun(entries, "entry", "entries");
    format!("{} {entry} {action}", Count(entries))
}

fn noun(count: u64, one: &'static str, several: &'static str) -> &'static str {
    if count == 1 { one } else { several }
}

/// Describes how content was copied, in the words of cp's `--debug`.
#[must_use]
pub fn method(method: CopyMethod) -> String {
    let name = |mechanism: Mechanism| match mechanism {
        Mechanism::Used => "yes",
        Mechanism::Avoided => "avoided",
        Mechanism::Unsupported => "unsupported",
        _ => "unknown",
    };
    // cp uses another word for a reflink that the options forbid.
    let reflink = match method.reflink {
        Mechanism::Avoided => "no",
        other => name(other),
    };
    let holes = match (method.seeks_holes, method.finds_zeros) {
        (false, true) => "zeros",
        (true, false) => "SEEK_HOLE",
        (true, true) => "SEEK_HOLE + zeros",
        (false, false) => "no",
    };
    let offload = name(method.offload);
    format!("copy offload: {offload}, reflink: {reflink}, sparse detection: {holes}")
}

#[cfg(test)]
mod tests;
