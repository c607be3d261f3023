//! Ranks that are clients of one server. Each has a mount of its own at the same path, which caches names and attributes.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use testkit::or_skip;
use testkit::probe::{FuseMount, Habits, Rights, Skip};
use testkit::run::Outcome;
use testkit::snapshot::assert_same_tree;
use testkit::tree::{Scratch, Tree, wide};

use crate::cpz;
use crate::job::{CPZ, Program, RMZ, assert_shared};

/// Lets each rank see its own mount at `point`.
pub(crate) const AS_CLIENT: &str = r#"
    exec unshare --mount --propagation private sh -c 'mount --bind "$0" point && exec "$@"' "$RANK" "$@"
"#;

/// A server, and a client of it for each rank.
struct Clients {
    mounts: Vec<FuseMount>,
    stored: Scratch,
    scratch: Scratch,
}

impl Clients {
    /// Each client has these habits.
    fn new(ranks: usize, habits: &Habits) -> Result<Self, Skip> {
        let (scratch, stored) = (Scratch::new(), Scratch::in_memory());
        let tree = Tree::at(scratch.path());
        tree.dir("point");
        let mount = |rank: usize| {
            let point = tree.dir(rank.to_string()).path().join(rank.to_string());
            FuseMount::over(stored.path(), &point, habits.clone())
        };
        let mounts = (0..ranks).map(mount).collect::<Result<_, _>>()?;
        Ok(Self {
            mounts,
            stored,
            scratch,
        })
    }

    /// Lets each client look up a name that does not exist.
    fn miss(&self, name: &str) {
        for mount in &self.mounts {
            assert!(fs::metadata(mount.path().join(name)).is_err());
        }
    }

    fn run(&self, program: Program, arguments: &[&str]) -> Result<Outcome, Skip> {
        let job = program.job(self.mounts.len(), AS_CLIENT, arguments)?;
        Ok(job.current_dir(&self.scratch).output())
    }

    fn stored(&self, name: &str) -> PathBuf {
        self.stored.path().join(name)
    }
}

/// Returns the habits of clients that trust what they know for a while.
fn trusting() -> Habits {
    Habits {
        client_caches: Duration::from_secs(3),
        ..Habits::default()
    }
}

/// Copies a tree with `arguments`, removes the copy, and copies it again, while all clients trust what they know.
fn copy_remove_copy(arguments: &[&str]) -> Result<(), Skip> {
    let clients = Clients::new(4, &trusting())?;
    cpz::build(&Tree::at(clients.stored.path()), "s", 9, b'a');
    clients.miss("t");
    let copy = [arguments, &["point/s", "point/t"]].concat();
    for round in 0..3 {
        clients.run(CPZ, &copy)?.assert_success();
        assert_same_tree(clients.stored("s"), clients.stored("t"), cpz::archived());
        if round == 1 {
            // Another client of the server, of which the ranks learn nothing.
            fs::remove_dir_all(clients.stored("t")).unwrap();
        } else {
            clients.run(RMZ, &["point/t"])?.assert_success();
        }
        assert!(!clients.stored("t").exists());
    }
    Ok(())
}

#[test]
fn clients_with_old_caches_copy_and_remove_the_same_names_again() {
    or_skip!(copy_remove_copy(&["-aT"]));
}

/// Copies the names of one directory with four clients of a server that is 1 ms away, and removes them. Returns how many names
/// there were in both jobs.
fn copy_and_remove_names(habits: &Habits) -> Result<u64, Skip> {
    const NAMES: usize = 1_500;
    let clients = Clients::new(4, habits)?;
    wide(clients.stored("s"), NAMES);
    for mount in &clients.mounts {
        mount.set_latency(Duration::from_millis(1));
    }
    for (program, arguments) in [
        (CPZ, &["--stats=json", "-T", "point/s", "point/t"][..]),
        (RMZ, &["--stats=json", "point/s"]),
    ] {
        let outcome = clients.run(program, arguments)?;
        outcome.assert_success();
        assert_shared(&outcome);
    }
    assert_eq!(fs::read_dir(clients.stored("t")).unwrap().count(), NAMES);
    assert!(!clients.stored("s").exists());
    Ok(2 * NAMES as u64)
}

#[test]
fn the_names_of_one_directory_are_shared() {
    or_skip!(copy_and_remove_names(&trusting()));
}

#[test]
fn clients_that_take_the_rights_to_a_directory_from_each_other_leave_most_names_to_one() {
    let rights = Rights::moving_in(Duration::from_millis(5));
    let habits = Habits {
        rights: Some(Arc::clone(&rights)),
        ..trusting()
    };
    let names = or_skip!(copy_and_remove_names(&habits));
    let moves = rights.moves();
    assert!(moves < names / 4, "{moves} for {names} names");
}
