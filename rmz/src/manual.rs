//! The texts of the manual page, and the test that the generated files are those of the table.

use std::path::Path;

use fuc_cli::generate::{Manual, check};
use fuc_cli::invocation::Personality;

use crate::flags::TABLE;

const MANUAL: Manual = Manual {
    summary: "remove files and directories, on all cores",
    description: &[
        "`rmz` removes each FILE. The effects, messages and exit statuses are those of GNU \
         `rm -r`, but several threads work at the same time.",
        "It differs from GNU rm as follows. `rmz` removes directories with their contents, as if \
         `-r` were given. It does not prompt before it removes a write-protected file, unless \
         `-i` or `-I` is given. It has some more options, see below.",
        "Called as `rm`, by a symbolic link for example, it behaves strictly as GNU rm: \
         directories need `-r`, write-protected files are prompted for, and the extensions do \
         not exist.",
        "To remove a file whose name begins with '-', write `./-name`, or put `--` before the \
         name.",
        "On SIGINT, SIGTERM and SIGHUP, `rmz` stops at the next entry, and ends by the same \
         signal. What `--detach` has hidden by then is removed in the background. On \
         SIGUSR1, it writes a line to stderr that says what was removed so far.",
        "Patterns of `--exclude` that contain no slash match names anywhere, and also each FILE. \
         Those with a slash match paths below each FILE. The last pattern that matches decides; \
         one that begins with '!' includes again. What is excluded stays, with the directories \
         above it.",
    ],
    environment: &[
        (
            "RMZ_THREADS",
            "The number of threads, if `--threads` is not given.",
        ),
        (
            "RMZ_PROGRESS",
            "When progress is shown, if `--progress` is not given.",
        ),
        (
            "RMZ_CONFIG",
            "A file with an extension on each line, such as `--progress=auto`, for every run. Blank \
             lines and lines that begin with '#' are ignored.",
        ),
        (
            "RMZ_LOG",
            "A socket, a file or a FIFO to which `--detach` reports failures in the background. If it \
             is not set, they go to the system log.",
        ),
        (
            "POSIXLY_CORRECT",
            "If it is set, options end at the first operand.",
        ),
        (
            "LD_PRELOAD",
            "Called as `rm`, `rmz` executes another rm if this names a library that intercepts file calls, \
             such as that of fakeroot. Otherwise it warns.",
        ),
        (
            "LC_ALL, LC_CTYPE, LC_MESSAGES, LANG",
            "Select how names are quoted, and which answers mean yes. Messages are in English. A \
             statically linked `rmz` takes only answers that begin with 'y' or 'Y' for yes.",
        ),
    ],
    exit_status: &[
        (
            "0",
            "All operands were removed. With `--detach`, all of them were removed or hidden, and \
             failures in the background are reported to the log only.",
        ),
        (
            "1",
            "Something was not removed, or the command line has an error. Each failure is \
             reported on stderr.",
        ),
    ],
    examples: &[
        (
            "rmz node_modules target",
            "Removes two directories, like `rm -r`.",
        ),
        ("rmz -I *.o", "Prompts once before it removes the files."),
        (
            "rmz --detach old-checkout",
            "Hides a directory at once, and removes it in the background.",
        ),
        (
            "rmz --reap .",
            "Removes what `--detach` left over in the working directory, for example after a power cut.",
        ),
        (
            "rmz --progress -f /scratch/old",
            "Shows the number of removed entries, and ignores missing files.",
        ),
    ],
    see_also: &["rm(1)", "cpz(1)", "unlink(2)", "rmdir(2)"],
};

#[test]
fn the_manual_page_and_the_completions_are_those_of_the_table() {
    let version = env!("CARGO_PKG_VERSION");
    let command = TABLE.clap_command("rmz", version, Personality::Extended);
    check(Path::new(env!("CARGO_MANIFEST_DIR")), &command, &MANUAL);
}
