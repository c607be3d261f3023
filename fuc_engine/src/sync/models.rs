//! Explores models with loom, and proves that they notice a wrong ordering.
//!
//! A model that also passes with a wrong ordering proves nothing. The code under test asks for
//! *guarantees*, such as the `Release` of one call. So [`check`] denies each of them in turn, and then
//! at least one model must fail:
//!
//! ```text
//!   explore all models ----> list of guarantees ----> for each: explore the models without it
//!          |                                                |                    |
//!     one fails:                                       one fails:           none fails:
//!   `check` panics                                        good             `check` panics
//! ```
//!
//! The list comes from the calls that the models make. So a new ordering is on it as soon as a model
//! reaches it.
//!
//! Loom does not try every execution. It limits how often a running thread is interrupted, and it may
//! miss a reordering of two threads if one of them reads the same atomic again in between. So a protocol
//! needs models in which either thread begins.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::LockResult;
use std::sync::atomic::Ordering;
use std::time::Duration;

use loom::sync::{MutexGuard, WaitTimeoutResult};

/// The effect of an atomic or a condition variable on other threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Guarantee {
    Acquire,
    Release,
    /// The `Acquire` in the second ordering of `compare_exchange`.
    AcquireOnFailure,
    Wakeup,
}

/// A guarantee that one call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    file: &'static str,
    line: u32,
    column: u32,
    guarantee: Guarantee,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{} without {:?}",
            self.file, self.line, self.guarantee
        )
    }
}

// Loom runs all threads of a model on the thread of the test.
thread_local! {
    static REQUESTS: RefCell<BTreeSet<Request>> = const { RefCell::new(BTreeSet::new()) };
    static DENIED: Cell<Option<Request>> = const { Cell::new(None) };
}

/// Notes that the caller asks for `guarantee`. Returns `true` unless it is denied.
#[track_caller]
fn is_granted(guarantee: Guarantee) -> bool {
    let caller = Location::caller();
    let request = Request {
        file: caller.file(),
        line: caller.line(),
        column: caller.column(),
        guarantee,
    };
    REQUESTS.with_borrow_mut(|requests| requests.insert(request));
    DENIED.get() != Some(request)
}

/// Returns `asked` without the guarantees that are denied.
#[track_caller]
fn granted(asked: Ordering) -> Ordering {
    let (acquires, releases) = match asked {
        Ordering::Relaxed => (false, false),
        Ordering::Acquire => (is_granted(Guarantee::Acquire), false),
        Ordering::Release => (false, is_granted(Guarantee::Release)),
        Ordering::AcqRel => (
            is_granted(Guarantee::Acquire),
            is_granted(Guarantee::Release),
        ),
        other => unimplemented!("BUG: {other:?} is not modelled"),
    };
    match (acquires, releases) {
        (false, false) => Ordering::Relaxed,
        (true, false) => Ordering::Acquire,
        (false, true) => Ordering::Release,
        (true, true) => Ordering::AcqRel,
    }
}

/// Does the same as [`granted`] for the second ordering of a call that has two.
#[track_caller]
fn granted_on_failure(asked: Ordering) -> Ordering {
    match asked {
        Ordering::Acquire if !is_granted(Guarantee::AcquireOnFailure) => Ordering::Relaxed,
        Ordering::Relaxed | Ordering::Acquire => asked,
        other => unimplemented!("BUG: {other:?} is not modelled"),
    }
}

/// A small program that runs the code under test in several threads and panics if a protocol is broken.
pub(crate) struct Model {
    pub(crate) protocol: &'static str,
    preemptions: usize,
    run: fn(),
}

impl Model {
    /// Makes a model of `protocol`. Its executions interrupt threads that could go on at most
    /// `preemptions` times; a thread that blocks is not interrupted. One more multiplies the executions
    /// by two to twenty.
    pub(crate) fn new(protocol: &'static str, preemptions: usize, run: fn()) -> Self {
        Self {
            protocol,
            preemptions,
            run,
        }
    }

    /// Runs the executions that loom selects, and returns how many there are.
    pub(crate) fn explore(&self) -> usize {
        thread_local!(static EXECUTIONS: Cell<usize> = const { Cell::new(0) });
        EXECUTIONS.set(0);
        let run = self.run;
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(self.preemptions);
        builder.check(move || {
            EXECUTIONS.set(EXECUTIONS.get() + 1);
            run();
        });
        EXECUTIONS.get()
    }

    /// Returns the message of the first execution that fails, if one does.
    pub(crate) fn failure(&self) -> Option<String> {
        let panic = catch_unwind(AssertUnwindSafe(|| self.explore())).err()?;
        let message = panic
            .downcast::<String>()
            .map(|message| *message)
            .or_else(|panic| panic.downcast::<&str>().map(|message| message.to_string()));
        Some(message.unwrap_or_else(|_| "a panic without a message".into()))
    }
}

