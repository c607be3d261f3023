//! The queue of replies that wait until they are due.
//!
//! A thread sends each reply when its time has come. Nothing else waits: the operation is done already, and other
//! requests are read in the meantime. Any number of replies can be in the queue.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    io,
    num::NonZeroU64,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// The replies, and what is known about them. Clones share one queue.
#[derive(Clone)]
pub(super) struct Replies {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<Queue>,
    /// Notified when a reply is due earlier than all others.
    earlier: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: BinaryHeap<Reverse<Reply>>,
    counts: Counts,
}

/// Counts since the latency was set, and the latency itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) latency: Duration,
    /// The number of requests, without those for the control file.
    pub(super) requests: u64,
    /// The most replies that have waited at the same time.
    pub(super) most_pending: usize,
}

struct Reply {
    due: Instant,
    /// The order of replies that are due at the same time.
    number: u64,
    send: Box<dyn FnOnce() + Send>,
}

impl Replies {
    /// Starts the thread that sends the replies. It ends with the process.
    pub(super) fn new(latency: Duration) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            earlier: Condvar::new(),
        });
        let replies = Self { shared };
        replies.set_latency(latency);
        let sender = replies.clone();
        thread::Builder::new()
            .name("replies".to_owned())
            .spawn(move || sender.send_all())?;
        Ok(replies)
    }

    /// Sets the latency of the following requests, sends the replies that wait, and begins to count again.
    pub(super) fn set_latency(&self, latency: Duration) {
        let mut queue = self.queue();
        queue.counts = Counts {
            latency,
            ..Counts::default()
        };
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        for Reverse(reply) in waiting.into_sorted_vec().into_iter().rev() {
            (reply.send)();
        }
    }

    pub(super) fn counts(&self) -> Counts {
        self.queue().counts
    }

    /// Calls `send` when the latency has passed; without latency, at once.
    pub(super) fn push(&self, send: impl FnOnce() + Send + 'static) {
        let mut queue = self.queue();
        queue.counts.requests += 1;
        if queue.counts.latency.is_zero() {
            drop(queue);
            return send();
        }
        let due = Instant::now() + queue.counts.latency;
        let first = queue
            .waiting
            .peek()
            .is_none_or(|Reverse(reply)| due < reply.due);
        let number = queue.counts.requests;
        queue.waiting.push(Reverse(Reply {
            due,
            number,
            send: Box::new(send),
        }));
        queue.counts.most_pending = queue.counts.most_pending.max(queue.waiting.len());
        if first {
            self.shared.earlier.notify_one();
        }
    }

    fn send_all(&self) -> ! {
        // By default the kernel may wake a thread 50 µs late.
        if let Err(error) = rustix::thread::set_current_timer_slack(NonZeroU64::new(1)) {
            eprintln!("benches: replies may be 50 µs late: {error}");
        }
        let mut queue = self.queue();
        loop {
            let now = Instant::now();
            match queue.pop_due(now) {
                Some(reply) => {
                    drop(queue);
                    (reply.send)();
                    queue = self.queue();
                }
                None => queue = self.wait(queue, now),
            }
        }
    }

    /// Waits until the first reply is due, or another one has become the first.
    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>, now: Instant) -> MutexGuard<'a, Queue> {
        let earlier = &self.shared.earlier;
        let waited = match queue.waiting.peek() {
            None => earlier.wait(queue),
            Some(Reverse(first)) => {
                let left = first.due - now;
                let waited = earlier.wait_timeout(queue, left);
                return waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        };
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        let queue = self.shared.queue.lock();
        queue.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Takes the first reply that is due at `now`.
    fn pop_due(&mut self, now: Instant) -> Option<Reply> {
        let Reverse(first) = self.waiting.peek()?;
        if first.due > now {
            return None;
        }
        self.waiting.pop().map(|Reverse(reply)| reply)
    }
}

impl PartialEq for Reply {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Reply {}

impl PartialOrd for Reply {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Reply {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}
