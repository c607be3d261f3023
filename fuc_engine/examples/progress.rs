//! Copies a tree and removes the original, while another thread shows how far it is: `progress SOURCE DEST`
//!
//! An observer is called by all workers at once, so it should do next to nothing. This one counts; whoever
//! wants to know looks at the counters when it suits them.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use fuc_engine::{
    CopyOp, CopyOptions, Dest, Error, Event, Observer, RemoveOp, RemoveOptions, Summary,
};

#[derive(Default)]
struct Progress {
    copied: AtomicU64,
    removed: AtomicU64,
    failed: AtomicU64,
}

impl Progress {
    fn show(&self) {
        let [copied, removed, failed] =
            [&self.copied, &self.removed, &self.failed].map(|count| count.load(Ordering::Relaxed));
        println!("{copied} copied, {removed} removed, {failed} failed");
    }
}

impl Observer for Progress {
    fn failed(&self, error: Error) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        eprintln!("{error}");
    }

    fn wants_events(&self) -> bool {
        true
    }

    fn on_event(&self, done: Event<'_>) {
        let count = match done {
            Event::Copied { .. } => &self.copied,
            Event::Removed(_) | Event::RemovedDirectory(_) => &self.removed,
            // More may be told of in the future.
            _ => return,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

fn main() -> ExitCode {
    let operands: Vec<_> = std::env::args_os().skip(1).collect();
    let [source, dest] = &operands[..] else {
        eprintln!("usage: progress SOURCE DEST");
        return ExitCode::from(2);
    };
    let progress = Progress::default();
    let (stop, stopped) = mpsc::channel::<()>();
    let complete = thread::scope(|scope| {
        let progress = &progress;
        scope.spawn(move || {
            let tick = Duration::from_millis(200);
            // Ends when `stop` is dropped.
            while stopped.recv_timeout(tick) == Err(mpsc::RecvTimeoutError::Timeout) {
                progress.show();
            }
        });
        let dest = Dest::Exactly(dest.into());
        let copied = CopyOp::new(CopyOptions::default()).run([source], &dest, progress);
        // Only a whole copy replaces the original.
        let complete = copied.is_complete() && remove(source.as_ref(), progress).is_complete();
        drop(stop);
        complete
    });
    progress.show();
    if complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn remove(path: &std::path::Path, observer: &Progress) -> Summary {
    RemoveOp::new(RemoveOptions::default()).run([path], observer)
}
