//! Schedules a run: which cells, for how long, and how often.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::rounds::{Fewest, Limits, Overtime};
use crate::{
    results::Results,
    what::{
        cell::{Cell, Group, LARGE_ROUNDS, Place, Runs},
        cells,
        select::Selected,
        steady::{self, Alternation, Load},
    },
};

/// The time of all cells of a quick run; together with the rest it stays below five minutes.
const QUICK: Duration = Duration::from_secs(235);
/// The time of all cells of a full run, unless the fewest rounds take longer.
const FULL: Duration = Duration::from_secs(25 * 60);
/// The approximate time of counting system calls and measuring contention.
const EXTRAS: Duration = Duration::from_secs(45);
/// The most rounds of a cell. More would change no conclusion.
const MOST_ROUNDS: usize = 41;
/// One round shows which commands are far behind. In three, one outlier does not move the median. Which of two commands
/// about as fast is ahead takes more.
const FEWEST_ROUNDS: Fewest = Fewest {
    all: 1,
    front: 3,
    close: 11,
};
/// The fewest rounds of close commands in a cell of [`Group::Slow`] whose requests take [`LATE`] or longer. One run of 15
/// may take twice as long as the median.
const SLOW_ROUNDS: usize = 5;
const LATE: Duration = Duration::from_millis(1);
/// The rounds of an alternation, so that nine of ten runs are 18.
const STEADY_ROUNDS: usize = 20;
/// The rounds of a cell of libraries: enough to show how much they differ.
const LIBRARY_ROUNDS: usize = 7;

/// The cells and other measurements of a run.
pub(crate) struct Schedule {
    pub(crate) mode: String,
    pub(crate) cells: Vec<(Cell, Duration)>,
    pub(crate) alternations: Vec<Alternation>,
    pub(crate) calls: bool,
    pub(crate) contention: bool,
    fewest: Fewest,
    most: usize,
    /// The time of all cells together: a cell that takes longer leaves less to the others.
    limit: Option<Duration>,
}

impl Schedule {
    /// Schedules the quick cells, each with a share of the time in proportion to its size.
    pub(crate) fn quick() -> Self {
        let cells: Vec<_> = cells::all()
            .into_iter()
            .filter(|cell| cell.runs == Runs::QuickAndFull)
            .collect();
        let weights = cells.iter().map(Cell::full_seconds);
        let all: f64 = weights.clone().sum();
        let shares: Vec<_> = weights.map(|weight| QUICK.mul_f64(weight / all)).collect();
        Self {
            mode: "quick".to_owned(),
            cells: cells.into_iter().zip(shares).collect(),
            alternations: Vec::new(),
            calls: true,
            contention: true,
            fewest: Fewest::same(1),
            most: MOST_ROUNDS,
            limit: Some(QUICK),
        }
    }

    /// Schedules all cells but the longest, or those that `only` selects.
    ///
    /// # Errors
    /// If a word of `only` selects no cell.
    pub(crate) fn full(only: &[String]) -> Result<Self> {
        let all = cells::all();
        let usual = |cell: &&Cell| cell.runs != Runs::Selected;
        let wanted: f64 = all.iter().filter(usual).map(Cell::full_seconds).sum();
        let scale = (FULL.as_secs_f64() / wanted).min(1.0);
        let selected = Selected::by(only)?;
        let cells = all
            .into_iter()
            .filter(|cell| match only {
                [] => usual(&cell),
                _ => selected.cells.contains(&cell.name),
            })
            .map(|cell| {
                let seconds = cell.full_seconds() * scale;
                (cell, Duration::from_secs_f64(seconds))
            });
        Ok(Self {
            mode: "full".to_owned(),
            cells: cells.collect(),
            alternations: Vec::new(),
            calls: only.is_empty() || selected.calls,
            contention: only.is_empty() || selected.contention,
            fewest: FEWEST_ROUNDS,
            most: MOST_ROUNDS,
            limit: None,
        })
    }

    /// Schedules the cells that `names` select, for the time that a full run takes for them.
    ///
    /// # Errors
    /// If one of them selects no cell.
    pub(crate) fn cells(names: &[String]) -> Result<Self> {
        Ok(Self {
            mode: names.join(" "),
            ..Self::full(names)?
        })
    }

    /// Schedules the alternations under `load`, on the filesystems that `only` names or on all.
    ///
    /// # Errors
    /// If a word of `only` names no filesystem of them.
    pub(crate) fn steady(only: &[String], load: Load) -> Result<Self> {
        for word in only {
            ensure!(
                cells::FILESYSTEMS.contains(&word.as_str()),
                "there is no cell on {word}, only on {}",
                cells::FILESYSTEMS.join(", ")
            );
        }
        let wanted = |alternation: &Alternation| {
            let named = only.iter().any(|word| word == alternation.filesystem);
            alternation.load == load && (only.is_empty() || named)
        };
        Ok(Self {
            mode: "steady".to_owned(),
            cells: Vec::new(),
            alternations: steady::all().into_iter().filter(wanted).collect(),
            calls: false,
            contention: false,
            fewest: Fewest::same(STEADY_ROUNDS),
            most: STEADY_ROUNDS,
            limit: None,
        })
    }

