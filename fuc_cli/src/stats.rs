//! `--stats`: the totals of a run, at its end.
//!
//! The text is for people, and goes to stderr. The JSON is for programs, and is the last line of stdout, because
//! diagnostics never go there. Its keys are always the same, and their meaning never changes within one `version`.
//! All values are numbers or booleans, so nothing needs to be escaped.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use fuc_engine::{Execution, Summary};

use crate::amounts::{Bytes, Count};
use crate::console::Console;
use crate::flags::{Advice, UsageError, choose};
use crate::locale::Charset;
use crate::outcome::Outcome;

/// The form in which the totals are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stats {
    /// They are not shown.
    Hidden,
    /// As a table.
    Text,
    /// As one line of JSON.
    Json,
}

/// The values of `--stats`.
pub const FORMAT: [(&str, Stats); 2] = [("text", Stats::Text), ("json", Stats::Json)];

/// The version of the JSON. A key may be added without a new version.
const VERSION: u32 = 1;

/// A run, for its totals.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The counts of the run.
    pub summary: &'a Summary,
    /// The way in which the run was executed.
    pub execution: Execution,
    /// The start of the run.
    pub began: Instant,
    /// The entries of each rank, if several processes have shared the run.
    pub shares: &'a [u64],
}

impl<'a> Run<'a> {
    /// Returns a run of one process that begins now.
    #[must_use]
    pub fn beginning_now(summary: &'a Summary, execution: Execution) -> Self {
        Self {
            summary,
            execution,
            began: Instant::now(),
            shares: &[],
        }
    }
}

impl Stats {
    /// Parses the value of `--stats`. Without a value it means [`Text`](Self::Text).
    ///
    /// # Errors
    /// If the value is not one of [`FORMAT`].
    pub fn parse(format: Option<&OsStr>, charset: Charset) -> Result<Self, UsageError> {
        match format {
            None => Ok(Self::Text),
            Some(format) => choose("--stats", format, &FORMAT, charset),
        }
    }

    /// Ends a run that an error has prevented: reports it, and shows totals without work.
    ///
    /// # Errors
    /// Returns the error if no totals are shown: if they are hidden, or if the command line is wrong.
    pub fn end_prevented(
        self,
        error: UsageError,
        execution: Execution,
        console: &Console,
    ) -> Result<Outcome, UsageError> {
        if self == Self::Hidden || error.advice != Advice::None {
            return Err(error);
        }
        console.usage_error(&error, b"");
        let mut summary = Summary::default();
        summary.failures = 1;
        self.show(&Run::beginning_now(&summary, execution), console);
        Ok(Outcome::Incomplete)
    }

    /// Shows the totals of a run that has just ended.
    pub fn show(self, run: &Run<'_>, console: &Console) {
        let wall = run.began.elapsed();
        match self {
            Self::Hidden => {}
            Self::Text => {
                let text = text(run, wall);
                console.write_stderr(text.as_bytes());
            }
            Self::Json => console.print(&[json(run, wall).as_bytes()]),
        }
    }
}

/// Returns a line of JSON.
fn json(run: &Run<'_>, wall: Duration) -> String {
    let summary = run.summary;
    let entries = rate(summary.entries, wall);
    let bytes = rate(summary.bytes, wall);
    let values = [
        ("version", VERSION.to_string()),
        ("entries", summary.entries.to_string()),
        ("files", summary.files.to_string()),
        ("directories", summary.directories.to_string()),
        ("symlinks", summary.symlinks.to_string()),
        ("hard_links", summary.hard_links.to_string()),
        ("other", summary.other.to_string()),
        ("unknown", summary.unknown.to_string()),
        ("bytes", summary.bytes.to_string()),
        ("reflinked_bytes", summary.reflinked_bytes.to_string()),
        ("kept", summary.kept.to_string()),
        ("compared", summary.compared.to_string()),
        ("deleted", summary.deleted.to_string()),
        ("not_deleted", summary.not_deleted.to_string()),
        ("failures", summary.failures.to_string()),
        ("declined", summary.declined.to_string()),
        ("discarded", summary.discarded.to_string()),
        ("cancelled", summary.cancelled.to_string()),
        ("dry_run", (run.execution == Execution::DryRun).to_string()),
        ("wall_seconds", format!("{:.6}", wall.as_secs_f64())),
        ("entries_per_second", entries.to_string()),
        ("bytes_per_second", bytes.to_string()),
    ];
    let shares = shares(run).map(|(key, _, value)| (key, value.to_string()));
    let members = values.into_iter().chain(shares);
    let members = members.map(|(key, value)| format!("\"{key}\":{value}"));
    format!("{{{}}}\n", members.collect::<Vec<_>>().join(","))
}

