//! Figures and words as the tables show them.

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

/// Returns seconds or milliseconds, with three digits.
pub(super) fn time(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{} ms", figure(seconds * 1e3))
    } else {
        format!("{} s", figure(seconds))
    }
}

/// Returns a number of bytes in MiB, or a dash.
pub(super) fn memory(bytes: Option<u64>) -> String {
    bytes.map_or_else(
        || NONE.to_owned(),
        |bytes| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
    )
}

/// Returns `words` as a table's cell may hold them.
pub(super) fn escape(words: &str) -> String {
    words.replace('|', "\\|")
}

/// Returns a list with an item for each note, after an empty line; nothing without notes.
///
/// A note may quote what a program printed, so line ends, bars and backquotes are taken out of it.
pub(super) fn list(notes: &[String]) -> String {
    let item = |note: &String| {
        let line = note.replace(['\n', '|', '`'], " ");
        format!("- {}\n", line.chars().take(200).collect::<String>())
    };
    let items: String = notes.iter().map(item).collect();
    if items.is_empty() {
        items
    } else {
        format!("\n{items}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_figures_have_three_digits() {
        assert_eq!(
            [time(0.001_234), time(0.0123), time(0.999), time(12.34)],
            ["1.23 ms", "12.3 ms", "999 ms", "12.3 s"]
        );
    }

    #[test]
    fn a_note_is_one_line_of_markdown() {
        let notes = ["perl is left out:\nno | perl".to_owned()];
        assert_eq!(list(&notes), "\n- perl is left out: no   perl\n");
        assert_eq!(list(&[]), "");
    }
}