    /// Schedules the libraries, with the same number of rounds for all of them.
    pub(crate) fn libraries() -> Self {
        let cells = cells::all().into_iter();
        let libraries = cells.filter(|cell| cell.group == Group::Libraries);
        Self {
            mode: "libraries".to_owned(),
            cells: libraries
                .map(|cell| {
                    let seconds = Duration::from_secs_f64(cell.full_seconds());
                    (cell, seconds)
                })
                .collect(),
            alternations: Vec::new(),
            calls: false,
            contention: false,
            fewest: Fewest::same(LIBRARY_ROUNDS),
            most: LIBRARY_ROUNDS,
            limit: None,
        }
    }

    /// Returns the number of rounds of each alternation.
    pub(crate) fn steady_rounds(&self) -> usize {
        self.most
    }

    /// Returns the planned time of an alternation.
    pub(crate) fn steady_time(&self, alternation: &Alternation) -> Duration {
        // One more round checks the commands.
        alternation.planned_round() * (self.most as u32 + 1)
    }

    /// Limits the number of rounds.
    pub(crate) fn at_most(&mut self, rounds: usize) {
        self.most = rounds.max(1);
        // The planned times are meant for eight rounds.
        let part = (self.most as f64 / 8.0).min(1.0);
        for (_, time) in &mut self.cells {
            *time = time.mul_f64(part);
        }
    }

    /// Leaves out the measurements that `earlier` has already.
    pub(crate) fn without(&mut self, earlier: &Results) {
        let measured = |name: &str| earlier.cell(name).is_some_and(|cell| !cell.rows.is_empty());
        self.cells.retain(|(cell, _)| !measured(&cell.name));
        self.calls &= earlier.calls.is_empty();
        self.contention &= earlier.contention.is_empty();
    }

    /// Returns the planned time of the whole run.
    pub(crate) fn total(&self) -> Duration {
        let extras = u32::from(self.calls || self.contention) * EXTRAS;
        let cells: Duration = self.cells.iter().map(|(_, time)| *time).sum();
        let alternations = self.alternations.iter();
        let alternations: Duration = alternations.map(|both| self.steady_time(both)).sum();
        cells + alternations + extras
    }

    /// Returns the time by which a run that began at `start` must be over, if it has a limit.
    pub(crate) fn end(&self, start: Instant) -> Option<Instant> {
        Some(start + self.limit? + EXTRAS)
    }

    /// Returns the limits of a cell, `elapsed` after the start; `None` if there is no time left.
    pub(crate) fn limits(&self, cell: usize, elapsed: Duration) -> Option<Limits> {
        let Cell {
            group, runs, place, ..
        } = self.cells[cell].0;
        let fewest = match (group, place) {
            // Three rounds of the largest would take hours.
            (Group::Slow, _) if runs == Runs::Selected => Fewest::same(1),
            (Group::Slow, Place::Slow { latency }) if latency >= LATE => Fewest {
                close: SLOW_ROUNDS.min(self.fewest.close),
                ..self.fewest
            },
            (Group::Large, _) => Fewest {
                front: LARGE_ROUNDS,
                ..self.fewest
            },
            _ => self.fewest,
        };
        Some(Limits {
            budget: self.budget(cell, elapsed)?,
            fewest: fewest.at_most(self.most),
            most: self.most,
            overtime: match self.limit {
                Some(_) => Overtime::CutShort,
                None => Overtime::Allowed,
            },
        })
    }

    /// Returns the planned share of a cell in the time that is left.
    fn budget(&self, cell: usize, elapsed: Duration) -> Option<Duration> {
        let left = &self.cells[cell..];
        let Some(limit) = self.limit else {
            return Some(left[0].1);
        };
        let planned: Duration = left.iter().map(|(_, time)| *time).sum();
        let time = limit.checked_sub(elapsed)?;
        Some(time.mul_f64(left[0].1.as_secs_f64() / planned.as_secs_f64()))
    }

    /// Returns the number of cells.
    pub(crate) fn len(&self) -> usize {
        self.cells.len() + 2 * self.alternations.len()
    }

