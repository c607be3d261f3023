//! Content of files: large files, holes, false sizes, and files that change while they are copied.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fuc_engine::{Backup, CopyOp, Counts, Dest, Event, Operation, Sparse, Throttle};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use rustix::io::ioctl_fionread;
use testkit::or_skip;
use testkit::probe::{Fs, FuseMount, Habits, LoopMount};
use testkit::snapshot::{Attributes, assert_same_tree};
use testkit::tree::{Scratch, Tree};

use crate::kit::{
    Failure, Limited as _, Meddler, Told, copy, copy_counted, copy_with, plain, threads,
    until_raced,
};

/// Makes bytes that differ from block to block and are never zero.
pub(crate) fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes)
        .map(|at| (at / 4096 * 7 + at % 251) as u8 | 1)
        .collect()
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
fn a_large_file_on_a_server_is_copied_whole() {
    const MIB: usize = 1 << 20;
    let mount = or_skip!(FuseMount::with(Habits::default()));
    for bytes in [MIB - 1, MIB, MIB + 5, 3 * MIB + 7, 11 * MIB] {
        let source = mount.path().join(format!("{bytes}"));
        let dest = mount.path().join(format!("{bytes}.copy"));
        fs::write(&source, pattern(bytes)).unwrap();
        assert_eq!(copy(&source, &dest), Told::complete(1, bytes as u64));
        let copied = fs::read(&dest).unwrap();
        assert!(copied == pattern(bytes), "{bytes} bytes");
    }
}

#[test]
fn a_large_file_is_copied_whole_if_the_kernel_reads_it_ahead() {
    const MIB: usize = 1 << 20;
    let mount = or_skip!(FuseMount::with(Habits::default()));
    mount.set_latency(Duration::from_millis(1));
    let elsewhere = Scratch::in_memory();
    for bytes in [MIB, 9 * MIB + 7] {
        let source = mount.path().join("source");
        fs::write(&source, pattern(bytes)).unwrap();
        for dest in [mount.path(), elsewhere.path()].map(|dir| dir.join("dest")) {
            assert_eq!(copy(&source, &dest), Told::complete(1, bytes as u64));
            assert!(fs::read(&dest).unwrap() == pattern(bytes), "{bytes} bytes");
            fs::remove_file(dest).unwrap();
        }
    }
}

#[test]
fn large_files_among_small_ones_are_copied_by_several_workers() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    for i in 0..400 {
        tree.file(format!("s/{i}"), "small");
    }
    for i in 0..12 {
        tree.file(format!("s/large{i}"), pattern((5 << 20) + i));
        tree.file(format!("s/{i}d/large"), pattern((4 << 20) + i));
    }
    let [source, dest] = ["s", "d"].map(|name| tree.path().join(name));
    let bytes: u64 = 400 * 5 + (0..12).map(|i| (9 << 20) + 2 * i).sum::<u64>();
    for number in [1, 2, 4] {
        let options = CopyOp::new().with(|options| options.threads = threads(number));
        let told = copy_with(options, [&source], &Dest::Exactly(dest.clone()));
        assert_eq!(told, Told::complete(400 + 24 + 13, bytes));
        assert_same_tree(&source, &dest, plain());
        fs::remove_dir_all(&dest).unwrap();
    }
}

#[track_caller]
fn is_copied_whole(source: &Path, dest: &Path) {
    let bytes: u64 = data_map(source).iter().map(|(from, to)| to - from).sum();
    assert_eq!(copy(source, dest), Told::complete(1, bytes));
    assert_same_tree(source, dest, plain());
    assert_eq!(data_map(source), data_map(dest));
}

#[test]
fn a_file_of_several_pieces_is_copied() {
    let scratch = Scratch::in_memory();
    // The file has two and a half pieces.
    let tree = Tree::at(&scratch);
    tree.file("s/f", pattern((20 << 20) + 5));
    let dest = tree.path().join("d");
    let told = copy(tree.path().join("s"), &dest);
    assert_eq!(told, Told::complete(2, (20 << 20) + 5));
    assert_same_tree(tree.path().join("s"), dest, plain());
}

#[test]
fn a_file_of_whole_pieces_is_copied() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    tree.file("f", pattern(24 << 20));
    is_copied_whole(&tree.path().join("f"), &tree.path().join("g"));
}

#[test]
fn sizes_about_a_block_and_a_buffer_are_copied() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path().join("s"));
    let mut bytes = 0;
    for size in [1, 4095, 4096, 4097, 131_071, 131_072, 131_073, 1 << 20] {
        tree.file(size.to_string(), pattern(size));
        bytes += size as u64;
    }
    let dest = scratch.path().join("d");
    assert_eq!(copy(tree.path(), &dest), Told::complete(9, bytes));
    assert_same_tree(tree.path(), dest, plain());
}

