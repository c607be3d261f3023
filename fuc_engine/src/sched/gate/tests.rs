//! Tests of the gate by one thread, whose calls stand for those of several workers.

mod simulation;

use super::*;
use crate::sched::others::Inlet;

/// A worker that is not the main one.
const OTHER: usize = 1;

fn gate() -> Gate<u32> {
    Gate::new()
}

/// Returns a gate with so many running workers, which are as many as there should be.
fn gate_of(workers: usize) -> Gate<u32> {
    let gate = gate();
    gate.set_target(workers, MAIN);
    for number in 1..workers {
        assert_eq!(give(&gate, 0), Some(Recipient::New(number)));
        assert_eq!(gate.await_first_tasks(number, None), Some([0].into()));
    }
    gate
}

fn give(gate: &Gate<u32>, task: u32) -> Option<Recipient> {
    gate.hand_over(|_| [task].into())
}

impl<T> Gate<T> {
    /// Counts a worker as idle, without waiting.
    pub(super) fn go_idle(&self) {
        let mut state = self.lock();
        state.idle += 1;
        self.rebalance(&state);
    }

    /// Returns tasks for a worker that is counted as idle, without waiting.
    pub(super) fn poll(&self) -> Option<VecDeque<T>> {
        let mut state = self.lock();
        let tasks = state.take_for_idle();
        state.idle -= usize::from(tasks.is_some());
        self.rebalance(&state);
        tasks
    }
}

#[track_caller]
fn assert_next(gate: &Gate<u32>, worker: usize, task: u32) {
    assert_eq!(gate.await_tasks(worker, None), Some([task].into()));
}

#[track_caller]
fn assert_ended(gate: &Gate<u32>) {
    assert_eq!(gate.await_tasks(MAIN, None), None);
}

#[test]
fn no_task_is_given_before_the_governor_wants_a_second_worker() {
    let gate = gate();
    assert_eq!(gate.hand_over(|_| panic!("one worker is enough")), None);
    gate.set_target(2, MAIN);
    assert!(gate.is_starving());
    assert_eq!(give(&gate, 7), Some(Recipient::New(OTHER)));
    assert!(!gate.is_starving());
    assert_eq!(gate.hand_over(|_| panic!("two workers are enough")), None);
    assert_eq!(gate.await_first_tasks(OTHER, None), Some([7].into()));
}

#[test]
fn an_idle_worker_gets_tasks_before_a_thread_is_started() {
    let gate = gate_of(2);
    gate.set_target(2, MAIN);
    gate.go_idle();
    assert_eq!(give(&gate, 7), Some(Recipient::Idle));
    assert_eq!(gate.await_first_tasks(OTHER, None), Some([7].into()));
}

#[test]
fn a_run_ends_when_all_workers_are_idle() {
    let gate = gate_of(2);
    gate.go_idle();
    assert_ended(&gate);
    assert!(!gate.is_over());
}

#[test]
fn workers_without_tasks_take_spares_and_stay_active() {
    let gate = gate();
    gate.set_target(2, MAIN);
    gate.leave_spare(|| panic!("no other worker runs"));
    let gate = gate_of(2);
    for task in 1..20 {
        gate.leave_spare(|| Some(task));
    }
    assert_eq!(gate.lock().spares, [1, 2], "one for each worker");
    assert_next(&gate, OTHER, 1);
    assert_next(&gate, MAIN, 2);
    assert!(gate.has_company() && !gate.is_starving());
    gate.go_idle();
    assert!(gate.is_starving());
    assert_ended(&gate);
}

#[test]
fn a_spare_waits_for_a_running_worker_even_if_another_one_is_idle() {
    let gate = gate_of(3);
    gate.go_idle();
    gate.set_target(2, MAIN);
    gate.leave_spare(|| Some(1));
    gate.leave_spare(|| Some(2));
    assert_eq!(gate.hand_over_spare(), None, "two workers are enough");
    assert_next(&gate, OTHER, 1);
    gate.set_target(3, MAIN);
    assert_eq!(gate.hand_over_spare(), Some(Recipient::Idle));
    assert_eq!(gate.hand_over_spare(), None, "there is none");
    assert_eq!(gate.await_first_tasks(2, None), Some([2].into()));
}

#[test]
fn threads_are_started_for_spares_if_no_worker_is_idle() {
    let gate = gate_of(3);
    gate.leave_spare(|| Some(1));
    gate.leave_spare(|| Some(2));
    gate.set_target(9, MAIN);
    assert_eq!(gate.hand_over_spare(), Some(Recipient::New(3)));
    assert_eq!(gate.hand_over_spare(), Some(Recipient::New(4)));
    assert_eq!(gate.hand_over_spare(), None, "there were two spares");
    assert_eq!(gate.await_first_tasks(4, None), Some([1].into()));
    assert_eq!(gate.await_first_tasks(3, None), Some([2].into()));
}

#[test]
fn no_spare_is_left_if_an_idle_worker_should_get_the_task() {
    let gate = gate_of(3);
    gate.go_idle();
    gate.leave_spare(|| panic!("a worker is idle"));
    assert!(gate.is_starving());
}

