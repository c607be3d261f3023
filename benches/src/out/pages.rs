//! The pages that show figures, and the file that the figures are from.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};

use super::{plot, readme, tables};
use crate::results::Results;

/// The pages of a repository.
pub(crate) struct Pages {
    root: PathBuf,
}

impl Pages {
    /// Returns the pages of the repository at `root`.
    pub(crate) fn of(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns the file of the figures.
    pub(crate) fn figures(&self) -> PathBuf {
        self.root.join("benches/results.jsonl")
    }

    /// Writes the figures into all pages, and draws the plot.
    ///
    /// # Errors
    /// If a page lacks a marker, or if a file cannot be written.
    pub(crate) fn write(&self, results: &Results) -> Result<()> {
        self.replace("Benchmarks.md", "figures", |_| tables::figures(results))?;
        self.replace("fuc_engine/README.md", "libraries", |_| {
            tables::libraries(results)
        })?;
        self.replace("README.md", "headline", |_| readme::headline(results))?;
        self.replace("README.md", "tools", |old| readme::tools(results, old))?;
        let plot = self.root.join(readme::PLOT);
        let context = || format!("cannot write {}", plot.display());
        fs::write(&plot, plot::draw(&readme::panels(results))).with_context(context)
    }

    /// Replaces the text between the markers of `section`, which `new` makes from the old one.
    fn replace(&self, page: &str, section: &str, new: impl Fn(&str) -> String) -> Result<()> {
        let file = self.root.join(page);
        let old = fs::read_to_string(&file).with_context(|| format!("cannot read {page}"))?;
        let text = replace(&old, section, new).with_context(|| page.to_owned())?;
        fs::write(&file, text).with_context(|| format!("cannot write {page}"))
    }
}

/// Returns `page` with other text between the markers of `section`, which `new` makes from the old one.
///
/// # Errors
/// If a marker is missing.
fn replace(page: &str, section: &str, new: impl Fn(&str) -> String) -> Result<String> {
    let (open, close) = (
        format!("<!-- benches {section} -->"),
        format!("<!-- end of benches {section} -->"),
    );
    let missing = |marker: &str| format!("there is no line {marker}");
    let (before, rest) = page.split_once(&open).with_context(|| missing(&open))?;
    let (old, after) = rest.split_once(&close).with_context(|| missing(&close))?;
    let text = new(old);
    Ok(format!(
        "{before}{open}\n\n{}\n\n{close}{after}",
        text.trim()
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::host::command;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let page = "a\n<!-- benches figures -->\nold\n<!-- end of benches figures -->\nz\n";
        let once = replace(page, "figures", |_| "new\n".to_owned()).unwrap();
        assert_eq!(
            once,
            "a\n<!-- benches figures -->\n\nnew\n\n<!-- end of benches figures -->\nz\n"
        );
        assert_eq!(replace(&once, "figures", str::to_owned).unwrap(), once);
    }

    #[test]
    fn a_missing_marker_is_an_error() {
        let error = |page| {
            replace(page, "tools", str::to_owned)
                .unwrap_err()
                .to_string()
        };
        assert!(error("<!-- benches tools -->").contains("end of benches tools"));
        assert!(error("").contains("benches tools"));
    }

    #[test]
    fn the_committed_pages_are_those_of_the_committed_figures() {
        let scratch = tempfile::tempdir().unwrap();
        let [root, again] = [Path::new(command::repository()), scratch.path()];
        let files = [
            "Benchmarks.md",
            "README.md",
            "fuc_engine/README.md",
            readme::PLOT,
        ];
        for file in files {
            fs::create_dir_all(again.join(file).parent().unwrap()).unwrap();
            fs::copy(root.join(file), again.join(file)).unwrap();
        }
        let results = Results::read(&Pages::of(root).figures()).unwrap();
        Pages::of(again).write(&results).unwrap();
        for file in files {
            let same = fs::read(root.join(file)).unwrap() == fs::read(again.join(file)).unwrap();
            assert!(same, "{file}: run `benches tables`");
        }
    }
}
