//! Enough entries to keep several threads busy.

use std::path::Path;

use testkit::{
    needs, or_skip,
    probe::gnu,
    run::{Outcome, Run, Status},
    skip,
    snapshot::{Attributes, assert_same_tree},
    tree::{Scratch, Tree, chain, comb, noise, sparse_dirs, wide, wide_dirs},
};

use crate::support::{CP, CPZ, cpz, succeeds};

#[track_caller]
fn with_threads(threads: usize, rows: &str, build: impl Fn(&Tree)) {
    CP.table().build(build).threads(threads).rows(rows);
}

fn thousand_files(tree: &Tree) {
    wide(tree.path().join("d"), 900);
    let content = noise(5_000);
    for i in 0..100 {
        tree.file(format!("d/content{i}"), &content[i..]);
    }
}

fn three_hundred_dirs(tree: &Tree) {
    sparse_dirs(tree.path().join("d"), 300);
}

fn thousand_and_three_hundred(tree: &Tree) {
    thousand_files(tree);
    three_hundred_dirs(tree);
}

#[test]
#[ignore = "slow"]
fn many_entries_are_copied_by_any_number_of_threads() {
    with_threads(1, "cpz -v d new", thousand_and_three_hundred);
    with_threads(2, "cpz -v d new", thousand_files);
    with_threads(8, "cpz -v d (new|into)", |tree| {
        thousand_and_three_hundred(tree);
        let into = tree.path().join("into/d");
        wide(&into, 500);
        wide_dirs(&into, 200);
    });
    with_threads(8, "into/ \n cpz -t into d/d{0..299}", three_hundred_dirs);
    with_threads(4, "cpz d new", |tree| chain(tree.path(), 1_500));
    with_threads(8, "cpz -v d new", |tree| comb(tree.path(), 60, 3));
}

#[test]
#[ignore = "slow"]
fn copies_a_chain_past_path_max() {
    // GNU's cp cannot copy such a tree.
    let scratch = Scratch::in_memory();
    chain(scratch.at("a"), 4_000);
    succeeds(&scratch, "a new");
    assert_same_tree(scratch.at("a"), scratch.at("new"), Attributes::CONTENT);
}

#[test]
fn copies_a_deep_comb_with_few_descriptors() {
    let scratch = Scratch::in_memory();
    comb(scratch.at("a"), 100, 3);
    cpz(&scratch, "a new")
        .nofile_limit(40)
        .output()
        .assert_success();
    assert_same_tree(scratch.at("a"), scratch.at("new"), Attributes::CONTENT);
}

#[test]
#[ignore = "slow"]
fn all_attributes_and_links_with_six_free_descriptors() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    tree.dir("into");
    chain(tree.path().join("s/chain"), 50);
    for i in 0..5 {
        tree.file(format!("s/a/b/c/{i}"), noise(i << 20))
            .mode(0o640)
            .plant(format!("s/z/{i}==s/a/b/c/{i} s/z/y/x/w/{i}==s/a/b/c/{i} s/z/y/link{i}->nowhere s/z/fifo{i}<fifo>"));
    }
    let wanted = Attributes::CONTENT | Attributes::MODE | Attributes::LINKS | Attributes::MTIME;
    for flags in ["-a", "-au", "-a --remove-destination", "-a --threads=8"] {
        let run = Run::new(CPZ).args(flags.split(' ')).words("s into");
        let outcome = run.nofile_limit(3 + 6).current_dir(&scratch).output();
        outcome.assert_success();
        let copy = scratch.at("into/s");
        assert_same_tree(scratch.at("s"), copy, wanted);
    }
}

