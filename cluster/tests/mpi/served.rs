//! Ranks that are clients of a distributed filesystem, which keeps names in a database and contents in a store of objects.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use testkit::or_skip;
use testkit::probe::{Mounted, Program as Filesystem, Skip};
use testkit::run::{Outcome, Status};
use testkit::snapshot::{Attributes, Snapshot};
use testkit::tree::{Scratch, Tree};

use crate::clients::AS_CLIENT;
use crate::cpz;
use crate::job::{CPZ, Program, RMZ, SLOW_HUNDREDS, signal};

const RANKS: usize = 4;
/// The number of files in one directory, whose names the ranks share.
const FLAT: usize = 400;
/// For so long a client trusts what it knows of names and attributes.
const CACHED: Duration = Duration::from_secs(2);

/// A mount of the filesystem for each rank, and one for the test.
struct Clients {
    // The first mount goes last.
    observer: Mounted,
    _others: Vec<Mounted>,
    _first: Mounted,
    scratch: Scratch,
}

impl Clients {
    fn new() -> Result<Self, Skip> {
        let scratch = Scratch::new();
        Tree::at(scratch.path()).dir("point");
        let first = Filesystem::Juicefs.mount(&[])?;
        let others = (1..RANKS).map(|_| Filesystem::Juicefs.mount_again(&first));
        let others = others.collect::<Result<Vec<_>, _>>()?;
        for (rank, mount) in [&first].into_iter().chain(&others).enumerate() {
            symlink(mount.path(), scratch.at(rank.to_string())).unwrap();
        }
        Ok(Self {
            observer: Filesystem::Juicefs.mount_again(&first)?,
            _others: others,
            _first: first,
            scratch,
        })
    }

    fn run(&self, program: Program, arguments: &[&str]) -> Result<Outcome, Skip> {
        let job = program.job(RANKS, AS_CLIENT, arguments)?;
        Ok(job.current_dir(&self.scratch).output())
    }

    /// Waits until no client trusts what it knew, and asserts that the copy is complete.
    fn assert_copied(&self, source: &Path, dest: &str) {
        thread::sleep(CACHED);
        // The filesystem shows no holes.
        let attributes = cpz::archived() - Attributes::HOLES;
        let [expected, copy] = [source, &self.seen(dest)].map(|at| Snapshot::of(at, attributes));
        let difference = expected.diff(&copy);
        assert!(difference.is_empty(), "{difference}");
    }

    fn seen(&self, name: &str) -> PathBuf {
        self.observer.path().join(name)
    }
}

/// Builds a tree with hard links, a flat directory, and a file that several ranks copy.
fn build(scratch: &Scratch) -> PathBuf {
    let tree = Tree::at(scratch.path());
    cpz::build(&tree, "s", 5, b'a');
    for number in 0..FLAT {
        tree.file(format!("s/flat/{number}"), number.to_string());
    }
    let noise = (0..40 << 20_u32).map(|at: u32| (at.wrapping_mul(0x9e37_79b9) >> 24) as u8);
    tree.file("s/large", noise.collect::<Vec<_>>());
    scratch.at("s")
}

/// Kills a rank while the job copies. Returns whether it had work left.
fn kill_a_rank(clients: &Clients, rank: usize) -> Result<bool, Skip> {
    let script = format!(r#"echo $$ > "pid.$RANK"; {AS_CLIENT}"#);
    let job = CPZ.job(RANKS, &script, &["-aT", SLOW_HUNDREDS, "s", "point/d"])?;
    let mut live = job.current_dir(&clients.scratch).start();
    live.wait_for_effect(|| fs::read_dir(clients.seen("d")).is_ok_and(|list| list.count() > 3));
    signal(&clients.scratch, rank, "-KILL");
    Ok(live.finish().status != Status::Exit(0))
}

#[test]
fn ranks_that_are_clients_of_juicefs_copy_and_remove_whole_trees() {
    let clients = or_skip!(Clients::new());
    let source = build(&clients.scratch);
    for rank in [0, RANKS - 1] {
        assert!(or_skip!(kill_a_rank(&clients, rank)));
        let resumed = or_skip!(clients.run(CPZ, &["-aT", "--resume", "s", "point/d"]));
        resumed.assert_success();
        clients.assert_copied(&source, "d");
        or_skip!(clients.run(RMZ, &["point/d"])).assert_success();
        assert!(!clients.seen("d").exists());
        thread::sleep(CACHED);
    }
    let copied = or_skip!(clients.run(CPZ, &["-aT", "--fsync", "--verify", "s", "point/d"]));
    copied.assert_success();
    clients.assert_copied(&source, "d");
    or_skip!(clients.run(RMZ, &["point/d"])).assert_success();
    assert!(!clients.seen("d").exists());
}
