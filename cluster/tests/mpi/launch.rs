//! Jobs that are started in a wrong way.

use testkit::probe::has_program;
use testkit::run::{Run, Status};
use testkit::skip;
use testkit::tree::{Scratch, Tree};

use crate::job::{CPZ, RMZ};

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
        assert!(scratch.path().join("t/file").exists());
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
