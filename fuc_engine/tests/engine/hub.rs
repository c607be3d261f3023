//! Engines that share a job. They are threads of this process, and talk through channels.

use std::{
    collections::VecDeque,
    fmt,
    ops::Range,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use crossbeam_channel::{Receiver, Sender};
use fuc_engine::{
    CopyOp, Dest, Error, Event, Observer, RemoveOp, Summary,
    distribute::{Exchange, Incoming, LargeCopy, Reply, Role, Stolen, Ticket},
};

use crate::kit::{Failure, paths};

/// The least size of a file that the hub divides.
pub(crate) const LARGE: usize = 4 << 20;

/// Engines with numbers from 0, of which the first one leads. They run once.
pub(crate) struct Hub<F> {
    seats: Vec<Seat>,
    stolen: AtomicUsize,
    /// How much of that engines other than the leader have given.
    stolen_from_assistants: AtomicUsize,
    not_reached: AtomicUsize,
    /// How often entries were given to their home.
    entrusted: AtomicUsize,
    home: Home,
    /// Copies ranges of large files, if the hub does that.
    divide: Option<fn(&LargeCopy, Range<u64>) -> bool>,
    /// The files for which it was called.
    divided: Mutex<Vec<LargeCopy>>,
    /// Is called whenever entries change hands, before the engine that gets them knows.
    on_theft: F,
}

/// Says which engine is the home of a file.
enum Home {
    ByInode,
    Of(u32),
}

struct Seat {
    inbox: (Sender<Incoming>, Receiver<Incoming>),
    /// The engines that wait for work of this one.
    thieves: Mutex<VecDeque<usize>>,
    /// The engine that this one asks next.
    next_victim: AtomicUsize,
}

/// The way of one engine to the others.
pub(crate) struct Desk<'a, F> {
    pub(crate) hub: &'a Hub<F>,
    pub(crate) engine: usize,
}

impl<F: Fn() + Sync> Hub<F> {
    pub(crate) fn new(engines: usize, on_theft: F) -> Self {
        let seat = |engine| Seat {
            inbox: crossbeam_channel::unbounded(),
            thieves: Mutex::default(),
            next_victim: AtomicUsize::new(engine + 1),
        };
        Self {
            seats: (0..engines).map(seat).collect(),
            stolen: AtomicUsize::new(0),
            stolen_from_assistants: AtomicUsize::new(0),
            not_reached: AtomicUsize::new(0),
            entrusted: AtomicUsize::new(0),
            home: Home::ByInode,
            divide: None,
            divided: Mutex::default(),
            on_theft,
        }
    }

    /// Makes one engine the home of all files.
    pub(crate) fn with_home(mut self, engine: usize) -> Self {
        self.home = Home::Of(engine as u32);
        self
    }

    /// Lets `divide` copy ranges of large files, in place of other machines.
    pub(crate) fn dividing(mut self, divide: fn(&LargeCopy, Range<u64>) -> bool) -> Self {
        self.divide = Some(divide);
        self
    }

    /// Returns the large files that were divided, by their sources.
    pub(crate) fn divided(&self) -> Vec<LargeCopy> {
        let mut divided = self.divided.lock().unwrap().clone();
        divided.sort_by(|a, b| a.source.cmp(&b.source));
        divided
    }

    fn send(&self, engine: usize, message: Incoming) {
        self.seats[engine].inbox.0.send(message).unwrap();
    }

    /// Removes operands with all engines, slowly. Returns their summaries, and all failures by path.
    pub(crate) fn remove<P: AsRef<Path> + Sync>(
        &self,
        removal: &RemoveOp,
        operands: &[P],
    ) -> (Vec<Summary>, Vec<Failure>) {
        let observers = slow(self.seats.len());
        let summaries = self.remove_observed(removal, operands, &observers);
        (summaries, failures(observers))
    }

    /// Copies sources with all engines, slowly. Returns their summaries, and all failures by path.
    pub(crate) fn copy<P: AsRef<Path> + Sync>(
        &self,
        copy: &CopyOp,
        sources: &[P],
        dest: &Dest,
    ) -> (Vec<Summary>, Vec<Failure>) {
        let observers = slow(self.seats.len());
        let summaries = self.copy_observed(copy, sources, dest, &observers);
        (summaries, failures(observers))
    }

    /// Removes operands with all engines, each of which reports to its own observer.
    pub(crate) fn remove_observed<P: AsRef<Path> + Sync, O: Observer>(
        &self,
        removal: &RemoveOp,
        operands: &[P],
        observers: &[O],
    ) -> Vec<Summary> {
        self.run(observers, |_, observer, desk| {
            let removal = removal.clone().shared_by(desk, desk.role());
            removal.run(paths(operands), observer)
        })
    }

