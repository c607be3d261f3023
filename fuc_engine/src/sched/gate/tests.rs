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
fn a_worker_that_runs_out_of_tasks_is_not_the_leader_any_more() {
    let gate = gate_of(2);
    gate.set_target(2, OTHER);
    assert_eq!(gate.lock().leader, Some(OTHER));
    gate.go_idle();
    gate.defer_until_idle(1);
    assert_next(&gate, OTHER, 1);
    assert_eq!(gate.lock().leader, None);
    give(&gate, 2);
    assert_eq!(gate.await_first_tasks(MAIN, None), Some([2].into()));
    gate.lock().target = 1;
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
    assert!(!gate.has_company());
    Inlet(&gate).put([1].into(), 0);
    assert!(!gate.has_delivery());
    assert_eq!(gate.take_batch(), None);
    assert!(gate.has_company());
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
