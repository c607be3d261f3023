//! The kinds of runs, and where their figures go.
//!
//! A new figure replaces the earlier one of the same cell, and the files are written after each cell. A long run may
//! therefore be stopped, continued, or split.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::{
    Settings,
    host::command,
    out::document::{Document, Files, Section},
    results::Results,
    run::{execute::execute, schedule::Schedule},
    what::{
        cell::Runs,
        cells,
        select::{CALLS, CONTENTION},
        steady::Load,
    },
};

/// Prints the names of the cells.
pub(crate) fn list() {
    for cell in cells::all() {
        println!(
            "{:26} {}{}",
            cell.name,
            cell.title,
            match cell.runs {
                Runs::QuickAndFull => " (quick)",
                Runs::Full => "",
                Runs::Selected => " (only if selected)",
            }
        );
    }
    println!("{CALLS:26} system calls per file and per directory, of each peer (quick)");
    println!(
        "{CONTENTION:26} threads that create and delete files in one directory, or each in its own (quick)"
    );
}

/// Measures the most telling cells.
pub(crate) fn quick(settings: &Settings) -> Result<()> {
    let document = Document::open(settings.document(), Section::Quick)?;
    let earlier = document.read();
    update(settings, &document, Schedule::quick(), earlier)
}

/// Measures all cells, or those that `only` selects, or those that have no figures yet.
pub(crate) fn full(settings: &Settings, only: &[String], missing: bool) -> Result<()> {
    let document = Document::open(settings.document(), Section::Full)?;
    let earlier = document.read();
    let mut schedule = Schedule::full(only)?;
    if missing {
        schedule.without(&earlier);
    }
    update(settings, &document, schedule, earlier)
}

/// Measures how much the runs of the default number of threads differ, on the filesystems that `only` names or on all.
pub(crate) fn steady(settings: &Settings, only: &[String], load: Load) -> Result<()> {
    let document = Document::open(settings.document(), Section::Steady)?;
    let earlier = document.read();
    update(settings, &document, Schedule::steady(only, load)?, earlier)
}

/// Measures the engine and the other libraries.
pub(crate) fn libraries(settings: &Settings) -> Result<()> {
    let document = Document::open(settings.document(), Section::Libraries)?;
    let earlier = document.read();
    update(settings, &document, Schedule::libraries(), earlier)
}

/// Measures cells by name; prints the tables, and writes the files to target/benches.
pub(crate) fn some(settings: &Settings, names: &[String]) -> Result<()> {
    let schedule = Schedule::cells(names)?;
    let nothing = Results {
        mode: schedule.mode.clone(),
        ..Results::default()
    };
    let results = execute(settings, schedule, nothing, |_| Ok(()))?;
    let dir = Path::new(command::repository()).join("target/benches");
    let files = Files {
        dir: &dir,
        stem: "cell",
    };
    println!("{}", files.write(&results)?);
    Ok(())
}

/// Writes all tables and plots again, from the figures of earlier runs.
pub(crate) fn tables(settings: &Settings) -> Result<()> {
    for section in Section::ALL {
        Document::open(settings.document(), section)?.rewrite()?;
    }
    Ok(())
}

fn update(
    settings: &Settings,
    document: &Document,
    schedule: Schedule,
    earlier: Results,
) -> Result<()> {
    execute(settings, schedule, earlier, |results| {
        document.write(results)
    })
    .with_context(|| format!("{document} has the cells that were complete"))?;
    eprintln!("{document} is up to date");
    Ok(())
}
