//! Runs commands. [`Run`] runs one with a time limit, [`Parity`] runs ours and GNU's on equal trees.
//!
//! ```
//! use testkit::run::{Run, Status};
//!
//! let outcome = Run::new("cat").stdin(b"hello").output();
//! assert_eq!(outcome.status, Status::Exit(0));
//! assert_eq!(outcome.stdout, b"hello");
//! ```

use std::{
    env,
    ffi::{OsStr, OsString},
    fmt, io,
    os::fd::OwnedFd,
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

pub use rustix::process::Signal;

use crate::{
    probe::{Skip, need_program},
    sys::pass_on_no_ignored_signals,
    util::{TIME_LIMIT, unless_busy},
};

pub use compare::{difference, normal_lines};
pub use console::run_examples;
pub use dry_run::{as_done, check_dry_run};
pub use errors::{is_left_out, possible_errors};
pub use faults::Call;
pub use input::Input;
pub use live::{Live, Stream};
pub use pair::Pair;
pub use parity::{Observed, Parity};
pub use table::Table;
pub use twins::twin;
pub use words::Words;
pub use wrapped::Link;
use wrapped::lend;

mod compare;
mod console;
mod dry_run;
mod errors;
mod faults;
mod hang;
mod input;
mod live;
mod pair;
mod parity;
mod table;
mod twins;
mod words;
mod wrapped;

/// A command to run. It inherits the environment, with `LC_ALL=C`, has an empty stdin, and ignores no signal.
#[derive(Clone, Debug)]
pub struct Run {
    program: OsString,
    args: Vec<OsString>,
    current_dir: Option<PathBuf>,
    env: Vec<(OsString, OsString)>,
    stdin: Vec<u8>,
    input: Input,
    uid: Option<u32>,
    /// The copy of the program that runs, if the user can't reach the program itself.
    _lent: Option<Arc<Link>>,
    time_limit: Duration,
}

impl Run {
    /// Prepares to run a program, given by its name in `PATH` or by a path: `env!("CARGO_BIN_EXE_rmz")`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            current_dir: None,
            env: vec![("LC_ALL".into(), "C".into())],
            stdin: Vec::new(),
            input: Input::Pipe,
            uid: None,
            _lent: None,
            time_limit: TIME_LIMIT,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(self, arg: impl AsRef<OsStr>) -> Self {
        self.args([arg])
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        self.args.extend(args);
        self
    }

    /// Adds arguments, by words.
    #[must_use]
    pub fn words(self, words: impl Words) -> Self {
        self.args(words.words())
    }

    /// Runs it in `dir`.
    #[must_use]
    pub fn current_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.current_dir = Some(dir.as_ref().to_owned());
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let pair = (name.as_ref().to_owned(), value.as_ref().to_owned());
        self.env.push(pair);
        self
    }

    /// Sets the bytes that it can read from its stdin.
    #[must_use]
    pub fn stdin(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.stdin = bytes.as_ref().to_owned();
        self
    }

    /// Sets the kind of its stdin, which is a pipe by default.
    #[must_use]
    pub fn input(mut self, input: Input) -> Self {
        self.input = input;
        self
    }

    /// Runs the command as this user and the group of the same number, in no other groups. This takes root. A program
    /// that this user can't reach is copied to a place where the user can.
    #[must_use]
    pub fn uid(mut self, uid: u32) -> Self {
        self.uid = Some(uid);
        if let Some(lent) = lend(self.program.as_ref()) {
            self.program = lent.path().into();
            self._lent = Some(Arc::new(lent));
        }
        self
    }

    /// Sets the soft and the hard limit of open descriptors. Call it after `uid`.
    ///
    /// It inherits none between 3 and 9. Another thread may have one that is not yet closed on exec.
    #[must_use]
    pub fn nofile_limit(self, descriptors: u64) -> Self {
        let script =
            format!(r#"ulimit -n {descriptors} && exec "$@" 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-"#);
        self.under(Self::new("sh").args(["-c", &script, "sh"]))
    }

    /// Sets the time limit, by default a minute.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Lets it find programs in `dirs` before those of `PATH`.
    fn with_programs(self, dirs: impl IntoIterator<Item = PathBuf>) -> Self {
        let inherited = env::var_os("PATH").unwrap_or_default();
        let dirs = dirs.into_iter().chain(env::split_paths(&inherited));
        let path = env::join_paths(dirs).expect("no directory has a colon in its name");
        self.env("PATH", path)
    }

    /// Returns this command as the last arguments of `tool`, whose other settings do not count.
    fn under(&self, tool: Self) -> Self {
        let own = [self.program.clone()].into_iter().chain(self.args.clone());
        Self {
            program: tool.program,
            args: tool.args.into_iter().chain(own).collect(),
            ..self.clone()
        }
    }

    /// Starts the command. It can read what [`Live::write`] gives it, and nothing before that.
    ///
    /// # Panics
    /// Panics if it can't be started.
    #[track_caller]
    pub fn start(&self) -> Live {
        Live::of(self)
    }

    /// Runs the command until it has ended and its stdout and stderr are closed.
    ///
    /// # Panics
    /// Panics if it can't be started, or if it hangs. Then its whole process group is killed.
    #[track_caller]
    pub fn output(&self) -> Outcome {
        let mut live = self.start();
        live.feed();
        live.finish()
    }

    /// Runs it to its end, and asserts that it exits with status 1. Returns its output.
    ///
    /// # Panics
    /// If it ends in another way.
    #[track_caller]
    pub fn fails(&self) -> Outcome {
        let outcome = self.output();
        outcome.assert_status(1);
        outcome
    }

    fn spawn(&self, stdin: &OwnedFd) -> io::Result<Child> {
        unless_busy(self.time_limit, || {
            let mut command = self.command();
            command.stdin(stdin.try_clone()?).spawn()
        })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        pass_on_no_ignored_signals();
        command
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // The command gets a process group of its own, so that its children can be killed with it.
            .process_group(0);
        if let Some(dir) = &self.current_dir {
            command.current_dir(dir);
        }
        if let Some(uid) = self.uid {
            command.uid(uid).gid(uid);
        }
        command
    }

    /// Returns a run of this command at a pseudo-terminal, which the program `script` makes. Both streams of output
    /// come on stdout, with `\r\n` after each line.
    ///
    /// # Errors
    /// If `script` is missing.
    ///
    /// # Panics
    /// If an argument is not UTF-8.
    pub fn at_terminal(&self) -> Result<Self, Skip> {
        need_program("script")?;
        let words = [&self.program].into_iter().chain(&self.args);
        let words: Vec<String> = words.map(|word| quoted(word)).collect();
        let line = format!("exec {}", words.join(" "));
        let mut run = self.clone().env("SHELL", "/bin/sh");
        run.program = "script".into();
        run.args = ["-qec", &line, "/dev/null"].map(Into::into).into();
        Ok(run)
    }
}

/// Quotes a word for a shell.
fn quoted(word: &OsStr) -> String {
    let word = word.to_str().expect("a word in UTF-8");
    format!("'{}'", word.replace('\'', r"'\''"))
}

impl fmt::Display for Run {
    /// Writes the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.program.display())?;
        for arg in &self.args {
            write!(f, " {arg:?}")?;
        }
        Ok(())
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It exited with this status.
    Exit(i32),
    /// This signal ended it.
    Signal(i32),
}

impl Status {
    fn of(exit: ExitStatus) -> Self {
        match (exit.code(), exit.signal()) {
            (Some(code), _) => Self::Exit(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => unreachable!("BUG: it ended neither by itself nor by a signal"),
        }
    }
}

/// The result of a command, besides its effects on files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Exit status or signal.
    pub status: Status,
    /// Everything it wrote to stdout.
    pub stdout: Vec<u8>,
    /// Everything it wrote to stderr.
    pub stderr: Vec<u8>,
}

impl Outcome {
    /// Asserts that the command exited with this status.
    ///
    /// # Panics
    /// Panics with the whole output if it did not.
    #[track_caller]
    pub fn assert_status(&self, status: i32) -> &Self {
        assert_eq!(self.status, Status::Exit(status), "{self}");
        self
    }

    /// Asserts that the command succeeded and wrote nothing to stderr.
    ///
    /// # Panics
    /// Panics with the whole output if it did not.
    #[track_caller]
    pub fn assert_success(&self) -> &Self {
        let fine = self.status == Status::Exit(0) && self.stderr.is_empty();
        assert!(fine, "the command failed: {self}");
        self
    }

    /// Returns its stdout as text, with replacement characters for invalid UTF-8.
    #[must_use]
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns its stderr as text, with replacement characters for invalid UTF-8.
    #[must_use]
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}", self.status)?;
        writeln!(f, "--- stdout\n{}", self.stdout_text())?;
        writeln!(f, "--- stderr\n{}", self.stderr_text())
    }
}

#[cfg(test)]
mod tests;
