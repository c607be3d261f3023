//! Operands: paths as a caller names them, and which of them can be worked on together.

use std::ffi::{CStr, CString, OsStr};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;

use crate::hashing::HashSet;
use crate::sys::{self, Fd, FileId, Storage, Symlinks};

/// Converts a path for system calls.
///
/// # Errors
/// Fails with `EINVAL` if the path contains a NUL byte.
pub(crate) fn to_c(path: &Path) -> Result<Box<CStr>, Errno> {
    match CString::new(path.as_os_str().as_bytes()) {
        Ok(path) => Ok(path.into_boxed_c_str()),
        Err(_) => Err(Errno::INVAL),
    }
}

/// Returns a path for system calls as the caller named it.
pub(crate) fn path_of(path: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(path.to_bytes()))
}

/// Returns the path with at most one slash at its end, as `rm` shows it.
///
/// `//` stays as it is, because POSIX allows it to differ from `/`.
pub(crate) fn with_one_slash(path: Box<CStr>) -> Box<CStr> {
    let bytes = path.to_bytes();
    if bytes.len() < 3 || !bytes.ends_with(b"//") {
        return path;
    }
    let end = trim_slashes(bytes).len();
    c_string(&bytes[..=end]).into_boxed_c_str()
}

/// Returns a C string of bytes that are those of C strings.
pub(crate) fn c_string(bytes: impl Into<Vec<u8>>) -> CString {
    CString::new(bytes).expect("BUG: a NUL within a C string")
}

/// Returns `path` without the slashes at its end; nothing is left of `/`.
pub(crate) fn trim_slashes(path: &[u8]) -> &[u8] {
    let last = path.iter().rposition(|&byte| byte != b'/');
    &path[..last.map_or(0, |last| last + 1)]
}

/// Returns a path without the slashes at its end, which would make the kernel follow a link. A path of slashes stays.
pub(crate) fn without_slashes(path: &CStr) -> CString {
    match trim_slashes(path.to_bytes()) {
        b"" => path.into(),
        trimmed => c_string(trimmed),
    }
}

/// Splits a path into its directory part, which ends in a slash, and its last component.
///
/// Slashes at the end of the path are dropped. `/` has an empty last component.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let trimmed = trim_slashes(path);
    let base = trimmed
        .iter()
        .rposition(|&byte| byte == b'/')
        .map_or(0, |slash| slash + 1);
    trimmed.split_at(base)
}

/// Returns the path of the directory that a path's last component is in.
pub(crate) fn directory_of(path: &CStr) -> CString {
    let (directory, _) = split(path.to_bytes());
    c_string([directory, b"."].concat())
}

/// Opens the directory that the last component of a path is in, to name it only. The path is relative to `dir`.
pub(crate) fn open_directory_of(dir: BorrowedFd<'_>, path: &CStr) -> Result<Fd, Errno> {
    sys::open_path_directory(dir, &directory_of(path), Symlinks::Follow)
}

/// Identifies the directory that the last component of a path is in. The path is relative to `dir`.
pub(crate) fn directory_id_of(dir: BorrowedFd<'_>, path: &CStr) -> Option<FileId> {
    let directory = sys::stat(dir, &directory_of(path), Symlinks::Follow);
    directory.ok().map(|directory| FileId::of(&directory))
}

/// Returns `true` if a path is in a directory on a native filesystem.
pub(crate) fn is_on_native(dir: BorrowedFd<'_>, path: &CStr) -> bool {
    let directory = open_directory_of(dir, path);
    directory.is_ok_and(|directory| Storage::of(directory.as_fd()) == Storage::Native)
}

/// Returns what a name in a directory leads to, if that can be looked at. Does not follow it if it is a link.
pub(crate) fn id_of(dir: BorrowedFd<'_>, name: &CStr) -> Option<FileId> {
    let stat = sys::stat(dir, name, Symlinks::NoFollow);
    stat.ok().map(|stat| FileId::of(&stat))
}

/// Returns the last component of a path.
pub(crate) fn name_of(path: &[u8]) -> CString {
    c_string(split(path).1)
}

/// Does the same as [`directory_of`], but the path may be that of a symbolic link to the directory.
pub(crate) fn directory_itself_of(path: &CStr) -> CString {
    let (directory, _) = split(path.to_bytes());
    match directory {
        b"" => c".".into(),
        directory => without_slashes(&c_string(directory)),
    }
}