/// Explores the `models` of the code in the file `code`. Panics if one of them fails, or if none of
/// them fails without one of the guarantees that this code asks for.
pub(crate) fn check(code: &str, models: &[Model]) {
    REQUESTS.take();
    for model in models {
        println!("{}: {} executions", model.protocol, model.explore());
    }
    let mut requests = REQUESTS.take();
    requests.retain(|request| request.file.ends_with(code));
    assert!(!requests.is_empty(), "{code} asks for no guarantee");
    let mut unnoticed = Vec::new();
    for request in requests {
        DENIED.set(Some(request));
        let failure = models
            .iter()
            .find_map(|model| Some((model.protocol, model.failure()?)));
        DENIED.set(None);
        match failure {
            Some((protocol, message)) => {
                let message = message.lines().next().unwrap_or_default();
                println!("{request}: {protocol}: {message}");
            }
            None => unnoticed.push(request.to_string()),
        }
    }
    assert!(unnoticed.is_empty(), "no model fails: {unnoticed:#?}");
}

macro_rules! atomics {
    ($($name:ident $value:ty: $($method:ident)*;)*) => {$(
        #[derive(Debug)]
        pub(crate) struct $name(loom::sync::atomic::$name);

        impl $name {
            #[track_caller]
            pub(crate) fn new(value: $value) -> Self {
                Self(loom::sync::atomic::$name::new(value))
            }

            #[track_caller]
            pub(crate) fn load(&self, order: Ordering) -> $value {
                self.0.load(granted(order))
            }

            $(atomics!(@$method $value);)*
        }
    )*};
    (@store $value:ty) => {
        #[track_caller]
        pub(crate) fn store(&self, value: $value, order: Ordering) {
            self.0.store(value, granted(order));
        }
    };
    (@fetch_add $value:ty) => {
        #[track_caller]
        pub(crate) fn fetch_add(&self, value: $value, order: Ordering) -> $value {
            self.0.fetch_add(value, granted(order))
        }
    };
    (@fetch_sub $value:ty) => {
        #[track_caller]
        pub(crate) fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
            self.0.fetch_sub(value, granted(order))
        }
    };
    (@compare_exchange $value:ty) => {
        #[track_caller]
        pub(crate) fn compare_exchange(
            &self,
            old: $value,
            new: $value,
            order: Ordering,
            order_on_failure: Ordering,
        ) -> Result<$value, $value> {
            let (order, order_on_failure) = (granted(order), granted_on_failure(order_on_failure));
            self.0.compare_exchange(old, new, order, order_on_failure)
        }
    };
}

atomics! {
    AtomicBool bool: store;
    AtomicU32 u32: store fetch_add fetch_sub;
    AtomicU64 u64: store fetch_sub compare_exchange;
}

#[derive(Debug)]
pub(crate) struct Condvar(loom::sync::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(loom::sync::Condvar::new())
    }

    #[track_caller]
    pub(crate) fn notify_one(&self) {
        if is_granted(Guarantee::Wakeup) {
            self.0.notify_one();
        }
    }

    #[track_caller]
    pub(crate) fn notify_all(&self) {
        if is_granted(Guarantee::Wakeup) {
            self.0.notify_all();
        }
    }

    /// Waits without a limit: loom knows no time.
    #[track_caller]
    pub(crate) fn wait_timeout<'g, T>(
        &self,
        guard: MutexGuard<'g, T>,
        limit: Duration,
    ) -> LockResult<(MutexGuard<'g, T>, WaitTimeoutResult)> {
        self.0.wait_timeout(guard, limit)
    }

    #[track_caller]
    pub(crate) fn wait<'g, T>(&self, guard: MutexGuard<'g, T>) -> LockResult<MutexGuard<'g, T>> {
        self.0.wait(guard)
    }
}

mod models {
    use super::*;

    use std::sync::Arc;

    /// Returns the message that one thread publishes to another, if it has arrived.
    fn message(publish: Ordering, receive: Ordering) -> Option<bool> {
        let cells = Arc::new((
            loom::sync::atomic::AtomicBool::new(false),
            AtomicBool::new(false),
        ));
        let sender = Arc::clone(&cells);
        loom::thread::spawn(move || {
            sender.0.store(true, Ordering::Relaxed);
            sender.1.store(true, publish);
        });
        let has_arrived = cells.1.load(receive);
        has_arrived.then(|| cells.0.load(Ordering::Relaxed))
    }

    fn careful() -> Model {
        Model::new("a message arrives", 3, || {
            assert_ne!(message(Ordering::Release, Ordering::Acquire), Some(false));
        })
    }

    fn careless() -> Model {
        Model::new("a message is ignored", 3, || {
            message(Ordering::Release, Ordering::Acquire);
        })
    }

    fn wrong() -> Model {
        Model::new("a message arrives by luck", 3, || {
            assert_ne!(message(Ordering::Relaxed, Ordering::Acquire), Some(false));
        })
    }

    #[test]
    fn models_that_notice_each_wrong_ordering_pass() {
        check("src/sync/models.rs", &[careless(), careful()]);
    }

    #[test]
    #[should_panic(expected = "no model fails")]
    fn models_that_notice_no_wrong_ordering_fail() {
        check("src/sync/models.rs", &[careless()]);
    }

    #[test]
    #[should_panic(expected = "Some(false)")]
    fn a_wrong_ordering_in_the_code_fails() {
        check("src/sync/models.rs", &[wrong()]);
    }
}
