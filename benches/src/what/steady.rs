//! The cells that show how much the runs of the default number of threads differ.
//!
//! A copy and a removal share a tree and take turns, so that each run comes directly after a large one. The trees are
//! those of the cells in [`Group::Filesystems`].

use std::time::Duration;

use super::{
    cell::{Cell, Group, Place, Runs, Work},
    cells,
};

/// A cell that copies a tree, and the cell that removes the copy.
#[derive(Debug, Clone)]
pub(crate) struct Alternation {
    pub(crate) filesystem: &'static str,
    pub(crate) load: Load,
    pub(crate) copy: Cell,
    pub(crate) remove: Cell,
}

/// The work that the machine does besides the measured command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    Idle,
    /// One core is busy all the time.
    BusyCore,
}

/// Returns every alternation, in the order in which they run.
pub(crate) fn all() -> Vec<Alternation> {
    let cells = cells::all();
    let with = |work| {
        let wanted = move |cell: &&Cell| cell.group == Group::Filesystems && cell.work == work;
        cells.iter().filter(wanted)
    };
    let mut all = Vec::new();
    for load in [Load::Idle, Load::BusyCore] {
        for (copy, remove) in with(Work::Copy).zip(with(Work::Remove)) {
            let Place::New(filesystem) = copy.place else {
                continue;
            };
            all.push(Alternation {
                filesystem,
                load,
                copy: under(load, copy),
                remove: under(load, remove),
            });
        }
    }
    all
}

/// Returns the steady counterpart of a cell.
fn under(load: Load, cell: &Cell) -> Cell {
    let (suffix, with) = match load {
        Load::Idle => ("", ""),
        Load::BusyCore => ("-busy", ", one core busy"),
    };
    Cell {
        name: format!("steady-{}{suffix}", cell.name),
        group: Group::Steady,
        title: format!("{}{with}", cell.title),
        runs: Runs::Selected,
        ..cell.clone()
    }
}

impl Alternation {
    /// Returns about how long a round takes, with two cores and an image in memory. It is only announced.
    pub(crate) fn planned_round(&self) -> Duration {
        let (_, bytes) = self.copy.size();
        let on_tmpfs = if bytes == 0 { 2.0 } else { 4.0 };
        let filesystem = match self.filesystem {
            "tmpfs" => 1.0,
            "ext4" => 2.2,
            _ => 3.0,
        };
        let load = match self.load {
            Load::Idle => 1.0,
            Load::BusyCore => 1.5,
        };
        Duration::from_secs_f64(on_tmpfs * filesystem * load)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_copy_and_its_removal_are_about_the_same_tree() {
        for Alternation { copy, remove, .. } in all() {
            let names = format!("{} and {}", copy.name, remove.name);
            assert_eq!(
                (copy.work, remove.work),
                (Work::Copy, Work::Remove),
                "{names}"
            );
            assert_eq!(
                (copy.tree, copy.place),
                (remove.tree, remove.place),
                "{names}"
            );
        }
    }

    #[test]
    fn each_filesystem_has_empty_files_and_data_on_an_idle_and_on_a_busy_machine() {
        let all = all();
        for filesystem in cells::FILESYSTEMS {
            let here = all
                .iter()
                .filter(|alternation| alternation.filesystem == filesystem);
            let kinds: Vec<_> = here
                .map(|here| (here.load, here.copy.size().1 > 0))
                .collect();
            let expected = [Load::Idle, Load::BusyCore].map(|load| [(load, false), (load, true)]);
            assert_eq!(kinds, expected.concat(), "{filesystem}");
        }
    }

    #[test]
    fn names_differ_from_those_of_all_other_cells() {
        let steady = all()
            .into_iter()
            .flat_map(|both| [both.copy.name, both.remove.name]);
        let names: Vec<_> = steady
            .chain(cells::all().into_iter().map(|cell| cell.name))
            .collect();
        let unique: HashSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
    }
}
