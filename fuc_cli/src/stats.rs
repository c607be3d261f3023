//! `--stats`: the totals of a run, at its end.
//!
//! The text is for people, and goes to stderr. The JSON is for programs, and is the last line of stdout, because
//! diagnostics never go there. Its keys are always the same, and their meaning never changes within one `version`.
//! All values are numbers or booleans, so nothing needs to be escaped.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use fuc_engine::{Execution, Summary};

use crate::amounts::Count;
use crate::command::Outcome;
use crate::console::Console;
use crate::flags::{Advice, UsageError, choose};
use crate::locale::Charset;
use crate::wording::Tool;

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
    /// The tool of the run.
    pub tool: Tool,
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
    pub fn beginning_now(summary: &'a Summary, tool: Tool, execution: Execution) -> Self {
        Self {
            summary,
            tool,
            execution,
            began: Instant::now(),
            shares: &[],
        }
    }

    /// Returns `true` if the run knows sizes: a real removal looks at none.
    fn has_bytes(&self) -> bool {
        self.tool == Tool::Copy || self.execution == Execution::DryRun
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
        tool: Tool,
        execution: Execution,
        console: &Console,
    ) -> Result<Outcome, UsageError> {
        if self == Self::Hidden || error.advice != Advice::None {
            return Err(error);
        }
        console.usage_error(&error, b"");
        let mut summary = Summary::default();
        summary.failures = 1;
        self.show(&Run::beginning_now(&summary, tool, execution), console);
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

/// Returns a table for people. It has only the rows that the run can fill.
fn text(run: &Run<'_>, wall: Duration) -> String {
    let (summary, tool) = (run.summary, run.tool);
    let mut rows = vec![
        ("files", Count(summary.files).to_string()),
        ("directories", Count(summary.directories).to_string()),
        ("symbolic links", Count(summary.symlinks).to_string()),
    ];
    if tool == Tool::Copy {
        rows.push(("hard links", Count(summary.hard_links).to_string()));
    }
    rows.push(("other types", Count(summary.other).to_string()));
    if summary.unknown > 0 {
        rows.push(("unknown types", Count(summary.unknown).to_string()));
    }
    if run.has_bytes() {
        rows.push(("bytes", Count(summary.bytes).to_string()));
    }
    if tool == Tool::Copy {
        rows.push((
            "shared by reflink",
            Count(summary.reflinked_bytes).to_string(),
        ));
    }
    rows.push(("failures", Count(summary.failures).to_string()));
    rows.push(("seconds", format!("{:.3}", wall.as_secs_f64())));
    rows.push((
        "entries per second",
        Count(rate(summary.entries, wall)).to_string(),
    ));
    if tool == Tool::Copy {
        rows.push((
            "bytes per second",
            Count(rate(summary.bytes, wall)).to_string(),
        ));
    }
    rows.extend(shares(run).map(|(_, label, value)| (label, Count(value).to_string())));
    let mut text = String::new();
    for (label, value) in rows {
        writeln!(text, "{:<20}{value:>20}", format!("{label}:"))
            .expect("BUG: a string takes any text");
    }
    text
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
        summary.failures = 2;
        summary
    }

    #[test]
    fn the_json_has_the_documented_keys_and_units() {
        let expected = concat!(
            r#"{"version":1,"entries":1500,"files":1490,"directories":9,"symlinks":0,"hard_links":1,"#,
            r#""other":0,"unknown":0,"bytes":1000000,"reflinked_bytes":4096,"failures":2,"#,
            r#""declined":0,"discarded":0,"cancelled":false,"dry_run":false,"wall_seconds":0.500000,"#,
            r#""entries_per_second":3000,"bytes_per_second":2000000}"#,
            "\n"
        );
        let summary = summary();
        let run = Run::beginning_now(&summary, Tool::Copy, Execution::Real);
        assert_eq!(json(&run, Duration::from_millis(500)), expected);
    }

    #[test]
    fn the_text_has_the_rows_of_the_tool() {
        let labels = |tool, execution| {
            let summary = summary();
            let run = Run::beginning_now(&summary, tool, execution);
            let text = text(&run, Duration::from_millis(500));
            let label = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
            text.lines().map(label).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(
            labels(Tool::Remove, Execution::Real),
            "files, directories, symbolic links, other types, failures, seconds, entries per second"
        );
        assert_eq!(
            labels(Tool::Remove, Execution::DryRun),
            "files, directories, symbolic links, other types, bytes, failures, seconds, entries per second"
        );
        assert_eq!(
            labels(Tool::Copy, Execution::Real),
            "files, directories, symbolic links, hard links, other types, bytes, shared by reflink, \
             failures, seconds, entries per second, bytes per second"
        );
    }

    #[test]
    fn a_shared_run_shows_its_shares() {
        let summary = summary();
        let run = Run {
            shares: &[700, 300, 500],
            ..Run::beginning_now(&summary, Tool::Copy, Execution::Real)
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
