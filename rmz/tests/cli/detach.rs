//! `--detach` and `--reap`: removal in the background, and of what is left over.
//!
//! A process in the background is held up by a log that the test does not read, because a socket takes only a
//! few messages, and is then stopped. The process ends when it gives up the lock of its container.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::unix::{
        fs::{MetadataExt, symlink},
        net::UnixDatagram,
    },
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use rustix::fs::{
    CWD, FlockOperation, Mode, OFlags, RenameFlags, fcntl_setfl, flock, open, renameat_with,
};
use testkit::{
    needs, or_skip,
    probe::{Layers, Overlay, is_root},
    run::{Call, Live, Outcome, Run, Signal, Status},
    skip,
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, plant},
};

use crate::support::{RM, RMZ, rmz};

mod faults;
mod reaping;

/// An ordinary user, as which tests run that depend on permissions.
const USER: u32 = 65534;

/// Directories that cannot be emptied: more than a socket can hold messages about.
const FAILURES: usize = 1_500;

/// Returns rmz in `dir`, run by an ordinary user.
fn rmz_of_user(dir: &Path) -> Run {
    let run = Run::new(RMZ).current_dir(dir);
    match is_root() {
        true => run.uid(USER),
        false => run,
    }
}

/// Gives everything in `dir` to the ordinary user.
fn give_to_user(dir: &Path) {
    if is_root() {
        let owner = format!("{USER}:{USER}");
        let status = Command::new("chown")
            .args(["-hR", &owner])
            .arg(dir)
            .status();
        assert!(status.is_ok_and(|status| status.success()));
    }
}

/// Returns the paths of the containers in `dir`.
fn containers(dir: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(dir)
        .expect("a directory")
        .map(|entry| entry.expect("a readable directory").path());
    let is_container = |path: &PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy();
        name.starts_with(".rmz-") && path.is_dir()
    };
    paths.filter(is_container).collect()
}

/// Locks an open container, which waits until the process that works in it has ended.
fn wait_for_lock(container: &File) {
    flock(container, FlockOperation::LockExclusive).expect("locks work here");
}

/// Waits until no process in the background works in the containers in `dir`.
fn wait_for_background(dir: &Path) {
    for container in containers(dir) {
        match File::open(&container) {
            Ok(open) => wait_for_lock(&open),
            // It is gone, or new and not readable yet. Then no process was told about it.
            Err(error) => assert!(matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
            )),
        }
    }
}

fn snapshot(dir: &Path) -> Snapshot {
    Snapshot::of(dir, Attributes::CONTENT)
}

#[track_caller]
fn assert_empty(dir: &Path) {
    let left: Vec<_> = fs::read_dir(dir).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Returns `text` with `.rmz-*` in place of each container's name.
fn without_digits(text: &str) -> String {
    let mut parts = text.split(".rmz-");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        assert_eq!(part.len() - rest.len(), 32, "{text}");
        result += ".rmz-*";
        result += rest;
    }
    result
}

/// A script that runs a command, and waits until no process in the background works in the tree.
const WAITS: &str = r#""$@"; s=$?
    for c in .rmz-* */.rmz-*; do { { flock 9; } 9<"$c"; } 2>/dev/null; done; exit $s"#;

