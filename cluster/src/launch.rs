//! Mistakes in the way in which a job is started.

use std::env;
use std::fs;

use rustix::thread::sched_getaffinity;

/// The variables in which launchers say how many processes they have started: those of Open MPI, of MPICH and the MPIs
/// made from it, and of Slurm.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];

/// The number of processors that Slurm has given to the job on this node.
const SLURM_PROCESSORS: &str = "SLURM_CPUS_ON_NODE";

/// Checks that MPI knows all processes that the launcher has started. Otherwise each of them would be a job of its own
/// on the same tree.
///
/// # Errors
/// If MPI knows another number. The error is a text for the user.
pub(crate) fn check_size(ranks: u32) -> Result<(), String> {
    // Launchers start each other, so it is enough if one agrees.
    let sizes: Vec<u32> = SIZES.into_iter().filter_map(number).collect();
    match sizes.first() {
        Some(started) if !sizes.contains(&ranks) => Err(format!(
            "the launcher has started {started} processes, of which MPI knows {ranks}: \
             start them by the launcher of the MPI that this program was built with"
        )),
        _ => Ok(()),
    }
}

/// Returns a warning if this process may run on a part of its node's processors only.
pub(crate) fn binding_warning() -> Option<String> {
    let allowed = sched_getaffinity(None).ok()?.count();
    let online = fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    let online = count_listed(online.trim())?;
    (allowed < online && number(SLURM_PROCESSORS) != Some(allowed)).then(|| {
        format!(
            "warning: rank 0 may use {allowed} of the {online} processors of its node; \
             'mpirun --map-by ppr:1:node --bind-to none' or 'srun --cpus-per-task' gives it more"
        )
    })
}

fn number(variable: &str) -> Option<u32> {
    env::var(variable).ok()?.parse().ok()
}

/// Returns the number of processors in a list such as `0-3,8`.
fn count_listed(list: &str) -> Option<u32> {
    let ranges = list.split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let [first, last] = [first, last].map(str::parse::<u32>);
        Some(last.ok()?.checked_sub(first.ok()?)? + 1)
    });
    ranges.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_counted() {
        for (list, count) in [
            ("0", Some(1)),
            ("0-3", Some(4)),
            ("0-3,8,10-11", Some(7)),
            ("", None),
            ("3-1", None),
        ] {
            assert_eq!(count_listed(list), count, "{list}");
        }
    }
}
