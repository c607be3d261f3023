//! An engine of one worker, which waits instead of working.
//!
//! It processes its newest directory first, as the real one does, and step by step. A step lists a directory, or
//! processes some files.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use fuc_engine::distribute::{Finished, Reply, Ticket};

use super::tree::Shape;
use super::{ENTRY, LISTING, Nanos, OPENING};
use crate::message::{Outgoing, Rank};

/// The most directories that a thief gets at once, as in the engine.
const MOST_GIVEN: u64 = 256;
/// Subdirectories after which a listing pauses until they are done, as in the engine.
const MANY_CHILDREN: u64 = 512;
/// Files in a step, of which the engine has fewer. With 32 files, the tests take four times as long.
const PART: u64 = 128;
/// The deepest level below the operand on which directories are given away, as in the engine.
const DEEPEST: u32 = 256;

/// Directories of one kind with one parent.
#[derive(Clone, Copy)]
pub(super) struct Run {
    kind: usize,
    count: u64,
    level: u32,
    parent: Parent,
}

/// The directories under one ticket.
pub(super) type Taken = Vec<Run>;

#[derive(Clone, Copy, PartialEq)]
enum Parent {
    None,
    Node(usize),
    /// The directory belongs to another rank.
    Borrowed(Ticket),
}

struct Node {
    pending: u64,
    parent: Parent,
}

/// A part of the queue. The engine works on the newest one, and there on one directory after the other.
enum Item {
    Directories(Run),
    /// Directories that a listing has not reached. They cannot be given away.
    Unlisted(Run),
    /// The other entries of a directory that is being listed.
    Files(u64, Parent),
    /// Directories of another rank that this one has not opened yet.
    Stolen(Ticket, Taken),
}

pub(super) struct Engine {
    shape: Rc<Shape>,
    items: VecDeque<Item>,
    nodes: Vec<Node>,
    /// The parent of each ticket that this engine has given away, and how many directories it is for.
    given: HashMap<u64, (Parent, u64)>,
    next_ticket: u64,
    pub(super) has_request: bool,
    pub(super) has_ended: bool,
    pub(super) entries: u64,
    /// Time that this engine has worked.
    pub(super) busy: Nanos,
}

impl Engine {
    pub(super) fn new(shape: Rc<Shape>) -> Self {
        Self {
            shape,
            items: VecDeque::new(),
            nodes: Vec::new(),
            given: HashMap::new(),
            next_ticket: 0,
            has_request: false,
            has_ended: false,
            entries: 0,
            busy: 0,
        }
    }

    pub(super) fn begin_operand(&mut self) {
        self.items.push_back(Item::Directories(Run {
            kind: self.shape.operand(),
            count: 1,
            level: 0,
            parent: Parent::None,
        }));
    }

    /// Returns how long the next step takes, or `None` if nothing is left to do.
    pub(super) fn next_step(&self) -> Option<Nanos> {
        Some(match self.items.back()? {
            Item::Directories(_) => LISTING,
            Item::Unlisted(_) => 0,
            Item::Files(count, _) => PART.min(*count) * ENTRY,
            Item::Stolen(..) => OPENING,
        })
    }

    /// Does the next step. Returns what this engine then has to say.
    pub(super) fn step(&mut self) -> Option<Outgoing> {
        self.busy += self.next_step()?;
        match self.items.pop_back()? {
            Item::Directories(run) => return self.list(run),
            Item::Unlisted(run) => self.list_more(run),
            Item::Files(count, parent) => {
                let done = PART.min(count);
                self.entries += done;
                if done == count {
                    return self.climb(parent, 1);
                }
                self.items.push_back(Item::Files(count - done, parent));
            }
            Item::Stolen(ticket, runs) => self.open(ticket, runs),
        }
        None
    }

    /// Replaces the first of some directories by what is in it.
    fn list(&mut self, run: Run) -> Option<Outgoing> {
        self.entries += 1;
        if run.count > 1 {
            let count = run.count - 1;
            self.items
                .push_back(Item::Directories(Run { count, ..run }));
        }
        let shape = Rc::clone(&self.shape);
        let kind = shape.kind(run.kind);
        let below: u64 = kind.children.iter().map(|&(_, count)| count).sum();
        let pending = below + u64::from(kind.files > 0);
        if pending == 0 {
            return self.climb(run.parent, 1);
        }
        let node = self.node(pending, run.parent);
        for &(child, count) in &kind.children {
            self.list_more(Run {
                kind: child,
                count,
                level: run.level + 1,
                parent: Parent::Node(node),
            });
        }
        if kind.files > 0 {
            let files = Item::Files(kind.files, Parent::Node(node));
            self.items.push_back(files);
        }
        None
    }

