//! The texts of the manual page, and the test that the generated files are those of the table.

use std::path::Path;

use fuc_cli::generate::{Manual, check};
use fuc_cli::invocation::Personality;

use crate::flags::TABLE;

const MANUAL: Manual = Manual {
    summary: "copy files and directories, on all cores",
    description: &[
        "`cpz` copies SOURCE to DEST, or each SOURCE into DIRECTORY. The effects, messages and exit \
         statuses are those of GNU `cp -r`, but several threads work at the same time.",
        "It differs from GNU cp as follows. `cpz` copies directories with their contents, as if \
         `-r` were given. It has some more options, see below. It also differs in some rare \
         cases, which its README lists.",
        "Called as `cp`, by a symbolic link for example, it behaves strictly as GNU cp: \
         directories need `-r`, and the extensions do not exist.",
        "A copy writes through a dest file that is a symbolic link to an existing file. Use \
         `--remove-destination` in directories that other users can write to.",
        "On SIGINT, SIGTERM and SIGHUP, `cpz` stops at the next entry or in the middle of a large \
         file. It removes the incomplete files that it has created, and ends by the same signal. \
         On SIGUSR1, it writes a line to stderr that says what was copied so far.",
        "Patterns of `--exclude` that contain no slash match names anywhere, and also each SOURCE. \
         Those with a slash match paths below each SOURCE. The last pattern that matches decides; \
         one that begins with '!' includes again.",
    ],
    environment: &[
        (
            "CPZ_THREADS",
            "The number of threads, if `--threads` is not given.",
        ),
        (
            "CPZ_PROGRESS",
            "When progress is shown, if `--progress` is not given.",
        ),
        (
            "CPZ_CONFIG",
            "A file with an extension on each line, such as `--progress=auto`, for every run. Blank \
             lines and lines that begin with '#' are ignored.",
        ),
        (
            "POSIXLY_CORRECT",
            "If it is set, options end at the first operand, and dangling symbolic links at the \
             dest are written through.",
        ),
        (
            "SIMPLE_BACKUP_SUFFIX",
            "The suffix of backups, if `--suffix` is not given. The default is '~'.",
        ),
        (
            "VERSION_CONTROL",
            "The kind of backups, if `--backup` is given without CONTROL.",
        ),
        (
            "LD_PRELOAD",
            "Called as `cp`, `cpz` executes another cp if this names a library that intercepts file calls, \
             such as that of fakeroot. Otherwise it warns.",
        ),
        (
            "LC_ALL, LC_CTYPE, LC_MESSAGES, LANG",
            "Select how names are quoted, and which answers mean yes. Messages are in English. A \
             statically linked `cpz` takes only answers that begin with 'y' or 'Y' for yes.",
        ),
    ],
    exit_status: &[
        ("0", "Everything was copied."),
        (
            "1",
            "Something was not copied, or the command line has an error. Each failure is \
             reported on stderr.",
        ),
    ],
    examples: &[
        (
            "cpz linux linux-patched",
            "Copies a directory, like `cp -r`.",
        ),
        (
            "cpz -a /home /backup",
            "Copies with owners, times, links, ACLs and extended attributes, like `cp -a`.",
        ),
        (
            "cpz -uT build deployed",
            "Copies only newer files, into the directory `deployed` itself.",
        ),
        (
            "cpz -aT --resume /home /backup",
            "Continues a copy that was made with `cpz -aT`. Without `-T` it would go into `/backup/home`.",
        ),
        (
            "cpz -a --fsync --verify /home /backup",
            "Writes the copies to the disk, and compares them with their sources.",
        ),
    ],
    see_also: &["cp(1)", "rmz(1)", "copy_file_range(2)", "syncfs(2)"],
};

#[test]
fn the_manual_page_and_the_completions_are_those_of_the_table() {
    let version = env!("CARGO_PKG_VERSION");
    let command = TABLE.clap_command("cpz", version, Personality::Extended);
    check(Path::new(env!("CARGO_MANIFEST_DIR")), &command, &MANUAL);
}
