//! Ranks that are clients of one server. Each has a mount of its own at the same path, which caches names and attributes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread;
use std::time::Duration;

use testkit::probe::{FuseMount, Mounted, Program as Filesystem, Skip};
use testkit::run::{Outcome, Status};
use testkit::snapshot::{Attributes, Snapshot, assert_same_tree};
use testkit::tree::{Scratch, Tree, noise};
use testkit::{habits, or_skip};

use crate::job::{CPZ, Program, RMZ, SLOW_HUNDREDS, signal};
use crate::trees::{archived, build};

const RANKS: usize = 4;

/// Lets each rank see its own mount at `point`.
const AS_CLIENT: &str = r#"
    exec unshare --mount --propagation private sh -c 'mount --bind "$0" point && exec "$@"' "$RANK" "$@"
"#;

/// A client of the server for each rank, and the directory in which the ranks work.
struct Clients<M> {
    mounts: Vec<M>,
    scratch: Scratch,
}

impl<M> Clients<M> {
    fn new(mounts: Vec<M>, path: fn(&M) -> &Path) -> Self {
        let scratch = Scratch::with("point/");
        for (rank, mount) in mounts.iter().enumerate() {
            symlink(path(mount), scratch.at(rank.to_string())).unwrap();
        }
        Self { mounts, scratch }
    }

    fn run(&self, program: Program, arguments: &str) -> Outcome {
        let job = program.job(RANKS, AS_CLIENT, arguments);
        job.current_dir(&self.scratch).output()
    }
}

/// Copies a tree, removes the copy, and copies it again, while all clients trust what they know.
#[test]
fn clients_with_old_caches_copy_and_remove_the_same_names_again() {
    let stored = Scratch::in_memory();
    build(&Tree::at(&stored), "s", 9, b'a');
    let points = [(); RANKS].map(|()| Scratch::new());
    let habits = habits!(client_caches: Duration::from_secs(3));
    let mount = |point: &Scratch| FuseMount::over(stored.path(), point.path(), habits.clone());
    let mounts = points.iter().map(mount).collect::<Result<_, _>>();
    let clients = Clients::new(or_skip!(mounts), FuseMount::path);
    let [source, dest] = ["s", "t"].map(|name| stored.at(name));
    // Each client looks up a name that does not exist.
    for mount in &clients.mounts {
        assert!(fs::metadata(mount.at("t")).is_err());
    }
    for round in 0..3 {
        clients.run(CPZ, "-aT point/s point/t").assert_success();
        assert_same_tree(&source, &dest, archived());
        if round == 1 {
            // Another client of the server, of which the ranks learn nothing.
            fs::remove_dir_all(&dest).unwrap();
        } else {
            clients.run(RMZ, "point/t").assert_success();
        }
        assert!(!dest.exists());
    }
}

/// For so long a client of JuiceFS trusts what it knows of names and attributes.
const CACHED: Duration = Duration::from_secs(2);

/// Mounts JuiceFS, which keeps names in a database and contents in a store of objects, for each rank and for the test.
fn juicefs() -> Result<(Clients<Mounted>, Mounted), Skip> {
    let first = Filesystem::Juicefs.mount(&[])?;
    let again = (0..RANKS).map(|_| Filesystem::Juicefs.mount_again(&first));
    let mut mounts = again.collect::<Result<Vec<_>, _>>()?;
    let observer = mounts.remove(0);
    // The first mount goes last.
    mounts.push(first);
    Ok((Clients::new(mounts, Mounted::path), observer))
}

/// Builds a tree with hard links, a flat directory, whose names the ranks share, and a file that several ranks copy.
fn build_for_juicefs(scratch: &Scratch) {
    let tree = Tree::at(scratch);
    build(&tree, "s", 5, b'a');
    for number in 0..400 {
        tree.file(format!("s/flat/{number}"), number.to_string());
    }
    tree.file("s/large", noise(40 << 20));
}

#[test]
fn ranks_that_are_clients_of_juicefs_copy_and_remove_whole_trees() {
    let (clients, observer) = or_skip!(juicefs());
    build_for_juicefs(&clients.scratch);
    let dest = observer.path().join("d");
    for (killed, arguments) in [
        (Some(RANKS - 1), "-aT --resume s point/d"),
        (None, "-aT --fsync --verify s point/d"),
    ] {
        if let Some(rank) = killed {
            let script = format!(r#"echo $$ > "pid.$RANK"; {AS_CLIENT}"#);
            let job = CPZ.job(RANKS, &script, &format!("-aT {SLOW_HUNDREDS} s point/d"));
            let mut live = job.current_dir(&clients.scratch).start();
            live.wait_for_effect(|| fs::read_dir(&dest).is_ok_and(|list| list.count() > 3));
            signal(&clients.scratch, rank, "-KILL");
            assert_ne!(live.finish().status, Status::Exit(0));
        }
        clients.run(CPZ, arguments).assert_success();
        // Until no client trusts what it knew.
        thread::sleep(CACHED);
        // The filesystem shows no holes.
        let attributes = archived() - Attributes::HOLES;
        let [source, copy] =
            [&clients.scratch.at("s"), &dest].map(|at| Snapshot::of(at, attributes));
        assert_eq!(source.diff(&copy), "");
        clients.run(RMZ, "point/d").assert_success();
        assert!(!dest.exists());
        thread::sleep(CACHED);
    }
}