    /// Returns how much space the largest cell needs.
    pub(crate) fn space_bytes(&self) -> u64 {
        let cells = self.cells.iter().map(|(cell, _)| cell.space_bytes());
        let alternations = self.alternations.iter();
        let alternations = alternations.map(|both| both.copy.space_bytes());
        cells.chain(alternations).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{CellResult, tests::row};

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    fn names(schedule: &Schedule) -> Vec<&str> {
        schedule
            .cells
            .iter()
            .map(|(cell, _)| cell.name.as_str())
            .collect()
    }

    #[test]
    fn a_cell_that_takes_longer_leaves_less_to_the_others() {
        let seconds = Duration::from_secs;
        let cells: Vec<_> = cells::all()
            .into_iter()
            .zip([10, 30, 60].map(seconds))
            .collect();
        let schedule = |limit| Schedule {
            cells: cells.clone(),
            limit,
            ..Schedule::quick()
        };
        let limited = schedule(Some(seconds(100)));
        assert_eq!(schedule(None).budget(1, seconds(70)), Some(seconds(30)));
        assert_eq!(limited.budget(1, seconds(10)), Some(seconds(30)));
        assert_eq!(limited.budget(1, seconds(70)), Some(seconds(10)));
        assert_eq!(limited.budget(2, seconds(101)), None);
    }

    #[test]
    fn a_quick_run_is_planned_for_less_than_five_minutes_and_a_full_one_for_half_an_hour() {
        assert!(Schedule::quick().total() < Duration::from_secs(290));
        assert!(Schedule::full(&[]).unwrap().total() < Duration::from_secs(1800));
    }

    #[test]
    fn alternations_are_selected_by_load_and_by_filesystem() {
        let select = |only: &[&str], load| {
            let schedule = Schedule::steady(&words(only), load).unwrap();
            let copies = schedule.alternations.into_iter();
            copies.map(|both| both.copy.name).collect::<Vec<_>>()
        };
        assert_eq!(
            select(&["xfs"], Load::Idle),
            ["steady-xfs-copy", "steady-xfs-copy-data"]
        );
        assert_eq!(
            select(&["xfs"], Load::BusyCore),
            ["steady-xfs-copy-busy", "steady-xfs-copy-data-busy"]
        );
        assert_eq!(select(&[], Load::Idle).len(), 8);
        assert!(Schedule::steady(&words(&["xf"]), Load::Idle).is_err());
    }

    #[test]
    fn each_kind_of_steady_run_takes_about_half_an_hour_at_most() {
        for load in [Load::Idle, Load::BusyCore] {
            let schedule = Schedule::steady(&[], load).unwrap();
            assert_eq!(schedule.steady_rounds(), 20);
            assert!(schedule.total() < Duration::from_secs(35 * 60), "{load:?}");
        }
    }

    #[test]
    fn cells_are_selected_by_name_by_group_and_by_part_of_a_name() {
        let select = |word| Schedule::full(&words(&[word])).unwrap();
        assert_eq!(names(&select("copy-10")), ["copy-10"]);
        assert_eq!(
            names(&select("update")),
            ["update-first", "update-unchanged"]
        );
        assert!(
            names(&select("remove"))
                .iter()
                .all(|name| name.starts_with("remove-"))
        );
        assert_eq!(
            names(&select("go-cold")),
            ["copy-go-cold", "remove-go-cold"]
        );
        let calls = select("calls");
        assert!(calls.calls && !calls.contention && calls.cells.is_empty());
        assert!(Schedule::full(&words(&["nonsense"])).is_err());
    }

    #[test]
    fn measured_cells_are_not_measured_again() {
        let measured = |name: &str, rows| CellResult {
            name: name.to_owned(),
            rows,
            ..CellResult::default()
        };
        let earlier = Results {
            cells: vec![
                measured("update-first", vec![row("cpz", &[1.0])]),
                measured("update-unchanged", Vec::new()),
            ],
            ..Results::default()
        };
        let mut schedule = Schedule::full(&words(&["update", "calls"])).unwrap();
        schedule.without(&earlier);
        assert_eq!(names(&schedule), ["update-unchanged"]);
        assert!(schedule.calls);
    }

    #[test]
    fn large_files_have_more_rounds_unless_the_user_wants_fewer() {
        let name = words(&["large-one-tmpfs"]);
        let fewest = |schedule: &Schedule| schedule.limits(0, Duration::ZERO).unwrap().fewest.front;
        let mut schedule = Schedule::full(&name).unwrap();
        assert_eq!(fewest(&schedule), LARGE_ROUNDS);
        schedule.at_most(2);
        assert_eq!(fewest(&schedule), 2);
    }

    #[test]
    fn fewer_rounds_take_less_time() {
        let mut schedule = Schedule::cells(&words(&["copy-1m"])).unwrap();
        let before = schedule.total();
        schedule.at_most(1);
        assert!(schedule.total() < before.mul_f64(0.2));
        let limits = schedule.limits(0, Duration::ZERO).unwrap();
        assert_eq!((limits.fewest, limits.most), (Fewest::same(1), 1));
    }
}
