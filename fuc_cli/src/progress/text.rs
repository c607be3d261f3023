//! The texts about progress.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::amounts::{Bytes, Clock, Count, entries};
use crate::locale::Charset;
use crate::quote;
use crate::tool::Tool;

/// The moment that totals are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    SoFar,
    End,
}

/// The amounts that were done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Totals {
    pub(super) tool: Tool,
    pub(super) entries: u64,
    pub(super) bytes: u64,
    pub(super) elapsed: Duration,
    pub(super) moment: Moment,
}

/// Writes `60,615 entries copied, 2.6 GiB in 1.0 s (2.6 GiB/s)`.
impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let so_far = match self.moment {
            Moment::SoFar => " so far",
            Moment::End => "",
        };
        let seconds = self.elapsed.as_secs_f64();
        // A run that took no time would have no rate.
        let per_second = |amount: u64| (amount as f64 / seconds.max(0.001)) as u64;
        write!(f, "{} ", entries(self.entries))?;
        match self.tool {
            Tool::Copy => write!(f, "copied{so_far}, {} in ", Bytes(self.bytes))?,
            Tool::Remove => write!(f, "removed{so_far} in ")?,
        }
        match self.elapsed.as_secs() {
            0..60 => write!(f, "{seconds:.1} s ")?,
            _ => write!(f, "{} ", Clock(self.elapsed))?,
        }
        match self.tool {
            Tool::Copy => write!(f, "({}/s)", Bytes(per_second(self.bytes))),
            Tool::Remove => write!(f, "({}/s)", Count(per_second(self.entries))),
        }
    }
}

/// A run at one moment.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) tool: Tool,
    pub(super) entries: u64,
    pub(super) bytes: u64,
    /// Bytes of a copy, entries of a removal.
    pub(super) per_second: u64,
    pub(super) elapsed: Duration,
    /// The part of the work that is done, from 0 to 1. Without the result of the look-ahead it is estimated.
    pub(super) portion: Option<f64>,
    /// The time until the end, which is estimated likewise.
    pub(super) left: Option<Duration>,
    /// The result of the look-ahead, once it is at its end.
    pub(super) ahead: Option<Ahead>,
    pub(super) directory: Option<PathBuf>,
}

/// The amount of work of a whole run, and what is left of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

impl View {
    /// Returns the parts of the line from left to right, with their ranks. If the line is too narrow, the part with the
    /// highest rank is dropped first.
    fn parts(&self) -> Vec<(u8, String)> {
        let (done, bytes) = (entries(self.entries), Bytes(self.bytes));
        // Zeros would look as if nothing was copied.
        let none_has_content = match self.ahead {
            Some(ahead) => ahead.bytes == 0,
            None => self.bytes == 0,
        };
        let counts_bytes = self.tool == Tool::Copy && !none_has_content;
        let mut parts = match (self.ahead, counts_bytes) {
            (None, false) => vec![(1, done.to_string())],
            (None, true) => vec![(4, done.to_string()), (1, bytes.to_string())],
            (Some(ahead), false) => {
                let (done, all) = (Count(self.entries), entries(ahead.entries));
                vec![(1, format!("{done} of {all}"))]
            }
            (Some(ahead), true) => {
                let all = Bytes(ahead.bytes);
                let bytes = match bytes.has_unit_of(&all) {
                    true => format!("{bytes:#} of {all}"),
                    false => format!("{bytes} of {all}"),
                };
                vec![(4, done.to_string()), (1, bytes)]
            }
        };
        match self.tool {
            Tool::Copy if none_has_content => {}
            Tool::Copy => parts.push((3, format!("{}/s", Bytes(self.per_second)))),
            Tool::Remove => parts.push((3, format!("{}/s", Count(self.per_second)))),
        }
        match (self.left.map(Clock), self.ahead) {
            (Some(left), Some(_)) => parts.push((2, format!("ETA {left}"))),
            (Some(left), None) => parts.push((2, format!("ETA ~{left}"))),
            (None, Some(_)) => {}
            (None, None) => parts.push((2, Clock(self.elapsed).to_string())),
        }
        parts
    }

