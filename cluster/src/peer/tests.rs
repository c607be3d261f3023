//! Simulated jobs: many ranks, each with an engine of one worker, on a network with latency.
//!
//! The ranks are real [`Peer`]s, and exchange real messages. Only the engines and the network are simulated. So is
//! time, and every run has the same result.
//!
//! `cargo test --lib -- --nocapture ten_million` prints what the removal of ten million entries by 100 ranks costs. An
//! engine gives no names of files away, and lists at most 512 subdirectories ahead, of which a rank gets at most 256.

mod engine;
mod tree;

use std::collections::{BTreeMap, HashMap};
use std::ffi::CStr;
use std::rc::Rc;

use fuc_engine::distribute::{Stolen, Ticket};

use self::engine::{Engine, Taken};
use self::tree::Shape;
use super::*;

/// A time, or the time since the start of the job, in nanoseconds.
type Nanos = u64;

/// Time to list a directory and to remove it.
const LISTING: Nanos = 200_000;
/// Time to remove a file.
const ENTRY: Nanos = 100_000;
/// Time that a message is under way.
const LATENCY: Nanos = 30_000;
/// Time to reach directories that were stolen.
const OPENING: Nanos = 100_000;
/// Time that a worker without work waits before it steals.
const SHORTEST_WAIT: Nanos = 100_000;

enum Event {
    Arrives {
        from: Rank,
        message: Message,
    },
    /// The engine has done a step.
    Works,
    /// The engine may have had no work for a while.
    IsHungry,
    /// All messages of the rank, whose engine has ended, have been received.
    IsFlushed,
    Ticks,
}

struct SimulatedRank {
    peer: Peer,
    engine: Engine,
    /// Messages that were sent or received.
    messages: u64,
    next_tick: Option<Nanos>,
}

struct Simulation {
    shape: Rc<Shape>,
    now: Nanos,
    ranks: Vec<SimulatedRank>,
    /// Each at its time, after those that were scheduled earlier for the same time.
    events: BTreeMap<(Nanos, u64), (Rank, Event)>,
    scheduled: u64,
    /// The directories under each ticket.
    stolen: HashMap<Ticket, Taken>,
}

/// The cost of a simulated job.
struct Cost {
    elapsed: Duration,
    entries: u64,
    /// The entries of the rank that has processed the most.
    most_entries: u64,
    /// The share of the time in which the ranks had no work.
    idle: f64,
    messages: u64,
    /// The most messages that one rank has sent or received.
    busiest: u64,
}

fn token(ticket: Ticket) -> Stolen {
    let (operand, parent, inheritance, is_for_home) = (0_u32, (0_u64, 0_u32), 0_u8, false);
    let above: [&CStr; 0] = [];
    let names = [(4_u8, c"d")].as_slice();
    let form = (
        ticket,
        operand,
        parent,
        parent,
        inheritance,
        above.as_slice(),
        is_for_home,
        names,
    );
    let bytes = postcard::to_allocvec(&form).expect("stolen directories");
    postcard::from_bytes(&bytes).expect("the form of stolen directories")
}

impl Simulation {
    fn new(ranks: u32, shape: Shape) -> Self {
        let shape = Rc::new(shape);
        let rank = |rank| SimulatedRank {
            peer: Peer::new(rank, ranks),
            engine: Engine::new(Rc::clone(&shape)),
            messages: 0,
            next_tick: None,
        };
        let mut simulation = Self {
            ranks: (0..ranks).map(rank).collect(),
            shape,
            now: 0,
            events: BTreeMap::new(),
            scheduled: 0,
            stolen: HashMap::new(),
        };
        simulation.ranks[0].engine.begin_operand();
        for rank in 0..ranks {
            simulation.begin_step(rank);
        }
        simulation
    }

    fn rank(&mut self, rank: Rank) -> &mut SimulatedRank {
        &mut self.ranks[rank as usize]
    }

    fn at(&mut self, time: Nanos, rank: Rank, event: Event) {
        self.events.insert((time, self.scheduled), (rank, event));
        self.scheduled += 1;
    }

    /// Schedules the end of the next step of a rank's engine.
    fn begin_step(&mut self, rank: Rank) {
        let engine = &self.rank(rank).engine;
        match engine.next_step() {
            Some(time) => self.at(self.now + time, rank, Event::Works),
            None if engine.has_ended => {}
            None => self.at(self.now + SHORTEST_WAIT, rank, Event::IsHungry),
        }
    }

