//! A command under way: a test waits for its output and answers it, so that no test depends on time.

use std::{
    fs::File,
    io::{Read, Write as _},
    mem,
    process::Child,
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::{Input, Outcome, Run, Status, hang};

/// The time between two looks at an effect that is awaited.
const POLL: Duration = Duration::from_micros(200);

/// The character that ends the input of a terminal at the beginning of a line.
const END_OF_INPUT: u8 = 4;

/// One of the streams that a command writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Its stdout.
    Stdout,
    /// Its stderr.
    Stderr,
}

/// A command under way. It is killed, with its whole process group, if it is dropped.
#[derive(Debug)]
pub struct Live {
    run: Run,
    /// Its process group, until it has ended.
    group: Option<Pid>,
    child: Child,
    stdin: Option<File>,
    chunks: Receiver<(Stream, Vec<u8>)>,
    /// The output of stdout and of stderr.
    shown: [Shown; 2],
    deadline: Instant,
}

/// The output so far, and how much of it earlier calls have waited for.
#[derive(Debug, Default)]
struct Shown {
    bytes: Vec<u8>,
    waited_for: usize,
}

impl Live {
    /// Starts a command.
    #[track_caller]
    pub(super) fn of(run: &Run) -> Self {
        let (writing, stdin) = match run.input.open() {
            Ok(ends) => ends,
            Err(e) => panic!("no {:?} for {run}: {e}", run.input),
        };
        let mut child = match run.spawn(&stdin) {
            Ok(child) => child,
            Err(e) => panic!("can't start {run}: {e}"),
        };
        let (sender, chunks) = mpsc::channel();
        let stdout = child.stdout.take().expect("BUG: stdout is piped");
        let stderr = child.stderr.take().expect("BUG: stderr is piped");
        forward(Stream::Stdout, stdout, sender.clone());
        forward(Stream::Stderr, stderr, sender);
        Self {
            run: run.clone(),
            group: Some(Pid::from_child(&child)),
            child,
            stdin: Some(File::from(writing)),
            chunks,
            shown: Default::default(),
            deadline: Instant::now() + run.time_limit,
        }
    }

