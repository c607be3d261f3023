//! Jobs that are started in a wrong way.

use std::thread;

use testkit::run::Run;
use testkit::skip;
use testkit::snapshot::{Attributes, Snapshot};
use testkit::tree::Scratch;

use crate::job::{CPZ, RMZ, STATUSES, statuses};

#[test]
fn processes_that_mpi_does_not_know_are_refused_before_any_work() {
    let scratch = Scratch::with("t/file=");
    for variable in ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"] {
        let run = Run::new(RMZ.path).arg("t").env(variable, "3");
        let outcome = run.current_dir(&scratch).fails();
        let begin = "rmz-mpi: the launcher has started 3 processes, of which MPI knows 1: ";
        assert!(outcome.stderr_text().starts_with(begin), "{outcome}");
        assert!(scratch.at("t/file").exists());
    }
}

#[test]
fn what_several_ranks_cannot_do_is_refused_once_and_before_any_work() {
    let scratch = Scratch::with("t/file=content");
    let unread = Attributes::ALL - Attributes::ATIME;
    let before = Snapshot::of(scratch.at("t"), unread);
    let prompts = "cannot prompt: other ranks have no terminal";
    let detaches = "--detach or --reap is not available on several ranks";
    let resumes = "--resume needs -a, -p or --preserve=timestamps";
    for (program, arguments, message) in [
        (RMZ, "-i t", prompts),
        (RMZ, "-I t", prompts),
        (RMZ, "--detach t", detaches),
        (RMZ, "--max-rate=0/s t", "invalid rate: '0/s'"),
        (CPZ, "-i t d", prompts),
        (CPZ, "--resume t d", resumes),
    ] {
        let run = program.job(4, STATUSES, arguments);
        let outcome = run.current_dir(&scratch).output();
        let expected = format!("{}: {message}", program.name);
        assert_eq!(program.diagnostics(&outcome), [expected], "{arguments}");
        assert_eq!(statuses(&scratch), ["1"; 4], "{arguments}");
        assert_eq!(before.diff(&Snapshot::of(scratch.at("t"), unread)), "");
        assert!(!scratch.at("d").exists());
    }
}

#[test]
fn a_rank_on_a_part_of_the_processors_says_so_once() {
    if thread::available_parallelism().unwrap().get() < 2 {
        skip!("there is only one processor");
    }
    let scratch = Scratch::with("s/file=");
    let job = CPZ.job(4, r#"exec taskset -c 0 "$@""#, "s d");
    let outcome = job.current_dir(&scratch).output();
    outcome.assert_status(0);
    let warnings = CPZ.diagnostics(&outcome);
    assert_eq!(warnings.len(), 1, "{outcome}");
    let begin = "cpz-mpi: warning: rank 0 may use 1 of the ";
    assert!(warnings[0].starts_with(begin), "{outcome}");
}
