//! Symlinks, FIFOs, sockets and devices. A copy must not block on them.

use testkit::{
    probe,
    run::{Parity, Run},
    skip,
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ, NEWEST_CP};

fn links(tree: &Tree) {
    tree.file("d/f", b"content")
        .file("elsewhere/f", b"elsewhere")
        .symlink("d/link", "f")
        .symlink("d/to-dir", "../elsewhere")
        .symlink("d/dangling", "nowhere")
        .symlink("d/absolute", "/etc/passwd")
        .symlink("d/loop", "loop")
        .symlink("d/up", "..")
        .symlink("d/long", "x/".repeat(1_500))
        .symlink("l", "d")
        .symlink("lf", "d/f")
        .symlink("ld", "nowhere");
}

#[test]
fn copies_symlinks_as_they_are() {
    CP.check(["d", "new"], links);
}

#[test]
fn copies_a_symlink_that_is_an_operand_as_it_is() {
    CP.check(["l", "new"], links);
    CP.check(["lf", "new"], links);
    CP.check(["ld", "new"], links);
    CP.check(["l", "lf", "ld", "d/loop", "elsewhere"], links);
}

#[test]
fn copies_the_directory_behind_a_symlink_with_a_slash_after_it() {
    CP.check(["l/", "new"], links);
    CP.check(["l/", "elsewhere"], links);
    CP.check(["l/.", "new"], links);
}

#[test]
fn copies_nothing_behind_a_symlink_to_a_file_with_a_slash_after_it() {
    CP.check(["lf/", "new"], links);
    CP.check(["ld/", "new"], links);
    CP.check(["d/loop/", "new"], links);
}

#[test]
fn follows_a_symlink_that_is_an_operand_without_r() {
    CP.check_strict(["lf", "new"], links);
    CP.check_strict(["l", "new"], links);
    CP.check_strict(["ld", "new"], links);
    CP.check_strict(["d/loop", "new"], links);
    CP.check_strict(["lf", "l", "ld", "elsewhere"], links);
}

#[test]
fn keeps_the_special_bits_of_fifos_and_sockets() {
    let build = |tree: &Tree| {
        tree.fifo("d/fifo")
            .mode(0o7755)
            .socket("d/socket")
            .mode(0o6711);
    };
    CP.check(["d", "new"], build);
    CP.check(["--no-preserve=mode", "d", "new"], build);
    CP.check(["-p", "d", "new"], build);
    NEWEST_CP.check(["--preserve=ownership", "d", "new"], build);
    NEWEST_CP.check(["-p", "--no-preserve=mode", "d", "new"], build);
}

#[test]
fn recreates_fifos_and_sockets() {
    CP.check(["d", "new"], |tree| {
        tree.fifo("d/fifo")
            .mode(0o600)
            .socket("d/socket")
            .mode(0o751);
    });
}

#[test]
fn recreates_fifos_and_sockets_that_are_operands() {
    CP.check(["fifo", "new"], |tree| {
        tree.fifo("fifo");
    });
    CP.check(["fifo", "socket", "d"], |tree| {
        tree.fifo("fifo").socket("socket").dir("d");
    });
}

#[test]
fn recreates_fifos_and_sockets_as_an_ordinary_user() {
    CP.check_as_nobody(["d", "new"], |tree| {
        tree.fifo("d/fifo").mode(0).socket("d/socket").mode(0o4751);
    });
}

#[test]
fn recreates_devices() {
    if !probe::is_root() {
        skip!("only root can make devices");
    }
    CP.check(["d", "null", "into"], |tree| {
        tree.char_device("null", 1, 3)
            .char_device("d/zero", 1, 5)
            .mode(0o666)
            .block_device("d/loop", 7, 200)
            .mode(0o600)
            .dir("into");
    });
}

#[test]
fn reports_devices_it_may_not_recreate() {
    CP.check_as_nobody(["d", "new"], |tree| {
        tree.char_device("d/zero", 1, 5).file("d/f", b"content");
    });
}

