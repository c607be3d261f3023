//! Simulated jobs: many ranks, each with an engine of one worker, on a network with latency.
//!
//! An engine lists one directory after the other, depth-first, and gives away the older half of its queued
//! directories. Time is simulated, so every run has the same result.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use fuc_engine::distribute::{Finished, Stolen, Ticket};

use super::*;

/// Time to list a directory and remove its files.
const LISTING: Duration = Duration::from_micros(200);
/// Time that a message is under way.
const LATENCY: Duration = Duration::from_micros(30);
/// Time to the directories that were stolen.
const OPENING: Duration = Duration::from_micros(100);
/// Time that a worker without work waits before it steals.
const SHORTEST_WAIT: Duration = Duration::from_micros(100);

/// A tree, by the number of subdirectories on each level.
#[derive(Clone, Copy)]
struct Shape(&'static [usize]);

impl Shape {
    fn directories(self) -> u64 {
        let levels = self.0.iter().scan(1, |width, &subdirectories| {
            *width *= subdirectories as u64;
            Some(*width)
        });
        1 + levels.sum::<u64>()
    }
}

/// A directory that is queued.
#[derive(Clone, Copy)]
struct Task {
    level: usize,
    parent: Parent,
}

#[derive(Clone, Copy)]
enum Parent {
    None,
    Node(usize),
    /// The directory belongs to another rank.
    Borrowed(Ticket),
}

struct Node {
    pending: usize,
    parent: Parent,
}

#[derive(Default)]
struct Engine {
    stack: VecDeque<Task>,
    nodes: Vec<Node>,
    /// The node of each ticket that this engine has given away, and how many directories it is for.
    given: HashMap<u64, (usize, usize)>,
    next_ticket: u64,
    has_request: bool,
    is_working: bool,
    has_ended: bool,
    listed: u64,
}

enum Event {
    Arrives { from: Rank, message: Message },
    Lists,
    IsHungry { wait: Duration },
    Ticks,
}

struct Simulation {
    shape: Shape,
    now: Duration,
    peers: Vec<Peer>,
    engines: Vec<Engine>,
    events: BinaryHeap<Reverse<(Duration, u64)>>,
    by_number: HashMap<u64, (Rank, Event)>,
    number: u64,
    /// The directories under each ticket.
    stolen: HashMap<Ticket, Vec<Task>>,
    messages: Vec<u64>,
    /// The time of the next tick of each rank.
    ticks: Vec<Option<Duration>>,
}

/// The cost of a simulated job.
struct Cost {
    elapsed: Duration,
    messages: u64,
    /// The most messages that one rank has sent or received.
    busiest: u64,
}

fn token(ticket: Ticket) -> Stolen {
    let mut bytes = Vec::new();
    ticket.encode(&mut bytes);
    // The operand, the parents on both sides, their state, and the type.
    bytes.extend([0; 4 + 2 * (8 + 4) + 2]);
    // No names above, and one name.
    bytes.extend([0, 0, 0, 0, 1, 0, 0, 0]);
    bytes.extend(b"d\0");
    Stolen::decode(&mut &bytes[..]).expect("the form of stolen directories")
}

impl Simulation {
    fn new(ranks: u32, shape: Shape) -> Self {
        let mut simulation = Self {
            shape,
            now: Duration::ZERO,
            peers: (0..ranks).map(|rank| Peer::new(rank, ranks)).collect(),
            engines: (0..ranks).map(|_| Engine::default()).collect(),
            events: BinaryHeap::new(),
            by_number: HashMap::new(),
            number: 0,
            stolen: HashMap::new(),
            messages: vec![0; ranks as usize],
            ticks: vec![None; ranks as usize],
        };
        simulation.engines[0].stack.push_back(Task {
            level: 0,
            parent: Parent::None,
        });
        for rank in 0..ranks {
            simulation.go_on(rank, Duration::ZERO);
        }
        simulation
    }

    fn at(&mut self, time: Duration, rank: Rank, event: Event) {
        self.events.push(Reverse((time, self.number)));
        self.by_number.insert(self.number, (rank, event));
        self.number += 1;
    }

    /// Lets the engine of a rank list its next directory, or become hungry.
    fn go_on(&mut self, rank: Rank, delay: Duration) {
        let now = self.now;
        let engine = &mut self.engines[rank as usize];
        if engine.is_working || engine.has_ended {
            return;
        }
        if engine.stack.is_empty() {
            let wait = SHORTEST_WAIT;
            self.at(now + wait, rank, Event::IsHungry { wait });
        } else {
            engine.is_working = true;
            self.at(now + delay + LISTING, rank, Event::Lists);
        }
    }

    fn run(mut self) -> Cost {
        while let Some(Reverse((time, number))) = self.events.pop() {
            self.now = time;
            let (rank, event) = self.by_number.remove(&number).expect("an event");
            match event {
                Event::Arrives { from, message } => {
                    self.messages[rank as usize] += 1;
                    self.peers[rank as usize].hear(from, message, time);
                }
                Event::Lists => self.list(rank),
                Event::IsHungry { wait } => {
                    let engine = &self.engines[rank as usize];
                    if !engine.is_working && engine.stack.is_empty() && !engine.has_ended {
                        self.peers[rank as usize].hear_engine(Outgoing::Steal, time);
                        let wait = Duration::from_millis(50).min(wait * 2);
                        self.at(time + wait, rank, Event::IsHungry { wait });
                    }
                }
                Event::Ticks => {
                    if self.ticks[rank as usize] == Some(time) {
                        self.ticks[rank as usize] = None;
                    }
                    self.peers[rank as usize].tick(time);
                }
            }
            self.perform(rank);
        }
        for peer in &self.peers {
            assert_eq!(peer.outcome(), Some(false), "rank {} waits", peer.rank);
        }
        let listed: u64 = self.engines.iter().map(|engine| engine.listed).sum();
        assert_eq!(listed, self.shape.directories());
        assert_eq!(self.peers[0].total().summary.entries, listed);
        Cost {
            elapsed: self.now,
            messages: self.messages.iter().sum::<u64>() / 2,
            busiest: self.messages.iter().copied().max().unwrap_or_default(),
        }
    }

    /// Lists the newest directory of an engine.
    fn list(&mut self, rank: Rank) {
        let subdirectories = self.shape.0;
        let engine = &mut self.engines[rank as usize];
        engine.is_working = false;
        engine.listed += 1;
        let task = engine.stack.pop_back().expect("a queued directory");
        let node = engine.nodes.len();
        let below = subdirectories.get(task.level).copied().unwrap_or_default();
        engine.nodes.push(Node {
            pending: 1 + below,
            parent: task.parent,
        });
        for _ in 0..below {
            engine.stack.push_back(Task {
                level: task.level + 1,
                parent: Parent::Node(node),
            });
        }
        if engine.has_request && engine.stack.len() > 1 {
            engine.has_request = false;
            self.give(rank);
        }
        self.climb(rank, Parent::Node(node), 1);
        self.go_on(rank, Duration::ZERO);
    }

    /// Gives the older half of the queued directories away, in one ticket for each parent.
    fn give(&mut self, rank: Rank) {
        let engine = &mut self.engines[rank as usize];
        let half = engine.stack.len() / 2;
        let mut tokens: Vec<Stolen> = Vec::new();
        let mut last = None;
        for task in engine.stack.drain(..half).collect::<Vec<_>>() {
            let Parent::Node(node) = task.parent else {
                unreachable!("the operand is given");
            };
            match last {
                Some((before, ticket)) if before == node => {
                    self.stolen.get_mut(&ticket).expect("a ticket").push(task);
                    engine.given.get_mut(&ticket.number).expect("it").1 += 1;
                }
                _ => {
                    let ticket = engine.ticket(rank, node);
                    self.stolen.insert(ticket, vec![task]);
                    tokens.push(token(ticket));
                    last = Some((node, ticket));
                }
            }
        }
        self.peers[rank as usize].hear_engine(Outgoing::Give(tokens), self.now);
    }

    /// Drops uses of a parent.
    fn climb(&mut self, rank: Rank, parent: Parent, uses: usize) {
        let engine = &mut self.engines[rank as usize];
        let (mut parent, mut uses) = (parent, uses);
        let given = Given::Finished(Finished {
            kept: false,
            left_alone: false,
            changed: true,
        });
        loop {
            match parent {
                Parent::Node(node) => {
                    engine.nodes[node].pending -= uses;
                    if engine.nodes[node].pending > 0 {
                        return;
                    }
                    (parent, uses) = (engine.nodes[node].parent, 1);
                }
                Parent::Borrowed(ticket) => {
                    let message = Outgoing::GiveBack(ticket, given);
                    self.peers[rank as usize].hear_engine(message, self.now);
                    return;
                }
                Parent::None => {
                    self.peers[rank as usize].hear_engine(Outgoing::End, self.now);
                    return;
                }
            }
        }
    }

    fn perform(&mut self, rank: Rank) {
        loop {
            let actions = self.peers[rank as usize].take_actions();
            if actions.is_empty() {
                break;
            }
            for action in actions {
                match action {
                    Action::Send(to, message) => {
                        self.messages[rank as usize] += 1;
                        let event = Event::Arrives {
                            from: rank,
                            message,
                        };
                        self.at(self.now + LATENCY, to, event);
                    }
                    Action::Tell(message) => self.tell(rank, message),
                    Action::Print(_) | Action::Count(_) | Action::Permit(_) | Action::Cancel => {
                        unreachable!("the engines do not cause it")
                    }
                }
            }
        }
        if let Some(time) = self.peers[rank as usize].next_time() {
            let time = self.now.max(time);
            let scheduled = &mut self.ticks[rank as usize];
            if scheduled.is_none_or(|scheduled| time < scheduled) {
                *scheduled = Some(time);
                self.at(time, rank, Event::Ticks);
            }
        }
    }

    fn tell(&mut self, rank: Rank, message: Incoming) {
        let engine = &mut self.engines[rank as usize];
        match message {
            Incoming::Request => engine.has_request = true,
            Incoming::Stolen(tokens) => {
                for token in tokens {
                    let ticket = token.ticket();
                    let tasks = self.stolen.remove(&ticket).expect("stolen directories");
                    engine.nodes.push(Node {
                        pending: tasks.len(),
                        parent: Parent::Borrowed(ticket),
                    });
                    let parent = Parent::Node(engine.nodes.len() - 1);
                    let tasks = tasks.into_iter().map(|task| Task { parent, ..task });
                    engine.stack.extend(tasks);
                }
                self.go_on(rank, OPENING);
            }
            Incoming::Returned(ticket, given) => {
                let (node, uses) = engine.given.remove(&ticket.number).expect("given away");
                match given {
                    Given::Finished(_) => self.climb(rank, Parent::Node(node), uses),
                    Given::NotReached => {
                        let tasks = self.stolen.remove(&ticket).expect("stolen directories");
                        engine.stack.extend(tasks);
                        self.go_on(rank, Duration::ZERO);
                    }
                }
            }
            Incoming::End => {
                engine.has_ended = true;
                let mut report = Report::default();
                report.summary.entries = engine.listed;
                self.peers[rank as usize].finish(report);
            }
        }
    }
}

impl Engine {
    fn ticket(&mut self, rank: Rank, node: usize) -> Ticket {
        let ticket = Ticket {
            victim: rank,
            number: self.next_ticket,
        };
        self.next_ticket += 1;
        self.given.insert(ticket.number, (node, 1));
        ticket
    }
}

const CHAIN: Shape = Shape(&[1; 500]);
const FLAT: Shape = Shape(&[20_000]);
const BUSHY: Shape = Shape(&[20, 30, 40]);
const NARROW: Shape = Shape(&[2; 14]);

#[test]
fn every_job_ends_on_all_ranks_with_all_work_done_and_all_messages_received() {
    for ranks in [1, 2, 3, 8, 61] {
        for shape in [CHAIN, FLAT, BUSHY, NARROW] {
            Simulation::new(ranks, shape).run();
        }
    }
}

#[test]
fn work_that_can_be_divided_keeps_the_ranks_busy() {
    println!("ranks  directories  efficiency  messages/directory  busiest rank's messages");
    for (ranks, shape, least) in [
        (4, FLAT, 0.9),
        (4, BUSHY, 0.9),
        (4, NARROW, 0.9),
        (64, BUSHY, 0.5),
        (64, FLAT, 0.5),
        (64, NARROW, 0.4),
    ] {
        let cost = Simulation::new(ranks, shape).run();
        let directories = shape.directories();
        let alone = LISTING.mul_f64(directories as f64);
        let efficiency = alone.div_duration_f64(cost.elapsed) / f64::from(ranks);
        let per_directory = cost.messages as f64 / directories as f64;
        println!(
            "{ranks:5} {directories:12} {efficiency:11.2} {per_directory:19.3} {:24}",
            cost.busiest
        );
        assert!(efficiency > least, "{ranks} ranks: {efficiency:.2}");
        assert!(
            per_directory < 0.02 * f64::from(ranks),
            "{per_directory:.2}"
        );
    }
}

/// Rank 0 has all work at first, and yet it must not be the one that all others ask.
#[test]
fn no_rank_is_asked_by_all_others() {
    let cost = Simulation::new(1000, Shape(&[100, 30, 30])).run();
    let per_rank = cost.messages / 1000;
    println!(
        "1000 ranks: {:?}, {per_rank} messages each, {} at most",
        cost.elapsed, cost.busiest
    );
    // Rank 0 also ends all others, and hears from all of them.
    assert!(cost.busiest < 10 * per_rank + 3_000, "{}", cost.busiest);
}
