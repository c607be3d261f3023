//! The kinds of runs, and where the figures go.
//!
//! What a run measures replaces what an earlier one found, cell by cell, and is written after each cell: so a long run
//! may be stopped, or split.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context as _, Result};

use crate::{
    Settings,
    calls::{self, Tracer},
    cells::{self, GROUPS, Group},
    command, contention, interrupt,
    machine::{self, Machine},
    markers,
    peers::Programs,
    place::{self, Scratch},
    plan::{CALLS, CONTENTION, Plan},
    plot,
    progress::{self, Progress},
    report,
    results::{CellResult, Results},
    session::Session,
    trees::Trees,
};

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

/// The most telling cells.
pub(crate) fn quick(settings: &Settings) -> Result<()> {
    let book = Book::of(settings, "quick")?;
    let earlier = book.read();
    book.run(settings, Plan::quick(), earlier)
}

/// All cells, or some, or those that are still to be measured.
pub(crate) fn full(settings: &Settings, only: &[String], missing: bool) -> Result<()> {
    let book = Book::of(settings, "full")?;
    let earlier = book.read();
    let mut plan = Plan::full(only)?;
    if missing {
        plan.without(&earlier);
    }
    book.run(settings, plan, earlier)
}

/// Cells by name; the tables go to stdout, the rest to target/benches.
pub(crate) fn some(settings: &Settings, names: &[String]) -> Result<()> {
    let plan = Plan::cells(names)?;
    let nothing = Results::default().taken_over(Machine::probe(), &plan.mode, |_| ());
    let results = run(settings, plan, nothing, |_| Ok(()))?;
    let dir = Path::new(command::repository()).join("target/benches");
    let text = publish(&results, &dir, "cell", |name| {
        dir.join(name).to_string_lossy().into_owned()
    })?;
    println!("{text}");
    Ok(())
}

/// A document with a section of tables, and the directory of the figures and plots that these are made of.
struct Book {
    document: PathBuf,
    dir: PathBuf,
    section: &'static str,
}

impl Book {
    fn of(settings: &Settings, section: &'static str) -> Result<Self> {
        let document = settings.document();
        let dir = document
            .parent()
            .unwrap_or(Path::new("."))
            .join("benches/results");
        let book = Self {
            document,
            dir,
            section,
        };
        // Not after five minutes, or an hour.
        book.with("").map(|_| book)
    }

    /// What earlier runs measured on this machine.
    fn read(&self) -> Results {
        let say = |line: &str| eprintln!("{}: {line}", self.document.display());
        self.parse().taken_over(Machine::probe(), self.section, say)
    }

    /// What is there; nothing if that is not to be read.
    fn parse(&self) -> Results {
        let json = self.dir.join(format!("{}.json", self.section));
        let Ok(text) = fs::read_to_string(&json) else {
            return Results::default();
        };
        serde_json::from_str(&text).unwrap_or_else(|error| {
            eprintln!("{} is not taken over: {error}", json.display());
            Results::default()
        })
    }

    fn run(&self, settings: &Settings, plan: Plan, earlier: Results) -> Result<()> {
        run(settings, plan, earlier, |results| self.write(results)).with_context(|| {
            format!(
                "{} has the cells that were complete",
                self.document.display()
            )
        })?;
        eprintln!(
            "{} and {} are up to date",
            self.document.display(),
            self.dir.display()
        );
        Ok(())
    }

    /// JSON, plots and the document.
    fn write(&self, results: &Results) -> Result<()> {
        let text = publish(results, &self.dir, self.section, |name| {
            format!("benches/results/{name}")
        })?;
        // Somebody may have edited it meanwhile.
        fs::write(&self.document, self.with(&text)?)
            .with_context(|| format!("cannot write {}", self.document.display()))
    }

    /// The document with that text in our section.
    fn with(&self, text: &str) -> Result<String> {
        let document = self.document.display();
        let old = fs::read_to_string(&self.document)
            .with_context(|| format!("cannot read {document}"))?;
        markers::replace(&old, self.section, text).with_context(|| document.to_string())
    }
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

/// Runs what is planned; `save` gets all figures, the earlier ones too, whenever there are new ones.
fn run(
    settings: &Settings,
    mut plan: Plan,
    earlier: Results,
    save: impl Fn(&Results) -> Result<()>,
) -> Result<Results> {
    if let Some(rounds) = settings.rounds {
        plan.at_most(rounds);
    }
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
    let results = measure(settings, &plan, (&scratch, earlier), save);
    scratch.remove()?;
    results
}

fn measure(
    settings: &Settings,
    plan: &Plan,
    (scratch, earlier): (&Scratch, Results),
    save: impl Fn(&Results) -> Result<()>,
) -> Result<Results> {
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
    let stamp = machine::stamp()?;
    let mut results = Results {
        versions,
        notes,
        ..earlier
    };
    let trees = Trees {
        scratch,
        programs: &programs,
        node_modules: settings.node_modules(),
    };
    let session = Session {
        trees,
        progress: &progress,
    };
    for (i, (cell, planned)) in plan.cells.iter().enumerate() {
        progress.begin(&cell.name);
        let mut measured = match plan.limits(i, start.elapsed()) {
            Some(limits) => session.measure(cell, &limits)?,
            None => CellResult::skipped(cell, "no time left"),
        };
        for note in &measured.notes {
            progress.note(&format!("{}: {note}", cell.name));
        }
        measured.stamp.clone_from(&stamp);
        results.put(measured);
        save(&results)?;
        progress.advance(*planned);
    }
    extras(plan, (&session, start), &mut results)?;
    save(&results)?;
    progress.finish();
    Ok(results)
}

fn extras(
    plan: &Plan,
    (session, start): (&Session<'_>, Instant),
    results: &mut Results,
) -> Result<()> {
    let scratch = session.trees.scratch;
    let end = plan.end(start);
    if plan.contention {
        session.progress.begin(CONTENTION);
        if end.is_some_and(|end| Instant::now() >= end) {
            let note = format!("{CONTENTION}: no time left");
            results.notes.push(note);
        } else {
            results.contention = contention::measure(&scratch.subdir(CONTENTION)?)?;
        }
    }
    if plan.calls {
        session.progress.begin(CALLS);
        let counted = Tracer::new(session.trees.programs, scratch)
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
    }
    Ok(())
}
