//! `--itemize`: a line for each dest, with what happened to it and why.
//!
//! The first word of a line never changes its meaning, so that programs can read it.

use std::path::Path;

use fuc_engine::{Change, Event, KeepReason};

use crate::console::Console;

/// Returns the line about an event, if it has one. A failure has its message instead.
pub(crate) fn line(event: Event<'_>, console: &Console) -> Option<String> {
    let (word, path, reason): (_, &Path, _) = match event {
        Event::Removed(path) | Event::RemovedDirectory(path) => ("deleted", path, None),
        Event::MadeParent { dest, .. } => ("new", dest, None),
        Event::Copied { dest, change, .. } => match change {
            Change::New => ("new", dest, None),
            Change::Linked => ("linked", dest, Some("unchanged")),
            Change::OtherType => ("updated", dest, Some("other type")),
            Change::OtherSize => ("updated", dest, Some("other size")),
            Change::OtherTime => ("updated", dest, Some("other time")),
            _ => ("updated", dest, Some("same size and time")),
        },
        Event::SkippedDest { path, reason, .. } => {
            let reason = match reason {
                KeepReason::Exists => "exists",
                KeepReason::NotOlder => "not older",
                KeepReason::Unchanged => "same size and time",
                _ => "declined",
            };
            ("kept", path, Some(reason))
        }
        // A dest that was removed to make room, and a backup, belong to a copy.
        _ => return None,
    };
    let reason = reason.map(|reason| format!(" ({reason})"));
    let path = console.quoted(path);
    Some(format!("{word} {path}{}\n", reason.unwrap_or_default()))
}
