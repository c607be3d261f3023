//! System calls, as strace shows them: their paths and their number.
//!
//! Counts are differences between a larger and a smaller tree, so that the fixed costs of a run cancel out. The guard of
//! `benches` counts the calls of plain copies and removals.

use std::{collections::HashSet, fs, path::Path, time::Duration};

use testkit::{
    probe::{Skip, has_program},
    served,
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, chain, comb},
};

use crate::child::{self, Child, MARKS};
use crate::kit::{entries_of, unwritable};

const FEW: u64 = 20;

/// One call of a trace.
#[derive(Clone, Debug)]
struct Call {
    name: String,
    /// The text between the parentheses.
    args: String,
    /// The arguments in double quotes.
    paths: Vec<String>,
    returned: String,
}

impl Call {
    /// Parses a line of the log. Returns `None` if it is not a call.
    fn parse(line: &str) -> Option<Self> {
        // With -f, each line begins with the id of the thread.
        let line = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        let (call, returned) = line.rsplit_once(" = ")?;
        let (name, args) = call.split_once('(')?;
        let args = args.trim_end().strip_suffix(')')?;
        Some(Self {
            name: name.to_owned(),
            args: args.to_owned(),
            paths: args
                .split('"')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect(),
            returned: returned.split(' ').next().unwrap_or("").to_owned(),
        })
    }

    fn first(&self) -> &str {
        self.args.split(',').next().unwrap_or("")
    }
}

/// Runs a child under strace. Returns its calls between the two marks, without those of the runtime on /proc
/// and /sys.
fn trace(child: Child, log: &Path) -> Result<Vec<Call>, Skip> {
    if !has_program("strace") {
        return Err(Skip("there is no strace".to_owned()));
    }
    let log = log.as_os_str();
    let words = "strace -f -s 4096 -e trace=%file,%desc -o"
        .split(' ')
        .map(Into::into);
    child.under(words.chain([log.to_owned()])).threads(1).run();
    let text = fs::read_to_string(log).expect("strace writes a log");
    let begun = text
        .lines()
        .skip_while(|line| !line.contains(MARKS[0]))
        .skip(1);
    let lines = begun.take_while(|line| !line.contains(MARKS[1]));
    let calls: Vec<Call> = lines.filter_map(Call::parse).collect();
    if calls.is_empty() {
        return Err(Skip("strace sees nothing here".to_owned()));
    }
    Ok(without_the_runtime(calls))
}

fn without_the_runtime(calls: Vec<Call>) -> Vec<Call> {
    let mut its_own = HashSet::new();
    let is_kept = |call: &Call| {
        let path = call.paths.first().map_or("", String::as_str);
        let is_system = path.starts_with("/proc/") || path.starts_with("/sys/");
        if is_system && !path.starts_with("/proc/thread-self/fd/") {
            if call.name == "openat" {
                its_own.insert(call.returned.clone());
            }
            return false;
        }
        let descriptor = call.first();
        match call.name.as_str() {
            "openat" => {}
            "close" if its_own.remove(descriptor) => return false,
            _ if its_own.contains(descriptor) => return false,
            _ => {}
        }
        // Calls for memory, and a check of the standard library in debug builds.
        let is_check = call.name == "fcntl" && call.args.ends_with("F_GETFD");
        !is_check && !matches!(call.name.as_str(), "mmap" | "munmap")
    };
    calls.into_iter().filter(is_kept).collect()
}

/// Asserts that every path is an operand, or one component relative to an open directory.
#[track_caller]
fn assert_disciplined(calls: &[Call], operands: &[&Path]) {
    let is_operand = |path: &str| operands.iter().any(|operand| operand.as_os_str() == path);
    for call in calls {
        // The other string is the target of the link, which may be any path.
        let (path, dirfd) = match call.name.as_str() {
            "symlinkat" => (call.paths.last(), call.args.split(", ").nth(1)),
            _ => (call.paths.first(), Some(call.first())),
        };
        let (Some(path), Some(dirfd)) = (path, dirfd) else {
            continue;
        };
        assert!(
            call.name.ends_with("at") || call.name == "statx" || call.name.ends_with("at2"),
            "not relative to a directory: {call:?}"
        );
        let opens_directory = call.name == "openat" && call.args.contains("O_DIRECTORY");
        if opens_directory {
            assert!(call.args.contains("O_NOFOLLOW"), "it follows: {call:?}");
        }
        // The engine looks at the root directory, because it refuses to remove it.
        let asks_for_root = path == "/" && call.name.contains("stat");
        if is_operand(path) || asks_for_root {
            continue;
        }
        if call.name.starts_with("fchmodat") && path.starts_with("/proc/thread-self/fd/") {
            let number = path.trim_start_matches("/proc/thread-self/fd/");
            assert!(number.parse::<u32>().is_ok(), "{call:?}");
            continue;
        }
        assert!(dirfd.parse::<u32>().is_ok(), "no directory: {call:?}");
        assert!(!path.contains('/'), "several components: {call:?}");
        if path == ".." {
            assert!(opens_directory, "{call:?}");
        }
        if call.name == "openat" && !opens_directory {
            let is_new = ["O_EXCL", "O_CREAT", "O_NOFOLLOW"];
            let reads = call.args.contains("O_RDONLY") && call.args.contains("O_NOFOLLOW");
            let is_unnamed = path == "." && call.args.contains("O_TMPFILE");
            // It was just given its name.
            let watchers = call.args.contains("O_WRONLY|O_NOCTTY|O_NONBLOCK")
                && call.args.contains("O_NOFOLLOW");
            assert!(
                reads
                    || is_unnamed
                    || watchers
                    || is_new.iter().all(|flag| call.args.contains(flag)),
                "{call:?}"
            );
        }
    }
}

