//! Describes what the processes of a command that hangs wait for.

use std::fs;

/// Describes each thread of `process` and of those that it has started: its state, the kernel function in which it
/// sleeps, and the number and the arguments of its system call.
pub(super) fn describe(process: i32) -> String {
    // A process that has ended has no files.
    let read =
        |name: &str| fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default();
    let mut text = format!("{process} {}\n", read("cmdline").replace('\0', " "));
    let mut below = String::new();
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    for thread in threads.into_iter().flatten().flatten() {
        let thread = thread.file_name().display().to_string();
        let fact = |name: &str| read(&format!("task/{thread}/{name}"));
        let status = fact("status");
        let state = status.lines().find_map(|line| line.strip_prefix("State:"));
        let state = state.unwrap_or_default().trim();
        let (function, call) = (fact("wchan"), fact("syscall"));
        text += &format!("    {thread} {state} {function} {}\n", call.trim());
        let children = fact("children");
        let children = children.split_whitespace().flat_map(str::parse);
        below.extend(children.map(describe));
    }
    text + &below
}
