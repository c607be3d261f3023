//! `--detach` and `--reap`: removal in the background, and of what is left over.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use testkit::{
    needs, or_skip,
    probe::{Layers, NOBODY, Overlay, is_root},
    run::{Call, Live, Outcome, Run, Signal, Status},
    skip,
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree},
};

use crate::support::{RM, RMZ, rmz};

mod background;
mod faults;
mod reaping;

/// Returns the paths of the entries of a directory, in the order of their names.
fn entries(dir: impl AsRef<Path>) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("a directory");
    let paths = entries.map(|entry| entry.expect("a readable directory").path());
    let mut paths: Vec<_> = paths.collect();
    paths.sort();
    paths
}

/// Returns the paths of the containers in `dir`.
fn containers(dir: impl AsRef<Path>) -> Vec<PathBuf> {
    let mut paths = entries(dir);
    paths.retain(|path| {
        let name = path.file_name().expect("a name").to_string_lossy();
        name.starts_with(".rmz-") && path.is_dir()
    });
    paths
}

/// Locks an open container, which waits until the process that works in it has ended.
fn wait_for_lock(container: &File) {
    flock(container, FlockOperation::LockExclusive).expect("locks work here");
}

/// Waits until no process in the background works in the containers in `dir`.
fn wait_for_background(dir: impl AsRef<Path>) {
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

fn snapshot(dir: impl AsRef<Path>) -> Snapshot {
    Snapshot::of(dir, Attributes::CONTENT)
}

#[track_caller]
fn assert_empty(dir: impl AsRef<Path>) {
    let left = entries(dir);
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

/// Runs a command twice at once.
fn twice_at_once(run: &Run) -> [Outcome; 2] {
    thread::scope(|scope| {
        let other = scope.spawn(|| run.output());
        [run.output(), other.join().expect("the other run ends")]
    })
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
        # Operands in one directory share a container.
        a/ f= b/
        sh:'"$@" >lines; s=$?; rmz --reap --wait .; grep -c renamed lines; grep -o "[.]rmz-[0-9a-f]*" lines | sort -u | wc -l; rm lines; exit $s' rmz -v --detach a f ./b
        > 2
        > 1
        = -a -f -b
        # A log that takes nothing does not stop the removal.
        d/f=
        RMZ_LOG=log strace sh:'strace -f -qq -o /dev/null -e inject=write:retval=0 -e inject=unlinkat:error=EIO:when=1 "$@"; s=$?; rmz --reap -v .; exit $s' rmz --detach d
        > removed './.rmz-.../d/f'
        > removed directory './.rmz-.../d'
        > removed directory './.rmz-...'
        = -d log= %600
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

#[test]
#[ignore = "slow"]
fn directories_of_a_lower_layer_are_removed_in_the_foreground() {
    let below = |image: &Tree| _ = image.plant("d/f=");
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
fn few_descriptors_are_enough_for_operands_in_many_directories() {
    for limit in [24, 25, 26, 27, 30, 40, 1000] {
        let scratch = Scratch::with("{0..59}/d/a/f=");
        let run = rmz(&scratch, "--detach -v {0..59}/d").nofile_limit(limit);
        let outcome = run.env("RMZ_LOG", "log").output();
        let hidden = outcome.assert_success().stdout_text();
        let hidden = hidden.matches("renamed ").count();
        assert!(hidden > 0, "{limit} descriptors");
        assert_eq!(hidden == 60, limit == 1000, "{limit} descriptors");
        for place in 0..60 {
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
    wait_for_background(&scratch);
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
        wait_for_background(&scratch);
        let left: Vec<_> = left.iter().map(|name| scratch.at(name)).collect();
        assert_eq!(entries(&scratch), left);
        rmz(&scratch, "-f a b c").output().assert_success();
    }
}

#[test]
#[ignore = "slow"]
fn a_closed_pipe_leaves_nothing_hidden() {
    let scratch = Scratch::with("{0..1499}/f=");
    let script = r#""$0" --detach -v * | head -1"#;
    let run = Run::new("sh").args(["-c", script, RMZ]);
    let outcome = run.current_dir(&scratch).output();
    let line = outcome.assert_success().stdout_text();
    assert_eq!(without_digits(&line), "renamed '0' -> '.rmz-*/0'\n");
    wait_for_background(&scratch);
    assert!(containers(&scratch).is_empty());
    let left = entries(&scratch);
    assert!(
        left.iter().all(|path| path.join("f").exists()),
        "all or nothing of each is removed"
    );
}

#[test]
#[ignore = "slow"]
fn nothing_stays_hidden_if_the_command_is_killed_while_it_hides() {
    needs!("strace");
    let scratch = Scratch::new();
    let mut killed = 0;
    for call in ["renameat", "sendmsg", "shutdown", "recvfrom", "unlinkat"] {
        for number in 1..=4 {
            scratch.plant("a/f= b/f= c/f= f=");
            // Without -f, the background process is not traced.
            let inject = format!("inject={call}:signal=KILL:when={number}");
            let run = Run::new("strace").args(["-o", "/dev/null", "-e", &inject, RMZ]);
            let run = run.words("--detach a b f c").current_dir(&scratch);
            killed += usize::from(run.output().status == Status::Signal(9));
            wait_for_background(&scratch);
            // A container that was not handed over is empty.
            for container in containers(&scratch) {
                let entries = entries(container).len();
                assert_eq!((entries, call, number), (1, "sendmsg", 1));
            }
            rmz(&scratch, "--reap .").output().assert_success();
            rmz(&scratch, "-f a b c f").output().assert_success();
            assert_empty(&scratch);
        }
    }
    assert!(killed >= 9, "{killed} runs were killed");
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
        wait_for_background(&scratch);
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
        let outcomes = twice_at_once(&rmz(&scratch, "--detach d"));
        let failed = outcomes
            .iter()
            .filter(|outcome| outcome.status == Status::Exit(1));
        let messages: Vec<_> = failed.map(Outcome::stderr_text).collect();
        assert_eq!(
            messages,
            ["rmz: cannot remove 'd': No such file or directory\n"]
        );
        wait_for_background(&scratch);
        assert_empty(&scratch);
    }
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
    assert_eq!(entries(scratch.at("p")), [scratch.at("p/d")]);
}
