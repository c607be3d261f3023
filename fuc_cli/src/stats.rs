//! `--stats`: the totals of a run, at its end.
//!
//! The text is for people, and goes to stderr. The JSON is for programs, and is the last line of stdout, because
//! diagnostics never go there. Its keys are always the same, and their meaning never changes within one `version`.
//! All values are numbers or booleans, so nothing needs to be escaped.

use std::time::{Duration, Instant};

use fuc_engine::{Execution, Summary};

use crate::amounts::{Bytes, Count};
use crate::console::Console;
use crate::flags::{Advice, UsageError};
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
const VERSION: u32 = 2;

/// A run, for its totals.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The counts of the run.
    pub summary: Summary,
    /// The way in which the run was executed.
    pub execution: Execution,
    /// The start of the run.
    pub began: Instant,
    /// The entries of each rank, if several processes have shared the run.
    pub shares: &'a [u64],
}

impl Run<'_> {
    /// Returns a run of one process that begins now.
    #[must_use]
    pub fn beginning_now(summary: Summary, execution: Execution) -> Self {
        Self {
            summary,
            execution,
            began: Instant::now(),
            shares: &[],
        }
    }

    /// Shows the totals of the run, which has just ended. Returns how it ended.
    pub fn end(&self, stats: Stats, console: &Console) -> Outcome {
        let wall = self.began.elapsed();
        match stats {
            Stats::Hidden => {}
            Stats::Text => console.write_stderr(text(self, wall).as_bytes()),
            Stats::Json => console.print(&[json(self, wall).as_bytes()]),
        }
        Outcome::of(self.summary, self.execution)
    }
}

impl Stats {
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
        Ok(Run::beginning_now(summary, execution).end(self, console))
    }
}

/// One total: its key in JSON, its label, its number, and how people see the number.
type Total = (&'static str, &'static str, u64, fn(u64) -> String);

fn count(number: u64) -> String {
    Count(number).to_string()
}

fn size(bytes: u64) -> String {
    Bytes(bytes).to_string()
}

/// Returns the totals of the summary that both forms show, except for the entries.
fn totals(summary: &Summary) -> [Total; 15] {
    [
        ("files", "files", summary.files, count),
        ("directories", "directories", summary.directories, count),
        ("symlinks", "symbolic links", summary.symlinks, count),
        ("hard_links", "hard links", summary.hard_links, count),
        ("other", "other types", summary.other, count),
        ("unknown", "unknown types", summary.unknown, count),
        ("bytes", "size", summary.bytes, size),
        (
            "reflinked_bytes",
            "shared by reflink",
            summary.reflinked_bytes,
            size,
        ),
        ("kept", "kept", summary.kept, count),
        ("compared", "compared", summary.compared, count),
        ("merged", "merged directories", summary.merged, count),
        ("deleted", "deleted", summary.deleted, count),
        ("not_deleted", "not deleted", summary.not_deleted, count),
        ("failures", "failures", summary.failures, count),
        ("declined", "declined", summary.declined, count),
    ]
}

/// Returns the speed, and how the ranks have shared the run.
fn speed_and_shares(run: &Run<'_>, wall: Duration) -> Vec<Total> {
    let entries = rate(run.summary.entries, wall);
    let bytes = rate(run.summary.bytes, wall);
    let mut totals: Vec<Total> = vec![
        ("entries_per_second", "entries per second", entries, count),
        ("bytes_per_second", "size per second", bytes, size),
    ];
    let shares = run.shares.iter().copied();
    if let (Some(fewest), Some(most)) = (shares.clone().min(), shares.clone().max()) {
        totals.extend::<[Total; 3]>([
            ("ranks", "ranks", run.shares.len() as u64, count),
            ("fewest_entries_per_rank", "fewest per rank", fewest, count),
            ("most_entries_per_rank", "most per rank", most, count),
        ]);
    }
    totals
}

/// Returns a line of JSON.
fn json(run: &Run<'_>, wall: Duration) -> String {
    let summary = &run.summary;
    let first = [
        ("version", VERSION.to_string()),
        ("entries", summary.entries.to_string()),
    ];
    let others = [
        ("discarded", summary.discarded.to_string()),
        ("cancelled", summary.cancelled.to_string()),
        ("dry_run", (run.execution == Execution::DryRun).to_string()),
        ("wall_seconds", format!("{:.6}", wall.as_secs_f64())),
    ];
    let member = |(key, _, number, _): Total| (key, number.to_string());
    let members = first
        .into_iter()
        .chain(totals(summary).map(member))
        .chain(others)
        .chain(speed_and_shares(run, wall).into_iter().map(member));
    let members = members.map(|(key, value)| format!("\"{key}\":{value}"));
    format!("{{{}}}\n", members.collect::<Vec<_>>().join(","))
}

/// Returns a table for people, without rows of zeros.
fn text(run: &Run<'_>, wall: Duration) -> String {
    let first = [
        ("entries", count(run.summary.entries)),
        ("seconds", format!("{:.3}", wall.as_secs_f64())),
    ];
    let totals = totals(&run.summary).into_iter();
    let totals = totals.chain(speed_and_shares(run, wall));
    let totals = totals.filter(|&(_, _, number, _)| number > 0);
    let rows = first
        .into_iter()
        .chain(totals.map(|(_, label, number, show)| (label, show(number))));
    rows.fold(String::new(), |text, (label, value)| {
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
            r#"{"version":2,"entries":1500,"files":1490,"directories":9,"symlinks":0,"hard_links":1,"#,
            r#""other":0,"unknown":0,"bytes":1000000,"reflinked_bytes":4096,"kept":0,"compared":0,"merged":0,"deleted":3,"not_deleted":0,"failures":2,"#,
            r#""declined":0,"discarded":0,"cancelled":false,"dry_run":false,"wall_seconds":0.500000,"#,
            r#""entries_per_second":3000,"bytes_per_second":2000000}"#,
            "\n"
        );
        let run = Run::beginning_now(summary(), Execution::Real);
        assert_eq!(json(&run, Duration::from_millis(500)), expected);
    }

    #[test]
    fn the_text_has_units_and_no_zeros() {
        let run = Run::beginning_now(summary(), Execution::Real);
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
        let run = Run {
            shares: &[700, 300, 500],
            ..Run::beginning_now(summary(), Execution::Real)
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
