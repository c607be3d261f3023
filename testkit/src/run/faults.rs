//! System calls that fail, or at which a command is killed, by strace.
//!
//! A call is known by its name and by its number among the calls of that name. So one trace names all
//! points at which a later run of the same command can be disturbed. With one thread these are exact.

use std::{collections::HashMap, fs};

use crate::{
    probe::{Skip, need_program},
    run::Run,
    tree::Scratch,
};

/// A system call of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The name of the call, such as `openat`.
    pub name: String,
    /// The number of the call among those of the same name, from 1.
    pub number: usize,
    /// Name, arguments and result, as strace shows them with the paths of descriptors.
    pub shown: String,
}

impl Run {
    /// Runs the command under strace. Returns the calls that it makes from the beginning of `main`,
    /// which looks at the standard streams first.
    ///
    /// # Errors
    /// If there is no strace, or it is not allowed to trace.
    ///
    /// # Panics
    /// Panics if the command fails.
    #[track_caller]
    pub fn calls(&self) -> Result<Vec<Call>, Skip> {
        need_program("strace")?;
        let scratch = Scratch::new();
        let log = scratch.path().join("log");
        let probe = Run::new("strace").args(["-o", "/dev/null", "true"]);
        if !probe.output().stderr.is_empty() {
            return Err(Skip("strace is not allowed to trace".to_owned()));
        }
        let strace = Run::new("strace").args(["-f", "-y", "-o"]).arg(&log);
        self.under(strace).output().assert_success();
        let log = fs::read_to_string(log).expect("strace writes a log");
        Ok(own_calls(&log))
    }

    /// Returns this command such that `fault` happens at `call`, in each of its processes: `error=EIO` or
    /// `signal=KILL`. With an error, the call is not made.
    #[must_use]
    pub fn with_fault(&self, call: &Call, fault: &str) -> Self {
        self.with_faults(&format!("{}:{fault}:when={}", call.name, call.number))
    }

    /// Returns this command such that strace lets system calls fail in each of its processes: `write,fsync:error=EIO`.
    #[must_use]
    pub fn with_faults(&self, faults: &str) -> Self {
        let inject = format!("inject={faults}");
        let options = ["-f", "-qq", "-o", "/dev/null", "-e", &inject];
        self.under(Run::new("strace").args(options))
    }
}

fn own_calls(log: &str) -> Vec<Call> {
    let mut numbers = HashMap::new();
    let mut calls = Vec::new();
    for line in log.lines() {
        // With -f, each line begins with the id of the thread.
        let shown = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
        // Other lines are about signals, exits, and calls of several threads at once.
        let is_call = shown.starts_with(|c: char| c.is_ascii_lowercase());
        let Some((name, _)) = shown.split_once('(').filter(|_| is_call) else {
            continue;
        };
        let number = numbers.entry(name.to_owned()).or_insert(0);
        *number += 1;
        calls.push(Call {
            name: name.to_owned(),
            number: *number,
            shown: shown.to_owned(),
        });
        if shown.starts_with("fcntl(2<") && shown.contains("F_GETFD)") {
            calls.clear();
        }
    }
    calls
}
