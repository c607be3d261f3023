//! Diagnostics and questions: the engine's facts, in the words of GNU rm or cp.
//!
//! The engine reports operations and paths, and only this module knows the tool. For an unreadable directory rm says
//! "cannot remove", and cp "cannot access". The words are those of coreutils 9.10.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use fuc_engine::gnu::{CopyMethod, Kind, Mechanism};
use fuc_engine::{Cause, Error, Operation, Question, Refusal, RemovalTarget, Summary};
use rustix::io::Errno;

use crate::amounts::{Bytes, Count, Quantity, entries};
use crate::locale::Charset;
use crate::quote;
use crate::tool::Tool;

#[cfg(any(test, target_env = "musl"))]
mod error_texts;

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
struct Wording<'a> {
    tool: Tool,
    charset: Charset,
    /// The path that failed.
    path: &'a Path,
    /// The other path, if the cause concerns two.
    other: Option<&'a Path>,
}

/// Returns the diagnostic for an error of the engine: one line, and perhaps a second one with advice, without the
/// command's name.
#[must_use]
pub fn describe(error: &Error, tool: Tool, charset: Charset) -> String {
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
pub fn question(question: &Question<'_>, charset: Charset) -> Option<String> {
    let about = |target: &RemovalTarget<'_>, action: &str, kind: &str| {
        let protected = match target.is_write_protected {
            true => "write-protected ",
            false => "",
        };
        let path = quote::always(target.path, charset);
        format!("{action} {protected}{kind} {path}")
    };
    Some(match question {
        Question::Remove(target) => about(target, "remove", kind_name(target.kind)),
        Question::Descend(target) => about(target, "descend into", "directory"),
        Question::RemoveInaccessible(target) => {
            // In this question rm does not mention write protection.
            let path = quote::always(target.path, charset);
            format!("attempt removal of inaccessible directory {path}")
        }
        Question::Overwrite {
            path,
            mode,
            is_write_protected,
            is_removed_first,
            ..
        } => {
            let path = quote::always(path, charset);
            let letters = letters(*mode);
            match (is_write_protected, is_removed_first) {
                (false, _) => format!("overwrite {path}"),
                (true, true) => format!("replace {path}, overriding mode {mode:04o} ({letters})"),
                (true, false) => {
                    format!("unwritable {path} (mode {mode:04o}, {letters}); try anyway")
                }
            }
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

/// The words about a directory on another filesystem.
const ELSEWHERE: &str = "skipping {path}, since it's on a different device";

impl Wording<'_> {
    /// Returns the diagnostic for `cause`.
    fn describe(&self, cause: Cause) -> String {
        match (cause, self.tool) {
            (Cause::Failed(Operation::StatParent, _), Tool::Remove) => self.unknown_parent(),
            (Cause::Failed(_, raw), Tool::Remove) => self.failed("cannot remove {path}", raw),
            (Cause::Failed(operation, raw), Tool::Copy) => {
                self.failed(self.failure_of_cp(operation), raw)
            }
            (Cause::Refused(refusal), Tool::Remove) => self.refused_by_rm(refusal),
            (Cause::Refused(refusal), Tool::Copy) => self.refused_by_cp(refusal),
        }
    }

    fn failed(&self, words: &str, raw: i32) -> String {
        let error = io::Error::from_raw_os_error(raw);
        format!("{}: {}", self.filled(words), errno_text(&error))
    }

    fn refused_by_rm(&self, refusal: Refusal) -> String {
        self.filled(match refusal {
            Refusal::DotOrDotDot => "refusing to remove '.' or '..' directory: skipping {path}",
            Refusal::Root => {
                let same = match self.path.as_os_str() == "/" {
                    true => "",
                    false => " (same as '/')",
                };
                return self.filled(&format!(
                    "it is dangerous to operate recursively on {{path}}{same}\n\
                     use --no-preserve-root to override this failsafe"
                ));
            }
            Refusal::MountPoint => {
                "skipping {path}, since it's on a different device\n\
                 and --preserve-root=all is in effect"
            }
            Refusal::OtherFilesystem => ELSEWHERE,
            Refusal::NotRecursive => {
                return self.failed("cannot remove {path}", Errno::ISDIR.raw_os_error());
            }
            // rm has no words for cp's refusals or for those of a newer engine.
            _ => "cannot remove {path}",
        })
    }

    /// Returns rm's message for a parent whose attributes cannot be read. It does not name the reason.
    fn unknown_parent(&self) -> String {
        let path = self.path.as_os_str().as_bytes();
        let path = path.strip_suffix(b"/").unwrap_or(path);
        let parent = OsString::from_vec([path, b"/.."].concat());
        let parent = quote::always(parent, self.charset);
        let path = quote::always(self.path, self.charset);
        format!("failed to stat {parent}: skipping {path}")
    }

    fn refused_by_cp(&self, refusal: Refusal) -> String {
        self.filled(match refusal {
            Refusal::NotRecursive => "-r not specified; omitting directory {path}",
            Refusal::IntoItself => "cannot copy a directory, {path}, into itself, {other}",
            Refusal::SameFile => "{path} and {other} are the same file",
            Refusal::DirectoryByNonDirectory => {
                "cannot overwrite directory {path} with non-directory {other}"
            }
            Refusal::NonDirectoryByDirectory => {
                "cannot overwrite non-directory {path} with directory {other}"
            }
            Refusal::JustCreated => "will not overwrite just-created {path} with {other}",
            Refusal::ThroughJustCreatedLink => {
                "will not copy {other} through just-created symlink {path}"
            }
            Refusal::DanglingDest => "not writing through dangling symlink {path}",
            Refusal::FileNamedTwice => "warning: source file {path} specified more than once",
            Refusal::DirectoryNamedTwice => {
                "warning: source directory {path} specified more than once"
            }
            Refusal::SharedInodeNumber => {
                "warning: {path} has the inode number of another source file but differs from it: not linked"
            }
            Refusal::NotReplacing => "not replacing {path}",
            Refusal::LeftIncomplete => "{path} is incomplete",
            Refusal::Different => "{path} differs from {other}",
            Refusal::BackupOverSource => "backing up {path} might destroy source;  {other} not copied",
            Refusal::ParentNotDirectory => "{path} exists but is not a directory",
            Refusal::CyclicSymlink => "cannot copy cyclic symbolic link {path}",
            Refusal::RelativeSymlink => {
                // cp quotes a colon, too, because a colon ends the name in this message.
                let quoted = match self.path.as_os_str().as_bytes().contains(&b':') {
                    true => quote::always(self.path, self.charset),
                    false => quote::if_needed(self.path, self.charset),
                };
                return format!(
                    "{quoted}: can make relative symbolic links only in current directory"
                );
            }
            Refusal::HomeNotReached => {
                "cannot copy to {path}: the machine that copies all its hard links does not see the directory yet"
            }
            Refusal::CannotMirror => {
                "cannot delete in {path}: a source is in it, or several sources are copied to it"
            }
            Refusal::MountPoint | Refusal::OtherFilesystem => ELSEWHERE,
            Refusal::SourceReplaced => "skipping file {path}, as it was replaced while being copied",
            // cp has no words for rm's refusals or for those of a newer engine.
            _ => "cannot copy {path}",
        })
    }

    /// Returns these words with the names of the paths in place of `{path}` and `{other}`.
    fn filled(&self, words: &str) -> String {
        let parts = words.split(['{', '}']).map(|part| match part {
            "path" => quote::always(self.path, self.charset),
            "path_in_locale" => quote::locale(self.path, self.charset),
            "other" => quote::always(self.other.unwrap_or(self.path), self.charset),
            words => words.to_owned(),
        });
        parts.collect()
    }

    /// Returns cp's words for an operation that failed.
    fn failure_of_cp(&self, operation: Operation) -> &'static str {
        match operation {
            Operation::Remove => "cannot remove {path}",
            Operation::Stat => "cannot stat {path}",
            Operation::ReadDirectory => "cannot access {path}",
            Operation::OpenSource => "cannot open {path} for reading",
            Operation::Read => "error reading {path}",
            Operation::ReadLink => "cannot read symbolic link {path}",
            Operation::OpenLinkDest => "warning: nothing is linked to files in {path}",
            Operation::OpenTarget => "target directory {path}",
            Operation::CreateDirectory => "cannot create directory {path}",
            Operation::CreateFile => "cannot create regular file {path}",
            Operation::CreateSymlink if self.other.is_some() => {
                "cannot create symbolic link {path} to {other}"
            }
            Operation::CreateSymlink => "cannot create symbolic link {path}",
            Operation::CreateHardLink => "cannot create hard link {path} to {other}",
            Operation::CreateFifo => "cannot create fifo {path}",
            Operation::CreateSpecial => "cannot create special file {path}",
            Operation::Write => "error writing {path}",
            Operation::Clone => "failed to clone {path} from {other}",
            Operation::Close => "failed to close {path}",
            Operation::Backup => "cannot backup {path}",
            Operation::RestoreBackup => "cannot un-backup {path}",
            Operation::StatSourceParent => "failed to get attributes of {path}",
            Operation::MakeParent => "cannot make directory {path}",
            Operation::SetMode => "setting permissions for {path}",
            Operation::Sync => "error syncing {path}",
            // In this message cp uses the quotes of the locale.
            Operation::KeepMode => "preserving permissions for {path_in_locale}",
            Operation::KeepOwner => "failed to preserve ownership for {path}",
            Operation::KeepTimes => "preserving times for {path}",
            Operation::KeepParentTimes => "failed to preserve times for {path}",
            Operation::KeepXattrs => "setting attributes for {path}",
            Operation::SetContext => "failed to set the security context of {path}",
            _ => "cannot copy {path}",
        }
    }
}

/// Returns the reason of a failure without the entries that it concerns.
pub(crate) fn reason(cause: Cause) -> String {
    match cause {
        Cause::Failed(_, raw) => errno_text(&io::Error::from_raw_os_error(raw)),
        Cause::Refused(refusal) => refusal.to_string(),
    }
}

/// Returns the line about failures with one reason that were not written, without the command's name.
pub(crate) fn repeated(failures: u64, reason: &str) -> String {
    let more = Quantity(failures, "more failure", "more failures");
    format!("{more}: {reason}")
}

/// Returns the line about a run that a signal has cancelled, without the command's name.
pub(crate) fn interrupted(tool: Tool, summary: &Summary) -> String {
    let mut line = format!("interrupted: {}", done(tool, summary));
    if summary.discarded > 0 {
        let files = Quantity(summary.discarded, "incomplete file", "incomplete files");
        line += &format!(", {files} removed");
    }
    if summary.failures > 0 {
        line += &format!(", {}", failures(summary));
    }
    line
}

/// Returns the last line of a dry run: how much a real run would do.
pub(crate) fn planned(tool: Tool, summary: &Summary) -> String {
    let action = match tool {
        Tool::Remove => "remove",
        Tool::Copy => "copy",
    };
    let (entries, bytes) = (entries(summary.entries), Bytes(summary.bytes));
    let mut line = format!("would {action} {entries}, {bytes}");
    if summary.deleted > 0 {
        line += &format!(", and delete {}", Count(summary.deleted));
    }
    line
}

/// Returns the line about a run with many failures, without the command's name.
pub(crate) fn failed(tool: Tool, summary: &Summary) -> String {
    format!("{}; {}", failures(summary), done(tool, summary))
}

fn failures(summary: &Summary) -> Quantity {
    Quantity(summary.failures, "failure", "failures")
}

fn done(tool: Tool, summary: &Summary) -> String {
    let action = match tool {
        Tool::Remove => "removed",
        Tool::Copy => "copied",
    };
    format!("{} {action}", entries(summary.entries))
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
    let holes = method
        .holes
        .map(|holes| (holes.asks_filesystem, holes.finds_zeros));
    let holes = match holes {
        None => "unknown",
        Some((false, false)) => "no",
        Some((false, true)) => "zeros",
        Some((true, false)) => "SEEK_HOLE",
        Some((true, true)) => "SEEK_HOLE + zeros",
    };
    let offload = name(method.offload);
    format!("copy offload: {offload}, reflink: {reflink}, sparse detection: {holes}\n")
}

#[cfg(test)]
mod tests;
