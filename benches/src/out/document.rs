//! The page that sums up all runs, and the files of figures, tables and plots that it links to.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use super::{details, libraries, markers, plot, readme, report, steady, store};
use crate::{
    results::{CellResult, Results},
    what::cell::{GROUPS, Group},
};

/// The directory of the files, relative to the page.
const RESULTS: &str = "benches/results";

/// A section of the page, whose figures are those of one kind of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Quick,
    Full,
    Steady,
    Libraries,
}

impl Section {
    pub(crate) const ALL: [Self; 4] = [Self::Quick, Self::Full, Self::Steady, Self::Libraries];

    /// Returns the name in the markers, and the stem of the files.
    fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
            Self::Steady => "steady",
            Self::Libraries => "libraries",
        }
    }

    /// Returns the page of the section, if that of most sections is `document`.
    fn page(self, document: PathBuf) -> PathBuf {
        match self {
            Self::Quick | Self::Full | Self::Steady => document,
            Self::Libraries => document.with_file_name("fuc_engine/README.md"),
        }
    }
}

/// A page with a section of tables, and the directory of their figures and plots.
pub(crate) struct Document {
    page: PathBuf,
    dir: PathBuf,
    section: Section,
}

impl Document {
    /// Opens the page of `section`; that of most sections is `document`. Checks that it has the markers, so that a
    /// missing one is an error before a long run.
    pub(crate) fn open(document: PathBuf, section: Section) -> Result<Self> {
        let dir = document.parent().unwrap_or(Path::new(".")).join(RESULTS);
        let page = section.page(document);
        let document = Self { page, dir, section };
        document.with("").map(|_| document)
    }

    /// Returns the figures of earlier runs, to which a run adds its own.
    pub(crate) fn read(&self) -> Results {
        Results {
            mode: self.section.name().to_owned(),
            ..self.parse()
        }
    }

    /// Returns the figures of earlier runs; if their file cannot be read, there are none.
    pub(crate) fn parse(&self) -> Results {
        let file = self.figures();
        store::read(&file).unwrap_or_else(|error| {
            eprintln!("{} is ignored: {error:#}", file.display());
            Results::default()
        })
    }

    /// Writes the section again from the figures of earlier runs. A section without such figures stays as it is.
    pub(crate) fn rewrite(&self) -> Result<()> {
        if self.figures().exists() {
            self.write(&self.parse())?;
        }
        Ok(())
    }

    fn figures(&self) -> PathBuf {
        store::file(&self.dir, self.section.name())
    }

    /// Writes the section, and the files of figures, tables and plots.
    pub(crate) fn write(&self, results: &Results) -> Result<()> {
        let files = Files {
            dir: &self.dir,
            stem: self.section.name(),
        };
        files.write(results)?;
        let details = format!("{RESULTS}/{}.md", self.section.name());
        let text = match self.section {
            Section::Quick | Section::Full => report::section(results, &details),
            Section::Steady => steady::section(results, &details),
            Section::Libraries => libraries::section(results, &format!("../{details}")),
        };
        // The page is read again, because the user may have edited it during the run.
        fs::write(&self.page, self.with(&text)?)
            .with_context(|| format!("cannot write {}", self.page.display()))?;
        match self.readme() {
            Some(page) => readme::write(results, &self.dir, &page),
            None => Ok(()),
        }
    }

    /// Returns the README beside the page, if the section has figures for it.
    fn readme(&self) -> Option<PathBuf> {
        let readme = self.page.with_file_name("README.md");
        (self.section == Section::Full && readme.exists()).then_some(readme)
    }

    /// Returns the page with `text` in its section.
    fn with(&self, text: &str) -> Result<String> {
        let page = self.page.display();
        let old = fs::read_to_string(&self.page).with_context(|| format!("cannot read {page}"))?;
        markers::replace(&old, self.section.name(), text).with_context(|| page.to_string())
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.page.display().fmt(f)
    }
}

/// The files in a directory that belong to one run.
pub(crate) struct Files<'a> {
    pub(crate) dir: &'a Path,
    /// The part before the extension of their names.
    pub(crate) stem: &'a str,
}

impl Files<'_> {
    /// Writes the figures, the plots and the page of all figures. Returns that page.
    pub(crate) fn write(&self, results: &Results) -> Result<String> {
        let Self { dir, stem } = self;
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        store::write(results, &store::file(dir, stem))?;
        let mut drawn = Vec::new();
        // A plot shows medians, and the steadiness is about the runs around them. The page of the libraries shows
        // the tables alone.
        let is_drawn = |group: &&Group| !matches!(group, Group::Steady | Group::Libraries);
        for &group in GROUPS.iter().filter(is_drawn) {
            let of_group = |cell: &&CellResult| cell.group == group.name();
            let cells: Vec<_> = results.cells.iter().filter(of_group).collect();
            if plot::draw(&cells, plot::Theme::LIGHT, &dir.join(self.plot(group)))? {
                drawn.push(group);
            }
        }
        let plot = |group| drawn.contains(&group).then(|| self.plot(group));
        let page = details::page(results, plot);
        let file = dir.join(format!("{stem}.md"));
        fs::write(&file, &page).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(page)
    }

    fn plot(&self, group: Group) -> String {
        format!("{}-{}.svg", self.stem, group.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::command;

    #[test]
    fn the_committed_tables_and_plots_are_those_of_the_committed_figures() {
        let scratch = tempfile::tempdir().unwrap();
        let [root, again] = [Path::new(command::repository()), scratch.path()];
        let pages = ["Benchmarks.md", "README.md", "fuc_engine/README.md"].map(Path::new);
        fs::create_dir(again.join("fuc_engine")).unwrap();
        for page in pages {
            fs::copy(root.join(page), again.join(page)).unwrap();
        }
        for section in Section::ALL {
            let [committed, again] =
                [root, again].map(|dir| Document::open(dir.join("Benchmarks.md"), section));
            let committed = committed.unwrap();
            if committed.figures().exists() {
                again.unwrap().write(&committed.parse()).unwrap();
            }
        }
        let made = fs::read_dir(again.join(RESULTS)).unwrap();
        let made = made.map(|file| Path::new(RESULTS).join(file.unwrap().file_name()));
        for file in made.chain(pages.map(Path::to_owned)) {
            let same = fs::read(root.join(&file)).unwrap() == fs::read(again.join(&file)).unwrap();
            assert!(same, "{}: run `benches tables`", file.display());
        }
    }
}
