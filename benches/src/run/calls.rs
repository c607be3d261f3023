//! Counts the system calls of each peer per file and per directory.
//!
//! There are four small trees. Three of them have more of one thing than the first, so the difference is the cost of
//! one more file or directory. The cost of starting a process cancels out.

use std::time::Instant;

use anyhow::Result;

use super::tracer::{Tracer, Uniform};
use crate::{
    host::interrupt,
    results::CallsRow,
    what::{
        cell::Work,
        peers::{self, Peer},
    },
};

/// The first tree, large enough that differences in scheduling vanish.
const TABLE: Uniform = Uniform {
    dirs: 40,
    files: 20,
    file_bytes: 0,
};

/// Returns a row for each installed peer. A failure becomes a note, and so does a peer that would begin after `end`.
pub(crate) fn table(
    tracer: &Tracer<'_>,
    end: Option<Instant>,
) -> Result<(Vec<CallsRow>, Vec<String>)> {
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    for (work, set) in [(Work::Remove, peers::REMOVE), (Work::Copy, peers::COPY)] {
        for peer in set.iter().filter(|peer| tracer.programs.has(peer.program)) {
            if end.is_some_and(|end| Instant::now() >= end) {
                notes.push(format!("calls of {}: no time left", peer.label));
                continue;
            }
            match row(tracer, work, peer) {
                Ok(row) => rows.push(row),
                Err(error) => {
                    interrupt::check()?;
                    notes.push(format!("calls of {}: {error:#}", peer.label));
                }
            }
        }
    }
    Ok((rows, notes))
}

fn row(tracer: &Tracer<'_>, work: Work, peer: &Peer) -> Result<CallsRow> {
    let total = |tree| {
        Ok::<_, anyhow::Error>(tracer.trace(peer.command, tree)?.values().sum::<u64>() as f64)
    };
    let base = total(TABLE)?;
    let more_files = total(Uniform {
        files: 2 * TABLE.files,
        ..TABLE
    })?;
    let more_dirs = total(Uniform {
        dirs: 2 * TABLE.dirs,
        ..TABLE
    })?;
    let data = total(Uniform {
        file_bytes: 4096,
        ..TABLE
    })?;
    let files = (TABLE.dirs * TABLE.files) as f64;
    let per_empty_file = (more_files - base) / files;
    Ok(CallsRow {
        work: if work == Work::Remove {
            "remove"
        } else {
            "copy"
        }
        .to_owned(),
        peer: peer.label.to_owned(),
        per_empty_file,
        per_data_file: per_empty_file + (data - base) / files,
        per_dir: (more_dirs - base) / TABLE.dirs as f64 - per_empty_file * TABLE.files as f64,
    })
}