#[test]
#[ignore = "slow"]
fn directories_are_hidden_and_removed() {
    let table = RM.table().setting(|parity| parity.in_script(WAITS));
    table.rows(
        r#"
        # Directories are hidden, and files are removed.
        a/b/f= c/f= f= link->a empty/
        rmz --detach a f c/ link empty
        = -a -c -f -link -empty
        # Lines name the hidden directories.
        sub/d/f= sub/e/ f=
        rmz -v --detach sub/d/ sub/e f
        > renamed 'sub/d' -> 'sub/.rmz-.../d'
        > renamed 'sub/e' -> 'sub/.rmz-.../e'
        > removed 'f'
        = -sub/d -sub/e -f
        # One question is asked, and none about protected files.
        d/f= %444
        user tty rmz -I --detach d << n
        ! remove 1 argument recursively?
        ? 0
        user tty rmz -I --detach d << y
        ! remove 1 argument recursively?
        ? 0
        = -d
        # A log that cannot be opened is reported before anything is removed.
        d/f= f=
        RMZ_LOG=missing/log rmz --detach d f
        ! cannot open the log 'missing/log': No such file or directory"#,
    );
    RM.rows(
        r#"
        # Nothing is left if the command has waited.
        a/d/f= b/d/f= c/
        rmz --detach --wait a/d b/d c
        = -a/d -b/d -c
        # Everything is removed in the foreground if no process can be started.
        d/a/f= e/f=
        fault:clone,clone3,?fork:error=EAGAIN rmz --detach d e
        = -d -e
        # A terminal shows how to wait, and its end does not end the process.
        a/f= b/f=
        sh:'script -qec "$*" /dev/null; rmz --reap --wait .' rmz --detach a b
        > ...: hidden directories: 2, which are removed in the background; to wait: rmz --reap --wait '$PWD'
        = -a -b
        # What cannot be removed stays in place.
        d/f= d/m/
        root strace sh:'mount -t tmpfs none d/m; strace -f -qq -o /dev/null -e inject=clone,clone3,?fork:error=EAGAIN "$@"; s=$?; umount d/m; exit $s' rmz --detach d
        ! cannot remove 'd/m': Device or resource busy
        = -d/f
        # A link called rm has neither option.
        d/f=
        rm -r (--detach|--reap) d"#,
    );
}

/// Runs a command in a namespace in which `d/mount` is another filesystem, then lists the tree and the log there, and reaps.
const MOUNTED: &str = r#"unshare -m sh -c '
    mount -t tmpfs none d/mount; : >d/mount/f
    "$@"; s=$?
    for c in .rmz-*; do { { flock 9; } 9<"$c"; } 2>/dev/null; done
    [ ! -e d ] || find d -mindepth 1; [ ! -e log ] || cat log; rm -f log; exit $s' sh "$@"
    s=$?; rmz --reap .; exit $s"#;

#[test]
#[ignore = "slow"]
fn mount_points_stay() {
    needs!(root, "unshare");
    let table = RM.table().setting(|parity| parity.in_script(MOUNTED));
    table.rows(
        "
        # One that is an operand is removed in the foreground.
        d/a/f= d/mount/
        rmz --detach d/mount
        ! cannot remove 'd/mount': Device or resource busy
        > d/a
        > d/a/f
        > d/mount
        rmz --detach --preserve-root=all d/mount
        ! skipping 'd/mount', since it's on a different device
        ! and --preserve-root=all is in effect
        > d/a
        > d/a/f
        > d/mount
        > d/mount/f
        # One below an operand is reported to the log.
        RMZ_LOG=log rmz --detach d
        > rmz[...]: cannot remove '$PWD/.rmz-.../d/mount': Device or resource busy
        > rmz[...]: '$PWD/.rmz-...' stays; to try again: rmz --reap '$PWD'
        = -d
        # A command that waits reports it.
        rmz --detach --wait d
        ! cannot remove '$PWD/.rmz-.../d/mount': Device or resource busy
        = -d
        # Another filesystem is never hidden where --reap, to which the log advises, would empty it.
        rmz --detach --one-file-system d
        ! cannot combine --one-file-system with --detach
        ! try
        > d/a
        > d/a/f
        > d/mount
        > d/mount/f",
    );
}