    /// Copies sources with all engines, each of which reports to its own observer.
    pub(crate) fn copy_observed<P: AsRef<Path> + Sync, O: Observer>(
        &self,
        copy: &CopyOp,
        sources: &[P],
        dest: &Dest,
        observers: &[O],
    ) -> Vec<Summary> {
        self.run(observers, |_, observer, desk| {
            let copy = copy.clone().shared_by(desk, desk.role());
            copy.run(paths(sources), dest, observer)
        })
    }

    /// Runs all engines, each by a call of `run` with its number, its observer and its way to the others.
    pub(crate) fn run<O: Observer>(
        &self,
        observers: &[O],
        run: impl Fn(usize, &O, &Desk<'_, F>) -> Summary + Sync,
    ) -> Vec<Summary> {
        assert_eq!(observers.len(), self.seats.len());
        let is_new = self.seats.iter().all(|seat| seat.inbox.1.is_empty());
        assert!(is_new, "a hub serves one run");
        let run = |engine: usize| run(engine, &observers[engine], &Desk { hub: self, engine });
        thread::scope(|scope| {
            let run = &run;
            let engines: Vec<_> = (0..self.seats.len())
                .map(|engine| scope.spawn(move || run(engine)))
                .collect();
            let summaries = engines.into_iter().map(|engine| engine.join().unwrap());
            summaries.collect()
        })
    }

    pub(crate) fn stolen(&self) -> usize {
        self.stolen.load(Ordering::Relaxed)
    }

    pub(crate) fn stolen_from_assistants(&self) -> usize {
        self.stolen_from_assistants.load(Ordering::Relaxed)
    }

    pub(crate) fn entrusted(&self) -> usize {
        self.entrusted.load(Ordering::Relaxed)
    }

    pub(crate) fn not_reached(&self) -> usize {
        self.not_reached.load(Ordering::Relaxed)
    }

    /// Asserts that directories were stolen, and that all thieves have reached them.
    #[track_caller]
    pub(crate) fn assert_shared(&self) {
        assert!(self.stolen() > 0, "nothing was stolen");
        assert_eq!(self.not_reached(), 0);
    }

    /// Asserts the same, and that an engine other than the leader has processed entries.
    #[track_caller]
    pub(crate) fn assert_assisted(&self, summaries: &[Summary]) {
        self.assert_shared();
        let assisted = summaries[1..].iter().any(|summary| summary.entries > 0);
        assert!(assisted, "the leader did everything: {summaries:?}");
    }
}

impl<F> Desk<'_, F> {
    pub(crate) fn role(&self) -> Role {
        match self.engine {
            0 => Role::Leader,
            _ => Role::Assistant,
        }
    }
}

impl<F> fmt::Debug for Desk<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Desk {}", self.engine)
    }
}

impl<F: Fn() + Sync> Exchange for Desk<'_, F> {
    fn engine(&self) -> u32 {
        self.engine as u32
    }

    fn receive(&self) -> Incoming {
        self.hub.seats[self.engine].inbox.1.recv().unwrap()
    }

    fn steal(&self) {
        let engines = self.hub.seats.len();
        let next = &self.hub.seats[self.engine].next_victim;
        let victim = next.fetch_add(1, Ordering::Relaxed) % engines;
        if victim == self.engine {
            return;
        }
        let mut thieves = self.hub.seats[victim].thieves.lock().unwrap();
        if !thieves.contains(&self.engine) {
            thieves.push_back(self.engine);
        }
        drop(thieves);
        self.hub.send(victim, Incoming::Request);
    }

    fn give(&self, stolen: Vec<Stolen>) {
        let mut thieves = self.hub.seats[self.engine].thieves.lock().unwrap();
        let thief = thieves.pop_front();
        drop(thieves);
        let Some(thief) = thief else {
            for ticket in stolen.iter().map(Stolen::ticket) {
                let victim = ticket.victim as usize;
                let returned = Incoming::Returned(ticket, Reply::NotReached);
                self.hub.send(victim, returned);
            }
            return;
        };
        let received = as_on_a_wire(&stolen);
        self.hub.stolen.fetch_add(received.len(), Ordering::Relaxed);
        if self.engine > 0 {
            let from_assistants = &self.hub.stolen_from_assistants;
            from_assistants.fetch_add(received.len(), Ordering::Relaxed);
        }
        (self.hub.on_theft)();
        self.hub.send(thief, Incoming::Stolen(received));
    }

    fn home(&self, inode: u64) -> u32 {
        match self.hub.home {
            Home::ByInode => (inode % self.hub.seats.len() as u64) as u32,
            Home::Of(engine) => engine,
        }
    }

    fn entrust(&self, engine: u32, entries: Vec<Stolen>) {
        assert_ne!(
            engine as usize, self.engine,
            "a home entrusts nothing to itself"
        );
        let received = as_on_a_wire(&entries);
        self.hub
            .entrusted
            .fetch_add(received.len(), Ordering::Relaxed);
        (self.hub.on_theft)();
        self.hub.send(engine as usize, Incoming::Stolen(received));
    }

    fn give_back(&self, ticket: Ticket, reply: Reply) {
        let is_missed = reply == Reply::NotReached;
        self.hub
            .not_reached
            .fetch_add(usize::from(is_missed), Ordering::Relaxed);
        let victim = ticket.victim as usize;
        self.hub.send(victim, Incoming::Returned(ticket, reply));
    }

    fn divides(&self, bytes: u64) -> bool {
        self.hub.divide.is_some() && bytes >= LARGE as u64
    }

    fn divide(
        &self,
        file: &LargeCopy,
        range: Range<u64>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> bool {
        self.hub.divided.lock().unwrap().push(file.clone());
        self.hub.divide.unwrap()(file, range) && goes_on()
    }

    fn end(&self) {
        match self.engine {
            0 => (0..self.hub.seats.len()).for_each(|engine| self.hub.send(engine, Incoming::End)),
            _ => self.hub.send(self.engine, Incoming::End),
        }
    }
}