/// Otherwise, the rest of a directory waits until the other worker is done with a large file.
#[test]
fn the_leader_takes_spares_although_another_worker_is_active() {
    let gate = gate_of(2);
    gate.leave_spare(|| Some(1));
    gate.set_target(1, OTHER);
    assert_next(&gate, OTHER, 1);
    assert_eq!(gate.active_workers(), 2);
    assert_eq!(gate.lock().leader, Some(OTHER));
}

#[test]
fn a_worker_too_many_leaves_spares_to_others() {
    let gate = gate_of(2);
    gate.leave_spare(|| Some(1));
    gate.set_target(1, MAIN);
    gate.leave_spare(|| panic!("too many workers are active"));
    gate.lock().idle += 1;
    assert_eq!(gate.lock().take_for_idle(), None);
    assert_next(&gate, MAIN, 1);
    assert_ended(&gate);
}

#[test]
fn a_parked_worker_goes_on_when_an_active_one_goes_idle() {
    let gate = gate_of(2);
    gate.set_target(1, MAIN);
    assert!(gate.has_surplus());
    assert!(!gate.park(MAIN, || panic!("the leader does not park")));
    std::thread::scope(|scope| {
        let parked = scope.spawn(|| gate.park(OTHER, || ()));
        while gate.has_surplus() {
            std::thread::yield_now();
        }
        gate.go_idle();
        assert!(parked.join().unwrap());
    });
    assert!(!gate.has_surplus() && !gate.has_company());
}

#[test]
fn a_worker_that_runs_out_of_tasks_is_not_the_leader_any_more() {
    let gate = gate_of(2);
    gate.set_target(2, OTHER);
    gate.leave_spare(|| Some(1));
    assert_next(&gate, OTHER, 1);
    gate.set_target(1, MAIN);
    assert_eq!(gate.lock().leader, Some(MAIN));
    gate.lock().leader = None;
    assert!(!gate.park(OTHER, || panic!("the first to park is the leader")));
}

#[test]
fn a_run_goes_on_while_another_process_has_tasks() {
    let gate = gate();
    gate.expect_returns(2);
    gate.go_idle();
    for task in [1, 2] {
        assert!(!gate.lock().has_ended());
        Inlet(&gate).put([task].into(), 1);
        assert_eq!(gate.await_first_tasks(MAIN, None), Some([task].into()));
        gate.go_idle();
    }
    assert!(gate.lock().has_ended());
}

#[test]
fn a_busy_worker_takes_each_batch_for_which_no_worker_is_idle() {
    let gate = gate();
    assert!(!gate.has_delivery());
    Inlet(&gate).put([1].into(), 0);
    Inlet(&gate).put([2].into(), 0);
    assert!(gate.has_delivery());
    assert_eq!(gate.take_batch(), Some([1].into()));
    assert!(gate.has_delivery());
    assert_next(&gate, MAIN, 2);
    assert!(!gate.has_delivery());
    assert_eq!(gate.take_batch(), None);
    assert_ended(&gate);
}

#[test]
fn a_busy_worker_leaves_a_batch_to_an_idle_one() {
    let gate = gate_of(2);
    gate.go_idle();
    Inlet(&gate).put([1].into(), 0);
    assert!(!gate.has_delivery());
    assert_eq!(gate.take_batch(), None);
    assert!(gate.has_company());
}

#[test]
fn the_last_active_worker_takes_the_deferred_tasks_one_by_one() {
    let gate = gate_of(2);
    for task in [1, 2] {
        gate.defer_until_idle(task);
    }
    gate.lock().idle += 1;
    assert_eq!(gate.lock().take_for_idle(), None, "the other worker runs");
    for task in [1, 2] {
        assert_next(&gate, MAIN, task);
    }
    assert_ended(&gate);
}

#[test]
fn tasks_deferred_until_workers_are_idle_do_not_wait_for_another_process() {
    let gate = gate();
    gate.expect_returns(1);
    gate.defer_until_idle(1);
    assert_next(&gate, MAIN, 1);
    gate.go_idle();
    assert!(!gate.lock().has_ended());
    Inlet(&gate).allow_end();
    assert_eq!(gate.await_first_tasks(MAIN, None), None);
}

#[test]
fn no_thread_is_started_after_one_was_refused() {
    let gate = gate();
    gate.set_target(4, MAIN);
    assert_eq!(give(&gate, 7), Some(Recipient::New(OTHER)));
    gate.refuse_thread();
    gate.set_target(4, MAIN);
    assert_eq!(gate.hand_over(|_| panic!("no other worker is there")), None);
    assert!(gate.has_delivery());
    assert_eq!(gate.take_batch(), Some([7].into()));
    assert_ended(&gate);
}

#[test]
fn a_worker_steals_only_while_tasks_are_wanted() {
    struct Thief<'a>(&'a Gate<u32>);

    impl super::Thief for Thief<'_> {
        fn steal(&self) {
            Inlet(self.0).put([5].into(), 0);
        }
    }

    let gate = gate();
    gate.expect_returns(1);
    let thief = Thief(&gate);
    assert_eq!(gate.await_tasks(MAIN, Some(&thief)), Some([5].into()));
}