    /// Queues directories, and those that are too many for one part of a listing below the others.
    fn list_more(&mut self, run: Run) {
        let count = run.count.min(MANY_CHILDREN);
        if count < run.count {
            let rest = run.count - count;
            self.items
                .push_back(Item::Unlisted(Run { count: rest, ..run }));
        }
        self.items
            .push_back(Item::Directories(Run { count, ..run }));
    }

    fn open(&mut self, ticket: Ticket, runs: Taken) {
        let pending = runs.iter().map(|run| run.count).sum();
        let parent = Parent::Node(self.node(pending, Parent::Borrowed(ticket)));
        let runs = runs.into_iter().map(|run| Run { parent, ..run });
        self.items.extend(runs.map(Item::Directories));
    }

    fn node(&mut self, pending: u64, parent: Parent) -> usize {
        self.nodes.push(Node { pending, parent });
        self.nodes.len() - 1
    }

    /// Drops uses of a parent.
    fn climb(&mut self, mut parent: Parent, mut uses: u64) -> Option<Outgoing> {
        while let Parent::Node(index) = parent {
            let node = &mut self.nodes[index];
            node.pending -= uses;
            if node.pending > 0 {
                return None;
            }
            (parent, uses) = (node.parent, 1);
        }
        let reply = Reply::Finished(Finished {
            kept: false,
            left_alone: false,
            changed: true,
        });
        Some(match parent {
            Parent::Borrowed(ticket) => Outgoing::GiveBack(ticket, reply),
            _ => Outgoing::End,
        })
    }

    /// Returns the number of tasks that are queued, and not begun, in the item at `index`.
    fn tasks_in(&self, index: usize) -> u64 {
        let is_begun = index + 1 == self.items.len();
        match &self.items[index] {
            Item::Directories(run) => run.count - u64::from(is_begun),
            Item::Unlisted(_) | Item::Stolen(..) => u64::from(!is_begun),
            Item::Files(..) => 0,
        }
    }

    fn can_give(&self, index: usize) -> bool {
        match &self.items[index] {
            Item::Directories(run) => (1..=DEEPEST).contains(&run.level),
            _ => false,
        }
    }

    /// Takes the older half of the directories that can be given away, in one ticket for each parent.
    pub(super) fn give(&mut self, rank: Rank) -> Vec<(Ticket, Taken)> {
        let indexes = 0..self.items.len();
        let queued: u64 = indexes.clone().map(|index| self.tasks_in(index)).sum();
        let takes = |&index: &usize| self.can_give(index) && self.tasks_in(index) > 0;
        let Some(first) = indexes.clone().find(takes) else {
            return Vec::new();
        };
        let older: u64 = (0..first).map(|index| self.tasks_in(index)).sum();
        let half = (queued - older).div_ceil(2).min(MOST_GIVEN);
        let mut rest = half.min(queued - 1);
        let mut given: Vec<(Ticket, Taken)> = Vec::new();
        let mut last = None;
        for index in first..self.items.len() {
            if rest == 0 || !self.can_give(index) {
                break;
            }
            let count = rest.min(self.tasks_in(index));
            let Item::Directories(run) = &mut self.items[index] else {
                unreachable!("only directories are given");
            };
            run.count -= count;
            rest -= count;
            let run = Run { count, ..*run };
            if last != Some(run.parent) {
                last = Some(run.parent);
                given.push((self.ticket(rank, run.parent), Vec::new()));
            }
            let (ticket, runs) = given.last_mut().expect("a ticket");
            runs.push(run);
            let kept = self.given.get_mut(&ticket.number).expect("a ticket");
            kept.1 += count;
        }
        self.items
            .retain(|item| !matches!(item, Item::Directories(run) if run.count == 0));
        given
    }

    fn ticket(&mut self, rank: Rank, parent: Parent) -> Ticket {
        let ticket = Ticket {
            victim: rank,
            number: self.next_ticket,
        };
        self.next_ticket += 1;
        self.given.insert(ticket.number, (parent, 0));
        ticket
    }

    /// Queues directories of another rank below everything else.
    pub(super) fn take(&mut self, ticket: Ticket, runs: Taken) {
        self.items.push_front(Item::Stolen(ticket, runs));
    }

    /// Queues directories again that no thief wants, below everything else.
    pub(super) fn keep(&mut self, ticket: Ticket, runs: Taken) {
        self.given.remove(&ticket.number);
        for run in runs.into_iter().rev() {
            self.items.push_front(Item::Directories(run));
        }
    }

    /// Notes that the directories of a ticket are done.
    pub(super) fn take_back(&mut self, ticket: Ticket) -> Option<Outgoing> {
        let (parent, uses) = self.given.remove(&ticket.number).expect("given away");
        self.climb(parent, uses)
    }
}