    fn run(mut self) -> Cost {
        while let Some(((time, _), (rank, event))) = self.events.pop_first() {
            self.now = time;
            let now = Duration::from_nanos(time);
            let it = self.rank(rank);
            match event {
                Event::Arrives { from, message } => {
                    assert_eq!(it.peer.outcome, None, "a message after the end");
                    it.messages += 1;
                    it.peer.hear(from, message, now);
                }
                Event::Works => self.work(rank),
                // The peer remembers it, so the engine need not repeat it.
                Event::IsHungry if it.engine.next_step().is_none() => {
                    it.peer.hear_engine(Outgoing::Steal, now);
                }
                Event::IsHungry => {}
                Event::IsFlushed => {
                    let mut result = RankResult::default();
                    result.summary.entries = it.engine.entries;
                    it.peer.finish(result);
                }
                Event::Ticks => {
                    it.next_tick.take_if(|next| *next == time);
                    it.peer.tick(now);
                }
            }
            self.perform(rank);
        }
        self.cost()
    }

    fn cost(&self) -> Cost {
        for rank in &self.ranks {
            let number = rank.peer.rank;
            assert_eq!(rank.peer.outcome, Some(false), "rank {number} waits");
        }
        let engines = self.ranks.iter().map(|rank| &rank.engine);
        let entries = engines.clone().map(|engine| engine.entries);
        assert_eq!(entries.clone().sum::<u64>(), self.shape.entries());
        let total = self.ranks[0].peer.total.summary.entries;
        assert_eq!(total, self.shape.entries());
        let messages = self.ranks.iter().map(|rank| rank.messages);
        let busy: u64 = engines.map(|engine| engine.busy).sum();
        let available = self.ranks.len() as f64 * self.now as f64;
        Cost {
            elapsed: Duration::from_nanos(self.now),
            entries: total,
            most_entries: entries.max().unwrap_or_default(),
            idle: 1.0 - busy as f64 / available,
            messages: messages.clone().sum::<u64>() / 2,
            busiest: messages.max().unwrap_or_default(),
        }
    }

    /// Lets the engine of a rank end a step, and give directories away if it was asked.
    fn work(&mut self, rank: Rank) {
        let it = self.rank(rank);
        let mut said = Vec::from_iter(it.engine.step());
        if it.engine.has_request {
            let given = it.engine.give(rank);
            it.engine.has_request = given.is_empty();
            if !given.is_empty() {
                let tokens = given.iter().map(|&(ticket, _)| token(ticket));
                said.push(Outgoing::Give(tokens.collect()));
                self.stolen.extend(given);
            }
        }
        for outgoing in said {
            self.say(rank, outgoing);
        }
        self.begin_step(rank);
    }

    fn say(&mut self, rank: Rank, outgoing: Outgoing) {
        let now = Duration::from_nanos(self.now);
        self.rank(rank).peer.hear_engine(outgoing, now);
    }

    fn perform(&mut self, rank: Rank) {
        loop {
            let actions = self.rank(rank).peer.take_actions();
            if actions.is_empty() {
                break;
            }
            for action in actions {
                match action {
                    Action::Send(to, message) => {
                        self.rank(rank).messages += 1;
                        let from = rank;
                        let event = Event::Arrives { from, message };
                        self.at(self.now + LATENCY, to, event);
                    }
                    Action::Tell(message) => self.tell(rank, message),
                    Action::Print(_)
                    | Action::Count(_)
                    | Action::Permit(_)
                    | Action::Copy(_)
                    | Action::Answer(..)
                    | Action::Cancel => {
                        unreachable!("the engines do not cause it")
                    }
                }
            }
        }
        let now = self.now;
        let SimulatedRank { peer, engine, .. } = self.rank(rank);
        // An engine that has not served its last request gains nothing by one more.
        let seeks_victim = peer.is_hungry && peer.next_victim().is_some();
        let next = peer.next_time();
        if let Some(time) = next.filter(|_| seeks_victim || !engine.has_request) {
            let time = now.max(time.as_nanos() as Nanos);
            let next_tick = &mut self.rank(rank).next_tick;
            if next_tick.is_none_or(|scheduled| time < scheduled) {
                *next_tick = Some(time);
                self.at(time, rank, Event::Ticks);
            }
        }
    }

    fn tell(&mut self, rank: Rank, message: Incoming) {
        match message {
            Incoming::Request => self.rank(rank).engine.has_request = true,
            Incoming::Stolen(tokens) => {
                for token in tokens {
                    self.give_work(rank, token.ticket(), Engine::take);
                }
            }
            Incoming::Returned(ticket, Reply::Finished(_)) => {
                let said = self.rank(rank).engine.take_back(ticket);
                if let Some(outgoing) = said {
                    self.say(rank, outgoing);
                }
            }
            // The engine has served a request for a thief that another gift had reached.
            Incoming::Returned(ticket, Reply::NotReached) => {
                self.give_work(rank, ticket, Engine::keep);
            }
            Incoming::End => {
                self.rank(rank).engine.has_ended = true;
                self.at(self.now + LATENCY, rank, Event::IsFlushed);
            }
        }
    }