/// Makes a tree with entries of all kinds, deeper than twenty descriptors.
fn mixed(scratch: &Scratch) -> Tree {
    let tree = Tree::at(scratch.at("s"));
    tree.plant("a/b/file=content a/b/empty= a/c/file=content a/link->/somewhere/else a/pipe<fifo>")
        .sparse("a/holes", 1 << 20, &[(1 << 19, b"x")])
        .plant("e/ a/c")
        .mode(unwritable())
        .plant("a")
        .mode(unwritable());
    chain(tree.path().join("chain"), 60);
    comb(tree.path().join("comb"), 40, 2);
    tree
}

fn keeps_to_the_tree(limit: impl Fn(Child) -> Child) {
    let scratch = Scratch::in_memory();
    let tree = mixed(&scratch);
    let [dest, log] = ["d", "log"].map(|name| scratch.at(name));
    let copied = testkit::or_skip!(trace(limit(child::copy(tree.path(), &dest)), &log));
    assert!(
        copied.iter().any(|call| call.name == "mkdirat"),
        "{copied:?}"
    );
    assert_disciplined(&copied, &[tree.path(), &dest]);
    testkit::snapshot::assert_same_tree(tree.path(), &dest, crate::kit::plain());
    let removed = testkit::or_skip!(trace(limit(child::remove(&dest)), &log));
    assert!(removed.iter().any(|call| call.name == "unlinkat"));
    assert_disciplined(&removed, &[&dest]);
    assert_eq!(Snapshot::of(&scratch, Attributes::NAMES).kind("d"), None);
}

#[test]
fn every_path_is_one_component_below_an_open_directory_even_if_it_is_reopened() {
    keeps_to_the_tree(|child| child);
    keeps_to_the_tree(|child| child.nofile_limit(FEW));
}

/// Counts the calls that copy a tree of `size`, those that remove it, and the unlinkat among the latter.
fn cost(
    size: usize,
    build: impl Fn(&Path, usize),
    limit: impl Fn(Child) -> Child,
) -> Result<[usize; 3], Skip> {
    let scratch = Scratch::in_memory();
    let [source, dest, log] = ["s", "d", "log"].map(|name| scratch.at(name));
    build(&source, size);
    let copied = trace(limit(child::copy(&source, &dest)), &log)?;
    let removed = trace(limit(child::remove(&dest)), &log)?;
    let unlinked = removed.iter().filter(|call| call.name == "unlinkat");
    Ok([copied.len(), removed.len(), unlinked.count()])
}

/// Counts how many more calls a tree of `sizes[1]` takes than one of `sizes[0]`.
fn more(
    sizes: [usize; 2],
    build: impl Fn(&Path, usize),
    limit: impl Fn(Child) -> Child,
) -> Result<[usize; 3], Skip> {
    let small = cost(sizes[0], &build, &limit)?;
    let large = cost(sizes[1], &build, &limit)?;
    println!("{small:?} calls, {large:?} calls");
    Ok([0, 1, 2].map(|index| large[index] - small[index]))
}

/// Returns a function that makes directories of ten files each.
fn uniform(content: &str) -> impl Fn(&Path, usize) {
    move |at, dirs| {
        let tree = Tree::at(at);
        for number in 0..dirs * 10 {
            tree.file(format!("{}/{number}", number % dirs), content);
        }
    }
}

