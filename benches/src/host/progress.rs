//! Shows the current command and the remaining time: a bar on a terminal, otherwise a line per
//! cell.

use std::{cell::Cell as Counter, io::IsTerminal as _, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

/// The progress of a run, in terms of the planned time.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    done: Counter<Duration>,
    total: Duration,
}

impl Progress {
    /// Begins a run that is planned to take `total`.
    pub(crate) fn new(total: Duration) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style =
                ProgressStyle::with_template("{elapsed_precise} {bar:30} {prefix:>12} left  {msg}");
            let bar = ProgressBar::new(total.as_secs());
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self {
            bar,
            done: Counter::new(Duration::ZERO),
            total,
        }
    }

    /// Shows a message until the next one, on a terminal only.
    pub(crate) fn show_message(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
        }
    }

    /// Begins the next part.
    pub(crate) fn begin(&self, what: &str) {
        let left = show(self.total.saturating_sub(self.done.get()));
        match &self.bar {
            Some(bar) => {
                bar.set_position(self.done.get().as_secs());
                bar.set_prefix(left);
                bar.set_message(what.to_owned());
            }
            None => eprintln!("{what} (about {left} left)"),
        }
    }

    /// Ends a part of the run. `planned` is the time that was planned for it.
    pub(crate) fn advance(&self, planned: Duration) {
        self.done.set(self.done.get() + planned);
    }

    /// Prints a line that stays on the screen.
    pub(crate) fn note(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Returns a duration as text, rounded for a human reader.
pub(crate) fn show(time: Duration) -> String {
    match time.as_secs() {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7200 => format!("{} min", s.div_ceil(60)),
        s => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_for_a_human_reader() {
        assert_eq!(show(Duration::from_secs(119)), "119 s");
        assert_eq!(show(Duration::from_secs(121)), "3 min");
        assert_eq!(show(Duration::from_secs(7300)), "2 h 1 min");
    }
}