    /// Writes all of its stdin.
    pub(super) fn feed(&mut self) {
        let bytes = mem::take(&mut self.run.stdin);
        match self.run.input {
            Input::Pipe => {
                let stdin = self.stdin.take();
                // Ignore a broken pipe: a command may read less than it is given.
                thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&bytes)));
            }
            // This does not block, because tests type less than the terminal buffers.
            Input::Terminal => self.write([&bytes[..], &[END_OF_INPUT]].concat()),
        }
    }

    /// Waits until `stream` shows `text`, after the text that earlier calls have waited for.
    ///
    /// # Panics
    /// If the command ends or hangs without showing it.
    #[track_caller]
    pub fn wait_for(&mut self, stream: Stream, text: &str) {
        self.wait_until(stream, |new| {
            let mut windows = new.windows(text.len());
            let at = windows.position(|window| window == text.as_bytes())?;
            Some(at + text.len())
        });
    }

    /// Waits until `find` returns an end in the bytes of `stream` after those that earlier calls have
    /// waited for.
    ///
    /// # Panics
    /// If the command ends or hangs before that.
    #[track_caller]
    pub fn wait_until(&mut self, stream: Stream, find: impl Fn(&[u8]) -> Option<usize>) {
        loop {
            let shown = &mut self.shown[stream as usize];
            if let Some(end) = find(&shown.bytes[shown.waited_for..]) {
                shown.waited_for += end;
                return;
            }
            if !self.receive(Duration::MAX) {
                panic!("{} ended while {stream:?} was awaited: {self:?}", self.run);
            }
        }
    }

    /// Waits until `is_true` returns `true`, and calls it again and again until then.
    ///
    /// # Panics
    /// If the command ends or hangs, and it is still `false`.
    #[track_caller]
    pub fn wait_for_effect(&mut self, is_true: impl Fn() -> bool) {
        while !is_true() {
            if !self.receive(POLL) && !is_true() {
                let (run, output) = (&self.run, self.output());
                panic!("{run} ended without the effect that was awaited\n{output}");
            }
        }
    }

    /// Writes to the stdin of the command.
    ///
    /// # Panics
    /// If the command has closed it.
    #[track_caller]
    pub fn write(&mut self, bytes: impl AsRef<[u8]>) {
        let mut stdin = self.stdin.as_ref().expect("BUG: stdin is open");
        let written = stdin.write_all(bytes.as_ref());
        written.expect("the command reads its stdin");
    }

    /// Sends a signal to the command itself.
    ///
    /// # Panics
    /// If the command has ended.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        let sent = kill_process(Pid::from_child(&self.child), signal);
        sent.expect("the command is running");
    }

    /// Closes the stdin of the command, and waits for its end. A terminal stays open until then:
    /// its end would make reads fail, instead of ending the input.
    ///
    /// # Panics
    /// If it hangs.
    #[track_caller]
    pub fn finish(mut self) -> Outcome {
        let stdin = self.stdin.take();
        let _terminal = stdin.filter(|_| self.run.input == Input::Terminal);
        // Until its streams are closed, a process of the group is alive.
        while self.receive(Duration::MAX) {}
        let exit = loop {
            let waited = self.child.try_wait();
            if let Some(exit) = waited.expect("BUG: our own child can be waited for") {
                self.group = None;
                break exit;
            }
            self.check_time();
            thread::sleep(POLL);
        };
        let [stdout, stderr] = mem::take(&mut self.shown).map(|shown| shown.bytes);
        Outcome {
            status: Status::of(exit),
            stdout,
            stderr,
        }
    }

    /// Kills the command if its time is over.
    #[track_caller]
    fn check_time(&self) {
        if self.deadline <= Instant::now() {
            let processes = hang::describe(self.child.id() as i32);
            let (run, output) = (&self.run, self.output());
            let limit = run.time_limit;
            panic!("{run} hung: killed after {limit:?}\n{processes}{output}");
        }
    }

    /// Returns the output so far.
    fn output(&self) -> String {
        let texts = self.shown.each_ref();
        texts
            .map(|shown| String::from_utf8_lossy(&shown.bytes))
            .concat()
    }

    /// Receives output, and waits for it until `limit` or the time of the command is over. Returns `false` if no process
    /// can write any more.
    #[track_caller]
    fn receive(&mut self, limit: Duration) -> bool {
        self.check_time();
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.chunks.recv_timeout(left.min(limit)) {
            Ok((stream, bytes)) => self.shown[stream as usize].bytes.extend(bytes),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        true
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // Do not wait for the command: one that waits for a disk dies only after that.
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Sends what `pipe` delivers, until it ends.
fn forward(
    stream: Stream,
    mut pipe: impl Read + Send + 'static,
    sender: Sender<(Stream, Vec<u8>)>,
) {
    thread::spawn(move || {
        let mut buffer = [0; 1 << 14];
        while let Ok(len @ 1..) = pipe.read(&mut buffer) {
            // The test may have ended.
            let _ = sender.send((stream, buffer[..len].to_vec()));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "ended without the effect that was awaited\nthe reason")]
    fn an_effect_that_never_comes_is_not_awaited_for_ever() {
        let run = Run::new("sh").args(["-c", "echo the reason >&2"]);
        run.start().wait_for_effect(|| false);
    }

    #[test]
    #[should_panic(expected = "hung: killed after 50ms")]
    fn an_effect_is_not_awaited_longer_than_the_command_may_take() {
        let run = Run::new("sleep").args(["60"]);
        let mut live = run.time_limit(Duration::from_millis(50)).start();
        live.wait_for_effect(|| false);
    }

    #[test]
    #[should_panic(expected = "true ended while Stdout was awaited")]
    fn a_text_that_never_comes_is_not_awaited_for_ever() {
        Run::new("true").start().wait_for(Stream::Stdout, "x");
    }
}
