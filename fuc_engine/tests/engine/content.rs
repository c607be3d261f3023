//! Content of files: large files, holes, false sizes, and files that change while they are copied.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{Read as _, Write as _},
    os::unix::fs::FileExt as _,
    path::Path,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use fuc_engine::{Backup, CopyOp, Error, Event, Operation, Sparse, Throttle};
use rustix::{
    fs::{SeekFrom, seek},
    io::{Errno, ioctl_fionread},
};
use testkit::{
    or_skip,
    probe::{Fs, LoopMount},
    served,
    snapshot::assert_same_tree,
    tree::{Scratch, Tree},
};

use crate::kit::{
    Failure, Limited as _, Meddler, Told, copy, copy_with, exactly, places, plain, threads,
};

/// Makes bytes that differ from block to block and are never zero.
pub(crate) fn pattern(bytes: usize) -> Vec<u8> {
    const BLOCK: usize = 4096;
    let cycle: Vec<u8> = (0..BLOCK + 251).map(|at| (at % 251) as u8 | 1).collect();
    let mut pattern = Vec::with_capacity(bytes + BLOCK);
    for block in 0..bytes.div_ceil(BLOCK) {
        pattern.extend_from_slice(&cycle[block * 7 % 251..][..BLOCK]);
    }
    pattern.truncate(bytes);
    pattern
}

/// Returns the start and the end of each range of data in a sparse file.
pub(crate) fn data_map(path: &Path) -> Vec<(u64, u64)> {
    let file = File::open(path).unwrap();
    let (mut map, mut at) = (Vec::new(), 0);
    while let Ok(data) = seek(&file, SeekFrom::Data(at)) {
        at = seek(&file, SeekFrom::Hole(data)).unwrap();
        map.push((data, at));
    }
    map
}

#[test]
fn a_large_file_on_a_server_is_copied_whole_even_if_the_kernel_reads_it_ahead() {
    const MIB: usize = 1 << 20;
    let mount = served!();
    let elsewhere = Scratch::in_memory();
    for (latency, sizes) in [
        (0, &[MIB - 1, MIB, MIB + 5, 3 * MIB + 7, 11 * MIB][..]),
        (1, &[MIB, 9 * MIB + 7]),
    ] {
        mount.set_latency(Duration::from_millis(latency));
        for &bytes in sizes {
            let source = mount.at("source");
            fs::write(&source, pattern(bytes)).unwrap();
            for dest in [mount.path(), elsewhere.path()].map(|dir| dir.join("dest")) {
                assert_eq!(copy(&source, &dest), Told::complete(1, bytes as u64));
                assert!(fs::read(&dest).unwrap() == pattern(bytes), "{bytes} bytes");
                fs::remove_file(dest).unwrap();
            }
        }
    }
}

#[test]
fn large_files_among_small_ones_are_copied_by_several_workers() {
    let (_scratch, source, dest) = places();
    let tree = Tree::at(&source);
    for i in 0..400 {
        tree.file(i.to_string(), "small");
    }
    for i in 0..6 {
        tree.file(format!("large{i}"), pattern((5 << 20) + i))
            .file(format!("{i}d/large"), pattern((4 << 20) + i));
    }
    let bytes: u64 = 400 * 5 + (0..6).map(|i| (9 << 20) + 2 * i).sum::<u64>();
    for number in [1, 4] {
        let told = copy_with(CopyOp::new().threads(number), [&source], &exactly(&dest));
        assert_eq!(told, Told::complete(400 + 12 + 7, bytes));
        assert_same_tree(&source, &dest, plain());
        fs::remove_dir_all(&dest).unwrap();
    }
}

#[test]
fn a_file_with_holes_is_copied_to_a_pipe() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    tree.sparse("f", 3 << 20, &[(0, b"begin"), (1 << 20, b"middle")])
        .fifo("pipe");
    let [file, pipe] = ["f", "pipe"].map(|name| tree.path().join(name));
    let (told, read) = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut read = Vec::new();
            File::open(&pipe).unwrap().read_to_end(&mut read).unwrap();
            read
        });
        let told = copy(&file, &pipe);
        (told, reader.join().unwrap())
    });
    assert_eq!(told.failures, []);
    assert_eq!(told.counts.0, 1);
    assert!(
        read == fs::read(&file).unwrap(),
        "{} bytes differ",
        read.len()
    );
}

