//! Figures and words as the tables show them.

use crate::results::Row;

/// The sign for a missing figure.
pub(super) const NONE: &str = "–";

/// Returns `value` with three digits, no more.
pub(super) fn figure(value: f64) -> String {
    match value {
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 100.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// Returns a figure, or a sign if there is none.
pub(super) fn figure_or_none(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_owned(), figure)
}

/// Returns seconds or milliseconds, with three digits.
pub(super) fn time(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{} ms", figure(seconds * 1e3))
    } else {
        format!("{} s", figure(seconds))
    }
}

/// Returns the median of a command, and how far its runs are from it at most.
pub(super) fn time_and_spread(row: &Row) -> String {
    let (shortest, longest) = row.range;
    let spread = (row.seconds - shortest).max(longest - row.seconds) / row.seconds;
    format!("{} ±{:.0}%", time(row.seconds), spread * 100.0)
}

/// Returns `words` as a table's cell may hold them.
pub(super) fn escape(words: &str) -> String {
    words.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests;

    #[test]
    fn times_and_figures_have_three_digits() {
        assert_eq!(
            [time(0.001_234), time(0.0123), time(0.999), time(12.34)],
            ["1.23 ms", "12.3 ms", "999 ms", "12.3 s"]
        );
    }

    #[test]
    fn the_spread_is_the_distance_of_the_farthest_run() {
        let row = tests::row("rmz", &[0.2, 0.19, 0.25]).unwrap();
        assert_eq!(time_and_spread(&row), "200 ms ±25%");
    }
}