    /// Returns the line, at most `columns` wide. It gets a bar only if `columns` is not [`usize::MAX`].
    pub(super) fn line(&self, columns: usize, charset: Charset) -> String {
        let percent = self.portion.map(|portion| {
            // Not 100 before the end, because the amount of work of a removal is estimated.
            let percent = (portion * 100.0).min(99.0) as u8;
            match self.ahead {
                Some(_) => format!("{percent:2}%"),
                None => format!("~{percent}%"),
            }
        });
        let mut parts = self.parts();
        let text = |parts: &[(u8, String)]| {
            let parts: Vec<&str> = parts.iter().map(|(_, part)| &**part).collect();
            let parts = parts.join(", ");
            [percent.as_deref().unwrap_or_default(), &parts]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join("  ")
        };
        // All of this is ASCII, so a byte is a column.
        let mut line = text(&parts);
        while line.len() > columns
            && let Some(least) = (0..parts.len()).max_by_key(|&index| parts[index].0)
        {
            parts.remove(least);
            line = text(&parts);
        }
        line.truncate(columns);
        if let Some(portion) = self.portion
            && let Some(bar) = bar(portion, columns)
            && bar.len() + line.len() <= columns
        {
            line.insert_str(0, &bar);
        }
        if let Some(path) = &self.directory
            && let Some(path) = cut(path, columns.saturating_sub(line.len() + 2), charset)
        {
            line.push_str("  ");
            line.push_str(&path);
        }
        line
    }
}

/// Returns `[====>     ] ` for a line of this width.
fn bar(portion: f64, columns: usize) -> Option<String> {
    if columns == usize::MAX {
        return None;
    }
    let width = (columns / 8).clamp(10, 30);
    let done = (portion * width as f64) as usize;
    Some(match done {
        done if done >= width => format!("[{}] ", "=".repeat(width)),
        done => format!("[{}>{}] ", "=".repeat(done), " ".repeat(width - done - 1)),
    })
}

/// Returns the path in quotes if it needs them, or as many of its last components as fit into `columns`.
/// Returns `None` if not even the last one fits.
fn cut(path: &Path, columns: usize, charset: Charset) -> Option<String> {
    let quoted = |path: &[u8]| quote::if_needed(OsStr::from_bytes(path), charset);
    let path = path.as_os_str().as_bytes();
    // A character takes at most four bytes. So a path that does not begin here is not wider than this.
    let end = &path[path.len().saturating_sub(columns.saturating_mul(4))..];
    if end.len() == path.len() {
        let whole = quoted(path);
        if width(&whole) <= columns {
            return Some(whole);
        }
    }
    let dots = match charset {
        Charset::Utf8 => "…/",
        Charset::Ascii => ".../",
    };
    let slashes = end.iter().enumerate().filter(|&(_, &byte)| byte == b'/');
    let ends = slashes.map(|(slash, _)| &end[slash + 1..]);
    ends.filter(|end| !end.is_empty())
        .map(|end| dots.to_owned() + &quoted(end))
        .find(|end| width(end) <= columns)
}