#[test]
fn a_fifo_in_the_dest_is_waited_for() {
    /// The capacity of a pipe in pages of 4 KiB; larger pages make larger pipes.
    const PIPE_BYTES: u64 = 64 << 10;
    let scratch = Scratch::in_memory();
    let content = pattern(1 << 20);
    let tree = Tree::at(&scratch);
    tree.file("d/pipe", &content).fifo("e/pipe");
    let [source, dest] = ["d", "e"].map(|name| tree.path().join(name));
    // Open the FIFO for reading and writing, so that the copy finds a reader at once.
    let reader = OpenOptions::new()
        .read(true)
        .write(true)
        .open(dest.join("pipe"))
        .unwrap();
    let is_copied = AtomicBool::new(false);
    let (told, read) = thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let waiting = || ioctl_fionread(&reader).unwrap();
            // Wait until the pipe is full, so that the copy has to wait.
            while waiting() < PIPE_BYTES && !is_copied.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
            let mut read = Vec::new();
            while !is_copied.load(Ordering::Relaxed) || waiting() > 0 {
                let mut chunk = vec![0; waiting() as usize];
                (&reader).read_exact(&mut chunk).unwrap();
                read.extend(chunk);
            }
            read
        });
        let told = copy(&source, &dest);
        is_copied.store(true, Ordering::Relaxed);
        (told, reading.join().unwrap())
    });
    assert_eq!(told.failures, []);
    assert!(read == content);
}

#[test]
fn a_fifo_in_the_dest_without_a_reader_is_reported() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    tree.plant("d/pipe=content e/pipe<fifo>");
    let told = copy(tree.path().join("d"), tree.path().join("e"));
    let pipe = tree.path().join("e/pipe");
    let failure = Failure::failed(Operation::CreateFile, pipe, Errno::NXIO);
    assert_eq!(told.failures, [failure]);
}

/// Size of a file that is copied in several pieces.
const MANY_PIECES: usize = 32 << 20;

/// Calls a closure after each piece of a file, with the bytes that are copied so far.
struct AfterPiece<F>(F, AtomicU64);

impl<F> fmt::Debug for AfterPiece<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AfterPiece")
    }
}

impl<F: Fn(u64) + Sync> Throttle for AfterPiece<F> {
    fn wait(&self, _entries: u64, bytes: u64) {
        if bytes > 0 {
            (self.0)(self.1.fetch_add(bytes, Ordering::Relaxed) + bytes);
        }
    }
}

/// Copies a file, and calls `act` after each of its pieces.
fn copy_in_pieces(source: &Path, dest: &Path, act: impl Fn(u64) + Sync) -> Result<(), Error> {
    let act = AfterPiece(act, AtomicU64::new(0));
    CopyOp::new()
        .throttled_by(&act)
        .copy(source, dest)
        .map(drop)
}

/// Copies a large file, and calls `look` with the path of its dest while it is copied.
fn looking_meanwhile(look: impl Fn(&Path) + Sync) {
    let (_scratch, source, dest) = places();
    fs::write(&source, pattern(MANY_PIECES)).unwrap();
    let looks = AtomicU64::new(0);
    copy_in_pieces(&source, &dest, |copied| {
        if copied < MANY_PIECES as u64 {
            looks.fetch_add(1, Ordering::Relaxed);
            look(&dest);
        }
    })
    .unwrap();
    assert!(looks.into_inner() > 0);
    assert!(fs::read(&dest).unwrap() == fs::read(&source).unwrap());
}

#[test]
fn a_large_file_gets_its_name_when_it_is_complete() {
    looking_meanwhile(|dest| assert!(!dest.exists()));
}

#[test]
fn a_large_file_whose_name_was_taken_meanwhile_is_written_under_it() {
    looking_meanwhile(|dest| {
        let _ = OpenOptions::new().write(true).create_new(true).open(dest);
    });
}

