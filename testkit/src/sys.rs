//! The system calls that need `unsafe`.

use std::{os::unix::process::CommandExt as _, process::Command};

/// The numbers of the signals that have names.
const SIGNALS: std::ops::Range<i32> = 1..32;

/// Gives every signal of the command its default effect. A command inherits which signals are ignored: a shell
/// ignores SIGINT for what it runs in the background, and nohup ignores SIGHUP.
#[expect(unsafe_code, reason = "std has no function for this")]
pub(crate) fn reset_signals(command: &mut Command) -> &mut Command {
    let reset = || {
        for signal in SIGNALS {
            // SAFETY: The default effect calls no function of this process. For a signal that cannot be changed,
            // the call fails and has no effect.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: Between fork and exec the closure calls only signal, which is safe there.
    unsafe { command.pre_exec(reset) }
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
