//! Content of files: bytes and holes.

use std::path::Path;

use testkit::{
    skip,
    tree::{Tree, noise},
};

use crate::support::CP;

const MIB: u64 = 1 << 20;

#[test]
fn content_of_files() {
    CP.rows(
        r"
        # Files of several sizes are copied, also in a directory and over another one.
        (f=|f=1|f=~4096|f=~1048579) old=~5000
        cpz f (new|old)
        (d/f=|d/f=1|d/f=~4096|d/f=~20971527) d/f %600
        cpz d new
        # A dest that was longer is shortened.
        (f=~100|f=) old=~100000
        cpz f old
        # Links become files of their own.
        d/f=content d/twin==d/f
        cpz d new
        # No times are kept.
        d/f=content @77 d/l->f @77 d @77
        cpz d new",
    );
    if testkit::probe::supports_xattrs(&testkit::tree::place()) {
        CP.rows("d/f=content xattr:user.note=x d xattr:user.note=y \n cpz d new");
    }
    CP.check("f new", |tree| {
        tree.file("f", vec![0; MIB as usize]);
    });
}

#[test]
fn files_of_the_kernel_are_copied_whole() {
    // Their content does not change between two copies, unlike counters, and lists that grow when a filesystem is mounted.
    for path in [
        "/proc/version",
        "/proc/cmdline",
        "/proc/iomem",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/module/kernel/parameters",
    ] {
        if !Path::new(path).exists() {
            skip!("there is no {path}");
        }
        CP.rows(&format!("old=~100000 \n cpz {path} (new|old)"));
    }
}

#[track_caller]
fn copies_holes(build: impl Fn(&Tree)) {
    let copied = CP.check("f d new", |tree| {
        build(tree.dir("new"));
        tree.plant("d/f==f");
    });
    assert!(copied.is_none_or(|outcome| outcome.stderr.is_empty()));
}

#[test]
fn keeps_holes() {
    type Data<'a> = &'a [(u64, &'a [u8])];
    let end = (2 * MIB - 5, &b"tail!"[..]);
    let files: [(u64, Data<'_>); 10] = [
        (2 * MIB, &[end]),
        (2 * MIB, &[(0, b"head"), end]),
        (2 * MIB + 1, &[(0, b"head")]),
        (4 * MIB, &[]),
        // These are shorter than a block, and so have no holes.
        (1, &[]),
        (511, &[]),
        (512, &[]),
        (8_193, &[(0, b"data"), (4_093, b"data")]),
        (8_703, &[(0, b"data"), (4_093, b"data")]),
        (8_704, &[(0, b"data"), (4_093, b"data")]),
    ];
    for (len_bytes, data) in files {
        copies_holes(|tree| _ = tree.sparse("f", len_bytes, data));
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
    Tree::at(&scratch).sparse("f", 1 << 40, &[((1 << 40) - 3, b"end")]);
    crate::support::succeeds(&scratch, "f new");
    let copy = std::fs::File::open(scratch.at("new")).unwrap();
    let metadata = copy.metadata().unwrap();
    assert_eq!(metadata.len(), 1 << 40);
    assert!(std::os::unix::fs::MetadataExt::blocks(&metadata) < 1 << 11);
    let mut end = [0; 4];
    std::os::unix::fs::FileExt::read_exact_at(&copy, &mut end, (1 << 40) - 4).unwrap();
    assert_eq!(&end, b"\0end");
}

#[test]
fn punches_no_old_data_into_holes() {
    CP.check("f old", |tree| {
        tree.sparse("f", MIB, &[(MIB - 5, b"tail!")])
            .file("old", noise(MIB as usize * 2));
    });
}

#[test]
fn copies_the_flags_of_the_processor_whole() {
    let scratch = testkit::tree::Scratch::new();
    crate::support::succeeds(&scratch, "/proc/cpuinfo new");
    let flags = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().filter(|line| line.starts_with("flags"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(flags(&scratch.at("new")), flags(Path::new("/proc/cpuinfo")));
}
