//! The kinds of runs: which cells, for how long, and where the figures go.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use crate::{
    Settings,
    calls::{self, Tracer},
    cells::{self, Cell, GROUPS, Group},
    command, contention, interrupt,
    machine::{self, Machine},
    markers,
    peers::Programs,
    place::{self, Scratch},
    plot,
    progress::{self, Progress},
    report,
    results::Results,
    session::Session,
    trees::Trees,
};

/// What a quick run's cells get together; with the rest it stays below five minutes.
const QUICK: Duration = Duration::from_secs(240);
/// For the system calls and the contention.
const EXTRAS: Duration = Duration::from_secs(25);
/// Two more names that `cell` knows.
const CALLS: &str = "calls";
const CONTENTION: &str = "contention";

/// What is to be run.
struct Plan {
    mode: String,
    cells: Vec<(Cell, Duration)>,
    calls: bool,
    contention: bool,
    /// The cells together may not take longer: who takes more leaves less to the others.
    limit: Option<Duration>,
}

impl Plan {
    fn total(&self) -> Duration {
        let extras = u32::from(self.calls || self.contention) * EXTRAS;
        self.cells.iter().map(|(_, time)| *time).sum::<Duration>() + extras
    }

    /// What a cell gets of the time that is left `elapsed` after the start: the share that was planned.
    fn budget(&self, cell: usize, elapsed: Duration) -> Duration {
        let left = &self.cells[cell..];
        let planned: Duration = left.iter().map(|(_, time)| *time).sum();
        let time = self
            .limit
            .map_or(planned, |limit| limit.saturating_sub(elapsed));
        time.mul_f64(left[0].1.as_secs_f64() / planned.as_secs_f64())
    }

    fn space_bytes(&self) -> u64 {
        self.cells
            .iter()
            .map(|(cell, _)| cell.space_bytes())
            .max()
            .unwrap_or(0)
    }
}

/// Names the cells, on stdout.
pub(crate) fn list() {
    for cell in cells::all() {
        println!(
            "{:24} {}{}",
            cell.name,
            cell.title,
            if cell.quick { " (quick)" } else { "" }
        );
    }
    println!("{CALLS:24} system calls per file and per directory, of each peer (quick)");
    println!(
        "{CONTENTION:24} threads that create and delete files in one directory, or each in its own (quick)"
    );
}

/// The quick cells, each with a share of the time as its size demands.
pub(crate) fn quick(settings: &Settings) -> Result<()> {
    let cells: Vec<_> = cells::all().into_iter().filter(|cell| cell.quick).collect();
    let weights: Vec<_> = cells
        .iter()
        .map(|cell| cell.full_seconds().min(60.0))
        .collect();
    let all: f64 = weights.iter().sum();
    let shares = weights.iter().map(|weight| QUICK.mul_f64(weight / all));
    let cells = cells.into_iter().zip(shares).collect();
    written(
        settings,
        &Plan {
            mode: "quick".to_owned(),
            cells,
            calls: true,
            contention: true,
            limit: Some(QUICK),
        },
    )
}

/// All cells.
pub(crate) fn full(settings: &Settings) -> Result<()> {
    let time = |cell: &Cell| Duration::from_secs_f64(cell.full_seconds());
    let cells = cells::all()
        .into_iter()
        .map(|cell| (cell.clone(), time(&cell)))
        .collect();
    written(
        settings,
        &Plan {
            mode: "full".to_owned(),
            cells,
            calls: true,
            contention: true,
            limit: None,
        },
    )
}

/// Cells by name; the tables go to stdout, the rest to target/benches.
pub(crate) fn some(settings: &Settings, names: &[String]) -> Result<()> {
    let known = cells::all();
    let mut plan = Plan {
        mode: names.join(" "),
        cells: Vec::new(),
        calls: false,
        contention: false,
        limit: None,
    };
    for name in names {
        match name.as_str() {
            CALLS => plan.calls = true,
            CONTENTION => plan.contention = true,
            _ => {
                let Some(cell) = known.iter().find(|cell| cell.name == *name) else {
                    bail!("there is no cell {name}: `benches list` names them");
                };
                plan.cells
                    .push((cell.clone(), Duration::from_secs_f64(cell.full_seconds())));
            }
        }
    }
    let results = run(settings, &plan)?;
    let dir = Path::new(command::repository()).join("target/benches");
    let text = publish(&results, &dir, "cell", |name| {
        dir.join(name).to_string_lossy().into_owned()
    })?;
    println!("{text}");
    Ok(())
}

/// Runs, and writes JSON, plots and the document.
fn written(settings: &Settings, plan: &Plan) -> Result<()> {
    let document = settings.document();
    let old = fs::read_to_string(&document)
        .with_context(|| format!("cannot read {}", document.display()))?;
    // Not after five minutes, or hours.
    markers::replace(&old, &plan.mode, "").with_context(|| document.display().to_string())?;
    let results = run(settings, plan)?;
    let dir = document
        .parent()
        .unwrap_or(Path::new("."))
        .join("benches/results");
    let text = publish(&results, &dir, &plan.mode, |name| {
        format!("benches/results/{name}")
    })?;
    // Somebody may have edited it meanwhile.
    let old = fs::read_to_string(&document)
        .with_context(|| format!("cannot read {}", document.display()))?;
    let new = markers::replace(&old, &plan.mode, &text)
        .with_context(|| document.display().to_string())?;
    fs::write(&document, new).with_context(|| format!("cannot write {}", document.display()))?;
    eprintln!(
        "{} and {} are up to date",
        document.display(),
        dir.display()
    );
    Ok(())
}

