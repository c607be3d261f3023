//! `--detach` in a process that is killed, or of which a system call fails.

use super::*;

/// The operands, and what they are in.
const TREE: &str = "beside/f=1 d/link->../beside d/a/f= e/sub/f= e/more/f= f=";
const OPERANDS: &str = "d f e/sub e/more";

/// Returns the directories with operands.
fn places(scratch: &Scratch) -> [PathBuf; 2] {
    ["", "e"].map(|name| scratch.at(name))
}

/// Reaps what is left over and removes the operands. Asserts that no container and no operand is left, and that nothing
/// else is gone.
#[track_caller]
fn clear(scratch: &Scratch, what: &str) {
    rmz(scratch, "--reap . e").output().assert_success();
    for place in places(scratch) {
        assert!(containers(place).is_empty(), "{what}");
    }
    rmz(scratch, "-f d e f").output().assert_success();
    assert_eq!(fs::read(scratch.at("beside/f")).unwrap(), b"1", "{what}");
    fs::remove_dir_all(scratch.at("beside")).unwrap();
    assert_empty(scratch);
}

#[test]
#[ignore = "slow"]
fn what_is_left_after_a_kill_at_any_system_call_is_reaped() {
    let scratch = Scratch::with(TREE);
    let run = rmz(&scratch, "--detach").words(OPERANDS);
    let mut calls = or_skip!(run.calls());
    let acts = [
        "mkdirat",
        "openat",
        "renameat",
        "unlinkat",
        "flock",
        "clone",
        "getdents64",
    ];
    calls.retain(|call| acts.contains(&&*call.name));
    let mut killed = 0;
    for call in calls {
        scratch.plant(TREE);
        let outcome = run.with_fault(&call, "signal=KILL").output();
        killed += usize::from(outcome.status == Status::Signal(9));
        places(&scratch).into_iter().for_each(wait_for_background);
        clear(&scratch, &format!("killed at {}", call.shown));
    }
    assert!(killed > 0, "no run was killed");
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
    let [scratch, logs] = [Scratch::with(TREE), Scratch::new()];
    let log = logs.at("log");
    let run = rmz(&scratch, "--detach").words(OPERANDS);
    let run = run.env("RMZ_LOG", &log);
    let calls = or_skip!(run.calls());
    places(&scratch).into_iter().for_each(wait_for_background);
    let (mut faults, mut stays) = (0, 0);
    for call in &calls {
        let errors = ERRORS.iter().find(|(name, _)| *name == call.name);
        for error in errors.into_iter().flat_map(|(_, errors)| errors.iter()) {
            fs::write(&log, "").expect("a log");
            scratch.plant(TREE);
            let outcome = run.with_fault(call, &format!("error={error}")).output();
            places(&scratch).into_iter().for_each(wait_for_background);
            let log = fs::read_to_string(&log).expect("a log");
            let what = format!("{error} of {}\n{outcome}--- log\n{log}", call.shown);
            let messages = outcome.stderr_text() + &log;
            let mut operands = OPERANDS.split(' ').map(|operand| scratch.at(operand));
            if operands.any(|operand| operand.exists()) {
                assert_eq!(outcome.status, Status::Exit(1), "{what}");
                assert!(!outcome.stderr.is_empty(), "{what}");
            }
            for container in places(&scratch).into_iter().flat_map(containers) {
                let mark = container.join(container.file_name().expect("a name"));
                if entries(&container).iter().any(|entry| *entry != mark) {
                    let line =
                        format!("'{}' stays; to try again: rmz --reap ", container.display());
                    assert!(messages.contains(&line), "{what}");
                    stays += 1;
                }
            }
            faults += 1;
            clear(&scratch, &what);
        }
    }
    assert!(
        faults > 60 && stays > 5,
        "{faults} faults, {stays} leftovers"
    );
}
