//! The queue of replies that wait until they are due.
//!
//! A thread sends each reply when its time has come. Nothing else waits: the operation is done already, and other
//! requests are read in the meantime. Any number of replies can be in the queue.

use std::{
    io,
    num::NonZeroU64,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant},
};

/// The way into the queue. Clones share it.
///
/// All replies wait for the same time, so the first one in the queue is due first. After a change of the latency, the
/// replies in the queue still wait for the old one.
#[derive(Clone)]
pub(crate) struct Replies {
    latency_ns: Arc<AtomicU64>,
    queue: Sender<Reply>,
}

struct Reply {
    due: Instant,
    send: Box<dyn FnOnce() + Send>,
}

impl Replies {
    /// Starts the thread that sends the replies. It ends with the last clone.
    pub(crate) fn new(latency: Duration) -> io::Result<Self> {
        let (queue, replies) = mpsc::channel();
        let sender = thread::Builder::new().name("replies".to_owned());
        sender.spawn(move || send_all(&replies))?;
        let new = Self {
            latency_ns: Arc::default(),
            queue,
        };
        new.set_latency(latency);
        Ok(new)
    }

    /// Sets the latency of the following requests.
    pub(crate) fn set_latency(&self, latency: Duration) {
        // Relaxed: the number publishes nothing.
        let latency_ns = latency.as_nanos() as u64;
        self.latency_ns.store(latency_ns, Ordering::Relaxed);
    }

    /// Calls `send` when the latency has passed; without latency, at once.
    pub(super) fn push(&self, send: impl FnOnce() + Send + 'static) {
        let latency = Duration::from_nanos(self.latency_ns.load(Ordering::Relaxed));
        if latency.is_zero() {
            return send();
        }
        let due = Instant::now() + latency;
        let send = Box::new(send);
        // The thread ends only when no `Replies` is left.
        let _ = self.queue.send(Reply { due, send });
    }
}

fn send_all(replies: &Receiver<Reply>) {
    // By default the kernel may wake a thread 50 µs late.
    if let Err(error) = rustix::thread::set_current_timer_slack(NonZeroU64::new(1)) {
        eprintln!("benches: replies may be 50 µs late: {error}");
    }
    for Reply { due, send } in replies {
        let left = due.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            thread::sleep(left);
        }
        send();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_wait_in_the_queue_and_are_sent_in_order() {
        let replies = Replies::new(Duration::from_millis(1)).unwrap();
        let (sender, sent) = mpsc::channel();
        for i in 0..100 {
            let sender = sender.clone();
            replies.push(move || sender.send((i, thread::current().id())).unwrap());
        }
        let this = thread::current().id();
        let sent: Vec<_> = sent.iter().take(100).collect();
        assert!(sent.iter().all(|(_, thread)| *thread != this));
        assert!(sent.iter().map(|(i, _)| *i).eq(0..100));
    }

    #[test]
    fn pushing_does_not_wait() {
        let replies = Replies::new(Duration::from_secs(3600)).unwrap();
        let (sender, sent) = mpsc::channel();
        for i in 0..128 {
            let sender = sender.clone();
            replies.push(move || sender.send(i).unwrap());
        }
        replies.set_latency(Duration::ZERO);
        replies.push(move || sender.send(128).unwrap());
        assert_eq!(sent.try_iter().collect::<Vec<_>>(), [128]);
    }
}
