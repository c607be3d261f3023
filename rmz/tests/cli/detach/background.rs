//! `--detach` in the process in the background, which a test holds up or kills, and in its log.
//!
//! A process is held up by a log that the test does not read, because a socket takes only a few messages, and is then
//! stopped. The process ends when it gives up the lock of its container.

use std::{
    io::Read as _,
    iter,
    os::{
        fd::OwnedFd,
        unix::{fs::MetadataExt as _, net::UnixDatagram},
    },
};

use rustix::fs::{Mode, OFlags, fcntl_setfl, open};

use super::*;

/// Directories that cannot be emptied: more than a socket can hold messages about.
const FAILURES: usize = 1_500;

/// Returns rmz in a scratch directory, run by an ordinary user.
fn rmz_of_user(scratch: &Scratch, words: &str) -> Run {
    let run = Run::new(RMZ).current_dir(scratch).words(words);
    match is_root() {
        true => run.uid(NOBODY),
        false => run,
    }
}

/// Gives everything in `dir` to the ordinary user.
fn give_to_user(dir: impl AsRef<Path>) {
    if is_root() {
        let owner = format!("{NOBODY}:{NOBODY}");
        let run = Run::new("chown").args(["-hR", &owner]).arg(dir.as_ref());
        run.output().assert_success();
    }
}

/// Fills the directory `dir` with directories that cannot be emptied.
fn plant_failures(scratch: &Scratch, dir: &str) {
    for number in 0..FAILURES {
        let failing = format!("{dir}/failing{number}");
        scratch.plant(format!("{failing}/f= {failing} %555"));
    }
    give_to_user(scratch);
}

/// Opens a FIFO for reading.
fn open_fifo(path: &Path) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).expect("a FIFO")
}

/// Returns the next message to a log, or `None` if there is none and the log does not wait.
fn receive(log: &UnixDatagram) -> Option<String> {
    let mut message = [0; 4096];
    let bytes = log.recv(&mut message).ok()?;
    Some(String::from_utf8_lossy(&message[..bytes]).into_owned())
}

/// A process in the background that is held up in the directory `held` of a scratch directory.
struct Held {
    scratch: Scratch,
    process: String,
    log: UnixDatagram,
    outcome: Outcome,
    first_message: String,
}

impl Held {
    /// Adds `tree` to a scratch directory, and detaches `held`, after which come `operands`.
    fn new(tree: &str, operands: &str) -> Self {
        let scratch = Scratch::with(tree);
        let log = UnixDatagram::bind(scratch.at("log")).expect("a socket");
        plant_failures(&scratch, "held");
        let run = rmz_of_user(&scratch, "--detach held").words(operands);
        let outcome = run.env("RMZ_LOG", "log").output();
        let first_message = receive(&log).expect("a message");
        let mut parts = first_message.split(['[', ']']);
        let held = Self {
            process: parts.nth(1).expect("the tag names a process").to_owned(),
            scratch,
            log,
            outcome,
            first_message,
        };
        held.signal("STOP");
        held
    }

    /// Sends a signal to the process in the background.
    fn signal(&self, name: &str) {
        let run = Run::new("kill").args(["-s", name, &self.process]);
        run.output().assert_success();
    }

    /// Returns the container of `held`.
    fn container(&self) -> PathBuf {
        let mut containers = containers(&self.scratch);
        containers.retain(|container| container.join("held").exists());
        containers.pop().expect("the container of the process")
    }

    /// Lets the process go on, and reads the log until it has ended. Returns the messages after the first one.
    fn finish(&self) -> Vec<String> {
        let messages = || iter::from_fn(|| receive(&self.log));
        // With room in the log, the process does not give it up because of the time that has passed.
        self.log.set_nonblocking(true).expect("a socket");
        let mut all: Vec<_> = messages().collect();
        self.log.set_nonblocking(false).expect("a socket");
        let container = File::open(self.container()).expect("the container");
        if flock(&container, FlockOperation::NonBlockingLockShared).is_err() {
            // It has not been killed.
            self.signal("CONT");
        }
        thread::scope(|scope| {
            scope.spawn(|| {
                wait_for_lock(&container);
                let end = UnixDatagram::unbound().expect("a socket");
                let sent = end.send_to(b"end", self.scratch.at("log"));
                sent.expect("the log is open");
            });
            all.extend(messages().take_while(|message| message != "end"));
        });
        all
    }

    /// Starts a command that waits for the process.
    fn start_waiting(&self) -> Live {
        let inode = fs::metadata(self.container()).expect("a container").ino();
        let mut reaping = rmz_of_user(&self.scratch, "--reap --wait .").start();
        let inode = format!(":{inode} ");
        let is_wait = |lock: &str| lock.contains("-> FLOCK") && lock.contains(&inode);
        reaping.wait_for_effect(|| {
            let locks = fs::read_to_string("/proc/locks").expect("the locks");
            locks.lines().any(is_wait)
        });
        reaping
    }

