//! Wrong command lines: nothing is copied, and the messages are GNU's.

use crate::support::CP;

#[test]
fn wrong_command_lines() {
    CP.rows(
        r"
        # Operands are needed, and not too many.
        f=content d/f=content
        bare LC_ALL=(C|C.UTF-8) cpz (|f|-T|-T f|-t d|-- it\'s)
        bare LC_ALL=(C|C.UTF-8) cpz -T f d x (|y)
        # Unknown options are refused, and those that may mean several.
        bare LC_ALL=(C|C.UTF-8) cpz (--nope|--nope=x|-rY|--re|--ver|--no) f new
        bare LC_ALL=(C|C.UTF-8) cpz f new -Y
        # Some flags take a value, and others take none.
        bare LC_ALL=(C|C.UTF-8) cpz (--force=x|--recursive=) f new
        bare LC_ALL=(C|C.UTF-8) cpz f (-t|--target-directory)
        # Possible options are listed in the order of cp.
        newest bare cpz --= f new
        # Flags are taken in any bundle.
        bare cpz -rfvT f new
        bare cpz -rvtd f
        bare cpz --force --recursive --verbose --no-target f new
        bare cpz f -t d -v
        # A wrong number of threads in the environment is ignored.
        CPZ_THREADS=0 cpz d new",
    );
}
