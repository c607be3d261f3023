//! Helpers that any other module may use. This module uses none of them.

use std::{
    io, thread,
    time::{Duration, Instant},
};

/// Time after which a command counts as hung: ample for a debug build on a busy machine.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Writes a line to stderr past the test harness, which captures the output of `eprintln!`.
pub(crate) fn note(line: &str) {
    // A closed stderr is not worth a failed test.
    let _ = write_note(io::stderr(), line);
}

/// Writes a line and the name of the test in one call, so that lines of several tests don't mix.
pub(crate) fn write_note(mut to: impl io::Write, line: &str) -> io::Result<()> {
    let thread = thread::current();
    let test = thread.name().unwrap_or("?");
    to.write_all(format!("{line} [{test}]\n").as_bytes())
}

/// Calls `call` again until it does not find its file busy, or until `limit` has passed.
///
/// A file that a test has just closed may still be open in a child of another thread: one that was forked
/// before, and has not reached its exec yet. For example, a program that was written cannot be started so long.
pub(crate) fn unless_busy<T>(
    limit: Duration,
    mut call: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        match call() {
            Err(e)
                if e.kind() == io::ErrorKind::ExecutableFileBusy && Instant::now() < deadline =>
            {
                thread::sleep(Duration::from_millis(5));
            }
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_file_is_tried_again() {
        let mut tries = 0;
        let outcome = unless_busy(TIME_LIMIT, || {
            tries += 1;
            if tries < 3 {
                return Err(io::ErrorKind::ExecutableFileBusy.into());
            }
            Ok(tries)
        });
        assert_eq!(outcome.unwrap(), 3);
    }
}
