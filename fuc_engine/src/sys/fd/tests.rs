use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc;
use std::thread;

use testkit::probe::{FuseMount, Habits};

use super::*;
use crate::sys::{DirSlot, Fd, SharedFd, stat_directory};

/// Runs `work` on a thread with a private table. Returns `None` if this machine has none.
fn with_private_table<T: Send>(
    kept: &[BorrowedFd<'_>],
    work: impl FnOnce() -> T + Send,
) -> Option<T> {
    let inherited = InheritedTable::of_this_thread();
    // SAFETY: `work` uses nothing that this thread has opened.
    let permit = unsafe { PrivateTables::new() };
    thread::scope(|scope| {
        let run = || {
            let _table = inherited.replace_table(permit, kept);
            let is_private = TableId::current() != TableId::OF_PROCESS;
            if !is_private {
                let are_impossible = pidfd_open(gettid(), THREAD).is_err() || has_seccomp();
                assert!(are_impossible, "the table is not private");
                println!("SKIP: the kernel is older than 6.9, or a sandbox forbids private tables");
            }
            is_private.then(work)
        };
        scope.spawn(run).join().unwrap()
    })
}

fn open(path: &str) -> Fd {
    OwnedFd::from(File::open(path).unwrap()).into()
}

/// Returns a file with this content, to be read from its start.
fn file_of(content: &str) -> Fd {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content.as_bytes()).unwrap();
    file.rewind().unwrap();
    OwnedFd::from(file).into()
}

fn read(fd: Fd) -> String {
    let mut content = String::new();
    File::from(fd).read_to_string(&mut content).unwrap();
    content
}

/// Returns the numbers in the calling thread's table.
fn numbers() -> BTreeSet<RawFd> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let limit = limit.current.map_or(1024, |limit| limit.min(1024) as RawFd);
    (0..limit).filter(|number| is_open(*number)).collect()
}

fn is_open(number: RawFd) -> bool {
    fs::symlink_metadata(format!("/proc/thread-self/fd/{number}")).is_ok()
}

#[test]
fn a_private_table_has_the_streams_and_what_is_kept() {
    // In a table that the other tests do not change.
    with_private_table(&[], || {
        let (one, other) = (open("/"), open("/proc"));
        let kept = [one.as_fd(), other.as_fd()];
        let _neither = open("/dev");
        let expected = [0, 1, 2, one.as_raw_fd(), other.as_raw_fd()];
        let identities = kept.map(|fd| stat_directory(fd).unwrap().identity);
        let seen = with_private_table(&kept, || {
            let opened = open("/dev").as_raw_fd();
            let identities = kept.map(|fd| stat_directory(fd).unwrap().identity);
            (numbers(), opened, identities)
        });
        let (numbers, opened, seen) = seen.unwrap();
        assert_eq!(numbers, BTreeSet::from(expected));
        assert!(!expected.contains(&opened), "{opened} of {expected:?}");
        assert_eq!(seen, identities);
    });
}

fn taken(shared: SharedFd) -> Result<Fd, Errno> {
    shared.take_over().or_else(|shared| shared.duplicate())
}

#[test]
fn a_thread_reads_what_another_has_opened() {
    let (sender, receiver) = mpsc::channel();
    let of_process = SharedFd::from(file_of("of the process"));
    let received = with_private_table(&[], move || {
        sender.send(SharedFd::from(file_of("private"))).unwrap();
        drop(of_process.duplicate().unwrap());
        read(taken(of_process).unwrap())
    });
    let Some(received) = received else {
        return;
    };
    assert_eq!(received, "of the process");
    // The thread has ended, and its descriptors with it.
    let errno = taken(receiver.recv().unwrap()).unwrap_err();
    // The second one while the kernel is still at the end of the thread.
    assert!(matches!(errno, Errno::SRCH | Errno::BADF), "{errno}");
}

#[test]
fn two_private_tables_exchange_descriptors() {
    let (sender, receiver) = mpsc::channel::<SharedFd>();
    let (done, wait) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            with_private_table(&[], move || {
                let shared = SharedFd::from(file_of("content"));
                let number = shared.fd;
                sender.send(shared).unwrap();
                wait.recv().unwrap();
                assert!(is_open(number), "closed by another thread");
                close_orphans();
                assert!(!is_open(number), "left open");
            })
        });
        scope.spawn(move || {
            with_private_table(&[], move || {
                if let Ok(shared) = receiver.recv() {
                    assert_eq!(read(taken(shared).unwrap()), "content");
                    done.send(()).unwrap();
                }
            })
        });
    });
}

#[test]
fn a_number_means_another_file_in_another_table() {
    let root = stat_directory(open("/").as_fd()).unwrap().identity;
    let slot = DirSlot::empty();
    let (opened, is_opened) = mpsc::channel();
    let (done, wait) = mpsc::channel::<()>();
    let slot = &slot;
    thread::scope(|scope| {
        scope.spawn(move || {
            with_private_table(&[], move || {
                let fd = open("/");
                let number = fd.as_raw_fd();
                drop(slot.install(fd).unwrap());
                opened.send(number).unwrap();
                let _ = wait.recv();
                assert!(slot.close());
            })
        });
        scope.spawn(move || {
            with_private_table(&[], move || {
                let Ok(number) = is_opened.recv() else { return };
                let others: Vec<_> = (0..=number).map(|_| open("/proc")).collect();
                let namesake = others.iter().find(|other| other.as_raw_fd() == number);
                assert!(namesake.is_some(), "the number {number} is free");
                let pin = slot.try_pin_or_import().unwrap().unwrap();
                assert_eq!(stat_directory(pin.as_fd()).unwrap().identity, root);
                assert!(!slot.evict(), "evicted although it is pinned");
                drop(pin);
                drop(done);
            })
        });
    });
}

#[test]
fn what_was_left_to_a_thread_that_ended_closes_nothing() {
    let left = with_private_table(&[], || SharedFd::from(open("/")));
    let Some(left) = left else { return };
    with_private_table(&[], move || {
        let others: Vec<_> = (0..=left.fd).map(|_| open("/proc")).collect();
        drop(left);
        close_orphans();
        for other in others {
            assert!(is_open(other.as_raw_fd()), "{other:?} was closed");
        }
    });
}

/// To close the copy could write the content, and would take an error from the owner.
#[test]
fn a_copy_of_a_file_on_a_server_stays_open() {
    let mount = testkit::or_skip!(FuseMount::with(Habits::default()));
    // In a table that the other tests do not copy.
    let are_open = with_private_table(&[], || {
        let on_server = File::create(mount.path().join("file")).unwrap();
        let local = tempfile::tempfile().unwrap();
        if Storage::of(local.as_fd()) != Storage::Native {
            println!("SKIP: the directory for temporary files may be on a server");
            return None;
        }
        let numbers = [on_server.as_raw_fd(), local.as_raw_fd()];
        with_private_table(&[], || numbers.map(is_open))
    });
    if let Some(are_open) = are_open.flatten() {
        assert_eq!(are_open, [true, false]);
    }
}