/// Writes JSON and plots into `dir`; returns the Markdown, in which `link` makes a path of a plot's name.
fn publish(
    results: &Results,
    dir: &Path,
    stem: &str,
    link: impl Fn(&str) -> String,
) -> Result<String> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let json = dir.join(format!("{stem}.json"));
    fs::write(&json, serde_json::to_string_pretty(results)? + "\n")
        .with_context(|| format!("cannot write {}", json.display()))?;
    let mut drawn = Vec::new();
    for &group in GROUPS {
        let cells: Vec<_> = results
            .cells
            .iter()
            .filter(|cell| cell.group == group.name())
            .collect();
        let name = format!("{stem}-{}.svg", group.name());
        if plot::draw(&cells, &dir.join(&name))? {
            drawn.push((group, link(&name)));
        }
    }
    let plot = |group: Group| {
        drawn
            .iter()
            .find(|(g, _)| *g == group)
            .map(|(_, path)| path.clone())
    };
    Ok(report::document(results, plot))
}

fn run(settings: &Settings, plan: &Plan) -> Result<Results> {
    interrupt::listen()?;
    let root = Path::new(command::repository());
    command::build(
        root,
        &command::target_dir()?,
        &["rmz", "cpz", "comparisons"],
    )?;
    let scratch = Scratch::new(settings.dir.as_deref())?;
    eprintln!(
        "{}: {} cells, about {}; at most {:.1} GB in {} ({}, {:.1} GB free)",
        plan.mode,
        plan.cells.len(),
        progress::show(plan.total()),
        plan.space_bytes() as f64 / 1e9,
        scratch.path().display(),
        machine::filesystem(scratch.path())?,
        place::free_bytes(scratch.path())? as f64 / 1e9,
    );
    let results = measure(settings, plan, &scratch);
    scratch.remove()?;
    results
}

fn measure(settings: &Settings, plan: &Plan, scratch: &Scratch) -> Result<Results> {
    let start = Instant::now();
    let programs = Programs::link(scratch.path().join("bin"), &settings.peers())?;
    for program in ["hyperfine", "ftzz", "rmz", "cpz"] {
        programs.need(program)?;
    }
    let (versions, notes) = programs.versions();
    let progress = Progress::new(plan.total());
    for note in &notes {
        progress.note(note);
    }
    let mut results = Results {
        mode: plan.mode.clone(),
        machine: Machine::probe(scratch.path())?,
        versions,
        notes,
        cells: Vec::new(),
        calls: Vec::new(),
        contention: Vec::new(),
        seconds: 0.0,
    };
    let trees = Trees {
        scratch,
        programs: &programs,
        node_modules: settings.node_modules.as_deref(),
    };
    let session = Session {
        trees,
        progress: &progress,
    };
    for (i, (cell, planned)) in plan.cells.iter().enumerate() {
        progress.begin(&cell.name);
        let measured = session.measure(cell, plan.budget(i, start.elapsed()))?;
        for note in &measured.notes {
            progress.note(&format!("{}: {note}", cell.name));
        }
        results.cells.push(measured);
        progress.advance(*planned);
    }
    extras(plan, &session, &mut results)?;
    progress.finish();
    results.seconds = start.elapsed().as_secs_f64();
    Ok(results)
}

fn extras(plan: &Plan, session: &Session<'_>, results: &mut Results) -> Result<()> {
    let scratch = session.trees.scratch;
    if plan.contention {
        session.progress.begin(CONTENTION);
        results.contention = contention::measure(&scratch.subdir(CONTENTION)?)?;
    }
    if plan.calls {
        session.progress.begin(CALLS);
        let counted =
            Tracer::new(session.trees.programs, scratch).and_then(|tracer| calls::table(&tracer));
        interrupt::check()?;
        match counted {
            Ok((rows, notes)) => {
                results.calls = rows;
                results.notes.extend(notes);
            }
            Err(error) => results
                .notes
                .push(format!("no system calls counted: {error:#}")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_more_leaves_less_to_the_others() {
        let seconds = Duration::from_secs;
        let cells: Vec<_> = cells::all()
            .into_iter()
            .zip([10, 30, 60].map(seconds))
            .collect();
        let plan = |limit| Plan {
            mode: String::new(),
            cells: cells.clone(),
            calls: false,
            contention: false,
            limit,
        };
        assert_eq!(plan(None).budget(1, seconds(70)), seconds(30));
        assert_eq!(plan(Some(seconds(100))).budget(1, seconds(10)), seconds(30));
        assert_eq!(plan(Some(seconds(100))).budget(1, seconds(70)), seconds(10));
        assert_eq!(
            plan(Some(seconds(100))).budget(2, seconds(170)),
            Duration::ZERO
        );
    }
}