/// Returns the most columns that a terminal needs for `text`, which holds no control characters.
///
/// A character outside ASCII takes two at most. Without a table of widths, each counts as two.
fn width(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(tool: Tool) -> View {
        View {
            tool,
            entries: 28_826,
            bytes: 2_040_109_466,
            per_second: match tool {
                Tool::Copy => 952 << 20,
                Tool::Remove => 148_414,
            },
            elapsed: Duration::from_secs(3),
            portion: Some(0.4242),
            left: Some(Duration::from_secs(4)),
            ahead: Some(Ahead {
                entries: 60_615,
                bytes: 5_046_586_573,
            }),
            directory: Some("a/source/with/directories".into()),
        }
    }

    #[test]
    fn the_least_important_parts_are_dropped_first() {
        for (columns, line) in [
            (
                200,
                "[==========>              ] 42%  28,826 entries, 1.9 of 4.7 GiB, 952 MiB/s, ETA 0:04  \
                 a/source/with/directories",
            ),
            (
                95,
                "[====>      ] 42%  28,826 entries, 1.9 of 4.7 GiB, 952 MiB/s, ETA 0:04  …/with/directories",
            ),
            (
                79,
                "[====>     ] 42%  28,826 entries, 1.9 of 4.7 GiB, 952 MiB/s, ETA 0:04",
            ),
            (
                60,
                "42%  28,826 entries, 1.9 of 4.7 GiB, 952 MiB/s, ETA 0:04",
            ),
            (50, "42%  1.9 of 4.7 GiB, 952 MiB/s, ETA 0:04"),
            (29, "42%  1.9 of 4.7 GiB, ETA 0:04"),
            (28, "42%  1.9 of 4.7 GiB"),
            (18, "[====>     ] 42%"),
            (15, "42%"),
            (2, "42"),
            (0, ""),
        ] {
            assert_eq!(view(Tool::Copy).line(columns, Charset::Utf8), line);
        }
    }

    #[test]
    fn a_line_shows_what_is_known() {
        let full = || view(Tool::Copy);
        let estimated = || View {
            ahead: None,
            ..full()
        };
        let uncounted = || View {
            portion: None,
            left: None,
            ..estimated()
        };
        let without_bytes = |view: View| View {
            bytes: 0,
            ahead: view.ahead.map(|ahead| Ahead { bytes: 0, ..ahead }),
            ..view
        };
        for (view, columns, line) in [
            (
                view(Tool::Remove),
                79,
                "[====>     ] 42%  28,826 of 60,615 entries, 148,414/s, ETA 0:04  …/directories",
            ),
            // A log has no bar.
            (
                full(),
                usize::MAX,
                "42%  28,826 entries, 1.9 of 4.7 GiB, 952 MiB/s, ETA 0:04  a/source/with/directories",
            ),
            (
                without_bytes(full()),
                50,
                "42%  28,826 of 60,615 entries, ETA 0:04",
            ),
            (without_bytes(full()), 30, "42%  28,826 of 60,615 entries"),
            (
                estimated(),
                79,
                "[====>     ] ~42%  28,826 entries, 1.9 GiB, 952 MiB/s, ETA ~0:04",
            ),
            (
                uncounted(),
                79,
                "28,826 entries, 1.9 GiB, 952 MiB/s, 0:03  a/source/with/directories",
            ),
            (
                View {
                    per_second: 0,
                    ..without_bytes(uncounted())
                },
                22,
                "28,826 entries, 0:03",
            ),
        ] {
            assert_eq!(view.line(columns, Charset::Utf8), line);
        }
    }

    #[test]
    fn no_line_is_too_wide() {
        for tool in [Tool::Copy, Tool::Remove] {
            for ahead in [None, view(tool).ahead] {
                for directory in ["d", "a/日本/語/\n\t/x y", "…/…/…/…", "/"] {
                    let directory = Some(directory.into());
                    let view = View {
                        ahead,
                        directory,
                        ..view(tool)
                    };
                    for columns in 0..150 {
                        let line = view.line(columns, Charset::Utf8);
                        assert!(width(&line) <= columns, "{columns}: {line}");
                    }
                }
            }
        }
    }

    #[test]
    fn totals_are_a_sentence() {
        let totals = Totals {
            tool: Tool::Copy,
            entries: 60_615,
            bytes: 2_791_728_742,
            elapsed: Duration::from_millis(1040),
            moment: Moment::End,
        };
        assert_eq!(
            totals.to_string(),
            "60,615 entries copied, 2.6 GiB in 1.0 s (2.5 GiB/s)"
        );
        let totals = Totals {
            tool: Tool::Remove,
            entries: 1,
            elapsed: Duration::from_secs(65),
            moment: Moment::SoFar,
            ..totals
        };
        assert_eq!(totals.to_string(), "1 entry removed so far in 1:05 (0/s)");
    }
}
