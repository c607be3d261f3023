//! Ranks that are clients of one server. Each has a mount of its own at the same path, which caches names and attributes.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use testkit::or_skip;
use testkit::probe::{FuseMount, Habits, Skip};
use testkit::run::Outcome;
use testkit::snapshot::assert_same_tree;
use testkit::tree::{Scratch, Tree};

use crate::cpz;
use crate::job::{CPZ, Program, RMZ};

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
    /// The clients trust what they have cached for `caches`.
    fn new(ranks: usize, caches: Duration) -> Result<Self, Skip> {
        let (scratch, stored) = (Scratch::new(), Scratch::in_memory());
        let tree = Tree::at(scratch.path());
        tree.dir("point");
        let mount = |rank: usize| {
            let point = tree.dir(rank.to_string()).path().join(rank.to_string());
            let client_caches = caches;
            FuseMount::over(
                stored.path(),
                &point,
                Habits {
                    client_caches,
                    ..Habits::default()
                },
            )
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

/// Copies a tree with `arguments`, removes the copy, and copies it again, while all clients trust what they know.
fn copy_remove_copy(arguments: &[&str]) -> Result<(), Skip> {
    let clients = Clients::new(4, Duration::from_secs(3))?;
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
