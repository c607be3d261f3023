//! A model of the climb.

use std::ops::Range;
use std::sync::atomic::AtomicUsize;

use loom::sync::atomic::AtomicBool;
use loom::thread;

use super::*;
use crate::sync::models::{Model, check};

/// One flag for each user, set when the user has done its work. Relaxed, as in the state of a real
/// node: only the climb publishes them.
type Work = [AtomicBool; 3];

/// A directory without descriptors.
struct Worked {
    slot: DirSlot,
    work: Arc<Work>,
    /// The users of this directory and of those below it.
    users: Range<usize>,
}

impl Dir for Worked {
    type State = ();

    fn slot(&self, _: Side) -> &DirSlot {
        &self.slot
    }
}

/// Two workers process the subdirectories of a directory, while a third one lists it.
fn the_last_user_finishes_the_directory() {
    let work = Arc::new(Work::default());
    let finished = Arc::new(AtomicUsize::new(0));
    let node = |place, users| {
        let dir = Worked {
            slot: DirSlot::empty(),
            work: Arc::clone(&work),
            users,
        };
        Node::new(place, (), dir, None)
    };
    let finish = {
        let finished = Arc::clone(&finished);
        move |node: &Arc<Node<Worked>>| {
            let mut work = node.dir.work[node.dir.users.clone()].iter();
            assert!(
                work.all(|done| done.load(Ordering::Relaxed)),
                "the work of a user is missing when its directory is finished"
            );
            finished.fetch_add(1, Ordering::Relaxed);
            ControlFlow::Continue(())
        }
    };

    let operand = Place {
        parent: None,
        name: c"operand".into(),
        operand: 0,
    };
    let top = node(operand, 0..3);
    let listed = node(top.child(c"listed"), 0..3);
    climb(top, finish.clone());
    let workers = [(0, c"left"), (1, c"right")].map(|(user, name)| {
        let subdirectory = node(listed.child(name), user..user + 1);
        let finish = finish.clone();
        thread::spawn(move || {
            subdirectory.dir.work[user].store(true, Ordering::Relaxed);
            climb(subdirectory, finish);
        })
    });
    listed.dir.work[2].store(true, Ordering::Relaxed);
    climb(listed, finish);
    for worker in workers {
        worker.join().unwrap();
    }
    assert_eq!(
        finished.load(Ordering::Relaxed),
        4,
        "each directory is finished once"
    );
}

#[test]
fn the_last_user_of_a_directory_finishes_it_once_and_sees_the_work_of_all() {
    let model = Model::new(
        "the last user finishes the directory",
        3,
        the_last_user_finishes_the_directory,
    );
    check("src/node.rs", &[model]);
}
