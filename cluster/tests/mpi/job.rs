//! Starts jobs, and reads what they leave behind.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use testkit::run::{Outcome, Run, Words};
use testkit::tree::Scratch;

/// A command for several ranks.
#[derive(Clone, Copy)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
}

pub(crate) const RMZ: Program = Program {
    name: "rmz-mpi",
    path: env!("CARGO_BIN_EXE_rmz-mpi"),
};
pub(crate) const CPZ: Program = Program {
    name: "cpz-mpi",
    path: env!("CARGO_BIN_EXE_cpz-mpi"),
};

/// The variable with the `mpiexec` of another MPI than Open MPI, for which the commands were built.
const MPIEXEC: &str = "FUC_MPIEXEC";

/// Gives each rank its number, by the variables of Open MPI and of MPICH. Says that it may use all processors that this
/// test may, so that it does not warn of that in a container.
const SET_RANK: &str = "\
    RANK=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; SLURM_CPUS_ON_NODE=$(nproc); export RANK SLURM_CPUS_ON_NODE; ";

/// Lets each rank write its status to a file, because `mpirun` shows only one.
pub(crate) const STATUSES: &str = r#""$@"; echo $? > "status.$RANK""#;

/// Lets each rank write the number of its process to a file.
pub(crate) const PIDS: &str = r#"echo $$ > "pid.$RANK"; exec "$@""#;

/// Options of a job of some hundred entries that say what each rank has done, and slow the job, so that all have time to
/// take part. Without them, on a busy machine, rank 0 can complete the job before the others run at all.
pub(crate) const SLOW_HUNDREDS: &str = "--threads=1 --stats=json --max-rate=1000/s";
/// The same for some thousand entries.
pub(crate) const SLOW_THOUSANDS: &str = "--threads=1 --stats=json --max-rate=4000/s";

/// Leaves each rank few descriptors.
pub(crate) const FEW_DESCRIPTORS: &str = r#"ulimit -n 64; exec "$@""#;

/// Lets rank 1 see an empty directory in place of `$HIDDEN`.
pub(crate) const HIDING: &str = r#"
    if [ "$RANK" = 1 ]; then
        cd /
        exec unshare -m sh -c 'mount -t tmpfs none "$HIDDEN" && exec "$@"' sh "$@"
    fi
    exec "$@""#;

impl Program {
    /// Prepares a job. Each rank runs `script` in a shell, in which `"$@"` is the command. If the script goes on
    /// after it, it must see to the status.
    pub(crate) fn job(self, ranks: usize, script: &str, arguments: impl Words) -> Run {
        let words = self.words(ranks, script, arguments);
        let run = Run::new(&words[0]).args(&words[1..]);
        let variable = self.name.to_uppercase().replace('-', "_");
        run.env(variable, self.path)
            .time_limit(Duration::from_secs(120))
    }

    /// Returns the command line of a job. Each rank has its number in `RANK`.
    pub(crate) fn words(self, ranks: usize, script: &str, arguments: impl Words) -> Vec<OsString> {
        // Root in a container, on a machine with few cores and no fast network.
        let launcher = env::var(MPIEXEC).unwrap_or_else(|_| {
            let base = session_base();
            format!(
                "mpirun --allow-run-as-root --oversubscribe --bind-to none --mca pml ob1 --mca orte_tmpdir_base '{}'",
                base.display()
            )
        });
        let (ranks, script) = (ranks.to_string(), format!("{SET_RANK}{script}"));
        let shell = ["-n", &ranks, "sh", "-c", &script, "sh", self.path];
        [launcher.words(), shell.words(), arguments.words()].concat()
    }

    /// Runs a job in a directory.
    pub(crate) fn run(
        self,
        ranks: usize,
        arguments: impl Words,
        directory: impl AsRef<Path>,
    ) -> Outcome {
        let job = self.job(ranks, r#"exec "$@""#, arguments);
        job.current_dir(directory).output()
    }

    /// Returns the lines that the command has written to stderr, without those of `mpirun`.
    pub(crate) fn diagnostics(self, outcome: &Outcome) -> Vec<String> {
        let stderr = outcome.stderr_text();
        let begin = format!("{}:", self.name);
        let ours = stderr.lines().filter(|line| line.starts_with(&begin));
        let mut ours: Vec<_> = ours.map(str::to_owned).collect();
        ours.sort();
        ours
    }
}

/// Makes a directory in which `mpirun` keeps the files of its jobs, and returns its path. Each thread has its own,
/// and so each test: `mpirun` 4.1.4 removes the directory of a user when a job ends, although another job is about to
/// make its own in it. That one then does not start (`orte_session_dir failed`, 2 of 1,000 jobs, four at a time).
fn session_base() -> PathBuf {
    let thread = format!("{:?}", thread::current().id());
    let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join(thread);
    fs::create_dir_all(&base).unwrap();
    base
}

/// Returns the value of a key in the line of `--stats=json`.
#[track_caller]
pub(crate) fn stat(outcome: &Outcome, key: &str) -> u64 {
    let text = outcome.stdout_text();
    let line = text.lines().last().unwrap_or_default();
    let (_, value) = line
        .split_once(&format!("\"{key}\":"))
        .unwrap_or_else(|| panic!("{key} is not in {line}"));
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    value[..digits].parse().expect("a number")
}

/// Asserts that a signal has ended a job early, and that rank 0 alone says so.
#[track_caller]
pub(crate) fn assert_interrupted(program: Program, outcome: &Outcome) {
    outcome.assert_status(1);
    let said = program.diagnostics(outcome);
    assert_eq!(said.len(), 1, "{outcome}");
    let begin = format!("{}: interrupted: ", program.name);
    assert!(said[0].starts_with(&begin), "{outcome}");
}

/// Asserts that no rank has processed all entries, by the line of `--stats=json`. A rank may have had none, because
/// the others were faster. The job must be slow enough, see [`SLOW_HUNDREDS`].
#[track_caller]
pub(crate) fn assert_shared(outcome: &Outcome) {
    let most = stat(outcome, "most_entries_per_rank");
    assert!(most < stat(outcome, "entries"), "{outcome}");
}

/// Returns the lines on stdout, without that of `--stats=json`.
pub(crate) fn printed(outcome: &Outcome) -> BTreeSet<String> {
    let text = outcome.stdout_text();
    let lines = text.lines().filter(|line| !line.starts_with('{'));
    lines.map(str::to_owned).collect()
}

/// Returns the statuses that 4 ranks have written.
pub(crate) fn statuses(scratch: &Scratch) -> [String; 4] {
    [0, 1, 2, 3].map(|rank| {
        let path = scratch.at(format!("status.{rank}"));
        let status = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        status.trim().to_owned()
    })
}

/// Makes entries immutable during a job.
pub(crate) fn with_immutable<T>(
    scratch: &Scratch,
    names: &[impl AsRef<str>],
    job: impl FnOnce() -> T,
) -> T {
    if names.is_empty() {
        return job();
    }
    let chattr = |flag: &str| {
        let run = Run::new("chattr").arg(flag);
        let run = run.args(names.iter().map(AsRef::as_ref));
        run.current_dir(scratch).output().assert_success();
    };
    chattr("+i");
    let result = job();
    chattr("-i");
    result
}

/// Sends a signal to a rank that has written the number of its process.
pub(crate) fn signal(scratch: &Scratch, rank: usize, signal: &str) {
    let pid = fs::read_to_string(scratch.at(format!("pid.{rank}"))).unwrap();
    Run::new("kill").args([signal, pid.trim()]).output();
}
