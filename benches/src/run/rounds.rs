//! Who runs how often.
//!
//! All peers of a cell take turns, round after round. Where the time does not suffice for three rounds of everybody,
//! those that are far behind stop early: a run more of them would tell nothing new, and would cost those who are
//! close together the rounds that tell them apart.

use std::time::Duration;

use crate::results::{CellResult, Row};

/// How long a cell is measured, and how often its commands run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) budget: Duration,
    /// All commands run as often, however long it takes.
    pub(crate) fewest: usize,
    pub(crate) most: usize,
    pub(crate) overtime: Overtime,
}

/// What happens when the time is up in the first round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overtime {
    /// Nothing.
    Allowed,
    /// What is neither ours, nor GNU's, nor the floor, is left out.
    CutShort,
}

/// Rounds that everybody takes part in where the time suffices.
const THOROUGH: usize = 3;
/// Who takes longer than so many times the fastest is far behind.
const FAR: f64 = 2.0;

/// Who runs in the round after `done` rounds, with so much time left: places in the rows, and the floor behind them.
/// None if it is enough.
///
/// `costs` is what the last turn of each took, with all that had to be done before it.
pub(crate) fn next(
    cell: &CellResult,
    costs: &[Duration],
    (done, left): (usize, Duration),
    limits: &Limits,
) -> Vec<usize> {
    if done >= limits.most {
        return Vec::new();
    }
    let takes = |turns: &[usize]| turns.iter().map(|&turn| costs[turn]).sum::<Duration>();
    let all: Vec<_> = (0..costs.len()).collect();
    let rounds = THOROUGH.saturating_sub(done).max(1);
    if done < limits.fewest || takes(&all) * rounds as u32 <= left {
        return all;
    }
    let front = front(cell);
    if takes(&front) <= left {
        front
    } else {
        Vec::new()
    }
}

/// Whoever is near the fastest, and what all are compared with.
fn front(cell: &CellResult) -> Vec<usize> {
    let best = cell.fastest().map_or(0.0, Row::median_seconds);
    let near = cell
        .rows
        .iter()
        .enumerate()
        .filter(|(_, row)| row.ours || row.reference || row.median_seconds() <= FAR * best);
    let floor = cell.rows.len();
    near.map(|(place, _)| place).chain([floor]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::row;

    const LIMITS: Limits = Limits {
        budget: Duration::from_secs(100),
        fewest: 1,
        most: 5,
        overtime: Overtime::CutShort,
    };

    /// Ours, GNU's, one that is far behind, one that is not; the floor is the fifth.
    fn cell() -> CellResult {
        CellResult {
            rows: vec![
                row("rmz", &[1.0]),
                row("rm -r", &[3.0]),
                row("slow", &[30.0]),
                row("near", &[2.0]),
            ],
            ..CellResult::default()
        }
    }

    fn turns(done: usize, left: u64) -> Vec<usize> {
        let costs = [1, 3, 30, 2, 1].map(Duration::from_secs);
        next(&cell(), &costs, (done, Duration::from_secs(left)), &LIMITS)
    }

    #[test]
    fn all_run_where_the_time_suffices_for_three_rounds() {
        assert_eq!(turns(1, 74), [0, 1, 2, 3, 4]);
        assert_eq!(turns(2, 37), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn else_those_that_are_far_behind_stop() {
        assert_eq!(turns(1, 73), [0, 1, 3, 4]);
        assert_eq!(turns(4, 7), [0, 1, 3, 4]);
        assert_eq!(turns(4, 6), [0; 0]);
    }

    #[test]
    fn the_fewest_rounds_take_what_they_take_and_the_most_are_enough() {
        assert_eq!(turns(0, 0), [0, 1, 2, 3, 4]);
        assert_eq!(turns(5, 1000), [0; 0]);
    }
}
