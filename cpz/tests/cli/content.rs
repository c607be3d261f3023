//! Content of files: bytes and holes.

use std::path::Path;

use testkit::{
    skip,
    tree::{Tree, noise},
};

use crate::support::CP;

const MIB: u64 = 1 << 20;

#[track_caller]
fn copies_file_of(len_bytes: usize) {
    let content = noise(len_bytes);
    CP.check(["f", "new"], |tree| {
        tree.file("f", &content);
    });
    CP.check(["d", "new"], |tree| {
        tree.file("d/f", &content).mode(0o600);
    });
    CP.check(["f", "old"], |tree| {
        tree.file("f", &content).file("old", noise(5_000));
    });
}

#[test]
fn copies_an_empty_file() {
    copies_file_of(0);
}

#[test]
fn copies_a_file_of_one_byte() {
    copies_file_of(1);
}

#[test]
fn copies_a_file_of_one_page() {
    copies_file_of(4096);
}

#[test]
fn copies_a_file_of_a_mebibyte_and_some() {
    copies_file_of((1 << 20) + 3);
}

#[test]
fn copies_a_file_of_20_mebibytes_and_some() {
    let content = noise((20 << 20) + 7);
    CP.check(["d", "new"], |tree| {
        tree.file("d/f", &content);
    });
}

#[test]
fn copies_zeros_that_are_no_hole() {
    CP.check(["f", "new"], |tree| {
        tree.file("f", vec![0; MIB as usize]);
    });
}

#[test]
fn shortens_a_dest_that_was_longer() {
    CP.check(["f", "old"], |tree| {
        tree.file("f", noise(100)).file("old", noise(100_000));
    });
    CP.check(["f", "old"], |tree| {
        tree.file("f", "").file("old", noise(100_000));
    });
}

#[track_caller]
fn copies_holes(build: impl Fn(&Tree)) {
    let copied = CP.check(["f", "d", "new"], |tree| {
        build(tree.dir("new"));
        tree.hardlink("f", "d/f");
    });
    assert!(copied.is_none_or(|outcome| outcome.stderr.is_empty()));
}

#[test]
fn keeps_a_hole_at_the_start() {
    copies_holes(|tree| {
        tree.sparse("f", 2 * MIB, &[(2 * MIB - 5, b"tail!")]);
    });
}

#[test]
fn keeps_a_hole_in_the_middle() {
    copies_holes(|tree| {
        tree.sparse("f", 2 * MIB, &[(0, b"head"), (2 * MIB - 5, b"tail!")]);
    });
}

#[test]
fn keeps_a_hole_at_the_end() {
    copies_holes(|tree| {
        tree.sparse("f", 2 * MIB + 1, &[(0, b"head")]);
    });
}

#[test]
fn keeps_a_file_that_is_all_hole() {
    copies_holes(|tree| {
        tree.sparse("f", 4 * MIB, &[]);
    });
}

#[test]
fn keeps_no_hole_that_is_shorter_than_a_block() {
    for len_bytes in [1, 511, 512, 8_193, 8_703, 8_704] {
        copies_holes(|tree| {
            let data: &[(u64, &[u8])] = match len_bytes {
                ..=512 => &[],
                _ => &[(0, b"data"), (4_093, b"data")],
            };
            tree.sparse("f", len_bytes, data);
        });
    }
}

#[test]
fn keeps_many_holes() {
    let data: Vec<(u64, &[u8])> = (0..20).map(|i| (i * MIB / 2 + i, &b"data"[..])).collect();
    copies_holes(|tree| {
        tree.sparse("f", 11 * MIB, &data);
    });
}

#[test]
fn keeps_a_huge_hole() {
    // Reads only the ends of the file: a snapshot of all of it would take minutes.
    let scratch = testkit::tree::Scratch::new();
    Tree::at(scratch.path()).sparse("f", 1 << 40, &[((1 << 40) - 3, b"end")]);
    crate::support::succeeds(&scratch, &["f", "new"]);
    let copy = std::fs::File::open(scratch.path().join("new")).unwrap();
    let metadata = copy.metadata().unwrap();
    assert_eq!(metadata.len(), 1 << 40);
    assert!(std::os::unix::fs::MetadataExt::blocks(&metadata) < 1 << 11);
    let mut end = [0; 4];
    std::os::unix::fs::FileExt::read_exact_at(&copy, &mut end, (1 << 40) - 4).unwrap();
    assert_eq!(&end, b"\0end");
}

#[test]
fn punches_no_old_data_into_holes() {
    CP.check(["f", "old"], |tree| {
        tree.sparse("f", MIB, &[(MIB - 5, b"tail!")])
            .file("old", noise(MIB as usize * 2));
    });
}

#[track_caller]
fn copies_whole(path: &str) {
    if !Path::new(path).exists() {
        skip!("there is no {path}");
    }
    CP.check([path, "new"], |_| {});
    CP.check([path, "old"], |tree| {
        tree.file("old", noise(100_000));
    });
}

#[test]
fn copies_files_of_proc_whole() {
    copies_whole("/proc/version");
}

#[test]
fn copies_longer_files_of_proc_whole() {
    copies_whole("/proc/filesystems");
    copies_whole("/proc/devices");
}

#[test]
fn copies_files_of_sys_that_are_shorter_than_they_say() {
    copies_whole("/sys/kernel/mm/transparent_hugepage/enabled");
}

#[test]
fn copies_directories_of_sys() {
    let dir = "/sys/kernel/mm/transparent_hugepage";
    if !Path::new(dir).exists() {
        skip!("there is no {dir}");
    }
    CP.check([dir, "new"], |_| {});
}

#[test]
fn copies_the_flags_of_the_processor_whole() {
    let scratch = testkit::tree::Scratch::new();
    crate::support::succeeds(&scratch, &["/proc/cpuinfo", "new"]);
    let flags = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().filter(|line| line.starts_with("flags"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        flags(&scratch.path().join("new")),
        flags(Path::new("/proc/cpuinfo"))
    );
}

#[test]
fn copies_links_as_files_of_their_own() {
    CP.check(["d", "new"], |tree| {
        tree.file("d/f", b"content").hardlink("d/f", "d/twin");
    });
}

#[test]
fn keeps_no_times() {
    let long_ago = std::time::Duration::from_secs(77);
    CP.check(["d", "new"], |tree| {
        tree.file("d/f", b"content")
            .mtime(long_ago)
            .symlink("d/l", "f")
            .mtime(long_ago)
            .select("d")
            .mtime(long_ago);
    });
}

#[test]
fn keeps_no_extended_attributes() {
    if !testkit::probe::supports_xattrs(&std::env::temp_dir()) {
        skip!("no extended attributes here");
    }
    CP.check(["d", "new"], |tree| {
        tree.file("d/f", b"content")
            .xattr("user.note", b"x")
            .select("d")
            .xattr("user.note", b"y");
    });
}
