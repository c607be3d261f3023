//! The system calls that need `unsafe`.

/// The numbers of the signals that have names.
const SIGNALS: std::ops::Range<i32> = 1..32;

/// Lets commands that this process starts later ignore no signal. A command inherits which signals are ignored: a
/// shell ignores SIGINT for what it runs in the background, and nohup ignores SIGHUP.
///
/// This process goes on as if it ignored the signals. Resetting them in the child instead would take a fork, which
/// copies the page tables of this process for each command.
#[expect(unsafe_code, reason = "std has no function for this")]
pub(crate) fn pass_on_no_ignored_signals() {
    extern "C" fn ignore(_: libc::c_int) {}
    let ignore = ignore as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // Std resets SIGPIPE in commands.
    for signal in SIGNALS.filter(|&signal| signal != libc::SIGPIPE) {
        // SAFETY: The action is a valid place for the current one, and no action is set.
        let action = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut action);
            action
        };
        if action.sa_sigaction == libc::SIG_IGN {
            // SAFETY: The handler does nothing, which is safe at any time. A command that is executed gets the
            // default effect in place of a handler. Calls that a handler interrupts are started again.
            unsafe { libc::signal(signal, ignore) };
        }
    }
}

/// Calls a function when this process exits.
#[expect(unsafe_code, reason = "std has no function for this")]
pub(crate) fn at_exit(function: extern "C" fn()) {
    // SAFETY: The function is safe to call at any time. If it can't be registered, it is only not called.
    unsafe { libc::atexit(function) };
}

#[cfg(test)]
mod tests {
    use crate::run::Run;

    #[test]
    #[expect(unsafe_code, reason = "std has no function for this")]
    fn a_command_ignores_no_signal_although_this_process_does() {
        for signal in [libc::SIGUSR2, libc::SIGWINCH] {
            // SAFETY: No other test uses these signals, and to ignore one calls no function.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        let status = Run::new("cat").args(["/proc/self/status"]).output();
        let text = status.assert_success().stdout_text();
        let mask = text.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = u64::from_str_radix(mask.expect("a mask").trim(), 16).expect("a number");
        // Those after the first 31 belong to the C library.
        assert_eq!(mask & 0x7fff_ffff, 0, "{text}");
    }
}
