//! Starts jobs, and reads what they leave behind.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use testkit::probe::{Skip, has_program};
use testkit::run::{Outcome, Run, Status};
use testkit::tree::{Scratch, Tree};

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

/// Slows a job of some hundred entries, so that all ranks have time to take part. Without it, on a busy machine, rank 0
/// can complete the job before the others run at all.
pub(crate) const SLOW_HUNDREDS: &str = "--max-rate=1000/s";
/// The same for some thousand entries.
pub(crate) const SLOW_THOUSANDS: &str = "--max-rate=4000/s";

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
    pub(crate) fn job(self, ranks: usize, script: &str, arguments: &[&str]) -> Result<Run, Skip> {
        if !has_program("mpirun") {
            return Err(Skip("there is no mpirun".into()));
        }
        let words = self.words(ranks, script, arguments);
        let run = Run::new(&words[0]).args(&words[1..]);
        let run = run.env(self.name.to_uppercase().replace('-', "_"), self.path);
        Ok(run.time_limit(Duration::from_secs(120)))
    }

    /// Returns the command line of a job. Each rank has its number in `RANK`.
    pub(crate) fn words(self, ranks: usize, script: &str, arguments: &[&str]) -> Vec<String> {
        let base = session_base();
        // Root in a container, on a machine with few cores.
        let mpirun = [
            "mpirun",
            "--allow-run-as-root",
            "--oversubscribe",
            "--bind-to",
            "none",
            "--mca",
            "orte_tmpdir_base",
            &base,
        ];
        let mpiexec = env::var(MPIEXEC);
        let launcher = match &mpiexec {
            Ok(mpiexec) => &[&**mpiexec][..],
            Err(_) => &mpirun,
        };
        let (ranks, script) = (ranks.to_string(), format!("{SET_RANK}{script}"));
        let shell = ["-n", &ranks, "sh", "-c", &script, "sh", self.path];
        let words = launcher.iter().chain(&shell).chain(arguments);
        words.map(ToString::to_string).collect()
    }

    /// Runs a job in a directory.
    pub(crate) fn run(
        self,
        ranks: usize,
        arguments: &[&str],
        directory: impl AsRef<Path>,
    ) -> Result<Outcome, Skip> {
        let run = self.job(ranks, r#"exec "$@""#, arguments)?;
        Ok(run.current_dir(directory).output())
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
fn session_base() -> String {
    let thread = format!("{:?}", thread::current().id());
    let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join(thread);
    fs::create_dir_all(&base).unwrap();
    base.into_os_string().into_string().unwrap()
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
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
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

pub(crate) fn lines(text: &str) -> BTreeSet<String> {
    text.lines().map(str::to_owned).collect()
}

/// Returns the statuses that the ranks have written.
pub(crate) fn statuses(scratch: &Scratch, ranks: usize) -> Vec<String> {
    let ranks = 0..ranks;
    let read = ranks.map(|rank| {
        let path = scratch.at(format!("status.{rank}"));
        let status = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        status.trim().to_owned()
    });
    read.collect()
}

/// Makes entries immutable during a job.
pub(crate) fn with_immutable<T>(
    scratch: &Scratch,
    names: &[impl AsRef<str>],
    job: impl FnOnce() -> T,
) -> T {
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

/// A sequence of numbers that is the same in each run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// Builds a tree with about 400 entries of all types.
pub(crate) fn build(root: &Path, seed: u64) {
    let tree = Tree::at(root);
    let mut numbers = Numbers(seed);
    let mut dirs = vec![String::from("top")];
    tree.dir("top");
    for number in 0..400 {
        let dir = &dirs[numbers.below(dirs.len() as u64) as usize];
        let name = format!("{dir}/{number}");
        match numbers.below(8) {
            0..3 => {
                dirs.push(name.clone());
                tree.dir(name)
            }
            3 => tree.symlink(&name, "/nowhere"),
            4 => tree.fifo(&name),
            5 => tree.file(format!("{name}\n'quoted'"), ""),
            _ => tree.file(&name, "content"),
        };
    }
}

/// Counts the entries below a directory, which may change.
pub(crate) fn count(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let below = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => 1 + count(&entry.path()),
        _ => 1,
    });
    below.sum()
}