/// Runs the command with `kib` KiB of address space.
fn within_kib(kib: u32, dir: &Path, args: &[&str]) -> Outcome {
    Run::new("sh")
        .args(["-c", r#"ulimit -v $0; exec "$@""#])
        .arg(kib.to_string())
        .arg(CPZ)
        .args(args)
        .current_dir(dir)
        .output()
}

/// Returns the address space, in KiB, with which the command succeeds.
fn kib_to_run(dir: &Path, args: &[&str]) -> u32 {
    let limits: Vec<u32> = (500..1_000_000).step_by(100).collect();
    let fails = |kib: &u32| within_kib(*kib, dir, args).status != Status::Exit(0);
    limits[limits.partition_point(fails)]
}

#[test]
#[ignore = "slow"]
fn a_long_list_of_names_takes_little_memory() {
    const NAMES: u32 = 100_000;
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    let mut list = String::new();
    tree.dir("d");
    for i in 0..NAMES {
        let name = format!("s/{i:018}");
        tree.file(&name, "");
        list += &name;
        list.push('\0');
    }
    tree.file("list", list);
    let start = kib_to_run(scratch.path(), &["--version"]);
    // Vectors that grow take more address space than memory.
    let kib = start + NAMES * 200 / 1024;
    let args = ["--threads=1", "--files0-from=list", "d"];
    within_kib(kib, scratch.path(), &args).assert_success();
    let copied = std::fs::read_dir(scratch.at("d")).unwrap();
    assert_eq!(copied.count(), NAMES as usize);
}

#[test]
#[ignore = "slow"]
fn running_out_of_memory_ends_with_a_message() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    for i in 0..2_000 {
        tree.plant(format!("s/a/{i}= s/b/{i}==s/a/{i}"));
    }
    let within = |kib, args: &[&str]| within_kib(kib, scratch.path(), args);
    let start = kib_to_run(scratch.path(), &["--version"]);
    let mut exhausted = 0;
    for kib in (start..).step_by(100) {
        let outcome = within(kib, &["-a", "--threads=1", "s", &format!("d{kib}")]);
        if outcome.status == Status::Exit(0) {
            break;
        }
        assert_eq!(outcome.status, Status::Exit(1), "{kib}: {outcome}");
        let message = "cpz: memory exhausted\n";
        assert_eq!(outcome.stderr_text(), message, "{kib}");
        exhausted += 1;
    }
    assert!(exhausted > 0, "the first limit was enough: {start}");
}

#[test]
#[ignore = "slow"]
fn links_thousands_of_names_in_4_mib_more_than_one_name() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    tree.plant("f= s/");
    for i in 0..3_000 {
        tree.plant(format!("s/a/d{i}/ s/a/{i}= s/b/{i}==s/a/{i}"));
    }
    let kib = kib_to_run(scratch.path(), &["-alf", "f", "link"]);
    let outcome = within_kib(kib + 4_000, scratch.path(), &["-al", "s", "new"]);
    assert_eq!(outcome.stderr_text(), "");
    outcome.assert_success();
    let [source, copy] = ["s", "new"].map(|name| scratch.at(name));
    assert_same_tree(source, copy, Attributes::CONTENT);
}

/// Copies 200 directories, each with a file, 200 files, and 200 names that are missing. Returns both streams
/// as one.
fn copied_in_order(program: &Path, args: &[&str]) -> String {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    tree.plant("into/ into/d7='in the way'");
    let mut operands = Vec::new();
    for number in 0..200 {
        tree.plant(format!("d{number}/f= f{number}=x"));
        operands.extend(["d", "missing", "f"].map(|name| format!("{name}{number}")));
    }
    let run = Run::new("sh")
        .args(["-c", r#"exec "$0" -r "$@" 2>&1"#])
        .arg(program)
        .args(args)
        .args(operands)
        .arg("into");
    let outcome = run.current_dir(&scratch).output();
    outcome.stdout_text().replace("cpz: ", "cp: ")
}

#[test]
#[ignore = "slow"]
fn prints_the_lines_of_operands_in_their_order() {
    let cp = or_skip!(gnu("cp"));
    for verbosity in [&["-v"][..], &[]] {
        let expected = copied_in_order(&cp, verbosity);
        for threads in ["--threads=1", "--threads=4", "--threads=16"] {
            let ours = copied_in_order(CPZ.as_ref(), &[verbosity, &[threads]].concat());
            assert!(ours == expected, "{verbosity:?} {threads}:\n{ours}");
        }
    }
}

#[test]
fn a_warning_waits_for_the_failures_of_the_operands_before_it() {
    let cp = or_skip!(gnu("cp"));
    let scratch = Scratch::in_memory();
    scratch.plant("f= d/");
    let stderr = |program: &Path| {
        let run = Run::new(program).words("-r f d d f .");
        let outcome = run.current_dir(&scratch).output();
        outcome.stderr_text().replace("cpz: ", "cp: ")
    };
    assert_eq!(stderr(CPZ.as_ref()), stderr(&cp));
}

/// Threads of one table wait for its lock at each `open` and `close`.
#[test]
#[ignore = "slow"]
fn threads_have_private_descriptor_tables() {
    needs!("strace");
    let scratch = Scratch::new();
    three_hundred_dirs(&Tree::at(&scratch));
    let outcome = Run::new("strace")
        .words("-f -o log -e trace=close_range,pidfd_getfd")
        .args([CPZ, "--threads=8", "d", "into"])
        .current_dir(&scratch)
        .output();
    outcome.assert_success();
    assert_same_tree(scratch.at("d"), scratch.at("into"), Attributes::NAMES);
    let log = std::fs::read_to_string(scratch.at("log")).unwrap();
    let calls = |name: &str| log.lines().filter(|line| line.contains(name)).count();
    let tables = calls("CLOSE_RANGE_UNSHARE");
    if tables == 0 && !has_private_tables() {
        skip!("the kernel is older than 6.9, or a sandbox forbids private tables");
    }
    assert!(
        tables > 0 && calls("pidfd_getfd") > tables,
        "no descriptor was copied between tables\n{log}"
    );
}

/// Returns `true` if the kernel and the sandbox permit private tables.
fn has_private_tables() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split('.')
        .map_while(|number| number.parse::<u32>().ok());
    let version = (numbers.next(), numbers.next());
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    version >= (Some(6), Some(9)) && status.contains("Seccomp:\t0")
}