/// Returns what is left of entries after a way over a wire: everything.
fn as_on_a_wire(entries: &[Stolen]) -> Vec<Stolen> {
    let bytes = postcard::to_allocvec(entries).unwrap();
    let received: Vec<_> = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(received, entries);
    received
}

/// Collects failures, and takes so long for each entry that other engines find something to steal.
///
/// The leader takes longer until another engine has processed an entry. Otherwise, on a machine with other work, it
/// might be done before the kernel runs the threads of the other engines.
pub(crate) struct Slow {
    failures: Mutex<Vec<Error>>,
    leads: bool,
    has_help: Arc<AtomicBool>,
    /// The time for each entry until another engine has processed one.
    alone: Duration,
    /// The time for each entry from then on.
    pub(crate) with_help: Duration,
}

impl Observer for Slow {
    fn failed(&self, error: Error) {
        self.failures.failed(error);
        self.linger();
    }

    /// Events have paths, which are long in a deep tree, so they are wanted only to pause at them.
    fn wants_events(&self) -> bool {
        !self.alone.is_zero() || !self.with_help.is_zero()
    }

    fn on_event(&self, _: Event<'_>) {
        self.linger();
    }
}

impl Slow {
    fn linger(&self) {
        if !self.leads {
            self.has_help.store(true, Ordering::Relaxed);
        }
        let time = match self.has_help.load(Ordering::Relaxed) {
            true => self.with_help,
            false => self.alone,
        };
        if !time.is_zero() {
            thread::sleep(time);
        }
    }
}

/// Returns an observer for each engine of a hub. The first one is the leader's.
pub(crate) fn slow(engines: usize) -> Vec<Slow> {
    observers(
        engines,
        Duration::from_millis(5),
        Duration::from_micros(300),
    )
}

/// Returns observers that are slow only until another engine has processed an entry.
pub(crate) fn slow_at_first(engines: usize) -> Vec<Slow> {
    observers(engines, Duration::from_millis(5), Duration::ZERO)
}

/// Returns observers that are never slow.
pub(crate) fn quick(engines: usize) -> Vec<Slow> {
    observers(engines, Duration::ZERO, Duration::ZERO)
}

fn observers(engines: usize, alone: Duration, with_help: Duration) -> Vec<Slow> {
    let has_help = Arc::new(AtomicBool::new(false));
    let observer = |engine| Slow {
        failures: Mutex::default(),
        leads: engine == 0,
        has_help: Arc::clone(&has_help),
        alone,
        with_help,
    };
    (0..engines).map(observer).collect()
}

/// Returns the failures of all engines, by their paths.
pub(crate) fn failures(observers: Vec<Slow>) -> Vec<Failure> {
    let all = observers.into_iter().flat_map(|it| {
        let failures = it.failures.into_inner().unwrap();
        failures.iter().map(Failure::of).collect::<Vec<_>>()
    });
    let mut all: Vec<_> = all.collect();
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all
}

/// Returns failures as text, with `ROOT` in place of `root`.
pub(crate) fn failures_below(root: &Path, failures: &[Failure]) -> Vec<String> {
    let root = root.to_str().unwrap();
    let all = failures
        .iter()
        .map(|it| format!("{it:?}").replace(root, "ROOT"));
    let mut all: Vec<_> = all.collect();
    all.sort();
    all
}

/// Returns how many entries all engines have removed, and how many failures they have reported.
pub(crate) fn totals(summaries: &[Summary]) -> (usize, u64) {
    let entries: u64 = summaries.iter().map(|it| it.entries).sum();
    (
        entries as usize,
        summaries.iter().map(|it| it.failures).sum(),
    )
}