    /// Lets the user remove what the process could not, and reaps it.
    fn reap(&self) -> Outcome {
        let run = Run::new("chmod").words("-R u+w");
        let run = run.args(containers(&self.scratch));
        run.output().assert_success();
        let outcome = rmz_of_user(&self.scratch, "--reap .").output();
        outcome.assert_success();
        assert!(containers(&self.scratch).is_empty());
        outcome
    }
}

#[test]
#[ignore = "slow"]
fn the_command_says_what_stays_if_the_background_process_is_killed() {
    let scratch = Scratch::new();
    let run = rmz(&scratch, "--detach d");
    scratch.plant("d/f=");
    let calls = or_skip!(run.calls());
    wait_for_background(&scratch);
    // It has received the container and the name, and waits for the end.
    let mut received = calls.iter().filter(|call| call.name == "recvmsg");
    let third = received.nth(2).expect("the process receives two messages");
    scratch.plant("d/f=");
    let outcome = run.with_fault(third, "signal=KILL").fails();
    let message = outcome.stderr_text();
    let message = message.replace(scratch.path().to_str().expect("UTF-8"), "DIR");
    assert_eq!(
        without_digits(&message),
        "rmz: 'DIR/.rmz-*' stays; to try again: rmz --reap 'DIR'\n"
    );
    rmz(&scratch, "--reap .").output().assert_success();
    assert_empty(&scratch);
}

#[test]
#[ignore = "slow"]
fn reaping_waits_for_the_process_in_the_background_unless_a_signal_ends_the_wait() {
    let held = Held::new("", "");
    let reaping = held.start_waiting();
    reaping.signal(Signal::INT);
    assert_eq!(reaping.finish().status, Status::Signal(2));
    assert!(held.container().exists());
    let reaping = held.start_waiting();
    held.finish();
    let outcome = reaping.finish();
    outcome.assert_status(1);
    let failures = outcome.stderr_text().lines().count();
    assert_eq!(failures, FAILURES, "{outcome}");
    held.reap();
}

#[test]
#[ignore = "slow"]
fn the_command_returns_while_the_background_process_is_held_up() {
    // `output` waits for the end of both streams, as the shell does in `x=$(rmz --detach held)`.
    let held = Held::new("", "");
    assert_eq!(held.outcome.assert_success().stdout_text(), "");
    assert!(!held.scratch.at("held").exists());
    let message = &held.first_message;
    let (tag, text) = message.split_once("]: ").expect("a tag");
    assert!(tag.starts_with("<11>rmz["), "{message}");
    let start = format!("cannot remove '{}/held/", held.container().display());
    assert!(
        text.starts_with(&start) && text.ends_with("/f': Permission denied"),
        "{message}"
    );

    let reaped = rmz_of_user(&held.scratch, "--reap -v .").output();
    assert_eq!(
        without_digits(&reaped.assert_success().stdout_text()),
        "skipped './.rmz-*', which another process removes\n"
    );
    let messages = held.finish();
    assert_eq!(
        messages.len(),
        FAILURES,
        "one of them came first, and one says what stays"
    );
    assert!(
        messages
            .last()
            .unwrap()
            .contains(" stays; to try again: rmz --reap '")
    );
    held.reap();
}

#[test]
#[ignore = "slow"]
fn what_stays_after_a_signal_to_the_background_process_is_reaped_and_logged_if_possible() {
    for signal in ["TERM", "KILL"] {
        let held = Held::new("", "--progress=always");
        assert_eq!(held.outcome.status, Status::Exit(0));
        let text = held.outcome.stderr_text();
        assert!(text.contains("1 entry removed in "), "{text}");
        let container = held.container();
        held.signal(signal);
        if signal == "KILL" {
            wait_for_lock(&File::open(&container).expect("the container"));
        }
        let messages = held.finish();
        assert!(messages.len() < FAILURES, "the process has not stopped");
        let dir = held.scratch.path().display();
        let stays = format!(
            "'{}' stays; to try again: rmz --reap '{dir}'",
            container.display()
        );
        let is_logged = messages.iter().any(|message| message.ends_with(&stays));
        assert_eq!(is_logged, signal == "TERM", "{messages:?}");
        assert!(container.join("held").exists());
        assert_eq!(held.reap().stdout_text(), "");
    }
}

