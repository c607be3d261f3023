//! Copies a tree and removes the original, and shows the progress of both: `progress SOURCE DEST`
//!
//! The workers only add to counters. Another thread reads the counters and prints them.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use fuc_engine::{CopyOp, Counts, Dest, Error, Observer, RemoveOp};

/// The progress of one run.
#[derive(Default)]
struct Progress {
    counts: Counts,
    failures: AtomicU64,
}

impl Observer for Progress {
    fn failed(&self, error: Error) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        eprintln!("{error}");
    }

    fn counts(&self) -> Option<&Counts> {
        Some(&self.counts)
    }
}

#[derive(Default)]
struct Move {
    copy: Progress,
    removal: Progress,
}

impl Move {
    fn show(&self) {
        let runs = [&self.copy, &self.removal];
        let [copied, removed] = runs.map(|run| run.counts.entries());
        let failures = runs.map(|run| run.failures.load(Ordering::Relaxed));
        let failed: u64 = failures.iter().sum();
        println!("{copied} copied, {removed} removed, {failed} failed");
    }
}

fn main() -> ExitCode {
    let operands: Vec<_> = std::env::args_os().skip(1).collect();
    let [source, dest] = &operands[..] else {
        eprintln!("usage: progress SOURCE DEST");
        return ExitCode::from(2);
    };
    let dest = Dest::Exactly(dest.into());
    let progress = Move::default();
    let (stop, stopped) = mpsc::channel::<()>();
    let is_complete = thread::scope(|scope| {
        let Move { copy, removal } = &progress;
        let show = || progress.show();
        scope.spawn(move || {
            let interval = Duration::from_millis(200);
            // The loop ends when `stop` is dropped.
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                show();
            }
        });
        let copied = CopyOp::new().run([source.into()], &dest, copy);
        // The original is removed only if the copy is complete.
        let is_complete =
            copied.is_complete() && RemoveOp::new().run([source.into()], removal).is_complete();
        drop(stop);
        is_complete
    });
    progress.show();
    if is_complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
