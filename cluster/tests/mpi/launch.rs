//! Jobs that are started in a wrong way.

use testkit::probe::has_program;
use testkit::run::{Run, Status};
use testkit::snapshot::{Attributes, Snapshot};
use testkit::tree::{Scratch, Tree};
use testkit::{or_skip, skip};

use crate::job::{CPZ, RMZ, STATUSES, statuses};

#[test]
fn processes_that_mpi_does_not_know_are_refused_before_any_work() {
    let scratch = Scratch::in_memory();
    Tree::at(scratch.path()).file("t/file", "");
    for variable in ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"] {
        let run = Run::new(RMZ.path).arg("t").env(variable, "3");
        let outcome = run.current_dir(&scratch).output();
        assert_eq!(outcome.status, Status::Exit(1));
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
    for (program, argument, message) in [
        (RMZ, "-i", prompts),
        (RMZ, "-I", prompts),
        (RMZ, "--detach", detaches),
        (RMZ, "--max-rate=0/s", "invalid rate: '0/s'"),
        (CPZ, "-i", prompts),
        (CPZ, "--resume", resumes),
    ] {
        let operands = if program.name == CPZ.name {
            &["t", "d"][..]
        } else {
            &["t"]
        };
        let run = or_skip!(program.job(4, STATUSES, &[&[argument], operands].concat()));
        let outcome = run.current_dir(&scratch).output();
        let expected = format!("{}: {message}", program.name);
        assert_eq!(program.diagnostics(&outcome), [expected]);
        assert_eq!(statuses(&scratch, 4), ["1"; 4], "{argument}");
        assert_eq!(before.diff(&Snapshot::of(scratch.at("t"), unread)), "");
        assert!(!scratch.at("d").exists());
    }
}

#[test]
fn a_rank_on_a_part_of_the_processors_says_so_once() {
    if !has_program("mpirun") || std::thread::available_parallelism().unwrap().get() < 2 {
        skip!("there is no mpirun, or only one processor");
    }
    let scratch = Scratch::in_memory();
    Tree::at(scratch.path()).file("s/file", "");
    let words = CPZ.words(4, r#"exec taskset -c 0 "$@""#, &["s", "d"]);
    let outcome = Run::new(&words[0])
        .args(&words[1..])
        .current_dir(&scratch)
        .output();
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    let warnings = CPZ.diagnostics(&outcome);
    assert_eq!(warnings.len(), 1, "{outcome}");
    assert!(
        warnings[0].starts_with("cpz-mpi: warning: rank 0 may use 1 of the "),
        "{outcome}"
    );
}
