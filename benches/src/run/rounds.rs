//! Decides which commands of a cell run in the next round.
//!
//! All commands take turns, round after round. If the time does not suffice for three rounds of all of them, those
//! that are far behind stop early: another run of a slow command would change no conclusion, and the time is better
//! spent on more rounds of the fast ones. In the end only ours and those about as fast go on, because few rounds
//! can't tell which of them is ahead.

use std::time::Duration;

use crate::{
    results::{Run, median},
    what::peers::{Peer, Role},
};

/// How long a cell is measured, and how often its commands run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) budget: Duration,
    pub(crate) fewest: Fewest,
    pub(crate) most: usize,
    pub(crate) overtime: Overtime,
}

/// The least numbers of runs, however long they take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fewest {
    /// The runs of every command.
    pub(crate) all: usize,
    /// The runs of the commands that are not far behind, of ours, GNU's and the floor.
    pub(crate) front: usize,
    /// The runs of ours and of the commands that take about the same time, if there are any, and of the floor.
    pub(crate) close: usize,
}

impl Fewest {
    /// Returns the same number for all commands.
    pub(crate) const fn same(runs: usize) -> Self {
        Self {
            all: runs,
            front: runs,
            close: runs,
        }
    }

    /// Returns these numbers, but no larger ones than `most`.
    pub(crate) fn at_most(self, most: usize) -> Self {
        Self {
            all: self.all.min(most),
            front: self.front.min(most),
            close: self.close.min(most),
        }
    }
}

/// The rule for a first round that takes longer than the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overtime {
    /// The round goes on.
    Allowed,
    /// The round goes on with ours, GNU's and the floor alone.
    CutShort,
}

/// One command of a cell, and its runs so far.
pub(super) struct Lane {
    pub(super) command: Command,
    pub(super) runs: Vec<Run>,
    /// How long its last turn took, with the preparations.
    pub(super) cost: Duration,
}

/// The command of a lane.
#[derive(Debug, Clone, Copy)]
pub(super) enum Command {
    Peer(Peer),
    Floor,
}

impl Lane {
    fn median_seconds(&self) -> f64 {
        median(self.runs.iter().map(|run| run.seconds)).unwrap_or(f64::INFINITY)
    }

    /// Returns the role of a peer. The floor has none, because it does not compete.
    fn role(&self) -> Option<Role> {
        match self.command {
            Command::Peer(peer) => Some(peer.role),
            Command::Floor => None,
        }
    }

    /// Returns `true` for ours, GNU's and the floor. They never stop early, because all others are compared with
    /// them.
    fn is_needed(&self) -> bool {
        matches!(self.role(), None | Some(Role::Ours | Role::Reference))
    }
}

/// The rounds in which every command takes part if the time suffices.
const THOROUGH: usize = 3;
/// A command is far behind if it takes more than this many times as long as the fastest.
const FAR: f64 = 2.0;
/// Two commands are close if one takes at most this many times as long as the other.
const CLOSE: f64 = 1.15;

/// Returns the places of the lanes that run next, after `done` rounds and with the time `left`. There are none if the
/// cell has been measured enough.
pub(super) fn next(lanes: &[Lane], done: usize, left: Duration, limits: &Limits) -> Vec<usize> {
    if done >= limits.most {
        return Vec::new();
    }
    let takes = |turns: &[usize]| turns.iter().map(|&turn| lanes[turn].cost).sum::<Duration>();
    let all: Vec<_> = (0..lanes.len()).collect();
    let rounds = THOROUGH.saturating_sub(done).max(1);
    let fewest = limits.fewest;
    if done < fewest.all || takes(&all) * rounds as u32 <= left {
        return all;
    }
    let front = front(lanes);
    if done < fewest.front || takes(&front) <= left {
        return front;
    }
    if done < fewest.close {
        return close(lanes);
    }
    Vec::new()
}

