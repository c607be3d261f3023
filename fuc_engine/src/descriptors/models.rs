//! A model of evictions. The orderings that it depends on are those of the slots.

use std::fs::File;
use std::os::fd::RawFd;

use loom::thread;
use rustix::io::fcntl_dupfd_cloexec;

use super::*;
use crate::node::Place;
use crate::sync::models::Model;

struct Single(DirSlot);

impl Dir for Single {
    type State = ();

    fn slot(&self, _: Side) -> &DirSlot {
        &self.0
    }
}

struct Operands;

impl Roots for Operands {
    fn open_operand(&self, _: u32, _: Side) -> Result<Fd, Errno> {
        Ok(open())
    }
}

/// The lowest number of a descriptor here: above those of the models of the slots. So the numbers are
/// the same in each execution, as loom requires.
const LOWEST: RawFd = 200;

fn open() -> Fd {
    fcntl_dupfd_cloexec(File::open("/").unwrap(), LOWEST)
        .unwrap()
        .into()
}

/// Two workers need an evicted directory, a third one needs the open one, and the budget is one. So
/// opening the former evicts the latter unless that is in use.
fn three_workers_with_a_budget_of_one() {
    let descriptors = Arc::new(Descriptors::<Single> {
        open: AtomicUsize::new(0),
        resident: AtomicUsize::new(0),
        budget: AtomicUsize::new(1),
        lent: AtomicUsize::new(0),
        evictable: Mutex::default(),
    });
    let nodes = [0, 1].map(|operand| {
        let place = Place {
            parent: None,
            name: c"operand".into(),
            operand,
        };
        let node = Node::new(place, (), Single(DirSlot::empty()), None);
        descriptors.adopt(&node, Side::Source, open());
        node
    });
    assert!(!nodes[0].dir.0.is_open(), "the budget evicts no directory");
    let workers = [0, 0, 1].map(|operand| {
        let (descriptors, node) = (Arc::clone(&descriptors), Arc::clone(&nodes[operand]));
        thread::spawn(move || {
            let pin = descriptors.pin(&node, Side::Source, &Operands).unwrap();
            let is_open = sys::stat_directory(pin.as_fd()).is_ok();
            assert!(is_open, "a pinned descriptor is closed");
        })
    });
    for worker in workers {
        worker.join().unwrap();
    }
    let open = nodes.iter().filter(|node| node.dir.0.is_open());
    assert_eq!(
        open.count(),
        descriptors.open.load(Relaxed),
        "the open directories are miscounted"
    );
    for node in &nodes {
        descriptors.close(node, Side::Source);
    }
}

#[test]
fn an_evicted_directory_is_opened_again_while_others_are_evicted() {
    let protocol = "an evicted directory is opened again";
    let executions = Model::new(protocol, 2, three_workers_with_a_budget_of_one).explore();
    println!("{protocol}: {executions} executions");
}
