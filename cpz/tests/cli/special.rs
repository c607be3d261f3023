//! Symlinks, FIFOs, sockets and devices. A copy must not block on them.

use testkit::needs;

use crate::support::CP;

#[test]
fn symlinks_are_copied_as_they_are() {
    CP.rows(
        r"
        # A symlink is copied as it is, also if it is an operand.
        d/f=content elsewhere/f=elsewhere d/link->f d/to-dir->../elsewhere d/dangling->nowhere
        d/absolute->/etc/passwd d/loop->loop d/up->.. d/long->{x/*1500} l->d lf->d/f ld->nowhere
        cpz (d|l|lf|ld) new
        cpz l lf ld d/loop elsewhere
        # With a slash after it, it stands for its directory, and for nothing else.
        cpz (l/|l/.|lf/|ld/|d/loop/) new
        cpz l/ elsewhere
        # It is followed without -r.
        cp (lf|l|ld|d/loop) new
        cp lf l ld elsewhere",
    );
}

#[test]
fn special_files_are_made() {
    CP.rows(
        r"
        # FIFOs and sockets keep their special bits.
        d/fifo<fifo> %7755 d/socket<socket> %6711
        cpz (|--no-preserve=mode|-p) d new
        newest cpz (--preserve=ownership|-p --no-preserve=mode) d new
        # FIFOs and sockets are made, also from operands and by an ordinary user.
        d/fifo<fifo> %600 d/socket<socket> %751
        cpz d new
        fifo<fifo> socket<socket> d/
        cpz fifo new
        cpz fifo socket d
        d/fifo<fifo> %0 d/socket<socket> %4751
        user cpz d new
        # Devices are reported that may not be made.
        d/zero<zero> d/f=content
        user cpz d new
        # A socket is not read without -r.
        socket<socket>
        cp socket new
        # Content is not copied over a dangling symlink.
        l->nowhere
        cpz --copy-contents (|-f|--remove-destination|-b) /dev/null l
        l->f f=kept
        cpz --copy-contents /dev/null l
        # A FIFO is not opened for a copy over a directory, although dests are backed up.
        p<fifo> d/
        cpz -bT --copy-contents p d
        ! cannot overwrite directory 'd' with non-directory 'p'
        # FIFOs without a writer are copied as FIFOs.
        d/{a,b,c/d}<fifo>
        cpz d new",
    );
}

#[test]
fn recreates_devices() {
    needs!(root);
    CP.check("d null into", |tree| {
        tree.char_device("null", 1, 3)
            .char_device("d/zero", 1, 5)
            .mode(0o666)
            .block_device("d/loop", 7, 200)
            .mode(0o600)
            .dir("into");
    });
}

#[test]
fn streams_fifos_and_devices() {
    // Do not use /dev/stdout: a cpz that replaced it would harm the machine.
    CP.rows(
        r#"
        # Content is written into a FIFO, and read from one without -r.
        f='content\n' fifo<fifo>
        sh:'cat fifo & "$@"; s=$?; wait; exit $s' (cpz|cp) f fifo
        sh:'printf content >fifo & "$@"; s=$?; wait; exit $s' cp fifo out
        # Content is written to stdout.
        f='content\nof two lines\n' out->/proc/self/fd/1
        (cpz|cp) f /proc/self/fd/1
        cpz f out
        # Content is read from stdin without -r, and otherwise the link is copied.
        .
        (cp|bare cpz -r) /dev/stdin out << content
        # Content is written to /dev/null, by a user that could not replace it.
        f=content d/f=content
        user cpz (|-f) f /dev/null
        user cpz -T d /dev/null
        # /dev/null is read without -r.
        old=old
        cp /dev/null (new|old)"#,
    );
}