#[test]
fn holes_stay_where_they_are() {
    let scratch = Scratch::in_memory();
    let block = pattern(1 << 16);
    let tree = Tree::at(&scratch);
    tree.sparse("begin", 1 << 20, &[((1 << 20) - (1 << 16), &block)])
        .sparse("end", 1 << 20, &[(0, &block)])
        .sparse("middle", 1 << 20, &[(0, &block), (1 << 19, &block)])
        .sparse("all", 1 << 40, &[])
        .sparse("odd", (1 << 30) + 1, &[(1 << 20, b"x")]);
    for name in ["begin", "end", "middle", "all", "odd"] {
        let dest = tree.path().join(format!("{name}-copy"));
        is_copied_whole(&tree.path().join(name), &dest);
    }
}

#[test]
fn holes_replace_old_content() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    tree.sparse("f", 1 << 20, &[(1 << 19, b"x")])
        .file("g", pattern(2 << 20));
    is_copied_whole(&tree.path().join("f"), &tree.path().join("g"));
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
    tree.file("d/pipe", "content").fifo("e/pipe");
    let told = copy(tree.path().join("d"), tree.path().join("e"));
    let pipe = tree.path().join("e/pipe");
    let failure = Failure::failed(Operation::CreateFile, pipe, Errno::NXIO);
    assert_eq!(told.failures, [failure]);
}

#[test]
fn a_file_with_holes_is_copied_to_a_device() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    tree.sparse("f", 1 << 20, &[(1 << 19, b"x")]);
    let told = copy(tree.path().join("f"), "/dev/null");
    assert_eq!(told.failures, []);
    assert_eq!(told.counts.0, 1);
    assert_eq!(fs::metadata("/dev/null").unwrap().rdev(), 0x103);
}

#[test]
fn files_whose_size_lies_are_copied() {
    let scratch = Scratch::new();
    // The last one is missing if the kernel has no huge pages or /sys is not mounted.
    let huge_pages = "/sys/kernel/mm/transparent_hugepage/enabled";
    for name in ["/proc/version", "/proc/self/limits", huge_pages] {
        if name == huge_pages && !Path::new(name).exists() {
            continue;
        }
        let content = fs::read(name).unwrap();
        let dest = scratch.path().join(name.replace('/', "-"));
        assert_eq!(copy(name, &dest), Told::complete(1, content.len() as u64));
        assert_eq!(fs::read(&dest).unwrap(), content);
    }
}

#[test]
fn a_directory_of_proc_is_copied() {
    let scratch = Scratch::new();
    let dest = scratch.path().join("d");
    let told = copy("/proc/sys/kernel/random", &dest);
    // Each read returns another uuid, so only constant files are compared.
    let constant = "poolsize";
    let expected = fs::read(format!("/proc/sys/kernel/random/{constant}")).unwrap();
    assert_eq!(fs::read(dest.join(constant)).unwrap(), expected);
    assert!(
        !fs::read(dest.join("boot_id")).unwrap().is_empty(),
        "{told:?}"
    );
}

#[test]
fn a_full_dest_is_reported_and_complete_copies_stay() {
    let small = testkit::or_skip!(LoopMount::new(Fs::Tmpfs, 1));
    let scratch = Scratch::new();
    let source = Tree::at(&scratch);
    source
        .file("a/fits", pattern(100_000))
        .file("s/b/does-not", pattern(3 << 20))
        .file("s/c/empty", "")
        .file("s/d/fits", "")
        .symlink("s/link", "x");
    let dest = small.path();
    // A single thread copies the first operand before the second one takes its room.
    let operands = ["a", "s"].map(|name| source.path().join(name));
    let options = CopyOp::new().threads(1);
    let told = copy_with(options, operands, &Dest::Into(dest.to_owned()));
    let failure = Failure::failed(Operation::Write, dest.join("s/b/does-not"), Errno::NOSPC);
    assert_eq!(told.failures, [failure], "{told:?}");
    assert_eq!(told.counts, (9, 100_000, 1));
    let incomplete = fs::metadata(dest.join("s/b/does-not")).unwrap();
    assert!(incomplete.len() < 3 << 20);
    assert_eq!(incomplete.mtime(), 0, "it looks complete to a later run");
    for name in ["a", "s/c", "s/d", "s/link"] {
        assert_same_tree(source.path().join(name), dest.join(name), plain());
    }
}

/// Size of a file that is copied in several pieces, after each of which the counters grow.
const MANY_PIECES: usize = 32 << 20;

