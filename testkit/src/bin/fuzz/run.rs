//! Runs one command on the tree of a case. Both commands run in the same directory, one after the other, so that
//! their messages and their links may hold its path.

use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::process::ExitStatusExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};
use testkit::{
    run::Period,
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, memory, remove_for_sure},
};

use crate::{case::Case, plan::Step, script::launch};

/// The directories above the working directory. They catch what leaves it by `..`.
pub(crate) const ABOVE: &str = "t/x/y";
pub(crate) const WORKING: &str = "w";
/// The topmost directory that is compared.
const TOP: &str = "t";

/// Time after which a command counts as hung even if it is busy.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// Time between two looks at a command that may be blocked.
const LOOK: Duration = Duration::from_millis(60);
/// Number of looks in a row without a change after which a command counts as blocked.
const LOOKS: u32 = 4;

/// A command of the pair: its program, and the name by which it is called.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub(crate) program: PathBuf,
    pub(crate) name: String,
    /// Arguments before those of the case.
    pub(crate) first: Vec<&'static str>,
}

/// The results of a run.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    pub(crate) status: Status,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) tree: Snapshot,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Exit(i32),
    Signal(i32),
    /// The command waited for something that never happens, and was killed.
    Hung,
}

/// The directory in which all cases run, and the files for their streams.
pub(crate) struct Place {
    scratch: Scratch,
    stdin: File,
    stdout: File,
    stderr: File,
}

impl Place {
    pub(crate) fn new() -> io::Result<Self> {
        let scratch = Scratch::new_in(&memory());
        let file = |name| {
            let mut options = File::options();
            options.read(true).write(true).create(true);
            options.open(scratch.path().join(name))
        };
        Ok(Self {
            stdin: file("stdin")?,
            stdout: file("stdout")?,
            stderr: file("stderr")?,
            scratch,
        })
    }

    /// Copies a program to a directory that every user can search.
    pub(crate) fn lend(&self, program: &Path) -> io::Result<PathBuf> {
        let copies = self.scratch.path().join("programs");
        fs::create_dir_all(&copies)?;
        let number = fs::read_dir(&copies)?.count();
        let copy = copies.join(number.to_string());
        fs::copy(program, &copy)?;
        Ok(copy)
    }

    /// Builds the tree, runs the command in it, records what it did, and removes the tree.
    pub(crate) fn observe(
        &mut self,
        case: &Case,
        steps: &[Step],
        side: &Side,
    ) -> io::Result<Observed> {
        let top = self.scratch.path().join(TOP);
        let working = self.scratch.path().join(ABOVE).join(WORKING);
        // The directories above the tree get their times now. Building may take long on a busy machine.
        let period = Period::begin();
        let tree = Tree::at(&working);
        for step in steps {
            step.act(&tree);
        }
        refill(&mut self.stdout, b"")?;
        refill(&mut self.stderr, b"")?;
        let answers = case.stdin().into_iter().flat_map(|answer| [answer, "\n"]);
        refill(&mut self.stdin, answers.collect::<String>().as_bytes())?;
        let status = self.run(case, side, &working)?;
        let attributes = Attributes::ALL - Attributes::ATIME;
        let snapshot = Snapshot::of(&top, attributes).with_fresh_times(&period.end());
        remove_for_sure(&top)?;
        Ok(Observed {
            status,
            stdout: content(&mut self.stdout)?,
            stderr: content(&mut self.stderr)?,
            tree: snapshot,
        })
    }

    fn run(&mut self, case: &Case, side: &Side, working: &Path) -> io::Result<Status> {
        let mut words = launch(case).into_iter();
        let mut command = Command::new(words.next().expect("BUG: it has a program"));
        command
            .args(words)
            .arg(&side.name)
            .arg(&side.program)
            .args(&side.first)
            .args(case.arguments(working))
            .env_clear()
            .envs(case.environment())
            .current_dir(working)
            .stdin(self.stdin.try_clone()?)
            .stdout(self.stdout.try_clone()?)
            .stderr(self.stderr.try_clone()?);
        let status = finish(command.spawn()?)?;
        match status {
            // The statuses of bash if it cannot start the program.
            Status::Exit(126 | 127) => {
                let errors = content(&mut self.stderr)?;
                Err(io::Error::other(String::from_utf8_lossy(&errors)))
            }
            status => Ok(status),
        }
    }
}

/// Waits until the child ends. Kills it if it is blocked.
fn finish(mut child: Child) -> io::Result<Status> {
    let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    let deadline = Instant::now() + TIME_LIMIT;
    let mut before = None;
    let mut looks = 0;
    while !ends_within(&pidfd, LOOK)? {
        let now = activity(&child);
        looks = if now == before { looks + 1 } else { 0 };
        before = now;
        if looks >= LOOKS && before.is_some() || Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Ok(Status::Hung);
        }
    }
    let status = child.wait()?;
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => Status::Exit(code),
        (None, signal) => Status::Signal(signal.unwrap_or_default()),
    })
}

fn ends_within(pidfd: &OwnedFd, time: Duration) -> io::Result<bool> {
    let mut polled = [PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)];
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: time.subsec_nanos().into(),
    };
    match poll(&mut polled, Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Returns the counts of context switches of all threads, or `None` if a thread is not asleep. Two equal counts mean
/// that no thread ran between them.
fn activity(child: &Child) -> Option<Vec<String>> {
    let threads = fs::read_dir(format!("/proc/{}/task", child.id())).ok()?;
    let mut counts = Vec::new();
    for thread in threads {
        let status = fs::read_to_string(thread.ok()?.path().join("status")).ok()?;
        if !status.contains("\nState:\tS") {
            return None;
        }
        let switches = status.lines().filter(|line| line.contains("ctxt_switches"));
        counts.extend(switches.map(str::to_owned));
    }
    Some(counts)
}

fn refill(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(bytes)?;
    file.rewind()
}

fn content(file: &mut File) -> io::Result<Vec<u8>> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
