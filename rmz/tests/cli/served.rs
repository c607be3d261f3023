//! Trees on a filesystem whose server lists wrong types, or does not open directories.

use testkit::{
    habits, or_skip,
    probe::{Errno, FileType, FuseMount},
    snapshot::Attributes,
};

use crate::support::RM;

/// Returns the text that messages show for an error.
fn errno_text(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    let (text, _) = text.split_once(" (os error").expect("a system error");
    text.to_owned()
}

#[test]
#[ignore = "slow"]
fn removals_on_a_server_that_refuses_or_lies_are_those_of_gnu() {
    let rows = [
        habits!(implicit_directories: true),
        habits!(after_unlink: Some(Errno::NOENT)),
        habits!(zero_links: true),
    ];
    for habits in rows {
        let mount = or_skip!(FuseMount::with(habits));
        for options in [&["-f", "s"][..], &["s/file", "s/missing"]] {
            let parity = RM.parity().on(mount.path()).args(options);
            parity.attributes(Attributes::CONTENT).check(|tree| {
                // Without it, the directory of the test would vanish, too.
                tree.plant("kept= s/file= s/read-only= %444 s/d/e/file= s/link->file");
            });
        }
    }
}

#[test]
#[ignore = "slow"]
fn a_tree_is_removed_whatever_types_are_listed() {
    for kind in [
        FileType::RegularFile,
        FileType::Directory,
        FileType::Symlink,
        FileType::NamedPipe,
        FileType::CharDevice,
    ] {
        RM.table().served("m", habits!(listed_type: Some(kind))).rows(
            "m/{s,s/d,s/odd-directory}/odd-file=content m/{s,s/d}/odd-directory/odd-directory/odd-file= m/kept=
            m/{s,s/d,s/odd-directory}/odd-link->odd-directory m/{s,s/d,s/odd-directory}/odd-fifo<fifo>
            rmz m/s
            = -m/s
            # A directory in one that may not be changed is emptied.
            m/s/odd-directory/f= m/s %555
            user rmz m/s
            ! cannot remove 'm/s/odd-directory': Permission denied
            = -m/s/odd-directory/f",
        );
    }
}

#[test]
#[ignore = "slow"]
fn a_directory_that_cannot_be_opened_is_removed_if_it_is_empty() {
    // Some of these errors usually say that a name is missing, or that it is another type.
    for errno in [
        Errno::IO,
        Errno::PERM,
        Errno::STALE,
        Errno::NOTDIR,
        Errno::LOOP,
        Errno::INTR,
        Errno::NOENT,
        Errno::INVAL,
        Errno::ILSEQ,
    ] {
        let table = RM.table().served("m", habits!(opendir: Some(errno)));
        table.rows(&format!(
            "m/t/f= m/t/bad/
            rmz (m/t|m/t/)
            = -m/t
            rmz m/t/bad
            = -m/t/bad
            m/t/sub/bad/f= m/t/g=
            rmz (|-f|-f --exclude=kept) m/t
            ! cannot remove 'm/t/sub/bad': {0}
            = -m/t/g
            rmz -f --dry-run --exclude=kept m/t
            ! cannot remove 'm/t/sub/bad': {0}
            > would remove 'm/t/g'
            > would remove 1 entry...
            rmz -f m/t/sub/bad
            ! cannot remove 'm/t/sub/bad': {0}
            rmz -f m/t/sub/bad/
            ! cannot remove 'm/t/sub/bad/': {0}",
            errno_text(errno)
        ));
    }
}
