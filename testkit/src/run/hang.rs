//! Describes what the processes of a command that hangs wait for.

use std::{fmt::Write as _, fs, path::PathBuf};

use rustix::process::Pid;

/// Describes each thread of the process `top` and of those that it has started: its state, the kernel function in which
/// it sleeps, and the number and the arguments of its system call.
pub(super) fn describe(top: Pid) -> String {
    let mut text = String::new();
    let mut processes = vec![top.as_raw_pid()];
    while let Some(process) = processes.pop() {
        let command = read(process, "cmdline").replace('\0', " ");
        let _ = writeln!(text, "{process} {command}");
        for thread in numbers(&format!("/proc/{process}/task")) {
            let fact = |name: &str| read(process, &format!("task/{thread}/{name}"));
            let status = fact("status");
            let state = status.lines().find_map(|line| line.strip_prefix("State:"));
            let state = state.unwrap_or_default().trim();
            let (function, call) = (fact("wchan"), fact("syscall"));
            let _ = writeln!(text, "    {thread} {state} {function} {}", call.trim());
            let children = fact("children");
            let children = children.split_whitespace();
            processes.extend(children.filter_map(|child| child.parse::<i32>().ok()));
        }
    }
    text
}

/// Returns the numbers among the names in a directory.
fn numbers(dir: &str) -> Vec<i32> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.collect()
}

/// Returns the text of a file of a process, or nothing if the process has ended.
fn read(process: i32, name: &str) -> String {
    let path: PathBuf = ["/proc", &process.to_string(), name].iter().collect();
    fs::read_to_string(path).unwrap_or_default()
}
