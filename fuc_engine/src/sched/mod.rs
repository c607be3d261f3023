//! Starts, feeds and stops workers; knows nothing about files.
//!
//! A worker runs depth-first on its own stack of tasks. When the [`gate`] says that another
//! worker should get some, it gives away every other one of its newest tasks, so that neighbouring tasks run at the
//! same time.
//! A worker has a *backlog* if it has work beyond its running task: a task on its stack, or the rest
//! of a task that is at a checkpoint. Idle workers block.
//!
//! **How many workers run.** The [`governor`] decides it, from what the [`meter`] shows. It begins
//! with the first worker that records work after [`FIRST`](governor::FIRST) and has a backlog, in
//! `Worker::step_governor`. If it wants more workers than are active, a worker with tasks to spare
//! calls `Gate::permit_batch`. That names the recipient: an idle worker, or else a new thread.
//!
//! ```text
//!             given tasks            own stack is empty
//!   (thread) -----> running (active) -----------------> idle: waits on the channel
//!                     |        ^                          |
//!     more active than|        | an active worker         | given tasks: the giver counts
//!     the governor    v        | goes idle, or the        | it as active *before* it sends
//!     wants         parked ----+ governor wants more      +--> running
//! ```
//!
//! **How tasks change hands.** Except for spares, tasks travel through one channel, in batches. The gate keeps the
//! counts; a sender changes them first, under the gate's lock, and sends afterwards.
//!
//! ```text
//!   worker A, with tasks                      worker B, without
//!   --------------------                      -----------------
//!                                             go_idle: active 2 -> 1, idle 0 -> 1
//!                                             waits on the channel
//!   at its next checkpoint: is_starving
//!   permit_batch: idle 1 -> 0, active 1 -> 2
//!   sends every other task  ----------------> receives them, runs them
//! ```
//!
//! A worker inside one slow operation cannot give anything. So until 32 parts of tasks in a row were fast, and before
//! the entries of a wide directory, it leaves its oldest task as a *spare*, in a list. The next worker that runs out of
//! tasks takes it:
//!
//! ```text
//!   worker A, with tasks                      worker B, running
//!   --------------------                      -----------------
//!   leave_spare, under the lock:
//!     leaves its oldest task  --------------> (stays in the list of spares)
//!     spares 0 -> 1
//!   begins a slow operation
//!                                             out of tasks; go_idle: spares 1 -> 0,
//!                                             active stays 2
//!                                             takes the first spare, runs it
//! ```
//!
//! If the governor then wants more workers, the worker that stepped it sends spares to idle workers and new threads.
//! Each recipient counts as active (`Gate::claim_spare`).
//!
//! **Why a run ends.** `active` is the number of running workers, plus the batches under way to
//! a worker that was idle. Spares and deliveries, which are shown below, do not count as active: a worker that runs out
//! of tasks takes one instead of going idle, so they never change `active`. Now let `active` fall to zero. Then:
//!
//! 1. No worker runs, and only a running worker makes tasks.
//! 2. No batch is under way to a worker that was idle, as each of them counts as active.
//! 3. No spare and no delivery is left: the last worker would have taken it and stayed active.
//! 4. No worker is parked with tasks of its own: the governor wants at least one active
//!    worker, and when `active` falls below its number, the gate lets a parked worker go on.
//!
//! So no task is left. The worker that went idle last finds `active` at zero and wakes the
//! main thread, which waits on the channel or is that worker itself. Tasks that were queued for
//! this moment then run one at a time, each until no task is left again. The models of the gate check
//! this proof.
//!
//! A task may also be *deferred* until the worker that is about to go idle is the last active one. This worker takes
//! it and stays active, as with a spare.
//!
//! **Zones.** Two workers may have to wait for each other if they change the same thing. A task that knows its [`Zones`]
//! asks whether another worker is in one of them. If so, the worker puts the task off: it queues the task again, a few
//! tasks further down, and runs the next one. After as many tasks in occupied zones, it runs one of them in any case.
//!
//! **Other processes.** A job may be shared with other processes, by [`Thieves`] and an [`Inlet`]. A thread that
//! talks to them asks the workers for tasks through the inlet. The first worker that has some to spare at its next
//! checkpoint gives its oldest ones away. The gate counts them as *elsewhere*, and a run does not end before
//! they have come back. A batch from another process is sent to an idle worker, or else stays in the channel as a
//! *delivery*. A busy worker takes it after its running task. A worker that runs out of tasks takes it before any
//! spare, and stays active.
//!
//! ```text
//!   thread of the inlet              worker
//!   -------------------              ------
//!   request                          at its next checkpoint: claim_request
//!                                    expect: elsewhere 0 -> 1
//!                                    gives its oldest task to the other process
//!                                    go_idle: active 1 -> 0, and the run goes on
//!   the task comes back
//!   admit: elsewhere 1 -> 0,
//!          idle 1 -> 0, active 0 -> 1
//!   sends a task that climbs ------> receives it, runs it
//!                                    go_idle: active 1 -> 0, and the run ends
//! ```

mod gate;
mod governor;
mod hub;
mod meter;
mod worker;
mod zones;

pub(crate) use governor::{Limits, SecondWorker};
pub(crate) use hub::Inlet;
pub(crate) use worker::{Job, Thieves, Worker, scope, shared_scope};
pub(crate) use zones::Zones;