    /// Queues the directories under a ticket. An engine without work begins now.
    fn give_work(&mut self, rank: Rank, ticket: Ticket, queue: fn(&mut Engine, Ticket, Taken)) {
        let taken = self.stolen.remove(&ticket).expect("stolen directories");
        let engine = &mut self.rank(rank).engine;
        let was_idle = engine.next_step().is_none();
        queue(engine, ticket, taken);
        if was_idle {
            self.begin_step(rank);
        }
    }
}

/// The numbers of subdirectories in the trees of the smaller tests.
const FLAT: &[u64] = &[20_000];
const BUSHY: &[u64] = &[20, 30, 40];
const NARROW: &[u64] = &[2; 14];

/// The order of victims depends on powers of 2. 61 is not one of them.
#[test]
fn every_job_ends_on_all_ranks_with_all_work_done_and_all_messages_received() {
    for ranks in [1, 4, 61] {
        for levels in [FLAT, BUSHY, NARROW, &[1; 500]] {
            for files in [0, 7] {
                Simulation::new(ranks, Shape::levels(levels, files)).run();
            }
        }
        Simulation::new(ranks, Shape::comb(300, 3, 5)).run();
        Simulation::new(ranks, Shape::uneven(100_000)).run();
    }
}

#[test]
fn work_that_can_be_divided_keeps_the_ranks_busy() {
    for (ranks, levels, most_idle) in [
        (4, FLAT, 0.1),
        (4, BUSHY, 0.1),
        (4, NARROW, 0.1),
        (64, BUSHY, 0.5),
        (64, FLAT, 0.5),
        (64, NARROW, 0.6),
    ] {
        let cost = Simulation::new(ranks, Shape::levels(levels, 0)).run();
        let per_directory = cost.messages as f64 / cost.entries as f64;
        let case = format!("{ranks} ranks, {} directories", cost.entries);
        assert!(cost.idle < most_idle, "{case}: idle for {:.2}", cost.idle);
        assert!(
            per_directory < 0.03 * f64::from(ranks),
            "{case}: {per_directory:.2} messages for each"
        );
    }
}

/// Rank 0 has all work at first, and yet it must not be the one that all others ask.
#[test]
fn no_rank_is_asked_by_all_others() {
    let cost = Simulation::new(1000, Shape::levels(&[100, 30, 30], 0)).run();
    let per_rank = cost.messages / 1000;
    // Rank 0 also ends all others, and hears from all of them.
    assert!(cost.busiest < 10 * per_rank + 3_000, "{}", cost.busiest);
}

#[test]
fn ten_million_entries_on_100_ranks_cost_few_messages() {
    const CHAIN: &[u64] = &[1; 10_000];
    println!("| 100 ranks | idle | messages per 1,000 entries | most of a rank | most entries |");
    println!("|---|---|---|---|---|");
    for (name, shape, most_idle) in [
        (
            "one directory of files",
            Shape::levels(&[], 10_000_000),
            1.0,
        ),
        (
            "directories of 999 files, all in one",
            Shape::levels(&[10_000], 999),
            0.25,
        ),
        (
            "directories of 999 files, in 1,000 directories",
            Shape::levels(&[1_000, 10], 999),
            0.1,
        ),
        ("directories of all sizes", Shape::uneven(9_000_000), 0.1),
        (
            "a chain of 200, with directories of 999 files beside each",
            Shape::comb(200, 50, 999),
            0.6,
        ),
        (
            "a chain of 1,000, with directories of 999 files beside each",
            Shape::comb(1_000, 10, 999),
            1.0,
        ),
        (
            "a chain of directories of 999 files",
            Shape::levels(CHAIN, 999),
            1.0,
        ),
    ] {
        let cost = Simulation::new(100, shape).run();
        let entries = cost.entries as f64;
        let per_thousand = cost.messages as f64 / entries * 1_000.0;
        let per_second = cost.busiest as f64 / cost.elapsed.as_secs_f64();
        let most_entries = cost.most_entries as f64 / entries * 100.0;
        println!(
            "| {name} | {:.1} % | {per_thousand:.2} | {per_second:.0} | {most_entries:.2} |",
            cost.idle * 100.0,
        );
        assert!(cost.idle < most_idle, "{name}: {:.2}", cost.idle);
        assert!(per_thousand < 3.0, "{name}: {per_thousand:.2}");
        assert!(per_second < 200.0, "{name}: {per_second:.0}");
    }
}