#[test]
fn the_kernel_reads_a_large_file_ahead_if_its_server_is_slow() {
    const MIB: usize = 1 << 20;
    let mount = served!();
    mount.set_latency(Duration::from_millis(1));
    let scratch = Scratch::in_memory();
    let [dest, log] = ["d", "log"].map(|name| scratch.at(name));
    let asked = |bytes: usize| {
        let source = mount.at("s");
        fs::write(&source, vec![1; bytes]).unwrap();
        // The file is not in the page cache then.
        rustix::fs::fadvise(
            fs::File::open(&source).unwrap(),
            0,
            None,
            rustix::fs::Advice::DontNeed,
        )
        .unwrap();
        let calls = trace(child::copy(&source, &dest), &log)?;
        fs::remove_file(&dest).unwrap();
        let asks = calls.iter().filter(|call| call.name == "fadvise64");
        let positions = asks.map(|call| {
            assert!(call.args.ends_with("POSIX_FADV_WILLNEED"), "{call:?}");
            call.args.split(", ").nth(1).unwrap().parse().unwrap()
        });
        Ok(positions.collect::<Vec<usize>>())
    };
    let large = testkit::or_skip!(asked(7 * MIB + 5));
    assert!(large.len() >= 4 * MIB / (128 << 10), "{large:?}");
    assert!(large.windows(2).all(|pair| pair[0] < pair[1]), "{large:?}");
    assert!(large.iter().all(|&at| at < 7 * MIB + 5), "{large:?}");
    assert_eq!(testkit::or_skip!(asked(MIB - 1)), [0; 0]);
}

#[test]
fn an_archive_belongs_to_its_maker_alone_until_open_inodes_get_their_attributes() {
    let scratch = Scratch::in_memory();
    let tree = mixed(&scratch);
    tree.plant("open=x %666");
    let [dest, log] = ["d", "log"].map(|name| scratch.at(name));
    let copied = testkit::or_skip!(trace(child::copy(tree.path(), &dest).archive(), &log));
    let makes = |call: &&Call| call.args.contains("O_CREAT") || call.name.starts_with("mk");
    let made: Vec<_> = copied.iter().filter(makes).collect();
    assert!(made.len() > 100, "{made:?}");
    for call in made {
        let mode = call.args.rsplit(['|', ' ']).next().unwrap_or("");
        assert!(["0600", "0700", "0500"].contains(&mode), "{call:?}");
    }
    let by_path = "setxattr lsetxattr chmod fchmodat utimensat fchownat";
    let given: Vec<_> = (copied.iter())
        .filter(|call| by_path.split(' ').any(|name| name == call.name))
        .collect();
    for call in &given {
        let path = call.paths.first().map_or("", String::as_str);
        let is_open = path.is_empty() || path.starts_with("/proc/thread-self/fd/");
        assert!(is_open, "{call:?}");
    }
    // All directories, links and special files get their attributes by such calls.
    let entries = entries_of(tree.path());
    assert!(
        given.len() > entries / 2,
        "{} calls for {entries} entries",
        given.len()
    );
}

#[test]
fn all_attributes_of_a_file_cost_few_calls_more() {
    for (content, calls_of_a_file) in [("", 9), ("content", 10)] {
        let calls = |dirs| {
            let scratch = Scratch::in_memory();
            let [source, dest, log] = ["s", "d", "log"].map(|name| scratch.at(name));
            uniform(content)(&source, dirs);
            trace(child::copy(&source, &dest).archive(), &log).map(|calls| calls.len())
        };
        let copied = testkit::or_skip!(calls(40)) - testkit::or_skip!(calls(20));
        let expected = 20 * 10..=20 * (10 * calls_of_a_file + 16);
        assert!(
            expected.contains(&copied),
            "{copied} calls for 20 directories of 10"
        );
    }
}

#[test]
#[ignore = "slow"]
fn reopening_directories_costs_a_few_calls_each() {
    let build = |at: &Path, depth| comb(at, depth, 2);
    let more = more([60, 160], build, |child| child.nofile_limit(FEW));
    let [copied, removed, unlinked] = testkit::or_skip!(more);
    let (dirs, files) = (100 * 3, 100 * 4);
    assert_eq!(unlinked, dirs + files);
    assert!(
        (files + dirs..=files + dirs * 10).contains(&removed),
        "{removed} calls for {dirs} directories"
    );
    assert!(
        (files + dirs..=files * 2 + dirs * 14).contains(&copied),
        "{copied} calls for {dirs} directories"
    );
}

#[test]
fn unchanged_files_cost_one_stat_on_each_side() {
    const DIRS: u64 = 20;
    let scratch = Scratch::in_memory();
    let [source, dest, log] = ["s", "d", "log"].map(|name| scratch.at(name));
    uniform("content")(&source, DIRS as usize);
    child::copy(&source, &dest).run();
    let calls = testkit::or_skip!(trace(child::update(&source, &dest), &log));
    let is_stat = |call: &&Call| matches!(call.name.as_str(), "newfstatat" | "statx" | "fstatat64");
    let of_files = calls.iter().filter(is_stat).filter(|call| {
        let name = call.paths.first().map_or("", String::as_str);
        call.args.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty()
    });
    let files = DIRS * 10;
    let stats = of_files.count() as u64;
    let expected = 2 * files..=2 * files + 4;
    assert!(expected.contains(&stats), "{stats} calls for {files} files");
    let opened = calls.iter().filter(|call| call.name == "openat").count() as u64;
    assert!(
        opened <= 2 * DIRS + 8,
        "{opened} opened, {DIRS} directories"
    );
    let all = calls.len() as u64;
    assert!(all <= 2 * files + 9 * DIRS + 30, "{all} calls");
}