/// Returns how the ranks have shared the run: a key, a label and a number each.
fn shares(run: &Run<'_>) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
    let shares = run.shares.iter().copied();
    let range = shares.clone().min().zip(shares.max());
    let ranks = run.shares.len() as u64;
    range.into_iter().flat_map(move |(fewest, most)| {
        [
            ("ranks", "ranks", ranks),
            ("fewest_entries_per_rank", "fewest per rank", fewest),
            ("most_entries_per_rank", "most per rank", most),
        ]
    })
}

/// Returns a table for people, without rows of zeros.
fn text(run: &Run<'_>, wall: Duration) -> String {
    let summary = run.summary;
    let count: fn(u64) -> String = |number| Count(number).to_string();
    let size: fn(u64) -> String = |bytes| Bytes(bytes).to_string();
    let amounts = [
        ("files", summary.files, count),
        ("directories", summary.directories, count),
        ("symbolic links", summary.symlinks, count),
        ("hard links", summary.hard_links, count),
        ("other types", summary.other, count),
        ("unknown types", summary.unknown, count),
        ("size", summary.bytes, size),
        ("shared by reflink", summary.reflinked_bytes, size),
        ("kept", summary.kept, count),
        ("compared", summary.compared, count),
        ("deleted", summary.deleted, count),
        ("not deleted", summary.not_deleted, count),
        ("failures", summary.failures, count),
        ("declined", summary.declined, count),
        ("entries per second", rate(summary.entries, wall), count),
        ("size per second", rate(summary.bytes, wall), size),
    ];
    let shares = shares(run).map(|(_, label, value)| (label, value, count));
    let amounts = amounts.into_iter().chain(shares);
    let amounts = amounts.filter(|&(_, number, _)| number > 0);
    let rows = [
        ("entries", count(summary.entries)),
        ("seconds", format!("{:.3}", wall.as_secs_f64())),
    ];
    let rows = rows.into_iter();
    let amounts = amounts.map(|(label, number, show)| (label, show(number)));
    rows.chain(amounts)
        .fold(String::new(), |text, (label, value)| {
            format!("{text}{:<20}{value:>20}\n", format!("{label}:"))
        })
}

/// Returns a number per second, without fractions.
fn rate(count: u64, wall: Duration) -> u64 {
    let nanoseconds = wall.as_nanos().max(1);
    u64::try_from(u128::from(count) * 1_000_000_000 / nanoseconds).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        let mut summary = Summary::default();
        summary.entries = 1_500;
        summary.files = 1_490;
        summary.directories = 9;
        summary.hard_links = 1;
        summary.bytes = 1_000_000;
        summary.reflinked_bytes = 4_096;
        summary.deleted = 3;
        summary.failures = 2;
        summary
    }

    #[test]
    fn the_json_has_the_documented_keys_and_units() {
        let expected = concat!(
            r#"{"version":1,"entries":1500,"files":1490,"directories":9,"symlinks":0,"hard_links":1,"#,
            r#""other":0,"unknown":0,"bytes":1000000,"reflinked_bytes":4096,"kept":0,"compared":0,"deleted":3,"not_deleted":0,"failures":2,"#,
            r#""declined":0,"discarded":0,"cancelled":false,"dry_run":false,"wall_seconds":0.500000,"#,
            r#""entries_per_second":3000,"bytes_per_second":2000000}"#,
            "\n"
        );
        let summary = summary();
        let run = Run::beginning_now(&summary, Execution::Real);
        assert_eq!(json(&run, Duration::from_millis(500)), expected);
    }

    #[test]
    fn the_text_has_units_and_no_zeros() {
        let summary = summary();
        let run = Run::beginning_now(&summary, Execution::Real);
        let rows = [
            ("entries", "1,500"),
            ("seconds", "0.500"),
            ("files", "1,490"),
            ("directories", "9"),
            ("hard links", "1"),
            ("size", "977 KiB"),
            ("shared by reflink", "4.0 KiB"),
            ("deleted", "3"),
            ("failures", "2"),
            ("entries per second", "3,000"),
            ("size per second", "1.9 MiB"),
        ];
        let expected =
            rows.map(|(label, value)| format!("{:<20}{value:>20}\n", format!("{label}:")));
        assert_eq!(text(&run, Duration::from_millis(500)), expected.concat());
    }

    #[test]
    fn a_shared_run_shows_its_shares() {
        let summary = summary();
        let run = Run {
            shares: &[700, 300, 500],
            ..Run::beginning_now(&summary, Execution::Real)
        };
        let json = json(&run, Duration::from_millis(500));
        let end = r#","ranks":3,"fewest_entries_per_rank":300,"most_entries_per_rank":700}"#;
        assert!(json.ends_with(&format!("{end}\n")), "{json}");
        let text = text(&run, Duration::from_millis(500));
        let row = format!("{:<20}{:>20}\n", "most per rank:", "700");
        assert!(text.ends_with(&row), "{text}");
    }

    #[test]
    fn a_run_without_a_measurable_time_has_a_rate() {
        assert_eq!(rate(u64::MAX, Duration::ZERO), u64::MAX);
        assert_eq!(rate(0, Duration::ZERO), 0);
    }
}
