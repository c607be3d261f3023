//! Executes a schedule: builds the commands, runs the cells, and then counts calls and measures contention.

use std::{path::Path, time::Instant};

use anyhow::Result;

use super::{
    calls, contention,
    place::{self, Scratch},
    programs::Programs,
    schedule::Schedule,
    session::Session,
    steady,
    tracer::Tracer,
    trees::Trees,
};
use crate::{
    Settings,
    host::{
        command, interrupt,
        machine::{self, Stamp},
        progress::{self, Progress},
    },
    results::{CellResult, Results},
    what::{
        select::{CALLS, CONTENTION},
        steady::Alternation,
    },
};

/// Runs what is scheduled, and returns it together with the `earlier` figures.
///
/// Calls `save` with all figures whenever there are new ones.
pub(crate) fn execute(
    settings: &Settings,
    mut schedule: Schedule,
    earlier: Results,
    save: impl Fn(&Results) -> Result<()>,
) -> Result<Results> {
    if let Some(rounds) = settings.rounds {
        schedule.at_most(rounds);
    }
    interrupt::listen()?;
    let root = Path::new(command::repository());
    let target_dir = command::target_dir()?;
    command::build_commands(root, &target_dir)?;
    command::build(root, &target_dir, &["comparisons"], None)?;
    let scratch = Scratch::new(settings.dir.as_deref())?;
    eprintln!(
        "{}: {} cells, about {}; at most {:.1} GB in {} ({}, {:.1} GB free)",
        schedule.mode,
        schedule.len(),
        progress::show(schedule.total()),
        schedule.space_bytes() as f64 / 1e9,
        scratch.path().display(),
        machine::filesystem(scratch.path())?,
        place::free_bytes(scratch.path())? as f64 / 1e9,
    );
    let results = measure(settings, &schedule, &scratch, earlier, save);
    scratch.remove()?;
    results
}

fn measure(
    settings: &Settings,
    schedule: &Schedule,
    scratch: &Scratch,
    earlier: Results,
    save: impl Fn(&Results) -> Result<()>,
) -> Result<Results> {
    let start = Instant::now();
    let programs = Programs::link(scratch.path().join("bin"), &settings.peers())?;
    for program in ["hyperfine", "ftzz", "rmz", "cpz"] {
        programs.need(program)?;
    }
    let (versions, notes) = programs.versions();
    let progress = Progress::new(schedule.total());
    for note in &notes {
        progress.note(note);
    }
    let mut results = Results {
        versions,
        notes,
        ..earlier
    };
    let session = Session {
        trees: Trees {
            scratch,
            programs: &programs,
            node_modules: settings.node_modules(),
        },
        progress: &progress,
    };
    measure_cells(schedule, &session, start, &mut results, &save)?;
    measure_alternations(schedule, &session, &mut results, &save)?;
    let end = schedule.end(start);
    if schedule.contention {
        measure_contention(&session, end, &mut results)?;
    }
    if schedule.calls {
        count_calls(&session, end, &mut results)?;
    }
    save(&results)?;
    progress.finish();
    Ok(results)
}

fn measure_cells(
    schedule: &Schedule,
    session: &Session<'_>,
    start: Instant,
    results: &mut Results,
    save: &impl Fn(&Results) -> Result<()>,
) -> Result<()> {
    let stamp = machine::stamp()?;
    for (i, (cell, planned)) in schedule.cells.iter().enumerate() {
        session.progress.begin(&cell.name);
        let measured = match schedule.limits(i, start.elapsed()) {
            Some(limits) => session.measure(cell, &limits)?,
            None => CellResult::skipped(cell, "no time left"),
        };
        record(measured, &stamp, session, results);
        save(results)?;
        session.progress.advance(*planned);
    }
    Ok(())
}

fn measure_alternations(
    schedule: &Schedule,
    session: &Session<'_>,
    results: &mut Results,
    save: &impl Fn(&Results) -> Result<()>,
) -> Result<()> {
    let stamp = machine::stamp()?;
    for alternation in &schedule.alternations {
        let Alternation { copy, remove, .. } = alternation;
        session
            .progress
            .begin(&format!("{}, {}", copy.name, remove.name));
        for measured in steady::measure(session, alternation, schedule.steady_rounds())? {
            record(measured, &stamp, session, results);
        }
        save(results)?;
        session.progress.advance(schedule.steady_time(alternation));
    }
    Ok(())
}

/// Adds a cell to the results, and prints its notes.
fn record(mut measured: CellResult, stamp: &Stamp, session: &Session<'_>, results: &mut Results) {
    for note in &measured.notes {
        session.progress.note(&format!("{}: {note}", measured.name));
    }
    measured.stamp.clone_from(stamp);
    results.put(measured);
}

fn measure_contention(
    session: &Session<'_>,
    end: Option<Instant>,
    results: &mut Results,
) -> Result<()> {
    session.progress.begin(CONTENTION);
    if end.is_some_and(|end| Instant::now() >= end) {
        results.notes.push(format!("{CONTENTION}: no time left"));
    } else {
        let dir = session.trees.scratch.subdir(CONTENTION)?;
        results.contention = contention::measure(&dir)?;
    }
    Ok(())
}

fn count_calls(session: &Session<'_>, end: Option<Instant>, results: &mut Results) -> Result<()> {
    session.progress.begin(CALLS);
    let counted = Tracer::new(session.trees.programs, session.trees.scratch)
        .and_then(|tracer| calls::table(&tracer, end));
    interrupt::check()?;
    match counted {
        Ok((rows, notes)) => {
            if !rows.is_empty() {
                results.calls = rows;
            }
            results.notes.extend(notes);
        }
        Err(error) => results
            .notes
            .push(format!("no system calls counted: {error:#}")),
    }
    Ok(())
}