/// Copies a file. When its first piece is copied, another thread changes it, and does so again and again while the copy
/// goes on. `check` gets the bytes of the copy.
fn copies_while(change: impl Fn(&Path) + Sync, reset: impl Fn(&Path), check: impl Fn(&[u8])) {
    let (_scratch, source, dest) = places();
    let (begun, changed, stop) = (OnceLock::new(), OnceLock::new(), AtomicBool::new(false));
    reset(&source);
    thread::scope(|scope| {
        scope.spawn(|| {
            begun.wait();
            while !stop.load(Ordering::Relaxed) {
                change(&source);
                let _ = changed.set(());
            }
        });
        let copied = copy_in_pieces(&source, &dest, |_| {
            let _ = begun.set(());
            changed.wait();
        });
        stop.store(true, Ordering::Relaxed);
        begun.set(()).expect_err("the copy has pieces");
        copied.unwrap();
    });
    check(&fs::read(&dest).unwrap());
}

fn append(path: &Path) {
    // Stop growing at a limit, because the file is in memory.
    if fs::metadata(path).unwrap().len() < 64 << 20 {
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(&[0xaa; 4096]).unwrap();
    }
}

#[test]
fn a_copy_of_a_growing_file_is_a_beginning_of_it() {
    let begin = vec![0x55; MANY_PIECES];
    copies_while(
        append,
        |path| fs::write(path, &begin).unwrap(),
        |copy| {
            let (old, new) = copy.split_at(begin.len());
            assert!(old == begin && new == vec![0xaa; new.len()]);
        },
    );
}

#[test]
fn a_copy_of_a_growing_file_with_holes_has_no_zeros_for_data() {
    const HOLE: u64 = 1 << 20;
    copies_while(
        append,
        |path| {
            Tree::at(path.parent().unwrap()).sparse("s", HOLE, &[(0, b"x")]);
        },
        |copy| {
            let grown = &copy[HOLE as usize..];
            assert!(grown == vec![0xaa; grown.len()], "{} bytes", copy.len());
        },
    );
}

/// The hole before the new data stays one: its zeros could fill the disk.
#[test]
fn a_source_that_grows_behind_a_hole_keeps_the_hole() {
    let (scratch, source, dest) = places();
    Tree::at(&scratch).sparse("s", 1 << 32, &[(0, &pattern(1 << 16))]);
    let file = OpenOptions::new().write(true).open(&source).unwrap();
    copy_in_pieces(&source, &dest, |_| {
        file.write_all_at(b"new", 1 << 32).unwrap();
    })
    .unwrap();
    assert_eq!(data_map(&dest), data_map(&source));
    assert_eq!(fs::metadata(&dest).unwrap().len(), (1 << 32) + 3);
}

/// Asserts that a copy is equal to the beginning of `whole`. If a file is cut while the kernel reads a page of it,
/// the kernel returns zeros for the rest of the page (seen with `pread` alone, on tmpfs and ext4).
fn assert_is_beginning(copy: &[u8], whole: &[u8]) {
    const LARGEST_PAGE: usize = 64 << 10;
    let blocks = copy.chunks(4096).zip(whole.chunks(4096));
    let blocks = blocks.take_while(|(a, b)| b.starts_with(a)).count();
    let tail = copy.iter().zip(whole).skip(blocks * 4096);
    let same = (blocks * 4096 + tail.take_while(|(a, b)| a == b).count()).min(copy.len());
    let rest = &copy[same..];
    assert!(
        rest.len() < LARGEST_PAGE && rest.iter().all(|&byte| byte == 0),
        "{} bytes, from {same} on it is something else",
        copy.len(),
    );
}

fn shrink(path: &Path) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let size = file.metadata().unwrap().len();
    file.set_len(size - size / 16).unwrap();
}

#[test]
fn a_copy_of_a_shrinking_file_is_a_beginning_of_it() {
    let whole = pattern(MANY_PIECES);
    copies_while(
        shrink,
        |path| fs::write(path, &whole).unwrap(),
        |copy| assert_is_beginning(copy, &whole),
    );
}