/// Ours runs with `--detach`.
#[test]
#[ignore = "slow"]
fn the_result_is_that_of_a_removal_in_the_foreground() {
    let detached = WAITS.replacen("\"$@\"", r#"rmz=$1; shift; "$rmz" --detach "$@""#, 1);
    let table = RM.table();
    let table = table.setting(|parity| {
        let parity = parity.in_scripts(&detached, r#"exec "$@""#);
        parity.attributes(Attributes::CONTENT)
    });
    table.rows(
        "
        # Operands that rm refuses are refused.
        d/sub/f= f= link->d
        rmz (missing|-f missing d|missing d missing/ f|. d/.. d/. ''|link/ f/|link link/sub|d/sub d|d d/sub|d d|-f|)
        rmz d/sub ./d// d/
        # The mode of d protects its entries, and that of e keeps it where it is.
        (d/a/f= e/f= d %555|d/a/) e/ %555
        user rmz (d|d/a|d/a e)",
    );
}

/// A process in the background that is held up in the directory `held` of a scratch directory.
struct Held {
    scratch: Scratch,
    process: u32,
    log: UnixDatagram,
    outcome: Outcome,
    first_message: String,
}

impl Held {
    /// Builds a tree and detaches `held`, after which come `operands`.
    fn new(build: impl FnOnce(&Tree), operands: &[&str]) -> Self {
        let scratch = Scratch::new();
        let log = UnixDatagram::bind(scratch.at("log")).expect("a socket");
        let tree = Tree::at(&scratch);
        for number in 0..FAILURES {
            tree.plant(format!("held/{number}/f= held/{number} %555"));
        }
        build(&tree);
        give_to_user(scratch.path());
        let outcome = rmz_of_user(scratch.path())
            .words("--detach held")
            .args(operands)
            .env("RMZ_LOG", "log")
            .output();
        let mut message = [0; 4096];
        let bytes = log.recv(&mut message).expect("a message");
        let mut held = Self {
            process: 0,
            first_message: String::from_utf8_lossy(&message[..bytes]).into_owned(),
            scratch,
            log,
            outcome,
        };
        held.process = held.find_process();
        held.signal("STOP");
        held
    }

    /// Sends a signal to the process in the background.
    fn signal(&self, name: &str) {
        let process = self.process.to_string();
        let sent = Command::new("kill").args(["-s", name, &process]).status();
        assert!(sent.is_ok_and(|status| status.success()), "{name}");
    }

    fn dir(&self) -> &Path {
        self.scratch.path()
    }

    /// Returns the container of `held`.
    fn container(&self) -> PathBuf {
        let mut containers = containers(self.dir());
        containers.retain(|container| container.join("held").exists());
        containers.pop().expect("the container of the process")
    }

    /// Returns the process that has the container open.
    fn find_process(&self) -> u32 {
        let container = self.container();
        let is_open_in = |process: &u32| {
            let descriptors = fs::read_dir(format!("/proc/{process}/fd"));
            descriptors.is_ok_and(|mut all| {
                all.any(|fd| {
                    fd.is_ok_and(|fd| fs::read_link(fd.path()).ok() == Some(container.clone()))
                })
            })
        };
        let processes = fs::read_dir("/proc").expect("processes");
        let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let mut found = numbers.filter(is_open_in);
        found.next().expect("a process in the background")
    }

    /// Lets the process go on, and reads the log until it has ended. Returns the messages after the first one.
    fn finish(&self) -> Vec<String> {
        let mut messages = Vec::new();
        let mut message = [0; 4096];
        let mut keep = |bytes: &[u8]| messages.push(String::from_utf8_lossy(bytes).into_owned());
        // With room in the log, the process does not give it up because of the time that has passed.
        self.log.set_nonblocking(true).expect("a socket");
        while let Ok(bytes) = self.log.recv(&mut message) {
            keep(&message[..bytes]);
        }
        self.log.set_nonblocking(false).expect("a socket");
        let container = File::open(self.container()).expect("the container");
        if flock(&container, FlockOperation::NonBlockingLockShared).is_err() {
            // It has not been killed.
            self.signal("CONT");
        }
        let end = UnixDatagram::unbound().expect("a socket");
        let path = self.dir().join("log");
        let waiting = thread::spawn(move || {
            wait_for_lock(&container);
            end.send_to(b"end", path).expect("the log is open");
        });
        loop {
            let bytes = self.log.recv(&mut message).expect("a message");
            if &message[..bytes] == b"end" {
                waiting.join().expect("the thread has ended");
                return messages;
            }
            keep(&message[..bytes]);
        }
    }

    /// Starts a command that waits for the process.
    fn start_waiting(&self) -> Live {
        let inode = fs::metadata(self.container()).expect("a container").ino();
        let run = rmz_of_user(self.dir()).words("--reap --wait .");
        let mut reaping = run.start();
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
        let status = Command::new("chmod")
            .args(["-R", "u+w"])
            .args(containers(self.dir()))
            .status();
        assert!(status.is_ok_and(|status| status.success()));
        rmz_of_user(self.dir()).words("--reap .").output()
    }
}

#[test]
#[ignore = "slow"]
fn directories_of_a_lower_layer_are_removed_in_the_foreground() {
    let below = |image: &Tree| {
        image.plant("d/f=");
    };
    let overlay = or_skip!(Overlay::new(Layers::Together, &["redirect_dir=off"], below));
    let outcome = rmz(overlay.path(), "--detach -v d").output();
    assert_eq!(
        outcome.assert_success().stdout_text(),
        "removed 'd/f'\nremoved directory 'd'\n"
    );
    assert_empty(overlay.path());
}

#[test]
#[ignore = "slow"]
fn operands_in_one_directory_share_a_container() {
    let scratch = Scratch::with("a/ f= b/");
    let outcome = rmz(&scratch, "-v --detach a f ./b").output();
    let lines = outcome.assert_success().stdout_text();
    let names: Vec<_> = lines.match_indices(".rmz-").collect();
    let [one, other] = names.try_into().expect("two directories are hidden");
    let name = |(at, _): (usize, &str)| &lines[at..at + ".rmz-".len() + 32];
    assert_eq!(name(one), name(other), "{lines}");
    wait_for_background(scratch.path());
    assert_empty(scratch.path());
}

/// Makes the directories `0/d`, `1/d` and so on, each with a file.
fn build_in_many_places(scratch: &Scratch, places: usize) -> Vec<String> {
    let tree = Tree::at(scratch);
    for place in 0..places {
        tree.plant(format!("{place}/d/a/f="));
    }
    (0..places).map(|place| format!("{place}/d")).collect()
}

#[test]
#[ignore = "slow"]
fn few_descriptors_are_enough_for_operands_in_many_directories() {
    for limit in [24, 25, 26, 27, 30, 40, 1000] {
        let scratch = Scratch::new();
        let operands = build_in_many_places(&scratch, 60);
        let outcome = Run::new(RMZ)
            .words("--detach -v")
            .args(&operands)
            .current_dir(&scratch)
            .nofile_limit(limit)
            .env("RMZ_LOG", "log")
            .output();
        let hidden = outcome.assert_success().stdout_text();
        let hidden = hidden.matches("renamed ").count();
        assert!(hidden > 0, "{limit} descriptors");
        assert_eq!(
            hidden == operands.len(),
            limit == 1000,
            "{limit} descriptors"
        );
        for place in 0..operands.len() {
            let place = scratch.at(place.to_string());
            wait_for_background(&place);
            assert_empty(&place);
        }
        let log = fs::read_to_string(scratch.at("log")).expect("a log");
        assert_eq!(log, "", "{limit} descriptors");
    }
}

#[test]
#[ignore = "slow"]
fn a_signal_ends_the_command_before_the_next_operand() {
    let scratch = Scratch::new();
    let run = rmz(&scratch, "--detach f a b c");
    let build = || scratch.plant("a/x= b/x= f= c/x=");
    build();
    let calls = or_skip!(run.calls());
    wait_for_background(scratch.path());
    let hides = |call: &&Call| call.name.starts_with("renameat") && call.shown.contains("\"b\"");
    let removes = |call: &&Call| call.name == "unlinkat" && call.shown.contains("\"f\"");
    let hiding = calls.iter().find(hides).expect("b is hidden");
    let removal = calls.iter().find(removes).expect("f is removed");
    for (call, removed, left) in [
        (hiding, "3 entries", &["c"][..]),
        (removal, "1 entry", &["a", "b", "c"]),
    ] {
        build();
        let outcome = run.with_fault(call, "signal=TERM").output();
        assert_eq!(outcome.status, Status::Signal(15), "{outcome}");
        let expected = format!("rmz: interrupted: {removed} removed\n");
        assert_eq!(outcome.stderr_text(), expected);
        wait_for_background(scratch.path());
        let mut names = vec!["f", "a", "b", "c"];
        names.retain(|name| scratch.at(name).exists());
        assert_eq!(names, left);
        assert!(containers(scratch.path()).is_empty());
        rmz(&scratch, "-f a b c").output().assert_success();
    }
}

#[test]
#[ignore = "slow"]
fn a_closed_pipe_leaves_nothing_hidden() {
    let scratch = Scratch::new();
    for number in 0..FAILURES {
        scratch.plant(format!("{number}/f="));
    }
    let script = r#""$0" --detach -v * | head -1"#;
    let outcome = Run::new("sh")
        .args(["-c", script, RMZ])
        .current_dir(&scratch)
        .output();
    let line = outcome.assert_success().stdout_text();
    assert_eq!(without_digits(&line), "renamed '0' -> '.rmz-*/0'\n");
    wait_for_background(scratch.path());
    assert!(containers(scratch.path()).is_empty());
    let left = fs::read_dir(scratch.path()).expect("a directory");
    let mut left = left.map(|entry| entry.expect("an entry").path());
    assert!(
        left.all(|path| path.join("f").exists()),
        "all or nothing of each is removed"
    );
}

#[test]
#[ignore = "slow"]
fn nothing_stays_hidden_if_the_command_is_killed_while_it_hides() {
    needs!("strace");
    let scratch = Scratch::new();
    let names = ["a", "b", "f", "c"];
    let mut killed = 0;
    for call in ["renameat", "sendmsg", "shutdown", "recvfrom", "unlinkat"] {
        for number in 1..=names.len() {
            let tree = Tree::at(&scratch);
            tree.plant("a/f= b/f= c/f= f=");
            // Without -f, the background process is not traced.
            let inject = format!("inject={call}:signal=KILL:when={number}");
            let outcome = Run::new("strace")
                .args(["-o", "/dev/null", "-e", &inject, RMZ, "--detach"])
                .args(names)
                .current_dir(&scratch)
                .output();
            killed += usize::from(outcome.status == Status::Signal(9));
            wait_for_background(scratch.path());
            // A container that was not handed over is empty.
            for container in containers(scratch.path()) {
                let entries = fs::read_dir(&container).expect("a container").count();
                assert_eq!((entries, call, number), (1, "sendmsg", 1));
            }
            rmz(&scratch, "--reap .").output().assert_success();
            rmz(&scratch, "-f a b c f").output().assert_success();
            assert_empty(scratch.path());
        }
    }
    assert!(killed >= 9, "{killed} runs were killed");
}

#[test]
#[ignore = "slow"]
fn the_command_says_what_stays_if_the_background_process_is_killed() {
    let scratch = Scratch::new();
    let run = rmz(&scratch, "--detach d");
    scratch.plant("d/f=");
    let calls = or_skip!(run.calls());
    wait_for_background(scratch.path());
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
    assert_empty(scratch.path());
}

#[test]
#[ignore = "slow"]
fn reaping_waits_for_the_process_in_the_background_unless_a_signal_ends_the_wait() {
    let held = Held::new(|_| {}, &[]);
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
    held.reap().assert_success();
}

#[test]
#[ignore = "slow"]
fn the_command_returns_while_the_background_process_is_held_up() {
    // `output` waits for the end of both streams, as the shell does in `x=$(rmz --detach held)`.
    let held = Held::new(|_| {}, &[]);
    assert_eq!(held.outcome.assert_success().stdout_text(), "");
    assert!(!held.dir().join("held").exists());
    let message = &held.first_message;
    let (tag, text) = message.split_once("]: ").expect("a tag");
    assert!(tag.starts_with("<11>rmz["), "{message}");
    let start = format!("cannot remove '{}/held/", held.container().display());
    assert!(
        text.starts_with(&start) && text.ends_with("/f': Permission denied"),
        "{message}"
    );

    let reaped = rmz_of_user(held.dir()).words("--reap -v .").output();
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
    held.reap().assert_success();
    assert!(containers(held.dir()).is_empty());
}

#[test]
#[ignore = "slow"]
fn what_stays_after_a_signal_to_the_background_process_is_reaped_and_logged_if_possible() {
    for signal in ["TERM", "KILL"] {
        let held = Held::new(|_| {}, &["--progress=always"]);
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
        let dir = held.dir().display();
        let stays = format!(
            "'{}' stays; to try again: rmz --reap '{dir}'",
            container.display()
        );
        let is_logged = messages.iter().any(|message| message.ends_with(&stays));
        assert_eq!(is_logged, signal == "TERM", "{messages:?}");
        assert!(container.join("held").exists());
        assert_eq!(held.reap().assert_success().stdout_text(), "");
        assert!(containers(held.dir()).is_empty());
    }
}

#[test]
#[ignore = "slow"]
fn only_what_was_hidden_is_removed_in_the_background() {
    let build = plant("other/y/f= other/z/f= third/y/f= precious/y/f=");
    let held = Held::new(build, &["other/y", "other/z", "third/y"]);
    // The process is held up in the first container. The owner changes the second one, and replaces the third one by a link.
    let [container, linked] = ["other", "third"].map(|place| {
        let mut all = containers(&held.dir().join(place));
        all.pop().expect("a container")
    });
    let moved = held.dir().join("moved");
    fs::rename(&linked, &moved).unwrap();
    symlink(held.dir().join("precious"), &linked).unwrap();
    fs::write(container.join("added"), "").unwrap();
    fs::rename(container.join("z"), held.dir().join("z")).unwrap();
    Tree::at(&container).plant("z/precious=");
    let before = snapshot(&held.dir().join("z"));
    let messages = held.finish();
    let path = container.display();
    let expected = format!("cannot remove '{path}': Directory not empty");
    let is_told = |end: &str| messages.iter().any(|message| message.contains(end));
    assert!(is_told(&expected), "{messages:?}");
    assert!(is_told(&format!("'{path}' stays; ")), "{messages:?}");
    assert!(held.dir().join("precious/y/f").exists());
    assert_empty(&moved);
    let mark = container.file_name().expect("a name");
    let mut left: Vec<_> = fs::read_dir(&container)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, [mark, "added".as_ref(), "z".as_ref()]);
    assert!(container.join("z/precious").exists());
    assert!(before.diff(&snapshot(&held.dir().join("z"))).is_empty());
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
    let held = Held::new(|_| {}, &[]);
    let process = held.process;
    let read = |file: &str| fs::read_to_string(format!("/proc/{process}/{file}")).expect("/proc");
    let stat = read("stat");
    let (_, fields) = stat.rsplit_once(')').expect("a name in parentheses");
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // See proc(5). The first of these fields is the third one there.
    let [session, terminal, nice, policy] = [6, 7, 19, 41].map(|field| fields[field - 3]);
    let nothing = [&process.to_string(), "0", "19", "5"];
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
fn an_operand_that_is_replaced_by_a_link_leads_nowhere_else() {
    let scratch = Scratch::with("precious/f=");
    let [dir, other] = ["d", "other"].map(|name| scratch.at(name));
    let (mut links, mut dirs) = (0, 0);
    // A link may be replaced by the directory before it is unlinked. Then rmz fails, as rm does.
    for _ in 0..300 {
        scratch.plant("d/ other->precious");
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    // This fails once one of them is gone.
                    let _ = renameat_with(CWD, &dir, CWD, &other, RenameFlags::EXCHANGE);
                }
            });
            rmz(&scratch, "--detach d").output();
            ended.store(true, Ordering::Relaxed);
        });
        wait_for_background(scratch.path());
        assert!(scratch.at("precious/f").exists());
        if !dir.is_symlink() && !dir.exists() {
            match other.is_symlink() {
                true => dirs += 1,
                false => links += 1,
            }
        }
        for path in [&dir, &other] {
            let _ = fs::remove_file(path);
            let _ = fs::remove_dir(path);
        }
        if links >= 2 && dirs >= 2 {
            return;
        }
    }
    panic!("no race: {links} links and {dirs} directories were removed");
}

