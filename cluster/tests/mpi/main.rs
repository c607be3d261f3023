//! Tests of `rmz-mpi` and `cpz-mpi` by `mpirun`, with several ranks on this machine.
//!
//! They need `mpirun`, or the `mpiexec` that `FUC_MPIEXEC` names. A test about shared work proves that it was shared, by
//! the entries that each rank reports.

mod clients;
mod cpz;
mod job;
mod kills;
mod launch;
mod races;
mod rmz;
mod sizes;
mod trees;
