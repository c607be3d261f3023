//! System calls per file and per directory, of each peer.
//!
//! Four small trees, of which three have more of one thing than the first: the differences are what one more file
//! or directory costs, and what a process costs by itself falls out.

use std::time::Instant;

use anyhow::Result;

use super::tracer::{Tracer, Uniform};
use crate::{
    host::interrupt,
    results::CallsRow,
    what::{
        cells::Work,
        peers::{self, Peer},
    },
};

/// What the trees of the table are compared with: large enough that who shares the work how hardly shows.
const TABLE: Uniform = Uniform {
    dirs: 40,
    files: 20,
    file_bytes: 0,
};

/// One row per peer that is there; what goes wrong becomes a note, and what would begin after `end`, too.
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
