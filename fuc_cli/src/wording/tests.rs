//! Compares the wording with literal messages of the installed tools.

use super::*;

fn message(tool: Tool, cause: Cause, path: &str, other: Option<&str>) -> String {
    let wording = Wording {
        tool,
        charset: Charset::Ascii,
        path: Path::new(path),
        other: other.map(Path::new),
    };
    wording.describe(cause)
}

fn failed(operation: Operation, errno: Errno) -> Cause {
    Cause::Failed(operation, errno.raw_os_error())
}

fn cp_fails(operation: Operation, errno: Errno) -> String {
    message(Tool::Copy, failed(operation, errno), "it's", None)
}

fn cp_refuses(refusal: Refusal, path: &str, other: &str) -> String {
    message(Tool::Copy, Cause::Refused(refusal), path, Some(other))
}

#[test]
fn cp_names_the_failed_operation() {
    use Operation::*;
    for (operation, text) in [
        (Remove, "cannot remove \"it's\": Permission denied"),
        (Stat, "cannot stat \"it's\": Permission denied"),
        (ReadDirectory, "cannot access \"it's\": Permission denied"),
        (
            OpenSource,
            "cannot open \"it's\" for reading: Permission denied",
        ),
        (Read, "error reading \"it's\": Permission denied"),
        (
            ReadLink,
            "cannot read symbolic link \"it's\": Permission denied",
        ),
        (OpenTarget, "target directory \"it's\": Permission denied"),
        (
            CreateDirectory,
            "cannot create directory \"it's\": Permission denied",
        ),
        (
            CreateFile,
            "cannot create regular file \"it's\": Permission denied",
        ),
        (
            CreateSymlink,
            "cannot create symbolic link \"it's\": Permission denied",
        ),
        (CreateFifo, "cannot create fifo \"it's\": Permission denied"),
        (
            CreateSpecial,
            "cannot create special file \"it's\": Permission denied",
        ),
        (Write, "error writing \"it's\": Permission denied"),
        (Close, "failed to close \"it's\": Permission denied"),
        (
            SetMode,
            "setting permissions for \"it's\": Permission denied",
        ),
    ] {
        assert_eq!(cp_fails(operation, Errno::ACCESS), text);
    }
}

#[test]
fn cp_names_the_reason_of_a_refusal() {
    use Refusal::*;
    for (refusal, text) in [
        (NotRecursive, "-r not specified; omitting directory 'a'"),
        (
            IntoItself,
            "cannot copy a directory, 'a', into itself, 'b c'",
        ),
        (SameFile, "'a' and 'b c' are the same file"),
        (
            DirectoryByNonDirectory,
            "cannot overwrite directory 'a' with non-directory 'b c'",
        ),
        (
            NonDirectoryByDirectory,
            "cannot overwrite non-directory 'a' with directory 'b c'",
        ),
        (
            JustCreated,
            "will not overwrite just-created 'a' with 'b c'",
        ),
        (DanglingDest, "not writing through dangling symlink 'a'"),
        (
            SourceReplaced,
            "skipping file 'a', as it was replaced while being copied",
        ),
        (
            FileNamedTwice,
            "warning: source file 'a' specified more than once",
        ),
        (
            DirectoryNamedTwice,
            "warning: source directory 'a' specified more than once",
        ),
        (
            SharedInodeNumber,
            "warning: 'a' has the inode number of another source file but differs from it: not linked",
        ),
        (
            HomeNotReached,
            "cannot copy to 'a': the machine that copies all its hard links does not see the directory yet",
        ),
        (CyclicSymlink, "cannot copy cyclic symbolic link 'a'"),
        (
            RelativeSymlink,
            "a: can make relative symbolic links only in current directory",
        ),
        (
            ThroughJustCreatedLink,
            "will not copy 'b c' through just-created symlink 'a'",
        ),
    ] {
        assert_eq!(cp_refuses(refusal, "a", "b c"), text);
    }
}

#[test]
fn cp_names_both_ends_of_links_and_clones() {
    for (operation, text) in [
        (
            Operation::CreateHardLink,
            "cannot create hard link 'a' to 'b c': Permission denied",
        ),
        (
            Operation::CreateSymlink,
            "cannot create symbolic link 'a' to 'b c': Permission denied",
        ),
        (
            Operation::Clone,
            "failed to clone 'a' from 'b c': Permission denied",
        ),
    ] {
        let cause = failed(operation, Errno::ACCESS);
        assert_eq!(message(Tool::Copy, cause, "a", Some("b c")), text);
    }
}

#[test]
fn an_interrupt_says_how_much_was_done() {
    for (tool, entries, discarded, failures, line) in [
        (Tool::Remove, 0, 0, 0, "interrupted: 0 entries removed"),
        (
            Tool::Remove,
            1,
            0,
            1,
            "interrupted: 1 entry removed, 1 failure",
        ),
        (
            Tool::Copy,
            1_234_567,
            0,
            0,
            "interrupted: 1,234,567 entries copied",
        ),
        (
            Tool::Copy,
            28_826,
            2,
            1_000,
            "interrupted: 28,826 entries copied, 2 incomplete files removed, 1,000 failures",
        ),
        (
            Tool::Copy,
            100,
            1,
            0,
            "interrupted: 100 entries copied, 1 incomplete file removed",
        ),
    ] {
        let mut summary = Summary::default();
        (summary.entries, summary.discarded, summary.failures) = (entries, discarded, failures);
        assert_eq!(interrupted(tool, &summary), line);
    }
}

#[test]
fn the_last_line_of_a_dry_run_says_how_much_would_be_done() {
    for (tool, [entries, bytes, deleted], line) in [
        (Tool::Remove, [0, 0, 0], "would remove 0 entries, 0 B"),
        (Tool::Remove, [1, 1, 0], "would remove 1 entry, 1 B"),
        (
            Tool::Copy,
            [28_826, 2 << 30, 0],
            "would copy 28,826 entries, 2.0 GiB",
        ),
        (
            Tool::Copy,
            [1, 0, 1_000],
            "would copy 1 entry, 0 B, and delete 1,000",
        ),
    ] {
        let mut summary = Summary::default();
        (summary.entries, summary.bytes, summary.deleted) = (entries, bytes, deleted);
        assert_eq!(planned(tool, &summary), line);
    }
}