pub(crate) fn is_dot_or_dot_dot(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

/// Returns `true` if a last component names an entry of its directory, and not that
/// directory or one above it.
pub(crate) fn is_one_name(name: &[u8]) -> bool {
    !name.is_empty() && !is_dot_or_dot_dot(name)
}

/// Groups neighbours that have the same directory part and different last components.
///
/// The operands of such a run are different files, and none lies in another. A path with
/// a slash at its end may be a symlink to any directory, so it is a run of its own.
///
/// The runs are processed one after the other. So operands that could affect the same
/// file take effect in their order. `may_be_repeated` says by an index whether another operand may have the same last
/// component.
pub(crate) fn independent_groups<'a>(
    operands: impl IntoIterator<Item = &'a CStr>,
    may_be_repeated: impl Fn(u32) -> bool,
) -> Vec<Range<u32>> {
    let mut runs = Vec::new();
    let mut run = 0..0;
    let mut first = (&b""[..], &b""[..]);
    let mut names = HashSet::default();
    for path in operands {
        let (dir, name) = match path.to_bytes() {
            path if path.ends_with(b"/") => (path, &b""[..]),
            path => split(path),
        };
        let is_neighbour = !run.is_empty() && first.0 == dir;
        let fits = is_neighbour && is_one_name(first.1) && is_one_name(name) && {
            if names.is_empty() {
                // The set is created late, because a single operand does not need it.
                names.insert(first.1);
            }
            !may_be_repeated(run.end) || names.insert(name)
        };
        if !fits {
            runs.push(run.clone());
            run.start = run.end;
            first = (dir, name);
            names.clear();
        }
        run.end += 1;
    }
    runs.push(run);
    runs.retain(|run| !run.is_empty());
    runs
}

/// Splits operands into those to begin now and the rest. A million operands must not be queued at
/// once.
pub(crate) fn portion(operands: Range<u32>) -> (Range<u32>, Option<Range<u32>>) {
    const MOST: u32 = 256;
    let middle = operands.end.min(operands.start.saturating_add(MOST));
    let rest = (middle < operands.end).then_some(middle..operands.end);
    (operands.start..middle, rest)
}

/// The form of paths for `serde`, which has one only for those that are UTF-8.
#[cfg(feature = "serde")]
pub(crate) mod bytes {
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(bytes: D) -> Result<PathBuf, D::Error> {
        OsString::deserialize(bytes).map(PathBuf::from)
    }
}

/// The same for a path that may be missing.
#[cfg(feature = "serde")]
pub(crate) mod optional_bytes {
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        path: &Option<PathBuf>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        path.as_deref().map(Path::as_os_str).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        bytes: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<OsString>::deserialize(bytes)?.map(PathBuf::from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(paths: &[&str]) -> Vec<(u32, u32)> {
        let operands: Vec<_> = paths
            .iter()
            .map(|path| to_c(Path::new(path)).unwrap())
            .collect();
        independent_groups(operands.iter().map(|path| &**path), |_| true)
            .into_iter()
            .map(|run| (run.start, run.end))
            .collect()
    }

    #[test]
    fn a_path_is_split_before_its_last_component() {
        assert_eq!(split(b"a/b//c//"), (&b"a/b//"[..], &b"c"[..]));
        assert_eq!(split(b"c"), (&b""[..], &b"c"[..]));
        assert_eq!(split(b"//"), (&b""[..], &b""[..]));
        assert_eq!(split(b"/c"), (&b"/"[..], &b"c"[..]));
    }

    #[test]
    fn the_directory_of_a_path_is_a_path() {
        assert_eq!(&*directory_of(c"a/b//c//"), c"a/b//.");
        assert_eq!(&*directory_of(c"c"), c".");
        assert_eq!(&*directory_of(c"/c"), c"/.");
    }

    #[test]
    fn names_in_one_directory_run_together() {
        assert_eq!(runs(&["d/a", "d/b", "d/c"]), [(0, 3)]);
    }

    #[test]
    fn a_repeated_name_starts_a_new_run() {
        assert_eq!(runs(&["a", "b", "a/"]), [(0, 2), (2, 3)]);
    }

    #[test]
    fn a_name_with_a_slash_at_its_end_runs_alone() {
        assert_eq!(runs(&["d/a", "d/b/", "d/c"]), [(0, 1), (1, 2), (2, 3)]);
    }

    #[test]
    fn each_directory_starts_a_new_run() {
        assert_eq!(runs(&["a", "a/b", "a/c", "x"]), [(0, 1), (1, 3), (3, 4)]);
    }

    #[test]
    fn dots_run_alone() {
        assert_eq!(runs(&["a", ".", "b"]), [(0, 1), (1, 2), (2, 3)]);
    }

    #[test]
    fn several_slashes_at_the_end_become_one() {
        let shown = |path| with_one_slash(to_c(Path::new(path)).unwrap());
        assert_eq!(&*shown("a//b///"), c"a//b/");
        assert_eq!(&*shown("///"), c"/");
        assert_eq!(&*shown("//"), c"//");
        assert_eq!(&*shown("a"), c"a");
    }

    #[test]
    fn a_path_with_a_nul_byte_is_invalid() {
        assert_eq!(to_c(Path::new("a\0b")), Err(Errno::INVAL));
    }
}