#[test]
fn reads_a_fifo_without_r() {
    let cp = CP.link("cp");
    let wrapper = |program: &str| format!(r#"shift 2; printf content >fifo & {program} "$@""#);
    // The name of the command does not matter, because it prints no messages.
    let ours = wrapper(&format!("'{}'", cp.path().display()));
    CP.parity()
        .in_scripts(&ours, &wrapper("cp"))
        .args(["fifo", "out"])
        .check(|tree| {
            tree.fifo("fifo");
        });
}

#[test]
fn writes_into_a_fifo() {
    CP.parity()
        .in_script(r#"cat fifo & "$@"; status=$?; wait; exit "$status""#)
        .args(["f", "fifo"])
        .check(|tree| {
            tree.file("f", b"content\n").fifo("fifo");
        });
}

#[test]
fn writes_into_a_fifo_without_r() {
    let cp = CP.link("cp");
    let script = |program: &str| format!(r#"shift 2; cat fifo & {program} "$@"; wait"#);
    let ours = script(&format!("'{}'", cp.path().display()));
    CP.parity()
        .in_scripts(&ours, &script("cp"))
        .args(["f", "fifo"])
        .check(|tree| {
            tree.file("f", b"content\n").fifo("fifo");
        });
}

#[test]
fn writes_to_stdout() {
    // Do not use /dev/stdout: a cpz that replaced it would harm the machine.
    CP.check(["f", "/proc/self/fd/1"], |tree| {
        tree.file("f", b"content\nof two lines\n");
    });
    CP.check(["f", "out"], |tree| {
        tree.file("f", b"content\n")
            .symlink("out", "/proc/self/fd/1");
    });
    CP.check_strict(["f", "/proc/self/fd/1"], |tree| {
        tree.file("f", b"content\n");
    });
}

#[test]
fn reads_stdin_without_r() {
    CP.strict()
        .args(["/dev/stdin", "out"])
        .stdin(b"content")
        .check(|_| {});
}

#[test]
fn copies_the_link_that_is_stdin() {
    Parity::new(CPZ, "cp")
        .args(["-r", "/dev/stdin", "out"])
        .stdin(b"content")
        .check(|_| {});
}

#[test]
fn writes_to_dev_null() {
    // Run as a user that could not replace it.
    CP.check_as_nobody(["f", "/dev/null"], |tree| {
        tree.file("f", b"content");
    });
    CP.check_as_nobody(["-f", "f", "/dev/null"], |tree| {
        tree.file("f", b"content");
    });
    CP.check_as_nobody(["-T", "d", "/dev/null"], |tree| {
        tree.file("d/f", b"content");
    });
}

#[test]
fn reads_dev_null_without_r() {
    CP.check_strict(["/dev/null", "new"], |_| {});
    CP.check_strict(["/dev/null", "old"], |tree| {
        tree.file("old", b"old");
    });
}

#[test]
fn a_socket_is_not_read_without_r() {
    CP.check_strict(["socket", "new"], |tree| {
        tree.socket("socket");
    });
}

#[test]
fn copies_a_fifo_without_a_writer_as_a_fifo() {
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .fifo("d/a")
        .fifo("d/b")
        .fifo("d/c/d");
    let run = Run::new(CPZ).args(["d", "new"]).current_dir(&scratch);
    run.output().assert_success();
}

#[test]
fn content_is_not_copied_over_a_dangling_symlink() {
    for args in [
        &["--copy-contents", "/dev/null", "l"][..],
        &["--copy-contents", "-f", "/dev/null", "l"],
        &["--copy-contents", "--remove-destination", "/dev/null", "l"],
        &["--copy-contents", "-b", "/dev/null", "l"],
    ] {
        CP.check(args, |tree| {
            tree.symlink("l", "nowhere");
        });
    }
    CP.check(["--copy-contents", "/dev/null", "l"], |tree| {
        tree.symlink("l", "f").file("f", "kept");
    });
}