#[test]
#[ignore = "slow"]
fn only_what_was_hidden_is_removed_in_the_background() {
    let tree = "other/y/f= other/z/f= third/y/f= precious/y/f=";
    let held = Held::new(tree, "other/y other/z third/y");
    // The process is held up in the first container. The owner changes the second one, and replaces the third one by a link.
    let [container, linked] = ["other", "third"].map(|place| {
        let mut all = containers(held.scratch.at(place));
        all.pop().expect("a container")
    });
    let moved = held.scratch.at("moved");
    fs::rename(&linked, &moved).unwrap();
    symlink(held.scratch.at("precious"), &linked).unwrap();
    fs::write(container.join("added"), "").unwrap();
    fs::rename(container.join("z"), held.scratch.at("z")).unwrap();
    Tree::at(&container).plant("z/precious=");
    let before = snapshot(held.scratch.at("z"));
    let messages = held.finish();
    let path = container.display();
    let expected = format!("cannot remove '{path}': Directory not empty");
    let is_told = |end: &str| messages.iter().any(|message| message.contains(end));
    assert!(is_told(&expected), "{messages:?}");
    assert!(is_told(&format!("'{path}' stays; ")), "{messages:?}");
    assert!(held.scratch.at("precious/y/f").exists());
    assert_empty(&moved);
    let mark = container.file_name().expect("a name");
    let left = [mark, "added".as_ref(), "z".as_ref()].map(|name| container.join(name));
    assert_eq!(entries(&container), left);
    assert!(container.join("z/precious").exists());
    assert!(before.diff(&snapshot(held.scratch.at("z"))).is_empty());
}

#[test]
#[ignore = "slow"]
fn the_process_in_the_background_keeps_neither_terminal_nor_descriptors() {
    let scratch = Scratch::new();
    let path = scratch.at("inherited");
    let file = File::create(&path).expect("a file");
    // The copy stays open in the commands that this process starts.
    let _inherited = rustix::io::dup(&file).expect("a descriptor");
    let listed = Run::new("ls").words("-l /proc/self/fd").output();
    assert!(listed.stdout_text().contains(path.to_str().expect("UTF-8")));
    let held = Held::new("", "");
    let process = &held.process;
    let read = |file: &str| fs::read_to_string(format!("/proc/{process}/{file}")).expect("/proc");
    let stat = read("stat");
    let (_, fields) = stat.rsplit_once(')').expect("a name in parentheses");
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // See proc(5). The first of these fields is the third one there.
    let [session, terminal, nice, policy] = [6, 7, 19, 41].map(|field| fields[field - 3]);
    let nothing = [&**process, "0", "19", "5"];
    assert_eq!([session, terminal, nice, policy], nothing, "{stat}");
    let ignored = read("status");
    let ignored = ignored
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.expect("a mask").trim(), 16).expect("a number");
    let [hup, usr1] = [1, 10].map(|signal: u64| ignored >> (signal - 1) & 1);
    assert_eq!([hup, usr1], [1, 1], "SIGHUP and SIGUSR1 are ignored");
    let link = |file: &str| fs::read_link(format!("/proc/{process}/{file}")).expect("/proc");
    assert_eq!(link("cwd"), Path::new("/"));
    for stream in ["fd/0", "fd/1", "fd/2"] {
        assert_eq!(link(stream), Path::new("/dev/null"));
    }
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).expect("/proc");
    let mut open = descriptors.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
    assert!(open.all(|file| file != path));
    held.signal("HUP");
    assert_eq!(held.finish().len(), FAILURES);
}

#[test]
#[ignore = "slow"]
fn a_fifo_is_a_log_if_it_has_a_reader() {
    let scratch = Scratch::with("log<fifo>");
    plant_failures(&scratch, "d");
    let before = snapshot(&scratch);
    let run = rmz_of_user(&scratch, "--detach d").env("RMZ_LOG", "log");
    let outcome = run.fails();
    let message = "rmz: cannot open the log 'log': No such device or address\n";
    assert_eq!(outcome.stderr_text(), message);
    assert!(before.diff(&snapshot(&scratch)).is_empty());

    let reader = open_fifo(&scratch.at("log"));
    run.output().assert_success();
    fcntl_setfl(&reader, OFlags::empty()).expect("flags");
    let mut lines = String::new();
    File::from(reader).read_to_string(&mut lines).expect("text");
    assert!(lines.len() > 1 << 16, "the pipe was never full");
    assert_eq!(lines.lines().count(), FAILURES + 1);
    assert!(lines.ends_with(&format!("rmz --reap '{}'\n", scratch.path().display())));
}

#[test]
#[ignore = "slow"]
fn a_log_that_is_never_read_does_not_stop_the_removal() {
    for is_socket in [true, false] {
        let scratch = Scratch::with("d/{0..1499}/f=");
        let path = scratch.at("log");
        let _log: OwnedFd = match is_socket {
            true => UnixDatagram::bind(&path).expect("a socket").into(),
            false => {
                Tree::at(&scratch).fifo("log");
                open_fifo(&path)
            }
        };
        plant_failures(&scratch, "d");
        let run = rmz_of_user(&scratch, "--detach d");
        run.env("RMZ_LOG", "log").output().assert_success();
        wait_for_background(&scratch);
        let container = containers(&scratch).pop().expect("what stays");
        let left = entries(container.join("d")).len();
        assert_eq!(left, FAILURES, "protected directories, {is_socket}");
    }
}