/// Copies a large file, and calls `look` with the path of its dest while it is copied.
fn looking_meanwhile(look: impl Fn(&Path) + Sync) {
    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    fs::write(&source, pattern(MANY_PIECES)).unwrap();
    until_raced(1, || {
        let _ = fs::remove_file(&dest);
        let counts = Counts::default();
        let was_in_time = thread::scope(|scope| {
            let other = scope.spawn(|| {
                while counts.bytes() == 0 {
                    thread::yield_now();
                }
                look(&dest);
                counts.bytes() < MANY_PIECES as u64 / 2
            });
            assert_eq!(copy_counted(&source, &dest, &counts).failures, []);
            other.join().unwrap()
        });
        assert!(fs::read(&dest).unwrap() == fs::read(&source).unwrap());
        usize::from(was_in_time)
    });
}

#[test]
fn a_large_file_gets_its_name_when_it_is_complete() {
    looking_meanwhile(|dest| {
        if let Ok(found) = fs::metadata(dest) {
            assert_eq!(found.len(), MANY_PIECES as u64);
        }
    });
}

#[test]
fn a_large_file_whose_name_was_taken_meanwhile_is_written_under_it() {
    looking_meanwhile(|dest| {
        let _ = OpenOptions::new().write(true).create_new(true).open(dest);
    });
}

/// Copies a file while another thread repeats `change` on it, until a copy saw a change. The thread begins
/// when a first piece is copied, or earlier, at another moment in each round. `check` gets the bytes of each copy.
fn copies_while(change: impl Fn(&Path) + Sync, reset: impl Fn(&Path), check: impl Fn(&[u8])) {
    const STEPS: u32 = 16;
    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    reset(&source);
    let begin = Instant::now();
    copy(&source, &dest);
    let undisturbed = begin.elapsed();
    let mut round = 0;
    until_raced(1, || {
        round += 1;
        reset(&source);
        let length_before = fs::metadata(&source).unwrap().len();
        let _ = fs::remove_file(&dest);
        let stop = AtomicBool::new(false);
        let counts = Counts::default();
        let told = thread::scope(|scope| {
            scope.spawn(|| {
                let begin = Instant::now();
                let delay = undisturbed * (round % STEPS) / STEPS;
                while counts.bytes() == 0 && begin.elapsed() < delay {
                    thread::yield_now();
                }
                while !stop.load(Ordering::Relaxed) {
                    change(&source);
                }
            });
            let told = copy_counted(&source, &dest, &counts);
            stop.store(true, Ordering::Relaxed);
            told
        });
        assert_eq!(told.failures, []);
        let copy = fs::read(&dest).unwrap();
        check(&copy);
        let length_after = fs::metadata(&source).unwrap().len();
        let length = copy.len() as u64;
        usize::from(length != length_before && length != length_after)
    });
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
            assert!(old == begin);
            assert!(new.iter().all(|&byte| byte == 0xaa));
        },
    );
}

#[test]
fn a_copy_of_a_growing_file_with_holes_has_no_zeros_for_data() {
    const HOLE: usize = 1 << 20;
    copies_while(
        append,
        |path| {
            let file = File::create(path).unwrap();
            file.set_len(HOLE as u64).unwrap();
        },
        |copy| {
            let zeros = copy.iter().skip(HOLE).filter(|&&byte| byte != 0xaa).count();
            assert_eq!(zeros, 0, "of {} bytes", copy.len());
        },
    );
}

/// The hole before the new data stays one: its zeros could fill the disk.
#[test]
fn a_source_that_grows_behind_a_hole_keeps_the_hole() {
    #[derive(Debug)]
    struct Appender(File);

    impl Throttle for Appender {
        fn wait(&self, _entries: u64, bytes: u64) {
            if bytes > 0 {
                self.0.write_all_at(b"new", 1 << 32).unwrap();
            }
        }
    }

    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    Tree::at(scratch.path()).sparse("s", 1 << 32, &[(0, &pattern(1 << 16))]);
    let appender = Appender(OpenOptions::new().write(true).open(&source).unwrap());
    let copy = CopyOp::new().throttled_by(&appender);
    copy.copy(&source, &dest).unwrap();
    assert_eq!(data_map(&dest), data_map(&source));
    assert_eq!(fs::metadata(&dest).unwrap().len(), (1 << 32) + 3);
}

/// Asserts that a copy is equal to the beginning of `whole`. If a file is cut while the kernel reads a page of it,
/// the kernel returns zeros for the rest of the page (seen with `pread` alone, on tmpfs and ext4).
fn assert_is_beginning(copy: &[u8], whole: &[u8]) {
    const LARGEST_PAGE: usize = 64 << 10;
    let same = copy.iter().zip(whole).take_while(|(a, b)| a == b).count();
    let rest = &copy[same..];
    assert!(
        rest.len() < LARGEST_PAGE && rest.iter().all(|&byte| byte == 0),
        "{} bytes, from {same} on it is something else",
        copy.len(),
    );
}