/// Returns the lanes near the fastest, and those with which all others are compared.
fn front(lanes: &[Lane]) -> Vec<usize> {
    let peers = lanes.iter().filter(|lane| lane.role().is_some());
    let best = peers
        .map(Lane::median_seconds)
        .fold(f64::INFINITY, f64::min);
    let runs = |lane: &Lane| lane.is_needed() || lane.median_seconds() <= FAR * best;
    (0..lanes.len()).filter(|&i| runs(&lanes[i])).collect()
}

/// Returns ours, those that are faster or close to it, and the floor; nothing if ours is far ahead of all others.
fn close(lanes: &[Lane]) -> Vec<usize> {
    let is_ours = |lane: &&Lane| lane.role() == Some(Role::Ours);
    let Some(ours) = lanes.iter().find(is_ours) else {
        return Vec::new();
    };
    let bound = CLOSE * ours.median_seconds();
    let is_close = |lane: &Lane| lane.role().is_some() && lane.median_seconds() <= bound;
    if lanes.iter().filter(|lane| is_close(lane)).count() < 2 {
        return Vec::new();
    }
    let runs = |lane: &Lane| lane.role().is_none() || is_close(lane);
    (0..lanes.len()).filter(|&i| runs(&lanes[i])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{results::tests::runs, what::peers};

    const LIMITS: Limits = Limits {
        budget: Duration::from_secs(100),
        fewest: Fewest::same(1),
        most: 5,
        overtime: Overtime::CutShort,
    };

    fn lane(command: Command, seconds: u64) -> Lane {
        Lane {
            command,
            runs: runs(&[seconds as f64]),
            cost: Duration::from_secs(seconds),
        }
    }

    /// Returns ours, GNU's, one that is far behind, one that is not, and the floor.
    fn lanes() -> Vec<Lane> {
        let peer = |role| {
            let mut peers = peers::REMOVE.iter();
            Command::Peer(*peers.find(|peer| peer.role == role).unwrap())
        };
        vec![
            lane(peer(Role::Ours), 1),
            lane(peer(Role::Reference), 3),
            lane(peer(Role::Other), 30),
            lane(peer(Role::Other), 2),
            lane(Command::Floor, 1),
        ]
    }

    fn turns(done: usize, left: u64) -> Vec<usize> {
        next(&lanes(), done, Duration::from_secs(left), &LIMITS)
    }

    #[test]
    fn all_run_if_the_time_suffices_for_three_rounds() {
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
    fn fixed_numbers_of_threads_that_are_far_behind_stop_too() {
        let mut lanes = lanes();
        lanes[2].command = Command::Peer(peers::RMZ_FIXED[0]);
        let left = Duration::from_secs(7);
        assert_eq!(next(&lanes, 1, left, &LIMITS), [0, 1, 3, 4]);
    }

    #[test]
    fn those_that_are_about_as_fast_as_ours_go_on_at_last() {
        let limits = Limits {
            fewest: Fewest {
                all: 1,
                front: 2,
                close: 4,
            },
            ..LIMITS
        };
        let turns = |lanes: &[Lane], done| next(lanes, done, Duration::ZERO, &limits);
        let mut lanes = lanes();
        assert_eq!(turns(&lanes, 1), [0, 1, 3, 4]);
        assert_eq!(turns(&lanes, 2), [0; 0], "ours is far ahead");
        lanes[3].runs = runs(&[1.1]);
        assert_eq!(turns(&lanes, 2), [0, 3, 4]);
        lanes[1].runs = runs(&[0.3]);
        assert_eq!(turns(&lanes, 3), [0, 1, 3, 4]);
        assert_eq!(turns(&lanes, 4), [0; 0]);
    }

    #[test]
    fn the_fewest_rounds_take_their_time_and_the_most_are_enough() {
        assert_eq!(turns(0, 0), [0, 1, 2, 3, 4]);
        assert_eq!(turns(5, 1000), [0; 0]);
    }
}
