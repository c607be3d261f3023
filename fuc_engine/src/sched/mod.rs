//! Starts, feeds and stops workers; knows nothing about files.
//!
//! A worker runs depth-first on its own [`stack`] of tasks. All other tasks lie in the queues of the [`gate`], under one
//! lock. A worker has a *backlog* if it has work beyond its running task: a task on its stack, or the rest
//! of a task that is at a checkpoint. Workers without tasks block in the gate.
//!
//! **How many workers run.** The [`governor`] decides it, from what the [`meter`] shows. It begins
//! with the first worker that records work after [`FIRST`](governor::FIRST), has a backlog, and is not in a small run, in
//! `Worker::step_governor`. If it wants more workers than are active, a worker with tasks to spare gives a batch to
//! an idle worker, or else to a new thread, which counts as idle at first.
//!
//! ```text
//!                  own stack is empty, and no queue has tasks for it
//!   running (active) -------------------------------------------> idle: waits in the gate
//!     |        ^    <-------------------------------------------
//!     |        |             a queue has tasks for it
//!     |        |
//!     |        +-- fewer are active than the governor wants
//!     v        |
//!   parked: waits in the gate, with tasks of its own, because more are active than the governor wants
//! ```
//!
//! **Where tasks are.** A worker takes from the gate in this order:
//!
//! | queue | filled by | emptied by |
//! |---|---|---|
//! | `batches` | a worker, when another one should get tasks; another process | an idle worker. If none is idle, the next worker that ends a task |
//! | `spares` | a worker that expects slow operations, its oldest task | the next worker that runs out of tasks, or that the governor wants |
//! | `when_idle` | a worker | the last worker that goes idle |
//!
//! The [`worker`] draws when it does this, and has a table of the reasons.
//!
//! **Why `Worker::run_all` ends.** The main thread ends it if, under the lock, all workers are idle, all queues are empty, and no
//! other process has a task. Only a running worker makes tasks, so no task can come then. The worker that goes
//! idle last wakes the main thread. When the main thread leaves the scope, idle workers end. No task stays in a queue forever:
//!
//! 1. If a batch has no idle worker, a running one takes it after its task.
//! 2. The last running worker takes the spares, since the governor wants at least one.
//! 3. Whenever fewer workers are active than the governor wants, a parked one goes on.
//!
//! The models of the gate check this.
//!
//! **Zones.** Two workers may have to wait for each other if they change the same thing. A task that knows its [`Zones`]
//! asks whether another worker is in one of them. If so, the worker puts the task off: it queues the task again, a few
//! tasks further down, and runs the next one. After as many tasks in occupied zones, it runs one of them in any case.
//!
//! **Other processes.** A job may be shared with other processes. `others` has what only such jobs need. A [`Thief`] asks
//! other processes for tasks, and [`Job::give`] gives them some. The gate counts these as *elsewhere*, and a run does not
//! end before they have come back.

mod gate;
mod governor;
mod meter;
pub(crate) mod others;
mod stack;
mod worker;
mod zones;

pub(crate) use governor::Limits;
pub(crate) use worker::{Job, When, Worker, scope};
pub(crate) use zones::Zones;