#[test]
#[ignore = "slow"]
fn one_of_two_runs_detaches_an_operand() {
    let scratch = Scratch::new();
    for _ in 0..20 {
        scratch.plant("d/a/f=");
        let run = || rmz(&scratch, "--detach d").output();
        let outcomes = thread::scope(|scope| {
            let other = scope.spawn(run);
            [run(), other.join().expect("the other run ends")]
        });
        let failed = outcomes
            .iter()
            .filter(|outcome| outcome.status == Status::Exit(1));
        let messages: Vec<_> = failed.map(Outcome::stderr_text).collect();
        assert_eq!(
            messages,
            ["rmz: cannot remove 'd': No such file or directory\n"]
        );
        wait_for_background(scratch.path());
        assert_empty(scratch.path());
    }
}

#[test]
#[ignore = "slow"]
fn a_fifo_is_a_log_if_it_has_a_reader() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.fifo("log");
    for number in 0..FAILURES {
        tree.plant(format!("d/{number}/f= d/{number} %555"));
    }
    give_to_user(scratch.path());
    let before = snapshot(scratch.path());
    let run = rmz_of_user(scratch.path())
        .words("--detach d")
        .env("RMZ_LOG", "log");
    let outcome = run.fails();
    let message = "rmz: cannot open the log 'log': No such device or address\n";
    assert_eq!(outcome.stderr_text(), message);
    assert!(before.diff(&snapshot(scratch.path())).is_empty());

    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let reader = open(scratch.at("log"), flags, Mode::empty()).expect("a FIFO");
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
fn nothing_is_hidden_in_a_directory_to_which_names_can_only_be_added() {
    needs!(root, "chattr");
    let scratch = Scratch::with("p/d/f=");
    let chattr = |flag: &str| {
        let run = Run::new("chattr").args([flag, "p"]);
        run.current_dir(&scratch).output()
    };
    if chattr("+a").status != Status::Exit(0) {
        skip!("the filesystem has no append-only directories");
    }
    let outcome = rmz(&scratch, "--detach p/d").output();
    chattr("-a").assert_success();
    outcome.assert_status(1);
    let message = "rmz: cannot remove 'p/d': Operation not permitted\n";
    assert_eq!(outcome.stderr_text(), message);
    let left = fs::read_dir(scratch.at("p")).expect("a directory");
    assert_eq!(left.count(), 1, "only d is there");
}