#[test]
fn a_copy_of_a_shrinking_file_is_a_beginning_of_it() {
    let whole = pattern(MANY_PIECES);
    copies_while(
        |path| {
            let file = OpenOptions::new().write(true).open(path).unwrap();
            let size = file.metadata().unwrap().len();
            file.set_len(size / 2).unwrap();
        },
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
    let whole = fs::read(scratch.path().join("whole")).unwrap();
    copies_while(
        |path| {
            let file = OpenOptions::new().write(true).open(path).unwrap();
            let size = file.metadata().unwrap().len();
            file.set_len(size - size / 16).unwrap();
        },
        |path| {
            Tree::at(path.parent().unwrap()).sparse(path, SIZE, &data);
        },
        |copy| assert_is_beginning(copy, &whole),
    );
}

#[test]
fn a_file_as_large_as_can_be_is_copied() {
    // tmpfs and xfs take so large a file, ext4 does not.
    let xfs = testkit::or_skip!(LoopMount::new(Fs::Xfs, 300));
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
    let ext4 = testkit::or_skip!(LoopMount::new_in(
        &std::env::temp_dir(),
        Fs::Ext4,
        16,
        &["-b", "1024"]
    ));
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    tree.sparse("f", 5 << 40, &[(0, b"near"), ((5 << 40) - 4, b"far!")]);
    let dest = ext4.path().join("f");
    for sparse in [Sparse::Auto, Sparse::Always] {
        let options = CopyOp::new().with(|copy| copy.sparse = sparse);
        let told = copy_with(
            options,
            [tree.path().join("f")],
            &Dest::Exactly(dest.clone()),
        );
        let failure = Failure::failed(Operation::Write, &dest, Errno::FBIG);
        assert_eq!(told.failures, [failure]);
        let bytes = fs::metadata(&dest).unwrap().len();
        assert!(bytes < 1 << 20, "{bytes} bytes before the hole");
    }
}

#[test]
fn several_threads_report_a_full_dest_and_end() {
    let small = testkit::or_skip!(LoopMount::new(Fs::Ext4, 16));
    let scratch = Scratch::in_memory();
    let source = Tree::at(scratch.path().join("s"));
    for number in 0..40 {
        source.file(format!("{}/{number}", number % 8), pattern(1 << 20));
    }
    let dest = small.path().join("d");
    let options = CopyOp::new().with(|options| options.threads = crate::kit::threads(4));
    let told = copy_with(options, [source.path()], &Dest::Exactly(dest.clone()));
    let mut failed = std::collections::HashSet::new();
    for failure in &told.failures {
        let fuc_engine::Cause::Failed(_, errno) = failure.cause else {
            panic!("{failure:?}");
        };
        assert_eq!(errno, Errno::NOSPC.raw_os_error(), "{failure:?}");
        let name = failure.path.strip_prefix(source.path());
        let name = name.or(failure.path.strip_prefix(&dest)).unwrap();
        assert!(failed.insert(name.to_owned()), "twice: {failure:?}");
    }
    // If a directory failed, its entries are missing without failures of their own.
    let has_failed = |name: &Path| name.ancestors().any(|above| failed.contains(above));
    let names = (0..40).map(|number| format!("{}/{number}", number % 8));
    let (missing, complete): (Vec<_>, Vec<_>) = names.partition(|name| has_failed(name.as_ref()));
    assert!(missing.len() > 20, "{told:?}");
    for name in complete {
        let is_whole = fs::read(dest.join(&name)).unwrap() == pattern(1 << 20);
        assert!(is_whole, "{name}");
    }
}

#[test]
fn large_files_of_one_directory_are_copied_by_several_threads() {
    let scratch = Scratch::in_memory();
    let source = Tree::at(scratch.path().join("s"));
    for number in 0..12 {
        source.file(number.to_string(), pattern((5 << 20) + number));
    }
    let dest = Dest::Exactly(scratch.path().join("d"));
    let options = CopyOp::new().with(|options| options.threads = crate::kit::threads(4));
    let told = copy_with(options, [source.path()], &dest);
    assert_eq!(told, Told::complete(13, 12 * (5 << 20) + 66));
    assert_same_tree(source.path(), scratch.path().join("d"), Attributes::CONTENT);
}

#[test]
fn the_dest_of_a_large_file_is_not_touched_before_its_content_is_copied() {
    const LARGE_BYTES: u64 = 5 << 20;
    let simple = Backup::Simple;
    for (backup, remove_first) in [(None, false), (None, true), (Some(simple), false)] {
        let row = format!("{backup:?}, remove first: {remove_first}");
        let scratch = Scratch::new();
        let source = Tree::at(scratch.path().join("s"));
        for name in ["a", "b", "c", "d", "e"] {
            source.sparse(name, LARGE_BYTES, &[(0, b"data")]);
        }
        let dest = Tree::at(scratch.path().join("d"));
        dest.file("a", "old").file("b", "old");
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