#[test]
fn a_copy_of_a_shrinking_file_with_holes_is_a_beginning_of_it() {
    const SIZE: u64 = MANY_PIECES as u64;
    let block = pattern(1 << 16);
    let data: Vec<(u64, &[u8])> = (0..SIZE >> 20).map(|at| (at << 20, &block[..])).collect();
    let scratch = Scratch::in_memory();
    Tree::at(&scratch).sparse("whole", SIZE, &data);
    let whole = fs::read(scratch.at("whole")).unwrap();
    copies_while(
        shrink,
        |path| {
            Tree::at(path.parent().unwrap()).sparse(path, SIZE, &data);
        },
        |copy| assert_is_beginning(copy, &whole),
    );
}

#[test]
fn a_file_as_large_as_can_be_is_copied() {
    // tmpfs and xfs take so large a file, ext4 does not.
    let xfs = or_skip!(LoopMount::new(Fs::Xfs, 300));
    let size = i64::MAX as u64;
    let tree = Tree::at(xfs.path());
    tree.sparse("f", size, &[(7 << 60, b"far away")]);
    let dest = tree.path().join("g");
    assert_eq!(copy(tree.path().join("f"), &dest).failures, []);
    assert_eq!(fs::metadata(&dest).unwrap().len(), size);
    assert_eq!(data_map(&tree.path().join("f")), data_map(&dest));
}

#[test]
fn a_hole_that_is_larger_than_the_largest_file_is_not_filled() {
    // With blocks of 1 KiB, the largest file of ext4 has 4 TiB.
    let ext4 = or_skip!(LoopMount::new_in(
        &testkit::tree::place(),
        Fs::Ext4,
        16,
        &["-b", "1024"]
    ));
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    tree.sparse("f", 5 << 40, &[(0, b"near"), ((5 << 40) - 4, b"far!")]);
    let dest = ext4.at("f");
    for sparse in [Sparse::Auto, Sparse::Always] {
        let options = CopyOp::new().with(|copy| copy.sparse = sparse);
        let told = copy_with(options, [tree.path().join("f")], &exactly(&dest));
        let failure = Failure::failed(Operation::Write, &dest, Errno::FBIG);
        assert_eq!(told.failures, [failure]);
        let bytes = fs::metadata(&dest).unwrap().len();
        assert!(bytes < 1 << 20, "{bytes} bytes before the hole");
    }
}

#[test]
fn the_dest_of_a_large_file_is_not_touched_before_its_content_is_copied() {
    const LARGE_BYTES: u64 = 5 << 20;
    let simple = Backup::Simple;
    for (backup, remove_first) in [(None, false), (None, true), (Some(simple), false)] {
        let row = format!("{backup:?}, remove first: {remove_first}");
        let scratch = Scratch::new();
        let source = Tree::at(scratch.at("s"));
        for name in ["a", "b", "c", "d", "e"] {
            source.sparse(name, LARGE_BYTES, &[(0, b"data")]);
        }
        let dest = Tree::at(scratch.at("d"));
        dest.plant("a=old b=old");
        let dest = dest.path().to_owned();

        let complete = AtomicU64::new(0);
        let meddler = Meddler::new(|event| {
            let Event::Copied { dest: path, .. } = event else {
                return;
            };
            if path == dest {
                return;
            }
            let complete = complete.fetch_add(1, Ordering::Relaxed) + 1;
            let (mut copied, mut kept) = (0, 0);
            for entry in fs::read_dir(&dest).unwrap().map(Result::unwrap) {
                let bytes = entry.metadata().unwrap().len();
                assert!(
                    bytes == 3 || bytes == LARGE_BYTES,
                    "{row}: incomplete: {entry:?}"
                );
                let name = entry.file_name().into_string().unwrap();
                copied += u64::from(bytes == LARGE_BYTES);
                kept += u64::from(bytes == 3 && !name.ends_with('~'));
            }
            let replaced = ["a", "b"].map(|name| {
                let metadata = dest.join(name).metadata();
                u64::from(metadata.unwrap().len() == LARGE_BYTES)
            });
            assert_eq!(copied, complete, "{row}");
            assert_eq!(kept + replaced.iter().sum::<u64>(), 2, "{row}");
        });
        let options = CopyOp::new().with(|options| {
            options.threads = threads(1);
            options.rules.backup = backup;
            options.rules.remove_first = remove_first;
        });
        let told = meddler.copy(options, source.path(), &dest);
        assert_eq!(told.failures, [], "{row}");
        assert_eq!(complete.into_inner(), 5, "{row}");
    }
}