/// Makes 1,500 directories whose files stay, and as many that can be removed.
fn half_protected(scratch: &Scratch) {
    let tree = Tree::at(scratch);
    for number in 0..FAILURES {
        tree.plant(format!(
            "d/protected{number}/f= d/protected{number} %555 d/{number}/f="
        ));
    }
    give_to_user(scratch.path());
}

#[test]
#[ignore = "slow"]
fn a_log_that_is_never_read_does_not_stop_the_removal() {
    for is_socket in [true, false] {
        let scratch = Scratch::new();
        half_protected(&scratch);
        let path = scratch.at("log");
        let mut socket = None;
        let mut fifo = None;
        if is_socket {
            socket = Some(UnixDatagram::bind(&path).expect("a socket"));
        } else {
            Tree::at(&scratch).fifo("log");
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            fifo = Some(open(&path, flags, Mode::empty()).expect("a FIFO"));
        }
        give_to_user(&path);
        let run = rmz_of_user(scratch.path()).words("--detach d");
        run.env("RMZ_LOG", "log").output().assert_success();
        wait_for_background(scratch.path());
        let container = containers(scratch.path()).pop().expect("what stays");
        let left = fs::read_dir(container.join("d")).expect("a directory");
        assert_eq!(left.count(), FAILURES, "the protected directories");
        drop((socket, fifo));
    }
}

#[test]
#[ignore = "slow"]
fn a_log_that_takes_nothing_does_not_stop_the_removal() {
    let scratch = Scratch::new();
    or_skip!(Run::new(RMZ).arg("-f").calls());
    scratch.plant("d/f=");
    let faults = ["inject=write:retval=0", "inject=unlinkat:error=EIO:when=1"];
    let [write, unlink] = faults;
    Run::new("strace")
        .args(["-f", "-o", "/dev/null", "-e", write, "-e", unlink, RMZ])
        .words("--detach d")
        .env("RMZ_LOG", "log")
        .current_dir(&scratch)
        .output()
        .assert_success();
    wait_for_background(scratch.path());
    assert_eq!(fs::read(scratch.at("log")).expect("a log"), b"");
    assert_eq!(containers(scratch.path()).len(), 1);
}
