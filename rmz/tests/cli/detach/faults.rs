//! `--detach` in a process that is killed, or of which a system call fails.

use super::*;
use crate::support::rmz;
use testkit::or_skip;

#[test]
#[ignore = "slow"]
fn what_is_left_after_a_kill_at_any_system_call_is_reaped() {
    let scratch = Scratch::new();
    let run = rmz(&scratch, "--detach d f e/sub");
    let build = || {
        scratch.plant("beside/f=1 d/link->../beside d/a/f= e/sub/f= f=");
    };
    build();
    let calls = or_skip!(run.calls());
    let mut states = std::collections::BTreeSet::new();
    let acts = [
        "mkdirat",
        "openat",
        "renameat",
        "unlinkat",
        "flock",
        "clone",
        "getdents64",
    ];
    for call in calls
        .iter()
        .filter(|call| acts.contains(&call.name.as_str()))
    {
        build();
        let outcome = run.with_fault(call, "signal=KILL").output();
        states.insert(format!("{:?}", outcome.status));
        wait_for_background(scratch.path());
        wait_for_background(&scratch.at("e"));
        rmz(&scratch, "--reap . e").output().assert_success();
        for directory in [scratch.path().to_owned(), scratch.at("e")] {
            assert!(
                containers(&directory).is_empty(),
                "killed at {}",
                call.shown
            );
        }
        assert_eq!(fs::read(scratch.at("beside/f")).unwrap(), b"1");
        fs::remove_dir_all(scratch.at("beside")).unwrap();
        rmz(&scratch, "-f d e f").output().assert_success();
        assert_empty(scratch.path());
    }
    assert!(
        states.contains("Signal(9)"),
        "no run was killed: {states:?}"
    );
}

/// Errors of the calls by which directories are hidden and removed.
const ERRORS: [(&str, &[&str]); 16] = [
    ("socketpair", &["EMFILE"]),
    ("clone", &["EAGAIN"]),
    ("mkdirat", &["ENOSPC"]),
    ("openat", &["EMFILE", "EIO"]),
    ("newfstatat", &["EIO", "ENOENT"]),
    ("fstat", &["EIO"]),
    ("fchmodat", &["EIO"]),
    ("getdents64", &["EIO"]),
    ("flock", &["EBADF", "EWOULDBLOCK"]),
    ("sendmsg", &["EPIPE", "ETOOMANYREFS"]),
    ("recvmsg", &["EINTR", "ENOMEM"]),
    ("renameat", &["EACCES", "EIO"]),
    ("unlinkat", &["EBUSY", "ENOENT"]),
    ("shutdown", &["EIO"]),
    ("sendto", &["EPIPE"]),
    ("recvfrom", &["EINTR", "EIO"]),
];

#[test]
#[ignore = "slow"]
fn a_call_that_fails_leaves_nothing_hidden_without_a_message() {
    let [scratch, logs] = [Scratch::new(), Scratch::new()];
    let log = logs.at("log");
    let run = Run::new(RMZ)
        .words("--detach d f e/sub e/more")
        .env("RMZ_LOG", &log)
        .current_dir(&scratch);
    let places = [scratch.path().to_owned(), scratch.at("e")];
    let operands = ["d", "f", "e/sub", "e/more"].map(|name| scratch.at(name));
    let build = || {
        scratch.plant("beside/f=1 d/link->../beside d/a/f= e/sub/f= e/more/f= f=");
    };
    let wait = || places.iter().for_each(|place| wait_for_background(place));
    build();
    let calls = or_skip!(run.calls());
    wait();
    let (mut faults, mut stays) = (0, 0);
    for call in &calls {
        let errors = ERRORS.iter().find(|(name, _)| *name == call.name);
        for error in errors.into_iter().flat_map(|(_, errors)| errors.iter()) {
            fs::write(&log, "").expect("a log");
            build();
            let outcome = run.with_fault(call, &format!("error={error}")).output();
            wait();
            let log = fs::read_to_string(&log).expect("a log");
            let what = format!("{error} of {}\n{outcome}--- log\n{log}", call.shown);
            let messages = outcome.stderr_text() + &log;
            if operands
                .iter()
                .any(|operand| operand.symlink_metadata().is_ok())
            {
                assert_eq!(outcome.status, Status::Exit(1), "{what}");
                assert!(!outcome.stderr.is_empty(), "{what}");
            }
            for container in places.iter().flat_map(|place| containers(place)) {
                let name = container.file_name().expect("a name");
                let entries = fs::read_dir(&container).expect("a container");
                if entries
                    .map(|entry| entry.unwrap().file_name())
                    .any(|entry| entry != name)
                {
                    let line =
                        format!("'{}' stays; to try again: rmz --reap ", container.display());
                    assert!(messages.contains(&line), "{what}");
                    stays += 1;
                }
            }
            faults += 1;
            rmz(&scratch, "--reap . e").output().assert_success();
            rmz(&scratch, "-f d f e").output().assert_success();
            assert_eq!(fs::read(scratch.at("beside/f")).unwrap(), b"1");
            fs::remove_dir_all(scratch.at("beside")).unwrap();
            assert_empty(scratch.path());
        }
    }
    assert!(
        faults > 60 && stays > 5,
        "{faults} faults, {stays} leftovers"
    );
}
