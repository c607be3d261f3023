//! Wrong command lines: nothing is removed, and the messages are GNU's.

use crate::support::RM;

#[test]
fn wrong_command_lines() {
    RM.rows(
        r"
        # Unknown options are refused, and those that may mean several.
        f= d/f=
        bare LC_ALL=(C|C.UTF-8) rmz (-r --nope|-r --nope=x|-rx|--no --ver|--ver|--v) f
        bare LC_ALL=(C|C.UTF-8) rmz -r f -Y
        # Some flags take no value.
        bare LC_ALL=(C|C.UTF-8) rmz (--force=x|--recursive=) f
        # The option that gives up the root cannot be shortened.
        bare LC_ALL=(C|C.UTF-8) rmz -r (--no-preserve|--no-p) f
        bare LC_ALL=(C|C.UTF-8) rmz -r (--preserve-root=some|--preserve-root=) f
        # The first mistake is reported.
        bare LC_ALL=(C|C.UTF-8) rmz (--nope --neither|-rxy) f
        # Flags are taken in any bundle.
        bare rmz -frRv f d
        bare rmz --force --recursive --verbose f
        # A number of threads must be one, but not in the environment.
        rmz --threads=0 f
        ! invalid number of threads: '0'
        RMZ_THREADS=many rmz d
        # A removal in the background knows no limits.
        rmz (--detach|--reap) (-i|--dry-run|--exclude=a|--files0-from=a|--no-recursive|--max-rate=1/s) f
        ! cannot ...with --detach or --reap
        ! try
        rmz (--detach --reap|--reap --detach) f
        ! cannot combine --detach and --reap
        ! try
        rmz --wait f
        ! --wait needs --detach or --reap
        ! try
        # A file that is named like an option gets a hint.
        ./-foo=
        bare rmz -foo",
    );
}
