//! The document that gets the tables, and the files of figures and plots beside it.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use super::{markers, plot, report};
use crate::{
    host::machine::Machine,
    results::Results,
    what::cells::{GROUPS, Group},
};

/// A page with a section of tables, and the directory of the figures and plots behind them.
pub(crate) struct Document {
    page: PathBuf,
    dir: PathBuf,
    section: &'static str,
}

impl Document {
    /// Checks that `page` has the markers of `section`, so that a missing one is an error before a long run.
    pub(crate) fn open(page: PathBuf, section: &'static str) -> Result<Self> {
        let dir = page
            .parent()
            .unwrap_or(Path::new("."))
            .join("benches/results");
        let document = Self { page, dir, section };
        document.with("").map(|_| document)
    }

    /// Returns the figures of earlier runs on this machine.
    pub(crate) fn read(&self) -> Results {
        let log = |line: &str| eprintln!("{}: {line}", self.page.display());
        self.parse().carry_over(Machine::probe(), self.section, log)
    }

    /// Reads the file of figures; without one, or without a readable one, there are none.
    fn parse(&self) -> Results {
        let json = self.dir.join(format!("{}.json", self.section));
        let Ok(text) = fs::read_to_string(&json) else {
            return Results::default();
        };
        serde_json::from_str(&text).unwrap_or_else(|error| {
            eprintln!("{} is ignored: {error}", json.display());
            Results::default()
        })
    }

    /// Writes the figures, the plots and the section.
    pub(crate) fn write(&self, results: &Results) -> Result<()> {
        let text = publish(results, &self.dir, self.section)?;
        // The page is read again, because the user may have edited it during the run.
        fs::write(&self.page, self.with(&text)?)
            .with_context(|| format!("cannot write {}", self.page.display()))
    }

    /// Returns the page with `text` in its section.
    fn with(&self, text: &str) -> Result<String> {
        let page = self.page.display();
        let old = fs::read_to_string(&self.page).with_context(|| format!("cannot read {page}"))?;
        markers::replace(&old, self.section, text).with_context(|| page.to_string())
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.page.display().fmt(f)
    }
}

/// Writes figures and plots into `dir`, and returns the tables as Markdown.
pub(crate) fn publish(results: &Results, dir: &Path, stem: &str) -> Result<String> {
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
            drawn.push((group, format!("benches/results/{name}")));
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
