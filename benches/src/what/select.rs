//! Selects cells by the words of a command line.

use anyhow::{Result, ensure};

use super::{
    cell::{Cell, GROUPS},
    cells,
};

/// The name that selects the system calls.
pub(crate) const CALLS: &str = "calls";
/// The name that selects the measurement of contention.
pub(crate) const CONTENTION: &str = "contention";

/// The selected cells and other measurements.
#[derive(Default)]
pub(crate) struct Selected {
    pub(crate) cells: Vec<String>,
    pub(crate) calls: bool,
    pub(crate) contention: bool,
}

impl Selected {
    /// Selects by words, each of which is the name of a cell, or of a group, or else a part of the names of cells.
    pub(crate) fn by(words: &[String]) -> Result<Self> {
        let all = cells::all();
        let mut selected = Self::default();
        for word in words {
            match word.as_str() {
                CALLS => selected.calls = true,
                CONTENTION => selected.contention = true,
                _ => selected.cells.extend(named(&all, word)?),
            }
        }
        Ok(selected)
    }
}

fn named(all: &[Cell], word: &str) -> Result<Vec<String>> {
    let names = |wanted: &dyn Fn(&Cell) -> bool| -> Vec<String> {
        let cells = all.iter().filter(|cell| wanted(cell));
        cells.map(|cell| cell.name.clone()).collect()
    };
    let found = if all.iter().any(|cell| cell.name == word) {
        vec![word.to_owned()]
    } else if GROUPS.iter().any(|group| group.name() == word) {
        names(&|cell| cell.group.name() == word)
    } else {
        names(&|cell| cell.name.contains(word))
    };
    ensure!(
        !found.is_empty(),
        "there is no cell {word}: `benches list` names them"
    );
    Ok(found)
}
